//! The detectors against the rules of their own pages, and the bound on a burst.
#![allow(
    clippy::float_cmp,
    reason = "ratios of these numbers are exact, or compared with what made them"
)]

use core::time::Duration;

use alloc::boxed::Box;
use alloc::vec;
use proptest::prelude::*;

use super::{Concurrency, Detector, SinceSample, Stages, Utilization, checked, faults, role_of};
use crate::admit::ceiling::gated;
use crate::types::extend::{BackendSample, Role, Sampled, SaturationDetector};
use crate::types::saturation::{
    Aggregate, ConcurrencyMode, ConcurrencyParams, SaturationSource, StalenessPolicy,
    UtilizationParams,
};

const MS: u64 = 1_000_000;

fn queue(waiting: u32, age_ms: u64) -> BackendSample {
    BackendSample { waiting, age_ns: Some(age_ms * MS), ..BackendSample::default() }
}

fn utilization(staleness: StalenessPolicy, aggregate: Aggregate) -> Utilization {
    Utilization::new(UtilizationParams { staleness, aggregate, ..UtilizationParams::default() })
}

fn concurrency(mode: ConcurrencyMode, aggregate: Aggregate) -> Concurrency {
    Concurrency::new(ConcurrencyParams { mode, aggregate, ..ConcurrencyParams::default() })
}

#[test]
fn one_full_backend_of_four_is_a_quarter_or_all_of_it() {
    let full = BackendSample { requests: 100, ..BackendSample::default() };
    let backends =
        [full, BackendSample::default(), BackendSample::default(), BackendSample::default()];
    let read = |aggregate| concurrency(ConcurrencyMode::Requests, aggregate).read(&backends);
    assert_eq!(read(Aggregate::Mean).saturation, 0.25);
    assert_eq!(read(Aggregate::Max).saturation, 1.0);
    assert_eq!(
        (read(Aggregate::Mean).per_dispatch, read(Aggregate::Max).per_dispatch),
        (0.0025, 0.01)
    );
    let backends = [queue(5, 0), queue(0, 0), queue(0, 0), queue(0, 0)];
    let read = |aggregate| utilization(StalenessPolicy::Saturated, aggregate).read(&backends);
    assert_eq!(read(Aggregate::Mean).saturation, 0.25);
    assert_eq!(read(Aggregate::Max).saturation, 1.0);
    assert_eq!(
        (read(Aggregate::Mean).per_dispatch, read(Aggregate::Max).per_dispatch),
        (0.05, 0.2)
    );
}

#[test]
fn stale_backends_are_full_left_out_or_probed() {
    let (old, none) = (queue(0, 201), BackendSample::default());
    let unreadable = BackendSample { kv: f64::NAN, ..queue(0, 0) };
    for aggregate in [Aggregate::Mean, Aggregate::Max] {
        let read = |policy, samples: &[BackendSample]| utilization(policy, aggregate).read(samples);
        for policy in [StalenessPolicy::Saturated, StalenessPolicy::Ignore, StalenessPolicy::Probe]
        {
            let empty = read(policy, &[]);
            assert_eq!((empty.saturation, empty.stale, empty.probe), (1.0, 0, false));
            let exact = read(policy, &[queue(2, 200)]);
            assert_eq!((exact.saturation, exact.stale), (0.4, 0), "the bound itself is fresh");
            assert_eq!(read(policy, &[old, none, unreadable]).stale, 3);
        }
        let all = [old, none];
        let some = [queue(1, 10), old];
        let saturated = read(StalenessPolicy::Saturated, &all);
        assert_eq!((saturated.saturation, saturated.probe), (1.0, false));
        let half = read(StalenessPolicy::Saturated, &some).saturation;
        assert_eq!(half, if aggregate == Aggregate::Mean { 0.6 } else { 1.0 });
        let ignore = read(StalenessPolicy::Ignore, &all);
        assert_eq!((ignore.saturation, ignore.probe), (0.0, false));
        assert!(ignore.per_dispatch > 0.0, "what nobody knows of must not let a burst through");
        assert_eq!(read(StalenessPolicy::Ignore, &some).saturation, 0.2);
        let probe = read(StalenessPolicy::Probe, &all);
        assert_eq!((probe.saturation, probe.probe, probe.stale), (1.0, true, 2));
        let known = read(StalenessPolicy::Probe, &some);
        assert_eq!((known.saturation, known.probe, known.stale), (0.2, false, 1));
    }
}

