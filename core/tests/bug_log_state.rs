//! More of the bug log: headroom, what is reported, and keys that are mistyped. See `bug_log.rs`.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on may panic")]
#![cfg(all(not(loom), feature = "config"))]

mod common;

use core::time::Duration;

use bandgate_core::config::{Config, schema};
use bandgate_core::types::outcome::Fate;
use bandgate_core::types::policy::Holdback;
use bandgate_core::types::settings::DriverKind;
use bandgate_core::{Engine, Pool, Reason, Request};
use common::{host, queued, settings, settle};

fn request(pool: &Pool, priority: i32) -> Request {
    Request::new(pool.band(priority).unwrap())
}

fn refused(pool: &Pool, priority: i32, reason: Reason) -> u64 {
    let all = pool.outcomes();
    let band = all.iter().find(|band| band.priority == Some(priority)).unwrap();
    band.counters.of(Fate::Rejected, reason)
}

/// U059: a flood of the lower band has every slot, so the upper one waits for an end.
#[test]
fn a_flood_of_the_lower_band_leaves_the_upper_one_its_headroom() {
    let mut settings = settings(DriverKind::Host, 10, &[10]);
    let ceilings = vec![(10, 1.0), (0, 0.8)];
    settings.pools[0].holdback = Holdback::Explicit { ceilings, default: None };
    let (engine, pool, _clock) = host(&settings);
    let queue = engine.completion_queue(1_024).unwrap();
    let flood = request(&pool, 0).no_timeout();
    let running: Vec<_> = (0..8).map(|_| pool.try_admit(&flood).unwrap()).collect();
    for tag in 0..500 {
        let _ticket = queued(pool.submit(&flood, &queue, tag).unwrap());
    }
    settle(&engine);
    for _ in 0..1_000 {
        let two = [(); 2].map(|()| pool.try_admit(&request(&pool, 10)));
        assert!(two.iter().all(Result::is_ok), "at once, whatever floods below");
        assert_eq!(pool.view().running, 10);
    }
    assert!(queue.poll().is_none() && pool.view().waiting == 500);
    drop(running);
}

/// U102: numbers that follow successes only read 0 exactly when all is refused, or show a limit of before.
#[test]
fn under_total_refusal_the_numbers_are_right_and_a_new_limit_shows() {
    let mut settings = settings(DriverKind::Host, 3, &[10]);
    settings.pools[0].bands[0].limits.requests = Some(0);
    let (engine, pool, _clock) = host(&settings);
    let queue = engine.completion_queue(4).unwrap();
    let held: Vec<_> = (0..3).map(|_| pool.try_admit(&request(&pool, 0)).unwrap()).collect();
    for tag in 0..1_000 {
        let answer = pool.submit(&request(&pool, 10), &queue, tag);
        assert_eq!(answer.unwrap_err(), Reason::QueueFull);
    }
    let view = pool.view();
    assert_eq!((view.running, view.slots, view.free, view.waiting), (3, 3, 0, 0));
    assert_eq!(refused(&pool, 10, Reason::QueueFull), 1_000);
    pool.resize(5);
    settle(&engine);
    assert_eq!((pool.view().slots, pool.view().free), (5, 2));
    drop(held);
}

/// A queue that is full because nothing serves it is not the caller's doing, and the reason says so.
#[test]
fn a_full_queue_without_backends_is_refused_for_the_backends() {
    let mut settings = settings(DriverKind::Host, 1, &[10]);
    settings.pools[0].bands[0].limits.requests = Some(0);
    let (engine, pool, _clock) = host(&settings);
    let queue = engine.completion_queue(4).unwrap();
    pool.set_backends(0).unwrap();
    let answer = pool.submit(&request(&pool, 10), &queue, 0);
    assert_eq!(answer.unwrap_err(), Reason::NoBackend);
    assert_eq!(refused(&pool, 10, Reason::NoBackend), 1);
    pool.set_backends(1).unwrap();
    assert!(pool.submit(&request(&pool, 10), &queue, 0).is_ok());
}

/// U103: what was drained keeps its last depth.
#[test]
fn what_is_drained_reads_zero_and_keeps_its_series() {
    let (engine, pool, clock) = host(&settings(DriverKind::Host, 1, &[10, 5]));
    let queue = engine.completion_queue(64).unwrap();
    let running = pool.try_admit(&request(&pool, 0)).unwrap();
    for (tag, priority) in (0..30).zip([10, 5, 0].into_iter().cycle()) {
        let wait = request(&pool, priority).timeout(Duration::from_millis(1 + tag % 7));
        let _ticket = queued(pool.submit(&wait, &queue, tag).unwrap());
    }
    assert_eq!(pool.view().waiting, 30);
    clock.set(20_000_000);
    settle(&engine);
    while queue.poll().is_some() {}
    let view = pool.view();
    assert_eq!((view.waiting, view.capped, view.running), (0, 0, 1));
    for band in pool.outcomes().iter().filter(|band| band.priority.is_some()) {
        assert_eq!(band.counters.of(Fate::Evicted, Reason::Deadline), 10, "{:?}", band.priority);
        let all: Vec<_> = band.counters.iter().collect();
        assert!(all.iter().any(|(_, _, count)| *count == 0), "a count that was never made is 0");
    }
    drop(running);
    assert_eq!(pool.view().running, 0);
}

/// Each name in the schema, with one letter doubled.
fn mistyped(schema: &serde_json::Value) -> Vec<String> {
    let keys = |object: &str| -> Vec<String> {
        let properties = match object {
            "" => &schema["properties"],
            of => &schema["properties"][of]["properties"],
        };
        properties.as_object().unwrap().keys().cloned().collect()
    };
    let wrong = |key: &str| format!("{}{}", &key[..1], key);
    let top = keys("").into_iter().map(|key| format!("{}: {{}}", wrong(&key)));
    let inner = ["engine", "flowControl"].into_iter().flat_map(|object| {
        keys(object).into_iter().map(move |key| format!("{object}: {{{}: 1}}", wrong(&key)))
    });
    top.chain(inner).collect()
}

/// U100: mistyped keys are ignored, and defaults apply.
#[test]
fn a_key_with_one_wrong_letter_is_named_and_a_running_engine_stays_as_it_is() {
    let engine = Engine::start(&settings(DriverKind::Host, 2, &[10])).unwrap();
    let before = engine.config_info();
    let documents = mistyped(&schema());
    assert!(documents.len() > 25, "{documents:?}");
    for document in documents {
        let wrong = document.trim_end_matches([' ', '{', '}', '1', ':']);
        let wrong = wrong.rsplit(['{', ' ']).next().unwrap();
        let message = Config::load(&document, [], "t.yaml").unwrap_err().to_string();
        let says = format!("{wrong}: unknown key (did you mean {})", &wrong[1..]);
        assert!(message.contains(&says), "{document}: {message}");
        assert!(engine.reload_text(&document, [], "t.yaml").is_err());
    }
    assert_eq!(engine.config_info().hash, before.hash);
    assert_eq!(engine.pool("default").unwrap().view().slots, 2);
}
