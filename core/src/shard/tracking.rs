//! Pools that keep track of who runs: each running request keeps its slab entry until its slot comes back.
//!
//! Off, a permit is a value and the pool knows only how many run. On (`holders` or `maxHold` of the pool), the
//! entry of a request outlives its grant: it says since when it runs, for which flow, and a timer can take the
//! slot back from a permit nobody released. Every admit and release takes LOCK then.

use super::hold::{Answer, Hold, Submission};
use super::view::SlabView;
use crate::queue::Links;
use crate::slab::{Link, Phase, State};
use crate::types::{MAX_BANDS, NONE};

/// Who runs in one pool, oldest grant first: a list through the links that a request needs no more once it
/// left its band. Plain memory under LOCK.
#[derive(Debug)]
pub struct Tracking {
    /// Whether grants are tracked. Those made before stay as they were.
    pub on: bool,
    /// A permit out longer than this is taken back; `u64::MAX`: never.
    pub max_hold_ns: u64,
    head: u32,
    tail: u32,
    /// Tracked requests that run.
    pub running: u32,
    /// Their cost, as estimated.
    pub tokens: u64,
    /// Of them, by band index.
    in_band: [u32; MAX_BANDS],
    /// Granted without an entry, because the slab was full: not in the list, never taken back.
    pub untracked: u64,
    /// Slots taken back from permits that nobody released in time.
    pub reaped: u64,
}

impl Tracking {
    /// Nobody runs yet.
    pub const fn new(on: bool, max_hold_ns: u64) -> Self {
        Self {
            on,
            max_hold_ns,
            head: NONE,
            tail: NONE,
            running: 0,
            tokens: 0,
            in_band: [0; MAX_BANDS],
            untracked: 0,
            reaped: 0,
        }
    }

    /// The one that runs longest; [`NONE`]: nobody.
    pub const fn oldest(&self) -> u32 {
        self.head
    }

    /// Whether a tracked request of the band runs.
    pub(super) const fn runs_in(&self, band: u32) -> bool {
        self.in_band[band as usize % MAX_BANDS] != 0
    }

    fn append(&mut self, links: &impl Links, idx: u32, band: u8, cost: u32) {
        let mut link = Link::IDLE;
        link.prev = self.tail;
        links.write(idx, link);
        if self.tail == NONE {
            self.head = idx;
        } else {
            links.set_next(self.tail, idx);
        }
        self.tail = idx;
        self.running += 1;
        self.tokens += u64::from(cost);
        self.in_band[usize::from(band) % MAX_BANDS] += 1;
    }

    fn remove(&mut self, links: &impl Links, idx: u32, band: u8, cost: u32) {
        let Link { next, prev, .. } = links.read(idx);
        if prev == NONE {
            self.head = next;
        } else {
            links.set_next(prev, next);
        }
        if next == NONE {
            self.tail = prev;
        } else {
            links.set_prev(next, prev);
        }
        links.write(idx, Link::IDLE);
        self.running -= 1;
        self.tokens -= u64::from(cost);
        self.in_band[usize::from(band) % MAX_BANDS] -= 1;
    }
}

impl Hold<'_, '_> {
    /// The answer to a direct grant: with an entry of its own in a pool that keeps track.
    pub(super) fn granted_directly(&mut self, sub: &Submission) -> Answer {
        if !self.st.tracking.on {
            return Answer::Granted;
        }
        let Some((idx, generation)) = self.shard.slab().take_cached(&mut self.st.free) else {
            self.st.tracking.untracked += 1;
            return Answer::Granted;
        };
        let now = self.session.now;
        // SAFETY: the index was just taken: this holder owns the entry.
        unsafe { self.shard.slab().with_body(idx, |body| sub.write(body, now)) };
        self.track(idx, generation, Phase::Running);
        Answer::Held { idx, generation }
    }

    /// The entry of a request that just got its slot stays: from now on it stands for a running request.
    pub(super) fn track(&mut self, idx: u32, generation: u32, phase: Phase) {
        let now_ns = self.session.now.ns();
        // SAFETY: out of its band and not told yet: the holder owns the entry.
        let (band, cost) = unsafe {
            self.shard.slab().with_body(idx, |body| {
                body.since_ns = now_ns;
                body.deadline_ns = u64::MAX;
                (body.band, body.cost)
            })
        };
        self.st.tracking.append(&SlabView::new(self.shard), idx, band, cost);
        self.arm(idx, now_ns);
        self.shard.slab().set_state(idx, State::new(generation, phase));
    }

    fn arm(&mut self, idx: u32, now_ns: u64) {
        let max_hold_ns = self.st.tracking.max_hold_ns;
        if max_hold_ns != u64::MAX {
            let deadline_ns = now_ns.saturating_add(max_hold_ns);
            // A timer that moves down the wheel reads it there.
            // SAFETY: a running entry that is tracked belongs to the holder of its pool's LOCK.
            unsafe { self.shard.slab().with_body(idx, |body| body.deadline_ns = deadline_ns) };
            self.st.wheel.insert(&SlabView::new(self.shard), idx, deadline_ns);
        }
    }

    /// The end of a tracked permit; void if it was taken back meanwhile. `actual`: tokens really used.
    pub(super) fn end_tracked(&mut self, idx: u32, generation: u32, actual: Option<u32>) {
        let Some(state) = self.shard.slab().state(idx) else { return };
        let runs = matches!(state.phase(), Phase::Running | Phase::Held);
        if state.generation() != generation || !runs {
            return;
        }
        self.st.wheel.cancel(&SlabView::new(self.shard), idx);
        self.untrack(idx, actual);
    }

    /// The timer of a running request fired: its slot is taken back. A grant that its future has not collected
    /// yet is the future's to give back, so it waits once more.
    pub(super) fn reap(&mut self, idx: u32) {
        if self.shard.slab().own_state(idx).phase() == Phase::Held {
            let now_ns = self.session.now.ns();
            return self.arm(idx, now_ns);
        }
        self.st.tracking.reaped += 1;
        self.untrack(idx, None);
    }

    /// Whether this entry stands for a running request.
    pub(super) fn is_running(&self, idx: u32) -> bool {
        matches!(self.shard.slab().own_state(idx).phase(), Phase::Running | Phase::Held)
    }

    fn untrack(&mut self, idx: u32, actual: Option<u32>) {
        // SAFETY: a tracked entry belongs to the holder of its pool's LOCK until its permit's end.
        let (flow, cost, band) =
            unsafe { self.shard.slab().with_body(idx, |body| (body.flow, body.cost, body.band)) };
        self.st.tracking.remove(&SlabView::new(self.shard), idx, band, cost);
        if let Some(actual) = actual
            && actual != cost
        {
            self.st.caps.settle(flow, cost, actual);
        }
        self.release(flow, 1);
        self.shard.slab().give_cached(&mut self.st.free, idx);
    }
}
