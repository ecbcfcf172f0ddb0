//! Exempt flows: their requests run at once, beside the slots, and are counted.
//!
//! A flow that is exempt is not accepted (`admit/caps.rs`), so that no other request pays for the question; who finds out
//! why it is not comes here. Its permit always keeps an entry of the slab: it says that no slot comes back with it.

use super::hold::{Answer, Hold, Submission};
use super::view::SlabView;
use crate::admit::caps::Freed;
use crate::error::Reason;
use crate::slab::{Body, Phase};
use crate::types::NO_ENTRY;

impl Hold<'_, '_> {
    /// Whether this refusal is none, because the flow is exempt.
    #[cold]
    pub(super) fn is_exempt(&self, reason: Reason, flow: u32, generation: u32) -> bool {
        reason == Reason::TenantQueueFull && self.st.caps.is_exempt(flow, generation)
    }

    /// The answer to a submission of an exempt flow. Where the slab is full it has no entry, and
    /// nothing is kept of it but its charge.
    #[cold]
    pub(super) fn exempted(&mut self, sub: &Submission) -> Answer {
        self.st.stats.exempt += 1;
        let Some((idx, generation)) = self.shard.slab().take_cached(&mut self.st.free) else {
            self.st.tracking.untracked += 1;
            self.st.caps.take_exempt(sub.flow, sub.cost);
            self.give_exempt(sub.flow);
            return Answer::Held { idx: NO_ENTRY, generation: 0 };
        };
        let now = self.session.now;
        // SAFETY: the index was just taken: this holder owns the entry.
        unsafe {
            self.shard.slab().with_body(idx, |body| {
                sub.write(body, now);
                body.band |= Body::EXEMPT;
            });
        }
        self.st.caps.take_exempt(sub.flow, sub.cost);
        self.track(idx, generation, Phase::Running);
        Answer::Held { idx, generation }
    }

    /// The same for an entry that came through the ring.
    #[cold]
    pub(super) fn grant_exempt(&mut self, idx: u32, mut body: Body) {
        body.band |= Body::EXEMPT;
        // SAFETY: its command handed the entry to the holder of LOCK.
        unsafe { self.shard.slab().with_body(idx, |kept| kept.band = body.band) };
        self.st.stats.exempt += 1;
        self.st.caps.take_exempt(body.flow, body.cost);
        self.finish_entry(idx, &body, None);
    }

    /// An exempt request ended. No slot comes back; its key may have got a cap meanwhile.
    pub(super) fn give_exempt(&mut self, flow: u32) {
        let freed = self.st.caps.give_exempt(flow);
        if freed != Freed::default() {
            self.st.unpark(SlabView::new(self.shard), flow, freed);
        }
    }
}
