//! How long requests wait: timeouts, times to live, hints, absolute deadlines, and pools without backends.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on may panic")]
#![cfg(all(not(loom), feature = "config"))]

mod common;

use core::time::Duration;
use std::collections::BTreeMap;

use bandgate_core::config::Config;
use bandgate_core::types::settings::{BandSettings, DriverKind, Settings};
use bandgate_core::{CompletionQueue, Engine, Pool, Reason, Request, Submitted};
use common::{Rng, host, queued, settings, settle};
use proptest::prelude::*;

const MS: u64 = 1_000_000;

const fn ms(time: u64) -> Duration {
    Duration::from_millis(time)
}

/// A band that lives for `ttl`.
fn band(priority: i32, ttl: Option<Duration>) -> BandSettings {
    BandSettings { ttl, ..BandSettings::new(priority) }
}

/// Who ended, with the tag and the reason; permits are given back.
fn ended(engine: &Engine, queue: &CompletionQueue) -> Vec<(u64, Option<Reason>)> {
    settle(engine);
    let mut ended = Vec::new();
    queue.drain(|completion| ended.push((completion.tag, completion.outcome.err())));
    ended
}

fn request(pool: &Pool, priority: i32) -> Request {
    Request::new(pool.band(priority).unwrap())
}

#[test]
fn the_nearest_word_decides_and_a_hint_only_shortens() {
    let mut settings = settings(DriverKind::Host, 1, &[]);
    settings.admission_timeout = Some(ms(50));
    settings.pools[0].bands =
        vec![band(10, Some(ms(20))), band(5, Some(Duration::MAX)), band(0, None)];
    let (engine, pool, clock) = host(&settings);
    let running = pool.try_admit(&request(&pool, 0)).unwrap();
    let queue = engine.completion_queue(16).unwrap();
    let wait = |request: Request, tag| queued(pool.submit(&request, &queue, tag).unwrap());
    wait(request(&pool, 10), 20);
    wait(request(&pool, 0), 50);
    wait(request(&pool, 5), 9_999);
    wait(request(&pool, 10).ttl_hint(ms(5)), 5);
    wait(request(&pool, 10).ttl_hint(ms(500)), 21);
    wait(request(&pool, 5).ttl_hint(ms(30)), 30);
    wait(request(&pool, 10).timeout(ms(40)), 40);
    wait(request(&pool, 10).timeout(ms(1)).no_timeout(), 9_998);
    wait(request(&pool, 10).deadline_at(clock.now_ns() + 7 * MS), 7);
    wait(request(&pool, 10).deadline_at(1).timeout(ms(3)), 3);
    let mut at = BTreeMap::new();
    for step in 1..=60 {
        assert!(ended(&engine, &queue).is_empty(), "nothing ends between two steps");
        clock.set(clock.now_ns() + MS);
        for (tag, reason) in ended(&engine, &queue) {
            assert_eq!(reason, Some(Reason::Deadline));
            at.insert(tag, step);
        }
    }
    let expected = [(3, 3), (5, 5), (7, 7), (20, 20), (21, 20), (30, 30), (40, 40), (50, 50)];
    assert_eq!(at, BTreeMap::from(expected), "tags are the milliseconds they may wait");
    assert_eq!(pool.view().waiting, 2);
    drop(running);
}

#[test]
fn expired_work_is_never_dispatched_and_holds_no_slot() {
    let (engine, pool, clock) = host(&settings(DriverKind::Host, 1, &[10]));
    let queue = engine.completion_queue(8).unwrap();
    let past = request(&pool, 10).deadline_at(clock.now_ns());
    assert_eq!(pool.try_admit(&past).unwrap_err(), Reason::Deadline, "with a slot free");
    assert_eq!(pool.submit(&past, &queue, 0).unwrap_err(), Reason::Deadline);
    let running = pool.try_admit(&request(&pool, 0)).unwrap();
    let due_ns = clock.now_ns() + 10 * MS + 1;
    queued(pool.submit(&request(&pool, 10).deadline_at(due_ns), &queue, 1).unwrap());
    queued(pool.submit(&request(&pool, 0).no_timeout(), &queue, 2).unwrap());
    // The slot comes back in the nanosecond in which the first is due, before any timer fires.
    clock.set(due_ns);
    drop(running);
    assert_eq!(ended(&engine, &queue), [(1, Some(Reason::Deadline)), (2, None)]);
    let foreign = Engine::start(&Settings::default()).unwrap();
    let theirs = foreign.pool("default").unwrap();
    let timed = request(&theirs, 0).deadline_at(u64::MAX / 8);
    assert_eq!(pool.try_admit(&timed).unwrap_err(), Reason::UnknownBand);
    assert!(theirs.try_admit(&timed).is_ok());
}

#[test]
fn without_backends_nothing_is_dispatched_and_the_reason_says_so() {
    let (engine, pool, clock) = host(&settings(DriverKind::Host, 2, &[10]));
    let queue = engine.completion_queue(8).unwrap();
    let running = pool.try_admit(&request(&pool, 10)).unwrap();
    pool.set_backends(0).unwrap();
    assert_eq!(pool.try_admit(&request(&pool, 10)).unwrap_err(), Reason::NoBackend);
    let now_or_never = request(&pool, 10).timeout(Duration::ZERO);
    assert_eq!(pool.submit(&now_or_never, &queue, 0).unwrap_err(), Reason::NoBackend);
    queued(pool.submit(&request(&pool, 10).timeout(ms(5)), &queue, 1).unwrap());
    queued(pool.submit(&request(&pool, 0), &queue, 2).unwrap());
    drop(running);
    assert!(ended(&engine, &queue).is_empty());
    clock.set(clock.now_ns() + 5 * MS);
    assert_eq!(ended(&engine, &queue), [(1, Some(Reason::NoBackend))]);
    pool.set_backends(3).unwrap();
    assert_eq!(ended(&engine, &queue), [(2, None)], "the flip itself dispatches");
    assert!(pool.try_admit(&request(&pool, 10)).is_ok(), "the fast path is open again");
}

