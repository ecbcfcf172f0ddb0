//! What changes while an engine runs: bands, weights, ceilings, caps, slots, modes; and what is refused by name.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on may panic")]
#![cfg(not(loom))]

mod common;

use core::sync::atomic::{AtomicBool, Ordering};
use core::time::Duration;

use bandgate_core::types::policy::{BandSelection, Distribution, Holdback, Order, Ratio, Schedule};
use bandgate_core::types::settings::{BandSettings, DriverKind, PoolMode, Settings};
use bandgate_core::{BandError, CompletionQueue, Engine, Permit, Pool, Reason, Request};
use common::{host, queued, settings, start, tenant, wfq};

fn band(priority: i32) -> BandSettings {
    BandSettings::new(priority)
}

fn ratios(ratios: &[(i32, u32)]) -> BandSelection {
    let ratios = ratios.iter().map(|(p, r)| (*p, Ratio(*r))).collect();
    let distribution = Distribution::Explicit { ratios, default_ratio: None };
    wfq(Schedule::PriorityFirst { max_fairness_window: None }, distribution, 0.0)
}

fn wait(pool: &Pool, queue: &CompletionQueue, priority: i32, count: u64) {
    let request = Request::new(pool.band(priority).unwrap()).no_timeout();
    for n in 0..count {
        let tag = u64::from(priority.cast_unsigned()) << 32 | n;
        let _ticket = queued(pool.submit(&request, queue, tag).unwrap());
    }
}

/// Priorities in the order in which one slot serves them.
fn serve(queue: &CompletionQueue, running: Permit<'_>, count: usize) -> Vec<i32> {
    drop(running);
    let mut order = Vec::new();
    while order.len() < count {
        let Some(completion) = queue.poll() else { break };
        order.push(((completion.tag >> 32) as u32).cast_signed());
        drop(completion.outcome.unwrap());
    }
    order
}

fn with_room(slots: u32, bands: &[i32], max_bands: u32) -> Settings {
    let mut settings = settings(DriverKind::Host, slots, bands);
    settings.pools[0].max_bands = max_bands;
    settings
}

#[test]
fn a_band_added_between_others_is_served_in_its_place_and_handles_stay_true() {
    let (engine, pool, _clock) = host(&with_room(1, &[20], 3));
    let queue = engine.completion_queue(16).unwrap();
    let low = Request::new(pool.band(0).unwrap()).no_timeout();
    let running = pool.try_admit(&low).unwrap();
    wait(&pool, &queue, 0, 2);
    let new = pool.add_band(BandSettings { name: Some("batch".into()), ..band(10) }).unwrap();
    assert_eq!((pool.band_named("batch"), pool.priorities()), (Ok(new), vec![20, 10, 0]));
    wait(&pool, &queue, 10, 1);
    wait(&pool, &queue, 20, 1);
    // The handle made before the change still means priority 0.
    let _ticket = queued(pool.submit(&low, &queue, 7).unwrap());
    assert_eq!(serve(&queue, running, 5), [20, 10, 0, 0, 0]);
    assert_eq!(pool.add_band(band(10)).err(), Some(BandError::Exists(10)));
    assert_eq!(pool.add_band(band(5)).err(), Some(BandError::TooMany(3)));
}

#[test]
fn a_removed_band_refuses_newcomers_serves_who_waits_and_comes_back_under_its_handle() {
    let (engine, pool, _clock) = host(&with_room(1, &[20, 10], 3));
    let queue = engine.completion_queue(16).unwrap();
    let handle = pool.band(10).unwrap();
    let request = Request::new(handle).no_timeout();
    let running = pool.try_admit(&Request::new(pool.band(0).unwrap())).unwrap();
    wait(&pool, &queue, 0, 1);
    wait(&pool, &queue, 10, 1);
    pool.remove_band(10).unwrap();
    assert_eq!(pool.band(10).err(), Some(Reason::UnknownBand));
    assert_eq!(pool.submit(&request, &queue, 0).err(), Some(Reason::UnknownBand));
    assert_eq!(pool.try_admit(&request).err(), Some(Reason::UnknownBand));
    assert_eq!(serve(&queue, running, 2), [10, 0]);
    // With a free slot too: the fast path is closed for it.
    assert_eq!(pool.try_admit(&request).err(), Some(Reason::UnknownBand));
    assert_eq!(pool.add_band(band(10)).unwrap(), handle);
    drop(pool.try_admit(&request).unwrap());
    assert_eq!(pool.remove_band(0).err(), Some(BandError::Needed(0)));
    assert_eq!(pool.remove_band(99).err(), Some(BandError::Unknown(99)));
}

