//! The gates of a pool's bands, as counts: where ceilings meet what moves the saturation.
//!
//! Configuration, gauges and samples are floats; they are turned into integers here, when they change, with the
//! comparison the gate itself makes. No float is looked at per decision, unless the ceilings themselves move.
//!
//! # What the holder of LOCK calls
//!
//! | when | call |
//! | --- | --- |
//! | every decision of a pool with [`BandGates::is_dynamic`] | [`BandGates::refresh`], before the next two |
//! | every decision | [`BandGates::eligible`], then [`BandGates::reading`] |
//! | a sample of the backends | [`BandGates::set_counted`], then [`BandGates::set_count`] before every decision |
//! | a gauge, other slots | [`BandGates::set_gauge`], [`BandGates::resize`]; then publish the [`BandGates::reserve`] of every band |
//!
//! A pool whose gates move by more than its running requests has every band's reserve at
//! [`PoolGate::GATED`]: the pool-only fast path then never admits, and every admit is decided under LOCK.
#![forbid(unsafe_code)]

mod source;
#[cfg(all(test, not(loom)))]
mod tests;

use alloc::boxed::Box;
use arrayvec::ArrayVec;

use super::ceiling::policy::{CeilingPolicy, Moment};
use super::ceiling::{Ceilings, gated};
use super::saturation::Thresholds;
use super::word::PoolGate;
use crate::types::extend::{Millionths, UsageLimit};
use crate::types::policy::{BandSelection, Holdback, Reading};
use crate::types::{BandMask, MAX_BANDS, first_bands};

pub use source::Source;
use source::{Limits, ThresholdCounts};

/// Ceilings, limits and thresholds of one pool. Plain memory under LOCK.
#[derive(Debug)]
pub struct BandGates {
    /// The last look: these bands are open while `open_from <= running < open_from + open_for`.
    open: BandMask,
    open_from: u32,
    open_for: u32,
    /// Running over slots, no gauge, ceilings that stay.
    is_plain: bool,
    /// The side of the thresholds at the last look, where the mode reads what the gate reads.
    given: Option<Reading>,
    /// WFQ thresholds; absent: strict.
    thresholds: Option<(Thresholds, ThresholdCounts)>,
    /// Swept: never rising as priority falls.
    ceilings: Ceilings,
    /// The least counts at which the bands are gated; kept only for ceilings that stay.
    limits: Limits,
    source: Source,
    /// The saturation the host set, which stands before the source.
    gauge: Option<f64>,
    slots: u32,
    /// What the caller counts.
    count: u64,
    policy: CeilingPolicy,
    /// Most urgent first.
    bands: ArrayVec<i32, MAX_BANDS>,
    faults: u64,
    is_fault_told: bool,
}

/// What [`BandGates::refresh`] is shown of the pool.
#[derive(Clone, Copy, Debug, Default)]
pub struct GateInput {
    /// Requests running, before the dispatch that is decided on.
    pub running: u32,
    /// Bands with a waiting or running request.
    pub busy: BandMask,
    /// Requests waiting.
    pub waiting: u32,
    /// Most that may wait; 0: as if the queue were full.
    pub queue_limit: u32,
    /// Reading of the detector that the holdback names as its signal; `None`: nothing read yet.
    pub detector: Option<f64>,
    /// The engine's clock.
    pub now_ns: u64,
}

impl BandGates {
    /// For these priorities (most urgent first, at most 64 count) and slots.
    pub fn new(
        holdback: &Holdback,
        selection: &BandSelection,
        priorities_desc: &[i32],
        slots: u32,
    ) -> Self {
        let bands = &priorities_desc[..priorities_desc.len().min(MAX_BANDS)];
        Self::with_policy(CeilingPolicy::new(holdback, bands), selection, bands, slots)
    }

    /// The same with a policy of the host for the ceilings.
    pub fn custom(
        limit: Box<dyn UsageLimit>,
        selection: &BandSelection,
        priorities_desc: &[i32],
        slots: u32,
    ) -> Self {
        let bands = &priorities_desc[..priorities_desc.len().min(MAX_BANDS)];
        Self::with_policy(CeilingPolicy::Custom(limit), selection, bands, slots)
    }

    fn with_policy(
        mut policy: CeilingPolicy,
        selection: &BandSelection,
        bands: &[i32],
        slots: u32,
    ) -> Self {
        let mut ceilings = Ceilings::new();
        let faults = u64::from(policy.calm(bands, &mut ceilings));
        let thresholds = match selection {
            BandSelection::Wfq(wfq) => Some((Thresholds::of(wfq), ThresholdCounts::default())),
            BandSelection::Strict | BandSelection::Custom(_) => None,
        };
        let mut gates = Self {
            open: 0,
            open_from: 0,
            open_for: 0,
            is_plain: false,
            given: None,
            thresholds,
            ceilings,
            limits: Limits::NONE,
            source: Source::Running,
            gauge: None,
            slots,
            count: 0,
            policy,
            bands: bands.iter().copied().collect(),
            faults,
            is_fault_told: false,
        };
        gates.recount();
        gates
    }

