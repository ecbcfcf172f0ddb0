//! What grows with what waits: a decision over bands and flows, the expiry of many at once, a drain without arrivals.

use core::time::Duration;

use bandgate_core::{
    clock::Clock,
    engine::{CompletionQueue, Engine, OwnedPermit, Pool, Request, Submitted},
    queue::{BandQueues, Front, NoCaps, VecLinks},
    select::band::BandPolicy,
    types::{
        BandMask, NONE, first_bands,
        policy::{BandSelection, Reading},
        settings::DriverKind,
    },
};

use super::{must, settings, wfq};
use crate::rng::Rng;

const SATURATED: Reading = Reading { activates: true, stays_active: true };

/// A decision like [`Decision`](super::decision::Decision)'s over any number of bands and flows.
#[derive(Debug)]
pub struct Choice {
    queues: BandQueues,
    links: VecLinks,
    policy: BandPolicy,
    open: BandMask,
    rng: Rng,
    flows: u32,
    free: u32,
    band: u32,
}

impl Choice {
    /// Requests waiting, in any case.
    const DEPTH: u32 = 20_000;

    /// Weighted by virtual time; each request is of some flow.
    pub fn new(bands: u8, flows: u32) -> Self {
        let mut rng = Rng::new(1);
        let mut order = rng.shuffled(Self::DEPTH + 1);
        let free = order.pop().unwrap_or(0);
        let links = VecLinks::new(Self::DEPTH + 1);
        let mut queues = BandQueues::new(bands.into(), Self::DEPTH + 1, flows);
        (0..flows).for_each(|flow| queues.add_flow(flow, NONE));
        for idx in order {
            queues.enqueue(&links, idx, rng.below(bands.into()), rng.below(flows));
        }
        let priorities: Vec<i32> = (0..i32::from(bands)).rev().collect();
        let policy = BandPolicy::new(&wfq(), &priorities);
        let open = first_bands(bands.into());
        Self { queues, links, policy, open, rng, flows, free, band: 0 }
    }

    /// One request of some flow arrives in the band that was served last; the next is taken: its band.
    #[inline(always)]
    pub fn step(&mut self) -> u32 {
        let flow = self.rng.below(self.flows);
        self.queues.enqueue(&self.links, self.free, self.band, flow);
        self.policy.begin(SATURATED, self.open, || 0);
        let Some(band) = self.policy.best(self.queues.ready()) else { panic!("somebody waits") };
        let front = self.queues.front(&self.links, band, &NoCaps, &mut 64);
        let Front::Ready(next) = front else { panic!("a ready band has a front") };
        self.policy.record(self.open, band);
        self.queues.take_front(&self.links, band, &NoCaps);
        self.free = next.idx;
        self.band = band;
        band
    }
}

/// A pool of the host driver on a clock turned by hand, with many who wait behind full slots.
#[derive(Debug)]
pub struct Backlog {
    engine: Engine,
    pool: Pool,
    clock: Clock,
    queues: Vec<CompletionQueue>,
    running: Vec<OwnedPermit>,
    waiting: u32,
}

impl Backlog {
    const SLOTS: u32 = 64;
    /// Outcomes a completion queue holds.
    const PLACES: u32 = 32_768;
    const TIMEOUT: Duration = Duration::from_secs(1);

    /// `waiting` requests in eight bands, each with a deadline in a second.
    pub fn new(waiting: u32) -> Self {
        let mut settings = settings(DriverKind::Host, Self::SLOTS, BandSelection::Strict);
        settings.max_requests = waiting + 1;
        let clock = Clock::manual();
        let engine = must(Engine::start_with_clock(&settings, clock.clone()));
        let pool = must(engine.pool("bench"));
        let count = (waiting + Self::SLOTS).div_ceil(Self::PLACES);
        let queues: Vec<CompletionQueue> =
            (0..count).map(|_| must(engine.completion_queue(Self::PLACES))).collect();
        let mut it = Self { engine, pool, clock, queues, running: Vec::new(), waiting };
        it.fill();
        it
    }

    fn fill(&mut self) {
        for n in 0..Self::SLOTS + self.waiting {
            let band = must(self.pool.band(super::PRIORITIES[n as usize % 8]));
            let request = Request::new(band).timeout(Self::TIMEOUT);
            let queue = &self.queues[(n / Self::PLACES) as usize];
            match must(self.pool.submit(&request, queue, n.into())) {
                Submitted::Granted(permit) => self.running.push(permit.into_owned()),
                Submitted::Queued(_) => {}
            }
        }
    }

    /// A second passes: everybody who waits is evicted. How many.
    pub fn expire(&self) -> u32 {
        self.clock.set(self.clock.now_ns() + 2_000_000_000);
        while self.pool.view().waiting > 0 {
            self.engine.poll();
        }
        self.waiting
    }

    /// One slot after the other comes free until nobody waits. How many were granted.
    pub fn drain(&mut self) -> u32 {
        let mut granted = 0;
        self.running.clear();
        loop {
            let before = granted;
            for queue in &self.queues {
                granted += must(u32::try_from(queue.drain(|done| drop(done.outcome))));
            }
            if granted == before {
                return granted;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Backlog, Choice};

    #[test]
    fn all_expire_all_drain_and_every_band_is_chosen() {
        assert_eq!(Backlog::new(1_000).expire(), 1_000);
        assert_eq!(Backlog::new(1_000).drain(), 1_000);
        let mut choice = Choice::new(64, 10_000);
        let mut seen = [false; 64];
        (0..20_000).for_each(|_| seen[choice.step() as usize] = true);
        assert!(seen.iter().filter(|it| **it).count() >= 63, "the last has weight 0 or little");
    }
}
