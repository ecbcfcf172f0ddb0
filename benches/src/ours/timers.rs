//! P17: the timer wheel alone.

use bandgate_core::{
    queue::{Advanced, VecTimers, Wheel},
    types::TURN_BUDGET,
};

use crate::{machine, rng::Rng};

/// Spread of the deadlines: a minute, in nanoseconds.
pub const SPREAD_NS: u64 = 60_000_000_000;
/// One step of [`Timers::longest_advance`].
const STEP_NS: u64 = 1_000_000;

/// A wheel of timers, all set.
#[derive(Debug)]
pub struct Timers {
    wheel: Wheel,
    links: VecTimers,
    rng: Rng,
    count: u32,
    next: u32,
    now_ns: u64,
}

impl Timers {
    /// `count` timers at random times of the next minute.
    pub fn random(count: u32) -> Self {
        Self::new(count, |rng, _| rng.bits() % SPREAD_NS)
    }

    /// `count` timers of one timeout, set one after the other over that time.
    pub fn equal(count: u32) -> Self {
        Self::new(count, |_, timer| SPREAD_NS / u64::from(count) * u64::from(timer))
    }

    fn new(count: u32, deadline: impl Fn(&mut Rng, u32) -> u64) -> Self {
        let (mut wheel, links, mut rng) = (Wheel::new(0), VecTimers::new(count), Rng::new(1));
        for timer in 0..count {
            let deadline_ns = deadline(&mut rng, timer);
            links.set_deadline(timer, deadline_ns);
            wheel.insert(&links, timer, deadline_ns);
        }
        Self { wheel, links, rng, count, next: 0, now_ns: 0 }
    }

    /// Cancels a random timer and sets it anew.
    #[inline(always)]
    pub fn step(&mut self) {
        let timer = self.rng.below(self.count);
        assert!(self.wheel.cancel(&self.links, timer), "it is set");
        let deadline_ns = self.rng.bits() % SPREAD_NS;
        self.insert(timer, deadline_ns);
    }

    /// Sets a timer; its deadline is stored beside, as a submit stores that of its request.
    #[inline(always)]
    fn insert(&mut self, timer: u32, deadline_ns: u64) {
        self.links.set_deadline(timer, deadline_ns);
        self.wheel.insert(&self.links, timer, deadline_ns);
    }

    /// Cancels the oldest timer of equal timeouts and sets it anew.
    #[inline(always)]
    pub fn step_oldest(&mut self) {
        let timer = self.next;
        self.next = if timer + 1 == self.count { 0 } else { timer + 1 };
        self.now_ns += SPREAD_NS / u64::from(self.count);
        assert!(self.wheel.cancel(&self.links, timer), "it is set");
        self.insert(timer, self.now_ns + SPREAD_NS);
    }

    /// Advances through a minute, millisecond by millisecond, setting each timer that fires anew; the ticks of each
    /// call, which has the budget of a turn. The same wheel makes the same calls.
    pub fn advances(&mut self) -> Vec<u64> {
        let mut calls = Vec::new();
        let mut fired = Vec::with_capacity(TURN_BUDGET as usize);
        let end = self.now_ns + SPREAD_NS;
        while self.now_ns < end {
            self.now_ns += STEP_NS;
            loop {
                let mut budget = TURN_BUDGET;
                let before = machine::stamp();
                let done =
                    self.wheel.advance(&self.links, self.now_ns, &mut budget, |it| fired.push(it));
                calls.push(machine::stamp_after().saturating_sub(before));
                for timer in fired.drain(..) {
                    let deadline = self.now_ns + self.rng.bits() % SPREAD_NS;
                    self.insert(timer, deadline);
                }
                if done == Advanced::Done {
                    break;
                }
            }
        }
        calls
    }

    /// The longest call of [`advances`](Self::advances), in nanoseconds: of each call the fastest of five passes,
    /// because what a pass adds to another is the machine's, then the slowest of these.
    pub fn longest_advance(count: u32) -> f64 {
        let passes: Vec<Vec<u64>> = (0..5).map(|_| Self::random(count).advances()).collect();
        let fastest = |call: usize| passes.iter().map(|pass| pass[call]).min();
        machine::ns((0..passes[0].len()).filter_map(fastest).max().unwrap_or(0))
    }
}

#[cfg(test)]
mod tests {
    use super::Timers;

    #[test]
    fn timers_stay_set_through_steps_and_advances() {
        let mut random = Timers::random(1_000);
        (0..5_000).for_each(|_| random.step());
        let calls = random.advances();
        assert!(calls.len() >= 60_000);
        assert_eq!(random.wheel.len(), 1_000);
        let mut equal = Timers::equal(1_000);
        (0..5_000).for_each(|_| equal.step_oldest());
        assert_eq!(equal.wheel.len(), 1_000);
    }
}
