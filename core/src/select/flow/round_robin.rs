//! `round-robin-fairness-policy`: the flows of a band in the order of their index, one request each, whatever it
//! costs.
//!
//! The rule is a scan: start after the flow served last, the first flow with waiters is next; when nobody waits the
//! start is forgotten. Instead of scanning, each waiting flow has the place (round, flow) where the scan would find
//! it, and the least place is next. A flow that begins to wait behind the scan's position has its place in the
//! next round, one before it in this round; after a dispatch its place is in the round after the scan's. So equal
//! places do not exist, and no flow is served twice in a round.
//!
//! A flow whose cap holds it back when its place comes keeps that place, and is served once it has room. Looking for
//! it anew from the scan's position would need a new place for every flow of its tenant whenever one release makes
//! room for all of them.
#![forbid(unsafe_code)]

use crate::types::rank::{Head, LaneOrder, Rank};

const FLOW_BITS: u32 = 24;
const LAST_FLOW: u64 = (1 << FLOW_BITS) - 1;

/// The state of one band. 2^40 rounds, more than a pool lives.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RoundRobin {
    /// The place served last, or one before the first of a new scan.
    cursor: Option<u64>,
}

/// Requests without a flow take turns as one flow, the last.
const fn index(flow: u32) -> u64 {
    if flow as u64 > LAST_FLOW { LAST_FLOW } else { flow as u64 }
}

impl RoundRobin {
    /// Nothing served yet.
    pub const fn new() -> Self {
        Self { cursor: None }
    }

    fn round(self) -> u64 {
        self.cursor.unwrap_or(0) >> FLOW_BITS
    }
}

impl LaneOrder for RoundRobin {
    fn begins(&mut self, head: &Head) -> Rank {
        let flow = index(head.flow.flow);
        let here = self.round() << FLOW_BITS | flow;
        let passed = self.cursor.is_some_and(|cursor| here <= cursor);
        Rank::by(here + (u64::from(passed) << FLOW_BITS))
    }

    fn head_changed(&mut self, _head: &Head, was: Rank) -> Rank {
        was
    }

    fn dispatched(&mut self, _served: &Head, was: Rank) {
        // A flow that kept its place while its cap held it back does not turn the scan back.
        self.cursor = self.cursor.max(Some(was.key));
    }

    fn goes_on(&mut self, head: &Head) -> Rank {
        Rank::by((self.round() + 1) << FLOW_BITS | index(head.flow.flow))
    }

    fn emptied(&mut self) {
        self.cursor = None;
    }

    /// The scan starts at the first flow if the one served last is gone.
    fn forget(&mut self, flow: u32) {
        if let Some(cursor) = self.cursor
            && cursor & LAST_FLOW == index(flow)
        {
            // Behind the last flow: whoever begins to wait now begins in the next round, from the first on.
            self.cursor = Some(cursor | LAST_FLOW);
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::types::NONE;
    use crate::types::extend::FlowHead;

    fn head(flow: u32) -> Head {
        let flow = FlowHead { flow, tenant: NONE, head_key: 0, head_arrival: 0, head_cost: 1 };
        Head { flow, tie: 0 }
    }

    #[test]
    fn who_begins_behind_the_scan_has_its_place_in_the_next_round() {
        let mut policy = RoundRobin::new();
        let (one, three) = (policy.begins(&head(1)), policy.begins(&head(3)));
        assert!(one < three);
        policy.dispatched(&head(1), one);
        let again = policy.goes_on(&head(1));
        let (zero, two) = (policy.begins(&head(0)), policy.begins(&head(2)));
        assert!(two < three && three < zero && zero < again);
        policy.emptied();
        assert_eq!(policy.begins(&head(NONE)), Rank::by(LAST_FLOW));
    }

    #[test]
    fn a_flow_that_kept_its_place_is_served_once_a_round() {
        let mut policy = RoundRobin::new();
        let (held_back, mut other) = (policy.begins(&head(0)), policy.begins(&head(1)));
        for _ in 0..5 {
            policy.dispatched(&head(1), other);
            other = policy.goes_on(&head(1));
        }
        assert!(held_back < other);
        policy.dispatched(&head(0), held_back);
        let next = policy.goes_on(&head(0));
        assert_eq!(next.key >> FLOW_BITS, other.key >> FLOW_BITS);
    }
}
