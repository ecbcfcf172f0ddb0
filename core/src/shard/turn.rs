//! One turn: everything a caller does with LOCK in hand, and the second look after it.

use super::completions::MAX_QUEUES;
use super::hold::{Answer, Hold, Newcomer, Own, Session, Submission};
use super::pool::PoolCore;
use super::{Progress, Shard};
use crate::admit::word::{PoolGate, PoolWord, TryLock};
use crate::clock::Now;
use crate::sync::{Ordering, fence, planted};
use crate::types::TURN_BUDGET;

/// Leaves the pool dead if the critical section unwinds: LOCK stays set, later calls answer `Poisoned`, and
/// the futures that wait and who sleeps on a completion queue are woken to learn it.
pub(super) struct Poison<'s> {
    shard: &'s Shard,
    gate: &'s PoolGate,
    word: PoolWord,
}

impl<'s> Poison<'s> {
    /// For the holder of LOCK, which took it as `word`.
    #[inline(always)]
    pub(super) const fn new(shard: &'s Shard, gate: &'s PoolGate, word: PoolWord) -> Self {
        Self { shard, gate, word }
    }

    /// The critical section is over.
    #[inline(always)]
    pub(super) const fn disarm(self) {
        core::mem::forget(self);
    }
}

impl Drop for Poison<'_> {
    #[cold]
    fn drop(&mut self) {
        self.gate.poison(self.word);
        // ORDERING: SeqCst fence between DEAD and the look for wakers and sleepers; pairs with the
        // registration of a waker, or the announcement of a sleep, before the look at DEAD: he sees DEAD, or
        // is woken.
        fence(Ordering::SeqCst);
        if !planted!("dead") {
            self.shard.wake_all();
        }
    }
}

impl Shard {
    /// Runs a turn with LOCK taken as `word`: the own command, then whatever the looks after the unlocks
    /// find, within the session's budget. What is left goes to the scheduler ring.
    pub(super) fn turn(
        &self,
        pool: &PoolCore,
        word: PoolWord,
        own: Own,
        session: &mut Session<'_>,
    ) -> Answer {
        self.turn_with(pool, word, session, |hold| hold.first(own))
    }

    /// The turn of a submit that was too much for a quick one.
    #[cold]
    #[inline(never)]
    pub(super) fn turn_submit(&self, pool: &PoolCore, word: PoolWord, sub: Submission) -> Answer {
        let now = Now::lazy(&self.clock);
        let mut session = Session::new(&now, TURN_BUDGET);
        self.turn_with(pool, word, &mut session, |hold| hold.first_submit(&sub))
    }

    /// The turn of a release that was too much for a quick one.
    #[cold]
    #[inline(never)]
    pub(super) fn turn_release(
        &self,
        pool: &PoolCore,
        word: PoolWord,
        flow: u32,
        charged: u32,
        actual: u32,
    ) {
        let now = Now::lazy(&self.clock);
        let mut session = Session::new(&now, TURN_BUDGET);
        self.turn_with(pool, word, &mut session, |hold| hold.first_release(flow, charged, actual));
    }

    /// The turn of a `try_admit` that was too much for a quick one.
    #[cold]
    #[inline(never)]
    pub(super) fn turn_try(&self, pool: &PoolCore, word: PoolWord, sub: Newcomer) -> Answer {
        let sub = sub.now_or_never();
        let now = Now::lazy(&self.clock);
        let mut session = Session::new(&now, TURN_BUDGET);
        let answer = self.turn(pool, word, Own::Try(sub), &mut session);
        self.try_with_recalled_unit(pool, &sub, answer)
    }

    #[inline(always)]
    fn turn_with(
        &self,
        pool: &PoolCore,
        word: PoolWord,
        session: &mut Session<'_>,
        first: impl FnOnce(&mut Hold<'_, '_>) -> Answer,
    ) -> Answer {
        let (answer, left) = self.hold(pool, word, session, first);
        if left || (!planted!("l1-look") && pool.has_mail()) {
            self.turn_again(pool, session, left);
        }
        session.deliver(self);
        answer
    }

