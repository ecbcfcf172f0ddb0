//! Unknown priorities: refused, or a band of their own, made of a template and removed when nobody uses it.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on may panic")]
#![allow(
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    clippy::cast_sign_loss,
    reason = "priorities travel as tags and come back"
)]
#![cfg(not(loom))]

mod common;

use core::time::Duration;

use bandgate_core::clock::Clock;
use bandgate_core::types::policy::{BandSelection, Distribution, Fairness, Order};
use bandgate_core::types::settings::{BandSettings, DriverKind, PoolMode, Settings};
use bandgate_core::types::template::{BandTemplate, Templates, UnknownPriority};
use bandgate_core::{BandError, Pool, Reason, Request};
use common::{CREDITS, host, queued, settings, start, wfq};

const MINUTE: Duration = Duration::from_secs(60);

fn making(slots: u32, max_bands: u32) -> Settings {
    let mut settings = settings(DriverKind::Host, slots, &[10]);
    settings.pools[0].max_bands = max_bands;
    settings.pools[0].templates = Templates {
        unknown: UnknownPriority::Template,
        negative: Some(BandTemplate { fairness: Fairness::RoundRobin, order: Order::Fcfs }),
        ..Templates::NONE
    };
    settings
}

fn request(pool: &Pool, priority: i32) -> Request {
    Request::new(pool.band(priority).unwrap()).no_timeout()
}

fn advance(clock: &Clock, by: Duration) {
    clock.set(clock.now_ns() + u64::try_from(by.as_nanos()).unwrap());
}

#[test]
fn an_unknown_priority_is_an_error_and_never_another_band() {
    let (_engine, pool, _clock) = host(&settings(DriverKind::Host, 1, &[10]));
    for priority in [1, -1, 11, i32::MAX, i32::MIN] {
        assert_eq!(pool.band(priority).err(), Some(Reason::UnknownBand));
    }
    assert_eq!(pool.priorities(), [10, 0]);
}

#[test]
fn an_unknown_priority_gets_a_band_in_its_place_made_like_the_template_of_its_sign() {
    let (engine, pool, _clock) = host(&making(1, 6));
    let queue = engine.completion_queue(16).unwrap();
    let running = pool.try_admit(&request(&pool, 0)).unwrap();
    for priority in [-5, 5, 0, 15, 10] {
        let tag = u64::from(priority as u32);
        let _ticket = queued(pool.submit(&request(&pool, priority), &queue, tag).unwrap());
    }
    assert_eq!(
        (pool.priorities(), pool.templated_bands()),
        (vec![15, 10, 5, 0, -5], vec![15, 5, -5])
    );
    let bands = pool.settings().bands;
    let fairness = |p| bands.iter().find(|band| band.priority == p).unwrap().fairness.clone();
    assert_eq!((fairness(5), fairness(-5)), (Fairness::GlobalStrict, Fairness::RoundRobin));
    drop(running);
    let mut order = Vec::new();
    while let Some(done) = queue.poll() {
        order.push(done.tag as u32 as i32);
        drop(done.outcome.unwrap());
    }
    assert_eq!(order, [15, 10, 5, 0, -5]);
    assert_eq!(pool.band(5), pool.band(5));
}

#[test]
fn bands_are_made_up_to_max_bands_and_beyond_it_refused() {
    let (_engine, pool, _clock) = host(&making(1, 4));
    assert!(pool.band(1).is_ok() && pool.band(2).is_ok());
    assert_eq!(pool.band(3).err(), Some(Reason::UnknownBand));
    assert_eq!(pool.templated_bands(), [2, 1]);
    assert!(pool.band(1).is_ok(), "the bands there are stay");
}

#[test]
fn an_idle_band_is_removed_one_with_waiters_or_use_is_not_and_it_comes_back_under_its_handle() {
    let (engine, pool, clock) = host(&making(1, 8));
    let queue = engine.completion_queue(16).unwrap();
    let running = pool.try_admit(&request(&pool, 0)).unwrap();
    let (idle, waited, used) = (pool.band(1).unwrap(), request(&pool, 2), request(&pool, 3));
    let _ticket = queued(pool.submit(&waited, &queue, 2).unwrap());
    assert_eq!(pool.collect_idle_bands(MINUTE), 0);
    advance(&clock, MINUTE);
    // A refused try is a use too.
    assert_eq!(pool.try_admit(&used).err(), Some(Reason::WouldQueue));
    assert_eq!(pool.collect_idle_bands(MINUTE), 1);
    assert_eq!(pool.priorities(), [10, 3, 2, 0]);
    assert_eq!(pool.try_admit(&Request::new(idle)).err(), Some(Reason::UnknownBand));
    assert_eq!(pool.band(1), Ok(idle));
    // Days later the one who waits is still there, and served.
    advance(&clock, 5000 * MINUTE);
    assert_eq!(pool.collect_idle_bands(MINUTE), 1);
    // The request that was refused asked for band 1 since the last look.
    assert_eq!(pool.priorities(), [10, 2, 1, 0]);
    drop(running);
    drop(queue.poll().unwrap().outcome.unwrap());
    advance(&clock, MINUTE);
    assert_eq!(pool.collect_idle_bands(MINUTE), 2);
    assert_eq!((pool.priorities(), pool.templated_bands()), (vec![10, 0], vec![]));
    assert_eq!((pool.view().free, pool.view().waiting), (1, 0));
}

