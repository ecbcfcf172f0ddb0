//! What a hostile or careless host may do: foreign names, wakers that panic, bad moments. Nothing is lost,
//! nothing is handed out twice, no call runs for ever.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on may panic")]
#![cfg(not(loom))]

mod common;

use core::future::Future;
use core::panic::AssertUnwindSafe;
use core::pin::pin;
use core::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use core::task::{Context, Poll, RawWaker, RawWakerVTable, Waker};
use core::time::Duration;
use std::panic::catch_unwind;
use std::sync::{Arc, Mutex};
use std::task::Wake;
use std::thread;
use std::time::Instant;

use bandgate_core::types::settings::{DriverKind, PoolSettings};
use bandgate_core::{Admit, CancelAnswer, Engine, Pool, Reason, Request, Settings, Submitted};

use common::{Rng, Wakes, Watchdog, host, poll_once, queued, settings, start, tenant};

fn request(pool: &Pool) -> Request {
    Request::new(pool.band(0).unwrap())
}

fn watch(limit: u64) -> Watchdog {
    Watchdog::start(Duration::from_secs(limit), || "a call does not end".into())
}

fn pools(names: &[(&str, u32)]) -> Vec<PoolSettings> {
    names.iter().map(|&(name, slots)| PoolSettings::new(name, slots)).collect()
}

#[test]
fn names_of_another_engine_name_nothing_here() {
    let (here_engine, here, _) = host(&settings(DriverKind::Host, 1, &[]));
    let (there_engine, there, _) = host(&settings(DriverKind::Host, 1, &[30, 20, 10]));
    let foreign = Request::new(there.band(0).unwrap());
    assert_eq!(here.try_admit(&foreign).err(), Some(Reason::UnknownBand));
    let flow = there.flow("", "t", "k").unwrap();
    assert_eq!(
        here.try_admit(&request(&here).flow(flow)).err(),
        Some(Reason::UnknownPool),
        "a flow of another engine"
    );
    let theirs = there_engine.completion_queue(8).unwrap();
    let _held = (here.try_admit(&request(&here)).unwrap(), there.try_admit(&foreign).unwrap());
    let ticket = queued(there.submit(&foreign, &theirs, 1).unwrap());
    let mine = here_engine.completion_queue(8).unwrap();
    let own = queued(here.submit(&request(&here), &mine, 7).unwrap());
    assert_eq!(here.cancel(ticket), CancelAnswer::Stale);
    assert_eq!(here.submit(&request(&here), &theirs, 2).err(), Some(Reason::UnknownPool));
    assert_eq!(here.cancel(own), CancelAnswer::Cancelled);
    assert_eq!(there.cancel(ticket), CancelAnswer::Cancelled);
}

#[test]
fn pools_whose_waiters_are_all_capped_do_not_pass_a_unit_round_for_ever() {
    let _watchdog = watch(20);
    let settings = Settings {
        driver: DriverKind::Host,
        ceiling: Some(4),
        pools: pools(&[("a", 2), ("b", 2), ("c", 2)]),
        tenants: vec![tenant("t", 1)],
        ..Settings::default()
    };
    let engine = Engine::start(&settings).unwrap();
    let all: Vec<Pool> = engine.pools().collect();
    let queue = engine.completion_queue(64).unwrap();
    let capped: Vec<Request> =
        all.iter().map(|pool| request(pool).flow(pool.flow("", "t", "").unwrap())).collect();
    let held: Vec<_> = all.iter().zip(&capped).map(|(p, r)| p.try_admit(r).unwrap()).collect();
    for round in 0..3 {
        for (pool, request) in all.iter().zip(&capped) {
            let _ticket = queued(pool.submit(request, &queue, round).unwrap());
        }
    }
    for pool in &all {
        let permit = pool.try_admit(&request(pool)).unwrap();
        assert_eq!(pool.try_admit(&request(pool)).err(), Some(Reason::WouldQueue));
        permit.release();
    }
    drop(held);
    let mut done = 0;
    while let Some(completion) = queue.poll() {
        completion.outcome.unwrap().release();
        done += 1;
    }
    assert_eq!(done, 9);
}

#[test]
fn a_report_between_two_turns_strands_nobody() {
    let _watchdog = watch(60);
    for _ in 0..30 {
        let (engine, pool) = start(&settings(DriverKind::Inline, 1, &[]));
        let queue = engine.completion_queue(2_048).unwrap();
        let held = pool.try_admit(&request(&pool)).unwrap();
        for tag in 0..1_500 {
            let _ticket = queued(pool.submit(&request(&pool), &queue, tag).unwrap());
        }
        let stop = AtomicBool::new(false);
        thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    while !stop.load(Ordering::Relaxed) {
                        let _view = pool.view();
                    }
                });
            }
            thread::sleep(Duration::from_millis(2));
            assert!(pool.resize(2_000));
            thread::sleep(Duration::from_millis(5));
            stop.store(true, Ordering::Relaxed);
        });
        let mut permits = vec![held];
        while permits.len() <= 1_500 {
            assert!(queue.wait(Some(Duration::from_secs(5))), "{} granted", permits.len());
            while let Some(completion) = queue.poll() {
                permits.push(completion.outcome.unwrap());
            }
        }
    }
}

