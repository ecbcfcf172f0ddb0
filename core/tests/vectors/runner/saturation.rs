//! Answers of the saturation detectors.

use core::time::Duration;

use bandgate_core::admit::detect::{Detector, Stages, role_of};
use bandgate_core::types::extend::{BackendSample, Sampled, SaturationDetector};
use bandgate_core::types::saturation::{
    ConcurrencyMode, ConcurrencyParams, SaturationSource, UtilizationParams,
};
use serde_json::{Value, json};

use crate::input::{self, Result};

/// The detector of a row; what it does not name has its default.
fn detector(input: &Value) -> Result<Detector> {
    let count = |key: &str, default: u64| match &input[key] {
        Value::Null => Ok(default),
        value => input::unsigned(value),
    };
    let narrow = |n: u64| u32::try_from(n).map_err(|e| e.to_string());
    let source = match input["detector"].as_str() {
        Some("utilization") => {
            let default = UtilizationParams::default();
            SaturationSource::Utilization(UtilizationParams {
                queue_depth: narrow(count("queueThreshold", default.queue_depth.into())?)?,
                kv: input::number(input, "kvThreshold").unwrap_or(default.kv),
                stale_after: Duration::from_millis(count("staleMs", 200)?),
                ..default
            })
        }
        Some("concurrency") => {
            let default = ConcurrencyParams::default();
            SaturationSource::Concurrency(ConcurrencyParams {
                mode: match input["mode"].as_str() {
                    Some("requests") | None => ConcurrencyMode::Requests,
                    Some("tokens") => ConcurrencyMode::Tokens,
                    Some("hybrid") => ConcurrencyMode::Hybrid,
                    Some(other) => return Err(format!("unknown mode {other}")),
                },
                max_requests: narrow(count("maxConcurrency", default.max_requests.into())?)?,
                max_tokens: count("maxTokenConcurrency", default.max_tokens)?,
                ..default
            })
        }
        other => return Err(format!("unknown detector {other:?}")),
    };
    Detector::new(&source).ok_or_else(|| "no detector".into())
}

fn sample(endpoint: &Value) -> Result<BackendSample> {
    let count = |key: &str| match &endpoint[key] {
        Value::Null => Ok(0),
        value => input::unsigned(value),
    };
    let narrow = |n: u64| u32::try_from(n).map_err(|e| e.to_string());
    let age_ms = (!endpoint["ageMs"].is_null()).then(|| input::unsigned(&endpoint["ageMs"]));
    Ok(BackendSample {
        role: role_of(endpoint["role"].as_str()),
        waiting: narrow(count("waiting")?)?,
        kv: input::number(endpoint, "kv").unwrap_or(0.0),
        requests: narrow(count("requests")?)?,
        tokens: count("tokens")?,
        age_ns: age_ms.transpose()?.map(|ms| ms * 1_000_000),
    })
}

/// What the detector, or each stage of it, reads.
pub(crate) fn answer(input: &Value, key: &str) -> Result<Value> {
    let detector = detector(input)?;
    let samples: Vec<BackendSample> =
        input::list(input, "endpoints").iter().map(sample).collect::<Result<_>>()?;
    let stages = Stages::read(&detector, &samples);
    let of = |stage: Option<Sampled>| json!(stage.map(|stage| stage.saturation));
    Ok(match key {
        "saturation" => json!(detector.read(&samples).saturation),
        "stale" => json!(detector.read(&samples).stale),
        "prefill" => of(stages.prefill),
        "decode" => of(stages.decode),
        "effective" => json!(stages.effective.saturation),
        _ => return Err("unknown key".into()),
    })
}