    /// The ceilings in force, most urgent band first.
    pub fn ceilings(&self) -> &[f64] {
        &self.ceilings
    }

    /// Whether the ceilings move by themselves: then [`refresh`](Self::refresh) comes before every decision.
    #[inline(always)]
    pub fn is_dynamic(&self) -> bool {
        self.policy.is_dynamic()
    }

    /// Whether the pool-only fast path can know these gates: they follow the running requests and nothing else.
    pub fn is_slot_count(&self) -> bool {
        !self.is_dynamic() && self.effective().is_slot_count()
    }

    /// Recomputes the counts for a new number of slots.
    pub fn resize(&mut self, slots: u32) {
        self.slots = slots;
        self.recount();
    }

    /// From now on gates and mode follow this saturation; `None`: what the source says again.
    pub fn set_gauge(&mut self, saturation: Option<f64>) {
        self.gauge = saturation;
        self.recount();
    }

    /// Makes room for [`set_counted`](Self::set_counted), which may be called under LOCK and must not allocate there.
    #[must_use]
    pub fn expecting_counts(mut self) -> Self {
        self.limits.make_many();
        self
    }

    /// From now on the caller counts. `count_of` says for a saturation at which count it is reached (0: it is now,
    /// `u64::MAX`: never); it must not fall as the level rises. `saturation` is the sample's; NaN counts as 1.0.
    pub fn set_counted(&mut self, saturation: f64, count_of: impl Fn(f64) -> u64) {
        let saturation = if saturation.is_nan() { 1.0 } else { saturation };
        self.source = Source::Counted { saturation };
        self.count = 0;
        self.limits.fill_many(&self.ceilings, &count_of);
        if let Some((thresholds, counts)) = &mut self.thresholds {
            // As the thresholds are compared: an inverted pair must not deactivate as it activates.
            let deactivation = thresholds.deactivation.min(thresholds.activation);
            counts.many = (count_of(thresholds.activation), count_of(deactivation));
        }
        self.recount();
    }

    /// What the caller counted so far. The saturation that makes is asked for only where ceilings move, which are
    /// compared with it. Nothing happens where the caller does not count.
    #[inline]
    pub fn set_count(&mut self, count: u64, saturation: impl FnOnce() -> f64) {
        let is_dynamic = self.is_dynamic();
        let Source::Counted { saturation: told } = &mut self.source else { return };
        if is_dynamic {
            *told = saturation();
        }
        self.count = count;
        self.open_for = 0;
    }

    /// Whether the caller counts, and has to tell by [`set_count`](Self::set_count).
    pub fn is_counted(&self) -> bool {
        matches!(self.source, Source::Counted { .. })
    }

    /// Goes on where other gates stop that this pool had until now: gauge, slots, faults, and the state of a policy
    /// of ours of the same kind. For a reload, under LOCK; a host's policy begins anew, and what the caller counts
    /// has to be told again by [`set_counted`](Self::set_counted).
    pub fn inherit(&mut self, old: &Self) {
        self.policy.inherit(&old.policy);
        (self.gauge, self.slots) = (old.gauge, old.slots);
        self.faults = self.faults.saturating_add(old.faults);
        self.is_fault_told |= old.is_fault_told;
        self.recount();
    }

    fn effective(&self) -> Source {
        self.gauge.map_or(self.source, Source::Gauge)
    }

    fn recount(&mut self) {
        let source = self.effective();
        if !self.is_dynamic() {
            self.limits.fill(&source, &self.ceilings, self.slots);
        }
        if let Some((thresholds, counts)) = &mut self.thresholds {
            counts.fill(&source, thresholds, self.slots);
        }
        self.is_plain = !self.is_dynamic() && source == Source::Running;
        self.given = None;
        self.open_for = 0;
    }

    /// The saturation the gate compares while `running` requests run.
    pub fn saturation(&self, running: u32) -> f64 {
        self.effective().saturation(running, self.slots)
    }

    /// The same as a host's band selection is shown it.
    pub fn millionths(&self, running: u32) -> Millionths {
        Millionths::of(self.saturation(running))
    }

