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
use crate::types::policy::Reading;

/// What the saturation is computed from.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Source {
    /// Running over slots.
    #[default]
    Running,
    /// A constant, until the next one.
    Gauge(f64),
    /// Something the caller counts and has turned each level into a count for.
    Counted {
        /// Saturation as last told.
        saturation: f64,
    },
}

impl Source {
    /// Whether the fast path may compare the running requests alone: nothing but their number moves it.
    pub fn is_slot_count(&self) -> bool {
        *self == Self::Running
    }

    /// Whether only a new value moves it.
    pub fn is_constant(&self) -> bool {
        matches!(self, Self::Gauge(_))
    }

    /// The saturation while so many run, as last told where the caller counts.
    pub fn saturation(&self, running: u32, slots: u32) -> f64 {
        match *self {
            Self::Running => saturation(running, slots),
            Self::Gauge(value) | Self::Counted { saturation: value } => value,
        }
    }
}

/// Each ceiling as the least count at which it gates.
#[derive(Debug)]
pub(super) struct Limits {
    /// In running requests.
    pub(super) few: [u32; MAX_BANDS],
    /// In what the caller counts; absent until it does.
    pub(super) many: Option<Box<[u64; MAX_BANDS]>>,
}

impl Limits {
    /// No band has one yet.
    pub(super) const NONE: Self = Self { few: [0; MAX_BANDS], many: None };

    /// For these ceilings (at most 64). What the caller counts stays as he told it.
    pub(super) fn fill(&mut self, source: &Source, ceilings: &[f64], slots: u32) {
        for (few, &ceiling) in self.few.iter_mut().zip(ceilings) {
            *few = match *source {
                Source::Running => limit(ceiling, slots),
                Source::Gauge(value) => never_unless(gated(value, ceiling)),
                Source::Counted { .. } => u32::MAX,
            };
        }
    }

    /// Room for the wide counts. Once there it stays: a gauge that comes and goes under LOCK must not allocate, nor
    /// forget what the caller counted.
    pub(super) fn make_many(&mut self) -> &mut [u64; MAX_BANDS] {
        self.many.get_or_insert_with(|| Box::new([0; MAX_BANDS]))
    }

    /// The wide counts.
    pub(super) fn fill_many(&mut self, ceilings: &[f64], count_of: impl Fn(f64) -> u64) {
        for (many, &ceiling) in self.make_many().iter_mut().zip(ceilings) {
            *many = count_of(ceiling);
        }
    }
}

fn never_unless(reached: bool) -> u32 {
    if reached { 0 } else { u32::MAX }
}

/// The WFQ thresholds as counts, like [`Limits`].
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ThresholdCounts {
    /// In running requests.
    pub(super) few: ThresholdSlots,
    /// Activation and deactivation in what the caller counts.
    pub(super) many: (u64, u64),
}

impl ThresholdCounts {
    /// For a source. What the caller counts stays as he told it.
    pub(super) fn fill(&mut self, source: &Source, thresholds: &Thresholds, slots: u32) {
        let reading = |saturation: f64| thresholds.reading(saturation);
        self.few = match *source {
            Source::Running => thresholds.limits(slots),
            Source::Gauge(value) => ThresholdSlots {
                activation: never_unless(reading(value).activates),
                deactivation: never_unless(reading(value).stays_active),
            },
            Source::Counted { .. } => {
                ThresholdSlots { activation: u32::MAX, deactivation: u32::MAX }
            }
        };
    }

    /// The sides these counts lie on; `many` only where the caller counts.
    pub(super) fn reading(&self, few: u32, many: Option<u64>) -> Reading {
        let (activation, deactivation) = self.many;
        many.map_or_else(
            || self.few.reading(few),
            |many| Reading { activates: many >= activation, stays_active: many >= deactivation },
        )
    }
}
