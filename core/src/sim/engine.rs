//! The shipped engine as a [`Dispatcher`]: host driver, a clock turned by hand, every decision made by the turn that
//! serves production.
//!
//! Requests go in through [`Pool::submit`] under their flow, outcomes come back through completion queues, slots go back by
//! dropping the permit. Nothing below the front door is touched.
#![forbid(unsafe_code)]

use core::fmt;

use super::{
    replay::{Dispatcher, Outcome, SubmitResult},
    workload::{SimRequest, Workload},
};
use crate::{
    clock::Clock,
    engine::{
        Band, CompletionQueue, Engine, Flow, Permit, Pool, QueueError, Request, StartError,
        Submitted,
    },
    error::Reason,
    types::{
        NONE, TURN_BUDGET,
        settings::{DriverKind, PoolSettings, Settings},
    },
};

/// Places of one completion queue; a waiting request holds one, so more waiters need more queues.
const PLACES: u32 = 1 << 16;

/// Completion queues an engine may have.
const MAX_QUEUES: u32 = 64;

/// Why a configuration could not be made an engine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EngineError {
    /// The engine refused the settings.
    Start(StartError),
    /// It refused a completion queue.
    Queue(QueueError),
    /// The pool lacks a band the workload was made for, or is gone.
    Pool(Reason),
}

impl fmt::Display for EngineError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Start(e) => e.fmt(f),
            Self::Queue(e) => e.fmt(f),
            Self::Pool(reason) => write!(f, "the pool answers {reason}"),
        }
    }
}

impl core::error::Error for EngineError {}

impl From<StartError> for EngineError {
    fn from(e: StartError) -> Self {
        Self::Start(e)
    }
}

impl From<QueueError> for EngineError {
    fn from(e: QueueError) -> Self {
        Self::Queue(e)
    }
}

impl From<Reason> for EngineError {
    fn from(reason: Reason) -> Self {
        Self::Pool(reason)
    }
}

/// An engine with one pool, made for one workload.
#[derive(Debug)]
pub struct SimEngine {
    // Dropped in this order: queues and pool before the engine.
    queues: Vec<CompletionQueue>,
    pool: Pool,
    engine: Engine,
    clock: Clock,
    /// Bands by index, 0 the highest priority.
    bands: Vec<Band>,
    /// Flows by number of the workload, or why the pool has no room for them.
    flows: Vec<Result<Flow, Reason>>,
    rows: usize,
}

impl SimEngine {
    /// Starts an engine of `settings` with `pool` as its only pool, and interns the flows of `workload`. Tables are
    /// sized for the workload where that changes no answer.
    ///
    /// # Errors
    ///
    /// [`EngineError`]; nothing is left behind.
    pub fn start(
        settings: &Settings,
        pool: &PoolSettings,
        workload: &Workload,
    ) -> Result<Self, EngineError> {
        let most = |n: usize| u32::try_from(n).unwrap_or(u32::MAX).max(1);
        let rows = workload.requests.len();
        let mut pool = pool.clone();
        pool.max_flows = pool.max_flows.min(most(workload.flows.len()));
        let name = pool.name.clone();
        let max_requests = settings.max_requests.min(most(rows));
        let settings = Settings {
            driver: DriverKind::Host,
            shards: 1,
            max_requests,
            pools: vec![pool],
            ..settings.clone()
        };
        let clock = Clock::manual();
        let engine = Engine::start_with_clock(&settings, clock.clone())?;
        let pool = engine.pool(&name)?;
        let bands = pool.priorities().iter().map(|&p| pool.band(p)).collect::<Result<_, _>>()?;
        // One place more than may wait: it is the engine that says `queue_full`, after its other reasons.
        let places = max_requests.saturating_add(1);
        let queues = (0..places.div_ceil(PLACES).min(MAX_QUEUES))
            .map(|_| engine.completion_queue(PLACES.min(places)))
            .collect::<Result<_, _>>()?;
        let flows = workload
            .flows
            .iter()
            // A configured tenant is in its configured group, others in the default one.
            .map(|flow| pool.flow("", &flow.tenant, &flow.key))
            .collect();
        Ok(Self { queues, pool, engine, clock, bands, flows, rows })
    }

    /// The engine as the replay sees it. One at a time.
    pub fn dispatcher(&mut self) -> EngineDispatcher<'_> {
        EngineDispatcher {
            permits: Permits::of(self.rows),
            waiting: 0,
            parts: self,
            queue: 0,
            deadline_ns: u64::MAX,
        }
    }
}

/// Permits of the running rows: side by side, as few run at once as there are slots, however long the trace is.
#[derive(Debug)]
struct Permits<'e> {
    places: Vec<Option<Permit<'e>>>,
    free: Vec<u32>,
    /// Place by row; of no meaning for a row that does not run.
    of_row: Vec<u32>,
}

