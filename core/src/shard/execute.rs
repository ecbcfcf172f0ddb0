//! The ways in: from the callers' side, what is tried, what is pushed and what is posted.

use super::codes::{self, Node};
use super::completions::QueueName;
use super::hold::{Answer, Newcomer, Own, Packed, Session, Submission};
use super::pool::{Marks, PoolCore};
use super::{Decider, Shard};
use crate::admit::word::TryLock;
use crate::clock::Now;
use crate::error::Reason;
use crate::ring::command::Command;
use crate::ring::urgent::Asked;
use crate::slab::{Phase, State};
use crate::sync::{Ordering, fence, planted};
use crate::types::{MAX_BANDS, NONE, TURN_BUDGET};

impl Shard {
    /// Admits a flowless request without the lock, if nothing closes the fast path. Lock-free.
    #[inline(always)]
    pub fn admit_fast(&self, pool: &PoolCore, band: u8) -> bool {
        pool.gate.admit(usize::from(band) % MAX_BANDS, || pool.ring.is_empty())
    }

    /// Grants or queues. Never waits for another thread.
    #[inline(always)]
    pub fn submit(&self, pool: &PoolCore, submission: &Submission) -> Answer {
        if submission.flow == NONE && self.admit_fast(pool, submission.band) {
            return Answer::Granted;
        }
        self.submit_locked(pool, submission).answer()
    }

    /// [`Shard::submit`] when the fast path is closed.
    #[inline(always)]
    pub(crate) fn submit_locked(&self, pool: &PoolCore, submission: &Submission) -> Packed {
        if self.decider == Decider::Caller {
            match pool.gate.lock_within_backoff() {
                TryLock::Ours(word) => return self.submit_held(pool, word, submission),
                TryLock::Taken => {}
                TryLock::Dead => return Answer::Rejected(Reason::Poisoned).into(),
            }
        }
        self.submit_packed_by_ring(pool, *submission)
    }

    #[cold]
    #[inline(never)]
    fn submit_packed_by_ring(&self, pool: &PoolCore, submission: Submission) -> Packed {
        self.submit_by_ring(pool, submission).into()
    }

    fn submit_by_ring(&self, pool: &PoolCore, submission: Submission) -> Answer {
        if submission.timeout_ns == 0 {
            // Now or never: applied later it would always be too late, free slot or not.
            return match self.try_admit(pool, &submission) {
                Answer::Rejected(Reason::WouldQueue) => Answer::Rejected(Reason::Deadline),
                answer => answer,
            };
        }
        let ring = match submission.queue {
            NONE => None,
            name => {
                self.queues.get(QueueName::slot(name)).map(|queue| queue.ring(pool.engine_index()))
            }
        };
        // The place first: whatever is in the ring can be told its outcome.
        if ring.is_some_and(|ring| !ring.reserve()) {
            return Answer::Rejected(Reason::Busy);
        }
        let answer = self.push_submit(pool, &submission);
        if let (Answer::Rejected(_), Some(ring)) = (answer, ring) {
            ring.unreserve(1);
        }
        answer
    }

    fn push_submit(&self, pool: &PoolCore, submission: &Submission) -> Answer {
        let Some((idx, generation)) = self.slab.take() else {
            return Answer::Rejected(Reason::QueueFull);
        };
        let now = Now::lazy(&self.clock);
        // SAFETY: the index was just taken, so the entry is ours until the push.
        unsafe { self.slab.with_body(idx, |body| submission.write_whole(body, &now)) };
        if pool.ring.push(codes::submit(idx, generation)).is_err() {
            self.slab.give(idx);
            return Answer::Rejected(Reason::Busy);
        }
        self.hand_over(pool);
        Answer::Queued { idx, generation }
    }

    /// Grants now or says why not; queues and posts nothing.
    #[inline(always)]
    pub fn try_admit(&self, pool: &PoolCore, submission: &Submission) -> Answer {
        if submission.flow == NONE && self.admit_fast(pool, submission.band) {
            return Answer::Granted;
        }
        self.try_locked(pool, submission.newcomer())
    }

    /// [`Shard::try_admit`] when the fast path is closed.
    #[inline(always)]
    pub(crate) fn try_locked(&self, pool: &PoolCore, newcomer: Newcomer) -> Answer {
        match pool.gate.lock_within_backoff() {
            TryLock::Ours(word) => match self.try_held(pool, word, newcomer) {
                Some(answer) => answer,
                None => self.turn_try(pool, word, newcomer),
            },
            TryLock::Taken => Answer::Rejected(Reason::Busy),
            TryLock::Dead => Answer::Rejected(Reason::Poisoned),
        }
    }

    /// A try that lacked only a unit of the ceiling has recalled one: once more.
    pub(super) fn try_with_recalled_unit(
        &self,
        pool: &PoolCore,
        sub: &Submission,
        answer: Answer,
    ) -> Answer {
        if self.ceiling.is_none() || answer != Answer::Rejected(Reason::WouldQueue) {
            return answer;
        }
        let TryLock::Ours(word) = pool.gate.try_lock() else { return answer };
        let now = Now::lazy(&self.clock);
        self.turn(pool, word, Own::Try(*sub), &mut Session::new(&now, TURN_BUDGET))
    }

    /// Gives a value permit's slot back. Never refused, never waits.
    #[inline(always)]
    pub fn release(&self, pool: &PoolCore, flow: u32, charged: u32, actual: u32) {
        if flow != NONE || !pool.gate.release() {
            self.release_locked(pool, flow, charged, actual);
        }
    }

