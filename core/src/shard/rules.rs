//! The rules of a turn, one place each: what one step does to the plain state of a pool.
//!
//! Two turns are made of them: the [quick](super::quick) one, of a call that finds nothing else to do than
//! its own command, and the general [hold](super::hold).

use super::Shard;
use super::completions::{QueueName, Record};
use super::pool::{PoolCore, PoolState};
use super::view::SlabView;
use crate::admit::caps::{Freed, Room as CapsRoom};
use crate::admit::word::PoolWord;
use crate::clock::Clock;
use crate::error::Reason;
use crate::queue::{Front, Room, Waiter};
use crate::select::band::BandPolicy;
use crate::sync::planted;
use crate::types::extend::RequestView;
use crate::types::{BandMask, NONE};

/// Lanes at their cap that one hold may set aside; a bound on the walk, far above what a turn needs.
pub(super) const PARKING_BUDGET: u32 = 4_096;

/// Why the walk over the waiters stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stop {
    NobodyWaits,
    NoSlot,
    Budget,
    NobodyMayRun,
}

impl PoolState {
    /// Whether something is on that the fast path and the quick turn do not know.
    pub(super) fn needs_general_turns(&self) -> bool {
        let is_special = self.tracking.on || self.observes || self.limits.on;
        is_special
            || !self.ranks.is_plain()
            || self.gates_need_more()
            || self.backends.need_general_turns()
            || matches!(self.policy, BandPolicy::Custom(_))
    }

    /// Whether a pool-only admit may look at the word alone. Where bands moved it may: reserves go by index.
    pub(super) const fn allows_fast_admits(&self) -> bool {
        !self.tracking.on && !self.observes && !self.backends.none_exists()
    }

    /// Bands with somebody who may be next, by rank.
    pub(super) fn ready_by_rank(&self) -> BandMask {
        let ready = self.queues.ready();
        if self.ranks.is_plain() { ready } else { self.ranks.ranked(ready) }
    }

    /// Why requests of a flow are not accepted.
    #[cold]
    pub(super) fn why_not(&self, flow: u32, generation: u32) -> Reason {
        let is_stale = self.caps.is_stale(flow, generation);
        if is_stale { Reason::FlowTableFull } else { Reason::TenantQueueFull }
    }

    /// Slots in use.
    #[inline(always)]
    pub(super) fn running(&self, word: PoolWord) -> u32 {
        let running = i64::from(self.size) - i64::from(word.free());
        u32::try_from(running).unwrap_or(0)
    }

    /// Whether a turn has nothing to do but its own command and what follows from it: no command in the
    /// ring (a claimed cell that is not stamped included) or urgent, nothing left over, nothing due. `Some`:
    /// the time, 0 if nobody needed it.
    #[inline(always)]
    pub(super) fn quiet_at(&self, shard: &Shard, pool: &PoolCore) -> Option<u64> {
        if !pool.is_mail_empty() || (!self.is_calm && !self.has_nobody()) {
            return None;
        }
        if self.wheel.is_empty() { Some(0) } else { self.not_due_at(&shard.clock) }
    }

    /// Settles [`is_calm`](Self::is_calm). Under an engine ceiling a pool where somebody waits may have to ask
    /// for units.
    pub(super) fn settle_calm(&mut self, shard: &Shard) {
        self.is_calm = self.chain.is_empty()
            && !self.shut
            && !self.awaited
            && shard.ceiling.is_none()
            && !self.is_general;
    }

    /// Without waiters only a chain is work, whatever else there is, but for what quick turns do not know.
    #[inline(never)]
    fn has_nobody(&self) -> bool {
        !self.is_general && self.chain.is_empty() && self.queues.waiting() == 0
    }

    /// Before the deadline published nothing can fire, so the wheel need not be asked.
    #[inline(never)]
    fn not_due_at(&self, clock: &Clock) -> Option<u64> {
        let now_ns = clock.now_ns();
        (now_ns < self.published_ns).then_some(now_ns)
    }

    /// Settles the band policy for a grant nobody waited for; `word` is from before it.
    #[inline(always)]
    pub(super) fn settle_direct(&mut self, word: PoolWord, band: u8, clock: &Clock) {
        self.stats.direct += 1;
        if !self.policy.is_strict() {
            self.settle_weighted(word, band, clock);
        }
    }

