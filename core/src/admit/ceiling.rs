//! Ceilings (holdback): from which saturation on a band is gated.
//!
//! A band is gated iff saturation >= ceiling; that comparison is the only one. Ceilings never increase as
//! priority falls: the sweep repairs a buffer that does. Worked examples: the rows
//! `gate` and `holdback` of `core/tests/vectors/flow.json`.
#![forbid(unsafe_code)]

use core::fmt;

use arrayvec::ArrayVec;

use crate::types::policy::{Holdback, HoldbackDomain};
use crate::types::{BandMask, MAX_BANDS};

pub use super::saturation::limit;

/// Ceilings, parallel to the priorities, most urgent first.
pub type Ceilings = ArrayVec<f64, MAX_BANDS>;

/// Whether a band with this ceiling may not run at this saturation. 0 = never runs; equality gates.
#[inline]
pub fn gated(saturation: f64, ceiling: f64) -> bool {
    saturation >= ceiling
}

/// The bands that are not gated at `saturation`.
pub fn eligible(saturation: f64, ceilings: &[f64]) -> BandMask {
    let open = |(i, ceiling): (usize, &f64)| u64::from(!gated(saturation, *ceiling)) << i;
    ceilings.iter().take(MAX_BANDS).enumerate().map(open).sum()
}

/// Fills `out` with the effective ceilings of `priorities_desc` (most urgent first; those past the 64th are left out).
///
/// Returns how many the policy gave as NaN or outside 0..=1; those count as 1.0, and the caller logs them.
pub fn ceilings(holdback: &Holdback, priorities_desc: &[i32], out: &mut Ceilings) -> u32 {
    out.clear();
    let bands = &priorities_desc[..priorities_desc.len().min(MAX_BANDS)];
    match holdback {
        Holdback::None => out.extend(bands.iter().map(|_| 1.0)),
        Holdback::Linear { domain, min, max } => linear(*domain, *min, *max, bands, out),
        Holdback::Explicit { ceilings, default } => {
            out.extend(bands.iter().map(|p| explicit(ceilings, *default, *p)));
        }
    }
    let faulty = repair(out);
    sweep(out);
    faulty
}

/// A straight line from `max` at the top to `min` at the bottom; a lone band is not held back.
#[allow(
    clippy::float_arithmetic,
    clippy::cast_precision_loss,
    reason = "a ceiling is a saturation; positions and 33-bit spans are exact in a double"
)]
fn linear(domain: HoldbackDomain, min: f64, max: f64, bands: &[i32], out: &mut Ceilings) {
    let (Some(top), Some(bottom)) = (bands.first(), bands.last()) else { return };
    let (last, span) = (bands.len() - 1, f64::from(*top) - f64::from(*bottom));
    out.extend(bands.iter().enumerate().map(|(i, priority)| match domain {
        // The ends are given, not computed: rounding must not move them.
        HoldbackDomain::Rank if i == 0 => max,
        HoldbackDomain::Value if priority == top => max,
        HoldbackDomain::Rank if i == last => min,
        HoldbackDomain::Value if priority == bottom => min,
        HoldbackDomain::Rank => max - i as f64 * (max - min) / last as f64,
        HoldbackDomain::Value => {
            min + (f64::from(*priority) - f64::from(*bottom)) / span * (max - min)
        }
    }));
}

/// As listed, else the default, else the nearest listed at or below, else the lowest listed.
fn explicit(listed: &[(i32, f64)], default: Option<f64>, priority: i32) -> f64 {
    if let Some((_, ceiling)) = listed.iter().find(|(p, _)| *p == priority) {
        return *ceiling;
    }
    let below = || listed.iter().filter(|(p, _)| *p <= priority).max_by_key(|(p, _)| *p);
    let lowest = || listed.iter().min_by_key(|(p, _)| *p);
    default.unwrap_or_else(|| below().or_else(lowest).map_or(1.0, |(_, ceiling)| *ceiling))
}

/// Replaces NaN and values outside 0..=1 by 1.0: a faulty ceiling opens, it does not stop a band. Returns how many.
pub fn repair(ceilings: &mut [f64]) -> u32 {
    let mut faulty = 0;
    for ceiling in ceilings.iter_mut().filter(|c| !(0.0..=1.0).contains(*c)) {
        *ceiling = 1.0;
        faulty += 1;
    }
    faulty
}

/// Makes ceilings non-increasing as priority falls: raises, never lowers. No NaN: [`repair`] first.
pub fn sweep(ceilings: &mut [f64]) {
    let mut floor = 0.0_f64;
    for ceiling in ceilings.iter_mut().rev() {
        floor = floor.max(*ceiling);
        *ceiling = floor;
    }
}

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

