//! How much may wait: of a band, a pool, the engine, a tenant, through a YAML document and `submit`.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on may panic")]
#![cfg(all(not(loom), feature = "config"))]

mod common;

use core::time::Duration;

use bandgate_core::clock::Clock;
use bandgate_core::config::Config;
use bandgate_core::types::outcome::Fate;
use bandgate_core::types::settings::{DriverKind, Settings};
use bandgate_core::{CompletionQueue, Engine, Permit, Pool, Reason, Request, Submitted, Ticket};
use common::{host, settings, settle};

fn load(text: &str) -> Settings {
    let text = format!("engine: {{driver: host, maxRequests: 64}}\n{text}");
    Config::load(&text, [], "t.yaml").unwrap().settings
}

fn engine(text: &str) -> (Engine, Clock) {
    let clock = Clock::manual();
    (Engine::start_with_clock(&load(text), clock.clone()).unwrap(), clock)
}

fn request(pool: &Pool, priority: i32) -> Request {
    Request::new(pool.band(priority).unwrap()).no_timeout()
}

/// Takes every slot.
fn fill(pool: &Pool) -> Vec<Permit<'_>> {
    let mut held = Vec::new();
    while let Ok(permit) = pool.try_admit(&request(pool, 0)) {
        held.push(permit);
    }
    held
}

fn wait(pool: &Pool, queue: &CompletionQueue, request: &Request) -> Result<Ticket, Reason> {
    pool.submit(request, queue, 0).map(|submitted| match submitted {
        Submitted::Queued(ticket) => ticket,
        Submitted::Granted(permit) => panic!("granted: {permit:?}"),
    })
}

/// How many fit, and the reason of the first that does not.
fn fits(pool: &Pool, queue: &CompletionQueue, request: &Request) -> (usize, Reason) {
    let mut count = 0;
    loop {
        match wait(pool, queue, request) {
            Ok(_ticket) => count += 1,
            Err(reason) => return (count, reason),
        }
    }
}

fn rejected(pool: &Pool, priority: i32, reason: Reason) -> u64 {
    let all = pool.outcomes();
    let band = all.iter().find(|band| band.priority == Some(priority)).unwrap();
    band.counters.of(Fate::Rejected, reason)
}

#[test]
fn each_bound_exceeded_by_one_is_refused_for_its_own_reason() {
    for (band, pool, fit, reason) in [
        ("maxRequests: 3", "", 3, Reason::QueueFull),
        ("maxBytes: 350", "", 3, Reason::QueueFull),
        ("maxTokens: 30", "", 3, Reason::QueueFull),
        ("", "maxRequests: 2", 2, Reason::QueueFull),
        ("", "maxBytes: 200", 2, Reason::QueueFull),
        ("", "maxTokens: 29", 2, Reason::QueueFull),
        ("maxRequests: 8, tenantQueueShare: 0.5", "", 4, Reason::TenantQueueFull),
        ("maxBytes: 1k, tenantQueueShare: 0.5", "", 5, Reason::TenantQueueFull),
        ("maxTokens: 100, tenantQueueShare: 0.25", "", 2, Reason::TenantQueueFull),
        ("tenantQueueShare: 0.5", "", 32, Reason::TenantQueueFull),
    ] {
        let text = format!("bands: [{{priority: 5, {band}}}]\npools: {{p: {{slots: 1, {pool}}}}}");
        let (engine, _clock) = engine(&text.replace(", }", "}"));
        let pool = engine.pool("p").unwrap();
        let queue = engine.completion_queue(128).unwrap();
        let _held = fill(&pool);
        let flow = pool.flow("g", "acme", "k").unwrap();
        let one = request(&pool, 5).flow(flow).cost(10).bytes(100);
        assert_eq!(fits(&pool, &queue, &one), (fit, reason), "{text}");
        assert_eq!(rejected(&pool, 5, reason), 1, "{text}");
        // Another tenant, and the band below, have room of their own.
        let other = pool.flow("g", "other", "k").unwrap();
        let others = wait(&pool, &queue, &request(&pool, 5).flow(other).cost(10).bytes(100));
        assert_eq!(others.is_ok(), reason == Reason::TenantQueueFull, "{text}");
        let below = wait(&pool, &queue, &request(&pool, 0).cost(10).bytes(100));
        assert_eq!(below.is_ok(), !text.contains("1, max"), "{text}");
    }
}

