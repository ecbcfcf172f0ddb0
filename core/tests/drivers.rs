//! The same script gives the same outcomes under every driver; deadlines pass without traffic; engines
//! leave nothing behind; a forked child is told so at once.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on may panic")]
#![allow(clippy::print_stdout, reason = "driver, parks and wakes are part of what is reported")]
#![cfg(not(any(loom, miri)))]

mod common;
#[path = "drivers/fork.rs"]
mod fork;
#[path = "drivers/script.rs"]
mod script;

use core::time::Duration;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use bandgate_core::types::settings::DriverKind;
use bandgate_core::{Engine, Reason, Request};

use common::{Wakes, queued, settings, start};

const DRIVERS: [DriverKind; 3] = [DriverKind::Inline, DriverKind::Host, DriverKind::Threads];

/// The tests count threads and descriptors of the process: one at a time.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

// INV: I04 I14 I19 I20 I35 I36 I39
#[test]
fn one_script_has_the_same_outcomes_under_every_driver() {
    let _alone = alone();
    let logs = DRIVERS.map(|driver| {
        let (log, info) = script::run(driver);
        println!("{driver:?}: parks {}, wakes {} ({info})", info.parks, info.wakes);
        if driver == DriverKind::Threads {
            assert_ne!(info.parks, 0, "an idle shard thread must sleep");
        }
        log
    });
    assert_eq!(logs[0], logs[1], "inline and host");
    assert_eq!(logs[0], logs[2], "inline and threads");
    assert_eq!(logs[0], script::expected());
}

/// How long a request of 20 ms waits for its eviction when nobody calls anything.
fn expiry_without_traffic(driver: DriverKind, by_future: bool) -> Duration {
    let (engine, pool) = start(&settings(driver, 1, &[]));
    let queue = engine.completion_queue(4).unwrap();
    let request = Request::new(pool.band(0).unwrap());
    let running = pool.try_admit(&request).unwrap();
    let short = request.timeout(Duration::from_millis(20));
    // Long enough for the keeper or the shard's thread to be asleep without a deadline.
    std::thread::sleep(Duration::from_millis(5));
    let begin = Instant::now();
    if by_future {
        let wakes = Arc::new(Wakes::default());
        let waker = Arc::clone(&wakes).into();
        let mut future = pool.admit(short);
        let mut poll = || {
            let mut context = core::task::Context::from_waker(&waker);
            core::future::Future::poll(core::pin::Pin::new(&mut future), &mut context)
        };
        assert!(poll().is_pending());
        while wakes.count() == 0 {
            assert!(begin.elapsed() < Duration::from_secs(10), "nobody woke the future");
            std::thread::sleep(Duration::from_micros(300));
        }
        assert!(matches!(poll(), core::task::Poll::Ready(Err(Reason::Deadline))));
    } else {
        let _ticket = queued(pool.submit(&short, &queue, 7).unwrap());
        assert!(queue.wait(Some(Duration::from_secs(10))), "the deadline never passed");
        assert_eq!(queue.poll().unwrap().outcome.err(), Some(Reason::Deadline));
    }
    let took = begin.elapsed();
    drop(running);
    took
}

// INV: I36 I43 I46
#[test]
fn deadlines_pass_on_time_without_traffic() {
    let _alone = alone();
    for driver in [DriverKind::Inline, DriverKind::Threads] {
        for by_future in [false, true] {
            // A loaded machine wakes threads late: the best of five attempts counts for "on time", each
            // one for "never early".
            let took: Vec<_> = (0..5).map(|_| expiry_without_traffic(driver, by_future)).collect();
            println!("{driver:?}, future {by_future}: a deadline of 20 ms passed after {took:?}");
            assert!(took.iter().all(|took| *took >= Duration::from_millis(20)), "early: {took:?}");
            assert!(took.iter().any(|took| *took <= Duration::from_millis(80)), "late: {took:?}");
        }
    }
}

/// Names of the process's threads that belong to engines.
fn engine_threads() -> usize {
    let tasks = std::fs::read_dir("/proc/self/task").unwrap();
    let name = |task: std::fs::DirEntry| std::fs::read_to_string(task.path().join("comm"));
    // A task may end while it is listed.
    tasks.flatten().filter_map(|task| name(task).ok()).filter(|n| n.contains("bandgate")).count()
}

fn descriptors() -> usize {
    std::fs::read_dir("/proc/self/fd").unwrap().count()
}

// INV: I18 I47 I48
#[cfg(target_os = "linux")]
#[test]
fn two_hundred_engine_lives_leave_no_thread_and_no_descriptor_behind() {
    let _alone = alone();
    let life = |driver: DriverKind| {
        let (engine, pool) = start(&settings(driver, 2, &[10]));
        let queue = engine.completion_queue(8).unwrap();
        let request = Request::new(pool.band(10).unwrap());
        let permit = pool.admit_blocking(request, None).unwrap().into_owned();
        drop(pool.submit(&request, &queue, 1).unwrap());
        drop((queue, engine));
        assert_eq!(pool.try_admit(&request).err(), Some(Reason::ShuttingDown));
        // The permit outlives its engine and is the last to hold its memory.
        drop(pool);
        drop(permit);
    };
    DRIVERS.into_iter().for_each(life);
    let before = (descriptors(), engine_threads());
    for n in 0..200 {
        life(DRIVERS[n % 3]);
    }
    assert_eq!((descriptors(), engine_threads()), before);
    assert_eq!(before.1, 0, "dropping an engine joins its threads");
}

