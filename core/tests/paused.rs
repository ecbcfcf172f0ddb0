//! A holder that loses its core inside a turn: it delays grants, and nothing else. Others leave their
//! commands and go; nothing is lost.
//!
//! The holder is paused by `Pool::pause_inside_turn`, which calls back with the lock held.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on may panic")]
#![allow(clippy::print_stdout, reason = "the measured latencies")]
#![cfg(not(any(loom, miri)))]

mod common;

use core::future::Future;
use core::time::Duration;
use std::sync::Barrier;
use std::time::Instant;

use bandgate_core::types::settings::DriverKind;
use bandgate_core::{CancelAnswer, Engine, Pool, Reason, Request, Settings, Submitted};

use common::{Rng, poll_once, queued, settings, settle, start};

const PAUSE: Duration = Duration::from_millis(50);
const LIMIT: Duration = Duration::from_millis(1);

/// The machine is shared: a thread that waits for a core measures the scheduler. Whole measurements are
/// repeated this often; one within the limit is proof that no call waits for the holder, who sleeps 50 ms
/// each time.
const ATTEMPTS: u32 = 5;

fn small_ring(driver: DriverKind, slots: u32, ring: u32) -> Settings {
    let mut settings = settings(driver, slots, &[10]);
    settings.pools[0].ring_capacity = ring;
    settings.admission_timeout = None;
    settings.tenants = vec![common::tenant("t", slots)];
    settings
}

/// Runs `others` on this thread while another one sleeps inside a turn of the pool.
fn measure(pool: &Pool, others: impl FnOnce() -> Duration) -> Duration {
    let begun = Barrier::new(2);
    std::thread::scope(|scope| {
        let holder = scope.spawn(|| {
            let pause = || {
                begun.wait();
                std::thread::sleep(PAUSE);
            };
            // The keeper or the shard's thread may have the lock for a moment.
            while !pool.pause_inside_turn(pause) {
                std::thread::yield_now();
            }
        });
        begun.wait();
        let longest = others();
        holder.join().unwrap();
        longest
    })
}

/// The longest of the calls that were timed.
#[derive(Default)]
struct Longest(Duration);

impl Longest {
    fn time<R>(&mut self, call: impl FnOnce() -> R) -> R {
        let start = Instant::now();
        let answer = call();
        self.0 = self.0.max(start.elapsed());
        answer
    }
}

/// Again while another thread decides just now.
fn unless_busy<R>(mut call: impl FnMut() -> Result<R, Reason>) -> R {
    loop {
        match call() {
            Ok(answer) => return answer,
            Err(reason) => assert_eq!(reason, Reason::Busy),
        }
        std::thread::yield_now();
    }
}

/// 100 releases, submits until the ring is full and a cancel of each kind, all behind a paused holder.
fn one_attempt(driver: DriverKind, with_flow: bool) -> Duration {
    let (engine, pool) = start(&small_ring(driver, 100, 2));
    let queue = engine.completion_queue(256).unwrap();
    let band = pool.band(10).unwrap();
    let flow = pool.flow("", "t", "").unwrap();
    let request = if with_flow { Request::new(band).flow(flow) } else { Request::new(band) };
    let running: Vec<_> = (0..100).map(|_| unless_busy(|| pool.try_admit(&request))).collect();
    let waiting: Vec<_> =
        (0..20).map(|tag| queued(unless_busy(|| pool.submit(&request, &queue, tag)))).collect();
    let mut future = pool.admit(request);
    while poll_once(&mut future).is_ready() {
        future = pool.admit(request);
    }
    // With the threads driver the submits wait in the ring until the shard has taken them.
    while pool.view().waiting < 21 {
        std::thread::yield_now();
    }
    let (mut accepted, mut refused) = (0_u64, 0_u64);
    let submitter = queue.submitter();
    let longest = measure(&pool, || {
        let mut longest = Longest::default();
        for tag in 100..110 {
            match longest.time(|| pool.submit(&request, submitter, tag)) {
                Ok(Submitted::Queued(_)) => accepted += 1,
                Ok(Submitted::Granted(_)) => unreachable!("no slot is free"),
                Err(reason) => {
                    assert_eq!(reason, Reason::Busy);
                    refused += 1;
                }
            }
        }
        for ticket in &waiting[..10] {
            assert_eq!(longest.time(|| pool.cancel(*ticket)), CancelAnswer::Requested);
        }
        longest.time(|| drop(future));
        for permit in running {
            longest.time(|| permit.release());
        }
        assert_eq!(longest.time(|| pool.try_admit(&request)).err(), Some(Reason::Busy));
        longest.0
    });
    assert_eq!((accepted, refused), (2, 8), "the ring has two places");
    let mut outcomes = [0_u64; 2];
    while outcomes.iter().sum::<u64>() < 20 + accepted {
        assert!(queue.wait(Some(Duration::from_secs(10))), "an outcome was lost: {outcomes:?}");
        while let Some(completion) = queue.poll() {
            match completion.outcome {
                Ok(_permit) => outcomes[0] += 1,
                Err(reason) => {
                    assert_eq!(reason, Reason::Cancelled);
                    outcomes[1] += 1;
                }
            }
        }
    }
    assert_eq!(outcomes, [10 + accepted, 10], "granted, cancelled");
    wait_until_free(&pool, 100);
    longest
}

