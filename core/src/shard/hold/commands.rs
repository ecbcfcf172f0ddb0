//! One command each, applied to the plain state.

use super::super::codes::{self, Code, Node};
use super::super::limits::Wait;
use super::super::pool::Marks;
use super::super::view::SlabView;
use super::{Answer, Hold};
use crate::admit::word::PoolGate;
use crate::error::Reason;
use crate::ring::urgent;
use crate::slab::{Body, Phase};
use crate::sync::planted;
use crate::types::extend::RequestView;
use crate::types::{MAX_BANDS, NONE, TURN_BUDGET};
use arrayvec::ArrayVec;

impl Hold<'_, '_> {
    /// `count` slots of a flow come back.
    #[inline(always)]
    pub(in crate::shard) fn release(&mut self, flow: u32, count: u32) {
        #[allow(clippy::cast_possible_wrap, reason = "at most the pool's size, 2^20")]
        let slots = count as i32;
        self.word = self.word.add_free(slots);
        self.st.give_back(SlabView::new(self.shard), flow, count);
    }

    /// Cancel of a ticket. `own`: the caller is told at once, so no completion follows.
    pub(super) fn cancel(&mut self, idx: u32, generation: u32, own: bool) -> Answer {
        let Some(state) = self.shard.slab.state(idx) else { return Answer::Stale };
        if state.generation() != generation && !planted!("n1-drain") {
            return Answer::Stale;
        }
        match state.phase() {
            Phase::Free => return Answer::Stale,
            Phase::Granted if planted!("m08") && !own => {}
            Phase::Granted | Phase::Evicted | Phase::Held | Phase::Running => {
                return Answer::TooLate;
            }
            // Its command is still in the ring; the generation makes it void there.
            Phase::New if planted!("c3") => return Answer::Done,
            Phase::New => {}
            Phase::Queued => self.unlink(idx),
        }
        // SAFETY: a New entry was published by its command, a Queued one waits here: LOCK owns both.
        let body = unsafe { self.shard.slab.with_body(idx, |body| *body) };
        self.st.outcomes.evicted(body.band, Reason::Cancelled);
        if own && body.queue != NONE {
            self.st.stats.evicted += 1;
            self.return_place(body.queue);
            self.shard.slab.give_cached(&mut self.st.free, idx);
        } else {
            self.finish_entry(idx, &body, Some(Reason::Cancelled));
        }
        Answer::Cancelled
    }

    /// The caller is gone: out of the queue, or the slot goes on to the next waiter.
    pub(super) fn abandon(&mut self, idx: u32, generation: u32) -> Answer {
        let Some(state) = self.shard.slab.state(idx) else { return Answer::Stale };
        if state.generation() != generation {
            return Answer::Stale;
        }
        match state.phase() {
            Phase::Free => return Answer::Stale,
            Phase::Evicted => {}
            Phase::New => self.count_abandoned(idx),
            Phase::Queued => {
                self.unlink(idx);
                self.count_abandoned(idx);
            }
            Phase::Held | Phase::Running => {
                self.end_tracked(idx, generation, None);
                return Answer::Cancelled;
            }
            Phase::Granted => {
                // SAFETY: the one holder of the ticket abandons it, so it is ours again.
                let flow = unsafe { self.shard.slab.with_body(idx, |body| body.flow) };
                if !planted!("c1") {
                    self.release(flow, 1);
                }
            }
        }
        self.shard.slab.give_cached(&mut self.st.free, idx);
        Answer::Cancelled
    }

    fn count_abandoned(&mut self, idx: u32) {
        // SAFETY: its one holder abandons it, and its command or its band handed it to the holder of LOCK.
        let band = unsafe { self.shard.slab.with_body(idx, |body| body.band) };
        self.st.outcomes.evicted(band, Reason::Cancelled);
    }

    /// Takes a waiting request out of its band and its timer out of the wheel.
    pub(super) fn unlink(&mut self, idx: u32) {
        let view = SlabView::new(self.shard);
        self.st.queues.remove(&view, idx);
        // SAFETY: the request waited in this pool, so its entry belongs to the holder of LOCK.
        let (wait, timed) = unsafe {
            let of = |body: &mut Body| (Wait::at(body), body.deadline_ns != u64::MAX);
            self.shard.slab.with_body(idx, of)
        };
        if timed {
            self.st.wheel.cancel(&view, idx);
        }
        self.unbook(|| wait);
    }

