//! Detectors through the loader, `report_backends` and `submit`: what the host reports decides which request is
//! granted, what is dispatched since is counted, and what grows old is stale without another report.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on may panic")]
#![allow(clippy::float_arithmetic, reason = "saturations are compared with what they should be")]
#![cfg(all(not(loom), feature = "config"))]

#[path = "reports/bed.rs"]
mod bed;
#[path = "reports/over_time.rs"]
mod over_time;

use bandgate_core::clock::Clock;
use bandgate_core::config::Config;
use bandgate_core::types::extend::{BackendSample, Role, Sampled};
use bandgate_core::{Engine, Permit, Pool, Reason, Request, Submitted};
use proptest::prelude::*;

use bed::*;

#[test]
fn until_the_first_report_the_pool_counts_its_slots() {
    let bed = Bed::new("saturation: utilization-detector, bands: [{priority: 20, ceiling: 0.03}]");
    assert_eq!(bed.burst(1).len(), 3, "3 of 100 slots");
    assert!(close(bed.saturation(), 0.0), "given back");
    bed.pool.report_backends(&[waiting(0, 0)]).unwrap();
    assert_eq!(bed.burst(1).len(), 1, "one of a queue of 5 is past 0.03");
}

#[test]
fn u066_a_burst_between_two_samples_is_stopped_at_capacity() {
    let bed = Bed::new("saturation: utilization-detector");
    let four = [waiting(0, 0); 4];
    bed.pool.report_backends(&four).unwrap();
    let sent = bed.burst(1);
    assert_eq!(sent.len(), 20, "four queues of five, and not one more");
    assert!(close(bed.saturation(), 1.0));
    // Who waits is granted by the next sample, up to what that one has room for.
    (0..10).for_each(|tag| bed.submit(20, tag));
    bed.pool
        .report_backends(&[waiting(5, 0), waiting(5, 0), waiting(5, 0), waiting(2, 0)])
        .unwrap();
    let mut held = Vec::new();
    assert_eq!(bed.granted(&mut held), [0, 1, 2]);
    drop((sent, held));
}

#[test]
fn u066_one_full_backend_of_four_is_not_averaged_away_under_max() {
    let samples = [waiting(5, 0), waiting(0, 0), waiting(0, 0), waiting(0, 0)];
    for (aggregate, sent) in [("mean", 15), ("max", 0)] {
        let bed = Bed::new(&detector(UTILIZATION, &format!("aggregate: {aggregate}")));
        bed.pool.report_backends(&samples).unwrap();
        assert_eq!(bed.burst(1).len(), sent, "{aggregate}");
    }
}

#[test]
fn what_is_dispatched_while_the_backends_answer_counts_on_top() {
    let bed = Bed::new(&detector(CONCURRENCY, "maxConcurrency: 10"));
    bed.pool.report_backends(&[in_flight(0, 0)]).unwrap();
    let begun = bed.pool.begin_report().unwrap();
    let held: Vec<_> = (0..4).map(|_| bed.admit(20).unwrap()).collect();
    bed.pool.report_backends_since(begun, &[in_flight(3, 0)]).unwrap();
    assert!(close(bed.saturation(), 0.7));
    assert_eq!(bed.burst(1).len(), 3);
    bed.pool.report_backends(&[in_flight(4, 0)]).unwrap();
    assert!(close(bed.saturation(), 0.4), "they are in it");
    drop(held);
}

#[test]
fn tokens_and_hybrid_count_what_each_request_costs_and_give_it_back_with_its_end() {
    for (mode, costs) in [("tokens", [10, 30, 55]), ("hybrid", [1, 30, 60])] {
        let parameters = format!("concurrencyMode: {mode}, maxTokenConcurrency: 100");
        let requests = if mode == "hybrid" { ", maxConcurrency: 20" } else { "" };
        let source = detector(CONCURRENCY, &format!("{parameters}{requests}"));
        let bed = Bed::new(&source);
        bed.pool.report_backends(&[in_flight(0, 0)]).unwrap();
        // Hybrid: a request of one token fills a twentieth of the requests.
        let mut held: Vec<_> = costs.map(|cost| bed.admit_cost(20, cost).unwrap()).into();
        assert!(close(bed.saturation(), 0.95), "{mode}: {}", bed.saturation());
        bed.reload(&source);
        assert!(
            close(bed.saturation(), 0.95),
            "{mode}: a reload of something else forgets nothing"
        );
        held.push(bed.admit_cost(20, 50).unwrap());
        assert_eq!(bed.admit(20).err(), Some(Reason::WouldQueue), "{mode}: full");
        bed.submit(20, 7);
        // Settled or not: what ended is not there any more, with all it was taken for.
        let mut last = held.pop().unwrap();
        last.settle(3);
        drop(last);
        // Of hybrid requests the larger of two terms is bounded by both: it takes one end more.
        drop(held.remove(1));
        assert_eq!(bed.granted(&mut held), [7], "{mode}");
        held.clear();
        assert!(close(bed.saturation(), 0.0), "{mode}: nothing runs of what was sent since");
    }
}

