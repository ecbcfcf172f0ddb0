//! The last refusals of a pool with their reasons, and what an observing pool would have done.

use super::hold::{Answer, Hold, Submission};
use super::limits::Wait;
use crate::error::Reason;
use crate::types::NONE;

/// Refusals a pool remembers.
pub const KEPT: usize = 64;

/// One refusal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// When, in nanoseconds of the engine's clock.
    pub at_ns: u64,
    /// Its flow, or [`NONE`].
    pub flow: u32,
    /// Its band index.
    pub band: u8,
    /// Why.
    pub reason: Reason,
    /// The pool only observes: the request was admitted all the same.
    pub observed: bool,
}

/// A ring of the last [`KEPT`]. Plain memory under LOCK.
#[derive(Debug)]
pub struct Refusals {
    ring: [Option<Refusal>; KEPT],
    /// All there ever were.
    total: u64,
}

impl Refusals {
    /// None yet.
    pub const fn new() -> Self {
        Self { ring: [None; KEPT], total: 0 }
    }

    /// Remembers one, in place of the oldest.
    pub const fn note(&mut self, refusal: Refusal) {
        #[allow(clippy::cast_possible_truncation, reason = "taken modulo the ring's length")]
        let at = (self.total % KEPT as u64) as usize;
        self.ring[at] = Some(refusal);
        self.total += 1;
    }

    /// A flow was forgotten: its index will mean another one.
    pub fn forget(&mut self, flow: u32) {
        for refusal in self.ring.iter_mut().flatten().filter(|it| it.flow == flow) {
            refusal.flow = NONE;
        }
    }

    /// Newest first.
    pub fn newest(&self) -> impl Iterator<Item = Refusal> + '_ {
        let last = self.total;
        (1..=KEPT as u64).map_while(move |back| {
            #[allow(clippy::cast_possible_truncation, reason = "taken modulo the ring's length")]
            let at = (last.checked_sub(back)? % KEPT as u64) as usize;
            self.ring[at]
        })
    }
}

impl Default for Refusals {
    fn default() -> Self {
        Self::new()
    }
}

/// Beyond this many running requests an observing pool refuses after all: the word counts no further.
const MOST_RUNNING: u32 = 1 << 22;

impl Hold<'_, '_> {
    /// The answer to a refused submission, remembered.
    #[cold]
    pub(super) fn refused(&mut self, sub: &Submission, reason: Reason) -> Answer {
        if self.is_exempt(reason, sub.flow, sub.flow_generation) {
            return self.exempted(sub);
        }
        self.note_refusal(sub.band, sub.flow, reason);
        Answer::Rejected(reason)
    }

    /// Remembers a refusal.
    #[cold]
    pub(super) fn note_refusal(&mut self, band: u8, flow: u32, reason: Reason) {
        let (at_ns, observed) = (self.session.now.ns(), self.st.observes);
        if !observed {
            self.st.outcomes.rejected(band, reason);
        }
        // The index of a stale handle may mean somebody else by now.
        let flow = if reason == Reason::FlowTableFull { NONE } else { flow };
        self.st.refusals.note(Refusal { at_ns, flow, band, reason, observed });
    }

    /// An observing pool: decides as an enforcing one in the same state would, counts it, and admits.
    #[cold]
    pub(super) fn observed(&mut self, sub: &Submission) -> Answer {
        if self.st.closed {
            return self.refused(sub, Reason::ShuttingDown);
        }
        if self.running() >= MOST_RUNNING {
            return self.refused(sub, Reason::QueueFull);
        }
        self.decide();
        match self.refusal(sub.band, sub.flow, sub.flow_generation, false) {
            // Its row may stand for somebody else by now.
            Some(Reason::FlowTableFull) => return self.refused(sub, Reason::FlowTableFull),
            Some(reason) if self.is_exempt(reason, sub.flow, sub.flow_generation) => {
                return self.exempted(sub);
            }
            Some(reason) => {
                self.st.stats.would_reject += 1;
                self.note_refusal(sub.band, sub.flow, reason);
            }
            None if self.runs_now(sub) => {}
            None if self.would_be_full(sub) => {}
            None => self.st.stats.would_queue += 1,
        }
        self.take_beyond(sub.band, sub.flow, sub.cost);
        self.st.stats.direct += 1;
        self.granted_directly(sub)
    }

    /// Whether there would be no room to wait, counted and remembered.
    fn would_be_full(&mut self, sub: &Submission) -> bool {
        if !self.st.limits.on {
            return false;
        }
        let Some(bound) = self.st.full(&Wait::of(sub)) else { return false };
        self.st.stats.would_reject += 1;
        self.note_refusal(
            sub.band,
            sub.flow,
            bound.refusal(!self.st.backends.none_exists()).reason,
        );
        true
    }

    /// The same whatever slots and caps say: for pools that only observe.
    pub(super) fn take_beyond(&mut self, band: u8, flow: u32, cost: u32) {
        let (eligible, rank) = (self.begin_decision(), self.st.ranks.rank(band.into()));
        if eligible >> rank & 1 == 1 {
            self.st.policy.record(eligible, rank);
        }
        self.word = self.word.add_free(-1);
        self.st.count_dispatch(cost);
        if flow != NONE {
            self.st.caps.take_beyond(flow, cost);
        }
    }

    /// An observing pool lets everybody who waits run. `Some`: the budget ended first.
    #[cold]
    pub(super) fn grant_all(&mut self) -> Option<super::rules::Stop> {
        while self.st.queues.waiting() > 0 {
            if self.session.budget == 0 {
                return Some(super::rules::Stop::Budget);
            }
            let Some((idx, body)) = self.pop_waiter() else { continue };
            self.word = self.word.add_free(-1);
            self.st.count_dispatch(body.cost);
            if body.flow != NONE {
                self.st.caps.take_beyond(body.flow, body.cost);
            }
            self.st.stats.granted += 1;
            self.session.progress.grants += 1;
            self.finish_entry(idx, &body, None);
        }
        None
    }
}
