//! Soft-reflective ceilings: degrade lower bands instead of cutting them off.
//!
//! With N bands, band i (0 the most urgent, never held back) is open while `S < 1 - i S / (N - 1)`. Above that and
//! below 1 it opens for one decision in `period = max(1, round(S / (1 - S + 1e-9)))`, all such bands together; from
//! 1 on it is closed. Only decisions at `0.5 <= S < 1` count. No parameters. Worked examples: the rows
//! `soft-reflective` of `core/tests/vectors/flow.json`.
//!
//! The share is one of decisions, not of time, and an open decision still goes to the top band if that has
//! somebody: where the shares must be kept, the weighted schedules keep them. Beside those it is refused.
#![forbid(unsafe_code)]

use crate::types::extend::UsageLimit;

/// Keeps the period finite just below saturation 1.
const EPSILON: f64 = 1e-9;
/// From here on decisions alternate.
const ALTERNATES_FROM: f64 = 0.5;

/// The state of the policy: decisions counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SoftReflective {
    tick: u64,
}

impl SoftReflective {
    /// Decisions counted so far.
    pub fn tick(&self) -> u64 {
        self.tick
    }

    /// Whether the answer may differ at the next decision at the same saturation.
    pub fn alternates(saturation: f64) -> bool {
        (ALTERNATES_FROM..1.0).contains(&saturation)
    }
}

/// One decision in this many opens the bands held back at `saturation` (in the range that alternates).
#[allow(
    clippy::float_arithmetic,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "at least 1 and at most 1e9, by the epsilon"
)]
pub fn period(saturation: f64) -> u64 {
    ((saturation / (1.0 - saturation + EPSILON)).round() as u64).max(1)
}

/// Below this saturation the band at `index` of `count` (2 and up) is never closed.
#[allow(clippy::float_arithmetic, reason = "a ceiling is a saturation")]
pub fn reflection(saturation: f64, index: u32, count: u32) -> f64 {
    1.0 - f64::from(index) * saturation / f64::from(count - 1)
}

impl UsageLimit for SoftReflective {
    fn ceilings(&mut self, saturation: f64, priorities: &[i32], out: &mut [f64]) {
        let count = u32::try_from(priorities.len()).unwrap_or(u32::MAX);
        if count < 2 {
            out.fill(1.0);
            return;
        }
        let mut open = false;
        if Self::alternates(saturation) {
            self.tick = self.tick.wrapping_add(1);
            open = self.tick.is_multiple_of(period(saturation));
        }
        for (index, ceiling) in (0..count).zip(out) {
            let is_free = index == 0 || saturation < reflection(saturation, index, count);
            *ceiling = if is_free || open { 1.0 } else { 0.0 };
        }
    }
}