#[test]
fn a_small_slab_is_never_hoarded_by_one_pool_or_by_the_lock() {
    for driver in [DriverKind::Inline, DriverKind::Threads] {
        let settings = Settings {
            driver,
            max_requests: 4,
            pools: pools(&[("a", 1), ("b", 1)]),
            ..Settings::default()
        };
        let engine = Engine::start(&settings).unwrap();
        let all: Vec<Pool> = engine.pools().collect();
        let queue = engine.completion_queue(64).unwrap();
        let _held: Vec<_> = all
            .iter()
            .map(|pool| match pool.submit(&request(pool), &queue, 0).unwrap() {
                Submitted::Granted(permit) => permit,
                Submitted::Queued(_) => panic!("a free slot"),
            })
            .collect();
        for round in 0..40 {
            let pool = &all[round % 2];
            let two: Vec<_> = (0..2)
                .map(|tag| queued(pool.submit(&request(pool), &queue, tag).unwrap()))
                .collect();
            let other = &all[1 - round % 2];
            let third = queued(other.submit(&request(other), &queue, 2).unwrap());
            for ticket in two {
                let _answer = pool.cancel(ticket);
            }
            let _answer = other.cancel(third);
            let patience = Instant::now();
            while all.iter().any(|pool| pool.view().waiting > 0) {
                assert!(patience.elapsed() < Duration::from_secs(5), "a cancel is lost");
                thread::yield_now();
            }
            queue.drain(|completion| drop(completion));
        }
    }
}

/// A waker that panics when it is used.
struct Bomb;

impl Wake for Bomb {
    fn wake(self: Arc<Self>) {
        panic!("a hostile waker");
    }
}

fn wait_with(admit: &mut Admit<'_>, waker: &Waker) {
    let polled = pin!(admit).poll(&mut Context::from_waker(waker));
    assert!(matches!(polled, Poll::Pending));
}

#[test]
fn a_waker_that_panics_costs_nobody_a_wake_or_a_slot() {
    let (_engine, pool, _) = host(&settings(DriverKind::Host, 3, &[]));
    let held: Vec<_> = (0..3).map(|_| pool.try_admit(&request(&pool)).unwrap()).collect();
    let bomb = Waker::from(Arc::new(Bomb));
    let wakes = Arc::new(Wakes::default());
    let good = Waker::from(Arc::clone(&wakes));
    let mut first = pool.admit(request(&pool));
    let mut second = pool.admit(request(&pool));
    let mut third = pool.admit(request(&pool));
    wait_with(&mut first, &bomb);
    wait_with(&mut second, &good);
    wait_with(&mut third, &bomb);
    let growth = catch_unwind(AssertUnwindSafe(|| pool.resize(6)));
    assert!(growth.is_ok(), "the waker's panic is not the caller's");
    assert_eq!(wakes.count(), 1);
    drop((first, second, third));
    drop(held);
    assert_eq!(pool.view().free, 6);
}

fn clone_fails(_: *const ()) -> RawWaker {
    panic!("a waker that cannot be cloned")
}

fn clone_unarmed(data: *const ()) -> RawWaker {
    RawWaker::new(data, &DROP_FAILS)
}

fn drop_fails(_: *const ()) {
    panic!("a waker that cannot be dropped")
}

static CLONE_FAILS: RawWakerVTable = RawWakerVTable::new(clone_fails, drop, drop, drop);
static DROP_FAILS: RawWakerVTable = RawWakerVTable::new(clone_unarmed, drop, drop, drop_fails);

#[test]
fn a_waker_whose_clone_or_drop_panics_leaves_a_place_where_others_are_woken() {
    for table in [&CLONE_FAILS, &DROP_FAILS] {
        let (_engine, pool, _) =
            host(&Settings { max_requests: 1, ..settings(DriverKind::Host, 1, &[]) });
        let held = pool.try_admit(&request(&pool)).unwrap();
        // SAFETY: the functions of both tables look at no data.
        let bomb = unsafe { Waker::from_raw(RawWaker::new(core::ptr::null(), table)) };
        let bomb = core::mem::ManuallyDrop::new(bomb);
        let wakes = Arc::new(Wakes::default());
        let good = Waker::from(Arc::clone(&wakes));
        let mut first = pool.admit(request(&pool));
        for waker in [&*bomb, &good, &*bomb] {
            let _panicked = catch_unwind(AssertUnwindSafe(|| wait_with(&mut first, waker)));
        }
        let ended = catch_unwind(AssertUnwindSafe(|| drop(first)));
        assert!(ended.is_ok(), "the waker's panic is nobody else's");
        let mut second = pool.admit(request(&pool));
        wait_with(&mut second, &good);
        assert_eq!(wakes.count(), 0);
        held.release();
        assert_eq!(wakes.count(), 1, "the index has one place, which the hostile waker had before");
        assert!(matches!(poll_once(&mut second), Poll::Ready(Ok(_))));
    }
}

