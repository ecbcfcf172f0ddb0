//! Exempt flows: requests that run at once, beside queue, caps and slots, and are counted.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on may panic")]
#![cfg(not(loom))]

mod common;

use core::sync::atomic::{AtomicBool, Ordering};
use core::time::Duration;

use bandgate_core::types::settings::{DriverKind, KeySettings, PoolMode, Settings, TenantSettings};
use bandgate_core::{Admitted, Engine, Pool, Reason, Request, Submitted};
use common::{host, poll_once, queued, settings, settle, start, tenant};

fn exempt(driver: DriverKind, slots: u32) -> Settings {
    let mut settings = settings(driver, slots, &[10]);
    settings.tenants = vec![
        TenantSettings { exempt: true, ..tenant("probe", 0) },
        tenant("acme", 1),
        TenantSettings { max_in_flight: None, ..tenant("free", 0) },
    ];
    settings.keys = vec![KeySettings {
        name: "health".into(),
        tenant: "acme".into(),
        weight: 100,
        max_in_flight: Some(0),
        exempt: true,
    }];
    settings
}

fn request(pool: &Pool, tenant: &str, key: &str) -> Request {
    Request::new(pool.band(0).unwrap()).flow(pool.flow("", tenant, key).unwrap()).no_timeout()
}

/// A pool without a free slot, and somebody who waits for one.
fn full(
    engine: &Engine,
    pool: &Pool,
) -> (bandgate_core::OwnedPermit, bandgate_core::CompletionQueue) {
    let queue = engine.completion_queue(16).unwrap();
    let running = pool.try_admit(&request(pool, "free", "")).unwrap().into_owned();
    let urgent = Request::new(pool.band(10).unwrap()).no_timeout();
    let _ticket = queued(pool.submit(&urgent, &queue, 1).unwrap());
    (running, queue)
}

#[test]
fn an_exempt_request_runs_in_a_full_pool_by_every_way_in_and_frees_no_slot_it_never_took() {
    let (engine, pool, clock) = host(&exempt(DriverKind::Host, 1));
    let (running, queue) = full(&engine, &pool);
    let probe = request(&pool, "probe", "");
    let tried = pool.try_admit(&probe).unwrap();
    assert_eq!(tried.how(), Admitted::Fast);
    let Ok(Submitted::Granted(submitted)) = pool.submit(&probe, &queue, 2) else { panic!() };
    let mut future = Box::pin(pool.admit(probe));
    let core::task::Poll::Ready(Ok(polled)) = poll_once(&mut future) else { panic!() };
    let blocking = pool.admit_blocking(probe.timeout(Duration::ZERO), None).unwrap();
    let view = pool.view();
    assert_eq!((view.running, view.exempt, view.waiting, view.free), (1, 4, 1, 0));
    assert_eq!((view.stats.exempt, view.stats.direct, view.tracked), (4, 1, 0));
    clock.set(clock.now_ns() + 1_000_000_000);
    let held = pool.holders(10);
    assert!(held.len() == 4 && held.iter().all(|it| it.exempt && it.age.as_secs() == 1));
    assert_eq!((held[0].flow.as_ref().unwrap().tenant.as_str(), held[0].priority), ("probe", 0));
    drop((tried, submitted, polled, blocking));
    let view = pool.view();
    assert_eq!((view.running, view.exempt, view.waiting, view.free), (1, 0, 1, 0));
    assert!(queue.poll().is_none(), "no slot came back");
    drop(running);
    drop(queue.poll().unwrap().outcome.unwrap());
    assert_eq!((pool.view().running, pool.view().free), (0, 1));
    assert!(pool.refusals().is_empty());
}

#[test]
fn an_exempt_key_takes_nothing_from_its_tenants_cap_and_its_siblings_keep_theirs() {
    let (_engine, pool, _clock) = host(&exempt(DriverKind::Host, 8));
    let (health, own) = (request(&pool, "acme", "health"), request(&pool, "acme", ""));
    let probes = [pool.try_admit(&health).unwrap(), pool.try_admit(&health).unwrap()];
    let first = pool.try_admit(&own).unwrap();
    assert_eq!(pool.try_admit(&own).err(), Some(Reason::WouldQueue));
    drop(probes);
    assert_eq!(pool.try_admit(&own).err(), Some(Reason::WouldQueue));
    drop(first);
    drop(pool.try_admit(&own).unwrap());
    // A cap of 0 still refuses who is not exempt.
    let mut capped = exempt(DriverKind::Host, 8);
    capped.tenants[0].exempt = false;
    let (_engine, pool, _clock) = host(&capped);
    let probe = request(&pool, "probe", "");
    assert_eq!(pool.try_admit(&probe).err(), Some(Reason::TenantQueueFull));
}

