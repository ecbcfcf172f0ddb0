//! Where a pool's saturation comes from: the parameters of the detectors, and the seeds' two places for them.

use core::time::Duration;

use crate::types::saturation::{
    Aggregate, ConcurrencyMode, ConcurrencyParams, SaturationSource, StalenessPolicy,
    UtilizationParams,
};

use super::fault::Faults;
use super::plugins::{Policy, Registry};
use super::policies::ignored;
use super::read::{Bound, View};
use super::value::quoted;

/// Reads the parameters of `utilization-detector`.
pub(crate) fn utilization(view: &View<'_>, faults: &mut Faults) -> Option<UtilizationParams> {
    let default = UtilizationParams::default();
    warn_headroom(view, faults);
    Some(UtilizationParams {
        queue_depth: view.u32("queueDepthThreshold").unwrap_or(default.queue_depth),
        kv: view.f64("kvCacheUtilThreshold").unwrap_or(default.kv),
        stale_after: stale_after(view, default.stale_after, faults)?,
        staleness: match view.text("stalenessPolicy").as_deref() {
            Some("ignore") => StalenessPolicy::Ignore,
            Some("probe") => StalenessPolicy::Probe,
            _ => StalenessPolicy::Saturated,
        },
        aggregate: aggregate(view),
        headroom: view.f64("headroom").unwrap_or(default.headroom),
    })
}

fn stale_after(view: &View<'_>, default: Duration, faults: &mut Faults) -> Option<Duration> {
    let key = "metricsStalenessThreshold";
    let stated = view.duration(key).and_then(Bound::limit).unwrap_or(default);
    if !stated.is_zero() {
        return Some(stated);
    }
    let message =
        "0s is out of range: use above 0s, longer than the host takes between two reports";
    faults.add(&view.path_of(key), view.at_of(key), message);
    None
}

/// Reads the parameters of `concurrency-detector`.
pub(crate) fn concurrency(view: &View<'_>, faults: &mut Faults) -> ConcurrencyParams {
    let default = ConcurrencyParams::default();
    warn_headroom(view, faults);
    ignored(view, "inFlightLoadProducerName", "the host reports what is in flight", faults);
    let mode = match view.text("concurrencyMode").as_deref() {
        Some("tokens") => ConcurrencyMode::Tokens,
        Some("hybrid") => ConcurrencyMode::Hybrid,
        _ => ConcurrencyMode::Requests,
    };
    match mode {
        ConcurrencyMode::Requests => {
            ignored(view, "maxTokenConcurrency", "concurrencyMode is requests", faults);
        }
        ConcurrencyMode::Tokens => {
            ignored(view, "maxConcurrency", "concurrencyMode is tokens", faults);
        }
        ConcurrencyMode::Hybrid => {}
    }
    ConcurrencyParams {
        mode,
        max_requests: view.u32("maxConcurrency").unwrap_or(default.max_requests),
        max_tokens: view.u64("maxTokenConcurrency").unwrap_or(default.max_tokens),
        aggregate: aggregate(view),
        headroom: view.f64("headroom").unwrap_or(default.headroom),
    }
}

fn aggregate(view: &View<'_>) -> Aggregate {
    match view.text("aggregate").as_deref() {
        Some("max") => Aggregate::Max,
        _ => Aggregate::Mean,
    }
}

fn warn_headroom(view: &View<'_>, faults: &mut Faults) {
    if let Some(headroom) = view.f64("headroom").filter(|headroom| *headroom > 1.0) {
        let message = format!(
            "{headroom} is above 1: a backend would still be chosen at more than twice its limit"
        );
        faults.warn(&view.path_of("headroom"), view.at_of("headroom"), message);
    }
}

/// What holds for every pool that does not say otherwise: `flowControl.saturationDetector`, or its older place at the
/// top of the document. Without either it is slots, for the seeds' documents too.
pub(crate) fn shared(
    root: &View<'_>,
    registry: &Registry,
    faults: &mut Faults,
) -> SaturationSource {
    let (nested, older) = (
        root.object("flowControl").object("saturationDetector"),
        root.object("saturationDetector"),
    );
    let key = "pluginRef";
    if let Some(name) = older.text(key) {
        let message = "an older place of flowControl.saturationDetector.pluginRef: move it there";
        faults.warn(&older.path_of(key), older.at_of(key), message);
        if let Some(other) = nested.text(key).filter(|other| *other != name) {
            let message = format!(
                "{} differs from {} {}: they are one key, keep one of them",
                quoted(&name),
                nested.path_of(key),
                quoted(&other)
            );
            faults.add(&older.path_of(key), older.at_of(key), message);
        }
    }
    let view = if nested.has(key) { nested } else { older };
    stated(registry.reference(&view, key, faults)).unwrap_or_default()
}

/// That of a pool; `None`: it does not say.
pub(crate) fn of_pool(
    view: &View<'_>,
    registry: &Registry,
    faults: &mut Faults,
) -> Option<SaturationSource> {
    stated(registry.policy(view, "saturation", faults))
}

fn stated(policy: Option<Policy>) -> Option<SaturationSource> {
    match policy {
        Some(Policy::Saturation(source)) => Some(source),
        _ => None,
    }
}
