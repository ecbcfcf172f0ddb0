//! The parameters of the usage limit policies: which ceilings the bands have.

use crate::types::policy::{
    ActiveBands, Adaptive, Curve, Holdback, HoldbackDomain, Pressed, Rest, Shape, Signal,
};

use super::check::join;
use super::fault::Faults;
use super::node::At;
use super::read::View;

/// How ceilings are made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    Explicit,
    Linear,
    Sigmoid,
}

/// What one key of the several spellings says.
#[derive(Debug)]
struct Claim {
    key: &'static str,
    word: String,
    /// The forms it leaves open.
    forms: &'static [Form],
    domain: Option<HoldbackDomain>,
}

/// The keys that say form or domain; of two that contradict each other the later is reported.
const SPELLINGS: [&str; 4] = ["domain", "shape", "sigmoidDomain", "strategy"];

impl Claim {
    fn read(view: &View<'_>, key: &'static str) -> Option<Self> {
        const CURVES: &[Form] = &[Form::Linear, Form::Sigmoid];
        const ALL: &[Form] = &[Form::Explicit, Form::Linear, Form::Sigmoid];
        let word = view.text(key)?;
        let (rank, value) = (Some(HoldbackDomain::Rank), Some(HoldbackDomain::Value));
        let (forms, domain): (&[Form], _) = match (key, word.as_str()) {
            // On its own it makes no sigmoid: beside another form it is refused as not applying.
            ("sigmoidDomain", "rank") => (ALL, rank),
            ("sigmoidDomain", "value") => (ALL, value),
            (_, "rank") => (CURVES, rank),
            (_, "value") => (CURVES, value),
            (_, "linear") => (&[Form::Linear], None),
            (_, "stepwise-spread") => (&[Form::Linear], rank),
            (_, "linear-proportional") => (&[Form::Linear], value),
            (_, "sigmoid" | "sigmoid-smoothed") => (&[Form::Sigmoid], None),
            _ => (&[Form::Explicit], None),
        };
        Some(Self { key, word, forms, domain })
    }

    fn contradicts(&self, other: &Self) -> bool {
        let in_form = self.forms.iter().all(|form| !other.forms.contains(form));
        let in_domain = self.domain.zip(other.domain).is_some_and(|(a, b)| a != b);
        in_form || in_domain
    }
}

/// Form and domain out of all spellings; `None` if they contradict each other or one is at fault.
fn form(view: &View<'_>, faults: &mut Faults) -> Option<(Form, HoldbackDomain)> {
    let claims: Vec<Claim> = SPELLINGS.iter().filter_map(|key| Claim::read(view, key)).collect();
    let mut is_good = SPELLINGS.iter().filter(|key| view.has(key)).count() == claims.len();
    for (i, claim) in claims.iter().enumerate() {
        if let Some(other) = claims[..i].iter().find(|earlier| claim.contradicts(earlier)) {
            let Claim { key, word, .. } = claim;
            let message =
                format!("{key} {word} contradicts {} {}: keep one of them", other.key, other.word);
            faults.add(&view.path_of(key), view.at_of(key), message);
            is_good = false;
        }
    }
    let only = claims.iter().find(|claim| claim.forms.len() == 1).map(|claim| claim.forms[0]);
    let domain = claims.iter().find_map(|claim| claim.domain).unwrap_or_default();
    is_good.then(|| (only.unwrap_or(Form::Linear), domain))
}

/// Reads the parameters of `static-usage-limit-policy`.
pub(crate) fn static_limit(view: &View<'_>) -> Option<Holdback> {
    let threshold = view.f64("threshold");
    if view.has("threshold") && threshold.is_none() {
        return None;
    }
    Some(Holdback::Static { threshold: threshold.unwrap_or(1.0) })
}

/// Reads the parameters of `priority-holdback-policy`.
pub(crate) fn holdback(view: &View<'_>, faults: &mut Faults) -> Option<Holdback> {
    let (form, domain) = form(view, faults)?;
    let pressed = match form {
        Form::Explicit => explicit(view, faults),
        Form::Linear | Form::Sigmoid => curve(view, form, domain, faults).map(Pressed::Curve),
    };
    if view.has("adaptive") {
        return adaptive(&view.object("adaptive"), pressed, faults).map(Holdback::Adaptive);
    }
    Some(match pressed? {
        Pressed::Curve(curve) => Holdback::Curve(curve),
        Pressed::Explicit { ceilings, default } => Holdback::Explicit { ceilings, default },
    })
}

/// Refuses keys that belong to the other form of the policy; `true` if there was one.
fn foreign(view: &View<'_>, keys: &[&str], fix: &str, faults: &mut Faults) -> bool {
    let present: Vec<&&str> = keys.iter().filter(|key| view.has(key)).collect();
    for key in &present {
        faults.add(&view.path_of(key), view.at_of(key), format!("does not apply here: {fix}"));
    }
    !present.is_empty()
}

/// The keys of a sigmoid.
const SIGMOID: [&str; 3] = ["sigmoidSteepness", "sigmoidMidpoint", "sigmoidDomain"];

