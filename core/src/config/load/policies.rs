//! The parameters of the policies, made into what the engine computes with.

use core::time::Duration;

use crate::types::policy::{BandSelection, Distribution, Ratio, Schedule, WfqParams};

use super::fault::Faults;
use super::read::{Bound, View};

/// How far the ratios may sum from 1.
const SUM_TOLERANCE: f64 = 1e-6;
/// How long credits survive a deactivation by default.
const RETENTION: Duration = Duration::from_secs(5);

/// The priorities a band selection policy names.
pub(crate) fn named_by(selection: &BandSelection) -> Vec<i32> {
    match selection {
        BandSelection::Wfq(WfqParams {
            distribution: Distribution::Explicit { ratios, .. },
            ..
        }) => ratios.iter().map(|(priority, _)| *priority).collect(),
        _ => Vec::new(),
    }
}

/// Reads the parameters of `cross-band-fairness-policy`.
pub(crate) fn wfq(view: &View<'_>, faults: &mut Faults) -> Option<WfqParams> {
    let distribution = distribution(view, faults);
    let schedule = schedule(view, faults);
    let activation = view.f64("activationThreshold")?;
    let deactivation = match view.f64("deactivationThreshold") {
        Some(v) if v > activation => {
            let message =
                format!("{v} is above activationThreshold ({activation}): use 0 to {activation}");
            faults.add(
                &view.path_of("deactivationThreshold"),
                view.at_of("deactivationThreshold"),
                message,
            );
            return None;
        }
        other => other.unwrap_or(activation),
    };
    let retention = view.duration("stateRetention").and_then(Bound::limit).unwrap_or(RETENTION);
    Some(WfqParams {
        activation,
        deactivation,
        retention_ns: u64::try_from(retention.as_nanos()).unwrap_or(u64::MAX),
        schedule,
        distribution: distribution?,
    })
}

fn schedule(view: &View<'_>, faults: &mut Faults) -> Schedule {
    let interleaved = view.text("schedule").as_deref() == Some("interleaved");
    if interleaved {
        ignored(view, "maxFairnessWindow", "schedule is interleaved", faults);
        return Schedule::Interleaved;
    }
    Schedule::PriorityFirst { max_fairness_window: view.u32("maxFairnessWindow") }
}

fn distribution(view: &View<'_>, faults: &mut Faults) -> Option<Distribution> {
    let name = view.text("distribution").unwrap_or_else(|| "proportional".into());
    let why = format!("distribution is {name}");
    if name != "explicit" {
        ignored(view, "ratios", &why, faults);
        ignored(view, "defaultRatio", &why, faults);
    }
    if name != "proportional" {
        ignored(view, "anchorPriority", &why, faults);
    }
    match name.as_str() {
        "linear" => Some(Distribution::Linear),
        "explicit" => explicit(view, faults),
        _ => Some(Distribution::Proportional { anchor: view.i32("anchorPriority") }),
    }
}

/// Warns of a key that has no effect beside another.
pub(crate) fn ignored(view: &View<'_>, key: &str, why: &str, faults: &mut Faults) {
    if view.has(key) {
        faults.warn(&view.path_of(key), view.at_of(key), format!("ignored, because {why}"));
    }
}

#[allow(clippy::float_arithmetic, reason = "a check of the configuration, no scheduling decision")]
fn explicit(view: &View<'_>, faults: &mut Faults) -> Option<Distribution> {
    let (path, at) = (view.path_of("ratios"), view.at_of("ratios"));
    if !view.has("ratios") {
        faults.add(&path, at, "missing: distribution explicit needs a ratio for each priority");
        return None;
    }
    let ratios = view.by_priority("ratios")?;
    if ratios.iter().all(|(_, ratio, _)| *ratio <= 0.0) {
        faults.add(&path, at, "no ratio is above 0: give at least one priority a share");
        return None;
    }
    let sum: f64 = ratios.iter().map(|(_, ratio, _)| ratio).sum();
    if (sum - 1.0).abs() > SUM_TOLERANCE {
        let message = format!("the ratios sum to {sum:.6}: they must sum to 1");
        faults.add(&path, at, message);
        return None;
    }
    let quantised = |(priority, ratio, _)| Some((priority, Ratio::from_f64(ratio)?));
    Some(Distribution::Explicit {
        ratios: ratios.into_iter().map(quantised).collect::<Option<_>>()?,
        default_ratio: view.f64("defaultRatio").and_then(Ratio::from_f64),
    })
}
