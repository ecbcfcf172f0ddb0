//! One outcome per request, every slot accounted for: submit, grant, release, cancel, expire, shut down.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on may panic")]
#![cfg(not(loom))]

use core::future::Future;
use core::pin::pin;
use core::task::{Context, Poll, Waker};
use core::time::Duration;

use bandgate_core::clock::Clock;
use bandgate_core::types::settings::{DriverKind, KeySettings, PoolSettings, TenantSettings};
use bandgate_core::{
    Admitted, CancelAnswer, Engine, Pool, Reason, Request, Settings, Submitted, Ticket,
};

fn settings(slots: u32, bands: &[i32]) -> Settings {
    Settings {
        driver: DriverKind::Host,
        pools: vec![PoolSettings::new("default", slots).with_bands(bands)],
        ..Settings::default()
    }
}

fn host(settings: &Settings) -> (Engine, Pool, Clock) {
    let clock = Clock::manual();
    let engine = Engine::start_with_clock(settings, clock.clone()).unwrap();
    let pool = engine.pool("default").unwrap();
    (engine, pool, clock)
}

fn queued(submitted: Submitted<'_>) -> Ticket {
    match submitted {
        Submitted::Queued(ticket) => ticket,
        Submitted::Granted(permit) => panic!("granted at once: {permit:?}"),
    }
}

#[test]
fn strict_order_among_waiters_and_the_newcomer_never_overtakes() {
    let (engine, pool, _clock) = host(&settings(1, &[20, 10]));
    let queue = engine.completion_queue(16).unwrap();
    let running = pool.try_admit(&Request::new(pool.band(0).unwrap())).unwrap();
    assert_eq!(running.how(), Admitted::Fast);
    for (tag, priority) in [(1, 0), (2, 10), (3, 20), (4, 20)] {
        let request = Request::new(pool.band(priority).unwrap());
        let _ticket = queued(pool.submit(&request, &queue, tag).unwrap());
    }
    assert_eq!(queue.poll().map(|c| c.tag), None);
    drop(running);
    let mut order = Vec::new();
    while let Some(completion) = queue.poll() {
        order.push(completion.tag);
        let newcomer = pool.try_admit(&Request::new(pool.band(20).unwrap()));
        assert_eq!(newcomer.err(), Some(Reason::WouldQueue));
        let permit = completion.outcome.unwrap();
        assert_eq!(permit.how(), Admitted::Queued);
        permit.release();
    }
    assert_eq!(order, [3, 4, 2, 1]);
    let view = pool.view();
    assert_eq!((view.free, view.running, view.waiting), (1, 0, 0));
}

#[test]
fn caps_of_key_and_tenant_hold_and_do_not_block_others() {
    let mut settings = settings(8, &[]);
    settings.tenants = vec![TenantSettings {
        name: "acme".into(),
        group: None,
        weight: 100,
        max_in_flight: Some(2),
        exempt: false,
    }];
    settings.keys = vec![KeySettings {
        name: "k".into(),
        tenant: "acme".into(),
        weight: 100,
        max_in_flight: Some(1),
        exempt: false,
    }];
    let (engine, pool, _clock) = host(&settings);
    let queue = engine.completion_queue(16).unwrap();
    let band = pool.band(0).unwrap();
    let key = Request::new(band).flow(pool.flow("", "acme", "k").unwrap());
    let other_key = Request::new(band).flow(pool.flow("", "acme", "other").unwrap());
    let stranger = Request::new(band).flow(pool.flow("", "zeta", "").unwrap());
    let first = pool.try_admit(&key).unwrap();
    assert_eq!(pool.try_admit(&key).err(), Some(Reason::WouldQueue));
    let waits = queued(pool.submit(&key, &queue, 7).unwrap());
    let second = pool.try_admit(&other_key).unwrap();
    assert_eq!(pool.try_admit(&other_key).err(), Some(Reason::WouldQueue));
    let third = pool.try_admit(&stranger).unwrap();
    let anonymous = pool.try_admit(&Request::new(band)).unwrap();
    assert_eq!(pool.view().capped + pool.view().waiting, 2, "one waits, known to be capped");
    drop(second);
    assert!(queue.poll().is_none(), "the tenant has room, the key has not");
    drop(first);
    let granted = queue.poll().unwrap();
    assert_eq!((granted.tag, granted.ticket), (7, waits));
    drop((third, anonymous, granted));
    assert_eq!(pool.view().free, 8);
}

