//! The decision: who of those who wait gets the next slot, and what the word says afterwards.

use super::super::completions::{QueueName, Record};
use super::super::view::SlabView;
use super::{Hold, Stop};
use crate::admit::caps::Room as CapsRoom;
use crate::admit::word::PoolWord;
use crate::error::Reason;
use crate::queue::{Front, Room, Waiter};
use crate::slab::{Body, Phase, State};
use crate::sync::planted;
use crate::types::NONE;

/// Lanes at their cap that one hold may set aside; a bound on the walk, far above what a turn needs.
const PARKING_BUDGET: u32 = 4_096;

impl Hold<'_, '_> {
    /// Grants the first who may run, again and again, until nobody may, no slot is free or the budget is
    /// spent (`design.md` section 4).
    #[inline(always)]
    pub(in crate::shard) fn decide(&mut self) -> Stop {
        let stop = if self.st.queues.waiting() == 0 { Stop::NobodyWaits } else { self.walk() };
        self.stop = Some(stop);
        stop
    }

    #[inline(always)]
    fn walk(&mut self) -> Stop {
        let mut parking = PARKING_BUDGET;
        loop {
            if self.st.shut
                && let Some(stop) = self.evict_all()
            {
                return stop;
            }
            if self.st.queues.waiting() == 0 {
                return Stop::NobodyWaits;
            }
            if self.word.free() <= 0 {
                return Stop::NoSlot;
            }
            if self.session.budget == 0 {
                return Stop::Budget;
            }
            let eligible = self.prepare_policy();
            match self.next_waiter(eligible, &mut parking) {
                Err(stop) => return stop,
                Ok((band, waiter)) => self.grant(eligible, band, &waiter),
            }
        }
    }

    /// Walks the bands in rank order, skipping gated and empty ones, to the first waiter with room at its
    /// key and tenant.
    #[inline(always)]
    fn next_waiter(&mut self, eligible: u64, parking: &mut u32) -> Result<(u32, Waiter), Stop> {
        let mut candidates = eligible & self.st.queues.ready();
        let view = SlabView::new(self.shard);
        loop {
            let Some(band) = self.st.policy.best(candidates) else {
                return Err(Stop::NobodyMayRun);
            };
            let caps = &self.st.caps;
            let room = |flow: u32, _tenant: u32| match caps.room(flow) {
                CapsRoom::Yes => Room::Yes,
                CapsRoom::FlowFull => Room::FlowFull,
                CapsRoom::TenantFull => Room::TenantFull,
            };
            match self.st.queues.front(&view, band, &room, parking) {
                Front::Ready(waiter) => return Ok((band, waiter)),
                Front::Empty => candidates &= !(1 << band),
                Front::Budget => return Err(Stop::Budget),
            }
        }
    }

    /// Whether anybody in these bands has room at key and tenant. A budget that ends here counts as yes:
    /// the unit it may fetch for nothing is given up again.
    pub(in crate::shard) fn is_any_runnable(&mut self, mut candidates: u64) -> bool {
        let (view, mut parking) = (SlabView::new(self.shard), PARKING_BUDGET);
        let caps = &self.st.caps;
        let room = |flow: u32, _tenant: u32| match caps.room(flow) {
            CapsRoom::Yes => Room::Yes,
            CapsRoom::FlowFull => Room::FlowFull,
            CapsRoom::TenantFull => Room::TenantFull,
        };
        while candidates != 0 {
            let band = candidates.trailing_zeros();
            candidates &= candidates - 1;
            if self.st.queues.front(&view, band, &room, &mut parking) != Front::Empty {
                return true;
            }
        }
        false
    }

    /// Gives the waiter a slot, or evicts it if its deadline has passed meanwhile.
    #[inline(always)]
    fn grant(&mut self, eligible: u64, band: u32, waiter: &Waiter) {
        self.session.spend();
        let idx = waiter.idx;
        // SAFETY: the request waits in this pool, so its entry belongs to the holder of LOCK.
        let body = unsafe { self.shard.slab.with_body(idx, |body| *body) };
        let expired = body.deadline_ns != u64::MAX && body.deadline_ns <= self.session.now.ns();
        if !expired {
            self.st.policy.record(eligible, band);
            self.charge(waiter.flow, body.cost);
        }
        self.dequeue_front(band, &body, idx);
        if expired {
            self.session.progress.expired += 1;
            self.finish_entry(idx, &body, Some(Reason::Deadline));
        } else {
            self.session.progress.grants += 1;
            self.st.stats.granted += 1;
            self.finish_entry(idx, &body, None);
        }
    }

    #[inline(always)]
    fn dequeue_front(&mut self, band: u32, body: &Body, idx: u32) {
        let view = SlabView::new(self.shard);
        let caps = &self.st.caps;
        let room = |flow: u32, _tenant: u32| match caps.room(flow) {
            CapsRoom::Yes => Room::Yes,
            CapsRoom::FlowFull => Room::FlowFull,
            CapsRoom::TenantFull => Room::TenantFull,
        };
        self.st.queues.take_front(&view, band, &room);
        if body.deadline_ns != u64::MAX {
            self.st.wheel.cancel(&view, idx);
        }
    }

