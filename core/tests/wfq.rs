//! Weighted bands on the engine: shares, waits and the order under every kind of load a pool sees.
//!
//! The bound: over any whole number of rounds each backlogged band gets exactly its weight; between two
//! dispatches of a band at most `round - weight` others pass, so `round - 1` for the lowest of weight 1.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on may panic")]
#![cfg(not(loom))]

mod common;

use bandgate_core::types::policy::{Distribution, Schedule};
use bandgate_core::types::settings::DriverKind;
use bandgate_core::{CompletionQueue, Engine, Permit, Pool, Request, Settings, Submitted};

use common::{CREDITS, explicit, host, queued, settings, settle, wfq};

const BANDS: [i32; 3] = [20, 10, 0];
const DISPATCHES: usize = if cfg!(miri) { 120 } else { 2_400 };

/// A distribution and the reduced weights it must come out as.
fn distributions() -> Vec<(Distribution, [usize; 3])> {
    vec![
        (explicit(&[(20, 6_000), (10, 3_000), (0, 1_000)]), [6, 3, 1]),
        (Distribution::Proportional { anchor: None }, [21, 11, 1]),
        (Distribution::Linear, [3, 2, 1]),
    ]
}

fn weighted(slots: u32, schedule: Schedule, by: &Distribution, activation: f64) -> Settings {
    let mut settings = settings(DriverKind::Host, slots, &BANDS);
    settings.pools[0].selection = wfq(schedule, by.clone(), activation);
    settings.admission_timeout = None;
    settings
}

/// A pool whose slots all run and in which every band has `depth` waiters; the tag is the band.
struct Backlog<'e> {
    pool: &'e Pool,
    queue: &'e CompletionQueue,
    running: Vec<Permit<'e>>,
}

impl<'e> Backlog<'e> {
    fn new(pool: &'e Pool, queue: &'e CompletionQueue, slots: u32, depth: usize) -> Self {
        let top = Request::new(pool.band(20).unwrap());
        let running = (0..slots).map(|_| pool.try_admit(&top).unwrap()).collect();
        let backlog = Self { pool, queue, running };
        for band in 0..3 {
            (0..depth).for_each(|_| backlog.submit(band));
        }
        backlog
    }

    fn submit(&self, band: usize) {
        let request = Request::new(self.pool.band(BANDS[band]).unwrap());
        let _ticket = queued(self.pool.submit(&request, self.queue, band as u64).unwrap());
    }

    /// Takes what was granted and puts a new waiter in each place.
    fn take(&mut self, order: &mut Vec<usize>) {
        while let Some(completion) = self.queue.poll() {
            let band = usize::try_from(completion.tag).unwrap();
            self.running.push(completion.outcome.unwrap());
            order.push(band);
            self.submit(band);
        }
    }
}

/// Shares within one round of the exact ones, and no wait above the bound.
fn check_order(order: &[usize], weights: [usize; 3], slack: usize, what: &str) {
    let round: usize = weights.iter().sum();
    let rounds = order.len() / round;
    for (band, &weight) in weights.iter().enumerate() {
        let served = order.iter().filter(|b| **b == band).count();
        let exact = rounds * weight;
        let range = exact.saturating_sub(weight + slack)..=exact + weight + slack;
        assert!(range.contains(&served), "{what}: band {band} got {served}, exact {exact}");
        let places = order.iter().enumerate().filter(|(_, b)| **b == band).map(|(at, _)| at);
        let places: Vec<_> = places.collect();
        let between = places.windows(2).map(|pair| pair[1] - pair[0] - 1).max().unwrap();
        let bound = round - weight + slack;
        assert!(between <= bound, "{what}: band {band} waited {between} dispatches, bound {bound}");
    }
}

// INV: I14 I23 I24 I29
#[test]
fn backlogged_bands_share_by_weight_within_one_round_and_wait_at_most_a_round() {
    for schedule in [CREDITS, Schedule::Interleaved] {
        for (by, weights) in distributions() {
            for slots in [1, 2, 8, 64] {
                let (engine, pool, _clock) = host(&weighted(slots, schedule, &by, 0.5));
                let queue = engine.completion_queue(512).unwrap();
                let mut backlog = Backlog::new(&pool, &queue, slots, 40);
                let mut order = Vec::new();
                while order.len() < DISPATCHES {
                    drop(backlog.running.remove(0));
                    backlog.take(&mut order);
                    assert_eq!(backlog.running.len(), slots as usize, "work conservation");
                }
                check_order(&order, weights, 0, &format!("{schedule:?} {by:?} {slots} slots"));
            }
        }
    }
}