    #[inline(never)]
    fn settle_weighted(&mut self, word: PoolWord, band: u8, clock: &Clock) {
        let running = self.running(word);
        let eligible = self.prepare_policy(running, running, || clock.now_ns());
        self.policy.record(eligible, u32::from(band));
    }

    /// Tells the band policy what it needs before a decision; returns the bands that are not gated.
    ///
    /// The mode looks at the pool as it will be after this dispatch (`level` + 1), the gate at what runs
    /// now: a request is never gated by itself.
    #[inline(always)]
    pub(super) fn prepare_policy(
        &mut self,
        running: u32,
        level: u32,
        now: impl FnOnce() -> u64,
    ) -> BandMask {
        let eligible = self.gates.eligible(running);
        if !self.policy.is_strict() {
            let reading = self.gates.reading(level.saturating_add(1));
            self.policy.begin(reading, eligible, now);
        }
        eligible
    }

    /// Walks the bands in rank order, skipping gated and empty ones, to the first waiter with room at its
    /// key and tenant.
    #[inline(always)]
    pub(super) fn next_waiter(
        &mut self,
        view: SlabView<'_>,
        eligible: BandMask,
        parking: &mut u32,
    ) -> Result<(u32, Waiter), Stop> {
        let mut candidates = eligible & self.queues.ready();
        loop {
            let Some(band) = self.policy.best(candidates) else {
                return Err(Stop::NobodyMayRun);
            };
            let caps = &self.caps;
            let room = |flow: u32, _tenant: u32| room(caps.room(flow));
            match self.queues.front(&view, band, &room, parking) {
                Front::Ready(waiter) => return Ok((band, waiter)),
                Front::Empty => candidates &= !(1 << band),
                Front::Budget => return Err(Stop::Budget),
            }
        }
    }

    /// Whether anybody in these bands has room at key and tenant, or may have: the budget ended.
    pub(super) fn is_any_runnable(&mut self, view: SlabView<'_>, mut candidates: BandMask) -> bool {
        let mut parking = PARKING_BUDGET;
        let caps = &self.caps;
        let room = |flow: u32, _tenant: u32| room(caps.room(flow));
        while candidates != 0 {
            let band = self.ranks.index(candidates.trailing_zeros());
            candidates &= candidates - 1;
            if self.queues.front(&view, band, &room, &mut parking) != Front::Empty {
                return true;
            }
        }
        false
    }

    /// The same where bands were added or removed, or a host orders them: answers the rank too.
    pub(super) fn next_ranked(
        &mut self,
        view: SlabView<'_>,
        eligible: BandMask,
        parking: &mut u32,
    ) -> Result<(u32, u32, Waiter), Stop> {
        let mut candidates = eligible & self.ranks.ranked(self.queues.ready());
        loop {
            let Some(rank) = self.policy.best_of_any(candidates) else {
                return Err(Stop::NobodyMayRun);
            };
            let band = self.ranks.index(rank);
            let caps = &self.caps;
            let room = |flow: u32, _tenant: u32| room(caps.room(flow));
            match self.queues.front(&view, band, &room, parking) {
                Front::Ready(waiter) => return Ok((rank, band, waiter)),
                Front::Empty => candidates &= !(1 << rank),
                Front::Budget => return Err(Stop::Budget),
            }
        }
    }

    /// Takes out the waiter that [`next_waiter`](Self::next_waiter) found. After its charge, so that the
    /// queues know whether its tenant still has room.
    #[inline(always)]
    pub(super) fn dequeue(&mut self, view: SlabView<'_>, band: u32, idx: u32, deadline_ns: u64) {
        let caps = &self.caps;
        let room = |flow: u32, _tenant: u32| room(caps.room(flow));
        self.queues.take_front(&view, band, &room);
        if deadline_ns != u64::MAX {
            self.wheel.cancel(&view, idx);
        }
    }

    /// The grant of the waiter that [`next_waiter`](Self::next_waiter) found, but for the slot itself and
    /// for telling.
    #[inline(always)]
    pub(super) fn grant(
        &mut self,
        view: SlabView<'_>,
        eligible: BandMask,
        (rank, band): (u32, u32),
        waiter: &Waiter,
        cost: u32,
        deadline_ns: u64,
    ) {
        self.policy.record(eligible, rank);
        if waiter.flow != NONE {
            self.caps.take(waiter.flow, cost);
        }
        self.dequeue(view, band, waiter.idx, deadline_ns);
        self.stats.granted += 1;
    }