    /// Applies ring commands up to the budget, in ring order.
    #[inline(never)]
    pub(super) fn drain_ring(&mut self) {
        let mut drain = self.pool.ring.drain();
        loop {
            if drain.position() >= self.st.closing_at {
                self.end_admits();
            }
            if self.session.budget == 0 {
                break;
            }
            let Some(command) = drain.next() else { break };
            self.session.spend();
            self.session.progress.commands += 1;
            self.st.stats.commands += 1;
            match codes::decode(command) {
                Code::Submit { idx, generation } => self.ring_submit(idx, generation),
                Code::Release { flow, charged, actual } => {
                    self.release(if planted!("m07") { NONE } else { flow }, 1);
                    if charged != actual {
                        self.st.caps.settle(flow, charged, actual);
                    }
                }
                Code::Cancel { idx, generation } => drop(self.cancel(idx, generation, false)),
                Code::Abandon { idx, generation } => drop(self.abandon(idx, generation)),
                Code::Finish { idx, generation, actual } => {
                    self.end_tracked(idx, generation, Some(actual));
                }
            }
        }
    }

    /// A submit that came through the ring: void if a cancel was faster.
    fn ring_submit(&mut self, idx: u32, generation: u32) {
        let state = self.shard.slab.own_state(idx);
        if state.generation() != generation || state.phase() != Phase::New {
            return;
        }
        // SAFETY: the command in the ring handed the entry to the holder of LOCK.
        let body = unsafe { self.shard.slab.with_body(idx, |body| *body) };
        let is_closed = self.st.closed;
        let refusal = self.refusal(body.band, body.flow, body.flow_generation, is_closed);
        if let Some(reason) = refusal.filter(|_| !planted!("closed")) {
            if self.is_exempt(reason, body.flow, body.flow_generation) {
                return self.grant_exempt(idx, body);
            }
            self.note_refusal(body.band, body.flow, reason);
            self.finish_entry(idx, &body, Some(reason));
            return;
        }
        if self.st.limits.on
            && let Some(bound) = self.book(&Wait::at(&body))
        {
            let reason = bound.refusal(!self.st.backends.none_exists()).reason;
            self.note_refusal(body.band, body.flow, reason);
            self.finish_entry(idx, &body, Some(reason));
            return;
        }
        let Body { band, flow, deadline_ns, .. } = body;
        let now = self.session.now;
        let about = || RequestView {
            submitted_ns: now.ns(),
            received_ns: if body.received_ns == u64::MAX { now.ns() } else { body.received_ns },
            deadline_ns,
            slo_ns: body.slo_ns,
            cost: body.cost,
            bytes: body.bytes,
            tag: body.tag,
        };
        self.enqueue(idx, generation, band, flow, deadline_ns, about);
    }

    /// Applies what could not wait for room in the ring. What exceeds the budget stays as `chain`.
    #[inline(never)]
    pub(super) fn drain_urgent(&mut self) {
        loop {
            if self.st.chain.is_empty() {
                self.st.chain = self.pool.urgent().take_all();
            }
            while self.session.budget > 0 {
                let next = self.st.chain.next(|id| codes::node(self.shard, self.pool, id));
                let Some((id, word)) = next else { break };
                self.session.spend();
                self.session.progress.commands += 1;
                self.st.stats.commands += 1;
                self.apply_urgent(id, word);
            }
            if self.session.budget == 0 || self.pool.urgent().is_empty() {
                return;
            }
        }
    }

    fn apply_urgent(&mut self, id: u32, word: u64) {
        match codes::node_kind(id) {
            Node::Entry(idx) => {
                let (generation, bits) = urgent::split(word);
                if bits & codes::ABANDON != 0 {
                    self.abandon(idx, generation);
                } else if bits & codes::FINISH != 0 {
                    // There is no room for the actual cost: the estimate stands.
                    self.end_tracked(idx, generation, None);
                } else if bits & codes::CANCEL != 0 {
                    self.cancel(idx, generation, false);
                }
            }
            Node::Flow(flow) => self.pay_owed(flow, word),
            Node::Pool => self.pay_owed(NONE, word),
            Node::Marks => self.apply_marks(word),
        }
    }

    /// All the releases a flow is owed at once, with what they used above or below their estimates.
    fn pay_owed(&mut self, flow: u32, count: u64) {
        self.st.caps.correct(flow, self.pool.owed(flow).take_difference());
        if count > 0 {
            self.release(flow, u32::try_from(count).unwrap_or(u32::MAX));
        }
    }