#[test]
fn a_backend_may_be_chosen_up_to_its_headroom() {
    let params = UtilizationParams { headroom: 0.2, ..UtilizationParams::default() };
    let detector = Detector::Utilization(Utilization::new(params));
    let at = |waiting, kv, age| BackendSample { kv, ..queue(waiting, age) };
    assert!(detector.has_room(&at(5, 0.95, 200)));
    assert!(!detector.has_room(&at(6, 0.0, 0)) && !detector.has_room(&at(0, 0.97, 0)));
    assert!(!detector.has_room(&at(0, 0.0, 201)) && !detector.has_room(&BackendSample::default()));
    let params = ConcurrencyParams { headroom: 0.005, ..ConcurrencyParams::default() };
    let detector = Detector::Concurrency(Concurrency::new(params));
    let with = |requests| BackendSample { requests, ..BackendSample::default() };
    assert!(detector.has_room(&with(99)), "100.5 is cut to 100");
    assert!(!detector.has_room(&with(100)));
}

#[test]
fn roles_are_read_from_labels() {
    for (label, role) in [
        (None, Role::Decode),
        (Some(""), Role::Decode),
        (Some("decode"), Role::Decode),
        (Some("prefill"), Role::Prefill),
        (Some("encode-prefill"), Role::Prefill),
        (Some("prefill-decode"), Role::Both),
        (Some("both"), Role::Both),
        (Some("encode-prefill-decode"), Role::Both),
        (Some("encode"), Role::Other),
        (Some("Prefill"), Role::Other),
    ] {
        assert_eq!(role_of(label), role, "{label:?}");
    }
}

#[test]
fn the_higher_stage_counts_and_without_a_stage_the_whole_list() {
    let of = |role, requests| BackendSample { role, requests, ..BackendSample::default() };
    let detector = concurrency(ConcurrencyMode::Requests, Aggregate::Mean);
    let read = |samples: &[BackendSample]| Stages::read(&detector, samples);
    let both = read(&[of(Role::Prefill, 90), of(Role::Both, 10), of(Role::Decode, 20)]);
    let stage = |stage: Option<Sampled>| stage.map(|s| s.saturation);
    assert_eq!((stage(both.prefill), stage(both.decode)), (Some(0.5), Some(0.15)));
    assert_eq!(both.effective.saturation, 0.5);
    let lone = read(&[of(Role::Prefill, 40), of(Role::Other, 100)]);
    assert_eq!((stage(lone.prefill), stage(lone.decode)), (Some(0.4), None));
    assert_eq!(lone.effective.saturation, 0.4, "a backend of no stage does not count beside one");
    let none = read(&[of(Role::Other, 70)]);
    assert_eq!((none.prefill, none.decode, none.effective.saturation), (None, None, 0.7));
    assert_eq!(read(&[]).effective.saturation, 1.0);
}

#[test]
fn an_unknown_stage_is_probed_only_while_the_known_one_has_room() {
    let detector = utilization(StalenessPolicy::Probe, Aggregate::Mean);
    let prefill = BackendSample { role: Role::Prefill, ..queue(0, 500) };
    let read = |decode| Stages::read(&detector, &[prefill, decode]).effective;
    let open = read(queue(4, 0));
    assert_eq!((open.saturation, open.probe), (1.0, true));
    assert!(!read(queue(5, 0)).probe, "decode is full");
    assert!(read(queue(0, 500)).probe, "both are unknown");
}

#[test]
fn while_it_probes_one_request_runs_at_a_time_and_a_ceiling_of_0_stays_shut() {
    let mut since = SinceSample::default();
    since.sample(Sampled { saturation: 1.0, probe: true, ..Sampled::default() }, None);
    let is_gated = |since: &SinceSample, level, running| since.added(running) >= since.room(level);
    for level in [1.0, 0.3, f64::MIN_POSITIVE] {
        assert!(!is_gated(&since, level, 0) && is_gated(&since, level, 1), "{level}");
    }
    assert!(is_gated(&since, 0.0, 0));
    since.dispatched(7);
    assert!(!is_gated(&since, 1.0, 0), "it came back: the next one");
    since.sample(Sampled { saturation: 0.2, per_dispatch: 0.1, ..Sampled::default() }, None);
    assert!(!is_gated(&since, 1.0, 1), "known again");
}

#[derive(Debug)]
struct Broken;

impl SaturationDetector for Broken {
    fn read(&self, _: &[BackendSample]) -> Sampled {
        Sampled { saturation: f64::NAN, per_dispatch: -1.0, ..Sampled::default() }
    }
}

