//! Cold calls that wait for LOCK: interning, completion queues, exact views. Never on the path.

use super::Shard;
use super::completions::{OpenQueue, QueueName};
use super::hold::{Hold, Session};
use super::pool::{PoolCore, PoolState, PoolStats};
use super::turn::Poison;
use crate::admit::caps::{Activity, TenantRow, Usage};
use crate::admit::word::{PoolWord, TryLock};
use crate::clock::Now;
use crate::config::flows::{Found, Handle, Look, Made, NewFlow, RowSpec};
use crate::error::Reason;
use crate::sync::{Ordering, fence, yield_now};
use crate::types::TURN_BUDGET;

/// A pool at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PoolView {
    /// Free slots; below zero after a shrink.
    pub free: i32,
    /// Slots.
    pub slots: u32,
    /// Requests running.
    pub running: u32,
    /// Requests waiting.
    pub waiting: u32,
    /// Of these, known to be held up by the cap of their key or tenant.
    pub capped: u32,
    /// Tracked permits that are out.
    pub tracked: u32,
    /// Since when the oldest of them is out, in nanoseconds of the engine's clock; 0: none is.
    pub oldest_since_ns: u64,
    /// Slots taken back from permits that nobody released in time.
    pub reaped: u64,
    /// Requests of exempt flows that run, beside `running`.
    pub exempt: u32,
    /// Admits have ended.
    pub closed: bool,
    /// Counters since the start.
    pub stats: PoolStats,
}

impl PoolView {
    /// A pool nobody can look at any more.
    pub(crate) const NOTHING: Self = Self {
        free: 0,
        slots: 0,
        running: 0,
        waiting: 0,
        capped: 0,
        tracked: 0,
        oldest_since_ns: 0,
        reaped: 0,
        exempt: 0,
        closed: true,
        stats: PoolStats::NONE,
    };
}

impl PoolState {
    /// What waits for its flow, or runs, keeps it; a command in the ring names its generation, so it does not.
    fn look_at_flow(&mut self, look: &Look) -> Found {
        let Some(Activity { served, is_used, is_pinned }) = self.caps.activity(look.flow) else {
            return Found::Free;
        };
        let in_use = is_used || self.queues.has_waiters(look.flow);
        if in_use || look.was_in_use || served != look.served {
            return Found::Used { served, in_use };
        }
        if is_pinned || !look.is_due {
            return Found::Idle;
        }
        self.caps.forget(look.flow);
        self.queues.forget_flow(look.flow);
        self.refusals.forget(look.flow);
        Found::Forgotten
    }
}

impl Shard {
    /// Waits for LOCK, yielding, and runs `f` on the plain state. The word stays as it was. The caller calls
    /// [`Shard::look_after`] then.
    pub(super) fn locked<R>(
        &self,
        pool: &PoolCore,
        f: impl FnOnce(&mut PoolState, PoolWord) -> R,
    ) -> Result<R, Reason> {
        let word = Self::wait_for_lock(pool)?;
        let poison = Poison::new(self, &pool.gate, word);
        // SAFETY: LOCK was taken above and is given back below.
        let (answer, left) = unsafe { pool.with_state(|st| (f(st, word), !st.chain.is_empty())) };
        poison.disarm();
        // Nothing that decides was touched, so the marks of the last holder stay true.
        pool.gate.unlock(word.without_lock());
        if left || (word.waiters() > 0 && word.free() > 0) {
            // Work a budget left over: the keeper that came for it may have found LOCK taken by us, and
            // gone. No effect if it is still to come.
            self.schedule(pool);
        }
        Ok(answer)
    }

    fn wait_for_lock(pool: &PoolCore) -> Result<PoolWord, Reason> {
        loop {
            match pool.gate.try_lock() {
                TryLock::Ours(word) => return Ok(word),
                TryLock::Taken => yield_now(),
                TryLock::Dead => return Err(Reason::Poisoned),
            }
        }
    }

    /// Waits for LOCK and changes what decisions follow; the next one, in the same hold, follows the new rules.
    /// What `change` replaces it answers, so that it is freed after the unlock.
    pub(crate) fn reconfigure<R>(
        &self,
        pool: &PoolCore,
        change: impl FnOnce(&mut PoolState) -> R,
    ) -> Result<R, Reason> {
        self.reconfigure_held(pool, |hold| change(hold.st))
    }