#[test]
fn a_request_that_may_not_wait_is_granted_if_a_slot_is_free_under_every_driver() {
    for driver in [DriverKind::Host, DriverKind::Inline, DriverKind::Threads] {
        let (engine, pool) = start(&settings(driver, 1, &[]));
        let queue = engine.completion_queue(8).unwrap();
        let flow = pool.flow("", "t", "k").unwrap();
        let now = request(&pool).flow(flow).timeout(Duration::ZERO);
        let submit = || loop {
            match pool.submit(&now, &queue, 1) {
                Err(Reason::Busy) => thread::yield_now(),
                other => return other,
            }
        };
        let Ok(Submitted::Granted(permit)) = submit() else { panic!("{driver:?}: a free slot") };
        assert_eq!(submit().err(), Some(Reason::Deadline), "{driver:?}");
        permit.release();
    }
}

#[test]
fn a_new_queue_has_all_its_places_whatever_still_waits_for_an_old_one() {
    let (engine, pool, _) = host(&settings(DriverKind::Host, 1, &[]));
    let _held = pool.try_admit(&request(&pool)).unwrap();
    let old = engine.completion_queue(4).unwrap();
    for tag in 0..4 {
        let _ticket = queued(pool.submit(&request(&pool), &old, tag).unwrap());
    }
    drop(old);
    let new = engine.completion_queue(4).unwrap();
    for tag in 0..4 {
        let _ticket = queued(pool.submit(&request(&pool), &new, tag).unwrap());
    }
    assert_eq!(pool.submit(&request(&pool), &new, 9).err(), Some(Reason::Busy));
}

/// A waker that interns a flow, as a task that runs inside its wake may.
struct Interns(Pool);

impl Wake for Interns {
    fn wake(self: Arc<Self>) {
        let _flow = self.0.flow("", "woken", "").unwrap();
    }
}

#[test]
fn a_waker_may_call_back_into_whatever_woke_it() {
    let _watchdog = watch(60);
    let (_engine, pool) = start(&settings(DriverKind::Inline, 1, &[]));
    for round in 0..300 {
        let held = pool.try_admit(&request(&pool)).unwrap();
        let waker = Waker::from(Arc::new(Interns(pool.clone())));
        let mut waits = pool.admit(request(&pool));
        wait_with(&mut waits, &waker);
        thread::scope(|scope| {
            scope.spawn(|| pool.flow("", "t", &round.to_string()).unwrap());
            scope.spawn(|| held.release());
        });
        drop(waits);
    }
}

/// Drops the engine inside a wake, and says when that is done.
struct Ends(Mutex<Option<Engine>>, AtomicBool);

impl Wake for Ends {
    fn wake(self: Arc<Self>) {
        let engine = self.0.lock().unwrap().take();
        drop(engine);
        self.1.store(true, Ordering::SeqCst);
    }
}

#[test]
fn an_engine_may_be_dropped_by_a_waker_on_its_own_thread() {
    let _watchdog = watch(20);
    for driver in [DriverKind::Inline, DriverKind::Threads] {
        let (engine, pool) = start(&settings(driver, 1, &[]));
        let held = pool.try_admit(&request(&pool)).unwrap();
        let ends = Arc::new(Ends(Mutex::new(Some(engine)), AtomicBool::new(false)));
        let waker = Waker::from(Arc::clone(&ends));
        let mut waits = pool.admit(request(&pool).timeout(Duration::from_millis(20)));
        wait_with(&mut waits, &waker);
        while !ends.1.load(Ordering::SeqCst) {
            thread::sleep(Duration::from_millis(1));
        }
        drop((waits, held));
        assert_eq!(pool.try_admit(&request(&pool)).err(), Some(Reason::ShuttingDown));
    }
}