fn wait_until_free(pool: &Pool, slots: i32) {
    let start = Instant::now();
    loop {
        let view = pool.view();
        if (view.free, view.waiting) == (slots, 0) {
            return;
        }
        assert!(start.elapsed() < Duration::from_secs(10), "a release was lost: {view:?}");
        std::thread::yield_now();
    }
}

// INV: I01 I05 I14 I21 I35
#[test]
fn a_paused_holder_loses_nothing_and_every_call_of_others_returns_within_a_millisecond() {
    for driver in [DriverKind::Inline, DriverKind::Threads] {
        for with_flow in [false, true] {
            let mut seen = Vec::new();
            while seen.last().is_none_or(|longest| *longest > LIMIT) {
                assert!(seen.len() < ATTEMPTS as usize, "{driver:?}: longest calls {seen:?}");
                seen.push(one_attempt(driver, with_flow));
            }
            println!("{driver:?}, flow {with_flow}: longest call beside the holder {seen:?}");
        }
    }
}

// INV: I01 I21
#[test]
fn a_full_ring_of_2_takes_100_releases() {
    for with_flow in [false, true] {
        let mut settings = small_ring(DriverKind::Host, 100, 2);
        settings.tenants[0].max_in_flight = Some(100);
        let (engine, pool, _clock) = common::host(&settings);
        let flow = pool.flow("", "t", "").unwrap();
        let mut request = Request::new(pool.band(10).unwrap());
        if with_flow {
            request = request.flow(flow);
        }
        let running: Vec<_> = (0..100).map(|_| pool.try_admit(&request).unwrap()).collect();
        assert!(pool.pause_inside_turn(|| drop(running)));
        settle(&engine);
        let view = pool.view();
        assert_eq!((view.free, view.running), (100, 0));
        let again: Vec<_> = (0..100).map(|_| pool.try_admit(&request).unwrap()).collect();
        assert_eq!(pool.try_admit(&request).err(), Some(Reason::WouldQueue));
        drop(again);
    }
}

/// Every never-refusable call while the ring is full, in random order, over and over.
// INV: I01 I04 I05 I21 I35 I39
#[test]
fn whatever_is_left_behind_a_paused_holder_is_applied_exactly_once() {
    for seed in 0..60 {
        let mut rng = Rng(seed);
        let (engine, pool, _clock) = common::host(&small_ring(DriverKind::Host, 4, 1));
        let queue = engine.completion_queue(64).unwrap();
        let request = Request::new(pool.band(10).unwrap());
        let mut running: Vec<_> = (0..4).map(|_| pool.try_admit(&request).unwrap()).collect();
        let mut tickets: Vec<_> =
            (0..12).map(|tag| queued(pool.submit(&request, &queue, tag).unwrap())).collect();
        let mut futures: Vec<_> = (0..6).map(|_| pool.admit(request)).collect();
        for future in &mut futures {
            assert!(poll_once(future).is_pending());
        }
        let mut requested = 0;
        let paused = pool.pause_inside_turn(|| {
            for _ in 0..20 {
                match rng.below(4) {
                    0 => drop(running.pop()),
                    1 if !tickets.is_empty() => {
                        let ticket = tickets.swap_remove(rng.below(tickets.len()));
                        assert_eq!(pool.cancel(ticket), CancelAnswer::Requested);
                        // Twice says the same, and is applied once.
                        assert_eq!(pool.cancel(ticket), CancelAnswer::Requested);
                        requested += 1;
                    }
                    2 => drop(futures.pop()),
                    _ => assert!(pool.resize(u32::try_from(1 + rng.below(6)).unwrap())),
                }
            }
        });
        assert!(paused && pool.resize(4));
        settle(&engine);
        drop((running, futures));
        let mut outcomes = Vec::new();
        while let Some(completion) = queue.poll() {
            outcomes.push((completion.tag, completion.outcome.map(drop)));
        }
        outcomes.sort_by_key(|outcome| outcome.0);
        assert_eq!(outcomes.len(), 12, "seed {seed}: one outcome each");
        assert!(outcomes.iter().enumerate().all(|(n, outcome)| outcome.0 == n as u64));
        let cancelled = outcomes.iter().filter(|o| o.1 == Err(Reason::Cancelled)).count();
        assert_eq!(cancelled, requested, "seed {seed}");
        let view = pool.view();
        assert_eq!((view.free, view.running, view.waiting), (4, 0, 0), "seed {seed}");
    }
}

