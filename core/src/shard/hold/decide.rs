//! The decision: who of those who wait gets the next slot, and what the word says afterwards.

use super::super::completions::{QueueName, Record};
use super::super::limits::Wait;
use super::super::rules::{PARKING_BUDGET, Stop};
use super::super::view::SlabView;
use super::Hold;
use crate::admit::word::PoolWord;
use crate::error::Reason;
use crate::queue::Waiter;
use crate::slab::{Body, Phase, State};
use crate::sync::planted;
use crate::types::{HELD, NONE};

/// Lanes without waiters that one unit of a turn's budget may pass in search of somebody to evict.
const LOOKS_PER_UNIT: u32 = 64;

impl Hold<'_, '_> {
    /// Grants the first who may run, again and again, until nobody may, no slot is free or the budget is
    /// spent.
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
            if self.st.observes
                && let Some(stop) = self.grant_all()
            {
                return stop;
            }
            if self.st.queues.waiting() == 0 {
                return Stop::NobodyWaits;
            }
            if self.word.free() <= 0 {
                return Stop::NoSlot;
            }
            if self.st.backends.none_exists() {
                return Stop::NobodyMayRun;
            }
            if self.session.budget == 0 {
                return Stop::Budget;
            }
            let eligible = self.prepare_policy();
            let view = SlabView::new(self.shard);
            let next = if self.st.ranks.is_plain() && !self.has_own_order() {
                let next = self.st.next_waiter(view, eligible, &mut parking);
                next.map(|(band, waiter)| (band, band, waiter))
            } else {
                self.st.next_ranked(view, eligible, &mut parking)
            };
            match next {
                Err(stop) => return stop,
                Ok((rank, band, waiter)) => self.grant(eligible, (rank, band), &waiter),
            }
        }
    }

    /// Whether anybody in these bands has room at key and tenant. A budget that ends here counts as yes:
    /// the unit it may fetch for nothing is given up again.
    pub(in crate::shard) fn is_any_runnable(&mut self, candidates: u64) -> bool {
        self.st.is_any_runnable(SlabView::new(self.shard), candidates)
    }

    /// Gives the waiter a slot, or evicts it if its deadline has passed meanwhile.
    #[inline(always)]
    fn grant(&mut self, eligible: u64, place: (u32, u32), waiter: &Waiter) {
        self.session.spend();
        let idx = waiter.idx;
        // SAFETY: the request waits in this pool, so its entry belongs to the holder of LOCK.
        let body = unsafe { self.shard.slab.with_body(idx, |body| *body) };
        if body.deadline_ns != u64::MAX && self.is_overdue(&body, self.session.now.ns()) {
            // No dispatch: its flow keeps its turn.
            self.unlink(idx);
            self.session.progress.expired += 1;
            let reason = self.st.backends.overdue();
            self.st.outcomes.evicted(body.band, reason);
            self.finish_entry(idx, &body, Some(reason));
        } else {
            self.unbook(|| Wait::at(&body));
            self.word = self.word.add_free(-1);
            self.st.gates.count_dispatch();
            let view = SlabView::new(self.shard);
            self.st.grant(view, eligible, place, waiter, body.cost, body.deadline_ns);
            self.tell_own_order(place.0);
            self.session.progress.grants += 1;
            self.finish_entry(idx, &body, None);
        }
    }

    /// Stores the outcome where its owner looks for it: a completion ring, or the entry's state.
    #[inline(always)]
    pub(in crate::shard) fn finish_entry(
        &mut self,
        idx: u32,
        body: &Body,
        evicted: Option<Reason>,
    ) {
        let generation = self.shard.slab.own_state(idx).generation();
        if evicted.is_some() {
            self.st.stats.evicted += 1;
        }
        if body.queue == NONE {
            match evicted {
                None if self.st.tracking.on || body.is_exempt() => {
                    self.track(idx, generation, Phase::Held);
                }
                None => self.shard.slab.set_state(idx, State::new(generation, Phase::Granted)),
                Some(reason) => {
                    self.shard.slab.set_state(idx, State::evicted(generation, reason));
                }
            }
            self.session.notices.wake(idx);
            return;
        }
        self.complete(idx, generation, body, evicted);
    }

    #[inline(always)]
    fn complete(&mut self, idx: u32, generation: u32, body: &Body, evicted: Option<Reason>) {
        let is_tracked = (self.st.tracking.on || body.is_exempt()) && evicted.is_none();
        let charge = (if is_tracked { HELD } else { body.flow }, body.cost);
        let record = Record::new(body.tag, (idx, generation), charge, body.band_index(), evicted);
        if self.st.complete(&record, body.queue) {
            self.session.notices.ring(QueueName::slot(body.queue));
            if is_tracked {
                return self.track(idx, generation, Phase::Running);
            }
        } else {
            self.return_place(body.queue);
            if evicted.is_none() {
                // Its queue is gone, so nobody would ever release this slot: it goes to the next waiter.
                if body.is_exempt() {
                    self.give_exempt(body.flow);
                } else {
                    self.release(body.flow, 1);
                }
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
            let Some((idx, body)) = self.pop_waiter() else { continue };
            self.st.outcomes.evicted(body.band, Reason::ShuttingDown);
            self.finish_entry(idx, &body, Some(Reason::ShuttingDown));
        }
        None
    }

    /// Takes some request out, with its timer, for one unit of budget.
    pub(in crate::shard) fn pop_waiter(&mut self) -> Option<(u32, Body)> {
        self.session.spend();
        let view = SlabView::new(self.shard);
        let idx = self.st.queues.pop_any(&view, LOOKS_PER_UNIT)?;
        // SAFETY: the request waited in this pool, so its entry belongs to the holder of LOCK.
        let body = unsafe { self.shard.slab.with_body(idx, |body| *body) };
        if body.deadline_ns != u64::MAX {
            self.st.wheel.cancel(&view, idx);
        }
        self.unbook(|| Wait::at(&body));
        Some((idx, body))
    }

    /// Step 5: the word to unlock with, and whether work is left that no look at the mail would find.
    #[inline(always)]
    pub(in crate::shard) fn finish(&mut self) -> (PoolWord, bool) {
        let spent = self.stop == Some(Stop::Budget);
        let waiting = self.st.queues.waiting();
        let cut_off = !planted!("chain") && !self.st.chain.is_empty();
        let left = (spent && waiting > 0) || cut_off;
        (self.st.peak, self.st.awaited) = if left { (self.peak, self.awaited) } else { (0, false) };
        self.st.settle_calm(self.shard);
        let word = self.st.word_after(self.word, spent);
        let is_marked = word.waiters() == 0 && self.ceiling_blocks();
        (if is_marked { word.unlocked(0, true) } else { word }, left)
    }
}
