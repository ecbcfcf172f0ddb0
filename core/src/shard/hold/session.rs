//! What outlives one hold of LOCK within a call: budget, time, and whom to wake.

use arrayvec::ArrayVec;

use super::super::ceiling::Errands;
use super::super::{Progress, Shard};
use crate::clock::Now;
use crate::types::TURN_BUDGET;

/// Whom to wake after the unlock: entries with a waker, completion queues with a bell.
#[derive(Debug, Default)]
pub struct Notices {
    wakers: ArrayVec<u32, { 2 * TURN_BUDGET as usize }>,
    bells: u64,
}

impl Notices {
    #[inline(always)]
    pub(super) fn wake(&mut self, idx: u32) {
        // Two per unit of budget are room enough: each command, grant or expiry tells one.
        let kept = self.wakers.try_push(idx);
        debug_assert!(kept.is_ok(), "more notices than budget");
    }

    #[inline(always)]
    pub(super) fn ring(&mut self, queue: usize) {
        self.bells |= 1 << queue;
    }
}

/// What outlives one hold of LOCK within one call: the budget, the time, who is to be woken.
#[derive(Debug)]
pub struct Session<'a> {
    /// Commands and grants this call may still do.
    pub budget: u32,
    /// Read at most once.
    pub now: &'a Now<'a>,
    /// Delivered after the unlock.
    pub notices: Notices,
    /// Counts for the caller.
    pub progress: Progress,
    /// For the ceiling, after the unlock.
    pub(in crate::shard) errands: Errands,
    /// A policy of this pool gave ceilings that are none, this often: to be logged after the unlock.
    pub(in crate::shard) faulty_ceilings: Option<(usize, u64)>,
    /// The same for orders over the bands.
    pub(in crate::shard) faulty_orders: Option<(usize, u64)>,
}

impl<'a> Session<'a> {
    /// A session of one call.
    #[inline(always)]
    pub fn new(now: &'a Now<'a>, budget: u32) -> Self {
        Self {
            budget,
            now,
            notices: Notices::default(),
            progress: Progress::default(),
            errands: Errands::default(),
            faulty_ceilings: None,
            faulty_orders: None,
        }
    }

    /// Wakes every sleeper once. After the unlock: a waker may call back into the engine.
    #[inline(always)]
    pub fn deliver(&mut self, shard: &Shard) {
        if !self.errands.is_empty()
            && let Some(ceiling) = shard.ceiling.as_deref()
        {
            shard.run_errands(core::mem::take(&mut self.errands), ceiling);
        }
        if !self.notices.wakers.is_empty() || self.notices.bells != 0 {
            self.deliver_all(shard);
        }
        if let Some((pool, count)) = self.faulty_ceilings.take() {
            warn(
                pool,
                count,
                "a usage limit gave ceilings that are NaN or outside 0..=1: 1.0 counts",
            );
        }
        if let Some((pool, count)) = self.faulty_orders.take() {
            warn(
                pool,
                count,
                "a band selection gave an order that is no permutation: strict counts",
            );
        }
    }

    #[inline(never)]
    fn deliver_all(&mut self, shard: &Shard) {
        for idx in self.notices.wakers.drain(..) {
            shard.wake(idx);
        }
        let mut bells = core::mem::take(&mut self.notices.bells);
        while bells != 0 {
            if let Some(queue) = shard.queues.get(bells.trailing_zeros() as usize) {
                // Published under LOCK, and the fence after the unlock lies between.
                queue.bell().ring_fenced();
            }
            bells &= bells - 1;
        }
    }

    /// One command or grant less to do.
    #[inline(always)]
    pub(in crate::shard) fn spend(&mut self) {
        self.budget = self.budget.saturating_sub(1);
    }
}

/// Logs that a policy of the host gave answers that are none: once per pool and kind, and not under LOCK.
#[cold]
fn warn(pool: usize, count: u64, what: &'static str) {
    #[cfg(feature = "config")]
    tracing::warn!(pool, count, "{what}");
    #[cfg(not(feature = "config"))]
    let _ = (pool, count, what);
}
