//! Properties of pools under any script: gates never invert, toggling keeps rounds, observing counts as enforcing decides.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on may panic")]
#![allow(
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    clippy::cast_sign_loss,
    clippy::float_arithmetic,
    reason = "small numbers of a script"
)]
#![cfg(not(loom))]

mod common;

use bandgate_core::types::holdback::{Curve, HoldbackDomain};
use bandgate_core::types::policy::{Holdback, Schedule};
use bandgate_core::types::settings::{DriverKind, PoolMode, Settings, TenantSettings};
use bandgate_core::{Permit, Pool, Reason, Request};
use common::{CREDITS, Rng, explicit, host, queued, settings, tenant, wfq};

const SEEDS: u64 = if cfg!(debug_assertions) { 60 } else { 600 };

/// Ceilings of three bands, falling.
fn ceilings(rng: &mut Rng) -> Holdback {
    let mut all: Vec<f64> = (0..3).map(|_| rng.below(11) as f64 / 10.0).collect();
    all.sort_by(|a, b| b.total_cmp(a));
    match rng.below(3) {
        0 => Holdback::None,
        1 => Holdback::Curve(Curve::linear(HoldbackDomain::Rank, 0.2, 1.0)),
        _ => {
            let ceilings = [20, 10, 0].into_iter().zip(all).collect();
            Holdback::Explicit { ceilings, default: None }
        }
    }
}

/// Whether a request of each band, most urgent first, would run now.
fn would_run(pool: &Pool) -> Vec<bool> {
    let runs = |priority| match pool.try_admit(&Request::new(pool.band(priority).unwrap())) {
        Ok(permit) => {
            drop(permit);
            true
        }
        Err(reason) => {
            assert_eq!(reason, Reason::WouldQueue);
            false
        }
    };
    pool.priorities().into_iter().map(runs).collect()
}

/// Whatever moves the gates: load, gauge, size, ceilings, bands that come and go.
#[test]
fn a_band_that_may_run_is_never_below_one_that_may_not() {
    let mut mixed = 0;
    for seed in 0..SEEDS {
        let mut rng = Rng(seed);
        let mut wanted = settings(DriverKind::Host, 8, &[20, 10]);
        wanted.pools[0].max_bands = 12;
        wanted.pools[0].holdback = ceilings(&mut rng);
        let (engine, pool, _clock) = host(&wanted);
        let mut permits: Vec<Permit<'_>> = Vec::new();
        for step in 0..60 {
            match rng.below(7) {
                0 => permits.clear(),
                1 => _ = pool.set_saturation(Some(rng.below(12) as f64 / 10.0)),
                2 => _ = pool.set_saturation(None),
                3 => _ = pool.resize(1 + rng.below(12) as u32),
                4 => {
                    wanted.pools[0].holdback = ceilings(&mut rng);
                    wanted.pools[0].slots = 1 + rng.below(12) as u32;
                    engine.reload(&wanted).unwrap();
                }
                5 => {
                    let priority = [25, 15, 5, -5][rng.below(4)];
                    let added = pool.add_band(pool.template(priority));
                    if added.is_err() {
                        pool.remove_band(priority).unwrap();
                    }
                }
                _ => permits.extend(pool.try_admit(&Request::new(pool.band(20).unwrap()))),
            }
            let open = would_run(&pool);
            assert!(
                open.is_sorted_by(|above, below| above >= below),
                "seed {seed}, {step}: {open:?}"
            );
            mixed += usize::from(open[0] != open[open.len() - 1]);
        }
    }
    assert!(mixed > 100, "gates that hold back some of the bands were met: {mixed}");
}

/// Bands of the grants that were made while the weights ruled, with the saturation toggled between any two.
fn weighted_grants(schedule: Schedule, toggles: Option<u64>, count: usize) -> Vec<u64> {
    let mut wanted = settings(DriverKind::Host, 1, &[20, 10]);
    wanted.pools[0].selection =
        wfq(schedule, explicit(&[(20, 5_000), (10, 3_000), (0, 2_000)]), 0.5);
    let (engine, pool, clock) = host(&wanted);
    let queue = engine.completion_queue(4_096).unwrap();
    let mut running = Some(pool.try_admit(&Request::new(pool.band(0).unwrap())).unwrap());
    let mut submit = |priority: i32| {
        let request = Request::new(pool.band(priority).unwrap()).no_timeout();
        let _ticket = queued(pool.submit(&request, &queue, priority as u64).unwrap());
    };
    (0..3).for_each(|_| [20, 10, 0].into_iter().for_each(&mut submit));
    let (mut rng, mut grants) = (Rng(toggles.unwrap_or(0)), Vec::new());
    while grants.len() < count {
        let is_on = toggles.is_none() || rng.below(3) > 0;
        pool.set_saturation(Some(if is_on { 0.9 } else { 0.1 }));
        clock.set(clock.now_ns() + 1_000_000);
        drop(running.take());
        let done = queue.poll().unwrap();
        running = Some(done.outcome.unwrap());
        submit(done.tag as i32);
        if is_on {
            grants.push(done.tag);
        }
    }
    grants
}

