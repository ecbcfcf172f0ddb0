//! What became of a pool's requests that did not run, by band. Plain memory under LOCK.

use alloc::boxed::Box;
use alloc::vec::Vec;

use super::Shard;
use super::pool::PoolCore;
use crate::error::Reason;
use crate::types::counters::BandCounters;
use crate::types::outcome::Outcome;

/// Counters by band index; behind the last band those of indices that are none.
#[derive(Debug)]
pub struct Outcomes(Box<[BandCounters]>);

impl Outcomes {
    /// Zeros for so many bands.
    pub fn new(bands: usize) -> Self {
        Self((0..=bands).map(|_| BandCounters::default()).collect())
    }

    fn count(&mut self, band: u8, outcome: Outcome) {
        let at = usize::from(band).min(self.0.len().saturating_sub(1));
        if let Some(counters) = self.0.get_mut(at) {
            counters.count(outcome);
        }
    }

    /// Refused before it waited.
    #[cold]
    pub(super) fn rejected(&mut self, band: u8, reason: Reason) {
        self.count(band, Outcome::rejected(reason));
    }

    /// Taken out while it waited, or before its command was looked at.
    #[cold]
    pub(super) fn evicted(&mut self, band: u8, reason: Reason) {
        self.count(band, Outcome::evicted(reason));
    }
}

impl Shard {
    /// The counters of each band with its priority, and at last those of bands that are none. Empty for a dead pool.
    pub fn outcomes(&self, pool: &PoolCore) -> Vec<(Option<i32>, BandCounters)> {
        let mut found = Vec::with_capacity(pool.most_bands() + 1);
        // A dead pool tells nothing any more.
        let _dead = self.locked(pool, |st, _| {
            let all = st.outcomes.0.iter().enumerate();
            found.extend(all.map(|(at, counters)| {
                let priority = pool.table().get(at).map(|(priority, _)| priority);
                (priority, *counters)
            }));
        });
        self.look_after(pool);
        found
    }
}
