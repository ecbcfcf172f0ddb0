//! The utilisation detector: queue depth and KV cache of the backends over their thresholds.
//!
//! The ratio of a backend is `max(waiting / queueDepthThreshold, kv / kvCacheUtilThreshold)`; the pool reads their mean
//! or their maximum, not cut at 1. Metrics that are absent, no number, or strictly older than `metricsStalenessThreshold`
//! are stale:
//!
//! | policy | some stale | all stale |
//! | --- | --- | --- |
//! | saturated | each counts 1.0 | 1.0 |
//! | ignore | left out | 0.0 |
//! | probe | left out | 1.0, and [`probe`](Sampled::probe) is set |
//!
//! Under `probe` a backend of which nothing is known neither opens nor closes the pool while another is known. If none
//! is, an idle pool lets one request through and no second while it runs: a backend that reports only when it is used is
//! noticed again, and one that is really full gets one request too many. A host that stops reporting altogether makes
//! every sample stale in time (see [`aging`](super::aging)).
//!
//! **One dispatch** raises `waiting` of one backend by 1 at most, so its ratio by `1 / queueDepthThreshold` and the pool
//! by that over n (mean) or by all of it (max). n are the backends that counted; if all are left out, all of them, so
//! that a burst is bounded even while nothing is known. How much of a KV cache a request will fill is not known here;
//! where caches fill before queues do, the bound is the queue's all the same.
//!
//! No backend at all is full (1.0).

use core::time::Duration;

use super::{Ratios, spread};
use crate::types::extend::{BackendSample, Sampled, SaturationDetector};
use crate::types::saturation::{StalenessPolicy, UtilizationParams};

/// See the [module](self).
#[derive(Clone, Debug)]
pub struct Utilization {
    params: UtilizationParams,
}

impl Utilization {
    /// With these thresholds; a depth of 0 counts as 1.
    pub fn new(params: UtilizationParams) -> Self {
        Self { params }
    }

    fn depth(&self) -> f64 {
        f64::from(self.params.queue_depth.max(1))
    }

    fn is_fresh(&self, sample: &BackendSample) -> bool {
        let young = |age_ns: u64| u128::from(age_ns) <= self.params.stale_after.as_nanos();
        sample.kv.is_finite() && sample.age_ns.is_some_and(young)
    }

    fn ratio(&self, sample: &BackendSample) -> f64 {
        let kv = sample.kv.max(0.0) / self.params.kv;
        (f64::from(sample.waiting) / self.depth()).max(kv)
    }

    /// Whether the backend may still be chosen: fresh, and below both thresholds with the headroom. Who finds none
    /// that may chooses among all.
    pub fn has_room(&self, sample: &BackendSample) -> bool {
        let reach = 1.0 + self.params.headroom;
        self.is_fresh(sample)
            && f64::from(sample.waiting) < self.depth() * reach
            && sample.kv < self.params.kv * reach
    }
}

impl SaturationDetector for Utilization {
    fn read(&self, samples: &[BackendSample]) -> Sampled {
        let policy = self.params.staleness;
        let (mut ratios, mut stale) = (Ratios::default(), 0_u32);
        for sample in samples {
            if self.is_fresh(sample) {
                ratios.add(self.ratio(sample));
            } else {
                stale = stale.saturating_add(1);
                if policy == StalenessPolicy::Saturated {
                    ratios.add(1.0);
                }
            }
        }
        let is_known = ratios.count > 0;
        let is_blind = !is_known && stale > 0;
        let saturation = if is_known {
            ratios.read(self.params.aggregate)
        } else if is_blind && policy == StalenessPolicy::Ignore {
            0.0
        } else {
            1.0
        };
        let counted = if is_known { ratios.count } else { stale };
        Sampled {
            saturation,
            per_dispatch: spread(1.0 / self.depth(), counted, self.params.aggregate),
            stale,
            probe: is_blind && policy == StalenessPolicy::Probe,
            ..Sampled::default()
        }
    }

    fn stale_after(&self) -> Option<Duration> {
        Some(self.params.stale_after)
    }
}