/// The exact table of the specification, from the first dispatch on: WFQ engages on a full pool.
// INV: I23
#[test]
fn wfq_engages_on_a_backlogged_pool_of_1_2_and_8_slots() {
    let by = explicit(&[(20, 6_000), (10, 3_000), (0, 1_000)]);
    let tables = [
        (CREDITS, [0, 0, 0, 0, 0, 0, 1, 1, 1, 2]),
        (Schedule::Interleaved, [0, 1, 2, 0, 0, 1, 0, 0, 1, 0]),
    ];
    for (schedule, table) in tables {
        for slots in [1, 2, 8] {
            // Only a full pool activates: one slot less and the mode would be strict.
            let (engine, pool, _clock) = host(&weighted(slots, schedule, &by, 0.99));
            let queue = engine.completion_queue(512).unwrap();
            let mut backlog = Backlog::new(&pool, &queue, slots, 12);
            let mut order = Vec::new();
            while order.len() < 20 {
                drop(backlog.running.remove(0));
                backlog.take(&mut order);
            }
            let twice: Vec<_> = table.iter().chain(&table).copied().collect();
            assert_eq!(order, twice, "{schedule:?}, {slots} slots");
        }
    }
}

/// Lets `releases` pile up behind a holder that is paused, so that one turn finds them all.
fn release_behind_a_pause(engine: &Engine, backlog: &mut Backlog<'_>, releases: usize) {
    let released: Vec<_> = backlog.running.drain(..releases).collect();
    let paused = backlog.pool.pause_inside_turn(|| drop(released));
    assert!(paused, "one thread: nobody else has the lock");
    settle(engine);
}

// INV: I14 I23
#[test]
fn releases_that_one_turn_finds_together_keep_the_ratio() {
    for schedule in [CREDITS, Schedule::Interleaved] {
        for (by, weights) in distributions() {
            // 30 fit in the budget of one turn with their grants, 64 fill it, 100 spill over.
            for releases in [6, 30, 64, 100] {
                for activation in [0.0, 0.5, 0.99] {
                    let slots = u32::try_from(releases).unwrap().max(8);
                    let (engine, pool, _clock) = host(&weighted(slots, schedule, &by, activation));
                    let queue = engine.completion_queue(1_024).unwrap();
                    let mut backlog = Backlog::new(&pool, &queue, slots, 130);
                    let mut order = Vec::new();
                    while order.len() < DISPATCHES / 4 {
                        release_behind_a_pause(&engine, &mut backlog, releases);
                        backlog.take(&mut order);
                        assert_eq!(backlog.running.len(), slots as usize, "work conservation");
                    }
                    let what = format!("{schedule:?} {by:?}, {releases} releases, {activation}");
                    check_order(&order, weights, 0, &what);
                }
            }
        }
    }
}

/// Those who wait are held up by their tenant's cap, so newcomers of no tenant run at once beside them,
/// without the lock: that is no dispatch of the policy, and the waiters' shares stay exact.
// INV: I14 I23 I25
#[test]
fn direct_grants_do_not_disturb_the_shares_of_those_who_wait() {
    for schedule in [CREDITS, Schedule::Interleaved] {
        for (by, weights) in distributions() {
            let mut settings = weighted(4, schedule, &by, 0.0);
            settings.tenants.push(common::tenant("capped", 1));
            let (engine, pool, _clock) = host(&settings);
            let queue = engine.completion_queue(512).unwrap();
            let flow = pool.flow("", "capped", "").unwrap();
            let request = |band: usize| Request::new(pool.band(BANDS[band]).unwrap());
            let submit = |band: usize| {
                let submitted = pool.submit(&request(band).flow(flow), &queue, band as u64);
                let _ticket = queued(submitted.unwrap());
            };
            let mut running = Some(pool.try_admit(&request(0).flow(flow)).unwrap());
            (0..120).for_each(|n| submit(n % 3));
            let direct = pool.view().stats.direct;
            let (mut rng, mut order) = (common::Rng(7), Vec::new());
            while order.len() < DISPATCHES / 2 {
                let newcomers = (0..rng.below(4)).map(|_| pool.try_admit(&request(rng.below(3))));
                let newcomers: Vec<_> = newcomers.map(Result::unwrap).collect();
                drop(running.take());
                let completion = queue.poll().unwrap();
                order.push(usize::try_from(completion.tag).unwrap());
                running = completion.outcome.ok();
                submit(*order.last().unwrap());
                assert_eq!(pool.view().running as usize, 1 + newcomers.len());
            }
            assert_eq!(pool.view().stats.direct, direct, "the newcomers took no lock");
            check_order(&order, weights, 0, &format!("{schedule:?} {by:?}"));
        }
    }
}

