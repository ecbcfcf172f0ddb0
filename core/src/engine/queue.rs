//! Completion queues: outcomes of submitted requests, drained by one thread.

use alloc::boxed::Box;
use core::cell::Cell;
use core::fmt;
use core::marker::PhantomData;
use core::ptr::NonNull;
use core::time::Duration;

use super::EngineCore;
use super::permit::Permit;
use super::pool::Pool;
use super::request::Ticket;
use crate::error::Reason;
use crate::notify::doorbell::Doorbell;
use crate::notify::parker::{Choice, Parker};
use crate::shard::completions::{QueueCore, QueueName, Record};
use crate::sync::Arc;

/// Most places a queue may have per pool.
const MAX_CAPACITY: u32 = 1 << 16;

/// Why a completion queue could not be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum QueueError {
    /// The capacity is 0 or above 65,536.
    Capacity(u32),
    /// The engine has 64 queues already (or had, of other capacities).
    TooMany,
    /// The engine was made before a `fork` and this is the child.
    Forked,
}

impl fmt::Display for QueueError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Capacity(n) => {
                write!(f, "completion queue capacity {n}: must be 1 to {MAX_CAPACITY}")
            }
            Self::TooMany => f.write_str("completion queues: at most 64, of one engine, at a time"),
            Self::Forked => f.write_str(Reason::Forked.as_str()),
        }
    }
}

impl core::error::Error for QueueError {}

/// Where outcomes arrive. Submitters share it by reference from any thread; one thread at a time drains
/// it, so it is `Send` and its draining half is not `Sync`: see [`CompletionQueue::poll`].
///
/// Dropping it gives back every permit nobody took; requests that still wait for it give their grant to
/// the next waiter.
#[derive(Debug)]
pub struct CompletionQueue {
    engine: Arc<EngineCore>,
    pools: Box<[Pool]>,
    /// In the engine's table of queues.
    core: NonNull<QueueCore>,
    name: u32,
    cursor: Cell<usize>,
    /// One consumer: not Sync.
    _consumer: PhantomData<Cell<()>>,
}

// SAFETY: `core` leads into `engine`, which the queue keeps alive and which is Sync; the rest is Send.
unsafe impl Send for CompletionQueue {}

/// One outcome.
#[derive(Debug)]
pub struct Completion<'q> {
    /// The tag given to [`Pool::submit`].
    pub tag: u64,
    /// The ticket it had; stale from now on.
    pub ticket: Ticket,
    /// The permit, or why there is none.
    pub outcome: Result<Permit<'q>, Reason>,
}

/// The submitting half of a [`CompletionQueue`], for other threads.
#[derive(Clone, Copy, Debug)]
pub struct QueueRef<'q> {
    name: u32,
    /// Number of the engine's first pool.
    engine: u32,
    _queue: PhantomData<&'q QueueCore>,
}

impl QueueRef<'_> {
    #[inline(always)]
    pub(super) const fn name(self) -> u32 {
        self.name
    }

    #[inline(always)]
    pub(super) const fn engine(self) -> u32 {
        self.engine
    }
}

impl<'q> From<&'q CompletionQueue> for QueueRef<'q> {
    fn from(queue: &'q CompletionQueue) -> Self {
        queue.submitter()
    }
}

impl CompletionQueue {
    pub(super) fn new(engine: &Arc<EngineCore>, capacity: u32) -> Result<Self, QueueError> {
        if capacity == 0 || capacity > MAX_CAPACITY {
            return Err(QueueError::Capacity(capacity));
        }
        if engine.is_forked() {
            return Err(QueueError::Forked);
        }
        let bell = || Doorbell::new(Parker::new(Choice::EventFd));
        let places = capacity.next_power_of_two();
        let claimed = engine.queues.claim(engine.pools.len(), places, bell);
        let name = claimed.ok_or(QueueError::TooMany)?;
        let pools: Box<[Pool]> = (0..engine.pools.len()).map(|id| Pool::new(engine, id)).collect();
        for pool in &pools {
            pool.shard().open_queue(pool.core(), name);
        }
        let core = engine.queues.get(QueueName::slot(name)).ok_or(QueueError::TooMany)?;
        let (core, engine) = (NonNull::from(core), Arc::clone(engine));
        Ok(Self { engine, pools, core, name, cursor: Cell::new(0), _consumer: PhantomData })
    }

    #[inline(always)]
    fn core(&self) -> &QueueCore {
        // SAFETY: stands in `self.engine`, whose table never moves or empties a slot.
        unsafe { self.core.as_ref() }
    }