#[test]
fn weights_follow_a_reload_at_the_next_decision() {
    let mut wanted = with_room(1, &[10], 2);
    wanted.pools[0].selection = ratios(&[(10, 5_000), (0, 5_000)]);
    let (engine, pool, _clock) = host(&wanted);
    let queue = engine.completion_queue(64).unwrap();
    let running = pool.try_admit(&Request::new(pool.band(0).unwrap())).unwrap();
    wait(&pool, &queue, 10, 20);
    wait(&pool, &queue, 0, 20);
    let first = serve(&queue, running, 8);
    assert_eq!(first.iter().filter(|p| **p == 0).count(), 4);
    let running = queue.poll().unwrap().outcome.unwrap();
    wanted.pools[0].selection = ratios(&[(10, 2_500), (0, 7_500)]);
    engine.reload(&wanted).unwrap();
    // Whole rounds of 1 to 3, give or take what the old round still owed.
    let after = serve(&queue, running, 12);
    let lows = after.iter().filter(|p| **p == 0).count();
    assert!((8..=10).contains(&lows), "{after:?}");
}

#[test]
fn ceilings_caps_and_slots_follow_a_reload_and_grant_who_may_run_now() {
    let mut wanted = settings(DriverKind::Host, 4, &[10]);
    let ceilings = |low| Holdback::Explicit { ceilings: vec![(10, 1.0), (0, low)], default: None };
    wanted.pools[0].holdback = ceilings(0.25);
    wanted.tenants = vec![tenant("acme", 1)];
    let (engine, pool, _clock) = host(&wanted);
    let queue = engine.completion_queue(16).unwrap();
    let low = Request::new(pool.band(0).unwrap()).no_timeout();
    let acme = Request::new(pool.band(10).unwrap()).flow(pool.flow("", "acme", "").unwrap());
    let mut permits = vec![pool.try_admit(&low).unwrap()];
    let _gated = queued(pool.submit(&low, &queue, 1).unwrap());
    wanted.pools[0].holdback = ceilings(0.5);
    engine.reload(&wanted).unwrap();
    permits.push(queue.poll().unwrap().outcome.unwrap());
    assert_eq!(pool.try_admit(&low).err(), Some(Reason::WouldQueue));

    permits.push(pool.try_admit(&acme).unwrap());
    let _capped = queued(pool.submit(&acme, &queue, 2).unwrap());
    assert!(queue.poll().is_none());
    wanted.tenants = vec![tenant("acme", 2)];
    engine.reload(&wanted).unwrap();
    permits.push(queue.poll().unwrap().outcome.unwrap());

    let _full = queued(pool.submit(&low, &queue, 3).unwrap());
    wanted.pools[0].slots = 10;
    engine.reload(&wanted).unwrap();
    permits.push(queue.poll().unwrap().outcome.unwrap());
    drop(permits);
    assert_eq!((pool.view().slots, pool.view().running, pool.view().free), (10, 0, 10));
}

#[test]
fn what_cannot_change_is_refused_by_name_and_nothing_changes() {
    let wanted = settings(DriverKind::Host, 2, &[10]);
    let (engine, pool, _clock) = host(&wanted);
    let before = engine.config_info();
    let mut other = wanted.clone();
    other.shards = 2;
    other.max_requests = 77;
    other.pools[0].slots = 9;
    other.pools[0].max_flows = 3;
    other.pools[0].holdback = Holdback::Explicit { ceilings: vec![(10, 7.0)], default: None };
    let error = engine.reload(&other).unwrap_err();
    for field in
        ["engine.shards", "engine.maxRequests", "pools.default.maxFlows", "holdback.ceilings"]
    {
        assert!(error.faults().iter().any(|fault| fault.contains(field)), "{field}: {error}");
    }
    assert_eq!(pool.view().slots, 2);
    let info = engine.config_info();
    assert_eq!((info.hash, info.reloads, info.refused), (before.hash, 0, 1));
    other = wanted.clone();
    other.pools[0].slots = 3;
    engine.reload(&other).unwrap();
    let info = engine.config_info();
    assert!(info.hash != before.hash && info.reloads == 1);
    engine.reload(&wanted).unwrap();
    assert_eq!(engine.config_info().hash, before.hash);
}

