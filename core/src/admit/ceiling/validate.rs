//! What a start refuses about ceilings: each field's range, and lists that rise as priority falls.
#![forbid(unsafe_code)]

use alloc::{format, string::String, vec::Vec};
use core::fmt;

use crate::types::policy::{Adaptive, Curve, Holdback, Pressed, Rest, Shape};

/// What is wrong with explicit ceilings.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum CeilingError {
    /// None is listed.
    Required,
    /// One is NaN or outside 0..=1.
    OutOfRange,
    /// A band has a higher ceiling than one above it.
    PriorityInversion,
}

impl CeilingError {
    /// The class, as reports say it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Required => "ceilings required",
            Self::OutOfRange => "ceiling out of range",
            Self::PriorityInversion => "priority inversion",
        }
    }
}

impl fmt::Display for CeilingError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl core::error::Error for CeilingError {}

/// Checks explicit ceilings (any order) and their default, as a start must. The first fault in the order of the enum.
pub fn validate(listed: &[(i32, f64)], default: Option<f64>) -> Result<(), CeilingError> {
    if listed.is_empty() {
        return Err(CeilingError::Required);
    }
    let mut all = listed.iter().map(|(_, ceiling)| *ceiling).chain(default);
    if all.any(|ceiling| !(0.0..=1.0).contains(&ceiling)) {
        return Err(CeilingError::OutOfRange);
    }
    let inverted =
        |(p, c): &(i32, f64)| listed.iter().any(|(above, higher)| above > p && higher < c);
    if listed.iter().any(inverted) { Err(CeilingError::PriorityInversion) } else { Ok(()) }
}

/// Collects faults as (field, value and what is expected).
#[derive(Debug, Default)]
struct Faults(Vec<(&'static str, String)>);

impl Faults {
    fn must(&mut self, field: &'static str, value: f64, is_good: bool, expected: &str) {
        if !is_good {
            self.0.push((field, format!("{value}: must be {expected}")));
        }
    }

    fn list(&mut self, field: &'static str, listed: &[(i32, f64)], default: Option<f64>) {
        if let Err(error) = validate(listed, default) {
            self.0.push((field, format!("{error}")));
        }
    }

    fn curve(&mut self, curve: &Curve) {
        let Curve { min, max, shape, .. } = *curve;
        self.must("minCeiling", min, (0.0..1.0).contains(&min), "0 or more and below 1");
        self.must("maxCeiling", max, max > 0.0 && max <= 1.0, "above 0 and at most 1");
        self.must("minCeiling", min, min < max, "below maxCeiling");
        if let Shape::Sigmoid { steepness: k, midpoint } = shape {
            let is_good = k > 0.0 && k <= Shape::MAX_STEEPNESS;
            self.must("sigmoidSteepness", k, is_good, "above 0 and at most 700");
            let is_good = (0.0..=1.0).contains(&midpoint);
            self.must("sigmoidMidpoint", midpoint, is_good, "0 to 1");
        }
    }

    fn adaptive(&mut self, adaptive: &Adaptive) {
        let Adaptive { pressed, rest, target, full, recovery_rate: rate, .. } = adaptive;
        match pressed {
            Pressed::Curve(curve) => self.curve(curve),
            Pressed::Explicit { ceilings, default } => self.list("ceilings", ceilings, *default),
        }
        match rest {
            Rest::All(rest) => {
                let is_good = *rest > 0.0 && *rest <= 1.0;
                self.must("adaptive.restCeiling", *rest, is_good, "above 0 and at most 1");
            }
            Rest::Each(listed) => self.list("adaptive.restCeilings", listed, None),
        }
        let is_good = *target >= 0.0 && target < full;
        self.must("adaptive.target", *target, is_good, "0 or more and below full");
        let is_good = *full > 0.0 && *full <= Adaptive::MAX_FULL;
        self.must("adaptive.full", *full, is_good, "above 0 and at most 100");
        let is_good = (Adaptive::MIN_RATE..=Adaptive::MAX_RATE).contains(rate);
        self.must("adaptive.recoveryRate", *rate, is_good, "0.001 to 1000");
    }
}

/// Everything that is wrong with a holdback, by field.
pub fn faults(holdback: &Holdback) -> Vec<(&'static str, String)> {
    let mut faults = Faults::default();
    match holdback {
        Holdback::None | Holdback::SoftReflective | Holdback::Custom(_) => {}
        Holdback::Static { threshold } => {
            let is_good = *threshold > 0.0 && *threshold <= 1.0;
            faults.must("threshold", *threshold, is_good, "above 0 and at most 1");
        }
        Holdback::Curve(curve) => faults.curve(curve),
        Holdback::Explicit { ceilings, default } => faults.list("ceilings", ceilings, *default),
        Holdback::Adaptive(adaptive) => faults.adaptive(adaptive),
    }
    faults.0
}
