//! What the host reports of the backends behind a pool. Cold: every call takes a mutex and waits for the pool's lock
//! bit.
#![forbid(unsafe_code)]

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::fmt;

use super::Pool;
use crate::admit::detect::{Mark, Stages, Watch};
use crate::config::live::Reported;
use crate::error::Reason;
use crate::shard::reports::Reports;
use crate::types::extend::BackendSample;
use crate::types::settings::PoolSettings;

/// Where a pool stood when the host began to ask its backends.
#[derive(Clone, Copy, Debug)]
pub struct ReportMark {
    pool: u32,
    mark: Mark,
}

/// Why a report was not put in force; what was reported before stays.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ReportError {
    /// Neither the saturation of the pool nor a signal of its holdback is a detector.
    NoDetector,
    /// The mark is another pool's.
    ForeignMark,
    /// The pool is poisoned, or the process a child of the one that made it.
    Pool(Reason),
}

impl fmt::Display for ReportError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NoDetector => {
                "nothing in the pool reads backends: set its `saturation` to a detector"
            }
            Self::ForeignMark => "the mark was taken at another pool",
            Self::Pool(reason) => reason.as_str(),
        })
    }
}

impl core::error::Error for ReportError {}

impl Pool {
    /// Where the pool stands now: to be taken before the host asks its backends, so that what is dispatched while
    /// they answer counts on top of what they say. Waits for the pool's lock.
    ///
    /// # Errors
    ///
    /// [`ReportError`].
    pub fn begin_report(&self) -> Result<ReportMark, ReportError> {
        if self.is_forked() {
            return Err(ReportError::Pool(Reason::Forked));
        }
        let mark = self.shard().begin_report(self.core()).map_err(ReportError::Pool)?;
        let mark = mark.ok_or(ReportError::NoDetector)?;
        Ok(ReportMark { pool: self.id(), mark })
    }

    /// All backends of the pool as they are now, in place of those reported before; none at all is a full pool.
    /// Gates and mode follow from the next decision on, and those who wait are granted what it opens. What the pool
    /// dispatches afterwards is counted until the next report, and samples grow old by the engine's clock: without
    /// another report they become stale by themselves.
    ///
    /// Reports of several threads are taken one after the other; the last one stands, so one of them should report
    /// for all sources. Not for the hot path: waits for the pool's lock, allocates, and reads the samples up to
    /// [`MAX_STEPS`](crate::admit::detect::aging::MAX_STEPS) + 1 times.
    ///
    /// Returns what the detector reads, stage by stage, without what was dispatched since.
    ///
    /// # Errors
    ///
    /// [`ReportError`]; nothing changes.
    pub fn report_backends(&self, samples: &[BackendSample]) -> Result<Stages, ReportError> {
        let begun = self.begin_report()?;
        self.report_backends_since(begun, samples)
    }

    /// The same for samples that the host began to take at `begun`.
    ///
    /// # Errors
    ///
    /// [`ReportError`]; nothing changes.
    pub fn report_backends_since(
        &self,
        begun: ReportMark,
        samples: &[BackendSample],
    ) -> Result<Stages, ReportError> {
        if self.is_forked() {
            return Err(ReportError::Pool(Reason::Forked));
        }
        if begun.pool != self.id() {
            return Err(ReportError::ForeignMark);
        }
        // Held to the end, so that no reload comes between.
        let live = self.meta().live.lock();
        let watch = Watch::new(&live).ok_or(ReportError::NoDetector)?;
        let at_ns = self.now_ns();
        let (steps, stages) = watch.read(samples, at_ns);
        self.shard().report(self.core(), begun.mark, steps).map_err(ReportError::Pool)?;
        *self.meta().live.reported() = Some(Reported { samples: Vec::from(samples), at_ns });
        Ok(stages)
    }

    /// What gates and mode of the pool follow now: the gauge; the last report, as old as it is, and what was dispatched
    /// since; or running over slots. 1.0 is full. Waits for the pool's lock.
    ///
    /// # Errors
    ///
    /// [`Reason::Forked`], [`Reason::Poisoned`].
    pub fn saturation(&self) -> Result<f64, Reason> {
        if self.is_forked() {
            return Err(Reason::Forked);
        }
        self.shard().saturation(self.core())
    }

    /// The last report as other settings read it. The caller holds the settings in force.
    pub(super) fn watch_again(&self, settings: &PoolSettings) -> Option<Box<Reports>> {
        let watch = Watch::new(settings)?;
        let reported = self.meta().live.reported();
        Some(match &*reported {
            Some(Reported { samples, at_ns }) => {
                let steps = watch.read(samples, *at_ns).0;
                Reports::with_report(watch, steps)
            }
            None => Reports::new(watch),
        })
    }
}