#[test]
fn exempt_is_switched_by_a_reload_and_permits_end_as_they_began() {
    let wanted = exempt(DriverKind::Host, 1);
    let (engine, pool, _clock) = host(&wanted);
    let mut other = wanted.clone();
    other.tenants[0] = tenant("probe", 1);
    other.tenants[2].exempt = true;
    let (probe, free) = (request(&pool, "probe", ""), request(&pool, "free", ""));
    let (beside, within) = (pool.try_admit(&probe).unwrap(), pool.try_admit(&free).unwrap());
    engine.reload(&other).unwrap();
    assert_eq!(pool.try_admit(&probe).err(), Some(Reason::WouldQueue), "no slot is free");
    let now_beside = pool.try_admit(&free).unwrap();
    assert_eq!((pool.view().running, pool.view().exempt), (1, 2));
    drop(beside);
    assert_eq!((pool.view().running, pool.view().free, pool.view().exempt), (1, 0, 1));
    drop(within);
    let probing = pool.try_admit(&probe).unwrap();
    drop((now_beside, probing));
    assert_eq!((pool.view().running, pool.view().free, pool.view().exempt), (0, 1, 0));
}

#[test]
fn what_is_wrong_with_the_request_itself_is_refused_all_the_same() {
    let mut wanted = exempt(DriverKind::Host, 1);
    wanted.pools[0].max_cost = 10;
    wanted.pools[0].max_bands = 3;
    let (_engine, pool, _clock) = host(&wanted);
    let probe = request(&pool, "probe", "");
    assert_eq!(pool.try_admit(&probe.cost(11)).err(), Some(Reason::TooLarge));
    let band = pool.add_band(pool.template(5)).unwrap();
    pool.remove_band(5).unwrap();
    let flow = pool.flow("", "probe", "").unwrap();
    assert_eq!(pool.try_admit(&Request::new(band).flow(flow)).err(), Some(Reason::UnknownBand));
    pool.drain();
    assert_eq!(pool.try_admit(&probe).err(), Some(Reason::ShuttingDown));
}

#[test]
fn an_observing_pool_counts_an_exempt_request_as_exempt() {
    let mut wanted = exempt(DriverKind::Host, 1);
    wanted.pools[0].mode = PoolMode::Observe;
    let (_engine, pool, _clock) = host(&wanted);
    let permits = [(); 3].map(|()| pool.try_admit(&request(&pool, "probe", "")).unwrap());
    let stats = pool.view().stats;
    assert_eq!((stats.exempt, stats.would_queue, stats.would_reject), (3, 0, 0));
    drop(permits);
    assert_eq!((pool.view().running, pool.view().exempt, pool.view().free), (0, 0, 1));
}

#[test]
fn a_full_slab_keeps_no_health_check_out() {
    let mut wanted = exempt(DriverKind::Host, 1);
    wanted.max_requests = 2;
    let (engine, pool, _clock) = host(&wanted);
    let (running, queue) = full(&engine, &pool);
    let waits = request(&pool, "free", "");
    let mut tag = 2;
    while let Ok(Submitted::Queued(_)) = pool.submit(&waits, &queue, tag) {
        tag += 1;
    }
    let probes = [(); 3].map(|()| pool.try_admit(&request(&pool, "probe", "")).unwrap());
    assert_eq!((pool.view().stats.exempt, pool.view().exempt), (3, 0));
    drop(probes);
    assert_eq!((pool.view().running, pool.view().free), (1, 0));
    drop(running);
    while let Some(done) = queue.poll() {
        drop(done.outcome.unwrap());
    }
    assert_eq!((pool.view().running, pool.view().free), (0, 1));
}

#[test]
fn a_health_check_nobody_ends_is_taken_back_by_max_hold() {
    let mut wanted = exempt(DriverKind::Host, 1);
    wanted.pools[0].max_hold = Some(Duration::from_secs(1));
    let (engine, pool, clock) = host(&wanted);
    let forgotten = pool.try_admit(&request(&pool, "probe", "")).unwrap();
    clock.set(clock.now_ns() + 3_000_000_000);
    settle(&engine);
    assert_eq!((pool.view().exempt, pool.view().reaped, pool.view().free), (0, 1, 1));
    drop(forgotten);
    assert_eq!((pool.view().exempt, pool.view().free), (0, 1));
}

/// Under contention, by the ring too: every health check runs, whatever the pool is doing.
#[test]
fn health_checks_pass_a_hammered_pool_and_no_slot_is_gained_or_lost() {
    for driver in [DriverKind::Inline, DriverKind::Threads] {
        let (_engine, pool) = start(&exempt(driver, 2));
        let stop = AtomicBool::new(false);
        let rounds: u64 = if cfg!(debug_assertions) { 1_000 } else { 20_000 };
        std::thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| {
                    let request = request(&pool, "free", "");
                    while !stop.load(Ordering::Relaxed) {
                        let permit = pool.admit_blocking(request, Some(Duration::from_secs(20)));
                        assert!(pool.view().running <= 2);
                        drop(permit.unwrap());
                    }
                });
            }
            let probe = request(&pool, "probe", "");
            for _ in 0..rounds {
                drop(pool.admit_blocking(probe, Some(Duration::from_secs(20))).unwrap());
            }
            stop.store(true, Ordering::Relaxed);
        });
        // The thread of the shard may still have the last releases to apply.
        while pool.view().running + pool.view().exempt > 0 {
            std::thread::yield_now();
        }
        let view = pool.view();
        assert_eq!((view.free, view.waiting, view.stats.exempt), (2, 0, rounds));
    }
}