/// U040.
#[test]
fn zero_absent_and_unlimited_are_three_different_things() {
    let of = |limit: &str| {
        let (engine, _clock) =
            engine(&format!("bands: [{{priority: 0{limit}}}]\npools: {{p: {{slots: 1}}}}"));
        let pool = engine.pool("p").unwrap();
        let queue = engine.completion_queue(128).unwrap();
        let held = fill(&pool);
        assert_eq!(held.len(), 1, "what can run at once needs no place");
        fits(&pool, &queue, &request(&pool, 0)).0
    };
    // 64: the places of the shard.
    assert_eq!([of(", maxRequests: 0"), of(""), of(", maxRequests: unlimited")], [0, 64, 64]);
    assert_eq!([of(", maxRequests: 1"), of(", maxRequests: 1k")], [1, 64]);
    let seeds = |keys: &str| {
        let band = format!("priorityBands: [{{priority: 0{keys}}}]");
        load(&format!("flowControl: {{{band}}}")).pools[0].bands[0].limits.requests
    };
    assert_eq!(
        [seeds(""), seeds(", maxRequests: 0"), seeds(", maxRequests: 7")],
        [Some(5_000), Some(5_000), Some(7)]
    );
    assert_eq!(
        load("flowControl: {maxRequests: 0, maxBytes: 0}").limits,
        Settings::default().limits
    );
    assert_eq!(load("flowControl: {maxRequests: 9}").limits.requests, Some(9));
}

#[test]
fn whatever_ends_a_wait_gives_its_room_back() {
    let text =
        "bands: [{priority: 0, maxRequests: 2, tenantQueueShare: 1}]\npools: {p: {slots: 1}}";
    let (engine, clock) = engine(text);
    let pool = engine.pool("p").unwrap();
    let queue = engine.completion_queue(64).unwrap();
    let flow = pool.flow("g", "acme", "k").unwrap();
    let one = request(&pool, 0).flow(flow);
    let timed = one.timeout(Duration::from_secs(1));
    for round in 0..5 {
        let mut held = fill(&pool);
        let _first = wait(&pool, &queue, &timed).unwrap();
        let second = wait(&pool, &queue, &one).unwrap();
        assert_eq!(fits(&pool, &queue, &one), (0, Reason::QueueFull), "round {round}");
        // A deadline, a cancel, a grant.
        clock.set(clock.now_ns() + 2_000_000_000);
        settle(&engine);
        pool.cancel(second);
        assert_eq!(fits(&pool, &queue, &one).0, 2, "round {round}");
        held.clear();
        while let Some(completion) = queue.poll() {
            drop(completion.outcome);
        }
        assert_eq!((pool.view().waiting, pool.view().running), (0, 0));
    }
    let counters = pool.outcomes()[0].counters;
    assert_eq!(counters.of(Fate::Evicted, Reason::Deadline), 5);
    assert_eq!(counters.of(Fate::Evicted, Reason::Cancelled), 5);
    assert_eq!(counters.of(Fate::Rejected, Reason::QueueFull), 10);
}