/// One thread of the storm: submits, futures, cancels, forgotten futures, resizes, reports.
fn rage(seed: u64, engine: &Engine, all: &[Pool], running: &AtomicI64, most: i64) {
    let mut rng = Rng(seed);
    let queue = engine.completion_queue(32).unwrap();
    let mut tickets = Vec::new();
    let run = || {
        let now = running.fetch_add(1, Ordering::SeqCst) + 1;
        assert!(now <= most, "{now} run, {most} may");
        thread::yield_now();
        running.fetch_sub(1, Ordering::SeqCst);
    };
    for _ in 0..1_500 {
        let pool = &all[rng.below(all.len())];
        let flow = pool.flow("", ["t", "u"][rng.below(2)], ["k", "l", ""][rng.below(3)]).unwrap();
        let mut wanted = request(pool).cost(1 + u32::try_from(rng.below(9)).unwrap());
        if rng.below(2) == 0 {
            wanted = wanted.flow(flow);
        }
        let patience = [0, 20_000, 300_000, 60_000_000_000][rng.below(4)];
        wanted = wanted.timeout(Duration::from_nanos(patience));
        match rng.below(8) {
            0 | 1 => match pool.submit(&wanted, &queue, 1) {
                Ok(Submitted::Granted(permit)) => {
                    run();
                    permit.release();
                }
                Ok(Submitted::Queued(ticket)) => tickets.push((pool, ticket)),
                Err(_) => {}
            },
            2 => {
                let mut future = pool.admit(wanted);
                let _maybe = poll_once(&mut future);
                thread::yield_now();
            }
            3 => {
                if let Ok(permit) = pool.admit_blocking(wanted, Some(Duration::from_micros(200))) {
                    run();
                    permit.into_owned().release();
                }
            }
            4 => {
                if let Ok(mut permit) = pool.try_admit(&wanted) {
                    permit.settle(3);
                    run();
                }
            }
            5 => {
                while let Some((pool, ticket)) = tickets.pop() {
                    let _answer = pool.cancel(ticket);
                }
            }
            6 => assert!(pool.view().free <= 8),
            _ => assert!(pool.set_saturation([None, Some(0.5)][rng.below(2)])),
        }
        queue.drain(|completion| {
            if let Ok(permit) = completion.outcome {
                run();
                permit.release();
            }
        });
    }
}

fn storm(driver: DriverKind, shards: u16, ceiling: Option<u32>, ring: u32) {
    let mut settings = Settings {
        driver,
        shards,
        ceiling,
        max_requests: 24,
        pools: pools(&[("a", 4), ("b", 4), ("c", 4)]),
        tenants: vec![tenant("t", 1), tenant("u", 3)],
        ..Settings::default()
    };
    settings.pools.iter_mut().for_each(|pool| pool.ring_capacity = ring);
    let engine = Engine::start(&settings).unwrap();
    let all: Vec<Pool> = engine.pools().collect();
    let most = ceiling.unwrap_or(12);
    let running = AtomicI64::new(0);
    thread::scope(|scope| {
        for seed in 0..4 {
            let (engine, all, running) = (&engine, &all, &running);
            scope.spawn(move || rage(seed, engine, all, running, most.into()));
        }
    });
    let quiet = Instant::now();
    for pool in &all {
        assert!(pool.set_saturation(None));
        while pool.view().waiting > 0 || pool.view().running > 0 {
            assert!(quiet.elapsed() < Duration::from_secs(20), "{:?}", pool.view());
            thread::yield_now();
        }
    }
    // Every slot, unit and place in the slab is there again.
    let mut held = Vec::new();
    while held.len() < most as usize {
        let got = all.iter().find_map(|pool| pool.try_admit(&request(pool)).ok());
        held.extend(got);
        assert!(quiet.elapsed() < Duration::from_secs(40), "{} of {most} are left", held.len());
    }
    for pool in &all {
        assert!(pool.try_admit(&request(pool)).is_err(), "one too many");
    }
    let queue = engine.completion_queue(64).unwrap();
    let room = 24 * usize::from(shards.min(3));
    let mut waiting = 0;
    while waiting < room - 3 {
        let got = all.iter().find_map(|p| p.submit(&request(p).no_timeout(), &queue, 0).ok());
        waiting += usize::from(got.is_some());
        assert!(quiet.elapsed() < Duration::from_secs(60), "{waiting} of {room} may wait");
    }
    drop(held);
    for _ in 0..waiting {
        assert!(queue.wait(Some(Duration::from_secs(20))), "a waiter is stranded");
        queue.poll().unwrap().outcome.unwrap().release();
    }
}

#[test]
fn a_storm_of_everything_loses_nothing_inline() {
    let _watchdog = watch(120);
    for ring in [1, 64] {
        storm(DriverKind::Inline, 1, None, ring);
        storm(DriverKind::Inline, 2, Some(5), ring);
    }
}

#[test]
fn a_storm_of_everything_loses_nothing_with_shard_threads() {
    let _watchdog = watch(120);
    for ring in [1, 64] {
        storm(DriverKind::Threads, 2, None, ring);
        storm(DriverKind::Threads, 2, Some(5), ring);
    }
}
