//! Reports as time goes by, beside reloads, and beside admits of other threads.

use core::sync::atomic::{AtomicBool, Ordering};
use core::time::Duration;

use bandgate_core::clock::Clock;
use bandgate_core::config::Config;
use bandgate_core::types::extend::BackendSample;
use bandgate_core::types::saturation::SaturationSource;
use bandgate_core::{Engine, Reason, ReportError, Request};

use super::bed::*;

#[test]
fn without_another_report_every_sample_becomes_stale_at_its_own_time() {
    let read = |policy: &str, at_ms: &[u64]| {
        let bed = Bed::new(&detector(UTILIZATION, &format!("stalenessPolicy: {policy}")));
        bed.pool.report_backends(&[waiting(1, 0), waiting(3, 100)]).unwrap();
        let mut seen = Vec::new();
        let mut now = 0;
        for at in at_ms {
            bed.after_ms(at - now);
            now = *at;
            seen.push((bed.saturation() * 10.0).round());
        }
        // Strictly older than 200 ms: one nanosecond.
        bed.clock.set(bed.clock.now_ns() + 1);
        seen.push((bed.saturation() * 10.0).round());
        (seen, bed.burst(1).len())
    };
    let times = [0, 100, 101, 200];
    assert_eq!(read("saturated", &times), (vec![4.0, 4.0, 6.0, 6.0, 10.0], 0));
    assert_eq!(read("ignore", &times), (vec![4.0, 4.0, 2.0, 2.0, 0.0], 10));
    assert_eq!(read("probe", &times), (vec![4.0, 4.0, 2.0, 2.0, 10.0], 1));
}

#[test]
fn u067_a_reporter_that_froze_at_full_is_probed_after_its_time_and_recovers() {
    let bed = Bed::new(&detector(UTILIZATION, "stalenessPolicy: probe"));
    let frozen = BackendSample { kv: 0.99, age_ns: Some(0), ..BackendSample::default() };
    bed.pool.report_backends(&[frozen]).unwrap();
    (1..=3).for_each(|tag| bed.submit(20, tag));
    let mut held = Vec::new();
    bed.after_ms(200);
    bed.engine.poll();
    assert!(bed.granted(&mut held).is_empty(), "full, and known to be");
    // Nobody calls but the timer.
    assert_eq!(bed.engine.poll().next_deadline_ns, Some(200 * MS + 1));
    bed.clock.set(200 * MS + 1);
    bed.engine.poll();
    assert_eq!(bed.granted(&mut held), [1], "one request asks");
    held.clear();
    assert_eq!(bed.granted(&mut held), [2], "and after it the next one");
    bed.pool.report_backends(&[waiting(0, 0)]).unwrap();
    assert_eq!(bed.granted(&mut held), [3], "known again");
    assert_eq!(bed.burst(1).len(), 4, "the last one was sent after that report");
}

#[test]
fn a_reload_reads_the_last_report_by_the_new_detector() {
    let bed = Bed::new(&detector(CONCURRENCY, "maxConcurrency: 10"));
    let sample = BackendSample { waiting: 2, age_ns: Some(0), ..in_flight(5, 0) };
    bed.pool.report_backends(&[sample]).unwrap();
    let held: Vec<_> = (0..2).map(|_| bed.admit(20).unwrap()).collect();
    assert!(close(bed.saturation(), 0.7));
    bed.reload(&detector(CONCURRENCY, "maxConcurrency: 20"));
    assert!(close(bed.saturation(), 0.35), "sample and own dispatches, both by the new limit");
    bed.reload(&format!(
        "{}, bands: [{{priority: 20, ceiling: 0.3}}]",
        detector(CONCURRENCY, "maxConcurrency: 20")
    ));
    assert!(bed.admit(20).is_err(), "the same detector goes on under other ceilings");
    bed.after_ms(150);
    bed.reload("saturation: utilization-detector");
    assert!(close(bed.saturation(), 0.8), "two waited, and two were sent since");
    bed.after_ms(51);
    assert!(close(bed.saturation(), 1.4), "its age is that of the report, not of the reload");
    bed.reload("saturation: slots");
    assert!(close(bed.saturation(), 0.02));
    assert_eq!(bed.pool.report_backends(&[sample]).err(), Some(ReportError::NoDetector));
    bed.reload("saturation: utilization-detector");
    assert!(close(bed.saturation(), 0.02), "nothing was reported since: slots");
    drop(held);
}