impl<'e> Permits<'e> {
    fn of(rows: usize) -> Self {
        Self { places: Vec::new(), free: Vec::new(), of_row: vec![NONE; rows] }
    }

    #[inline]
    fn put(&mut self, row: u32, permit: Permit<'e>) {
        let place = match self.free.pop() {
            Some(place) => {
                self.places[place as usize] = Some(permit);
                place
            }
            None => self.add(permit),
        };
        self.of_row[row as usize] = place;
    }

    /// More run than ever before.
    #[cold]
    fn add(&mut self, permit: Permit<'e>) -> u32 {
        self.places.push(Some(permit));
        // Not more than rows, and those are numbered in 32 bits.
        u32::try_from(self.places.len() - 1).unwrap_or(NONE)
    }

    #[inline]
    fn take(&mut self, row: u32) -> Option<Permit<'e>> {
        let place = self.of_row.get_mut(row as usize)?;
        let place = core::mem::replace(place, NONE);
        let permit = self.places.get_mut(place as usize)?.take()?;
        self.free.push(place);
        Some(permit)
    }
}

/// A running [`SimEngine`].
#[derive(Debug)]
pub struct EngineDispatcher<'e> {
    parts: &'e SimEngine,
    permits: Permits<'e>,
    /// Queued requests without an outcome: while there is none, the completion queues are empty.
    waiting: usize,
    /// Completion queue that had room last.
    queue: usize,
    /// No later than the next time the engine has something to do; `u64::MAX`: nothing is due.
    deadline_ns: u64,
}

impl EngineDispatcher<'_> {
    fn queued(&mut self, request: &SimRequest) -> SubmitResult {
        self.waiting += 1;
        self.deadline_ns = self.deadline_ns.min(request.deadline_ns);
        SubmitResult::Queued
    }
}

impl Dispatcher for EngineDispatcher<'_> {
    #[inline]
    fn submit(&mut self, now_ns: u64, request: &SimRequest) -> SubmitResult {
        let parts = self.parts;
        parts.clock.set_alone(now_ns);
        let Some(&band) = parts.bands.get(usize::from(request.band)) else {
            return SubmitResult::Rejected(Reason::UnknownBand);
        };
        let flow = match parts.flows.get(request.flow as usize) {
            Some(Ok(flow)) => *flow,
            Some(Err(reason)) => return SubmitResult::Rejected(*reason),
            None => return SubmitResult::Rejected(Reason::FlowTableFull),
        };
        let asked = Request::new(band).flow(flow).cost(request.cost);
        for _ in 0..parts.queues.len() {
            let queue = &parts.queues[self.queue];
            match parts.pool.submit(&asked, queue, u64::from(request.row)) {
                Ok(Submitted::Granted(permit)) => {
                    self.permits.put(request.row, permit);
                    return SubmitResult::Granted;
                }
                Ok(Submitted::Queued(_)) => return self.queued(request),
                // With one thread only a full completion queue answers so.
                Err(Reason::Busy) => self.queue = (self.queue + 1) % parts.queues.len(),
                Err(reason) => return SubmitResult::Rejected(reason),
            }
        }
        // As many wait as there are places.
        SubmitResult::Rejected(Reason::QueueFull)
    }

    #[inline]
    fn release(&mut self, now_ns: u64, row: u32) {
        self.parts.clock.set_alone(now_ns);
        if let Some(permit) = self.permits.take(row) {
            permit.release();
        }
    }

    fn poll(&mut self, now_ns: u64) {
        self.parts.clock.set_alone(now_ns);
        let progress = self.parts.engine.poll_at(now_ns);
        let next = progress.next_deadline_ns.unwrap_or(u64::MAX);
        self.deadline_ns = if progress.more { now_ns } else { next };
    }

    #[inline]
    fn drain(&mut self, out: &mut Vec<Outcome>) {
        let parts = self.parts;
        for queue in &parts.queues {
            while self.waiting > 0
                && let Some(completion) = queue.poll()
            {
                self.waiting -= 1;
                let row = u32::try_from(completion.tag).unwrap_or(NONE);
                out.push(match completion.outcome {
                    Ok(permit) => {
                        self.permits.put(row, permit);
                        Outcome::Granted(row)
                    }
                    Err(reason) => Outcome::Evicted(row, reason),
                });
            }
        }
        // So many outcomes of one call may have spent its budget: the rest waits for a poll.
        if out.len() >= TURN_BUDGET as usize / 2 {
            self.deadline_ns = 0;
        }
    }

    #[inline]
    fn next_deadline(&self) -> Option<u64> {
        (self.deadline_ns != u64::MAX).then_some(self.deadline_ns)
    }
}

#[cfg(test)]
mod tests;
