//! Saturation of a pool that counts slots, and the two thresholds of the weighted mode.
//!
//! Saturation is running / slots, as a double; every limit in slots is derived from that very division, so
//! that the integer path and the gate never disagree. Worked examples: the rows
//! `gate` and `toggling` of `core/tests/vectors/flow.json`.
#![forbid(unsafe_code)]

use crate::types::policy::{Reading, WfqParams};

/// Running over slots. A pool without slots is saturated: 1.0.
#[inline]
#[allow(clippy::float_arithmetic, reason = "this division is the definition of the gate's input")]
pub fn saturation(running: u32, slots: u32) -> f64 {
    if slots == 0 { 1.0 } else { f64::from(running) / f64::from(slots) }
}

/// The least count with `saturation(count, slots) >= level`, at most `slots`.
///
/// Levels at or below 0 give 0; levels above 1 and NaN count as 1. A pool without slots gives 0: always reached.
#[allow(
    clippy::float_arithmetic,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the product is only a first guess; the comparison of the gate corrects it"
)]
pub fn limit(level: f64, slots: u32) -> u32 {
    let level = if level.is_nan() { 1.0 } else { level.clamp(0.0, 1.0) };
    let mut count = ((level * f64::from(slots)) as u32).min(slots);
    while count > 0 && saturation(count - 1, slots) >= level {
        count -= 1;
    }
    while count < slots && saturation(count, slots) < level {
        count += 1;
    }
    count
}

/// The saturations between which the weighted mode begins and ends; both in 0..1, `deactivation <= activation`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Thresholds {
    /// At or above: weighted.
    pub activation: f64,
    /// Below: strict again.
    pub deactivation: f64,
}

impl Thresholds {
    /// The thresholds of a weighted policy.
    pub fn of(params: &WfqParams) -> Self {
        Self { activation: params.activation, deactivation: params.deactivation }
    }

    /// The sides a saturation lies on. NaN reads as below both: strict.
    #[inline]
    pub fn reading(&self, saturation: f64) -> Reading {
        let activates = saturation >= self.activation;
        // An inverted pair of thresholds must not deactivate in the moment it activates.
        Reading { activates, stays_active: activates || saturation >= self.deactivation }
    }

    /// The same in slots of a pool, for readings without a float.
    pub fn limits(&self, slots: u32) -> ThresholdSlots {
        ThresholdSlots {
            activation: limit(self.activation, slots),
            deactivation: limit(self.deactivation.min(self.activation), slots),
        }
    }
}

/// [`Thresholds`] as counts of running requests. The mode is read with the request about to run included.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ThresholdSlots {
    /// Weighted from this count on.
    pub activation: u32,
    /// Strict below this count.
    pub deactivation: u32,
}

impl ThresholdSlots {
    /// The sides `running` lies on: the same answer as [`Thresholds::reading`] of `running / slots`.
    #[inline]
    pub fn reading(self, running: u32) -> Reading {
        Reading {
            activates: running >= self.activation,
            stays_active: running >= self.deactivation,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Thresholds, limit, saturation};

    #[test]
    fn limits_are_exact_where_the_float_product_is_not() {
        assert_eq!(limit(0.55, 100), 55);
        assert_eq!(limit(0.07, 100), 7);
        assert_eq!(limit(0.9, 100), 90);
        assert_eq!((limit(0.0, 8), limit(1.0, 8), limit(0.3, 8)), (0, 8, 3));
        assert_eq!((limit(-1.0, 8), limit(2.0, 8), limit(f64::NAN, 8)), (0, 8, 8));
        assert_eq!((limit(0.5, 0), limit(1.0, 0)), (0, 0));
    }

    #[test]
    fn the_limit_is_the_least_count_the_gate_calls_reached() {
        for slots in [1, 3, 7, 8, 100, 997, 1 << 20] {
            for step in 0..=1000 {
                let level = saturation(step, 1000);
                let count = limit(level, slots);
                assert!(saturation(count, slots) >= level);
                assert!(count == 0 || saturation(count - 1, slots) < level, "{level} {slots}");
            }
        }
    }

    #[test]
    fn slot_counts_read_as_the_saturation_does() {
        let thresholds = Thresholds { activation: 0.55, deactivation: 0.07 };
        for slots in [1, 5, 20, 100, 333] {
            let limits = thresholds.limits(slots);
            for running in 0..=slots + 2 {
                let exact = thresholds.reading(saturation(running, slots));
                assert_eq!(limits.reading(running), exact, "{running} of {slots}");
            }
        }
        assert!(Thresholds { activation: 0.0, deactivation: 0.0 }.reading(0.0).activates);
        assert!(!thresholds.reading(f64::NAN).stays_active);
    }
}
