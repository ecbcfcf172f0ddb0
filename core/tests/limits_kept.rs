//! What waits is booked right however long it stays, through reloads, deadlines and observing.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on may panic")]
#![cfg(all(not(loom), feature = "config"))]

mod common;

use core::time::Duration;

use bandgate_core::clock::Clock;
use bandgate_core::config::Config;
use bandgate_core::types::outcome::Fate;
use bandgate_core::types::settings::Settings;
use bandgate_core::{CompletionQueue, Engine, Pool, Reason, Request, Submitted};
use common::settle;

fn load(text: &str) -> Settings {
    Config::load(text, [], "t.yaml").unwrap().settings
}

/// How many more may wait, and why the next may not.
fn fits(pool: &Pool, queue: &CompletionQueue, request: &Request) -> (usize, Reason) {
    let mut count = 0;
    loop {
        match pool.submit(request, queue, 0) {
            Ok(Submitted::Queued(_ticket)) => count += 1,
            Ok(Submitted::Granted(permit)) => panic!("granted: {permit:?}"),
            Err(reason) => return (count, reason),
        }
    }
}

/// U034: those that expire leave from wherever they stand, at once, and their room is free for as many others.
#[test]
fn a_thousand_that_expire_behind_one_that_does_not_give_all_their_room_back() {
    let text = "engine: {driver: host, maxRequests: 4096}\n\
                bands: [{priority: 0, maxRequests: 1001, maxBytes: 100100}]\npools: {p: {slots: 1}}";
    let clock = Clock::manual();
    let engine = Engine::start_with_clock(&load(text), clock.clone()).unwrap();
    let pool = engine.pool("p").unwrap();
    let queue = engine.completion_queue(2048).unwrap();
    let patient = Request::new(pool.band(0).unwrap()).no_timeout().bytes(100);
    let held = pool.try_admit(&patient).unwrap();
    let first = pool.submit(&patient, &queue, 7).unwrap();
    assert!(matches!(first, Submitted::Queued(_)), "{first:?}");
    let hasty = patient.timeout(Duration::from_millis(5));
    assert_eq!(fits(&pool, &queue, &hasty), (1_000, Reason::QueueFull));
    clock.set(clock.now_ns() + 10_000_000);
    settle(&engine);
    assert_eq!(pool.view().waiting, 1);
    let counters = pool.outcomes()[0].counters;
    assert_eq!(counters.of(Fate::Evicted, Reason::Deadline), 1_000);
    while let Some(completion) = queue.poll() {
        assert_eq!(completion.outcome.err(), Some(Reason::Deadline));
    }
    assert_eq!(fits(&pool, &queue, &patient), (1_000, Reason::QueueFull));
    drop(held);
    let granted = queue.poll().unwrap();
    assert_eq!(
        (granted.tag, granted.outcome.is_ok()),
        (7, true),
        "the first in line was not passed"
    );
}

/// The pool limits nothing itself: a reload that changes something else must not forget that the engine does.
#[test]
fn the_limit_of_the_engine_outlives_reloads_of_its_pools() {
    let text = |slots: u32| {
        format!(
            "engine: {{driver: host, maxRequests: 64, maxWaiting: 3}}\npools: {{p: {{slots: {slots}}}}}"
        )
    };
    let engine = Engine::start_with_clock(&load(&text(1)), Clock::manual()).unwrap();
    let pool = engine.pool("p").unwrap();
    let queue = engine.completion_queue(64).unwrap();
    let request = Request::new(pool.band(0).unwrap()).no_timeout();
    let held = pool.try_admit(&request).unwrap();
    assert_eq!(fits(&pool, &queue, &request), (3, Reason::QueueFull));
    // Two more slots: two are granted and leave two places.
    engine.reload(&load(&text(3))).unwrap();
    settle(&engine);
    assert_eq!((pool.view().running, pool.view().waiting), (3, 1));
    assert_eq!(fits(&pool, &queue, &request), (2, Reason::QueueFull));
    drop(held);
    settle(&engine);
    assert_eq!(fits(&pool, &queue, &request), (1, Reason::QueueFull));
}
