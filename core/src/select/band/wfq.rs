//! The weighted policy: when it rules, for how long its state is kept, and the schedule it owns.
//!
//! Weighted from the activation threshold on, strict again below the deactivation threshold; the state of the schedule
//! survives the pause for `stateRetention`. Worked examples: the rows `toggling` of `core/tests/vectors/flow.json`.
#![forbid(unsafe_code)]

use super::weights::Weights;
use super::{Credits, Mode, Order, VirtualTime, identity};
use crate::types::BandMask;
use crate::types::policy::{Reading, Schedule, WfqParams};

/// The schedule in use, with its state.
#[derive(Clone, Debug)]
#[allow(
    clippy::large_enum_variant,
    reason = "inline in the pool: a box would cost a cache line per decision"
)]
pub enum Running {
    /// Priority-first.
    Credits(Credits),
    /// Interleaved.
    VirtualTime(VirtualTime),
}

/// Weighted fair queuing across the bands of one pool.
#[derive(Clone, Debug)]
pub struct Wfq {
    active: bool,
    running: Running,
    /// When the mode last went from weighted to strict, nanoseconds; `None` before the first time.
    deactivated_at: Option<u64>,
    retention_ns: u64,
    weights: Weights,
}

impl Wfq {
    /// A fresh policy, strict until a reading activates it. The thresholds of `params` are compared by the caller.
    pub fn new(params: &WfqParams, priorities_desc: &[i32]) -> Self {
        let weights = Weights::new(&params.distribution, priorities_desc);
        let running = match params.schedule {
            Schedule::PriorityFirst { max_fairness_window } => {
                Running::Credits(Credits::new(weights.reduced(), max_fairness_window))
            }
            Schedule::Interleaved => Running::VirtualTime(VirtualTime::new(weights.reduced())),
        };
        Self {
            active: false,
            running,
            deactivated_at: None,
            retention_ns: params.retention_ns,
            weights,
        }
    }

    #[inline(always)]
    pub(super) fn begin(
        &mut self,
        reading: Reading,
        eligible: BandMask,
        now: impl FnOnce() -> u64,
    ) {
        let active = if self.active { reading.stays_active } else { reading.activates };
        if active != self.active {
            self.switch(active, now());
        }
        if !active {
            return;
        }
        match &mut self.running {
            Running::Credits(credits) => credits.begin(eligible),
            Running::VirtualTime(vt) => vt.begin(eligible),
        }
    }

    /// A state older than the retention starts over; a dip shorter than that lets the round complete across it.
    #[cold]
    fn switch(&mut self, active: bool, now_ns: u64) {
        self.active = active;
        if !active {
            self.deactivated_at = Some(now_ns);
            return;
        }
        let Some(since) = self.deactivated_at else { return };
        if now_ns.saturating_sub(since) >= self.retention_ns {
            match &mut self.running {
                Running::Credits(credits) => credits.reset(),
                Running::VirtualTime(vt) => vt.reset(),
            }
        }
    }

    #[inline(always)]
    pub(super) fn best(&self, candidates: BandMask) -> Option<u32> {
        if !self.active {
            return super::first(candidates);
        }
        match &self.running {
            Running::Credits(credits) => credits.best(candidates),
            Running::VirtualTime(vt) => vt.best(candidates),
        }
    }

    #[inline(always)]
    pub(super) fn record(&mut self, eligible: BandMask, band: u32) {
        if !self.active {
            return;
        }
        match &mut self.running {
            Running::Credits(credits) => credits.record(eligible, band),
            Running::VirtualTime(vt) => vt.record(eligible, band),
        }
    }

    pub(super) fn rank(&self, eligible: BandMask, order: &mut Order) {
        match &self.running {
            _ if !self.active => identity(self.weights.len(), order),
            Running::Credits(credits) => credits.rank(eligible, order),
            Running::VirtualTime(vt) => vt.rank(eligible, order),
        }
    }

    pub(super) fn set_bands(&mut self, priorities_desc: &[i32]) {
        if self.weights.priorities() == priorities_desc {
            return;
        }
        let origins = self.weights.provision(priorities_desc);
        match &mut self.running {
            Running::Credits(credits) => credits.set_bands(self.weights.reduced(), &origins),
            Running::VirtualTime(vt) => vt.set_bands(self.weights.reduced(), &origins),
        }
    }

