//! `global-strict-fairness-policy`: one order over all requests of the band, whosever they are.
#![forbid(unsafe_code)]

use crate::types::rank::{Head, LaneOrder, Rank};

/// The flow whose first request comes first under the band's order. With first come, first served the queue has a
/// faster form of its own that asks nobody.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GlobalStrict;

const fn of(head: &Head) -> Rank {
    Rank { key: head.flow.head_key, tie: head.tie }
}

impl LaneOrder for GlobalStrict {
    fn begins(&mut self, head: &Head) -> Rank {
        of(head)
    }

    fn head_changed(&mut self, head: &Head, _was: Rank) -> Rank {
        of(head)
    }

    fn dispatched(&mut self, _served: &Head, _was: Rank) {}

    fn goes_on(&mut self, head: &Head) -> Rank {
        of(head)
    }
}