/// Producers that keep the ring full do not postpone a drain: it closes behind what was in the ring when it
/// came into force. That is accepted, and everything later is refused.
// INV: I14 I47
#[test]
fn a_drain_ends_behind_what_was_in_the_ring_however_full_it_is_kept() {
    let (engine, pool, _clock) = common::host(&small_ring(DriverKind::Host, 1, 128));
    let queue = engine.completion_queue(4_096).unwrap();
    let request = Request::new(pool.band(10).unwrap());
    let held = pool.try_admit(&request).unwrap();
    let mut tag = 0;
    let mut fill = || {
        while let Ok(submitted) = pool.submit(&request, &queue, tag) {
            let _ticket = queued(submitted);
            tag += 1;
        }
    };
    assert!(pool.pause_inside_turn(|| {
        fill();
        pool.drain();
    }));
    for _ in 0..8 {
        assert!(pool.pause_inside_turn(&mut fill));
    }
    assert!(pool.view().closed, "postponed for as long as somebody submits");
    assert!(tag > 128, "there was always something in the ring");
    drop(held);
    settle(&engine);
    let mut last = [0, u64::MAX];
    while let Some(completion) = queue.poll() {
        match completion.outcome {
            Ok(permit) => {
                last[0] = last[0].max(completion.tag);
                permit.release();
            }
            Err(reason) => {
                assert_eq!(reason, Reason::ShuttingDown);
                last[1] = last[1].min(completion.tag);
            }
        }
        settle(&engine);
    }
    assert_eq!(last, [127, 128], "the last that was accepted, the first that was refused");
}

/// A caller that waited for the lock would outlast the pause.
// INV: I14 I35
#[test]
fn a_blocking_admit_beside_a_paused_holder_ends_by_its_own_timeout() {
    let (_engine, pool): (Engine, Pool) = start(&small_ring(DriverKind::Inline, 1, 8));
    let request = Request::new(pool.band(10).unwrap());
    let running = pool.try_admit(&request).unwrap();
    let attempt = |_| {
        measure(&pool, || {
            let mut longest = Longest::default();
            let timeout = Some(Duration::from_millis(5));
            let answer = longest.time(|| pool.admit_blocking(request, timeout).map(drop));
            assert_eq!(answer, Err(Reason::Deadline));
            longest.0
        })
    };
    assert!((0..ATTEMPTS).map(attempt).any(|took| took < PAUSE / 2), "it waited for the holder");
    drop(running);
    wait_until_free(&pool, 1);
}

// INV: I50
#[test]
fn a_panic_inside_the_critical_section_poisons_the_pool_and_permits_stay_releasable() {
    let (engine, pool, _clock) = common::host(&small_ring(DriverKind::Host, 2, 8));
    let queue = engine.completion_queue(8).unwrap();
    let request = Request::new(pool.band(10).unwrap());
    let running: Vec<_> = (0..2).map(|_| pool.try_admit(&request).unwrap()).collect();
    let ticket = queued(pool.submit(&request, &queue, 1).unwrap());
    let mut future = pool.admit(request);
    assert!(poll_once(&mut future).is_pending());
    let hook = std::panic::take_hook();
    std::panic::set_hook(Box::new(|_| ()));
    let panicked = std::thread::scope(|scope| {
        let holder = scope.spawn(|| pool.pause_inside_turn(|| panic!("inside the turn")));
        holder.join().is_err()
    });
    std::panic::set_hook(hook);
    assert!(panicked);
    assert_eq!(pool.try_admit(&request).err(), Some(Reason::Poisoned));
    assert_eq!(pool.submit(&request, &queue, 2).err(), Some(Reason::Poisoned));
    assert_eq!(pool.admit_blocking(request, None).err(), Some(Reason::Poisoned));
    assert!(matches!(poll_once(&mut future), core::task::Poll::Ready(Err(Reason::Poisoned))));
    assert_eq!(pool.cancel(ticket), CancelAnswer::Requested);
    assert!(!pool.pause_inside_turn(|| ()));
    drop(running);
    assert!(pool.view().closed);
    engine.shutdown();
}

