//! P4: the queues and the band policy alone: queue one request, choose and remove the next.

use bandgate_core::{
    queue::{BandQueues, Front, NoCaps, VecLinks},
    select::band::BandPolicy,
    types::{
        BandMask, NONE, first_bands,
        policy::{BandSelection, Reading},
    },
};

use super::{PRIORITIES, wfq};
use crate::rng::Rng;

/// All eight bands are open.
const OPEN: BandMask = first_bands(8);
/// Above the activation threshold.
const SATURATED: Reading = Reading { activates: true, stays_active: true };

/// Eight bands with requests of shuffled slab indices, and the policy that ranks them.
#[derive(Debug)]
pub struct Decision {
    queues: BandQueues,
    links: VecLinks,
    policy: BandPolicy,
    rng: Rng,
    /// The index that is free, and the band it came out of.
    free: u32,
    band: u32,
}

impl Decision {
    /// Strict priority over `depth` requests.
    pub fn strict(depth: u32) -> Self {
        Self::new(&BandSelection::Strict, depth)
    }

    /// Weighted by virtual time over `depth` requests.
    pub fn weighted(depth: u32) -> Self {
        Self::new(&wfq(), depth)
    }

    fn new(selection: &BandSelection, depth: u32) -> Self {
        let mut rng = Rng::new(1);
        let mut order = rng.shuffled(depth + 1);
        let free = order.pop().unwrap_or(0);
        let links = VecLinks::new(depth + 1);
        let mut queues = BandQueues::new(8, depth + 1, 1);
        for idx in order {
            queues.enqueue(&links, idx, rng.below(8), NONE);
        }
        let policy = BandPolicy::new(selection, &PRIORITIES);
        Self { queues, links, policy, rng, free, band: 0 }
    }

    /// One request arrives in a random band; the next is taken: its band.
    #[inline(always)]
    pub fn step(&mut self) -> u32 {
        let band = self.rng.below(8);
        self.arrive_and_take(band)
    }

    /// One request arrives in the band that was served last, so that all bands stay backlogged whatever their
    /// weights; the next is taken: its band.
    #[inline(always)]
    pub fn step_backlogged(&mut self) -> u32 {
        self.arrive_and_take(self.band)
    }

    #[inline(always)]
    fn arrive_and_take(&mut self, band: u32) -> u32 {
        self.queues.enqueue(&self.links, self.free, band, NONE);
        self.policy.begin(SATURATED, OPEN, || 0);
        let chosen = self.policy.best(self.queues.ready());
        let Some(band) = chosen else { panic!("somebody waits") };
        let mut budget = 64;
        let front = self.queues.front(&self.links, band, &NoCaps, &mut budget);
        let Front::Ready(next) = front else { panic!("a ready band has a front") };
        self.policy.record(OPEN, band);
        let taken = self.queues.take_front(&self.links, band, &NoCaps);
        debug_assert_eq!(taken, Some(next.idx));
        self.free = next.idx;
        self.band = band;
        band
    }
}

#[cfg(test)]
mod tests {
    use super::Decision;

    #[test]
    fn strict_always_serves_the_first_band_and_weights_serve_all() {
        let mut strict = Decision::strict(1_000);
        assert!((0..50).all(|_| strict.step() == 0));
        let mut weighted = Decision::weighted(1_000);
        let mut served = [0; 8];
        for _ in 0..3_600 {
            served[weighted.step_backlogged() as usize] += 1;
        }
        assert_eq!(served, [800, 700, 600, 500, 400, 300, 200, 100]);
    }
}
