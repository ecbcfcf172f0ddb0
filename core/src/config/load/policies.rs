//! The parameters of the policies, made into what the engine computes with.

use core::time::Duration;

use crate::types::policy::{
    BandSelection, Distribution, Holdback, HoldbackDomain, Ratio, Schedule, WfqParams,
};

use super::fault::Faults;
use super::node::At;
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

fn ignored(view: &View<'_>, key: &str, why: &str, faults: &mut Faults) {
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

/// What `domain` and its older spelling `strategy` ask for together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Domain {
    Rank,
    Value,
    Explicit,
}

impl Domain {
    fn of(word: &str) -> Option<Self> {
        match word {
            "rank" | "stepwise-spread" => Some(Self::Rank),
            "value" | "linear-proportional" => Some(Self::Value),
            "explicit" | "static" => Some(Self::Explicit),
            _ => None,
        }
    }
}

/// Reads the parameters of `priority-holdback-policy`.
pub(crate) fn holdback(view: &View<'_>, faults: &mut Faults) -> Option<Holdback> {
    let (domain, strategy) = (view.text("domain"), view.text("strategy"));
    if view.has("strategy") && strategy.is_none() || view.has("domain") && domain.is_none() {
        // One of them has its fault already; without it the other fields cannot be judged.
        return None;
    }
    if let (Some(domain), Some(strategy)) = (&domain, &strategy)
        && Domain::of(domain) != Domain::of(strategy)
    {
        let message = format!("strategy {strategy} contradicts domain {domain}: keep one of them");
        faults.add(&view.path_of("strategy"), view.at_of("strategy"), message);
        return None;
    }
    let word = domain.or(strategy).unwrap_or_else(|| "rank".into());
    match Domain::of(&word)? {
        Domain::Explicit => explicit_ceilings(view, faults),
        Domain::Rank => linear(view, HoldbackDomain::Rank, faults),
        Domain::Value => linear(view, HoldbackDomain::Value, faults),
    }
}

/// Refuses keys that belong to the other form of the policy; `true` if there was one.
fn foreign(view: &View<'_>, keys: &[&str], fix: &str, faults: &mut Faults) -> bool {
    let present: Vec<&&str> = keys.iter().filter(|key| view.has(key)).collect();
    for key in &present {
        faults.add(&view.path_of(key), view.at_of(key), format!("does not apply here: {fix}"));
    }
    !present.is_empty()
}

fn linear(view: &View<'_>, domain: HoldbackDomain, faults: &mut Faults) -> Option<Holdback> {
    let fix = "remove it, or set domain: explicit";
    let foreign = foreign(view, &["ceilings", "defaultStaticCeiling"], fix, faults);
    if !view.has("minCeiling") {
        let message = "missing: a number, at least 0 and below 1, is required";
        faults.add(&view.path_of("minCeiling"), view.at(), message);
    }
    if view.has("maxCeiling") && view.f64("maxCeiling").is_none() {
        return None;
    }
    let (min, max) = (view.f64("minCeiling")?, view.f64("maxCeiling").unwrap_or(1.0));
    if min >= max {
        let message =
            format!("{min} is not below maxCeiling ({max}): lower it or raise maxCeiling");
        faults.add(&view.path_of("minCeiling"), view.at_of("minCeiling"), message);
        return None;
    }
    (!foreign).then_some(Holdback::Linear { domain, min, max })
}

fn explicit_ceilings(view: &View<'_>, faults: &mut Faults) -> Option<Holdback> {
    let fix = "remove it, or set domain: rank or value";
    let foreign = foreign(view, &["shape", "minCeiling", "maxCeiling", "activeBands"], fix, faults);
    let (path, at) = (view.path_of("ceilings"), view.at_of("ceilings"));
    if !view.has("ceilings") {
        faults.add(&path, at, "missing: explicit ceilings need a ceiling for each priority");
        return None;
    }
    let mut listed = view.by_priority("ceilings")?;
    if listed.is_empty() {
        faults.add(&path, at, "no ceiling is listed: give at least one priority a ceiling");
        return None;
    }
    listed.sort_by_key(|(priority, ..)| core::cmp::Reverse(*priority));
    let falling = not_rising(&listed, |p| super::check::join(&path, &p.to_string()), faults);
    let ceilings = listed.into_iter().map(|(priority, ceiling, _)| (priority, ceiling)).collect();
    let default = view.f64("defaultStaticCeiling");
    (falling && !foreign).then_some(Holdback::Explicit { ceilings, default })
}

/// Notes every ceiling above that of the next more urgent one; the list falls in priority.
pub(crate) fn not_rising(
    listed: &[(i32, f64, &At)],
    path: impl Fn(i32) -> String,
    faults: &mut Faults,
) -> bool {
    let mut good = true;
    for pair in listed.windows(2) {
        let ((above, high, _), (below, low, at)) = (pair[0], pair[1]);
        if low > high {
            good = false;
            let message = format!(
                "{low} is above the ceiling of priority {above} ({high}): a ceiling must not rise as the priority falls, use at most {high}"
            );
            faults.add(&path(below), at, message);
        }
    }
    good
}