#[cfg(test)]
#[allow(clippy::float_cmp, reason = "ceilings named by the tables come out as they went in")]
mod tests {
    use super::{CeilingError, Ceilings, ceilings, eligible, gated, validate};
    use crate::types::policy::{Holdback, HoldbackDomain};
    use alloc::vec::Vec;

    fn of(holdback: &Holdback, priorities: &[i32]) -> Vec<f64> {
        let mut out = Ceilings::new();
        ceilings(holdback, priorities, &mut out);
        out.to_vec()
    }

    fn linear(domain: HoldbackDomain, min: f64, max: f64) -> Holdback {
        Holdback::Linear { domain, min, max }
    }

    #[test]
    fn the_regions_of_three_bands_follow_the_closed_gate() {
        let ceilings = [1.0, 0.7, 0.3];
        for (saturation, open) in [(0.29, 0b111), (0.3, 0b011), (0.6, 0b011), (0.7, 0b001)] {
            assert_eq!(eligible(saturation, &ceilings), open, "{saturation}");
        }
        assert_eq!(eligible(0.8, &ceilings), 0b001);
        assert_eq!(eligible(1.0, &ceilings), 0);
        assert!(gated(0.0, 0.0), "a ceiling of 0 is never");
    }

    #[test]
    fn a_line_runs_by_rank_or_by_value_and_spares_a_lone_band() {
        let (rank, value) = (HoldbackDomain::Rank, HoldbackDomain::Value);
        assert_eq!(of(&linear(rank, 0.5, 1.0), &[100, 50, 10]), [1.0, 0.75, 0.5]);
        assert_eq!(of(&linear(rank, 0.3, 1.0), &[20, 10, 0]), [1.0, 0.65, 0.3]);
        assert_eq!(of(&linear(value, 0.5, 1.0), &[10, -5, -20]), [1.0, 0.75, 0.5]);
        assert_eq!(of(&linear(value, 0.5, 0.9), &[7, 7]), [0.9, 0.9]);
        assert_eq!(of(&linear(rank, 0.5, 0.9), &[10]), [0.9]);
        assert_eq!(of(&linear(value, 0.5, 0.9), &[10]), [0.9]);
        assert_eq!(of(&linear(value, 0.0, 1.0), &[i32::MAX, i32::MIN]), [1.0, 0.0]);
        assert!(of(&linear(rank, 0.5, 0.9), &[]).is_empty());
    }

    #[test]
    fn listed_ceilings_fall_back_to_the_default_or_the_nearest_below() {
        let listed = [(100, 0.95), (50, 0.7), (10, 0.3)].to_vec();
        let nearest = Holdback::Explicit { ceilings: listed.clone(), default: None };
        let bands = [100, 75, 50, 10, -5];
        assert_eq!(of(&nearest, &bands), [0.95, 0.7, 0.7, 0.3, 0.3]);
        let with_default = Holdback::Explicit { ceilings: listed, default: Some(0.5) };
        assert_eq!(of(&with_default, &bands), [0.95, 0.7, 0.7, 0.5, 0.5]);
        assert_eq!(of(&Holdback::None, &bands), [1.0; 5]);
    }

    #[test]
    fn a_faulty_ceiling_opens_and_an_inverted_one_is_lifted() {
        let listed = [(3, 0.5), (2, f64::NAN), (1, -0.1), (0, 0.3)].to_vec();
        let holdback = Holdback::Explicit { ceilings: listed, default: None };
        let mut out = Ceilings::new();
        assert_eq!(ceilings(&holdback, &[3, 2, 1, 0], &mut out), 2);
        assert_eq!(out[..], [1.0, 1.0, 1.0, 0.3]);
        let mut inverted = [0.5, 1.0, 0.3];
        super::sweep(&mut inverted);
        assert_eq!(inverted, [1.0, 1.0, 0.3]);
    }

    #[test]
    fn explicit_ceilings_are_checked_as_a_whole() {
        assert_eq!(validate(&[(0, 0.6), (100, 0.6)], Some(0.1)), Ok(()));
        assert_eq!(validate(&[], None), Err(CeilingError::Required));
        assert_eq!(validate(&[(0, 0.6), (100, 0.5)], None), Err(CeilingError::PriorityInversion));
        for wrong in [1.2, -0.1, f64::NAN] {
            assert_eq!(validate(&[(100, wrong)], None), Err(CeilingError::OutOfRange));
            assert_eq!(validate(&[(100, 1.0)], Some(wrong)), Err(CeilingError::OutOfRange));
        }
    }
}