// INV: I25 I29
#[test]
fn a_band_that_was_empty_is_served_at_once_and_catches_nothing_up() {
    let by = explicit(&[(20, 6_000), (10, 3_000), (0, 1_000)]);
    for schedule in [CREDITS, Schedule::Interleaved] {
        let (engine, pool, _clock) = host(&weighted(1, schedule, &by, 0.0));
        let queue = engine.completion_queue(2_048).unwrap();
        let band = |at: usize| Request::new(pool.band(BANDS[at]).unwrap());
        let mut running = vec![pool.try_admit(&band(1)).unwrap()];
        let mut order = Vec::new();
        let submit = |at: usize, count| {
            for _ in 0..count {
                let submitted = pool.submit(&band(at), &queue, at as u64).unwrap();
                assert!(matches!(submitted, Submitted::Queued(_)));
            }
        };
        submit(1, 400);
        submit(2, 400);
        for step in 0..300 {
            if step == 150 {
                // 150 dispatches without the top band leave it no claim on them.
                submit(0, 400);
            }
            drop(running.pop());
            let completion = queue.poll().unwrap();
            order.push(usize::try_from(completion.tag).unwrap());
            running.push(completion.outcome.unwrap());
        }
        let (before, after) = order.split_at(150);
        assert!((110..=115).contains(&before.iter().filter(|b| **b == 1).count()));
        let round = after.iter().position(|b| *b == 0).unwrap();
        assert!(round <= 4, "{schedule:?}: served after {round} others");
        let top = after.iter().filter(|b| **b == 0).count();
        assert!((84..=96).contains(&top), "{schedule:?}: {top} of 150 are not 6 of 10");
    }
}

/// Fills the pool without the policy and grants `count` waiters of each band, one release at a time.
fn order_of_the_next(backlog: &mut Backlog<'_>, slots: usize, count: usize) -> Vec<usize> {
    let top = Request::new(backlog.pool.band(20).unwrap());
    while backlog.running.len() < slots {
        backlog.running.push(backlog.pool.try_admit(&top).unwrap());
    }
    for band in 0..3 {
        (0..count).for_each(|_| backlog.submit(band));
    }
    let mut order = Vec::new();
    while order.len() < count {
        drop(backlog.running.remove(0));
        backlog.take(&mut order);
    }
    order
}

/// A newcomer in the same turn as the last waiter's grant counts in the mode of that turn, whose highest load
/// was a full pool, and not in that of the load the turn's releases left.
// INV: I23
#[test]
fn a_newcomer_behind_the_last_waiter_is_charged_in_the_mode_of_the_turn() {
    let by = explicit(&[(20, 6_000), (10, 3_000), (0, 1_000)]);
    let mut settings = weighted(100, CREDITS, &by, 0.99);
    settings.pools[0].ring_capacity = 128;
    settings.tenants.push(common::tenant("t", 100));
    let (engine, pool, _clock) = host(&settings);
    let queue = engine.completion_queue(512).unwrap();
    let flow = pool.flow("", "t", "").unwrap();
    let mut backlog = Backlog::new(&pool, &queue, 100, 0);
    backlog.submit(1);
    // 64 of the releases spend the budget of the turn behind the pause; the newcomer's turn goes on with it:
    // the last releases, the waiter, then itself.
    let released: Vec<_> = backlog.running.drain(..70).collect();
    assert!(pool.pause_inside_turn(|| drop(released)));
    assert!(queue.poll().is_none(), "the rest of the releases comes with the newcomer's turn");
    let newcomer = Request::new(pool.band(20).unwrap()).flow(flow);
    let permit = pool.try_admit(&newcomer).unwrap();
    let waiter = queue.poll().unwrap().outcome.unwrap();
    backlog.running.extend([permit, waiter]);
    let order = order_of_the_next(&mut backlog, 100, 8);
    assert_eq!(order, [0, 0, 0, 0, 0, 1, 1, 2], "both were charged");
}

/// Who begins to wait in a turn after its releases is served in the mode of the turn's highest load.
// INV: I23
#[test]
fn waiters_that_come_after_the_releases_of_a_turn_are_served_in_its_mode() {
    let by = explicit(&[(20, 6_000), (10, 3_000), (0, 1_000)]);
    let (engine, pool, _clock) = host(&weighted(8, CREDITS, &by, 0.99));
    let queue = engine.completion_queue(512).unwrap();
    let mut backlog = Backlog::new(&pool, &queue, 8, 0);
    let released: Vec<_> = backlog.running.drain(..6).collect();
    let paused = pool.pause_inside_turn(|| {
        drop(released);
        for _ in 0..2 {
            backlog.submit(0);
        }
    });
    assert!(paused);
    settle(&engine);
    while let Some(completion) = queue.poll() {
        backlog.running.push(completion.outcome.unwrap());
    }
    let order = order_of_the_next(&mut backlog, 8, 8);
    assert_eq!(order, [0, 0, 0, 0, 1, 1, 1, 2], "both were charged");
}
