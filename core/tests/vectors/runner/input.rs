//! Reads the inputs of a vector of `flow.json` into what the crate takes.

use bandgate_core::types::policy::{BandSelection, Distribution, Ratio, Schedule, WfqParams};
use serde_json::Value;

/// An input that cannot be read, in words.
pub(crate) type Result<T> = core::result::Result<T, String>;

pub(crate) fn list<'a>(input: &'a Value, key: &str) -> &'a [Value] {
    input[key].as_array().map_or(&[], Vec::as_slice)
}

pub(crate) fn number(input: &Value, key: &str) -> Option<f64> {
    input[key].as_f64()
}

pub(crate) fn integer(value: &Value) -> Result<i32> {
    let whole = value.as_i64().or_else(|| {
        // 10.0 is 10.
        value.as_f64().and_then(|f| format!("{f:.0}").parse().ok().filter(|_| f.fract() == 0.0))
    });
    whole.and_then(|n| i32::try_from(n).ok()).ok_or_else(|| format!("not an integer: {value}"))
}

pub(crate) fn unsigned(value: &Value) -> Result<u64> {
    value.as_u64().ok_or_else(|| format!("not a count: {value}"))
}

/// The priorities, or, where a row names only weights, as many as it has weights.
pub(crate) fn priorities(input: &Value) -> Result<Vec<i32>> {
    if input["priorities"].is_array() {
        return list(input, "priorities").iter().map(integer).collect();
    }
    let count = i32::try_from(list(input, "weights").len()).map_err(|e| e.to_string())?;
    Ok((0..count).rev().collect())
}

pub(crate) fn weights(input: &Value) -> Result<Vec<u64>> {
    list(input, "weights").iter().map(unsigned).collect()
}

/// A map keyed by priority, values as they are.
pub(crate) fn by_priority(map: &Value) -> Result<Vec<(i32, Value)>> {
    let Value::Object(map) = map else { return Ok(Vec::new()) };
    let parse = |key: &String| key.trim().parse::<i32>().map_err(|e| format!("{key}: {e}"));
    map.iter().map(|(key, value)| Ok((parse(key)?, value.clone()))).collect()
}

fn ratio(value: &Value) -> Result<Ratio> {
    value.as_f64().and_then(Ratio::from_f64).ok_or_else(|| format!("not a ratio: {value}"))
}

/// The distribution named, else the weights given as listed shares.
fn distribution(input: &Value) -> Result<Distribution> {
    let named = input["distribution"].as_str();
    match named.or_else(|| input["ratios"].is_object().then_some("explicit")) {
        Some("linear") => Ok(Distribution::Linear),
        Some("explicit") => {
            let ratios = by_priority(&input["ratios"])?;
            let ratios = ratios.iter().map(|(p, r)| Ok((*p, ratio(r)?))).collect::<Result<_>>()?;
            let default = Some(&input["defaultRatio"]).filter(|value| !value.is_null());
            Ok(Distribution::Explicit { ratios, default_ratio: default.map(ratio).transpose()? })
        }
        None if input["weights"].is_array() => {
            let shares = weights(input)?.into_iter().map(|w| u32::try_from(w).map(Ratio));
            let shares: Vec<_> =
                shares.collect::<core::result::Result<_, _>>().map_err(|e| e.to_string())?;
            let ratios = priorities(input)?.into_iter().zip(shares).collect();
            Ok(Distribution::Explicit { ratios, default_ratio: None })
        }
        None | Some("proportional") => {
            let anchor = Some(&input["anchor"]).filter(|value| !value.is_null());
            Ok(Distribution::Proportional { anchor: anchor.map(integer).transpose()? })
        }
        Some(other) => Err(format!("unknown distribution {other}")),
    }
}

/// `maxFairnessWindow`, null and absent = none.
pub(crate) fn window(input: &Value) -> Result<Option<u32>> {
    match &input["maxFairnessWindow"] {
        Value::Null => Ok(None),
        value => integer(value).and_then(|w| u32::try_from(w).map(Some).map_err(|e| e.to_string())),
    }
}

/// The selection a row describes under one schedule. Without an activation threshold it is always active.
pub(crate) fn selection(input: &Value, schedule: &str) -> Result<BandSelection> {
    let schedule = match schedule {
        "strict" => return Ok(BandSelection::Strict),
        "priority-first" => Schedule::PriorityFirst { max_fairness_window: window(input)? },
        "interleaved" => Schedule::Interleaved,
        other => return Err(format!("unknown schedule {other}")),
    };
    let activation = number(input, "activationThreshold").unwrap_or(0.0);
    let retention_ms = match &input["stateRetentionMs"] {
        Value::Null => 5000,
        value => unsigned(value)?,
    };
    Ok(BandSelection::Wfq(WfqParams {
        activation,
        deactivation: number(input, "deactivationThreshold").unwrap_or(activation),
        retention_ns: retention_ms * 1_000_000,
        schedule,
        distribution: distribution(input)?,
    }))
}

/// The schedules a row is to be run under.
pub(crate) fn schedules(input: &Value) -> Vec<&str> {
    if let Some(one) = input["schedule"].as_str() {
        return vec![one];
    }
    let many: Vec<_> = list(input, "schedules").iter().filter_map(Value::as_str).collect();
    if many.is_empty() { vec!["priority-first"] } else { many }
}