fn curve(
    view: &View<'_>,
    form: Form,
    domain: HoldbackDomain,
    faults: &mut Faults,
) -> Option<Curve> {
    let fix = "remove it, or set domain: explicit";
    let mut foreign = foreign(view, &["ceilings", "defaultStaticCeiling"], fix, faults);
    if form == Form::Linear {
        foreign |= self::foreign(view, &SIGMOID, "remove it, or set shape: sigmoid", faults);
    }
    if !view.has("minCeiling") {
        let message = "missing: a number, at least 0 and below 1, is required";
        faults.add(&view.path_of("minCeiling"), view.at(), message);
    }
    let is_faulty = |key: &&str| view.has(key) && view.f64(key).is_none();
    if ["maxCeiling", SIGMOID[0], SIGMOID[1]].iter().any(is_faulty) {
        return None;
    }
    let (min, max) = (view.f64("minCeiling")?, view.f64("maxCeiling").unwrap_or(1.0));
    if min >= max {
        let message =
            format!("{min} is not below maxCeiling ({max}): lower it or raise maxCeiling");
        faults.add(&view.path_of("minCeiling"), view.at_of("minCeiling"), message);
        return None;
    }
    let shape = match form {
        Form::Sigmoid => Shape::Sigmoid {
            steepness: view.f64("sigmoidSteepness").unwrap_or(8.0),
            midpoint: view.f64("sigmoidMidpoint").unwrap_or(0.5),
        },
        _ => Shape::Linear,
    };
    let active = match view.text("activeBands").as_deref() {
        Some("busy") => ActiveBands::Busy,
        _ => ActiveBands::Provisioned,
    };
    (!foreign).then_some(Curve { shape, domain, min, max, active })
}

fn explicit(view: &View<'_>, faults: &mut Faults) -> Option<Pressed> {
    let fix = "remove it, or set domain: rank or value";
    let mut foreign = foreign(view, &["minCeiling", "maxCeiling", "activeBands"], fix, faults);
    foreign |= self::foreign(view, &SIGMOID, "remove it, or set shape: sigmoid", faults);
    if !view.has("ceilings") {
        let message = "missing: explicit ceilings need a ceiling for each priority";
        faults.add(&view.path_of("ceilings"), view.at_of("ceilings"), message);
        return None;
    }
    let ceilings = listed(view, "ceilings", faults);
    let default = view.f64("defaultStaticCeiling");
    let ceilings = ceilings?;
    (!foreign).then_some(Pressed::Explicit { ceilings, default })
}

/// A list of ceilings by priority, most urgent first; `None` if one is at fault or they rise.
fn listed(view: &View<'_>, key: &str, faults: &mut Faults) -> Option<Vec<(i32, f64)>> {
    let (path, at) = (view.path_of(key), view.at_of(key));
    let mut listed = view.by_priority(key)?;
    if listed.is_empty() {
        faults.add(&path, at, "no ceiling is listed: give at least one priority a ceiling");
        return None;
    }
    listed.sort_by_key(|(priority, ..)| core::cmp::Reverse(*priority));
    let falling = not_rising(&listed, |p| join(&path, &p.to_string()), faults);
    let ceilings = listed.into_iter().map(|(priority, ceiling, _)| (priority, ceiling)).collect();
    falling.then_some(ceilings)
}

/// Reads `adaptive`, the way between rest and the ceilings of the form.
fn adaptive(view: &View<'_>, pressed: Option<Pressed>, faults: &mut Faults) -> Option<Adaptive> {
    let rest = rest(view, pressed.as_ref(), faults);
    let signal = match view.text("signal") {
        None => Signal::Saturation,
        Some(word) => match word.as_str() {
            "saturation" => Signal::Saturation,
            "queueDepth" => Signal::QueueDepth,
            _ => Signal::Detector(word),
        },
    };
    let is_faulty = |key: &&str| view.has(key) && view.f64(key).is_none();
    if ["full", "recoveryRate"].iter().any(is_faulty) {
        return None;
    }
    let (target, full) = (view.f64("target")?, view.f64("full").unwrap_or(1.0));
    if target >= full {
        let message = format!("{target} is not below full ({full}): lower it or raise full");
        faults.add(&view.path_of("target"), view.at_of("target"), message);
        return None;
    }
    let recovery_rate = view.f64("recoveryRate").unwrap_or(0.1);
    Some(Adaptive { pressed: pressed?, rest: rest?, signal, target, full, recovery_rate })
}

fn rest(view: &View<'_>, pressed: Option<&Pressed>, faults: &mut Faults) -> Option<Rest> {
    let (one, each) = ("restCeiling", "restCeilings");
    if view.has(one) && view.has(each) {
        let message = format!("{each} contradicts {one}: keep one of them");
        faults.add(&view.path_of(each), view.at_of(each), message);
        return None;
    }
    if view.has(each) {
        return listed(view, each, faults).map(Rest::Each);
    }
    let rest = view.f64(one);
    if view.has(one) && rest.is_none() {
        return None;
    }
    let Some(Pressed::Curve(Curve { min, max, .. })) = pressed else {
        return Some(Rest::All(rest.unwrap_or(1.0)));
    };
    let rest = rest.unwrap_or(*max);
    if rest < *min || rest > *max {
        let message = format!(
            "{rest} is outside minCeiling ({min}) to maxCeiling ({max}): the ceilings stay between them"
        );
        faults.add(&view.path_of(one), view.at_of(one), message);
        return None;
    }
    Some(Rest::All(rest))
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