/// When a waiter with these budgets is due, looking at every millisecond of the plain rule.
fn due_ms(from: u64, to_live: u64, without: u64, flips: &[u64]) -> (u64, Reason) {
    for now in from.. {
        let past: Vec<u64> = flips.iter().copied().filter(|at| *at <= now).collect();
        let start = past.last().copied().unwrap_or(0).max(from);
        let (budget, reason) = match past.len() % 2 {
            0 => (to_live, Reason::Deadline),
            _ => (without, Reason::NoBackend),
        };
        if now >= start + budget {
            return (now, reason);
        }
    }
    unreachable!("budgets are finite")
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, ..ProptestConfig::default() })]

    /// Each flip of the regime grants the other budget afresh; everybody ends in his millisecond, for its reason.
    #[test]
    fn expiry_is_exact_whatever_backends_do(
        without in 1..60_u64,
        flips in prop::collection::btree_set(1..300_u64, 0..8),
        seed in any::<u64>(),
    ) {
        let mut settings = settings(DriverKind::Host, 1, &[10]);
        settings.pools[0].no_backend_ttl = Some(ms(without));
        let (engine, pool, clock) = host(&settings);
        let running = pool.try_admit(&request(&pool, 10)).unwrap();
        let queue = engine.completion_queue(512).unwrap();
        let flips: Vec<u64> = flips.into_iter().collect();
        let mut rng = Rng(seed);
        let (mut expected, mut seen) = (BTreeMap::new(), BTreeMap::new());
        let mut tag = 0;
        for now in 0..900 {
            clock.set(now * MS);
            if flips.contains(&now) {
                let before = flips.iter().filter(|at| **at <= now).count();
                pool.set_backends(u32::from(before % 2 == 0)).unwrap();
            }
            for (tag, reason) in ended(&engine, &queue) {
                seen.insert(tag, (now, reason.unwrap()));
            }
            if now < 300 && rng.below(3) == 0 {
                let to_live = 1 + rng.below(80) as u64;
                let wait = request(&pool, 10).ttl_hint(ms(to_live));
                queued(pool.submit(&wait, &queue, tag).unwrap());
                expected.insert(tag, due_ms(now, to_live, without, &flips));
                tag += 1;
            }
        }
        prop_assert_eq!(seen, expected);
        prop_assert_eq!(pool.view().waiting, 0);
        drop(running);
    }
}

const DOCUMENT: &str = "
engine: {driver: host, admissionTimeout: 30s}
bands: [{priority: 20, ttl: 5s}, {priority: 10, ttl: unlimited}]
pools: {default: {slots: 1, noBackendTtl: 2s}}
";

#[test]
fn a_document_says_how_long_bands_wait_and_a_reload_changes_it() {
    let load = |text: &str| Config::load(text, [], "t.yaml").unwrap().settings;
    let (engine, pool, clock) = host(&load(DOCUMENT));
    let queue = engine.completion_queue(8).unwrap();
    let running = pool.try_admit(&request(&pool, 0)).unwrap();
    let submit = |priority, tag| pool.submit(&request(&pool, priority), &queue, tag).unwrap();
    let _ = (queued(submit(20, 20)), queued(submit(10, 10)), queued(submit(0, 0)));
    clock.set(5_000 * MS);
    assert_eq!(ended(&engine, &queue), [(20, Some(Reason::Deadline))]);
    let changed = DOCUMENT.replace("ttl: 5s", "ttl: 1s");
    engine.reload(&load(&changed)).unwrap();
    queued(submit(20, 21));
    clock.set(6_000 * MS);
    assert_eq!(ended(&engine, &queue), [(21, Some(Reason::Deadline))]);
    let refused = engine.reload(&load(&DOCUMENT.replace("noBackendTtl: 2s", "noBackendTtl: 3s")));
    let message = refused.unwrap_err().to_string();
    assert!(message.contains("pools.default.noBackendTtl"), "{message}");
    pool.set_backends(0).unwrap();
    clock.set(8_000 * MS);
    let gone = [(0, Some(Reason::NoBackend)), (10, Some(Reason::NoBackend))];
    let mut seen = ended(&engine, &queue);
    seen.sort_unstable_by_key(|it| it.0);
    assert_eq!(seen, gone);
    drop(running);
    assert!(matches!(submit(20, 1), Submitted::Queued(_)));
}

#[test]
fn the_seeds_spelling_keeps_its_own_zero() {
    let load = |text: &str| Config::load(text, [], "t.yaml").map(|config| config.settings);
    let never = load("flowControl: {defaultRequestTTL: 0s}").unwrap();
    assert_eq!(never.admission_timeout, None);
    assert_eq!(never.pools[0].no_backend_ttl, Some(Duration::MAX), "it follows");
    let both = load("flowControl: {defaultRequestTTL: 9s, noEndpointRequestTTL: 10m}").unwrap();
    assert_eq!(both.admission_timeout, Some(Duration::from_secs(9)));
    assert_eq!(both.pools[0].no_backend_ttl, Some(Duration::from_secs(600)));
    let none = load("engine: {admissionTimeout: 0s}").unwrap();
    assert_eq!(none.admission_timeout, Some(Duration::ZERO), "ours refuses");
    let text = "engine: {admissionTimeout: 3s}\nflowControl: {defaultRequestTTL: 0s}";
    let message = load(text).unwrap_err().to_string();
    assert!(message.contains("flowControl.defaultRequestTTL: unlimited differs"), "{message}");
}
