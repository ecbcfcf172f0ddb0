//! Pools that keep track of who runs, permits taken back, and pools that only observe.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on may panic")]
#![cfg(not(loom))]

mod common;

use core::task::Poll;
use core::time::Duration;

use bandgate_core::clock::Clock;
use bandgate_core::types::settings::{DriverKind, PoolMode, Settings};
use bandgate_core::{CancelAnswer, Reason, Request, Submitted};
use common::{host, poll_once, queued, settings, settle, tenant};

const SECOND: Duration = Duration::from_secs(1);

/// Turns a clock on.
fn advance(clock: &Clock, by: Duration) {
    clock.set(clock.now_ns() + u64::try_from(by.as_nanos()).unwrap());
}

fn tracked(slots: u32, max_hold: Option<Duration>) -> Settings {
    let mut settings = settings(DriverKind::Host, slots, &[10]);
    settings.pools[0].holders = true;
    settings.pools[0].max_hold = max_hold;
    settings
}

#[test]
fn holders_are_listed_longest_first_with_name_cost_and_age() {
    let (engine, pool, clock) = host(&tracked(3, None));
    let acme = pool.flow("chat", "acme", "k").unwrap();
    let band = pool.band(10).unwrap();
    let first = pool.try_admit(&Request::new(band).flow(acme).cost(7)).unwrap();
    advance(&clock, SECOND);
    let second = pool.try_admit(&Request::new(pool.band(0).unwrap())).unwrap();
    advance(&clock, SECOND);
    let queue = engine.completion_queue(4).unwrap();
    let held = engine.holders("default", 10).unwrap();
    let seen: Vec<_> = held
        .iter()
        .map(|h| (h.flow.as_ref().map(|f| f.tenant.as_str()), h.priority, h.cost, h.age))
        .collect();
    assert_eq!(seen, [(Some("acme"), 10, 7, 2 * SECOND), (None, 0, 1, SECOND)]);
    assert_eq!(pool.view().tracked, 2);
    drop(first);
    assert_eq!(pool.holders(10).len(), 1);
    drop(second);
    assert_eq!((pool.view().running, pool.holders(10).len()), (0, 0));
    drop(queue);
}

#[test]
fn a_queued_grant_is_tracked_by_completion_and_by_future() {
    let (engine, pool, clock) = host(&tracked(1, None));
    advance(&clock, SECOND);
    let request = Request::new(pool.band(10).unwrap());
    let queue = engine.completion_queue(4).unwrap();
    let running = pool.try_admit(&request).unwrap();
    let ticket = queued(pool.submit(&request, &queue, 5).unwrap());
    let mut future = Box::pin(pool.admit(request));
    assert!(poll_once(&mut future).is_pending());
    advance(&clock, SECOND);
    let waits = pool.waiters(10);
    assert_eq!(waits.iter().map(|w| w.age).collect::<Vec<_>>(), [Some(SECOND); 2]);
    drop(running);
    let permit = queue.poll().unwrap().outcome.unwrap();
    assert_eq!(pool.cancel(ticket), CancelAnswer::TooLate);
    assert_eq!(pool.view().tracked, 1);
    drop(permit);
    let uncollected = pool.holders(10);
    assert!(uncollected.len() == 1 && uncollected[0].uncollected);
    let Poll::Ready(Ok(permit)) = poll_once(&mut future) else { panic!("granted") };
    assert!(!pool.holders(10)[0].uncollected);
    drop(permit);
    assert_eq!((pool.view().free, pool.view().tracked), (1, 0));
}

#[test]
fn a_dropped_future_with_a_tracked_grant_gives_the_slot_back() {
    let (_engine, pool, _clock) = host(&tracked(1, None));
    let request = Request::new(pool.band(10).unwrap());
    let running = pool.try_admit(&request).unwrap();
    let mut future = Box::pin(pool.admit(request));
    assert!(poll_once(&mut future).is_pending());
    drop(running);
    assert_eq!(pool.view().running, 1);
    drop(future);
    assert_eq!((pool.view().running, pool.view().tracked), (0, 0));
}

#[test]
fn a_permit_nobody_released_is_taken_back_and_its_late_release_is_void() {
    let (engine, pool, clock) = host(&tracked(1, Some(10 * SECOND)));
    let request = Request::new(pool.band(10).unwrap());
    let queue = engine.completion_queue(4).unwrap();
    let forgotten = pool.try_admit(&request).unwrap();
    let _ticket = queued(pool.submit(&request.no_timeout(), &queue, 1).unwrap());
    advance(&clock, 9 * SECOND);
    settle(&engine);
    assert!(queue.poll().is_none());
    advance(&clock, 2 * SECOND);
    settle(&engine);
    let next = queue.poll().unwrap().outcome.unwrap();
    assert_eq!((pool.view().reaped, pool.view().running), (1, 1));
    // The entry may be anybody's by now: the old permit must not end it.
    drop(forgotten);
    assert_eq!((pool.view().running, pool.view().free), (1, 0));
    drop(next);
    assert_eq!((pool.view().running, pool.view().free), (0, 1));
}

