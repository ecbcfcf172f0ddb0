//! What went wrong for others and must not here: each test names the entry of the bug log it stands for.
//!
//! U044 (a collector takes a flow whose requests still wait) is in `idle_flows.rs`, for bands in `templates.rs`. U084 (the
//! wall clock steps back): nothing but `clock.rs` reads time, and no wall clock at all (`tidy.rs`).
#![allow(clippy::unwrap_used, reason = "a test that cannot go on may panic")]
#![cfg(not(loom))]

mod common;

use core::time::Duration;

use bandgate_core::clock::Clock;
use bandgate_core::types::settings::{DriverKind, Settings};
use bandgate_core::{CancelAnswer, Engine, Pool, Reason, Request};
use common::{Rng, host, queued, settings, settle, start, tenant};

fn advance(engine: &Engine, clock: &Clock, by: Duration) {
    clock.set(clock.now_ns() + u64::try_from(by.as_nanos()).unwrap());
    settle(engine);
}

const SECOND: Duration = Duration::from_secs(1);

/// U034: requests past their deadline stay in the queue unless they are at its head.
#[test]
fn every_expired_waiter_is_gone_at_once_behind_a_slot_that_stays_taken() {
    let many: u32 = if cfg!(debug_assertions) { 20_000 } else { 100_000 };
    let mut wanted = settings(DriverKind::Host, 1, &[10]);
    wanted.max_requests = many + 1;
    let (engine, pool, clock) = host(&wanted);
    let queues =
        [engine.completion_queue(65_536).unwrap(), engine.completion_queue(65_536).unwrap()];
    let running = pool.try_admit(&Request::new(pool.band(0).unwrap())).unwrap();
    let head = Request::new(pool.band(10).unwrap()).no_timeout();
    let _head = queued(pool.submit(&head, &queues[0], 0).unwrap());
    let short = Request::new(pool.band(0).unwrap()).timeout(Duration::from_millis(1));
    for n in 1..=many {
        let queue = &queues[n as usize % 2];
        let _ticket = queued(pool.submit(&short, queue, n.into()).unwrap());
    }
    advance(&engine, &clock, Duration::from_millis(3));
    assert_eq!((pool.view().waiting, pool.view().stats.evicted), (1, many.into()));
    for queue in &queues {
        while let Some(done) = queue.poll() {
            assert_eq!(done.outcome.err(), Some(Reason::Deadline));
        }
    }
    drop(running);
    assert!(queues[0].poll().unwrap().outcome.is_ok());
}

/// U035: a cancelled request at the head counts as pending and blocks those behind it.
#[test]
fn a_head_that_is_held_up_or_cancelled_blocks_nobody_and_does_not_count() {
    for cancels in [false, true] {
        let mut wanted = settings(DriverKind::Host, 2, &[10]);
        wanted.tenants = vec![tenant("full", 1)];
        let (engine, pool, _clock) = host(&wanted);
        let queue = engine.completion_queue(16).unwrap();
        let of = |tenant: &str| {
            let flow = pool.flow("", tenant, "").unwrap();
            Request::new(pool.band(0).unwrap()).flow(flow).no_timeout()
        };
        let capped = pool.try_admit(&of("full")).unwrap();
        let other = pool.try_admit(&of("other")).unwrap();
        let head = queued(pool.submit(&of("full"), &queue, 1).unwrap());
        let _follower = queued(pool.submit(&of("other"), &queue, 2).unwrap());
        if cancels {
            assert_eq!(pool.cancel(head), CancelAnswer::Cancelled);
        }
        assert_eq!(pool.view().waiting, 2 - u32::from(cancels));
        drop(other);
        let done = queue.poll().unwrap();
        assert_eq!(done.tag, 2, "cancelled: {cancels}");
        assert_eq!(pool.view().waiting, u32::from(!cancels));
        drop((capped, done.outcome.unwrap()));
        assert_eq!(queue.poll().is_some(), !cancels);
    }
}