    /// Stores the outcome where its owner looks for it: a completion ring, or the entry's state.
    #[inline(always)]
    pub(super) fn finish_entry(&mut self, idx: u32, body: &Body, evicted: Option<Reason>) {
        let generation = self.shard.slab.own_state(idx).generation();
        if evicted.is_some() {
            self.st.stats.evicted += 1;
        }
        if body.queue == NONE {
            let state = match evicted {
                None => State::new(generation, Phase::Granted),
                Some(reason) => State::evicted(generation, reason),
            };
            self.shard.slab.set_state(idx, state);
            self.session.notices.wake(idx);
            return;
        }
        self.complete(idx, generation, body, evicted);
    }

    #[inline(always)]
    fn complete(&mut self, idx: u32, generation: u32, body: &Body, evicted: Option<Reason>) {
        let slot = QueueName::slot(body.queue);
        let is_open = self.st.open_queues[slot].name == body.queue;
        let queue = if is_open { self.shard.queues.get(slot) } else { None };
        if let Some(queue) = queue {
            let record = Record {
                tag: body.tag,
                idx,
                generation,
                flow: body.flow,
                cost: body.cost,
                band: body.band,
                evicted,
            };
            // SAFETY: the holder of this pool's LOCK is the ring's one producer, LOCK orders the pushes,
            // and the submit reserved the place.
            unsafe { queue.ring(self.pool.engine_index()).push(record) };
            self.session.notices.ring(slot);
        } else {
            self.return_place(body.queue);
            if evicted.is_none() {
                // Its queue is gone, so nobody would ever release this slot: it goes to the next waiter.
                self.release(body.flow, 1);
            }
        }
        self.shard.slab.give_cached(&mut self.st.free, idx);
    }

    /// The place reserved for an outcome that nobody will be told.
    #[cold]
    pub(super) fn return_place(&mut self, name: u32) {
        let slot = QueueName::slot(name);
        let Some(queue) = self.shard.queues.get(slot) else { return };
        let (ring, open) = (queue.ring(self.pool.engine_index()), &mut self.st.open_queues[slot]);
        // At most a batch is kept: who submits without LOCK finds what lies in the ring only.
        if open.name == name && u64::from(open.places) < ring.batch() {
            open.places += 1;
        } else {
            ring.unreserve(1);
        }
    }

    /// Evicts everybody who waits: the pool is shut down. `Some`: the budget ended first.
    #[cold]
    fn evict_all(&mut self) -> Option<Stop> {
        while self.st.queues.waiting() > 0 {
            if self.session.budget == 0 {
                return Some(Stop::Budget);
            }
            self.session.spend();
            let view = SlabView::new(self.shard);
            let Some(idx) = self.st.queues.pop_any(&view) else { break };
            // SAFETY: the request waited in this pool, so its entry belongs to the holder of LOCK.
            let body = unsafe { self.shard.slab.with_body(idx, |body| *body) };
            if body.deadline_ns != u64::MAX {
                self.st.wheel.cancel(&view, idx);
            }
            self.finish_entry(idx, &body, Some(Reason::ShuttingDown));
        }
        None
    }

    /// Publishes the earliest deadline; `Some`: it moved forward, so a sleeper may have to be told.
    #[inline(always)]
    pub(in crate::shard) fn publish_deadline(&mut self) -> Option<u64> {
        if self.st.wheel.is_empty() && self.st.published_ns == u64::MAX {
            return None;
        }
        self.publish_changed_deadline()
    }

    #[inline(never)]
    fn publish_changed_deadline(&mut self) -> Option<u64> {
        let deadline = self.st.wheel.next_deadline().unwrap_or(u64::MAX);
        let before = core::mem::replace(&mut self.st.published_ns, deadline);
        if before != deadline {
            self.pool.publish_deadline(deadline);
        }
        (deadline < before).then_some(deadline)
    }

    /// Step 5: the word to unlock with, and whether work is left that no look at the mail would find.
    #[inline(always)]
    pub(in crate::shard) fn finish(&mut self) -> (PoolWord, bool) {
        let waiting = self.st.queues.waiting();
        let spent = self.stop == Some(Stop::Budget);
        let (waiters, blocked) = if waiting == 0 {
            (0, false)
        } else if self.word.free() <= 0 || (spent && !planted!("s3")) {
            (waiting, false)
        } else {
            (0, !planted!("b2-mark"))
        };
        let blocked = blocked || (waiters == 0 && self.ceiling_blocks());
        let cut_off = !planted!("chain") && !self.st.chain.is_empty();
        let left = (spent && waiting > 0) || cut_off;
        self.st.peak = if left { self.peak } else { 0 };
        (self.word.unlocked(waiters, blocked), left)
    }
}
