//! The ordering key of waiting requests: first come, first served, by an arrival number of the pool.
//!
//! The only place that knows the order. A band's heap sees 40-bit keys: the arrival number less a base.
#![forbid(unsafe_code)]

use super::heap::MAX_KEY;

/// Gives out arrival numbers and turns them into heap keys.
///
/// Arrival numbers are 64 bits and never repeat. Keys are relative to `base`, which moves up before the newest
/// key would pass 40 bits: every 2^39 arrivals at the most (six days at a million a second). Then a request that
/// is still waiting after 2^39 later arrivals counts as the oldest of its band; among several of that age the
/// order between flows is no longer that of arrival. Within a flow it always is.
#[derive(Debug)]
pub struct Order {
    next: u64,
    base: u64,
    /// The last number whose key fits: `base` + [`MAX_KEY`].
    last: u64,
}

impl Order {
    /// Starts at zero.
    pub const fn new() -> Self {
        Self { next: 0, base: 0, last: MAX_KEY }
    }

    #[cfg(test)]
    pub(super) const fn starting_at(next: u64, base: u64) -> Self {
        Self { next, base, last: base + MAX_KEY }
    }

    /// Whether [`rebase`](Self::rebase) must come before the next [`stamp`](Self::stamp).
    #[inline]
    pub const fn is_spent(&self) -> bool {
        self.next > self.last
    }

    /// The next arrival number.
    #[inline]
    pub const fn stamp(&mut self) -> u64 {
        let seq = self.next;
        self.next += 1;
        seq
    }

    /// The heap key of an arrival number: monotone, at most 40 bits.
    #[inline]
    pub const fn key(&self, seq: u64) -> u64 {
        seq.saturating_sub(self.base)
    }

    /// Moves the base up to the oldest number still waiting (absent: nobody waits), and at least so far that half the keys are free.
    /// All keys in heaps must then be made anew.
    pub fn rebase(&mut self, oldest: Option<u64>) {
        self.base = oldest.unwrap_or(self.next).max(self.next.saturating_sub(MAX_KEY / 2));
        self.last = self.base + MAX_KEY;
    }
}

impl Default for Order {
    fn default() -> Self {
        Self::new()
    }
}
