//! Who runs, who waits, who was refused: copied out under LOCK, a bounded number at a time.

use alloc::vec::Vec;

use super::Shard;
use super::pool::{PoolCore, PoolState};
use super::refusals::{KEPT, Refusal};
use super::view::SlabView;
use crate::queue::Links;
use crate::slab::Phase;
use crate::types::NONE;

/// Most one call copies: about 20 ns each under LOCK.
pub const MOST: usize = 1024;

/// A request that runs or waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Counted {
    /// Slab index and generation: the permit's or the ticket's.
    pub idx: u32,
    /// See `idx`.
    pub generation: u32,
    /// Its flow, or [`NONE`].
    pub flow: u32,
    /// Its band index.
    pub band: u8,
    /// Its cost.
    pub cost: u32,
    /// Since when, in nanoseconds of the engine's clock; 0: the pool did not keep track then.
    pub since_ns: u64,
    /// Runs, but its future has not collected the permit.
    pub uncollected: bool,
    /// Runs without a slot.
    pub exempt: bool,
}

impl Shard {
    fn counted(&self, idx: u32) -> Counted {
        let state = self.slab.own_state(idx);
        // SAFETY: called under LOCK for entries that wait or run in this pool: the holder owns them.
        let body = unsafe { self.slab.with_body(idx, |body| *body) };
        Counted {
            idx,
            generation: state.generation(),
            flow: body.flow,
            band: body.band_index(),
            cost: body.cost,
            since_ns: body.since_ns,
            uncollected: state.phase() == Phase::Held,
            exempt: body.is_exempt(),
        }
    }

    /// Since when the oldest tracked permit is out; 0: none is. Holder of LOCK only.
    pub(super) fn oldest_since(&self, st: &PoolState) -> u64 {
        match st.tracking.oldest() {
            NONE => 0,
            idx => self.counted(idx).since_ns,
        }
    }

    /// Copies what `f` finds into a vector made before LOCK is taken; empty for a dead pool.
    fn census<T>(
        &self,
        pool: &PoolCore,
        most: usize,
        f: impl FnOnce(&mut PoolState, &mut Vec<T>),
    ) -> Vec<T> {
        let mut found = Vec::with_capacity(most.min(MOST));
        // A dead pool tells nothing any more.
        let _dead = self.locked(pool, |st, _| f(st, &mut found));
        self.look_after(pool);
        found
    }

    /// Up to `most` of those who run, longest first, where the pool keeps track.
    pub fn holders(&self, pool: &PoolCore, most: usize) -> Vec<Counted> {
        self.census(pool, most, |st, found| {
            let (view, mut idx) = (SlabView::new(self), st.tracking.oldest());
            while idx != NONE && found.len() < most.min(MOST) {
                found.push(self.counted(idx));
                idx = view.read(idx).next;
            }
        })
    }

    /// Up to `most` of those who wait, in no order.
    pub fn waiters(&self, pool: &PoolCore, most: usize) -> Vec<Counted> {
        self.census(pool, most, |st, found| {
            let most = most.min(MOST);
            st.queues.walk(&SlabView::new(self), |idx| {
                found.push(self.counted(idx));
                found.len() < most
            });
        })
    }

    /// The last refusals, newest first.
    pub fn refusals(&self, pool: &PoolCore) -> Vec<Refusal> {
        self.census(pool, KEPT, |st, found| found.extend(st.refusals.newest()))
    }
}
