//! The ordering key of waiting requests: first come, first served, by an arrival number of the pool.
//!
//! The only place that knows the order. A band's heap sees 40-bit keys: the arrival number less a base.
#![forbid(unsafe_code)]

use super::heap::MAX_KEY;

/// Gives out arrival numbers and turns them into heap keys.
///
/// Arrival numbers are 64 bits and never repeat; a waiting request keeps the lowest 40 of them. Keys are relative
/// to `base`, 40 bits as well, and every request that waits is at `base` or later: so the difference modulo 2^40
/// is the true one, and keys are exact. `base` moves up before the newest key would pass 40 bits: every 2^39
/// arrivals at the most (six days at a million a second). Then a request that is still waiting after 2^39 later
/// arrivals is given the number `base` and counts as the oldest of its band; among several of that age the order
/// between flows is no longer that of arrival. Within a flow it always is.
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
    #[inline(always)]
    pub const fn is_spent(&self) -> bool {
        self.next > self.last
    }

    /// The next arrival number.
    #[inline(always)]
    pub const fn stamp(&mut self) -> u64 {
        let seq = self.next;
        self.next += 1;
        seq
    }

    /// The heap key of a waiting request, from the lowest 40 bits of its arrival number.
    #[inline(always)]
    pub const fn key(&self, seq: u64) -> u64 {
        seq.wrapping_sub(self.base) & MAX_KEY
    }

    /// The arrival number of a waiting request, from its lowest 40 bits.
    #[inline]
    pub const fn number(&self, seq: u64) -> u64 {
        self.base + self.key(seq)
    }

    /// The number that a request that has waited too long is given.
    pub const fn base(&self) -> u64 {
        self.base
    }

    /// Moves the base up to the oldest number still waiting (absent: nobody waits), and at least so far that
    /// half the keys are free. Returns the step: requests with a lower key get the number `base`, and all keys
    /// in heaps must be made anew.
    pub fn rebase(&mut self, oldest: Option<u64>) -> u64 {
        let before = self.base;
        self.base = oldest.unwrap_or(self.next).max(self.next.saturating_sub(MAX_KEY / 2));
        self.last = self.base + MAX_KEY;
        self.base - before
    }
}

impl Default for Order {
    fn default() -> Self {
        Self::new()
    }
}