#[test]
fn prefill_and_decode_are_read_apart_and_the_fuller_one_gates() {
    let bed = Bed::new(&detector(CONCURRENCY, "maxConcurrency: 10"));
    let of = |role, requests| BackendSample { role, ..in_flight(requests, 0) };
    let read = bed.pool.report_backends(&[of(Role::Prefill, 9), of(Role::Decode, 1)]).unwrap();
    let stage = |sampled: Option<Sampled>| sampled.unwrap().saturation;
    assert!(close(stage(read.prefill), 0.9) && close(stage(read.decode), 0.1));
    assert_eq!(bed.burst(1).len(), 1, "the mean over all would have let ten through");
}

#[test]
fn u068_the_last_of_two_reports_stands_whole_and_a_gauge_stands_before_it() {
    let bed = Bed::new(&detector(CONCURRENCY, "maxConcurrency: 10, aggregate: max"));
    let (full, idle) = (in_flight(10, 0), in_flight(0, 0));
    for both in [[full, idle], [idle, full]] {
        bed.pool.report_backends(&both).unwrap();
        assert!(close(bed.saturation(), 1.0), "in any order of its backends");
    }
    bed.pool.report_backends(&[idle]).unwrap();
    assert!(close(bed.saturation(), 0.0), "nothing of the report before is left");
    assert!(bed.pool.set_saturation(Some(0.8)));
    bed.pool.report_backends(&[full]).unwrap();
    assert!(close(bed.saturation(), 0.8));
    assert_eq!(bed.burst(1).len(), 100, "a gauge counts no dispatches: the slots end it");
    assert!(bed.pool.set_saturation(None));
    assert!(close(bed.saturation(), 1.0));
}

#[test]
fn u071_no_statistics_are_no_value_and_never_open_the_pool() {
    let bed = Bed::new("saturation: utilization-detector");
    let none = BackendSample::default();
    let nan = BackendSample { kv: f64::NAN, age_ns: Some(0), ..none };
    for samples in [&[][..], &[none], &[nan], &[nan, none]] {
        bed.pool.report_backends(samples).unwrap();
        assert!(close(bed.saturation(), 1.0), "{samples:?}");
        assert!(bed.admit(20).is_err());
    }
    let most = BackendSample { waiting: u32::MAX, kv: 9.0, age_ns: Some(0), ..none };
    bed.pool.report_backends(&[most]).unwrap();
    assert!(bed.saturation().is_finite() && bed.admit(20).is_err());
}

#[test]
fn the_document_decides_by_which_detector_a_request_is_granted() {
    // One backend: few requests, many tokens, half a queue.
    let sample = BackendSample { waiting: 3, age_ns: Some(0), ..in_flight(2, 900) };
    let granted = |saturation: &str| {
        let bands = "bands: [{priority: 20, ceiling: 1.0}, {priority: 10, ceiling: 0.7}, {priority: 0, ceiling: 0.4}]";
        let bed = Bed::new(&format!("{saturation}, {bands}"));
        bed.pool.report_backends(&[sample]).ok();
        [20, 10, 0].map(|priority| bed.admit(priority).is_ok())
    };
    assert_eq!(granted("saturation: slots"), [true, true, true]);
    assert_eq!(granted("saturation: utilization-detector"), [true, true, false]);
    assert_eq!(granted(&detector(CONCURRENCY, "maxConcurrency: 10")), [true, true, true]);
    let tokens = "concurrencyMode: tokens, maxTokenConcurrency: 1000";
    assert_eq!(granted(&detector(CONCURRENCY, tokens)), [true, false, false]);
    let hybrid = "concurrencyMode: hybrid, maxTokenConcurrency: 1000, maxConcurrency: 2";
    assert_eq!(granted(&detector(CONCURRENCY, hybrid)), [false, false, false]);
}

