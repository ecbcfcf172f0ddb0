//! A pool as its policies see it: gates and order, driven as a turn drives them, over nothing but counts.
#![forbid(unsafe_code)]

use bandgate_core::{
    admit::{
        gates::{BandGates, GateInput},
        saturation::limit,
    },
    select::band::{BandPolicy, Mode, Order},
    types::{
        BandMask,
        saturation::SaturationSource,
        settings::{PoolSettings, Settings},
    },
};

/// Most dispatches that are looked ahead.
const LOOK_AHEAD: u32 = 100_000;

/// Gates, order and counts.
#[derive(Debug)]
pub(crate) struct Place {
    pub(crate) gates: BandGates,
    pub(crate) policy: BandPolicy,
    pub(crate) slots: u32,
    pub(crate) running: u32,
    /// Per band, most urgent first.
    pub(crate) waiting: Vec<u32>,
    /// Whether the saturation is what was said, whoever runs.
    pub(crate) is_given: bool,
    /// Most that ran since the turn began while somebody waited.
    peak: u32,
    most_waiting: u32,
}

impl Place {
    /// The pool at this saturation with these waiters.
    pub(crate) fn new(
        settings: &Settings,
        pool: &PoolSettings,
        priorities: &[i32],
        saturation: f64,
        waiting: &[u32],
    ) -> Self {
        let slots = pool.slots;
        let mut gates = BandGates::new(&pool.holdback, &pool.selection, priorities, slots);
        let is_given = pool.saturation != SaturationSource::Slots;
        let running = if is_given {
            gates.set_gauge(Some(saturation));
            slots.saturating_sub(1)
        } else {
            limit(saturation, slots)
        };
        Self {
            gates,
            policy: BandPolicy::new(&pool.selection, priorities),
            slots,
            running,
            waiting: waiting.to_vec(),
            is_given,
            peak: running,
            most_waiting: settings.max_requests,
        }
    }

    pub(crate) fn waiting_in_all(&self) -> u32 {
        self.waiting.iter().fold(0, |all, n| all.saturating_add(*n))
    }

    /// Bands with waiters.
    fn ready(&self) -> BandMask {
        let bit = |(band, n): (usize, &u32)| u64::from(*n > 0) << band;
        self.waiting.iter().enumerate().map(bit).sum()
    }

    /// Asks the gates, as before every decision; the bands that are open.
    pub(crate) fn open(&mut self) -> BandMask {
        let input = GateInput {
            running: self.running,
            busy: self.ready(),
            waiting: self.waiting_in_all(),
            queue_limit: self.most_waiting,
            ..GateInput::default()
        };
        self.gates.refresh(&input);
        self.gates.eligible(self.running)
    }

    /// Opens a decision with the gates as last asked; the mode it is made in.
    pub(crate) fn begin(&mut self, open: BandMask) -> Mode {
        let reading = self.gates.reading(self.level().saturating_add(1));
        self.policy.begin(reading, open, || 0);
        self.policy.mode()
    }

    /// Running requests as the mode counts them, before the one that is decided on.
    pub(crate) fn level(&self) -> u32 {
        if self.ready() == 0 { self.running } else { self.peak.max(self.running) }
    }

    /// The order of the decision that was begun.
    pub(crate) fn order(&self, open: BandMask) -> Order {
        let mut order = Order::new();
        self.policy.rank(open, &mut order);
        order
    }

    /// Gives a free slot to the first who may have it; its band.
    fn dispatch(&mut self) -> Option<usize> {
        if self.running >= self.slots || self.ready() == 0 {
            return None;
        }
        let open = self.open();
        self.begin(open);
        let band = self.policy.best(open & self.ready())?;
        self.policy.record(open, band);
        self.running += 1;
        let band = band as usize;
        self.waiting[band] -= 1;
        Some(band)
    }

    /// Serves whoever may run now, as the arrival of a request makes a turn do; how many of each band.
    pub(crate) fn serve(&mut self) -> Vec<u32> {
        let mut served = vec![0; self.waiting.len()];
        for _ in 0..LOOK_AHEAD {
            let Some(band) = self.dispatch() else { break };
            served[band] += 1;
        }
        served
    }

    /// Puts one more behind those who wait in `band` and lets request after request end: who is served before
    /// it, by band, and after how many ends its turn comes. `None`: not while all stays so.
    pub(crate) fn turn_of(mut self, band: usize) -> Option<(Vec<u32>, u32)> {
        let mut ahead = self.waiting[band];
        self.waiting[band] += 1;
        let mut before = vec![0; self.waiting.len()];
        let mut ends = 0;
        let mut dispatches = 0;
        while self.running > 0 && dispatches < LOOK_AHEAD {
            self.peak = self.running;
            self.running -= 1;
            ends += 1;
            while let Some(next) = self.dispatch() {
                if next == band && ahead == 0 {
                    return Some((before, ends));
                }
                ahead -= u32::from(next == band);
                before[next] += 1;
                dispatches += 1;
            }
        }
        None
    }
}