    /// What changed outside the lock comes into force.
    fn apply_marks(&mut self, bits: u64) {
        if bits & Marks::RESIZE != 0 {
            self.resize(self.pool.resize_to());
        }
        if bits & Marks::GATE != 0 {
            self.st.gates.set_gauge(self.pool.gauge());
            self.st.is_general = self.st.needs_general_turns();
            self.publish_reserves();
        }
        if bits & Marks::MAIL != 0 {
            self.open_mail();
        }
        if bits & (Marks::DRAIN | Marks::SHUTDOWN) != 0 {
            self.close(bits);
        }
    }

    /// Admits end. A submit that was in the ring when the drain came into force still gets its place, behind
    /// a hole too: the ring goes first, over several turns if need be, but only as far as it reached then.
    /// What is claimed later is refused, so that nobody who keeps the ring full postpones the end.
    #[cold]
    fn close(&mut self, bits: u64) {
        self.word = self.word.closed();
        if bits & Marks::SHUTDOWN != 0 {
            self.st.shut = true;
            self.end_admits();
        } else if self.pool.ring.is_drained()
            || (planted!("drain") && !self.pool.ring.has_stamped())
        {
            self.end_admits();
        } else if !self.st.closed {
            // A second drain does not move the end.
            self.st.closing_at = self.st.closing_at.min(self.pool.ring.tail());
        }
    }

    #[cold]
    fn end_admits(&mut self) {
        self.st.closed = true;
        self.st.closing_at = u64::MAX;
    }

    /// Shrinking may leave `free` below zero: nobody is revoked, nobody admitted until it is above again.
    /// Under a ceiling it gives units back as they become idle instead.
    pub(in crate::shard) fn resize(&mut self, slots: u32) {
        self.st.slots = slots;
        self.st.gates.resize(slots);
        if self.shard.ceiling.is_some() {
            self.lease_for(slots);
        } else {
            let difference = i64::from(slots) - i64::from(self.st.size);
            let difference = i32::try_from(difference).unwrap_or(0);
            self.word = self.word.add_free(if planted!("z1") {
                difference.max(-self.word.free().max(0))
            } else {
                difference
            });
            self.st.size = slots;
        }
        self.publish_reserves();
    }

    /// Writes the reserves and steps the epoch, so that a pool-only admit with an old reserve fails.
    pub(in crate::shard) fn publish_reserves(&mut self) {
        for band in 0..MAX_BANDS {
            let Some((_, open)) = self.pool.table().get(band) else { break };
            #[allow(clippy::cast_possible_truncation, reason = "a band index is below 64")]
            let rank = self.st.ranks.rank(band as u32) as usize;
            let reserve = self.st.gates.reserve(rank, self.st.size);
            let is_fast = open && !self.st.ranks.is_made(band) && self.st.allows_fast_admits();
            self.pool.gate.set_reserve(band, if is_fast { reserve } else { PoolGate::GATED });
        }
        if !planted!("g2") {
            self.word = self.word.next_epoch();
        }
    }

    /// Evicts whose deadline has passed, up to the budget.
    #[inline(never)]
    pub(super) fn expire(&mut self) {
        let now = self.session.now.ns();
        let view = SlabView::new(self.shard);
        let mut due = ArrayVec::<u32, { TURN_BUDGET as usize }>::new();
        let mut budget = self.session.budget.min(TURN_BUDGET);
        let before = budget;
        self.st.wheel.advance(&view, now, &mut budget, |idx| due.push(idx));
        self.session.budget -= before - budget;
        for idx in due {
            if self.st.tracking.has_any() && self.is_running(idx) {
                self.session.progress.expired += 1;
                self.reap(idx);
                continue;
            }
            // SAFETY: the timer of a request is set only while it waits here: LOCK owns its entry.
            let body = unsafe { self.shard.slab.with_body(idx, |body| *body) };
            if !self.is_overdue(&body, now) {
                self.look_again_at(idx, &body, now);
                continue;
            }
            self.session.progress.expired += 1;
            self.st.queues.remove(&view, idx);
            self.unbook(|| Wait::at(&body));
            let reason = self.st.backends.overdue();
            self.st.outcomes.evicted(body.band, reason);
            self.finish_entry(idx, &body, Some(reason));
        }
    }
}
