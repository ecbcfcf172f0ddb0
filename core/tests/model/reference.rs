//! The reference: one pool, one caller at a time, plain ordered maps, nothing clever.
//!
//! Written from the design, not from the engine: who waits is one list by arrival, every decision walks all
//! of it. Only the weighted order over bands is the shipped policy; the model tells it who waits.

use std::collections::BTreeMap;

use bandgate_core::select::band::BandPolicy;
use bandgate_core::types::policy::{BandSelection, Reading};
use bandgate_core::{CancelAnswer, Reason};

use super::script::{Ask, FLOWS, MAX_COST, Shape, TENANT_OF};

pub(crate) const MS: u64 = 1_000_000;

/// What a call is expected to answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Expect {
    Granted,
    Queued,
    Rejected(Reason),
}

/// How far a future is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    New,
    Waiting,
    Granted,
    Evicted(Reason),
}

#[derive(Clone, Copy, Debug)]
struct Waiting {
    id: u32,
    ask: Ask,
    deadline: Option<u64>,
    is_future: bool,
}

#[derive(Debug)]
#[allow(clippy::struct_excessive_bools, reason = "each says one thing of the pool")]
pub(crate) struct Model {
    shape: Shape,
    pub(crate) now: u64,
    slots: u32,
    running: i64,
    flow_used: [u32; FLOWS],
    tenant_used: BTreeMap<usize, u32>,
    arrivals: u64,
    waiting: BTreeMap<u64, Waiting>,
    pub(crate) futures: BTreeMap<u32, (Ask, Stage)>,
    pub(crate) held: BTreeMap<u32, usize>,
    pub(crate) closed: bool,
    shut: bool,
    gauge: Option<f64>,
    policy: BandPolicy,
    peak: i64,
    /// Whether anybody has waited since the turn began.
    awaited: bool,
    decided: bool,
    /// Outcomes for the completion queue since they were last taken, in order.
    pub(crate) outcomes: Vec<(u32, Result<(), Reason>)>,
    pub(crate) granted: u64,
    pub(crate) direct: u64,
    pub(crate) evicted: u64,
    pub(crate) expired: u32,
}

impl Model {
    pub(crate) fn new(shape: &Shape) -> Self {
        Self {
            now: 0,
            slots: shape.slots,
            running: 0,
            flow_used: [0; FLOWS],
            tenant_used: BTreeMap::new(),
            arrivals: 0,
            waiting: BTreeMap::new(),
            futures: BTreeMap::new(),
            held: BTreeMap::new(),
            closed: false,
            shut: false,
            gauge: None,
            policy: BandPolicy::new(&shape.selection, &shape.priorities()),
            peak: 0,
            awaited: false,
            decided: false,
            outcomes: Vec::new(),
            granted: 0,
            direct: 0,
            evicted: 0,
            expired: 0,
            shape: shape.clone(),
        }
    }

    pub(crate) fn free(&self) -> i64 {
        i64::from(self.slots) - self.running
    }

    pub(crate) fn running(&self) -> i64 {
        self.running
    }

    pub(crate) fn slots(&self) -> u32 {
        self.slots
    }

    pub(crate) fn waiting(&self) -> usize {
        self.waiting.len()
    }

