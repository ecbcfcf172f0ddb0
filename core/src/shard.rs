//! A shard: one core's share of the engine, and how a call reaches the plain state of a pool.
//!
//! The pattern is flat combining with a delegation ring. A call first tries the pool's LOCK; if it gets
//! it, it runs a [turn] with its own command and leaves. If not, the command goes on the pool's ring
//! (or, for what must never be refused, on the urgent list) and the holder runs it. Nobody waits.
//!
//! `execute`, in steps:
//! 1. try LOCK within a bounded back-off; ours: *turn*(command).
//! 2. push on the ring; full: a submit answers `Busy`, everything else is posted on the urgent list.
//! 3. `fence(SeqCst)`, pairs with the fence after the unlock: either we see LOCK clear, or the holder sees
//!    the command.
//! 4. try LOCK; ours: *turn*(nothing). Else leave: the holder has it.
//!
//! *turn*, in steps; 1 to 6 are one hold of LOCK:
//! 1. take the urgent list;
//! 2. take the ring's stamped commands, then evict whose deadline has passed;
//! 3. the own command; a submit and a try look first after those who already wait (step 4);
//! 4. decide: grant, until nobody may run, no slot is free or the budget is spent;
//! 5. compute the word to unlock with;
//! 6. unlock by a store;
//! 7. `fence(SeqCst)`;
//! 8. look at the ring's next stamp and the urgent list once more: again if they hold something and budget is
//!    left; what the budget cut off goes to the scheduler ring.
//!
//! After the last unlock whoever was granted or evicted is woken.

pub mod backends;
pub mod bands;
pub mod ceiling;
pub mod census;
mod codes;
pub mod cold;
pub mod completions;
pub mod execute;
mod exempt;
mod gating;
pub mod hold;
pub mod limits;
pub mod orders;
pub mod outcomes;
pub mod plan;
pub mod pool;
mod quick;
pub mod refusals;
pub mod reports;
mod rules;
#[cfg(all(test, not(loom)))]
mod tests;
pub mod tracking;
pub mod turn;
mod view;

use alloc::boxed::Box;
use core::panic::AssertUnwindSafe;
use std::panic::catch_unwind;
use std::sync::OnceLock;

use crate::clock::{Clock, Now};
use crate::notify::doorbell::Doorbell;
use crate::ring::scheduler::SchedulerRing;
use crate::slab::Slab;
use crate::sync::{Arc, AtomicBool, AtomicU64, Ordering, fence, planted};
use crate::types::TURN_BUDGET;

use ceiling::{Ceiling, Peers};
use completions::Queues;
use limits::Reserve;
use pool::PoolCore;

/// Who decides: the callers themselves, or the shard's own thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decider {
    /// Inline and host driver: the caller that takes LOCK.
    Caller,
    /// Threads driver: the pinned thread of the shard; callers only hand over.
    Thread,
}

/// What one poll did, and when it wants to be called again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// Commands applied.
    pub commands: u32,
    /// Requests granted.
    pub grants: u32,
    /// Requests evicted because their deadline passed.
    pub expired: u32,
    /// Time of the earliest deadline, nanoseconds of the engine's clock; `None`: nothing is due.
    pub next_deadline_ns: Option<u64>,
    /// Work was left for another poll.
    pub more: bool,
}

impl Progress {
    /// Adds what another pool or shard did.
    pub fn merge(&mut self, other: Self) {
        self.commands += other.commands;
        self.grants += other.grants;
        self.expired += other.expired;
        self.more |= other.more;
        self.next_deadline_ns = match (self.next_deadline_ns, other.next_deadline_ns) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        };
    }
}

/// Who sleeps for a shard: the keeper (one for all shards) or the shard's thread.
#[derive(Debug)]
pub struct Sleeper {
    /// Rung when a pool was scheduled or a deadline moved before `until`.
    pub bell: Doorbell,
    /// When the sleeper will look at the deadlines again; 0 while it is awake.
    until_ns: AtomicU64,
}

impl Sleeper {
    /// An awake sleeper behind `bell`.
    pub fn new(bell: Doorbell) -> Self {
        Self { bell, until_ns: AtomicU64::new(0) }
    }

