//! What may wait in all pools of an engine together. Lock-free; only engines that limit it have one.

use crate::sync::{AtomicU64, Ordering};
use crate::types::limits::{Exceeded, Limits, Load};
use crate::types::outcome::Bound;

/// One number and its bound.
#[derive(Debug)]
struct Gauge {
    used: AtomicU64,
    most: AtomicU64,
}

impl Gauge {
    fn new(most: u64) -> Self {
        Self { used: AtomicU64::new(0), most: AtomicU64::new(most) }
    }

    /// Takes `count` if the bound allows it. One who tries and fails may for a moment make another fail too; the
    /// bound itself is never passed.
    fn take(&self, count: u64) -> bool {
        // ORDERING: Relaxed; the number guards no memory, and read-modify-writes of one cell are in one order.
        let before = self.used.fetch_add(count, Ordering::Relaxed);
        // ORDERING: Relaxed; a bound by itself, another one holds from the next request on.
        let fits = before.saturating_add(count) <= self.most.load(Ordering::Relaxed);
        if !fits {
            self.give(count);
        }
        fits
    }

    fn give(&self, count: u64) {
        // ORDERING: Relaxed, as in `take`.
        self.used.fetch_sub(count, Ordering::Relaxed);
    }
}

/// Requests, bytes and tokens that wait in the engine. What waits in a poisoned pool stays counted.
#[derive(Debug)]
pub struct Reserve {
    requests: Gauge,
    bytes: Gauge,
    tokens: Gauge,
}

impl Reserve {
    /// Nothing waits yet.
    pub fn new(limits: &Limits) -> Self {
        let Load { requests, bytes, tokens } = limits.most();
        Self {
            requests: Gauge::new(requests),
            bytes: Gauge::new(bytes),
            tokens: Gauge::new(tokens),
        }
    }

    /// Other bounds, from the next request on; who waits beyond them stays.
    pub fn change(&self, limits: &Limits) {
        let Load { requests, bytes, tokens } = limits.most();
        // ORDERING: Relaxed, as in `Gauge::take`.
        self.requests.most.store(requests, Ordering::Relaxed);
        // ORDERING: Relaxed, as above.
        self.bytes.most.store(bytes, Ordering::Relaxed);
        // ORDERING: Relaxed, as above.
        self.tokens.most.store(tokens, Ordering::Relaxed);
    }

    /// All three or none.
    pub(super) fn take(&self, one: &Load) -> Result<(), Exceeded> {
        if !self.bytes.take(one.bytes) {
            return Err(Exceeded::Bytes);
        }
        if !self.requests.take(one.requests) {
            self.bytes.give(one.bytes);
            return Err(Exceeded::Requests);
        }
        if !self.tokens.take(one.tokens) {
            self.bytes.give(one.bytes);
            self.requests.give(one.requests);
            return Err(Exceeded::Tokens);
        }
        Ok(())
    }

    /// Whatever the bounds say: for pools that only observe.
    pub(super) fn take_beyond(&self, one: &Load) {
        for (gauge, count) in self.each(one) {
            // ORDERING: Relaxed, as in `Gauge::take`.
            gauge.used.fetch_add(count, Ordering::Relaxed);
        }
    }

    /// Gives back what was taken.
    pub(super) fn give(&self, one: &Load) {
        for (gauge, count) in self.each(one) {
            gauge.give(count);
        }
    }

    const fn each(&self, one: &Load) -> [(&Gauge, u64); 3] {
        [(&self.requests, one.requests), (&self.bytes, one.bytes), (&self.tokens, one.tokens)]
    }

    /// As it is told.
    pub(super) const fn bound(exceeded: Exceeded) -> Bound {
        match exceeded {
            Exceeded::Bytes => Bound::EngineBytes,
            Exceeded::Requests => Bound::EngineRequests,
            Exceeded::Tokens => Bound::EngineTokens,
        }
    }
}