    #[allow(
        clippy::cast_precision_loss,
        clippy::float_arithmetic,
        reason = "the definition of the saturation, of a few slots"
    )]
    fn saturation(&self, running: i64) -> f64 {
        self.gauge.unwrap_or(running as f64 / f64::from(self.slots))
    }

    fn is_open(&self, band: usize) -> bool {
        self.saturation(self.running) < self.shape.ceilings[band]
    }

    /// Bit per band that is not gated.
    fn eligible(&self) -> u64 {
        (0..self.shape.ceilings.len()).map(|band| u64::from(self.is_open(band)) << band).sum()
    }

    fn has_room(&self, flow: usize) -> bool {
        if flow == 0 {
            return true;
        }
        let tenant = TENANT_OF[flow];
        let used = self.tenant_used.get(&tenant).copied().unwrap_or(0);
        self.shape.key_caps[flow].is_none_or(|cap| self.flow_used[flow] < cap)
            && self.shape.tenant_caps[tenant].is_none_or(|cap| used < cap)
    }

    fn runs_now(&self, ask: &Ask) -> bool {
        self.free() > 0 && self.is_open(ask.band) && self.has_room(ask.flow)
    }

    fn take(&mut self, flow: usize) {
        self.running += 1;
        if flow != 0 {
            self.flow_used[flow] += 1;
            *self.tenant_used.entry(TENANT_OF[flow]).or_insert(0) += 1;
        }
    }

    fn give(&mut self, flow: usize) {
        self.running -= 1;
        if flow != 0 {
            self.flow_used[flow] -= 1;
            *self.tenant_used.get_mut(&TENANT_OF[flow]).unwrap() -= 1;
        }
    }

    /// Mode and eligible bands of one decision: while the pool has had waiters since the turn began, the mode
    /// uses the turn's highest value.
    fn prepare(&mut self) -> u64 {
        self.peak = self.peak.max(self.running);
        self.awaited |= !self.waiting.is_empty();
        let level = if self.awaited { self.peak } else { self.running };
        let eligible = self.eligible();
        if let BandSelection::Wfq(params) = &self.shape.selection {
            let saturation = self.saturation(level + 1);
            let reading = Reading {
                activates: saturation >= params.activation,
                stays_active: saturation >= params.deactivation,
            };
            let now = self.now;
            self.policy.begin(reading, eligible, || now);
        }
        eligible
    }

    fn finish(&mut self, waiting: &Waiting, outcome: Result<(), Reason>) {
        match outcome {
            Ok(()) => self.granted += 1,
            Err(_) => self.evicted += 1,
        }
        if waiting.is_future {
            let stage = outcome.map_or_else(Stage::Evicted, |()| Stage::Granted);
            self.futures.get_mut(&waiting.id).unwrap().1 = stage;
        } else {
            if outcome.is_ok() {
                self.held.insert(waiting.id, waiting.ask.flow);
            }
            self.outcomes.push((waiting.id, outcome));
        }
    }

    /// A turn begins: the highest load it sees, and whoever is due leaves.
    fn begin(&mut self) {
        self.decided = false;
        self.peak = self.running;
        self.awaited = !self.waiting.is_empty();
    }

    fn expire(&mut self) {
        let tick = self.now / MS;
        let is_due = |w: &Waiting| w.deadline.is_some_and(|at| at.div_ceil(MS) <= tick);
        let due: Vec<_> = self.waiting.extract_if(.., |_, w| is_due(w)).map(|(_, w)| w).collect();
        for waiting in due {
            self.expired += 1;
            self.finish(&waiting, Err(Reason::Deadline));
        }
    }

    fn decide(&mut self) {
        self.decided = true;
        if self.shut {
            for waiting in core::mem::take(&mut self.waiting).into_values() {
                self.finish(&waiting, Err(Reason::ShuttingDown));
            }
        }
        while !self.waiting.is_empty() && self.free() > 0 {
            let eligible = self.prepare();
            let mut first = BTreeMap::new();
            for (arrival, waiting) in &self.waiting {
                if eligible & 1 << waiting.ask.band != 0 && self.has_room(waiting.ask.flow) {
                    first.entry(waiting.ask.band).or_insert(*arrival);
                }
            }
            let mask = first.keys().map(|band| 1 << band).sum();
            let Some(band) = self.policy.best(mask) else { return };
            let arrival = first[&(band as usize)];
            let waiting = self.waiting.remove(&arrival).unwrap();
            if waiting.deadline.is_some_and(|at| at <= self.now) {
                self.expired += 1;
                self.finish(&waiting, Err(Reason::Deadline));
            } else {
                self.policy.record(eligible, band);
                self.take(waiting.ask.flow);
                self.finish(&waiting, Ok(()));
            }
        }
    }

    /// Whoever is due, then the own command, then the decision.
    fn turn<R>(&mut self, own: impl FnOnce(&mut Self) -> R) -> R {
        self.begin();
        self.expire();
        let answer = own(self);
        if !self.decided {
            self.decide();
        }
        answer
    }

    /// A mark comes into force before anybody expires.
    fn mark(&mut self, apply: impl FnOnce(&mut Self)) {
        self.begin();
        apply(self);
        self.expire();
        self.decide();
    }

    fn refusal(ask: &Ask) -> Option<Reason> {
        (ask.cost == 0 || ask.cost > MAX_COST).then_some(Reason::TooLarge)
    }

    fn refusal_under_lock(&self, ask: &Ask) -> Option<Reason> {
        let refuses = ask.flow != 0
            && (self.shape.key_caps[ask.flow] == Some(0)
                || self.shape.tenant_caps[TENANT_OF[ask.flow]] == Some(0));
        match (self.closed, refuses) {
            (true, _) => Some(Reason::ShuttingDown),
            (_, true) => Some(Reason::TenantQueueFull),
            _ => None,
        }
    }

    fn is_fast(&mut self, ask: &Ask) -> bool {
        let fast = ask.flow == 0 && !self.closed && self.runs_now(ask);
        if fast {
            self.take(0);
        }
        fast
    }

    fn own_take(&mut self, ask: &Ask) {
        let eligible = self.prepare();
        self.policy.record(eligible, u32::try_from(ask.band).unwrap());
        self.take(ask.flow);
        self.direct += 1;
    }

    pub(crate) fn try_admit(&mut self, id: u32, ask: &Ask) -> Expect {
        if let Some(reason) = Self::refusal(ask) {
            return Expect::Rejected(reason);
        }
        let granted = self.is_fast(ask)
            || match self.turn(|m| m.own_try(ask)) {
                Ok(granted) => granted,
                Err(reason) => return Expect::Rejected(reason),
            };
        if granted {
            self.held.insert(id, ask.flow);
            return Expect::Granted;
        }
        Expect::Rejected(Reason::WouldQueue)
    }

    fn own_try(&mut self, ask: &Ask) -> Result<bool, Reason> {
        if let Some(reason) = self.refusal_under_lock(ask) {
            return Err(reason);
        }
        self.decide();
        let runs = self.runs_now(ask);
        if runs {
            self.own_take(ask);
        }
        Ok(runs)
    }

    /// `is_future`: no completion place is needed, the outcome stays in its entry.
    pub(crate) fn submit(&mut self, id: u32, ask: &Ask, is_future: bool) -> Expect {
        if let Some(reason) = Self::refusal(ask) {
            return Expect::Rejected(reason);
        }
        let answer = if self.is_fast(ask) {
            Expect::Granted
        } else {
            self.turn(|m| m.own_submit(id, ask, is_future))
        };
        if answer == Expect::Granted {
            self.held.insert(id, ask.flow);
        }
        answer
    }

    fn places_used(&self) -> usize {
        self.waiting.values().filter(|w| !w.is_future).count()
    }

    fn entries_used(&self) -> usize {
        let done = |(_, stage): &&(Ask, Stage)| !matches!(stage, Stage::New | Stage::Waiting);
        self.waiting.len() + self.futures.values().filter(done).count()
    }

    fn own_submit(&mut self, id: u32, ask: &Ask, is_future: bool) -> Expect {
        if let Some(reason) = self.refusal_under_lock(ask) {
            return Expect::Rejected(reason);
        }
        self.decide();
        if self.runs_now(ask) {
            self.own_take(ask);
            return Expect::Granted;
        }
        let timeout = ask.timeout_us.or(self.shape.default_timeout_us);
        if timeout == Some(0) {
            return Expect::Rejected(Reason::Deadline);
        }
        if !is_future && self.places_used() >= self.shape.places {
            return Expect::Rejected(Reason::Busy);
        }
        if self.entries_used() >= self.shape.entries as usize {
            return Expect::Rejected(Reason::QueueFull);
        }
        let deadline = timeout.map(|us| self.now + us * 1_000);
        self.arrivals += 1;
        self.waiting.insert(self.arrivals, Waiting { id, ask: *ask, deadline, is_future });
        Expect::Queued
    }

    pub(crate) fn release(&mut self, id: u32) {
        let flow = self.held.remove(&id).unwrap();
        self.turn(|m| m.give(flow));
    }

    fn arrival_of(&self, id: u32) -> Option<u64> {
        self.waiting.iter().find(|(_, w)| w.id == id).map(|(arrival, _)| *arrival)
    }

    pub(crate) fn cancel(&mut self, id: u32) -> CancelAnswer {
        if self.arrival_of(id).is_none() && !self.futures.contains_key(&id) {
            return CancelAnswer::Stale;
        }
        self.turn(|m| {
            let Some(arrival) = m.arrival_of(id) else {
                let is_future = m.futures.contains_key(&id);
                return if is_future { CancelAnswer::TooLate } else { CancelAnswer::Stale };
            };
            let waiting = m.waiting.remove(&arrival).unwrap();
            if waiting.is_future {
                m.finish(&waiting, Err(Reason::Cancelled));
            } else {
                // The caller is told, so no completion follows.
                m.evicted += 1;
            }
            CancelAnswer::Cancelled
        })
    }

    pub(crate) fn drop_future(&mut self, id: u32) {
        if self.futures[&id].1 == Stage::New {
            self.futures.remove(&id);
            return;
        }
        self.turn(|m| {
            let (ask, stage) = m.futures.remove(&id).unwrap();
            match (m.arrival_of(id), stage) {
                (Some(arrival), _) => drop(m.waiting.remove(&arrival)),
                (None, Stage::Granted) => m.give(ask.flow),
                (None, _) => {}
            }
        });
    }

    pub(crate) fn resize(&mut self, slots: u32) {
        self.mark(|m| m.slots = slots);
    }

    pub(crate) fn set_gauge(&mut self, gauge: Option<f64>) {
        self.mark(|m| m.gauge = gauge);
    }

    pub(crate) fn gauge(&self) -> Option<f64> {
        self.gauge
    }

    pub(crate) fn close(&mut self, shut: bool) {
        self.mark(|m| {
            m.closed = true;
            m.shut |= shut;
        });
    }

    /// A poll of the driver: a turn, if anybody is due.
    pub(crate) fn poll(&mut self) {
        self.turn(|_| ());
    }
}