    /// The same for what changes the word too.
    pub(super) fn reconfigure_held<R>(
        &self,
        pool: &PoolCore,
        change: impl FnOnce(&mut Hold<'_, '_>) -> R,
    ) -> Result<R, Reason> {
        let word = Self::wait_for_lock(pool)?;
        let now = Now::lazy(&self.clock);
        let mut session = Session::new(&now, TURN_BUDGET);
        let (answer, left) = self.hold(pool, word, &mut session, |hold| {
            let answer = change(hold);
            hold.st.is_general = hold.st.needs_general_turns();
            hold.publish_reserves();
            hold.again();
            answer
        });
        if left || pool.has_mail() {
            self.turn_again(pool, &mut session, left);
        }
        session.deliver(self);
        Ok(answer)
    }

    /// The second look after a cold call, which decided nothing: whoever found LOCK taken meanwhile relied
    /// on it. Apart from `locked`, since wakers run here: not while interning holds its mutex.
    pub(crate) fn look_after(&self, pool: &PoolCore) {
        // ORDERING: SeqCst fence, as after every unlock; the look below is the second look.
        fence(Ordering::SeqCst);
        if pool.has_mail() {
            self.try_turn(pool, &Now::lazy(&self.clock), TURN_BUDGET);
        }
    }

    /// Makes the rows of a new flow. Waits for LOCK; the caller looks after the pool.
    ///
    /// # Errors
    ///
    /// [`Reason::Poisoned`].
    pub fn add_flow(&self, pool: &PoolCore, new: &NewFlow) -> Result<Made, Reason> {
        self.locked(pool, |st, _| {
            let RowSpec { cap, weight, exempt } = new.flow;
            let ((flow, generation), tenant) = match new.tenant {
                Ok(tenant) => (st.caps.add_flow(tenant, cap, weight), tenant),
                Err(spec) => {
                    let row = TenantRow {
                        usage: Usage::up_to(spec.cap),
                        weight: spec.weight,
                        group: new.group,
                    };
                    let flow = st.caps.add_tenant(row, cap, weight);
                    (flow, flow.0)
                }
            };
            st.caps.set_exempt(flow, exempt);
            st.queues.add_flow(flow, tenant);
            pool.add_flow_node(flow);
            Made { tenant, flow: Handle { index: flow, generation } }
        })
    }

    /// Finds out which flows were in use, and forgets those that are due and were not. One hold of LOCK; the
    /// caller looks after the pool.
    ///
    /// # Errors
    ///
    /// [`Reason::Poisoned`].
    pub fn look_at_flows(&self, pool: &PoolCore, looks: &mut [Look]) -> Result<(), Reason> {
        self.locked(pool, |st, _| {
            for look in looks {
                look.found = st.look_at_flow(look);
            }
        })
    }

    /// Lets a completion queue receive from a pool.
    pub fn open_queue(&self, pool: &PoolCore, name: u32) {
        let slot = QueueName::slot(name);
        let Some(queue) = self.queues.get(slot) else { return };
        let open = OpenQueue::new(name, queue, pool.engine_index());
        // A dead pool completes nothing any more: not opening it is right.
        let _dead = self.locked(pool, |st, _| st.open_queues[slot] = open);
        self.look_after(pool);
    }

    /// Ends it: whoever still waits for that queue gives its grant to the next waiter.
    pub(crate) fn close_queue(&self, pool: &PoolCore, name: u32) {
        let slot = QueueName::slot(name);
        let taken = |st: &mut PoolState, _| {
            core::mem::replace(&mut st.open_queues[slot], OpenQueue::NONE).places
        };
        if let (Ok(places), Some(queue)) = (self.locked(pool, taken), self.queues.get(slot)) {
            queue.ring(pool.engine_index()).unreserve(places.into());
        }
        self.look_after(pool);
    }

    /// The pool now; zeros for a dead one.
    pub fn view(&self, pool: &PoolCore) -> PoolView {
        let view = self.locked(pool, |st, word| PoolView {
            free: word.free(),
            slots: st.slots,
            running: u32::try_from(i64::from(st.size) - i64::from(word.free())).unwrap_or(0),
            waiting: st.queues.waiting(),
            capped: st.queues.capped(),
            tracked: st.tracking.running,
            oldest_since_ns: self.oldest_since(st),
            reaped: st.tracking.reaped,
            exempt: st.tracking.exempt,
            closed: st.closed,
            stats: st.stats,
        });
        self.look_after(pool);
        view.unwrap_or(PoolView::NOTHING)
    }
}