    /// The half other threads submit with.
    pub fn submitter(&self) -> QueueRef<'_> {
        QueueRef { name: self.name, engine: self.engine.first, _queue: PhantomData }
    }

    /// The next outcome, pool by pool in turn; `None`: none is there now. Wait-free per pool.
    #[inline]
    pub fn poll(&self) -> Option<Completion<'_>> {
        let rings = self.core().rings();
        let mut at = self.cursor.get();
        for _ in 0..rings.len() {
            // SAFETY: the queue is not Sync, so this is the ring's one consumer.
            let record = unsafe { rings[at].pop() };
            let next = if at + 1 == rings.len() { 0 } else { at + 1 };
            if let Some(record) = record {
                self.cursor.set(next);
                return Some(self.completion(at, &record));
            }
            at = next;
        }
        None
    }

    #[inline(always)]
    fn completion(&self, at: usize, record: &Record) -> Completion<'_> {
        let pool = &self.pools[at];
        let (idx, generation) = record.ticket();
        let outcome = match record.evicted {
            None => Ok(pool.queued(record)),
            Some(reason) => Err(reason),
        };
        let ticket = Ticket { pool: pool.id(), idx, generation };
        Completion { tag: record.tag, ticket, outcome }
    }

    /// Hands over every outcome that is there; how many.
    pub fn drain(&self, mut take: impl FnMut(Completion<'_>)) -> usize {
        let mut taken = 0;
        while let Some(completion) = self.poll() {
            take(completion);
            taken += 1;
        }
        taken
    }

    fn has_outcome(&self) -> bool {
        self.core().rings().iter().any(|ring| !ring.is_empty())
    }

    /// Why outcomes that are due may never come, if so: [`Reason::Forked`] in a child of `fork`, or
    /// [`Reason::Poisoned`]: a pool died in which requests wait for this queue. Nobody decides about those any
    /// more. What other pools have to say is still there by [`CompletionQueue::poll`]; to go on waiting for
    /// them, make another queue. Wait-free.
    pub fn fault(&self) -> Option<Reason> {
        if self.engine.is_forked() {
            return Some(Reason::Forked);
        }
        let mut rings = self.pools.iter().zip(self.core().rings());
        let is_lost = rings.any(|(pool, ring)| pool.is_dead() && ring.reserved() > 0);
        is_lost.then_some(Reason::Poisoned)
    }

    /// Whether there is anything to be told before a sleep.
    fn has_news(&self) -> bool {
        self.has_outcome() || self.fault().is_some()
    }

    /// Sleeps until an outcome is there or the time is over (absent: for ever); whether one is. One wake
    /// serves all the outcomes of a turn. `false` at once, and out of a sleep, if there is a
    /// [`fault`](CompletionQueue::fault).
    pub fn wait(&self, timeout: Option<Duration>) -> bool {
        let clock = &self.engine.clock;
        let limit = |t: Duration| u64::try_from(t.as_nanos()).unwrap_or(u64::MAX);
        let deadline = timeout.map(|t| clock.now_ns().saturating_add(limit(t)));
        while !self.has_outcome() {
            if self.fault().is_some() {
                return false;
            }
            let left = deadline.map(|at| at.saturating_sub(clock.now_ns()));
            if left == Some(0) {
                return false;
            }
            self.core().bell().park(|| self.has_news(), left);
        }
        true
    }

    /// A descriptor that becomes readable when outcomes arrive after [`CompletionQueue::arm`]; `None`
    /// where the platform has none.
    pub fn fileno(&self) -> Option<i32> {
        self.core().bell().parker().fileno()
    }

    /// For hosts that sleep in a loop of their own: asks for a ring of the descriptor. `false`: outcomes
    /// are there already, or there is a [`fault`](CompletionQueue::fault): do not sleep. After the sleep:
    /// [`CompletionQueue::disarm`], then drain.
    pub fn arm(&self) -> bool {
        self.core().bell().announce(|| self.has_news())
    }

    /// Takes [`CompletionQueue::arm`] back and resets the descriptor.
    pub fn disarm(&self) {
        self.core().bell().retract();
        self.core().bell().parker().drain();
    }
}

impl Drop for CompletionQueue {
    fn drop(&mut self) {
        if self.engine.is_forked() {
            return;
        }
        // Closed under each pool's lock first: afterwards nobody pushes.
        for pool in &self.pools {
            pool.shard().close_queue(pool.core(), self.name);
        }
        self.drain(|completion| drop(completion));
        self.engine.queues.release(QueueName::slot(self.name));
    }
}
