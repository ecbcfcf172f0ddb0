//! The front door: [`Engine`], [`Pool`], [`Flow`], [`Permit`], [`Ticket`].
//!
//! A host starts an engine from [`Settings`], takes a [`Pool`] for a model, and asks it for permits:
//! at once ([`Pool::try_admit`]), as a future ([`Pool::admit`]), blocking ([`Pool::admit_blocking`]) or
//! by ticket and completion queue ([`Pool::submit`]). Every handle may be used from any thread.

mod admit;
mod bands;
mod build;
#[cfg(feature = "config")]
mod builder;
mod census;
#[cfg(feature = "config")]
mod document;
mod driver;
mod flows;
mod permit;
mod pool;
mod queue;
mod reload;
mod request;
mod templates;

use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;
use core::time::Duration;

pub use admit::Admit;
pub use bands::BandError;
pub use build::StartError;
#[cfg(feature = "config")]
pub use builder::EngineBuilder;
pub use census::{BandOutcomes, FlowName, Holder, Refused, Waiting};
pub use permit::{Admitted, OwnedPermit, Permit};
pub use pool::{CancelAnswer, Pool, Submitted};
pub use queue::{Completion, CompletionQueue, QueueError, QueueRef};
pub use reload::{ConfigInfo, ReloadError};
pub use request::{Band, Flow, Request, Ticket};

use crate::clock::Clock;
use crate::config::current::Current;
use crate::config::flows::Flows;
use crate::config::live::Live;
use crate::error::Reason;
use crate::notify::fork::fork_generation;
pub use crate::shard::cold::PoolView;
use crate::shard::completions::Queues;
use crate::shard::{Progress, Shard, Sleeper};
use crate::sync::{Arc, AtomicBool, AtomicU64, Ordering, yield_now};
use crate::types::settings::{DriverKind, Settings};

use driver::Threads;

/// Everything the handles share. Freed when the last handle is gone.
#[derive(Debug)]
pub(crate) struct EngineCore {
    shards: Box<[Shard]>,
    sleepers: Box<[Arc<Sleeper>]>,
    pools: Box<[PoolMeta]>,
    /// Number of the first pool in this process, so that no name is valid in two engines.
    first: u32,
    queues: Arc<Queues>,
    clock: Clock,
    driver: DriverKind,
    admission_timeout_ns: AtomicU64,
    current: Current,
    fork_generation: u32,
    stop: AtomicBool,
}

/// What is known about a pool beside its state: names.
#[derive(Debug)]
pub(crate) struct PoolMeta {
    name: String,
    shard: usize,
    index: usize,
    flows: Flows,
    live: Live,
}

impl EngineCore {
    /// Whether this process is a child of the one that made the engine.
    #[inline(always)]
    fn is_forked(&self) -> bool {
        self.fork_generation != fork_generation()
    }
}

/// One engine per process is usual; any number works.
///
/// Dropping it shuts it down: waiters are evicted with [`Reason::ShuttingDown`], its threads are joined.
/// Permits and pools that live on stay valid; releases are accepted, admits refused.
#[derive(Debug)]
pub struct Engine {
    core: Arc<EngineCore>,
    threads: Threads,
}

/// What an engine runs on, for logs.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Info {
    /// Who runs the turns.
    pub driver: DriverKind,
    /// Shards.
    pub shards: usize,
    /// How sleepers sleep: `io_uring`, `eventfd` or `condvar`.
    pub parker: &'static str,
    /// Why io_uring is not used, if it was tried.
    pub uring_refusal: Option<String>,
    /// Times an engine thread went to sleep.
    pub parks: u64,
    /// Times one was woken by a call.
    pub wakes: u64,
}

impl Engine {
    /// Starts an engine. Allocates everything it will need but flow rows; starts its threads.
    ///
    /// # Errors
    ///
    /// [`StartError`]: every fault of the settings at once, or the thread that could not be made.
    pub fn start(settings: &Settings) -> Result<Self, StartError> {
        Self::start_with_clock(settings, Clock::monotonic())
    }

    /// The same on a given clock: simulations and tests turn it by hand (host driver only).
    ///
    /// # Errors
    ///
    /// As [`Engine::start`].
    pub fn start_with_clock(settings: &Settings, clock: Clock) -> Result<Self, StartError> {
        let core = Arc::new(build::core(settings, clock)?);
        // Here, where the shards no longer move: the pointers they keep of each other would not survive it.
        let places: Vec<_> = core.pools.iter().map(|pool| (pool.shard, pool.index)).collect();
        Shard::introduce(&core.shards, &places);
        let threads = Threads::start(&core).map_err(|error| StartError::thread(&error))?;
        Ok(Self { core, threads })
    }