    /// Work was left or came in meanwhile: on with it while there is budget, else schedule the pool,
    /// after the unlock and never before. With the engine gone nobody polls: then the caller goes on, budget by
    /// budget, until nothing is left.
    #[cold]
    #[inline(never)]
    #[allow(
        clippy::redundant_closure_for_method_calls,
        reason = "the method is not general over its lifetimes"
    )]
    pub(super) fn turn_again(&self, pool: &PoolCore, session: &mut Session<'_>, mut left: bool) {
        loop {
            if session.budget == 0 || left {
                session.progress.more = true;
                let forgets = planted!("s2-told");
                if !forgets && !planted!("s1") {
                    self.schedule(pool);
                }
                if !self.is_orphaned() {
                    return;
                }
                session.deliver(self);
                session.budget = TURN_BUDGET;
            }
            // Taken: the other holder looks after us.
            let TryLock::Ours(word) = pool.gate.try_lock() else { return };
            left = self.hold(pool, word, session, |hold| hold.again()).1;
            if !left && !pool.has_mail() {
                return;
            }
        }
    }

    /// One hold of LOCK: `f` on the plain state, then the unlock and its fence.
    #[inline(always)]
    pub(super) fn hold<R>(
        &self,
        pool: &PoolCore,
        word: PoolWord,
        session: &mut Session<'_>,
        f: impl FnOnce(&mut Hold<'_, '_>) -> R,
    ) -> (R, bool) {
        let poison = Poison::new(self, &pool.gate, word);
        // SAFETY: the caller took LOCK, and gives it back by the store below.
        let (answer, word, left, deadline) = unsafe {
            pool.with_state(|st| {
                let mut hold = Hold::new(self, pool, st, word, session);
                let answer = f(&mut hold);
                if let Some(ceiling) = self.ceiling.as_deref() {
                    hold.settle_ceiling(ceiling);
                }
                hold.settle_look_again();
                let deadline = hold.st.publish_deadline(pool);
                let (word, left) = hold.finish();
                (answer, word, left, deadline)
            })
        };
        core::mem::forget(poison);
        if planted!("s1") && left {
            self.schedule(pool);
        }
        pool.gate.unlock(word);
        if !planted!("l1-fence") {
            // ORDERING: SeqCst fence between the store that clears LOCK and the looks at ring stamp and
            // urgent list; pairs with the fence of `execute` between push and try LOCK.
            fence(Ordering::SeqCst);
        }
        if let Some(deadline_ns) = deadline {
            self.sleeper.deadline_moved(deadline_ns);
        }
        (answer, left)
    }

    /// Goes on for a [quick](super::quick) turn that found more to decide, with LOCK still held as `word`.
    #[cold]
    #[inline(never)]
    pub(super) fn turn_rest(&self, pool: &PoolCore, word: PoolWord) {
        let now = Now::lazy(&self.clock);
        let mut session = Session::new(&now, TURN_BUDGET - 1);
        self.turn_with(pool, word, &mut session, |hold| {
            hold.again();
            Answer::Done
        });
    }

    /// One hold without an own command; what is left goes to the scheduler ring.
    #[allow(
        clippy::redundant_closure_for_method_calls,
        reason = "the method is not general over its lifetimes"
    )]
    pub(super) fn hold_once(&self, pool: &PoolCore, word: PoolWord, session: &mut Session<'_>) {
        let ((), left) = self.hold(pool, word, session, |hold| hold.again());
        if left || pool.has_mail() {
            self.turn_again(pool, session, left);
        }
    }

    /// A pool died. Who waits for another pool is woken for nothing.
    #[cold]
    fn wake_all(&self) {
        for idx in 0..self.slab.capacity() {
            self.wake(idx);
        }
        for queue in (0..MAX_QUEUES).filter_map(|slot| self.queues.get(slot)) {
            // Behind the fence of our caller.
            queue.bell().ring_fenced();
        }
    }

    /// A turn without an own command, if LOCK is free: the keeper's, the host's and the shard thread's.
    pub fn try_turn(&self, pool: &PoolCore, now: &Now<'_>, budget: u32) -> Progress {
        let mut session = Session::new(now, budget);
        if let TryLock::Ours(word) = pool.gate.try_lock() {
            self.turn(pool, word, Own::Nothing, &mut session);
        }
        session.progress
    }

    /// A turn that calls `pause` with LOCK still in hand, as if its thread had lost the core there; `false`:
    /// LOCK was taken. For tests of what others may do meanwhile: nothing else of the host runs under LOCK.
    #[cold]
    pub(crate) fn paused_turn(&self, pool: &PoolCore, pause: impl FnOnce()) -> bool {
        let TryLock::Ours(word) = pool.gate.try_lock() else { return false };
        let now = Now::lazy(&self.clock);
        let mut session = Session::new(&now, TURN_BUDGET);
        let ((), left) = self.hold(pool, word, &mut session, |hold| {
            hold.again();
            pause();
        });
        if left || pool.has_mail() {
            self.turn_again(pool, &mut session, left);
        }
        session.deliver(self);
        true
    }
}