    fn moment(&self, input: &GateInput) -> Moment {
        let GateInput { busy, detector, now_ns, waiting, queue_limit, .. } = *input;
        let saturation = self.saturation(input.running);
        let queue_depth = super::saturation::saturation(waiting, queue_limit);
        Moment { saturation, busy, queue_depth, detector, now_ns }
    }

    /// Asks ceilings that move for where they are now; whether they may have moved. Once per decision: some
    /// policies count the calls. Does nothing for ceilings that stay.
    pub fn refresh(&mut self, input: &GateInput) -> bool {
        if !self.is_dynamic() {
            return false;
        }
        let moment = self.moment(input);
        let Some(faulty) = self.policy.refresh(&self.bands, &moment, &mut self.ceilings) else {
            return false;
        };
        self.faults = self.faults.saturating_add(u64::from(faulty));
        self.open_for = 0;
        true
    }

    /// After which time a turn is worth while although nothing happened, because ceilings moved by themselves:
    /// to be asked, after a refresh with this input, when a turn ends and somebody waits who is gated.
    pub fn look_again_ns(&self, input: &GateInput) -> Option<u64> {
        self.policy.look_again_ns(&self.moment(input))
    }

    /// Bands that are not gated while `running` requests run: the last answer, while it holds.
    #[inline(always)]
    pub fn eligible(&mut self, running: u32) -> BandMask {
        if running.wrapping_sub(self.open_from) >= self.open_for {
            self.look(running);
        }
        self.open
    }

    /// Limits never rise as priority falls, so the open bands are the first ones, and they stay open from
    /// the limit of the next below to the limit of their last.
    #[inline(never)]
    fn look(&mut self, running: u32) {
        if !self.is_plain {
            return self.look_closely(running);
        }
        let limits = &self.limits.few[..self.ceilings.len()];
        let open = limits.partition_point(|&limit| running < limit);
        let until = if open == 0 { u32::MAX } else { limits[open - 1] };
        self.open = first_bands(open);
        self.open_from = limits.get(open).copied().unwrap_or(0);
        self.open_for = until - self.open_from;
    }

    /// The same where something else counts, or the ceilings move: the answer holds for this number of running
    /// requests alone, or, where those do not count, until something is set.
    fn look_closely(&mut self, running: u32) {
        let source = self.effective();
        let count = matches!(source, Source::Counted { .. }).then_some(self.count);
        let bands = self.ceilings.len();
        let open = if self.is_dynamic() {
            let saturation = self.saturation(running);
            self.ceilings.partition_point(|&ceiling| !gated(saturation, ceiling))
        } else if let (Some(count), Some(limits)) = (count, &self.limits.many) {
            limits[..bands].partition_point(|&limit| count < limit)
        } else {
            self.limits.few[..bands].partition_point(|&limit| running < limit)
        };
        self.open = first_bands(open);
        let holds = if source == Source::Running { (running, 1) } else { (0, u32::MAX) };
        (self.open_from, self.open_for) = holds;
        self.given = match &self.thresholds {
            Some((_, counts)) if source != Source::Running => Some(counts.reading(running, count)),
            _ => None,
        };
    }

    /// Which side of the WFQ thresholds the pool is on, `running` counted after the dispatch. Where the source is
    /// not running over slots it is the side of the saturation that [`eligible`](Self::eligible) last compared.
    #[inline(always)]
    pub fn reading(&self, running: u32) -> Reading {
        match (&self.thresholds, &self.given) {
            (None, _) => Reading::default(),
            (Some(_), Some(reading)) => *reading,
            (Some((_, counts)), None) => counts.few.reading(running),
        }
    }

    /// Free slots the band must leave in a pool of `size`: it may run iff `free > reserve`.
    pub fn reserve(&self, band: usize, size: u32) -> i32 {
        let source = self.effective();
        let limit = self.limits.few.get(band).copied().unwrap_or(0);
        if self.is_dynamic() || !(source.is_slot_count() || source.is_constant()) {
            return PoolGate::GATED;
        }
        if source.is_constant() {
            // Nothing but a new value moves it: gated for good or open for good.
            return if limit == 0 || band >= self.ceilings.len() { PoolGate::GATED } else { 0 };
        }
        i32::try_from(size.saturating_sub(limit)).unwrap_or(PoolGate::GATED)
    }

    /// Ceilings that were NaN or outside 0..=1 since the start; each counted as 1.0.
    pub fn faults(&self) -> u64 {
        self.faults
    }

    /// The same, once: at the first call after the first fault. For the log,
    /// after the unlock.
    pub fn untold_faults(&mut self) -> Option<u64> {
        let is_news = self.faults > 0 && !self.is_fault_told;
        self.is_fault_told |= is_news;
        is_news.then_some(self.faults)
    }
}