    /// The pool of this name. Any number of handles may exist.
    ///
    /// # Errors
    ///
    /// [`Reason::UnknownPool`].
    pub fn pool(&self, name: &str) -> Result<Pool, Reason> {
        let found = self.core.pools.iter().position(|pool| pool.name == name);
        found.map(|id| Pool::new(&self.core, id)).ok_or(Reason::UnknownPool)
    }

    /// All pools, in the order of the settings.
    pub fn pools(&self) -> impl Iterator<Item = Pool> + '_ {
        (0..self.core.pools.len()).map(|id| Pool::new(&self.core, id))
    }

    /// A completion queue with `capacity` places (1..=65,536, rounded up to a power of two) per pool.
    ///
    /// Cold: allocates, and waits for the pools' locks.
    ///
    /// # Errors
    ///
    /// [`QueueError`]: the capacity is out of range, or 64 queues exist.
    pub fn completion_queue(&self, capacity: u32) -> Result<CompletionQueue, QueueError> {
        CompletionQueue::new(&self.core, capacity)
    }

    /// Host driver: does the work that is due and says when to call again. With the other drivers it only
    /// helps. At most one thread polls a shard at a time; others return at once.
    pub fn poll(&self) -> Progress {
        self.poll_at(u64::MAX)
    }

    /// The same at a time the host has read already, in nanoseconds of the engine's clock, 0 and up. A time
    /// before that of an earlier poll fires nothing. A time the clock has not reached yet, `u64::MAX` for
    /// example, counts as the clock's own: no deadline passes early, and time never runs ahead of the
    /// deadlines still to come. Reads the clock once.
    pub fn poll_at(&self, now_ns: u64) -> Progress {
        let mut progress = Progress::default();
        if self.core.is_forked() {
            return progress;
        }
        let now_ns = now_ns.min(self.core.clock.now_ns());
        for shard in &self.core.shards {
            progress.merge(shard.poll(now_ns));
        }
        progress
    }

    /// Host driver: a descriptor that becomes readable when a poll is due before the time the last one
    /// named; `None` where the platform has none.
    pub fn fileno(&self) -> Option<i32> {
        self.core.sleepers.first()?.bell.parker().fileno()
    }

    /// The clock deadlines are measured on.
    pub fn clock(&self) -> &Clock {
        &self.core.clock
    }

    /// What it runs on.
    pub fn info(&self) -> Info {
        let bells = || self.core.sleepers.iter().map(|sleeper| &sleeper.bell);
        Info {
            driver: self.core.driver,
            shards: self.core.shards.len(),
            parker: bells().next().map_or("none", |bell| bell.parker().kind()),
            uring_refusal: bells().find_map(|bell| bell.parker().refusal().map(String::from)),
            parks: bells().map(|bell| bell.parker().stats().parks).sum(),
            wakes: bells().map(|bell| bell.parker().stats().wakes).sum(),
        }
    }

    /// Refuses new requests, lets those that wait and run go on, and returns when none is left or the
    /// timeout is over. `true`: all pools are empty. Blocks, polling every millisecond of
    /// the engine's clock (one turned by hand must go on being turned); any thread.
    pub fn drain(&self, timeout: Duration) -> bool {
        if self.core.is_forked() {
            // Nothing of this engine lives here.
            return true;
        }
        for pool in self.pools() {
            pool.drain();
        }
        driver::wait_until_empty(&self.core, timeout)
    }

    /// Refuses new requests and evicts those that wait, with [`Reason::ShuttingDown`]. Idempotent; permits
    /// stay releasable.
    pub fn shutdown(&self) {
        for pool in self.pools() {
            pool.shut_down();
        }
    }
}

impl Engine {
    /// The last polls: the threads are gone, and what the shutdown left (a mark on a list, more waiters than
    /// one budget evicts) is nobody else's. Ends when nobody waits; the pools are closed, so nobody comes.
    fn finish(&self) {
        self.core.shards.iter().for_each(Shard::orphan);
        loop {
            self.poll();
            let has_work = self.core.shards.iter().any(Shard::has_work);
            if !has_work && self.pools().all(|pool| pool.is_at_rest()) {
                return;
            }
            yield_now();
        }
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        if self.core.is_forked() {
            // The threads live in the parent, and so does the state they would have to see.
            self.threads.forget();
            return;
        }
        self.shutdown();
        // ORDERING: Release pairs with the Acquire of the threads' look before they sleep.
        self.core.stop.store(true, Ordering::Release);
        self.threads.join(&self.core);
        self.finish();
    }
}

impl fmt::Display for Info {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "driver {:?}, {} shards, parker {}", self.driver, self.shards, self.parker)?;
        self.uring_refusal.as_ref().map_or(Ok(()), |why| write!(f, " (io_uring refused: {why})"))
    }
}
