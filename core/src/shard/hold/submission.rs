//! A request on its way in.

use crate::clock::Now;
use crate::slab::Body;
use crate::types::NONE;
use crate::types::extend::RequestView;
use crate::types::patience;

/// A request as the caller states it.
#[derive(Clone, Copy, Debug)]
pub struct Submission {
    /// Band index.
    pub band: u8,
    /// Flow index, or [`NONE`].
    pub flow: u32,
    /// Which of the flows that stood at that index.
    pub flow_generation: u32,
    /// Estimated tokens, at least 1.
    pub cost: u32,
    /// Size in bytes.
    pub bytes: u32,
    /// How long it may wait: a [resolved](crate::types::patience::resolve) word. A timeout in nanoseconds, `u64::MAX`:
    /// for ever, 0: now or never, and more.
    pub timeout_ns: u64,
    /// Completion queue (slot and generation), or [`NONE`].
    pub queue: u32,
    /// Given back with the completion.
    pub tag: u64,
    /// When the host received it; `u64::MAX`: when it is submitted.
    pub received_ns: u64,
    /// How long after that its first token is promised; `u64::MAX`: nothing is.
    pub slo_ns: u64,
}

/// What it takes to run at once, in two registers.
#[derive(Clone, Copy, Debug)]
pub struct Newcomer {
    /// Flow index, or [`NONE`].
    pub flow: u32,
    /// Which of the flows that stood at that index.
    pub flow_generation: u32,
    /// Estimated tokens, at least 1.
    pub cost: u32,
    /// Band index.
    pub band: u8,
}

impl Newcomer {
    /// As somebody who will not wait.
    pub(in crate::shard) const fn now_or_never(self) -> Submission {
        let Self { flow, flow_generation, cost, band } = self;
        Submission { flow_generation, cost, ..Submission::new(band, flow, 0) }
    }
}

impl Submission {
    /// The part that says whether it runs at once.
    #[inline(always)]
    pub const fn newcomer(&self) -> Newcomer {
        let &Self { flow, flow_generation, cost, band, .. } = self;
        Newcomer { flow, flow_generation, cost, band }
    }

    /// A request of cost 1 that asks for nothing else.
    pub const fn new(band: u8, flow: u32, timeout_ns: u64) -> Self {
        let (flow_generation, queue, tag) = (0, NONE, 0);
        let (received_ns, slo_ns) = (u64::MAX, u64::MAX);
        Self {
            band,
            flow,
            flow_generation,
            cost: 1,
            bytes: 0,
            timeout_ns,
            queue,
            tag,
            received_ns,
            slo_ns,
        }
    }

    /// What the order of its band sees of it.
    #[inline]
    pub(in crate::shard) fn view(&self, deadline_ns: u64, now: &Now<'_>) -> RequestView {
        let submitted_ns = now.ns();
        let is_given = self.received_ns != u64::MAX;
        RequestView {
            submitted_ns,
            received_ns: if is_given { self.received_ns } else { submitted_ns },
            deadline_ns,
            slo_ns: self.slo_ns,
            cost: self.cost,
            bytes: self.bytes,
            tag: self.tag,
        }
    }

    /// [`write`](Self::write) for an entry that goes through the ring and is queued by somebody else. Who promised
    /// nothing, and does not say when, counts as received when he is queued: in order, and without a look at the
    /// clock.
    pub(in crate::shard) fn write_whole(&self, body: &mut Body, now: &Now<'_>) {
        self.write(body, now);
        let is_open = self.received_ns == u64::MAX && self.slo_ns != u64::MAX;
        body.received_ns = if is_open { now.ns() } else { self.received_ns };
        body.slo_ns = self.slo_ns;
        body.flow_generation = self.flow_generation;
        self.write_patience(body, now);
    }

    /// What a pool with a budget of its own for the time without backends asks of a waiter.
    #[inline]
    pub(in crate::shard) fn write_patience(&self, body: &mut Body, now: &Now<'_>) {
        (body.to_live_ns, body.limit_ns) = patience::parts(self.timeout_ns, || now.ns());
    }

    /// Fills the body of an entry the caller owns; answers its deadline. `now` is read only if there is a
    /// timeout.
    #[inline(always)]
    pub(in crate::shard) fn write(&self, body: &mut Body, now: &Now<'_>) -> u64 {
        let deadline_ns = patience::deadline(self.timeout_ns, || now.ns());
        body.tag = self.tag;
        body.deadline_ns = deadline_ns;
        body.flow = self.flow;
        body.cost = self.cost;
        body.bytes = self.bytes;
        body.queue = self.queue;
        body.band = self.band;
        deadline_ns
    }
}
