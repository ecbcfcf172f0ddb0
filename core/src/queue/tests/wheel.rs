//! The wheel against a list of deadlines.

use alloc::{vec, vec::Vec};

use proptest::prelude::*;

use crate::queue::{Advanced, VecTimers, Wheel, wheel::TICK_NS};

const TIMERS: u32 = 64;

/// A wheel and the deadlines that ought to be in it.
struct Clock {
    wheel: Wheel,
    links: VecTimers,
    set: Vec<Option<u64>>,
    now: u64,
}

impl Clock {
    fn new(now: u64) -> Self {
        Self {
            wheel: Wheel::new(now),
            links: VecTimers::new(TIMERS),
            set: vec![None; TIMERS as usize],
            now,
        }
    }

    fn insert(&mut self, idx: u32, deadline: u64) {
        self.cancel(idx);
        self.links.set_deadline(idx, deadline);
        self.wheel.insert(&self.links, idx, deadline);
        self.set[idx as usize] = Some(deadline);
    }

    fn cancel(&mut self, idx: u32) {
        let was = self.set[idx as usize].take();
        assert_eq!(self.wheel.cancel(&self.links, idx), was.is_some());
    }

    /// Advances with `budget` a call until done, checks what fired and what did not.
    fn advance(&mut self, to: u64, budget: u32) -> usize {
        self.now = self.now.max(to);
        let mut fired = Vec::new();
        loop {
            let mut left = budget;
            let before = fired.len();
            let how = self.wheel.advance(&self.links, to, &mut left, |idx| fired.push(idx));
            assert!(fired.len() - before <= (budget - left) as usize);
            if how == Advanced::Done {
                break;
            }
            assert_eq!(left, 0, "it stops for want of budget only");
        }
        for &idx in &fired {
            let deadline = self.set[idx as usize].take();
            assert!(
                deadline.is_some_and(|deadline| deadline <= to),
                "early, twice or cancelled: {deadline:?}"
            );
        }
        for deadline in self.set.iter().flatten() {
            assert!(
                to < self.now || to.saturating_sub(*deadline) < TICK_NS,
                "more than one tick late"
            );
        }
        self.check();
        fired.len()
    }

    fn check(&self) {
        let earliest = self.set.iter().flatten().min();
        assert_eq!(self.wheel.len() as usize, self.set.iter().flatten().count());
        assert_eq!(self.wheel.is_empty(), earliest.is_none());
        let next = self.wheel.next_deadline();
        assert_eq!(next.is_some(), earliest.is_some());
        if let (Some(next), Some(&earliest)) = (next, earliest) {
            let rounded = earliest.div_ceil(TICK_NS).saturating_mul(TICK_NS);
            assert!(next <= rounded.max(self.now), "sleeping until {next} would miss {rounded}");
        }
    }
}

#[derive(Clone, Debug)]
enum Op {
    Insert(u32, u64),
    Cancel(u32),
    Advance(u64, u32),
    Back(u64),
    Next,
}

fn span() -> impl Strategy<Value = u64> {
    // Every magnitude from a nanosecond to the whole range.
    (0..64_u32, any::<u64>()).prop_map(|(bits, random)| random >> bits)
}

fn ops() -> impl Strategy<Value = Vec<Op>> {
    let short = 0..200 * TICK_NS;
    let op = prop_oneof![
        4 => (0..TIMERS, short.clone()).prop_map(|(idx, after)| Op::Insert(idx, after)),
        4 => (0..TIMERS, span()).prop_map(|(idx, after)| Op::Insert(idx, after)),
        2 => (0..TIMERS).prop_map(Op::Cancel),
        3 => (short, 1..9_u32).prop_map(|(by, budget)| Op::Advance(by, budget)),
        1 => (8..60_u32, 1..9_u32).prop_map(|(bits, budget)| Op::Advance(1 << bits, budget)),
        1 => span().prop_map(Op::Back),
        3 => Just(Op::Next),
    ];
    proptest::collection::vec(op, 1..200)
}

proptest! {
    #![proptest_config(super::cases(300))]

    #[test]
    fn timers_fire_once_never_early_and_at_most_a_tick_late(ops in ops(), start in span()) {
        let mut clock = Clock::new(start);
        for op in ops {
            match op {
                Op::Insert(idx, after) => clock.insert(idx, clock.now.saturating_add(after)),
                Op::Cancel(idx) => clock.cancel(idx),
                Op::Advance(by, budget) => drop(clock.advance(clock.now.saturating_add(by), budget)),
                Op::Back(by) => drop(clock.advance(clock.now.saturating_sub(by), 4)),
                Op::Next => {
                    if let Some(next) = clock.wheel.next_deadline() {
                        clock.advance(next.max(clock.now), 3);
                    }
                }
            }
            clock.check();
        }
        clock.advance(u64::MAX, 7);
        for deadline in clock.set.iter().flatten() {
            prop_assert!(*deadline > u64::MAX / TICK_NS * TICK_NS, "only the last millisecond never comes");
        }
    }
}

#[test]
fn sleeping_until_the_next_deadline_reaches_every_timer_in_few_wakes() {
    let mut clock = Clock::new(12_345);
    for idx in 0..TIMERS {
        clock.insert(idx, 12_345 + (u64::from(idx) + 1).pow(7) * 50_000);
    }
    let (mut fired, mut wakes) = (0, 0);
    while let Some(next) = clock.wheel.next_deadline() {
        fired += clock.advance(next, u32::MAX);
        wakes += 1;
    }
    assert_eq!(fired, TIMERS as usize);
    // A timer moves down at most once per level.
    assert!(wakes <= TIMERS * 8, "{wakes} wakes");
}

#[test]
fn a_deadline_already_past_fires_at_the_next_advance_without_the_clock_moving() {
    let mut clock = Clock::new(0);
    clock.advance(5 * TICK_NS, 1);
    clock.insert(1, 3 * TICK_NS);
    clock.insert(2, 5 * TICK_NS);
    clock.insert(3, 5 * TICK_NS + 1);
    assert_eq!(clock.advance(5 * TICK_NS, 9), 2);
    assert_eq!(clock.advance(6 * TICK_NS - 1, 9), 0);
    assert_eq!(clock.advance(6 * TICK_NS, 9), 1);
}

#[test]
fn a_timer_is_not_early_when_the_clock_goes_back() {
    let mut clock = Clock::new(0);
    clock.advance(100 * TICK_NS, 1);
    clock.insert(1, 90 * TICK_NS);
    assert_eq!(clock.advance(80 * TICK_NS, 9), 0);
    assert_eq!(clock.advance(100 * TICK_NS, 9), 1);
}

#[test]
fn a_timer_that_was_half_moved_down_can_be_cancelled() {
    let mut clock = Clock::new(0);
    for idx in 0..8 {
        clock.insert(idx, 70 * TICK_NS + u64::from(idx));
    }
    let mut budget = 3;
    assert_eq!(
        clock.wheel.advance(&clock.links, 64 * TICK_NS, &mut budget, |_| {}),
        Advanced::More
    );
    for idx in 0..8 {
        clock.cancel(idx);
        clock.check();
    }
    assert_eq!(clock.advance(80 * TICK_NS, 1), 0);
}