/// U037: a wait limit of 10 s is noticed after 90 s, when the running request ends.
#[test]
fn a_deadline_passes_by_its_own_timer_and_not_when_a_slot_comes_back() {
    let (engine, pool, clock) = host(&settings(DriverKind::Host, 1, &[10]));
    let queue = engine.completion_queue(4).unwrap();
    let request = Request::new(pool.band(0).unwrap());
    let running = pool.try_admit(&request).unwrap();
    let _ticket = queued(pool.submit(&request.timeout(10 * SECOND), &queue, 1).unwrap());
    advance(&engine, &clock, Duration::from_millis(9_999));
    assert!(queue.poll().is_none());
    advance(&engine, &clock, Duration::from_millis(2));
    assert_eq!(queue.poll().unwrap().outcome.err(), Some(Reason::Deadline));
    advance(&engine, &clock, 80 * SECOND);
    drop(running);
    assert!(queue.poll().is_none() && pool.view().free == 1);
}

/// U042: the wait does not count against the deadline.
#[test]
fn a_slot_that_comes_at_the_deadline_is_not_given_and_one_before_it_is() {
    for (wait_ms, is_granted) in [(900, true), (999, true), (1_000, false), (1_500, false)] {
        let (engine, pool, clock) = host(&settings(DriverKind::Host, 1, &[10]));
        let queue = engine.completion_queue(4).unwrap();
        let request = Request::new(pool.band(0).unwrap());
        let running = pool.try_admit(&request).unwrap();
        let _ticket = queued(pool.submit(&request.timeout(SECOND), &queue, 1).unwrap());
        // Nobody polls in between: the release itself has to notice.
        clock.set(clock.now_ns() + wait_ms * 1_000_000);
        drop(running);
        assert_eq!(queue.poll().unwrap().outcome.is_ok(), is_granted, "{wait_ms} ms");
        assert_eq!(pool.view().free, 1);
    }
}

fn sized(slots: u32) -> Settings {
    settings(DriverKind::Host, slots, &[10])
}

/// U083: a live update reaches a part of the system, and half of the new maximum is enforced.
#[test]
fn a_smaller_size_is_drained_to_and_a_larger_one_granted_at_once_by_reload() {
    let (engine, pool, _clock) = host(&sized(10));
    let queue = engine.completion_queue(16).unwrap();
    let request = Request::new(pool.band(0).unwrap()).no_timeout();
    let mut permits: Vec<_> = (0..10).map(|_| pool.try_admit(&request).unwrap()).collect();
    engine.reload(&sized(4)).unwrap();
    for left in (4..10).rev() {
        permits.pop();
        assert_eq!(pool.view().running, left);
        assert_eq!(pool.try_admit(&request).err(), Some(Reason::WouldQueue), "{left} run");
    }
    permits.pop();
    permits.push(pool.try_admit(&request).unwrap());
    for tag in 0..7 {
        let _ticket = queued(pool.submit(&request, &queue, tag).unwrap());
    }
    engine.reload(&sized(10)).unwrap();
    permits.extend(core::iter::from_fn(|| queue.poll()).map(|done| done.outcome.unwrap()));
    assert_eq!((permits.len(), pool.view().waiting, pool.view().free), (10, 1, 0));
}

/// U083: sizes at random, by reload and by call, while others admit and release.
#[test]
fn a_thousand_sizes_under_load_lose_no_slot_and_no_waiter() {
    let mut wanted = sized(4);
    wanted.driver = DriverKind::Inline;
    let (engine, pool) = start(&wanted);
    let rounds = if cfg!(debug_assertions) { 200 } else { 1_000 };
    let load = |pool: &Pool| {
        let request = Request::new(pool.band(0).unwrap());
        for _ in 0..rounds * 20 {
            drop(pool.admit_blocking(request, Some(Duration::from_secs(60))).unwrap());
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| load(&pool));
        }
        let mut rng = Rng(83);
        for _ in 0..rounds {
            wanted.pools[0].slots = 1 + u32::try_from(rng.below(10)).unwrap();
            if rng.below(2) == 0 {
                engine.reload(&wanted).unwrap();
            } else {
                assert!(pool.resize(wanted.pools[0].slots));
            }
        }
    });
    // One more of another size, for a size that is in force already is left as the host set it.
    wanted.pools[0].slots = 11;
    engine.reload(&wanted).unwrap();
    let view = pool.view();
    assert_eq!((view.running, view.waiting, view.free, view.slots), (0, 0, 11, 11));
}