#[test]
fn a_limit_holds_through_the_ring_and_the_outcome_says_so() {
    let (engine, _clock) = engine("bands: [{priority: 0, maxRequests: 1}]\npools: {p: {slots: 1}}");
    let pool = engine.pool("p").unwrap();
    let queue = engine.completion_queue(64).unwrap();
    let _held = fill(&pool);
    // Inside another's turn a submit leaves its command in the ring.
    pool.pause_inside_turn(|| {
        for tag in [1, 2] {
            assert!(matches!(
                pool.submit(&request(&pool, 0), &queue, tag),
                Ok(Submitted::Queued(_))
            ));
        }
    });
    settle(&engine);
    let refused = queue.poll().unwrap();
    assert_eq!((refused.tag, refused.outcome.err()), (2, Some(Reason::QueueFull)));
    assert_eq!((pool.view().waiting, rejected(&pool, 0, Reason::QueueFull)), (1, 1));
}

#[test]
fn what_waits_in_all_pools_together_is_limited_across_shards_and_changes_live() {
    let text = |most: u32| {
        format!("pools: {{a: {{slots: 1}}, b: {{slots: 1}}}}\nflowControl: {{maxRequests: {most}}}")
    };
    let mut settings = load(&text(3));
    settings.shards = 2;
    let engine = Engine::start_with_clock(&settings, Clock::manual()).unwrap();
    let queue = engine.completion_queue(64).unwrap();
    let [a, b] = ["a", "b"].map(|name| engine.pool(name).unwrap());
    let (held, _other) = (fill(&a), fill(&b));
    let ticket = wait(&a, &queue, &request(&a, 0)).unwrap();
    assert_eq!(fits(&b, &queue, &request(&b, 0)), (2, Reason::QueueFull));
    assert_eq!(fits(&a, &queue, &request(&a, 0)), (0, Reason::QueueFull));
    a.cancel(ticket);
    assert_eq!(fits(&b, &queue, &request(&b, 0)), (1, Reason::QueueFull));
    settings.limits.requests = Some(5);
    engine.reload(&settings).unwrap();
    assert_eq!(fits(&a, &queue, &request(&a, 0)), (2, Reason::QueueFull));
    drop(held);
    assert_eq!(fits(&b, &queue, &request(&b, 0)), (1, Reason::QueueFull), "a grant gives room");
    settings.limits.requests = None;
    let fault = engine.reload(&settings).unwrap_err().to_string();
    assert!(fault.contains("engine.maxWaiting"), "{fault}");
}

#[test]
fn limits_set_while_requests_wait_count_them() {
    let mut settings = settings(DriverKind::Host, 1, &[5]);
    let (engine, pool, _clock) = host(&settings);
    let queue = engine.completion_queue(64).unwrap();
    let _held = fill(&pool);
    let tickets: Vec<_> =
        (0..3).map(|_| wait(&pool, &queue, &request(&pool, 5)).unwrap()).collect();
    settings.pools[0].bands[0].limits.requests = Some(4);
    engine.reload(&settings).unwrap();
    assert_eq!(fits(&pool, &queue, &request(&pool, 5)), (1, Reason::QueueFull));
    settings.pools[0].bands[0].limits.requests = Some(2);
    engine.reload(&settings).unwrap();
    assert_eq!(pool.view().waiting, 4, "who waits beyond a new limit stays");
    for ticket in tickets {
        pool.cancel(ticket);
    }
    assert_eq!(fits(&pool, &queue, &request(&pool, 5)), (1, Reason::QueueFull));
    settings.pools[0].bands[0].limits.requests = None;
    engine.reload(&settings).unwrap();
    assert!(wait(&pool, &queue, &request(&pool, 5)).is_ok());
}

#[test]
fn both_spellings_set_differently_are_refused_by_name() {
    let text = "bands: [{priority: 1, maxRequests: 5}]\nflowControl: {priorityBands: [{priority: 1, maxRequests: 6}]}";
    let error = Config::load(text, [], "t.yaml").unwrap_err();
    let fault = &error.faults[0];
    assert_eq!(fault.path, "flowControl.priorityBands[0].maxRequests");
    assert_eq!(fault.message, "differs from bands[0].maxRequests: keep one of them");
}
