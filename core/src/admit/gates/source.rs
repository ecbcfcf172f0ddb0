//! Where a pool's saturation comes from, and each ceiling as a count of what moves it.
//!
//! A limit is the least count at which the saturation reaches the ceiling, found with the very comparison the gate
//! makes; below a saturation that cannot be reached it is "never". So the integer path and the gate never
//! disagree, whatever rounds.
#![forbid(unsafe_code)]

use alloc::boxed::Box;

use super::super::ceiling::gated;
use super::super::saturation::{ThresholdSlots, Thresholds, limit, saturation};
use crate::types::MAX_BANDS;
use crate::types::extend::Sampled;
use crate::types::policy::Reading;

/// Most tokens a source may name: counts up to here are exact in a double.
pub const MAX_TOKENS: u64 = 1 << 53;

/// What the saturation is computed from.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Source {
    /// Running over slots.
    #[default]
    Running,
    /// A constant, until the next one.
    Gauge(f64),
    /// A sample of the backends, and what each dispatch since adds to it.
    Stepped {
        /// Saturation of the sample.
        base: f64,
        /// Added per dispatch, 0 and up.
        per_dispatch: f64,
    },
    /// Running over a number of requests that is not the number of slots.
    Requests {
        /// Requests that mean 1.0; 0: always saturated.
        max: u32,
    },
    /// Tokens in flight over a number of tokens.
    Tokens {
        /// Tokens that mean 1.0, at most [`MAX_TOKENS`]; 0: always saturated.
        max: u64,
    },
    /// The higher of both.
    Hybrid {
        /// Requests that mean 1.0.
        requests: u32,
        /// Tokens that mean 1.0.
        tokens: u64,
    },
    /// Something the caller counts and has turned each level into a count for.
    Counted {
        /// Saturation as last told.
        saturation: f64,
    },
}

impl Source {
    /// A sample; NaN counts as 1.0, a step that is none as 0.
    pub fn sampled(sampled: Sampled) -> Self {
        let base = if sampled.saturation.is_nan() { 1.0 } else { sampled.saturation };
        let is_step = sampled.per_dispatch > 0.0 && sampled.per_dispatch.is_finite();
        let per_dispatch = if is_step { sampled.per_dispatch } else { 0.0 };
        Self::Stepped { base, per_dispatch }
    }

    /// Whether the fast path may compare the running requests alone: nothing but their number moves it.
    pub fn is_slot_count(&self) -> bool {
        matches!(self, Self::Running | Self::Requests { .. })
    }

    /// Whether the wide count moves it: tokens, or what the caller counts.
    pub(super) fn counts_many(&self) -> bool {
        matches!(self, Self::Tokens { .. } | Self::Hybrid { .. } | Self::Counted { .. })
    }

    /// Whether the number of running requests moves it.
    pub(super) fn counts_running(&self) -> bool {
        matches!(self, Self::Running | Self::Requests { .. } | Self::Hybrid { .. })
    }

    /// Whether only a new value moves it.
    pub fn is_constant(&self) -> bool {
        match self {
            Self::Gauge(_) => true,
            Self::Stepped { per_dispatch, .. } => *per_dispatch <= 0.0,
            _ => false,
        }
    }

    /// The saturation at these counts.
    pub fn saturation(&self, counts: &Counts) -> f64 {
        match *self {
            Self::Running => saturation(counts.running, counts.slots),
            Self::Gauge(value) | Self::Counted { saturation: value } => value,
            Self::Stepped { base, per_dispatch } => stepped(base, per_dispatch, counts.dispatched),
            Self::Requests { max } => saturation(counts.running, max),
            Self::Tokens { max } => of_tokens(counts.tokens, max),
            Self::Hybrid { requests, tokens } => {
                saturation(counts.running, requests).max(of_tokens(counts.tokens, tokens))
            }
        }
    }
}

/// What moves a saturation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Requests running, before the dispatch that is decided on.
    pub running: u32,
    /// Slots of the pool.
    pub slots: u32,
    /// Dispatches since the last sample.
    pub dispatched: u32,
    /// Tokens in flight.
    pub tokens: u64,
}

#[allow(clippy::float_arithmetic, reason = "the definition of the gate's input")]
fn stepped(base: f64, per_dispatch: f64, dispatched: u32) -> f64 {
    base + per_dispatch * f64::from(dispatched)
}

/// Tokens over tokens. A pool that may hold none is saturated: 1.0.
#[allow(
    clippy::float_arithmetic,
    clippy::cast_precision_loss,
    reason = "the definition of the gate's input; tokens are exact up to 2^53"
)]
fn of_tokens(tokens: u64, max: u64) -> f64 {
    if max == 0 { 1.0 } else { tokens as f64 / max as f64 }
}

