//! The engine ceiling: never more running in all pools together, and no unit idle beside a pool that asks.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on may panic")]
#![cfg(not(loom))]

use core::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use core::time::Duration;
use std::thread;

use bandgate_core::types::settings::{DriverKind, PoolSettings};
use bandgate_core::{Engine, Pool, Reason, Request, Settings, Submitted};

fn engine(driver: DriverKind, shards: u16, ceiling: u32, slots: &[u32]) -> (Engine, Vec<Pool>) {
    let pools =
        slots.iter().enumerate().map(|(n, &slots)| PoolSettings::new(&format!("p{n}"), slots));
    let settings = Settings {
        driver,
        shards,
        ceiling: Some(ceiling),
        pools: pools.collect(),
        ..Settings::default()
    };
    let engine = Engine::start(&settings).unwrap();
    let pools = engine.pools().collect();
    (engine, pools)
}

fn request(pool: &Pool) -> Request {
    Request::new(pool.band(0).unwrap())
}

// INV: I02, I14
#[test]
fn a_unit_goes_where_it_is_wanted_and_the_sum_never_exceeds_the_ceiling() {
    let (_engine, pools) = engine(DriverKind::Host, 1, 4, &[4, 4]);
    let [a, b] = &pools[..] else { panic!("two pools") };
    let mut held: Vec<_> = (0..4).map(|_| a.try_admit(&request(a)).unwrap()).collect();
    assert_eq!(a.try_admit(&request(a)).err(), Some(Reason::WouldQueue), "its slots are full");
    assert_eq!(b.try_admit(&request(b)).err(), Some(Reason::WouldQueue), "the ceiling is reached");
    held.pop();
    let other = b.try_admit(&request(b)).unwrap();
    assert_eq!(a.try_admit(&request(a)).err(), Some(Reason::WouldQueue));
    drop(other);
    held.push(a.try_admit(&request(a)).unwrap());
    drop(held);
    let all: Vec<_> = (0..4).map(|_| b.try_admit(&request(b)).unwrap()).collect();
    assert_eq!(a.try_admit(&request(a)).err(), Some(Reason::WouldQueue));
    drop(all);
}

// INV: I14
#[test]
fn a_release_in_one_pool_grants_the_waiter_of_another() {
    let (engine, pools) = engine(DriverKind::Host, 1, 1, &[1, 1]);
    let [a, b] = &pools[..] else { panic!("two pools") };
    let queue = engine.completion_queue(8).unwrap();
    for _ in 0..50 {
        let held = a.try_admit(&request(a)).unwrap();
        let Submitted::Queued(_) = b.submit(&request(b), &queue, 1).unwrap() else {
            panic!("over")
        };
        assert!(queue.poll().is_none());
        drop(held);
        let permit = queue.poll().unwrap().outcome.unwrap();
        assert_eq!(a.try_admit(&request(a)).err(), Some(Reason::WouldQueue));
        let Submitted::Queued(_) = a.submit(&request(a), &queue, 2).unwrap() else {
            panic!("over")
        };
        drop(permit);
        assert_eq!(queue.poll().map(|c| (c.tag, c.outcome.is_ok())), Some((2, true)));
    }
}

#[test]
fn under_a_ceiling_that_fits_every_pool_has_all_its_slots_and_may_be_resized() {
    let (_engine, pools) = engine(DriverKind::Host, 1, 8, &[2, 4]);
    let [a, b] = &pools[..] else { panic!("two pools") };
    let held: Vec<_> = (0..4).map(|_| b.try_admit(&request(b)).unwrap()).collect();
    assert!(a.resize(4), "two spare units");
    let more: Vec<_> = (0..4).map(|_| a.try_admit(&request(a)).unwrap()).collect();
    assert!(a.resize(2) && a.resize(6));
    assert_eq!(a.try_admit(&request(a)).err(), Some(Reason::WouldQueue), "eight run");
    drop(held);
    let last: Vec<_> = (0..2).map(|_| a.try_admit(&request(a)).unwrap()).collect();
    assert!(a.resize(1));
    drop((more, last));
    let one = a.try_admit(&request(a)).unwrap();
    assert_eq!(a.try_admit(&request(a)).err(), Some(Reason::WouldQueue));
    assert!(b.resize(7));
    let seven: Vec<_> = (0..7).map(|_| b.try_admit(&request(b)).unwrap()).collect();
    assert_eq!(b.try_admit(&request(b)).err(), Some(Reason::WouldQueue));
    drop((one, seven));
}

/// Threads that admit and release at random on pools that share a ceiling below their sum.
fn storm(driver: DriverKind, shards: u16) {
    let (engine, pools) = engine(driver, shards, 3, &[2, 2, 2]);
    let running = AtomicI64::new(0);
    let granted = AtomicU64::new(0);
    thread::scope(|scope| {
        for n in 0..3_usize {
            let (pools, running, granted) = (&pools, &running, &granted);
            scope.spawn(move || {
                for round in 0..400_usize {
                    let pool = &pools[(n + round) % 3];
                    let permit = pool.admit_blocking(request(pool), Some(Duration::from_secs(20)));
                    let Ok(permit) = permit else { panic!("starved in round {round}") };
                    let now = running.fetch_add(1, Ordering::SeqCst) + 1;
                    assert!(now <= 3, "{now} run under a ceiling of 3");
                    if round % 7 == 0 {
                        thread::yield_now();
                    }
                    running.fetch_sub(1, Ordering::SeqCst);
                    permit.release();
                    granted.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
    });
    assert_eq!(granted.into_inner(), 1_200);
    assert!(engine.drain(Duration::from_secs(10)));
}

// INV: I02, I14
#[test]
fn a_storm_under_a_ceiling_exceeds_it_never_and_strands_nobody_inline() {
    storm(DriverKind::Inline, 1);
    storm(DriverKind::Inline, 3);
}

// INV: I02, I14
#[test]
fn a_storm_under_a_ceiling_exceeds_it_never_and_strands_nobody_with_shard_threads() {
    storm(DriverKind::Threads, 2);
}
