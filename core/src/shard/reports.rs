//! What a pool follows of its backends: the last report, as time goes by, and what was dispatched since.
//!
//! A pool with a detector decides every call in a general turn. Before each decision its gates are told what the own
//! dispatches since the report add; when the clock reaches a step of the report, they are made anew from that one.

use alloc::boxed::Box;

use super::Shard;
use super::pool::{PoolCore, PoolState};
use crate::admit::detect::{Load, Mark, SinceSample, Step, Watch};
use crate::error::Reason;

/// Plain memory under LOCK; there while something in the pool reads backends.
#[derive(Debug)]
pub struct Reports {
    watch: Watch,
    since: SinceSample,
    /// Where the pool stood when the report in force was begun.
    begun: Mark,
    /// Readings of that report; none before the first.
    steps: Box<[Step]>,
    /// The first that is not in force yet.
    next: usize,
}

impl Reports {
    /// For a pool of which nothing is known yet.
    pub fn new(watch: Watch) -> Box<Self> {
        let since = SinceSample::default();
        Box::new(Self { watch, since, begun: Mark::default(), steps: Box::default(), next: 0 })
    }

    /// The same with the readings of a report.
    pub fn with_report(watch: Watch, steps: Box<[Step]>) -> Box<Self> {
        let mut reports = Self::new(watch);
        reports.steps = steps;
        reports
    }

    /// The step in force.
    fn step(&self) -> Option<Step> {
        self.steps.get(self.next.checked_sub(1)?).copied()
    }

    /// When another step comes into force; `None`: none is left.
    fn next_ns(&self) -> Option<u64> {
        self.steps.get(self.next).map(|step| step.from_ns)
    }
}

impl PoolState {
    /// What runs, as far as it is known: each of the tokens only where all who run are tracked.
    fn load(&self, running: u32) -> Load {
        let is_known = self.tracking.running == running;
        Load { running, tokens: is_known.then_some(self.tracking.tokens) }
    }

    /// A request was dispatched.
    #[inline(always)]
    pub(super) fn count_dispatch(&mut self, cost: u32) {
        if let Some(reports) = &mut self.reports {
            reports.since.dispatched(cost);
        }
    }

    /// Before a decision: the step of the report that `now` has reached, and what was added since.
    pub(super) fn follow_reports(&mut self, running: u32, now: impl FnOnce() -> u64) {
        let Some(reports) = &mut self.reports else { return };
        if let Some(next_ns) = reports.next_ns() {
            let now_ns = now();
            if next_ns <= now_ns {
                self.step_to(now_ns);
            }
        }
        let load = self.load(running);
        if let Some(Reports { since, .. }) = self.reports.as_deref() {
            self.gates.set_count(since.added(load), || since.saturation(load));
        }
    }

    #[cold]
    fn step_to(&mut self, now_ns: u64) {
        let Some(reports) = self.reports.as_deref_mut() else { return };
        let due = reports.steps[reports.next..].iter().take_while(|step| step.from_ns <= now_ns);
        reports.next += due.count();
        self.apply_step();
    }

    /// Another step is in force.
    fn apply_step(&mut self) {
        if let Some(reports) = self.reports.as_deref_mut()
            && let Some(step) = reports.step()
        {
            reports.since.sample(step.sampled, Some(reports.begun));
        }
        self.tell_gates();
    }

    /// Makes the gates anew from the step in force.
    fn tell_gates(&mut self) {
        let step = self.reports.as_deref().and_then(Reports::step);
        self.detector = step.and_then(|step| step.signal);
        if let (Some(reports), Some(step)) = (self.reports.as_deref(), step)
            && reports.watch.is_source()
        {
            self.gates.set_counted(step.sampled.saturation, |level| reports.since.room(level));
        }
    }

    /// When the report in force reads as something else.
    pub(super) fn report_changes_ns(&self) -> u64 {
        self.reports.as_ref().and_then(|reports| reports.next_ns()).unwrap_or(u64::MAX)
    }

    /// After a reload, whose gates know of no report: `next` takes over, or what was watched goes on if it is watched
    /// still. Whatever is not needed any more is left in `next`.
    pub(super) fn adopt_reports(&mut self, next: &mut Option<Box<Reports>>) {
        let is_same = match (&self.reports, &*next) {
            (Some(old), Some(new)) => old.watch == new.watch,
            _ => false,
        };
        if is_same {
            // Of other gates: all that was counted stays.
            self.tell_gates();
        } else {
            if let (Some(old), Some(new)) = (&self.reports, next.as_mut()) {
                new.since.inherit(&old.since);
                new.begun = old.begun;
                new.next = new.steps.len().min(1);
            }
            core::mem::swap(&mut self.reports, next);
            self.apply_step();
        }
    }
}

impl Shard {
    /// Where the pool stands, for a report that begins now; `None`: nothing there reads backends. Waits for LOCK.
    ///
    /// # Errors
    ///
    /// [`Reason::Poisoned`].
    pub(crate) fn begin_report(&self, pool: &PoolCore) -> Result<Option<Mark>, Reason> {
        let mark = self.locked(pool, |st, _| st.reports.as_ref().map(|it| it.since.mark()));
        self.look_after(pool);
        mark
    }

    /// Puts the readings of a report in force, and decides by them. Waits for LOCK.
    ///
    /// # Errors
    ///
    /// [`Reason::Poisoned`].
    pub(crate) fn report(
        &self,
        pool: &PoolCore,
        begun: Mark,
        mut steps: Box<[Step]>,
    ) -> Result<(), Reason> {
        let replaced = self.reconfigure(pool, |st| {
            if let Some(reports) = st.reports.as_deref_mut() {
                core::mem::swap(&mut reports.steps, &mut steps);
                reports.begun = begun;
                reports.next = reports.steps.len().min(1);
                st.apply_step();
            }
            steps
        })?;
        drop(replaced);
        Ok(())
    }

    /// What the gates of a pool follow at this time, for views. Waits for LOCK.
    ///
    /// # Errors
    ///
    /// [`Reason::Poisoned`].
    pub(crate) fn saturation(&self, pool: &PoolCore) -> Result<f64, Reason> {
        // The count of who runs follows below, and before every decision.
        self.reconfigure(pool, |st| st.follow_reports(0, || self.clock.now_ns()))?;
        let saturation = self.locked(pool, |st, word| {
            let running = st.running(word);
            let gauge = pool.gauge();
            let (reports, load) = (st.reports.as_deref(), st.load(running));
            match reports.filter(|_| gauge.is_none() && st.gates.is_counted()) {
                Some(reports) => reports.since.saturation(load),
                None => st.gates.saturation(running),
            }
        });
        self.look_after(pool);
        saturation
    }
}