/// The least count up to `never` for which `reached` holds, which must not turn false again; `never` if none.
fn least(never: u64, reached: impl Fn(u64) -> bool) -> u64 {
    let (mut low, mut high) = (0, never);
    while low < high {
        let middle = low + (high - low) / 2;
        if reached(middle) { high = middle } else { low = middle + 1 }
    }
    low
}

/// Each ceiling as the least count at which it gates.
#[derive(Debug)]
pub(super) struct Limits {
    /// In running requests, or in dispatches since the sample.
    pub(super) few: [u32; MAX_BANDS],
    /// In tokens, or in what the caller counts; absent until a source needs it.
    pub(super) many: Option<Box<[u64; MAX_BANDS]>>,
}

impl Limits {
    /// No band has one yet.
    pub(super) const NONE: Self = Self { few: [0; MAX_BANDS], many: None };

    /// For these ceilings (at most 64). Allocates once, if the source counts tokens.
    pub(super) fn fill(&mut self, source: &Source, ceilings: &[f64], slots: u32) {
        for (few, &ceiling) in self.few.iter_mut().zip(ceilings) {
            *few = match *source {
                Source::Running => limit(ceiling, slots),
                Source::Requests { max } | Source::Hybrid { requests: max, .. } => {
                    limit(ceiling, max)
                }
                Source::Gauge(value) => never_unless(gated(value, ceiling)),
                Source::Stepped { base, per_dispatch } => {
                    dispatches(base, per_dispatch, |saturation| gated(saturation, ceiling))
                }
                Source::Tokens { .. } | Source::Counted { .. } => u32::MAX,
            };
        }
        if let Source::Tokens { max } | Source::Hybrid { tokens: max, .. } = *source {
            self.fill_many(ceilings, |ceiling| {
                least(MAX_TOKENS, |tokens| gated(of_tokens(tokens, max), ceiling))
            });
        }
    }

    /// The wide counts. Once there they stay: a gauge that comes and goes under LOCK must not allocate, nor
    /// forget what the caller counted.
    pub(super) fn fill_many(&mut self, ceilings: &[f64], count_of: impl Fn(f64) -> u64) {
        let many = self.many.get_or_insert_with(|| Box::new([0; MAX_BANDS]));
        for (many, &ceiling) in many.iter_mut().zip(ceilings) {
            *many = count_of(ceiling);
        }
    }
}

fn never_unless(reached: bool) -> u32 {
    if reached { 0 } else { u32::MAX }
}

fn dispatches(base: f64, per_dispatch: f64, reached: impl Fn(f64) -> bool) -> u32 {
    let after = |count: u64| stepped(base, per_dispatch, u32::try_from(count).unwrap_or(u32::MAX));
    let count = least(u64::from(u32::MAX), |count| reached(after(count)));
    u32::try_from(count).unwrap_or(u32::MAX)
}

/// The WFQ thresholds as counts, like [`Limits`].
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ThresholdCounts {
    /// In running requests, or in dispatches since the sample.
    pub(super) few: ThresholdSlots,
    /// Activation and deactivation in tokens, or in what the caller counts.
    pub(super) many: (u64, u64),
}

impl ThresholdCounts {
    /// For a source. What the caller counts stays as he told it.
    pub(super) fn fill(&mut self, source: &Source, thresholds: &Thresholds, slots: u32) {
        let reading = |saturation: f64| thresholds.reading(saturation);
        self.few = match *source {
            Source::Running => thresholds.limits(slots),
            Source::Requests { max } | Source::Hybrid { requests: max, .. } => {
                thresholds.limits(max)
            }
            Source::Gauge(value) => ThresholdSlots {
                activation: never_unless(reading(value).activates),
                deactivation: never_unless(reading(value).stays_active),
            },
            Source::Stepped { base, per_dispatch } => ThresholdSlots {
                activation: dispatches(base, per_dispatch, |s| reading(s).activates),
                deactivation: dispatches(base, per_dispatch, |s| reading(s).stays_active),
            },
            Source::Tokens { .. } | Source::Counted { .. } => {
                ThresholdSlots { activation: u32::MAX, deactivation: u32::MAX }
            }
        };
        if let Source::Tokens { max } | Source::Hybrid { tokens: max, .. } = *source {
            let of = |tokens| reading(of_tokens(tokens, max));
            let activation = least(MAX_TOKENS, |tokens| of(tokens).activates);
            self.many = (activation, least(MAX_TOKENS, |tokens| of(tokens).stays_active));
        }
    }

    /// The sides these counts lie on; `many` only where the source has such a count.
    pub(super) fn reading(&self, few: u32, many: Option<u64>) -> Reading {
        let (reading, (activation, deactivation)) = (self.few.reading(few), self.many);
        let reached = |level| many.is_some_and(|many| many >= level);
        Reading {
            activates: reading.activates || reached(activation),
            stays_active: reading.stays_active || reached(deactivation),
        }
    }
}
