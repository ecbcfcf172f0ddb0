//! Detectors: what the host knows about its backends, as one saturation.
//!
//! - [`concurrency`]: requests or tokens in flight over what fills a backend;
//! - [`utilization`]: queue depth and KV cache over their thresholds, with rules for stale metrics;
//! - [`stages`]: each for prefill and decode apart, the higher one counts;
//! - [`since`]: what was dispatched since the sample, so that a burst is stopped by its own count.
//!
//! A detector runs on the thread that reports the samples. What it answers reaches the gates as integers; nothing
//! here is called for a pool without a detector. Worked examples: the rows `saturation` of
//! `core/tests/vectors/flow.json`.
#![forbid(unsafe_code)]
#![allow(
    clippy::float_arithmetic,
    reason = "a saturation is a ratio; it becomes integers in `since`, before anything is decided"
)]

use alloc::boxed::Box;

use crate::types::extend::{BackendSample, Sampled, SaturationDetector};
use crate::types::saturation::{Aggregate, SaturationSource};

pub mod concurrency;
pub mod since;
pub mod stages;
pub mod utilization;
mod validate;

#[cfg(all(test, not(loom)))]
mod tests;

pub use concurrency::Concurrency;
pub use since::{Mark, SinceSample};
pub use stages::{Stages, role_of};
pub use utilization::Utilization;
pub use validate::faults;

/// The detector of a pool.
#[derive(Debug)]
pub enum Detector {
    /// Requests or tokens in flight.
    Concurrency(Concurrency),
    /// Queue depth and KV cache.
    Utilization(Utilization),
    /// One the host registered.
    Custom(Box<dyn SaturationDetector>),
}

impl Detector {
    /// The detector `source` names; `None` if the saturation is not detected but counted or set.
    pub fn new(source: &SaturationSource) -> Option<Self> {
        match source {
            SaturationSource::Slots | SaturationSource::Gauge => None,
            SaturationSource::Concurrency(params) => {
                Some(Self::Concurrency(Concurrency::new(params.clone())))
            }
            SaturationSource::Utilization(params) => {
                Some(Self::Utilization(Utilization::new(params.clone())))
            }
            SaturationSource::Custom(custom) => Some(Self::Custom(custom.make())),
        }
    }

    /// Whether a backend may still be chosen for one more request, with the detector's headroom. A custom
    /// detector has no say: yes.
    pub fn has_room(&self, sample: &BackendSample) -> bool {
        match self {
            Self::Concurrency(detector) => detector.has_room(sample),
            Self::Utilization(detector) => detector.has_room(sample),
            Self::Custom(_) => true,
        }
    }
}

impl SaturationDetector for Detector {
    fn read(&self, samples: &[BackendSample]) -> Sampled {
        match self {
            Self::Concurrency(detector) => detector.read(samples),
            Self::Utilization(detector) => detector.read(samples),
            Self::Custom(detector) => detector.read(samples),
        }
    }
}

/// What a detector said, made usable, and whether it was not: a field that is no number or negative counts as 1.0,
/// so a faulty detector closes the pool and a faulty step ends the burst.
pub fn checked(sampled: Sampled) -> (Sampled, bool) {
    let mut faulty = false;
    let mut check = |value: f64| {
        let is_good = value >= 0.0;
        faulty |= !is_good;
        if is_good { value } else { 1.0 }
    };
    let checked = Sampled {
        saturation: check(sampled.saturation),
        per_dispatch: check(sampled.per_dispatch),
        per_token: check(sampled.per_token),
        ..sampled
    };
    (checked, faulty)
}

/// The ratios of some backends as one.
#[derive(Clone, Copy, Debug, Default)]
struct Ratios {
    sum: f64,
    max: f64,
    count: u32,
}

impl Ratios {
    fn add(&mut self, ratio: f64) {
        self.sum += ratio;
        self.max = self.max.max(ratio);
        self.count = self.count.saturating_add(1);
    }

    /// 0.0 without a backend.
    fn read(self, aggregate: Aggregate) -> f64 {
        match aggregate {
            Aggregate::Mean if self.count == 0 => 0.0,
            Aggregate::Mean => self.sum / f64::from(self.count),
            Aggregate::Max => self.max,
        }
    }
}

/// What a rise of one backend's ratio by `step` does to the aggregate of `count` backends at most: a mean rises by its
/// share of it, a maximum by all of it.
fn spread(step: f64, count: u32, aggregate: Aggregate) -> f64 {
    match aggregate {
        Aggregate::Mean => step / f64::from(count.max(1)),
        Aggregate::Max => step,
    }
}
