//! What the configuration says about the policies, in the integers they compute with.

use alloc::vec::Vec;

use super::custom::{CustomBandSelection, CustomFairness, CustomOrder};

pub use super::holdback::{
    ActiveBands, Adaptive, Curve, Holdback, HoldbackDomain, Pressed, Rest, Shape, Signal,
};

/// A share in 1/10,000: how ratios are kept, so that no float decides who is next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ratio(pub u32);

impl Ratio {
    /// Parts a whole has.
    pub const WHOLE: u32 = 10_000;

    /// Quantises a ratio in 0..=1 to 1/10,000, a positive one to at least 1: it must not become "leftovers only".
    ///
    /// `None` for NaN or a value outside 0..=1.
    #[allow(
        clippy::float_arithmetic,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "configuration: the range is checked before, and no decision is made here"
    )]
    pub fn from_f64(ratio: f64) -> Option<Self> {
        if !(0.0..=1.0).contains(&ratio) {
            return None;
        }
        let parts = (ratio * f64::from(Self::WHOLE)).round() as u32;
        Some(Self(if ratio > 0.0 { parts.max(1) } else { 0 }))
    }
}

/// How the weights of the bands are made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Distribution {
    /// `priority - anchor + 1`; without an anchor the lowest priority ever provisioned.
    Proportional {
        /// The configured anchor, if any.
        anchor: Option<i32>,
    },
    /// N for the top band down to 1.
    Linear,
    /// Listed per priority.
    Explicit {
        /// Ratio of each listed priority; 0 = leftovers only.
        ratios: Vec<(i32, Ratio)>,
        /// Ratio of a band that is not listed; absent: the smallest positive one.
        default_ratio: Option<Ratio>,
    },
}

/// Which weighted schedule runs while WFQ is active.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Schedule {
    /// Integer credits, highest priority first within a round.
    PriorityFirst {
        /// Longest round in dispatches; absent: the sum of the weights.
        max_fairness_window: Option<u32>,
    },
    /// Integer virtual time: the band that is furthest behind first.
    Interleaved,
}

/// Everything `cross-band-fairness-policy` computes with.
#[derive(Clone, Debug, PartialEq)]
pub struct WfqParams {
    /// Saturation from which the weights rule, 0 <= x < 1.
    pub activation: f64,
    /// Saturation below which strict order returns, 0 <= x <= activation.
    pub deactivation: f64,
    /// How long credits and virtual times survive a deactivation, in nanoseconds; 0 = not at all.
    pub retention_ns: u64,
    /// Credits or virtual time.
    pub schedule: Schedule,
    /// Where the weights come from.
    pub distribution: Distribution,
}

/// Which order over the bands a pool uses.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum BandSelection {
    /// Highest priority first.
    #[default]
    Strict,
    /// Weighted fair queuing above an activation threshold.
    Wfq(WfqParams),
    /// The host's own.
    Custom(CustomBandSelection),
}

/// A saturation as the band policies need it: its side of the two thresholds, so that `select` sees no float.
///
/// `activates` implies `stays_active`, because the deactivation threshold is never the higher one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reading {
    /// The saturation is at or above the activation threshold.
    pub activates: bool,
    /// The saturation is at or above the deactivation threshold.
    pub stays_active: bool,
}

/// Which flow of a band is next.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub enum Fairness {
    /// The flow whose first request comes first under the band's order.
    #[default]
    GlobalStrict,
    /// Every flow with waiters in turn, one request each.
    RoundRobin,
    /// The host's own.
    Custom(CustomFairness),
}

/// Which request of a flow is next.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub enum Order {
    /// First come, first served.
    #[default]
    Fcfs,
    /// The nearest deadline.
    Edf,
    /// The nearest time its first token was promised for.
    SloDeadline,
    /// The host's own.
    Custom(CustomOrder),
}
