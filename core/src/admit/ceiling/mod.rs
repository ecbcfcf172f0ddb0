//! Ceilings (holdback): from which saturation on a band is gated.
//!
//! A band is gated iff saturation >= ceiling; that comparison is the only one. Ceilings never increase as
//! priority falls: the sweep repairs a buffer that does. Worked examples: the rows
//! `gate`, `holdback` and `soft-reflective` of `core/tests/vectors/flow.json`.
//!
//! - [`shapes`]: curves over the provisioned or the busy bands, and lists;
//! - [`adaptive`]: ceilings that follow a signal;
//! - [`reflective`]: ceilings that open for one decision in several;
//! - [`policy`]: whichever of them a pool has, one of the host's included.
#![forbid(unsafe_code)]

use arrayvec::ArrayVec;

use crate::types::policy::Holdback;
use crate::types::{BandMask, MAX_BANDS};

pub use super::saturation::limit;

pub mod adaptive;
pub mod policy;
pub mod reflective;
pub mod shapes;
mod validate;

use policy::CeilingPolicy;

pub use validate::{CeilingError, faults, validate};

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
/// Of ceilings that move it gives those of a calm pool: every band busy, no pressure, an empty pool. Returns how
/// many the policy gave as NaN or outside 0..=1; those count as 1.0, and the caller logs them.
pub fn ceilings(holdback: &Holdback, priorities_desc: &[i32], out: &mut Ceilings) -> u32 {
    let bands = &priorities_desc[..priorities_desc.len().min(MAX_BANDS)];
    let mut policy = CeilingPolicy::new(holdback, bands);
    policy.calm(bands, out)
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

#[cfg(all(test, not(loom)))]
pub(crate) mod tests;