#[test]
fn weights_rule_from_the_saturation_that_was_reported() {
    let order = |requests: u32| {
        let wfq = "bandSelection: {type: cross-band-fairness-policy, parameters: {activationThreshold: 0.5, schedule: priority-first, distribution: explicit, ratios: {20: 0.5, 10: 0.5}}}";
        let bed = Bed::new(&format!("{}, {wfq}", detector(CONCURRENCY, "maxConcurrency: 100")));
        // Full first, so that all of them wait.
        bed.pool.report_backends(&[in_flight(100, 0)]).unwrap();
        (0..4).for_each(|i| {
            bed.submit(10, 10 + i);
            bed.submit(20, 20 + i);
        });
        bed.pool.report_backends(&[in_flight(requests, 0)]).unwrap();
        let mut held = Vec::new();
        bed.granted(&mut held).into_iter().map(|tag| tag / 10 * 10).collect::<Vec<_>>()
    };
    assert_eq!(order(10), [20, 20, 20, 20, 10, 10, 10, 10], "strict below it");
    let weighted = order(60);
    assert_eq!(weighted.len(), 8);
    assert_eq!(weighted[..4], [20, 10, 20, 10], "weighted from it on");
}

#[test]
fn an_observing_pool_counts_what_its_report_would_have_gated() {
    let bed = Bed::new("saturation: concurrency-detector, mode: observe");
    bed.pool.report_backends(&[in_flight(98, 0)]).unwrap();
    let held: Vec<_> = (0..5).map(|_| bed.admit(20).unwrap()).collect();
    let stats = bed.pool.view().stats;
    assert_eq!((held.len(), stats.would_queue), (5, 3), "two would have run");
}

#[test]
fn submit_keeps_the_tokens_of_what_it_grants_at_once() {
    let bed = Bed::new(&detector(CONCURRENCY, "concurrencyMode: tokens, maxTokenConcurrency: 100"));
    bed.pool.report_backends(&[in_flight(0, 0)]).unwrap();
    let request = Request::new(bed.pool.band(20).unwrap()).cost(60);
    for round in 0..5 {
        let granted = bed.pool.submit(&request, &bed.queue, round).unwrap();
        assert!(close(bed.saturation(), 0.6), "round {round}: {}", bed.saturation());
        drop(granted);
    }
    assert!(close(bed.saturation(), 0.0));
}

#[test]
fn a_pool_under_the_engines_ceiling_draws_no_unit_for_who_is_gated_by_a_report() {
    let text = "engine: {driver: host, ceiling: 2}\nbands: [{priority: 20}]\npools: {p: {slots: 2, saturation: concurrency-detector}, q: {slots: 2}}";
    let config = Config::load(text, [], "t.yaml").unwrap();
    let engine = Engine::start_with_clock(&config.settings, Clock::manual()).unwrap();
    let (p, q) = (engine.pool("p").unwrap(), engine.pool("q").unwrap());
    let admit =
        |pool: &Pool| pool.try_admit(&Request::new(pool.band(20).unwrap())).map(Permit::into_owned);
    p.report_backends(&[in_flight(99, 0)]).unwrap();
    let one = admit(&p).unwrap();
    assert!(admit(&p).is_err(), "the backend has room for one");
    let two = admit(&q).unwrap();
    drop(one);
    let three = admit(&p).unwrap();
    drop((two, three));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// Whatever is submitted between two reports, with whatever ends meanwhile: what was sent to the backends and is
    /// still there never exceeds what the report left, whoever places it.
    #[test]
    fn u066_no_burst_overshoots_what_the_report_left(
        requests in prop::collection::vec(0..30_u32, 1..5),
        steps in prop::collection::vec((any::<bool>(), any::<u16>()), 1..120),
    ) {
        let bed = Bed::new(&detector(CONCURRENCY, "maxConcurrency: 20"));
        let samples: Vec<_> = requests.iter().map(|n| in_flight(*n, 0)).collect();
        bed.pool.report_backends(&samples).unwrap();
        let capacity = 20 * u32::try_from(requests.len()).unwrap();
        let reported: u32 = requests.iter().sum();
        let (mut held, mut tag) = (Vec::new(), 0);
        for (ends, which) in steps {
            if ends && !held.is_empty() {
                drop(held.swap_remove(usize::from(which) % held.len()));
            } else {
                let request = Request::new(bed.pool.band(20).unwrap());
                tag += 1;
                if let Submitted::Granted(permit) =
                    bed.pool.submit(&request, &bed.queue, tag).unwrap()
                {
                    held.push(permit);
                }
            }
            bed.granted(&mut held);
            let running = u32::try_from(held.len()).unwrap();
            prop_assert!(reported + running <= capacity.max(reported), "{reported} + {running} of {capacity}");
        }
    }
}