#[test]
fn a_grant_without_waiting_is_a_use_of_the_band() {
    let (_engine, pool, clock) = host(&making(4, 8));
    let request = request(&pool, 5);
    for _ in 0..4 {
        drop(pool.try_admit(&request).unwrap());
        assert_eq!(pool.collect_idle_bands(MINUTE), 0);
        advance(&clock, MINUTE);
    }
    assert_eq!(pool.collect_idle_bands(MINUTE), 1);
}

#[test]
fn making_a_band_removes_the_idle_ones_from_time_to_time() {
    let (_engine, pool, clock) = host(&making(1, 8));
    assert!(pool.band(1).is_ok());
    for minute in 0_i32..30 {
        advance(&clock, MINUTE);
        let _made = pool.band(minute % 2 + 2).unwrap();
        if minute == 15 {
            assert!(pool.band(4).is_ok());
        }
    }
    assert!(!pool.priorities().contains(&1), "{:?}", pool.priorities());
}

#[test]
fn configured_and_added_bands_are_never_removed_and_named_ones_found_by_name() {
    let (_engine, pool, clock) = host(&making(1, 8));
    let named = BandSettings { name: Some("batch".into()), ..pool.template(-7) };
    let band = pool.add_band(named).unwrap();
    assert_eq!((pool.band_named("batch"), pool.settings().bands.len()), (Ok(band), 3));
    assert!(pool.band(9).is_ok());
    advance(&clock, 100 * MINUTE);
    assert_eq!(pool.collect_idle_bands(MINUTE), 1);
    assert_eq!(pool.priorities(), [10, 0, -7]);
    assert_eq!(pool.band_named("nobody").err(), Some(Reason::UnknownBand));
    assert!(pool.band(9).is_ok());
    assert_eq!(pool.remove_band(9), Ok(()));
    assert_eq!((pool.templated_bands(), pool.remove_band(9)), (vec![], Err(BandError::Unknown(9))));
}

#[test]
fn a_reload_keeps_what_was_made_lists_it_or_ends_the_making() {
    let wanted = making(1, 8);
    let (engine, pool, clock) = host(&wanted);
    let (five, six) = (pool.band(5).unwrap(), pool.band(6).unwrap());
    let mut other = wanted.clone();
    other.pools[0].slots = 2;
    other.pools[0].bands.push(BandSettings { name: Some("six".into()), ..BandSettings::new(6) });
    engine.reload(&other).unwrap();
    assert_eq!((pool.priorities(), pool.templated_bands()), (vec![10, 6, 5, 0], vec![5]));
    assert_eq!((pool.band(5), pool.band_named("six")), (Ok(five), Ok(six)));
    drop(pool.try_admit(&Request::new(five)).unwrap());
    advance(&clock, 100 * MINUTE);
    other.pools[0].templates.unknown = UnknownPriority::Error;
    engine.reload(&other).unwrap();
    assert_eq!((pool.priorities(), pool.templated_bands()), (vec![10, 6, 0], vec![]));
    assert_eq!(pool.band(5).err(), Some(Reason::UnknownBand));
}

#[test]
fn a_mode_and_a_size_that_the_host_set_outlive_a_change_of_bands() {
    let (_engine, pool, _clock) = host(&making(1, 8));
    pool.set_mode(PoolMode::Observe).unwrap();
    assert!(pool.resize(2));
    assert!(pool.band(5).is_ok());
    let permits = [(); 3].map(|()| pool.try_admit(&request(&pool, 5)).unwrap());
    assert_eq!((pool.view().running, pool.view().slots, pool.view().stats.would_queue), (3, 2, 1));
    drop(permits);
}

#[test]
fn a_made_band_gets_its_weight_beside_the_others() {
    let mut wanted = making(1, 8);
    let BandSelection::Wfq(params) = wfq(CREDITS, Distribution::Linear, 0.0) else { return };
    wanted.pools[0].selection = BandSelection::Wfq(params);
    let (engine, pool, _clock) = host(&wanted);
    let queue = engine.completion_queue(256).unwrap();
    let running = pool.try_admit(&request(&pool, 0)).unwrap();
    for priority in [0, 5, 10] {
        for _ in 0..60 {
            let _ticket =
                queued(pool.submit(&request(&pool, priority), &queue, priority as u64).unwrap());
        }
    }
    drop(running);
    let mut counts = [0; 3];
    for _ in 0..60 {
        let done = queue.poll().unwrap();
        counts[done.tag as usize / 5] += 1;
        drop(done.outcome.unwrap());
    }
    assert_eq!(counts, [10, 20, 30], "weights 1, 2, 3");
}

/// Threads make, use and remove bands at once: no request is lost, no slot either.
#[test]
fn bands_made_and_removed_under_load_lose_nobody() {
    let mut wanted = making(2, 8);
    wanted.driver = DriverKind::Inline;
    let (_engine, pool) = start(&wanted);
    let rounds: u64 = if cfg!(debug_assertions) { 500 } else { 5_000 };
    std::thread::scope(|scope| {
        for n in 0_i32..3 {
            let pool = pool.clone();
            scope.spawn(move || {
                for round in 0..rounds {
                    let priority = n + (round % 2) as i32;
                    let request = Request::new(pool.band(priority).unwrap());
                    match pool.admit_blocking(request, Some(Duration::from_secs(20))) {
                        Ok(permit) => drop(permit),
                        // Removed between the two calls.
                        Err(reason) => assert_eq!(reason, Reason::UnknownBand),
                    }
                }
            });
        }
        for _ in 0..rounds {
            pool.collect_idle_bands(Duration::ZERO);
        }
    });
    let view = pool.view();
    assert_eq!((view.running, view.waiting, view.free), (0, 0, 2));
}