#[test]
fn what_is_no_saturation_closes_the_pool_and_is_told() {
    let detector = Detector::Custom(Box::new(Broken));
    let read = Stages::read(&detector, &[BackendSample::default()]);
    assert!(read.faulty);
    assert_eq!((read.effective.saturation, read.effective.per_dispatch), (1.0, 1.0));
    assert!(!Stages::read(&concurrency(ConcurrencyMode::Hybrid, Aggregate::Max), &[]).faulty);
    assert!(!checked(Sampled { saturation: f64::INFINITY, ..Sampled::default() }).1);
    assert!(Detector::new(&SaturationSource::Slots).is_none());
    assert!(Detector::new(&SaturationSource::Gauge).is_none());
}

#[test]
fn with_nothing_dispatched_the_gate_is_the_comparison_itself() {
    let mut since = SinceSample::default();
    for step in 0..=1000_u32 {
        let saturation = f64::from(step) / 1000.0;
        since.sample(Sampled { saturation, per_dispatch: 0.01, ..Sampled::default() }, None);
        for level in [0.0, 0.07, 0.3, 0.55, 0.7, saturation, saturation.next_up(), 1.0] {
            let is_gated = since.added(9) >= since.room(level);
            assert_eq!(is_gated, gated(saturation, level), "{saturation} {level}");
        }
    }
}

#[test]
fn a_burst_between_two_samples_is_stopped_by_its_own_count() {
    let detector = utilization(StalenessPolicy::Saturated, Aggregate::Mean);
    let mut since = SinceSample::default();
    since.sample(detector.read(&[queue(0, 50); 4]), None);
    let mut sent = 0;
    while sent < 1_000 && since.added(sent) < since.room(1.0) {
        since.dispatched(1);
        sent += 1;
    }
    assert_eq!(sent, 20, "4 backends of 5: full, and no more");
    assert_eq!(since.added(19), 19 * since.added(1), "who has ended adds nothing");
    assert!(since.added(19) < since.room(1.0));
}

#[test]
fn what_was_dispatched_while_a_sample_was_taken_is_counted_on() {
    let detector = concurrency(ConcurrencyMode::Requests, Aggregate::Mean);
    let mut since = SinceSample::default();
    let backends = [BackendSample { requests: 90, ..BackendSample::default() }];
    since.sample(detector.read(&backends), None);
    let begun = since.mark();
    (0..4).for_each(|_| since.dispatched(1));
    since.sample(detector.read(&backends), Some(begun));
    assert!((since.saturation(99) - 0.94).abs() < 1e-9);
    since.sample(detector.read(&backends), None);
    assert_eq!(since.saturation(99), 0.9);
}

#[test]
fn a_start_refuses_what_no_detector_can_compute_with() {
    let params =
        ConcurrencyParams { max_requests: 0, max_tokens: 0, headroom: -1.0, ..Default::default() };
    let found = faults(&SaturationSource::Concurrency(params));
    let fields: Vec<&str> = found.iter().map(|(field, _)| *field).collect();
    assert_eq!(fields, ["maxConcurrency", "maxTokenConcurrency", "headroom"]);
    let params = UtilizationParams {
        queue_depth: 0,
        kv: f64::NAN,
        stale_after: Duration::ZERO,
        headroom: f64::NAN,
        ..Default::default()
    };
    let found = faults(&SaturationSource::Utilization(params));
    let wrong = [
        ("queueDepthThreshold", "0: must be 1 to 1000000"),
        ("kvCacheUtilThreshold", "NaN: must be above 0 and at most 1"),
        ("metricsStalenessThreshold", "0ns: must be above 0s"),
        ("headroom", "NaN: must be 0 to 100"),
    ];
    assert_eq!(found, wrong.map(|(field, fault)| (field, fault.into())));
    assert!(faults(&SaturationSource::Utilization(UtilizationParams::default())).is_empty());
    assert!(faults(&SaturationSource::Concurrency(ConcurrencyParams::default())).is_empty());
}

fn a_backend() -> impl Strategy<Value = BackendSample> {
    let role = prop_oneof![
        4 => Just(Role::Decode),
        1 => Just(Role::Prefill),
        1 => Just(Role::Both),
        1 => Just(Role::Other)
    ];
    let age = prop_oneof![3 => (0..400 * MS).prop_map(Some), 1 => Just(None)];
    (role, 0..12_u32, 0.0..1.2_f64, 0..130_u32, 0..2_000_000_u64, age).prop_map(
        |(role, waiting, kv, requests, tokens, age_ns)| BackendSample {
            role,
            waiting,
            kv,
            requests,
            tokens,
            age_ns,
        },
    )
}