    /// [`Shard::release`] when the fast path is closed.
    #[inline(always)]
    pub(crate) fn release_locked(&self, pool: &PoolCore, flow: u32, charged: u32, actual: u32) {
        if self.decider == Decider::Caller
            && let TryLock::Ours(word) = pool.gate.lock_within_backoff()
        {
            self.release_held(pool, word, flow, charged, actual);
            return;
        }
        self.leave_release(pool, flow, charged, actual);
    }

    #[cold]
    fn leave_release(&self, pool: &PoolCore, flow: u32, charged: u32, actual: u32) {
        if pool.gate.is_dead() {
            return;
        }
        self.leave_word(pool, codes::release(flow, charged, actual), || {
            let node = pool.owed(flow);
            let id = if flow == NONE { Node::Pool } else { Node::Flow(flow) }.id();
            if node.owe(i64::from(actual) - i64::from(charged)) {
                pool.urgent().push(id, node.node());
            }
        });
    }

    /// A tracked permit ended. Never refused, never waits; void if it was taken back meanwhile.
    pub fn finish(&self, pool: &PoolCore, idx: u32, generation: u32, actual: u32) {
        let own = Own::Finish { idx, generation, actual };
        let command = codes::finish(idx, generation, actual);
        self.execute(pool, own, command, || self.ask(pool, idx, generation, codes::FINISH));
    }

    /// Takes a request out of the queue if it still waits.
    pub fn cancel(&self, pool: &PoolCore, idx: u32, generation: u32) -> Answer {
        if self.slab.state(idx).is_none_or(|state| state.generation() != generation) {
            return Answer::Stale;
        }
        if planted!("x1") && self.slab.own_state(idx).phase() == Phase::Queued {
            self.slab.set_state(idx, State::evicted(generation, Reason::Cancelled));
            return Answer::Cancelled;
        }
        let own = Own::Cancel { idx, generation };
        let command = codes::cancel(idx, generation);
        self.execute(pool, own, command, || self.ask(pool, idx, generation, codes::CANCEL))
    }

    /// The owner of the ticket is gone: never gets the permit, a slot already granted goes on.
    pub fn abandon(&self, pool: &PoolCore, idx: u32, generation: u32) {
        let own = Own::Abandon { idx, generation };
        let command = codes::abandon(idx, generation);
        self.execute(pool, own, command, || self.ask(pool, idx, generation, codes::ABANDON));
    }

    /// Asks for a new size; in force when applied, at once if LOCK is free.
    pub fn resize(&self, pool: &PoolCore, slots: u32) {
        let is_early = planted!("m13");
        if is_early {
            Self::post_mark(pool, Marks::RESIZE);
        }
        pool.set_resize_to(slots);
        if !is_early {
            Self::post_mark(pool, Marks::RESIZE);
        }
        self.hand_over(pool);
    }

    /// Sets the saturation the gates and the WFQ mode use; `None`: running / capacity again.
    pub fn set_saturation(&self, pool: &PoolCore, saturation: Option<f64>) {
        pool.set_gauge(saturation);
        self.mark(pool, Marks::GATE);
    }

    /// Ends admits; who waits may still be granted.
    pub fn drain(&self, pool: &PoolCore) {
        self.mark(pool, Marks::DRAIN);
    }

    /// Ends admits and evicts who waits.
    pub fn shut_down(&self, pool: &PoolCore) {
        self.mark(pool, Marks::SHUTDOWN);
    }

    fn mark(&self, pool: &PoolCore, bit: u64) {
        Self::post_mark(pool, bit);
        self.hand_over(pool);
    }

    fn post_mark(pool: &PoolCore, bit: u64) {
        if pool.marks().mark(bit) {
            pool.urgent().push(Node::Marks.id(), pool.marks());
        }
    }

    fn ask(&self, pool: &PoolCore, idx: u32, generation: u32, bit: u32) {
        let node = self.slab.node(idx);
        if node.ask(generation, bit) == Asked::Link {
            pool.urgent().push(idx, node);
        }
    }

    /// Steps 1 to 4 of `execute`, for commands that are never refused: with LOCK at once, else by the
    /// ring, else posted.
    #[inline(always)]
    fn execute(&self, pool: &PoolCore, own: Own, command: Command, post: impl FnOnce()) -> Answer {
        if self.decider == Decider::Caller {
            match pool.gate.lock_within_backoff() {
                TryLock::Ours(word) => {
                    let now = Now::lazy(&self.clock);
                    let mut session = Session::new(&now, TURN_BUDGET);
                    return self.turn(pool, word, own, &mut session);
                }
                TryLock::Taken => {}
                // Nobody will ever decide again: a no-op that is accepted.
                TryLock::Dead => return Answer::Done,
            }
        }
        self.leave_word(pool, command, post)
    }

    #[cold]
    fn leave_word(&self, pool: &PoolCore, command: Command, post: impl FnOnce()) -> Answer {
        if pool.ring.push(command).is_err() {
            post();
            if planted!("u1-post") {
                return Answer::Requested;
            }
        }
        self.hand_over(pool);
        Answer::Requested
    }

    /// Steps 3 and 4: either we see LOCK clear and run what we left, or the holder sees it. With the
    /// threads driver the shard's thread is told instead.
    fn hand_over(&self, pool: &PoolCore) {
        if self.decider == Decider::Thread {
            self.schedule(pool);
            if !self.is_orphaned() {
                return;
            }
        }
        if !planted!("l1-fence") {
            // ORDERING: SeqCst fence between the push (or post) and the try for LOCK; pairs with the
            // fence after every unlock.
            fence(Ordering::SeqCst);
        }
        let now = Now::lazy(&self.clock);
        self.try_turn(pool, &now, TURN_BUDGET);
    }
}