#[test]
fn a_deadline_passes_on_time_without_traffic_and_a_cancel_frees_the_place() {
    let (engine, pool, clock) = host(&settings(1, &[]));
    let queue = engine.completion_queue(16).unwrap();
    let band = pool.band(0).unwrap();
    let running = pool.try_admit(&Request::new(band)).unwrap();
    let short = Request::new(band).timeout(Duration::from_millis(10));
    let _expires = queued(pool.submit(&short, &queue, 1).unwrap());
    let cancelled = queued(pool.submit(&Request::new(band), &queue, 2).unwrap());
    let now_or_never = Request::new(band).timeout(Duration::ZERO);
    assert_eq!(pool.submit(&now_or_never, &queue, 3).err(), Some(Reason::Deadline));
    assert_eq!(pool.cancel(cancelled), CancelAnswer::Cancelled);
    assert_eq!(pool.cancel(cancelled), CancelAnswer::Stale);
    clock.set(9_999_999);
    assert_eq!(engine.poll().expired, 0);
    clock.set(10_000_000);
    assert_eq!(engine.poll().expired, 1);
    let outcomes: Vec<_> =
        core::iter::from_fn(|| queue.poll()).map(|c| (c.tag, c.outcome.err())).collect();
    assert_eq!(outcomes, [(1, Some(Reason::Deadline))]);
    drop(running);
    assert_eq!((pool.view().free, pool.view().waiting), (1, 0));
    assert_eq!(engine.poll().next_deadline_ns, None);
}

#[test]
fn a_dropped_future_cancels_and_a_grant_it_did_not_see_goes_to_the_next() {
    let (_engine, pool, _clock) = host(&settings(1, &[]));
    let request = Request::new(pool.band(0).unwrap());
    let running = pool.try_admit(&request).unwrap();
    let mut cx = Context::from_waker(Waker::noop());
    let mut first = Box::pin(pool.admit(request));
    let mut second = Box::pin(pool.admit(request));
    assert!(first.as_mut().poll(&mut cx).is_pending());
    assert!(second.as_mut().poll(&mut cx).is_pending());
    assert_eq!(pool.view().waiting, 2);
    drop(running);
    // The grant is the first one's, which is dropped before it looks.
    drop(first);
    let Poll::Ready(Ok(permit)) = second.as_mut().poll(&mut cx) else {
        panic!("the slot was lost")
    };
    assert_eq!(permit.how(), Admitted::Queued);
    let third = pin!(pool.admit(request));
    assert!(third.poll(&mut cx).is_pending());
    drop(permit);
    drop(second);
    assert_eq!(pool.view().waiting, 0);
}

#[test]
fn growing_grants_at_once_and_shrinking_revokes_nobody() {
    let (engine, pool, _clock) = host(&settings(4, &[]));
    let queue = engine.completion_queue(16).unwrap();
    let request = Request::new(pool.band(0).unwrap());
    let running: Vec<_> = (0..4).map(|_| pool.try_admit(&request).unwrap()).collect();
    assert!(pool.resize(2));
    assert_eq!((pool.view().free, pool.view().running), (-2, 4));
    for tag in 0..6 {
        let _ticket = queued(pool.submit(&request, &queue, tag).unwrap());
    }
    let mut running = running.into_iter();
    for _ in 0..2 {
        drop(running.next());
        assert!(queue.poll().is_none(), "above the new size nobody is admitted");
    }
    drop(running.next());
    let held = vec![queue.poll().unwrap()];
    assert!(pool.resize(6));
    assert_eq!(queue.drain(|completion| core::mem::forget(completion.outcome)), 4);
    assert!(!pool.resize(0) && !pool.resize(1 << 21));
    assert_eq!((pool.view().running, pool.view().waiting), (6, 1));
    drop(held);
}