    /// Announces how long the sleeper will sleep; it looks at the deadlines once more afterwards.
    pub fn announce(&self, until_ns: u64) {
        // ORDERING: AcqRel swap, changed from both sides by read-modify-write; the fence orders it before
        // the look at the deadlines and pairs with the one in `deadline_moved`.
        self.until_ns.swap(until_ns, Ordering::AcqRel);
        fence(Ordering::SeqCst);
    }

    /// After a deadline was published and a `fence(SeqCst)`: wakes the sleeper if it would sleep past it.
    pub fn deadline_moved(&self, deadline_ns: u64) {
        // ORDERING: Relaxed; ordered by the caller's fence (see `announce`).
        let until = self.until_ns.load(Ordering::Relaxed);
        if deadline_ns < until {
            // ORDERING: AcqRel, as above; whoever lowers it wakes, the others need not.
            if self.until_ns.fetch_min(deadline_ns, Ordering::AcqRel) > deadline_ns {
                self.bell.ring_fenced();
            }
        }
    }
}

/// One core's share: its pools, scheduler ring and slab.
#[derive(Debug)]
pub struct Shard {
    pools: Box<[PoolCore]>,
    slab: Slab,
    scheduler: SchedulerRing,
    sleeper: Arc<Sleeper>,
    queues: Arc<Queues>,
    clock: Clock,
    decider: Decider,
    ceiling: Option<Arc<Ceiling>>,
    peers: OnceLock<Peers>,
    reserve: Option<Arc<Reserve>>,
    /// The engine is gone, and its threads with it: whoever leaves a command looks after it.
    is_orphaned: AtomicBool,
}

impl Shard {
    /// A shard of these pools. Allocates everything it will ever need but flow rows.
    pub fn new(
        mut pools: Box<[PoolCore]>,
        max_waiting: u32,
        sleeper: Arc<Sleeper>,
        queues: Arc<Queues>,
        clock: Clock,
        decider: Decider,
    ) -> Self {
        let scheduler = SchedulerRing::new(u32::try_from(pools.len()).unwrap_or(u32::MAX));
        let is_orphaned = AtomicBool::new(false);
        let slab = Slab::new(max_waiting);
        // All caches together keep an eighth of the slab at most; where only the thread frees and only
        // callers take, a cache would never be taken from.
        let share = max_waiting as usize / (8 * pools.len().max(1));
        let limit = if decider == Decider::Thread { 0 } else { share };
        pools.iter_mut().for_each(|pool| pool.limit_free_cache(limit));
        let (ceiling, peers) = (None, OnceLock::new());
        Self {
            pools,
            slab,
            scheduler,
            sleeper,
            queues,
            clock,
            decider,
            ceiling,
            peers,
            reserve: None,
            is_orphaned,
        }
    }

    /// The same shard under an engine ceiling; its pools were made with the units it was split into.
    #[must_use]
    pub fn under(mut self, ceiling: Option<Arc<Ceiling>>) -> Self {
        if ceiling.is_some() {
            self.pools.iter_mut().for_each(PoolCore::expect_ceiling);
        }
        self.ceiling = ceiling;
        self
    }

    /// The same shard in an engine that limits what waits in all its pools.
    #[must_use]
    pub fn within(mut self, reserve: Option<Arc<Reserve>>) -> Self {
        if reserve.is_some() {
            self.pools.iter_mut().for_each(PoolCore::expect_limits);
        }
        self.reserve = reserve;
        self
    }

    /// What may wait in all pools of the engine, if that is limited.
    pub fn reserve(&self) -> Option<&Reserve> {
        self.reserve.as_deref()
    }

    /// The pools, by their index in the shard.
    pub fn pools(&self) -> &[PoolCore] {
        &self.pools
    }

    /// The slab, for states and wakers.
    pub fn slab(&self) -> &Slab {
        &self.slab
    }

    /// The clock turns read.
    pub fn clock(&self) -> &Clock {
        &self.clock
    }

