//! Where a request stands in its flow, and a flow in its band: what `select` says and `queue` obeys.

use core::fmt;

use super::extend::FlowHead;

/// A place in an order: the least key first, then the least tie; the arrival number decides what is left.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Rank {
    /// Compared first.
    pub key: u64,
    /// Compared among equal keys.
    pub tie: u64,
}

impl Rank {
    /// A place by this key; equal ones by arrival.
    pub const fn by(key: u64) -> Self {
        Self { key, tie: 0 }
    }
}

/// A flow with something waiting, and the whole rank of its first request.
#[derive(Clone, Copy, Debug)]
pub struct Head {
    /// What a policy of the host is shown.
    pub flow: FlowHead,
    /// Tie of its first request; its key is `flow.head_key`.
    pub tie: u64,
}

/// The order over the flows of one band, as the queue asks for it. Every call is O(1), none allocates.
pub trait LaneOrder: fmt::Debug + Send {
    /// The flow begins to wait.
    fn begins(&mut self, head: &Head) -> Rank;

    /// The flow's first request left without being dispatched, or was overtaken by one of the same flow. `was`:
    /// the rank it has so far.
    fn head_changed(&mut self, head: &Head, was: Rank) -> Rank;

    /// A request of the flow was dispatched; `was`: the flow's rank until then.
    fn dispatched(&mut self, served: &Head, was: Rank);

    /// More of the flow waits after that dispatch.
    fn goes_on(&mut self, head: &Head) -> Rank;

    /// Nobody waits in the band any more.
    fn emptied(&mut self) {}

    /// The flow does not exist any more; it has no waiters.
    fn forget(&mut self, flow: u32) {
        let _ = flow;
    }
}