    /// `count` permits of a flow ended: whoever was held up by its caps may run again.
    #[inline(always)]
    pub(super) fn give_back(&mut self, view: SlabView<'_>, flow: u32, count: u32) {
        if flow != NONE {
            let freed = self.caps.give(flow, count);
            if freed != Freed::default() && self.queues.waiting() != 0 {
                self.unpark(view, flow, freed);
            }
        }
    }

    #[inline(never)]
    pub(super) fn unpark(&mut self, view: SlabView<'_>, flow: u32, freed: Freed) {
        if planted!("b1") {
            return;
        }
        if freed.flow {
            self.queues.flow_has_room(&view, flow);
        }
        if freed.tenant {
            let tenant = self.caps.tenant_of(flow);
            self.queues.tenant_has_room(&view, tenant);
        }
    }

    /// Puts an owned entry into its band.
    #[inline(always)]
    pub(super) fn enqueue(
        &mut self,
        view: SlabView<'_>,
        idx: u32,
        band: u32,
        flow: u32,
        deadline_ns: u64,
        about: impl FnOnce() -> RequestView,
    ) {
        if self.queues.is_ranked(band) {
            self.enqueue_ranked(view, idx, band, flow, about);
        } else {
            self.queues.enqueue(&view, idx, band, flow);
        }
        if deadline_ns != u64::MAX {
            self.wheel.insert(&view, idx, deadline_ns);
        }
    }

    /// The same if the band is in an order of its own.
    #[inline(never)]
    fn enqueue_ranked(
        &mut self,
        view: SlabView<'_>,
        idx: u32,
        band: u32,
        flow: u32,
        about: impl FnOnce() -> RequestView,
    ) {
        let rank = self.orders.rank(band, about);
        self.queues.enqueue_ranked(&view, idx, band, flow, rank);
    }

    /// Stores the outcome of a request whose body names a completion queue in its ring; `false`: that
    /// queue is gone. The entry is the caller's to free.
    #[inline(always)]
    pub(super) fn complete(&self, record: &Record, queue: u32) -> bool {
        let Some(ring) = self.open_queues[QueueName::slot(queue)].ring_of(queue) else {
            return false;
        };
        // SAFETY: the holder of this pool's LOCK is the ring's one producer, LOCK orders the pushes, and
        // the submit reserved the place.
        unsafe { ring.push(*record) };
        true
    }

    /// Publishes the earliest deadline; `Some`: it moved forward, so a sleeper may have to be told.
    #[inline(always)]
    pub(super) fn publish_deadline(&mut self, pool: &PoolCore) -> Option<u64> {
        let idle = self.wheel.is_empty() && self.look_again_ns == u64::MAX;
        if idle && self.published_ns == u64::MAX {
            return None;
        }
        self.publish_changed_deadline(pool)
    }

    /// The same after a request with this deadline came or went: without one nothing has changed.
    #[inline(always)]
    pub(super) fn publish_after(&mut self, pool: &PoolCore, deadline_ns: u64) -> Option<u64> {
        if deadline_ns == u64::MAX { None } else { self.publish_changed_deadline(pool) }
    }

    #[inline(never)]
    fn publish_changed_deadline(&mut self, pool: &PoolCore) -> Option<u64> {
        let deadline = self.wheel.next_deadline().unwrap_or(u64::MAX).min(self.look_again_ns);
        let before = core::mem::replace(&mut self.published_ns, deadline);
        if before != deadline {
            pool.publish_deadline(deadline);
        }
        (deadline < before).then_some(deadline)
    }

    /// Step 5: the word to unlock with. `spent`: the budget ended before the walk over the waiters did.
    #[inline(always)]
    pub(super) fn word_after(&self, word: PoolWord, spent: bool) -> PoolWord {
        let waiting = self.queues.waiting();
        let (waiters, blocked) = if waiting == 0 {
            (0, false)
        } else if word.free() <= 0 || (spent && !planted!("s3")) {
            (waiting, false)
        } else {
            (0, !planted!("b2-mark"))
        };
        word.unlocked(waiters, blocked)
    }
}

#[inline(always)]
const fn room(room: CapsRoom) -> Room {
    match room {
        CapsRoom::Yes => Room::Yes,
        CapsRoom::FlowFull => Room::FlowFull,
        CapsRoom::TenantFull => Room::TenantFull,
    }
}