#[test]
fn the_order_within_a_band_is_fixed_when_the_band_is_made() {
    let wanted = with_room(1, &[10], 3);
    let (engine, pool, _clock) = host(&wanted);
    let mut other = wanted.clone();
    other.pools[0].bands[0].order = Order::Edf;
    let error = engine.reload(&other).unwrap_err();
    assert!(error.to_string().contains("bands.10.order"), "{error}");
    let edf = BandSettings { order: Order::Edf, ..band(5) };
    pool.add_band(edf).unwrap();
    pool.remove_band(5).unwrap();
    assert!(matches!(pool.add_band(band(5)), Err(BandError::Invalid(_))));
    assert_eq!(pool.priorities(), [10, 0]);
}

#[test]
fn a_pool_out_of_room_for_priorities_refuses_before_any_pool_changes() {
    let wanted = with_room(1, &[10], 2);
    let (engine, pool, _clock) = host(&wanted);
    let mut other = wanted.clone();
    other.pools[0].bands = vec![band(30), band(0)];
    other.pools[0].slots = 5;
    let error = engine.reload(&other).unwrap_err();
    assert!(error.to_string().contains("pools.default.bands"), "{error}");
    assert_eq!((pool.priorities(), pool.view().slots), (vec![10, 0], 1));
}

#[test]
fn a_default_wait_of_a_reload_holds_for_the_next_request() {
    let mut wanted = settings(DriverKind::Host, 1, &[10]);
    let (engine, pool, clock) = host(&wanted);
    let queue = engine.completion_queue(16).unwrap();
    let request = Request::new(pool.band(10).unwrap());
    let _running = pool.try_admit(&request).unwrap();
    wanted.admission_timeout = Some(Duration::from_millis(5));
    engine.reload(&wanted).unwrap();
    let _ticket = queued(pool.submit(&request, &queue, 0).unwrap());
    clock.set(clock.now_ns() + 10_000_000);
    common::settle(&engine);
    assert_eq!(queue.poll().unwrap().outcome.err(), Some(Reason::Deadline));
}

/// Slots are conserved and nobody is left waiting while settings change under load.
#[test]
fn admits_and_reloads_race_without_losing_a_slot() {
    let mut one = settings(DriverKind::Inline, 4, &[20, 10]);
    one.pools[0].max_bands = 4;
    one.tenants = vec![tenant("acme", 2)];
    let mut two = one.clone();
    two.pools[0].slots = 2;
    two.pools[0].bands = vec![band(30), band(10), band(0)];
    two.pools[0].selection = ratios(&[(30, 6_000), (10, 3_000), (0, 1_000)]);
    two.pools[0].mode = PoolMode::Enforce;
    two.pools[0].holders = true;
    two.tenants = vec![tenant("acme", 1)];
    let (engine, pool) = start(&one);
    let stop = AtomicBool::new(false);
    let rounds = if cfg!(debug_assertions) { 300 } else { 2_000 };
    std::thread::scope(|scope| {
        for n in 0..3 {
            let (pool, stop) = (pool.clone(), &stop);
            scope.spawn(move || hammer(&pool, n, stop));
        }
        reload_in_turn(&engine, &[two, one], rounds);
        stop.store(true, Ordering::Relaxed);
    });
    let view = pool.view();
    assert_eq!((view.running, view.waiting, view.tracked), (0, 0, 0));
    assert_eq!(view.free, 4);
}

fn hammer(pool: &Pool, n: usize, stop: &AtomicBool) {
    let flow = pool.flow("", if n == 0 { "acme" } else { "other" }, "").unwrap();
    let band = pool.band(if n == 1 { 0 } else { 10 }).unwrap();
    let request = Request::new(band);
    let request = if n == 2 { request } else { request.flow(flow) };
    while !stop.load(Ordering::Relaxed) {
        match pool.admit_blocking(request, Some(Duration::from_secs(20))) {
            Ok(permit) => drop(permit),
            Err(reason) => assert_eq!(reason, Reason::UnknownBand, "lost a wake"),
        }
    }
}

fn reload_in_turn(engine: &Engine, settings: &[Settings], rounds: usize) {
    for round in 0..rounds {
        engine.reload(&settings[round % settings.len()]).unwrap();
    }
}