    /// The threads of the engine were joined. The caller polls until nothing is left.
    pub(crate) fn orphan(&self) {
        // ORDERING: Relaxed; the fence orders it before the looks of the last polls and pairs with the one
        // in `schedule`, or with the swap of the pool's flag that found it set: either the last poll sees
        // a command, or who left it sees this.
        self.is_orphaned.store(true, Ordering::Relaxed);
        fence(Ordering::SeqCst);
    }

    /// Whether nobody but the callers is left to decide. After `schedule`.
    pub(crate) fn is_orphaned(&self) -> bool {
        // ORDERING: Relaxed; see `orphan`.
        self.is_orphaned.load(Ordering::Relaxed)
    }

    /// Wakes who waits for an entry; after an unlock. The host's code: its panic must not cost the others
    /// their wake, nor the caller his answer and with it a slot, nor the engine a thread. The panic hook has
    /// told it.
    #[inline(never)]
    pub(crate) fn wake(&self, idx: u32) {
        let _panicked = catch_unwind(AssertUnwindSafe(|| self.slab.waker(idx).wake()));
    }

    /// Puts a pool on the scheduler ring, once, and wakes who sleeps for the shard.
    pub(crate) fn schedule(&self, pool: &PoolCore) {
        if self.scheduler.schedule(pool.index(), pool.queued()) {
            // ORDERING: SeqCst fence between the push and the look at `parked` (in `ring`); pairs with the
            // sleeper's fence between `parked` and its look at the ring.
            fence(Ordering::SeqCst);
            self.sleeper.bell.ring_fenced();
        }
    }

    /// Whether a poll would find something to do now. For the look before sleeping.
    pub fn has_work(&self) -> bool {
        !self.scheduler.is_empty()
    }

    /// Whether anybody waits in a pool of this shard, as far as its words tell.
    pub fn has_waiters(&self) -> bool {
        self.pools.iter().any(PoolCore::has_waiters)
    }

    /// The earliest published deadline of the shard's pools.
    pub fn next_deadline_ns(&self) -> Option<u64> {
        self.pools.iter().filter_map(PoolCore::next_deadline_ns).min()
    }

    /// Runs scheduled pools and due deadlines, one turn each: the keeper's, the host's and the shard
    /// thread's half of the work. At most one thread polls at a time; a second one finds nothing.
    pub fn poll(&self, now_ns: u64) -> Progress {
        let mut progress = Progress::default();
        for _ in 0..self.pools.len() {
            let Some(index) = self.next_scheduled() else { break };
            progress.merge(self.attend(&self.pools[index as usize], now_ns));
            if planted!("s1-flag") {
                // ORDERING: AcqRel, as in the ring; only too late.
                self.pools[index as usize].queued().swap(false, Ordering::AcqRel);
            }
        }
        for pool in &self.pools {
            if pool.next_deadline_ns().is_some_and(|deadline| deadline <= now_ns) {
                progress.merge(self.attend(pool, now_ns));
            }
        }
        progress.next_deadline_ns = self.next_deadline_ns();
        // A deadline that is due and still there: the budget ended before the timers did.
        let is_due = progress.next_deadline_ns.is_some_and(|deadline| deadline <= now_ns);
        progress.more |= self.has_work() || is_due;
        progress
    }

    /// Takes a pool off the scheduler ring; its flag is clear before its turn begins.
    fn next_scheduled(&self) -> Option<u32> {
        if planted!("s1-flag") {
            let other = AtomicBool::new(true);
            return self.scheduler.poll(|_| &other);
        }
        self.scheduler.poll(|pool| self.pools[pool as usize].queued())
    }

    /// Runs the pools whose own rings or urgent lists hold something; whether any did. The shard thread's
    /// look while it spins: a command is stamped there before the scheduler ring hears of it.
    pub fn run_ready_pools(&self) -> bool {
        let mut found = self.has_work();
        for pool in &self.pools {
            if pool.has_mail() {
                self.try_turn(pool, &Now::lazy(&self.clock), TURN_BUDGET);
                found = true;
            }
        }
        found
    }

    /// One turn without an own command; a taken LOCK means that its holder sees the work.
    fn attend(&self, pool: &PoolCore, now_ns: u64) -> Progress {
        let now = Now::at(&self.clock, now_ns);
        self.try_turn(pool, &now, TURN_BUDGET)
    }
}
