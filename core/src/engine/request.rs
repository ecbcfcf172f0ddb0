//! What a caller says about a request, and the names it gets back.
#![forbid(unsafe_code)]

use core::time::Duration;

use crate::types::settings::nanoseconds;
use crate::types::{NONE, patience};

/// A band of a pool, by [`Pool::band`](super::Pool::band).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Band {
    pub(super) pool: u32,
    pub(super) index: u8,
}

/// An interned (group, tenant, key) of a pool, by [`Pool::flow`](super::Pool::flow). Good until the pool forgets the
/// flow because it is [idle](super::Pool::collect_idle_flows) and the table more than half full; a request that names it then is
/// refused as `flow_table_full`, and the flow is to be interned anew.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Flow {
    pub(super) pool: u32,
    pub(super) index: u32,
    /// Which of the flows that stood at the index.
    pub(super) generation: u32,
}

/// One request. Copy, 56 bytes; make it once per kind of request and reuse it.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Request {
    // Side by side, so that both are compared at once.
    pub(super) pool: u32,
    pub(super) flow_pool: u32,
    pub(super) flow: u32,
    pub(super) cost: u32,
    pub(super) timeout_ns: u64,
    pub(super) bytes: u32,
    pub(super) flow_generation: u32,
    pub(super) band: u8,
    pub(super) received_ns: u64,
    pub(super) slo_ns: u64,
}

impl Request {
    /// Set in `pool` where there is an absolute deadline, so that the comparison every call makes finds that out.
    pub(super) const TIMED: u32 = 1 << 31;

    /// A request of cost 1 in this band, of no tenant.
    #[inline]
    pub const fn new(band: Band) -> Self {
        Self {
            pool: band.pool,
            flow: NONE,
            flow_pool: band.pool,
            cost: 1,
            timeout_ns: patience::DEFAULT,
            bytes: 0,
            flow_generation: 0,
            band: band.index,
            received_ns: u64::MAX,
            slo_ns: u64::MAX,
        }
    }

    /// The pools of band and flow in one word.
    #[inline(always)]
    pub(super) const fn pools(&self) -> u64 {
        Self::pools_of(self.pool, self.flow_pool)
    }

    #[inline(always)]
    pub(super) const fn pools_of(band: u32, flow: u32) -> u64 {
        band as u64 | (flow as u64) << 32
    }

    /// Counted against this tenant and key.
    #[inline]
    #[must_use]
    pub const fn flow(mut self, flow: Flow) -> Self {
        self.flow = flow.index;
        self.flow_pool = flow.pool;
        self.flow_generation = flow.generation;
        self
    }

    /// Estimated tokens, 1 up to the pool's `maxCost`; outside that range the request is refused as
    /// `too_large`.
    #[inline]
    #[must_use]
    pub const fn cost(mut self, tokens: u32) -> Self {
        self.cost = tokens;
        self
    }

    /// Size in bytes, 0 unless given; for limits and orders that look at it.
    #[inline]
    #[must_use]
    pub const fn bytes(mut self, bytes: u32) -> Self {
        self.bytes = bytes;
        self
    }

    /// When the host received it, in nanoseconds of the engine's clock ([`Engine::clock`](super::Engine::clock));
    /// the time it is submitted unless given. What was promised ([`slo`](Self::slo)) counts from then.
    #[inline]
    #[must_use]
    pub const fn received_at(mut self, now_ns: u64) -> Self {
        self.received_ns = now_ns;
        self
    }

    /// How long after it was received its first token is promised: what the `slo-deadline` order goes by. Requests
    /// without a promise, and promises beyond 584 years, come last. For a header see
    /// [`promise`](crate::select::request::slo_deadline::promise).
    #[inline]
    #[must_use]
    pub fn slo(mut self, promise: Duration) -> Self {
        self.slo_ns = u64::try_from(promise.as_nanos()).unwrap_or(u64::MAX);
        self
    }

    /// Longest wait, as the host decides; zero: now or never. Replaces the band's `ttl` and the engine's
    /// `admissionTimeout`, as every call of the last of these five methods replaces the others. Times beyond 146 years
    /// mean for ever.
    #[inline]
    #[must_use]
    pub fn timeout(self, timeout: Duration) -> Self {
        self.waits(patience::timeout(nanoseconds(timeout)))
    }

    /// Waits for ever, whatever the configuration says.
    #[inline]
    #[must_use]
    pub const fn no_timeout(self) -> Self {
        self.waits(patience::FOREVER)
    }

    /// A time to live somebody outside asked for, such as a client in a header: it may only shorten what the
    /// configuration allows. Zero asks for nothing.
    #[inline]
    #[must_use]
    pub fn ttl_hint(self, hint: Duration) -> Self {
        self.waits(patience::hint(nanoseconds(hint)))
    }

    /// Evicted at this time of the engine's clock ([`Engine::clock`](super::Engine::clock)), in nanoseconds, and refused
    /// if it has passed. Each call then looks at the clock.
    #[inline]
    #[must_use]
    pub const fn deadline_at(self, now_ns: u64) -> Self {
        let mut timed = self.waits(patience::at(now_ns));
        timed.pool |= Self::TIMED;
        timed
    }

    /// Waits as the configuration says, the initial state.
    #[inline]
    #[must_use]
    pub const fn default_timeout(self) -> Self {
        self.waits(patience::DEFAULT)
    }

    const fn waits(mut self, word: u64) -> Self {
        self.pool &= !Self::TIMED;
        self.timeout_ns = word;
        self
    }
}

/// A queued request: index + generation, so that a stale one names nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Ticket {
    pub(super) pool: u32,
    pub(super) idx: u32,
    pub(super) generation: u32,
}