#[test]
fn shutdown_evicts_every_waiter_once_and_leaves_permits_releasable() {
    let (engine, pool, _clock) = host(&settings(1, &[10]));
    let queue = engine.completion_queue(256).unwrap();
    let request = Request::new(pool.band(10).unwrap());
    let running = pool.try_admit(&request).unwrap();
    for tag in 0..200 {
        let _ticket = queued(pool.submit(&request, &queue, tag).unwrap());
    }
    engine.shutdown();
    engine.shutdown();
    while engine.poll().more {}
    let mut tags: Vec<_> = core::iter::from_fn(|| queue.poll())
        .map(|c| {
            assert_eq!(c.outcome.err(), Some(Reason::ShuttingDown));
            c.tag
        })
        .collect();
    tags.sort_unstable();
    assert_eq!(tags, (0..200).collect::<Vec<_>>());
    assert_eq!(pool.try_admit(&request).err(), Some(Reason::ShuttingDown));
    drop(running);
    assert_eq!((pool.view().free, pool.view().waiting), (1, 0));
}

#[test]
fn a_queue_that_is_dropped_gives_back_what_it_held_and_loses_no_slot() {
    let (engine, pool, _clock) = host(&settings(1, &[]));
    let request = Request::new(pool.band(0).unwrap());
    let running = pool.try_admit(&request).unwrap();
    let gone = engine.completion_queue(4).unwrap();
    let kept = engine.completion_queue(4).unwrap();
    let _first = queued(pool.submit(&request, &gone, 1).unwrap());
    let _second = queued(pool.submit(&request, &gone, 2).unwrap());
    let _third = queued(pool.submit(&request, &kept, 3).unwrap());
    drop(running);
    // The first has its grant in the ring, the second waits: both are given up with the queue.
    drop(gone);
    assert_eq!(kept.poll().map(|c| c.tag), Some(3));
    assert_eq!((pool.view().free, pool.view().waiting), (1, 0));
    for _ in 0..200 {
        drop(engine.completion_queue(4).unwrap());
    }
}

#[test]
fn bad_requests_are_refused_by_reason_and_leave_nothing_behind() {
    let mut settings = settings(1, &[]);
    settings.pools.push(PoolSettings::new("other", 1));
    settings.pools[0].max_cost = 100;
    let (engine, pool, _clock) = host(&settings);
    let other = engine.pool("other").unwrap();
    assert_eq!(engine.pool("none").err(), Some(Reason::UnknownPool));
    assert_eq!(pool.band(5).err(), Some(Reason::UnknownBand));
    let band = pool.band(0).unwrap();
    assert_eq!(pool.try_admit(&Request::new(band).cost(0)).err(), Some(Reason::TooLarge));
    assert_eq!(pool.try_admit(&Request::new(band).cost(101)).err(), Some(Reason::TooLarge));
    assert!(pool.try_admit(&Request::new(band).cost(100)).is_ok());
    let foreign = Request::new(other.band(0).unwrap());
    assert_eq!(pool.try_admit(&foreign).err(), Some(Reason::UnknownBand));
    let flow = other.flow("", "t", "").unwrap();
    let foreign = Request::new(band).flow(flow);
    assert_eq!(pool.try_admit(&foreign).err(), Some(Reason::UnknownPool));
    assert!(!pool.set_saturation(Some(f64::NAN)) && !pool.set_saturation(Some(-0.1)));
    assert_eq!(pool.view().free, 1);
}

/// A host that names a time beyond the clock's, or that of its own loop, does not end the engine's time.
// INV: I36 I46
#[test]
fn a_poll_in_the_far_future_evicts_nobody_early_and_ends_no_later_deadline() {
    let (engine, pool, clock) = host(&settings(1, &[]));
    let queue = engine.completion_queue(8).unwrap();
    let request = Request::new(pool.band(0).unwrap());
    let _held = pool.try_admit(&request).unwrap();
    for n in 0..3 {
        for far in [u64::MAX, u64::MAX - 1_000_000, 1 << 63] {
            assert_eq!(engine.poll_at(far).expired, 0);
        }
        let short = request.timeout(Duration::from_millis(5));
        let _ticket = queued(pool.submit(&short, &queue, n).unwrap());
        let progress = engine.poll_at(u64::MAX);
        assert_eq!((progress.expired, progress.more), (0, false), "not due yet");
        clock.set(clock.now_ns() + 6_000_000);
        assert_eq!(engine.poll_at(clock.now_ns()).expired, 1);
        assert_eq!(queue.poll().unwrap().outcome.err(), Some(Reason::Deadline));
    }
}