// INV: I47 I48
#[test]
fn shutdown_answers_who_waits_under_every_driver_and_drain_waits_for_who_runs() {
    let _alone = alone();
    for driver in DRIVERS {
        let (engine, pool) = start(&settings(driver, 1, &[]));
        let queue = engine.completion_queue(8).unwrap();
        let request = Request::new(pool.band(0).unwrap()).no_timeout();
        let running = pool.try_admit(&request).unwrap();
        let _ticket = queued(pool.submit(&request, &queue, 1).unwrap());
        assert!(!engine.drain(Duration::from_millis(5)), "one runs, one waits");
        script::until(&engine, driver, || {
            pool.try_admit(&request).err() == Some(Reason::ShuttingDown)
        });
        drop(running);
        assert!(!engine.drain(Duration::from_millis(5)), "who waited runs now");
        drop(queue.poll().unwrap().outcome.unwrap());
        assert!(engine.drain(Duration::from_secs(10)));
        drop(engine);
        let (engine, pool) = start(&settings(driver, 1, &[]));
        let running = pool.try_admit(&request_of(&pool)).unwrap();
        std::thread::scope(|scope| {
            let waits = scope.spawn(|| pool.admit_blocking(request_of(&pool), None).map(drop));
            script::until(&engine, driver, || pool.view().waiting == 1);
            engine.shutdown();
            script::until(&engine, driver, || waits.is_finished());
            assert_eq!(waits.join().unwrap(), Err(Reason::ShuttingDown));
        });
        drop(running);
    }
}

fn request_of(pool: &bandgate_core::Pool) -> Request {
    Request::new(pool.band(0).unwrap()).no_timeout()
}

/// More waiters than one turn evicts, and nobody polls after the engine is gone.
// INV: I22 I47
#[test]
fn dropping_an_engine_evicts_everybody_who_waits_under_every_driver() {
    let _alone = alone();
    for driver in DRIVERS {
        let (engine, pool) = start(&settings(driver, 1, &[]));
        let queue = engine.completion_queue(512).unwrap();
        let running = pool.try_admit(&request_of(&pool)).unwrap();
        let mut futures: Vec<_> = (0..300).map(|_| pool.admit(request_of(&pool))).collect();
        for future in &mut futures {
            assert!(common::poll_once(future).is_pending());
        }
        for tag in 0..300 {
            let _ticket = queued(pool.submit(&request_of(&pool), &queue, tag).unwrap());
        }
        drop(engine);
        let gone = Some(Reason::ShuttingDown);
        assert_eq!(queue.drain(|completion| assert_eq!(completion.outcome.err(), gone)), 300);
        for future in &mut futures {
            let answer = common::poll_once(future).map(|answer| answer.map(drop));
            assert_eq!(answer, core::task::Poll::Ready(Err(Reason::ShuttingDown)), "{driver:?}");
        }
        // The engine is gone, the pool's handle is not: each call still has an answer.
        assert_eq!(pool.admit_blocking(request_of(&pool), None).err(), gone);
        match pool.submit(&request_of(&pool), &queue, 1_000) {
            Err(reason) => assert_eq!(Some(reason), gone),
            Ok(_queued) => assert_eq!(queue.poll().and_then(|c| c.outcome.err()), gone),
        }
        drop(running);
        assert_eq!((pool.view().free, pool.view().waiting), (1, 0), "{driver:?}");
    }
}

/// A small slab, used over and over: what was freed is there for the next one, whoever freed it.
// INV: I32
#[test]
fn a_small_slab_never_runs_dry_under_any_driver() {
    let _alone = alone();
    for driver in DRIVERS {
        let mut settings = settings(driver, 1, &[]);
        settings.max_requests = 8;
        let (engine, pool) = start(&settings);
        let queue = engine.completion_queue(8).unwrap();
        let request = request_of(&pool);
        for _ in 0..50 {
            let running = pool.admit_blocking(request, None).unwrap();
            for tag in 0..8 {
                let _ticket = queued(pool.submit(&request, &queue, tag).unwrap());
            }
            assert_eq!(pool.submit(&request, &queue, 9).err(), Some(Reason::Busy), "no place");
            drop(running);
            let mut granted = 0;
            script::until(&engine, driver, || {
                granted += queue.drain(|completion| drop(completion.outcome.unwrap()));
                granted == 8 && pool.view().free == 1
            });
        }
    }
}

/// Engines on several shards: a pool each, one keeper for all or one thread per shard.
// INV: I04 I14
#[test]
fn pools_on_several_shards_do_not_disturb_each_other() {
    let _alone = alone();
    for driver in DRIVERS {
        let mut settings = settings(driver, 1, &[]);
        settings.shards = 2;
        for name in ["second", "third"] {
            let mut pool = settings.pools[0].clone();
            pool.name = name.into();
            settings.pools.push(pool);
        }
        let engine = Engine::start(&settings).unwrap();
        let queue = engine.completion_queue(8).unwrap();
        let pools: Vec<_> = engine.pools().collect();
        let running: Vec<_> =
            pools.iter().map(|pool| pool.try_admit(&request_of(pool)).unwrap()).collect();
        for (tag, pool) in pools.iter().enumerate() {
            let request = request_of(pool).timeout(Duration::from_secs(30));
            let _ticket = queued(pool.submit(&request, &queue, tag as u64).unwrap());
        }
        script::until(&engine, driver, || pools.iter().all(|pool| pool.view().waiting == 1));
        drop(running);
        let mut tags = Vec::new();
        script::until(&engine, driver, || {
            tags.extend(core::iter::from_fn(|| queue.poll()).map(|c| {
                assert!(c.outcome.is_ok());
                c.tag
            }));
            tags.len() == 3
        });
        tags.sort_unstable();
        assert_eq!(tags, [0, 1, 2]);
    }
}