#[test]
fn an_adaptive_holdback_follows_the_detector_its_signal_names() {
    let plugins = "plugins: [{type: utilization-detector, name: queues, parameters: {queueDepthThreshold: 10}}]\n";
    let holdback = "holdback: {type: priority-holdback-policy, parameters: {minCeiling: 0.1, adaptive: {signal: queues, target: 0.3, full: 0.8, recoveryRate: 1}}}";
    let config = Config::load(&format!("{plugins}{}", text(holdback)), [], "t.yaml").unwrap();
    let clock = Clock::manual();
    let engine = Engine::start_with_clock(&config.settings, clock.clone()).unwrap();
    let pool = engine.pool("p").unwrap();
    let admit = |priority| pool.try_admit(&Request::new(pool.band(priority).unwrap()));
    let held: Vec<_> = (0..20).map(|_| admit(0).unwrap()).collect();
    // Its own saturation stays running over slots; the signal presses band 0 down to a tenth of them.
    pool.report_backends(&[waiting(9, 0)]).unwrap();
    assert!(close(pool.saturation().unwrap(), 0.2));
    assert!(admit(0).is_err() && admit(20).is_ok());
    pool.report_backends(&[waiting(0, 0)]).unwrap();
    assert!(admit(0).is_err(), "given back slowly");
    clock.set(clock.now_ns() + 200 * MS);
    assert!(admit(0).is_ok(), "a fifth of the pressure in a fifth of a second");
    clock.set(clock.now_ns() + MS);
    assert!(admit(0).is_err(), "stale counts as full, so the pressure is full again");
    drop(held);
    let mut settings = config.settings;
    settings.pools[0].signal = None;
    let error = engine.reload(&settings).unwrap_err();
    let expected = "pools.p.holdback.adaptive.signal: queues: the pool's settings do not say what it reads: set `signal` to a detector";
    assert_eq!(error.faults(), [expected]);
}

#[test]
fn a_mark_of_a_detector_that_went_and_came_back_closes_nothing() {
    let bed = Bed::new("saturation: concurrency-detector");
    let held = bed.burst(1);
    let begun = bed.pool.begin_report().unwrap();
    bed.reload("saturation: slots");
    assert_eq!(bed.pool.begin_report().err(), Some(ReportError::NoDetector));
    bed.reload("saturation: concurrency-detector");
    bed.pool.report_backends_since(begun, &[in_flight(10, 0)]).unwrap();
    assert!(close(bed.saturation(), 0.1));
    let other = Bed::new("saturation: concurrency-detector");
    let foreign = other.pool.report_backends_since(begun, &[]);
    assert_eq!(foreign.err(), Some(ReportError::ForeignMark));
    drop(held);
}

#[test]
fn reports_beside_admits_lose_no_slot_and_no_wake() {
    let config = Config::load(
        &text("saturation: concurrency-detector").replace("host", "inline"),
        [],
        "t.yaml",
    );
    let engine = Engine::start(&config.unwrap().settings).unwrap();
    let pool = engine.pool("p").unwrap();
    let request = Request::new(pool.band(20).unwrap()).timeout(Duration::from_secs(20));
    let done = AtomicBool::new(false);
    let admits = || {
        for _ in 0..3_000 {
            match pool.admit_blocking(request, None) {
                Ok(permit) => drop(permit),
                Err(reason) => assert_eq!(reason, Reason::Busy, "a wake was lost"),
            }
        }
    };
    std::thread::scope(|scope| {
        let threads = [scope.spawn(admits), scope.spawn(admits)];
        let reporter = scope.spawn(|| {
            let mut full = false;
            while !done.load(Ordering::Relaxed) {
                full = !full;
                pool.report_backends(&[in_flight(if full { 100 } else { 0 }, 0)]).unwrap();
            }
            pool.report_backends(&[in_flight(0, 0)]).unwrap();
        });
        // The reporter goes on until nobody waits for it.
        let admitted = threads.map(std::thread::ScopedJoinHandle::join);
        done.store(true, Ordering::Relaxed);
        reporter.join().unwrap();
        assert!(admitted.iter().all(Result::is_ok), "{admitted:?}");
    });
    let view = pool.view();
    assert_eq!((view.running, view.waiting, view.free), (0, 0, 100));
}

#[test]
fn a_start_and_a_reload_refuse_a_detector_that_cannot_compute() {
    let config = Config::load(&text("saturation: concurrency-detector"), [], "t.yaml").unwrap();
    let mut settings = config.settings;
    if let SaturationSource::Concurrency(params) = &mut settings.pools[0].saturation {
        params.max_requests = 0;
    }
    let expected = "pools.p.saturation.maxConcurrency: 0: must be 1 to 1000000";
    let error = Engine::start_with_clock(&settings, Clock::manual()).unwrap_err();
    assert_eq!(error.faults(), [expected]);
    let bed = Bed::new("saturation: concurrency-detector");
    assert_eq!(bed.engine.reload(&settings).unwrap_err().faults(), [expected]);
}