#[test]
fn toggling_keeps_rounds_and_virtual_times() {
    for schedule in [CREDITS, Schedule::Interleaved] {
        let straight = weighted_grants(schedule, None, 60);
        let tops = straight.iter().filter(|band| **band == 20).count();
        assert_eq!(tops, 30, "half of six rounds of ten");
        for seed in 1..=20 {
            assert_eq!(weighted_grants(schedule, Some(seed), 60), straight, "{schedule:?}, {seed}");
        }
    }
}

fn twin(mode: PoolMode, holdback: &Holdback) -> Settings {
    let mut wanted = settings(DriverKind::Host, 6, &[20, 10]);
    wanted.pools[0].holdback = holdback.clone();
    wanted.pools[0].mode = mode;
    wanted.tenants = vec![
        tenant("none", 0),
        tenant("two", 2),
        TenantSettings { max_in_flight: None, ..tenant("free", 0) },
        TenantSettings { exempt: true, ..tenant("probe", 0) },
    ];
    wanted
}

fn request(pool: &Pool, band: i32, tenant: &str) -> Request {
    Request::new(pool.band(band).unwrap()).flow(pool.flow("", tenant, "").unwrap())
}

/// The same script on both: what the enforcing twin admits runs on in both, what it does not ends at once in the
/// observing one, so that both stay in the same state.
#[test]
fn an_observing_pool_admits_everything_and_counts_what_its_enforcing_twin_answers() {
    let (mut all_queued, mut all_rejected) = (0, 0);
    for seed in 0..SEEDS {
        let mut rng = Rng(seed);
        let holdback = ceilings(&mut rng);
        let (_enforcing, enforcing, _clock) = host(&twin(PoolMode::Enforce, &holdback));
        let (_observing, observing, _clock) = host(&twin(PoolMode::Observe, &holdback));
        let mut pairs = Vec::new();
        let (mut would_queue, mut would_reject, mut exempt) = (0, 0, 0);
        for _ in 0..120 {
            if rng.below(3) == 0 && !pairs.is_empty() {
                drop(pairs.swap_remove(rng.below(pairs.len())));
                continue;
            }
            if rng.below(12) == 0 {
                let gauge = (rng.below(2) == 0).then(|| rng.below(12) as f64 / 10.0);
                assert!(enforcing.set_saturation(gauge) && observing.set_saturation(gauge));
            }
            let band = [20, 10, 0][rng.below(3)];
            let tenant = ["none", "two", "free", "probe"][rng.below(4)];
            let observed = observing.try_admit(&request(&observing, band, tenant)).unwrap();
            match enforcing.try_admit(&request(&enforcing, band, tenant)) {
                Ok(permit) => {
                    exempt += u64::from(tenant == "probe");
                    pairs.push((permit, observed));
                }
                Err(Reason::WouldQueue) => would_queue += 1,
                Err(_) => would_reject += 1,
            }
        }
        let stats = observing.view().stats;
        assert_eq!(
            (stats.would_queue, stats.would_reject),
            (would_queue, would_reject),
            "seed {seed}"
        );
        assert_eq!((stats.exempt, enforcing.view().stats.exempt), (exempt, exempt));
        let reasons = |pool: &Pool| pool.refusals().iter().map(|it| it.reason).collect::<Vec<_>>();
        assert_eq!(reasons(&observing), reasons(&enforcing), "seed {seed}");
        assert!(observing.refusals().iter().all(|it| it.observed));
        drop(pairs);
        assert_eq!((enforcing.view().free, observing.view().free), (6, 6));
        (all_queued, all_rejected) = (all_queued + would_queue, all_rejected + would_reject);
    }
    assert!(all_queued > 100 && all_rejected > 100, "{all_queued}, {all_rejected}");
}