    /// Takes over mode and state of `old`, under its own weights, window and retention.
    pub(super) fn inherit(&mut self, old: &Self) {
        let origins = self.weights.follow(&old.weights);
        self.active = old.active;
        self.deactivated_at = old.deactivated_at;
        match (&mut self.running, &old.running) {
            (Running::Credits(new), Running::Credits(old)) => {
                let window = new.window();
                *new = old.clone();
                new.set_window(window);
                new.set_bands(self.weights.reduced(), &origins);
            }
            (Running::VirtualTime(new), Running::VirtualTime(old)) => {
                *new = old.clone();
                new.set_bands(self.weights.reduced(), &origins);
            }
            (Running::Credits(new), _) => *new = Credits::new(self.weights.reduced(), new.window()),
            (Running::VirtualTime(new), _) => *new = VirtualTime::new(self.weights.reduced()),
        }
    }

    /// Strict or weighted, as of the last decision.
    pub fn mode(&self) -> Mode {
        if self.active { Mode::Wfq } else { Mode::Strict }
    }

    /// The weights of the provisioned bands.
    pub fn weights(&self) -> &Weights {
        &self.weights
    }

    /// The state of priority-first.
    pub fn credits(&self) -> Option<&Credits> {
        if let Running::Credits(credits) = &self.running { Some(credits) } else { None }
    }

    /// The state of interleaved.
    pub fn virtual_time(&self) -> Option<&VirtualTime> {
        if let Running::VirtualTime(vt) = &self.running { Some(vt) } else { None }
    }

    /// The schedule's state, to restore it (conformance tests, reload).
    pub fn running_mut(&mut self) -> &mut Running {
        &mut self.running
    }
}

#[cfg(test)]
mod tests {
    use super::{Mode, Wfq};
    use crate::types::policy::{Distribution, Ratio, Reading, Schedule, WfqParams};
    use alloc::vec::Vec;

    const ON: Reading = Reading { activates: true, stays_active: true };
    const BETWEEN: Reading = Reading { activates: false, stays_active: true };
    const OFF: Reading = Reading { activates: false, stays_active: false };

    fn wfq(retention_ns: u64) -> Wfq {
        let ratios = [(20, 6000), (10, 3000), (0, 1000)].map(|(p, r)| (p, Ratio(r))).to_vec();
        let params = WfqParams {
            activation: 0.5,
            deactivation: 0.4,
            retention_ns,
            schedule: Schedule::PriorityFirst { max_fairness_window: None },
            distribution: Distribution::Explicit { ratios, default_ratio: None },
        };
        Wfq::new(&params, &[20, 10, 0])
    }

    fn serve(wfq: &mut Wfq, reading: Reading, now: u64) -> u32 {
        wfq.begin(reading, 0b111, || now);
        let band = wfq.best(0b111).unwrap_or(99);
        wfq.record(0b111, band);
        band
    }

    #[test]
    fn a_round_completes_across_short_dips_and_strict_dispatches_are_not_charged() {
        let mut wfq = wfq(5_000);
        let served: Vec<u32> =
            (0..10).map(|t| serve(&mut wfq, if t == 3 || t == 5 { OFF } else { ON }, t)).collect();
        assert_eq!(served, [0, 0, 0, 0, 0, 0, 0, 0, 1, 1]);
    }

    #[test]
    fn a_dip_as_long_as_the_retention_starts_the_round_over() {
        let mut wfq = wfq(10);
        for t in 0..7 {
            serve(&mut wfq, ON, t);
        }
        assert_eq!(wfq.credits().map(|c| c.credit()[1]), Some(2));
        serve(&mut wfq, OFF, 7);
        wfq.begin(ON, 0b111, || 16);
        assert_eq!(wfq.credits().map(|c| c.credit()[1]), Some(2));
        serve(&mut wfq, OFF, 17);
        wfq.begin(ON, 0b111, || 27);
        assert_eq!(wfq.credits().map(|c| c.credit().to_vec()), Some([6, 3, 1].to_vec()));
    }

    #[test]
    fn between_the_thresholds_the_mode_stays_what_it_was() {
        let mut wfq = wfq(0);
        for (reading, mode) in [
            (BETWEEN, Mode::Strict),
            (ON, Mode::Wfq),
            (BETWEEN, Mode::Wfq),
            (OFF, Mode::Strict),
            (BETWEEN, Mode::Strict),
        ] {
            wfq.begin(reading, 0b111, || 0);
            assert_eq!(wfq.mode(), mode);
        }
    }

    #[test]
    fn the_clock_is_read_only_when_the_mode_changes() {
        let mut wfq = wfq(0);
        wfq.begin(OFF, 0b111, || panic!("strict stays strict"));
        wfq.begin(ON, 0b111, || 1);
        wfq.begin(ON, 0b001, || panic!("weighted stays weighted"));
    }
}
