//! What became of the requests of one band, counted by the reasons that were returned.

#![forbid(unsafe_code)]

use super::outcome::{Fate, Outcome};
use crate::error::Reason;

const REASONS: usize = Reason::ALL.len();

/// Counts of one band since the engine started. Plain memory of fixed size, owned by who holds the pool's lock bit
/// and copied out for views; a count that was never made reads 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BandCounters {
    rejected: [u64; REASONS],
    evicted: [u64; REASONS],
}

impl Default for BandCounters {
    fn default() -> Self {
        Self { rejected: [0; REASONS], evicted: [0; REASONS] }
    }
}

impl BandCounters {
    /// Counts an outcome. A few instructions, no allocation; 2^64 wrap.
    #[inline]
    pub fn count(&mut self, outcome: Outcome) {
        let of = match outcome.fate {
            Fate::Rejected => &mut self.rejected,
            Fate::Evicted => &mut self.evicted,
        };
        let cell = &mut of[outcome.reason.index()];
        *cell = cell.wrapping_add(1);
    }

    /// How often this happened.
    #[inline]
    pub fn of(&self, fate: Fate, reason: Reason) -> u64 {
        match fate {
            Fate::Rejected => self.rejected[reason.index()],
            Fate::Evicted => self.evicted[reason.index()],
        }
    }

    /// All requests of this fate.
    pub fn total(&self, fate: Fate) -> u64 {
        Reason::ALL.iter().fold(0, |sum: u64, reason| sum.wrapping_add(self.of(fate, *reason)))
    }

    /// Every (fate, reason) with its count, zeros included, so that a drained series reads 0 and does not vanish.
    pub fn iter(&self) -> impl Iterator<Item = (Fate, Reason, u64)> + '_ {
        [Fate::Rejected, Fate::Evicted].into_iter().flat_map(move |fate| {
            Reason::ALL.into_iter().map(move |reason| (fate, reason, self.of(fate, reason)))
        })
    }

    /// Adds the counts of another band, or of the same band in another pool.
    pub fn merge(&mut self, other: &Self) {
        let add = |a: &mut u64, b: u64| *a = a.wrapping_add(b);
        self.rejected.iter_mut().zip(other.rejected).for_each(|(a, b)| add(a, b));
        self.evicted.iter_mut().zip(other.evicted).for_each(|(a, b)| add(a, b));
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn every_outcome_is_counted_once_and_under_its_own_reason() {
        let mut counters = BandCounters::default();
        for (n, reason) in (1_u64..).zip(Reason::ALL) {
            for _ in 0..n {
                counters.count(Outcome::rejected(reason));
            }
            counters.count(Outcome::evicted(reason));
        }
        for (n, reason) in (1_u64..).zip(Reason::ALL) {
            assert_eq!(counters.of(Fate::Rejected, reason), n);
            assert_eq!(counters.of(Fate::Evicted, reason), 1);
        }
        let kinds = REASONS as u64;
        assert_eq!(counters.total(Fate::Rejected), kinds * (kinds + 1) / 2);
        assert_eq!(counters.total(Fate::Evicted), kinds);
        assert_eq!(counters.iter().map(|(_, _, n)| n).sum::<u64>(), kinds * (kinds + 3) / 2);
        let mut twice = counters;
        twice.merge(&counters);
        assert_eq!(twice.total(Fate::Evicted), 2 * kinds);
    }
}