fn a_detector() -> impl Strategy<Value = Detector> {
    let aggregate = prop_oneof![Just(Aggregate::Mean), Just(Aggregate::Max)];
    let mode = prop_oneof![
        Just(ConcurrencyMode::Requests),
        Just(ConcurrencyMode::Tokens),
        Just(ConcurrencyMode::Hybrid)
    ];
    let policy = prop_oneof![
        Just(StalenessPolicy::Saturated),
        Just(StalenessPolicy::Ignore),
        Just(StalenessPolicy::Probe)
    ];
    (any::<bool>(), aggregate, mode, policy, 1..200_u32, 1_000..3_000_000_u64, 0.05..1.0_f64)
        .prop_map(|(is_concurrency, aggregate, mode, staleness, limit, max_tokens, kv)| {
            if is_concurrency {
                let max_requests = limit;
                Detector::Concurrency(Concurrency::new(ConcurrencyParams {
                    mode,
                    max_requests,
                    max_tokens,
                    aggregate,
                    headroom: 0.0,
                }))
            } else {
                Detector::Utilization(Utilization::new(UtilizationParams {
                    queue_depth: limit,
                    kv,
                    stale_after: Duration::from_millis(200),
                    staleness,
                    aggregate,
                    headroom: 0.0,
                }))
            }
        })
}

/// Puts a request where `place` says: wholly on one backend, or on a prefill one and a decode one.
fn put(backends: &mut [BackendSample], place: usize, cost: u32) {
    let Some(count) = core::num::NonZeroUsize::new(backends.len()) else { return };
    let first = place % count;
    let mut at = vec![first];
    if backends[first].role == Role::Prefill {
        let is_decode = |i: &usize| backends[*i].role == Role::Decode;
        at.extend((0..backends.len()).filter(is_decode).nth(place / count % count));
    }
    for i in at {
        backends[i].waiting += 1;
        backends[i].requests += 1;
        backends[i].tokens += u64::from(cost);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    /// Whatever is dispatched and wherever it is put: the saturation read again is at most the one sampled and
    /// what the bound adds, as doubles and as the gates count it.
    #[test]
    fn no_placement_of_a_burst_exceeds_what_was_counted_for_it(
        detector in a_detector(),
        mut backends in prop::collection::vec(a_backend(), 0..8),
        burst in prop::collection::vec((any::<usize>(), 1..5_000_u32), 0..60),
    ) {
        let sampled = Stages::read(&detector, &backends).effective;
        let mut since = SinceSample::default();
        since.sample(sampled, None);
        let mut bound = sampled.saturation;
        for &(place, cost) in &burst {
            put(&mut backends, place, cost);
            since.dispatched(cost);
            bound += sampled.per_dispatch.max(f64::from(cost) * sampled.per_token);
        }
        let again = Stages::read(&detector, &backends).effective.saturation;
        prop_assert!(again <= bound + 1e-9, "{again} {bound}");
        let running = u32::try_from(burst.len()).unwrap_or(u32::MAX);
        prop_assert!(again <= since.saturation(running) + 1e-9, "{again} {}", since.saturation(running));
        for level in [0.3, 0.55, 0.7, 0.9, 1.0] {
            // One part in 10^12 for the rounding of the sums that are compared.
            if !sampled.probe && again >= level + 1e-12 {
                prop_assert!(since.added(running) >= since.room(level), "{again} is past {level}");
            }
        }
    }

    /// The same when some of them have ended meanwhile: only who runs is counted.
    #[test]
    fn who_has_ended_since_the_sample_need_not_be_counted(
        detector in a_detector(),
        mut backends in prop::collection::vec(a_backend(), 0..8),
        burst in prop::collection::vec((any::<usize>(), 1..5_000_u32), 1..60),
        ended in any::<usize>(),
    ) {
        let mut since = SinceSample::default();
        since.sample(Stages::read(&detector, &backends).effective, None);
        for &(_, cost) in &burst {
            since.dispatched(cost);
        }
        let running = &burst[ended % (burst.len() + 1)..];
        for &(place, cost) in running {
            put(&mut backends, place, cost);
        }
        let again = Stages::read(&detector, &backends).effective.saturation;
        let now = since.saturation(u32::try_from(running.len()).unwrap_or(u32::MAX));
        prop_assert!(again <= now + 1e-9, "{again} {now}");
    }

    /// A gate that closes stays closed under more of the same.
    #[test]
    fn more_dispatched_never_opens_a_gate(
        detector in a_detector(),
        backends in prop::collection::vec(a_backend(), 0..8),
        costs in prop::collection::vec(1..5_000_u32, 1..60),
    ) {
        let mut since = SinceSample::default();
        since.sample(Stages::read(&detector, &backends).effective, None);
        let mut last = 0;
        for (running, &cost) in (1_u32..).zip(&costs) {
            since.dispatched(cost);
            prop_assert!(since.added(running) >= last);
            last = since.added(running);
        }
        prop_assert!(since.room(0.3) <= since.room(0.7) && since.room(0.7) <= since.room(1.0));
    }
}