/// Nobody decides in a pool that died: who sleeps on a queue for it is told, whenever he began to sleep.
// INV: I14 I50
#[test]
fn who_waits_on_a_queue_for_a_pool_that_dies_is_told_at_once() {
    let _watchdog = common::Watchdog::start(Duration::from_secs(20), || "sleeps for ever".into());
    for timeout in [None, Some(Duration::from_secs(3_600))] {
        let (engine, pool, _clock) = common::host(&small_ring(DriverKind::Host, 1, 8));
        let queue = engine.completion_queue(8).unwrap();
        let request = Request::new(pool.band(10).unwrap());
        let _held = pool.try_admit(&request).unwrap();
        let _ticket = queued(pool.submit(&request, &queue, 1).unwrap());
        assert_eq!(queue.fault(), None);
        let (answer, queue) = std::thread::scope(|scope| {
            let sleeper = scope.spawn(move || (queue.wait(timeout), queue));
            std::thread::sleep(Duration::from_millis(20));
            let holder = scope.spawn(|| pool.pause_inside_turn(|| panic!("inside the turn")));
            assert!(holder.join().is_err());
            sleeper.join().unwrap()
        });
        assert!(!answer);
        assert_eq!(queue.fault(), Some(Reason::Poisoned));
        assert!(!queue.wait(timeout), "later too");
        assert!(!queue.arm());
        // A queue without requests in the dead pool is not concerned.
        let other = engine.completion_queue(8).unwrap();
        assert_eq!(other.fault(), None);
        assert!(!other.wait(Some(Duration::ZERO)));
    }
}

struct Bomb;

impl std::task::Wake for Bomb {
    fn wake(self: std::sync::Arc<Self>) {
        panic!("a hostile waker");
    }
}

/// The wakers are the host's: one that panics while the dead pool's waiters are told ends neither the process
/// nor the telling.
// INV: I39 I50
#[test]
fn a_waker_that_panics_beside_a_pool_that_dies_keeps_nobody_from_being_told() {
    let (_engine, pool, _clock) = common::host(&small_ring(DriverKind::Host, 1, 8));
    let request = Request::new(pool.band(10).unwrap());
    let _held = pool.try_admit(&request).unwrap();
    let wakes = std::sync::Arc::new(common::Wakes::default());
    let good = core::task::Waker::from(std::sync::Arc::clone(&wakes));
    let bomb = core::task::Waker::from(std::sync::Arc::new(Bomb));
    let mut futures = [(); 3].map(|()| pool.admit(request));
    for (future, waker) in futures.iter_mut().zip([&good, &bomb, &good]) {
        let polled = core::pin::Pin::new(future).poll(&mut core::task::Context::from_waker(waker));
        assert!(polled.is_pending());
    }
    std::thread::scope(|scope| {
        let holder = scope.spawn(|| pool.pause_inside_turn(|| panic!("inside the turn")));
        assert!(holder.join().is_err());
    });
    assert_eq!(wakes.count(), 2);
}

/// With the engine gone nobody polls: whoever finds commands applies them all, however many.
// INV: I01 I14 I48
#[test]
fn what_is_left_behind_after_the_engine_was_dropped_needs_no_further_call() {
    for driver in [DriverKind::Host, DriverKind::Inline, DriverKind::Threads] {
        for ring in [1, 512] {
            let (engine, pool) = start(&small_ring(driver, 300, ring));
            let flow = pool.flow("", "t", "").unwrap();
            let plain = Request::new(pool.band(10).unwrap());
            let both = [plain, plain.flow(flow)];
            let permits: Vec<_> =
                (0..300).map(|n| unless_busy(|| pool.try_admit(&both[n % 2]))).collect();
            drop(engine);
            assert!(pool.pause_inside_turn(|| drop(permits)));
            let view = pool.view();
            assert_eq!((view.free, view.running), (300, 0), "{driver:?}, ring of {ring}");
        }
    }
}