#[test]
fn an_uncollected_grant_is_not_taken_from_its_future() {
    let (engine, pool, clock) = host(&tracked(1, Some(SECOND)));
    let request = Request::new(pool.band(10).unwrap()).no_timeout();
    let running = pool.try_admit(&request).unwrap();
    let mut future = Box::pin(pool.admit(request));
    assert!(poll_once(&mut future).is_pending());
    drop(running);
    for _ in 0..5 {
        advance(&clock, 2 * SECOND);
        settle(&engine);
    }
    assert_eq!((pool.view().reaped, pool.view().running), (0, 1));
    let Poll::Ready(Ok(permit)) = poll_once(&mut future) else { panic!("granted") };
    advance(&clock, 3 * SECOND);
    settle(&engine);
    assert_eq!((pool.view().reaped, pool.view().running), (1, 0));
    drop(permit);
    assert_eq!(pool.view().free, 1);
}

#[test]
fn a_settled_cost_reaches_the_flow_of_a_tracked_permit() {
    let mut settings = tracked(2, None);
    settings.tenants = vec![tenant("acme", 1)];
    let (_engine, pool, _clock) = host(&settings);
    let flow = pool.flow("", "acme", "").unwrap();
    let request = Request::new(pool.band(10).unwrap()).flow(flow).cost(5);
    let mut permit = pool.try_admit(&request).unwrap();
    assert_eq!(permit.cost(), 5);
    permit.settle(50);
    assert_eq!(pool.try_admit(&request).err(), Some(Reason::WouldQueue));
    drop(permit);
    drop(pool.try_admit(&request).unwrap());
}

#[test]
fn a_full_slab_grants_untracked_rather_than_not_at_all() {
    let mut settings = tracked(4, None);
    settings.max_requests = 2;
    let (_engine, pool, _clock) = host(&settings);
    let request = Request::new(pool.band(10).unwrap());
    let permits: Vec<_> = (0..4).map(|_| pool.try_admit(&request).unwrap()).collect();
    assert_eq!((pool.view().running, pool.view().tracked), (4, 2));
    drop(permits);
    assert_eq!((pool.view().running, pool.view().free), (0, 4));
}

#[test]
fn an_observing_pool_admits_everything_and_counts_what_it_would_have_done() {
    let mut settings = settings(DriverKind::Host, 2, &[10]);
    settings.pools[0].mode = PoolMode::Observe;
    settings.tenants = vec![tenant("none", 0), tenant("one", 1)];
    let (engine, pool, _clock) = host(&settings);
    let queue = engine.completion_queue(4).unwrap();
    let request = Request::new(pool.band(10).unwrap());
    let none = request.flow(pool.flow("", "none", "").unwrap());
    let one = request.flow(pool.flow("", "one", "").unwrap());
    let mut permits = vec![pool.try_admit(&one).unwrap(), pool.try_admit(&one).unwrap()];
    permits.push(pool.try_admit(&none).unwrap());
    let Submitted::Granted(permit) = pool.submit(&request, &queue, 0).unwrap() else {
        panic!("queued")
    };
    permits.push(permit);
    let view = pool.view();
    assert_eq!((view.running, view.free, view.waiting), (4, -2, 0));
    assert_eq!((view.stats.would_queue, view.stats.would_reject), (2, 1));
    let refusals = pool.refusals();
    assert_eq!(refusals.len(), 1);
    assert_eq!((refusals[0].reason, refusals[0].observed), (Reason::TenantQueueFull, true));
    drop(permits);
    assert_eq!((pool.view().running, pool.view().free), (0, 2));
}

#[test]
fn the_last_refusals_are_kept_newest_first() {
    let mut settings = settings(DriverKind::Host, 1, &[10]);
    settings.tenants = vec![tenant("none", 0)];
    let (engine, pool, clock) = host(&settings);
    let queue = engine.completion_queue(4).unwrap();
    let request = Request::new(pool.band(10).unwrap());
    let none = request.flow(pool.flow("", "none", "").unwrap());
    let running = pool.try_admit(&request).unwrap();
    assert_eq!(pool.submit(&none, &queue, 0).err(), Some(Reason::TenantQueueFull));
    advance(&clock, SECOND);
    let now_or_never = request.timeout(Duration::ZERO);
    assert_eq!(pool.submit(&now_or_never, &queue, 0).err(), Some(Reason::Deadline));
    let refusals = pool.refusals();
    let seen: Vec<_> = refusals.iter().map(|r| (r.reason, r.age)).collect();
    assert_eq!(seen, [(Reason::Deadline, Duration::ZERO), (Reason::TenantQueueFull, SECOND)]);
    assert_eq!(refusals[1].flow.as_ref().unwrap().tenant, "none");
    drop(running);
}

#[test]
fn the_mode_changes_while_requests_wait_and_run() {
    let (engine, pool, _clock) = host(&settings(DriverKind::Host, 1, &[10]));
    let queue = engine.completion_queue(8).unwrap();
    let request = Request::new(pool.band(10).unwrap());
    let running = pool.try_admit(&request).unwrap();
    for tag in 0..3 {
        let _ticket = queued(pool.submit(&request, &queue, tag).unwrap());
    }
    pool.set_mode(PoolMode::Observe).unwrap();
    let mut permits: Vec<_> = (0..3).map(|_| queue.poll().unwrap().outcome.unwrap()).collect();
    permits.push(pool.try_admit(&request).unwrap());
    assert_eq!((pool.view().running, pool.view().free), (5, -4));
    pool.set_mode(PoolMode::Enforce).unwrap();
    assert_eq!(pool.try_admit(&request).err(), Some(Reason::WouldQueue));
    permits.clear();
    assert_eq!(pool.try_admit(&request).err(), Some(Reason::WouldQueue));
    drop(running);
    drop(pool.try_admit(&request).unwrap());
}
