//! Every shape of ceilings through the loader and `submit`: the configuration decides which request is granted.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on may panic")]
#![cfg(all(not(loom), feature = "config"))]

use bandgate_core::clock::Clock;
use bandgate_core::config::Config;
use bandgate_core::types::policy::{BandSelection, Holdback};
use bandgate_core::{Engine, Permit, Pool, Reason, Request, StartError};

const BANDS: &str = "bands: [{priority: 20}, {priority: 10}]\nengine: {driver: host}\n";

/// An engine of one pool of ten slots under this holdback.
fn engine(holdback: &str) -> (Engine, Pool) {
    let text = format!("{BANDS}pools: {{p: {{slots: 10, holdback: {holdback}}}}}");
    let config = Config::load(&text, [], "t.yaml").unwrap();
    let engine = Engine::start_with_clock(&config.settings, Clock::manual()).unwrap();
    let pool = engine.pool("p").unwrap();
    (engine, pool)
}

fn admit(pool: &Pool, priority: i32) -> Result<Permit<'_>, Reason> {
    pool.try_admit(&Request::new(pool.band(priority).unwrap()))
}

/// How many of a band run before it is gated, lower bands first, all kept.
fn admitted(holdback: &str) -> [usize; 3] {
    let (_engine, pool) = engine(holdback);
    let mut held = Vec::new();
    [0, 10, 20].map(|priority| {
        while let Ok(permit) = admit(&pool, priority) {
            held.push(permit);
        }
        held.len()
    })
}

fn shape(parameters: &str) -> String {
    format!("{{type: priority-holdback-policy, parameters: {{{parameters}}}}}")
}

#[test]
fn each_shape_admits_up_to_its_ceilings() {
    let of = |parameters: &str| admitted(&shape(parameters));
    // Running, once the lowest band is gated, the next, the top.
    assert_eq!(of("minCeiling: 0.3"), [3, 7, 10], "rank: 0.65 of ten slots is reached by the 7th");
    assert_eq!(of("minCeiling: 0.3, domain: value, maxCeiling: 0.8"), [3, 6, 8]);
    let sigmoid = "strategy: sigmoid-smoothed, minCeiling: 0.3, sigmoidMidpoint: 0.75";
    assert_eq!(of(sigmoid), [3, 4, 10], "the middle band is far down the S");
    assert_eq!(of("strategy: static, ceilings: {20: 0.9, 10: 0.5, 0: 0}"), [0, 5, 9]);
    let limit = "{type: static-usage-limit-policy, parameters: {threshold: 0.55}}";
    assert_eq!(admitted(limit), [6, 6, 6]);
}

#[test]
fn a_waiter_below_its_ceiling_is_granted_where_another_holdback_gates_it() {
    let granted = |holdback: &str| {
        let (engine, pool) = engine(holdback);
        let queue = engine.completion_queue(4).unwrap();
        let mut held: Vec<_> = (0..10).map(|_| admit(&pool, 20).unwrap()).collect();
        for (tag, priority) in [(1, 0), (2, 20)] {
            let request = Request::new(pool.band(priority).unwrap());
            let _ticket = pool.submit(&request, &queue, tag).unwrap();
        }
        // Six run on.
        held.truncate(6);
        let mut tags = Vec::new();
        let mut permits = Vec::new();
        while let Some(completion) = queue.poll() {
            tags.push(completion.tag);
            permits.extend(completion.outcome.ok());
        }
        tags
    };
    assert_eq!(granted(&shape("minCeiling: 0.8")), [2, 1]);
    assert_eq!(granted(&shape("minCeiling: 0.5")), [2]);
}

#[test]
fn over_busy_bands_a_lone_band_has_the_whole_pool_and_gives_way_as_soon_as_another_waits() {
    let (engine, pool) = engine(&shape("minCeiling: 0.5, activeBands: busy"));
    let mut held = Vec::new();
    while let Ok(permit) = admit(&pool, 0) {
        held.push(permit);
    }
    assert_eq!(held.len(), 10, "alone, the lowest band is not held back");
    let queue = engine.completion_queue(4).unwrap();
    for (tag, priority) in [(1, 0), (2, 20)] {
        let request = Request::new(pool.band(priority).unwrap());
        let _ticket = pool.submit(&request, &queue, tag).unwrap();
    }
    // The top band waits: now the lowest has half of the slots, which it has already.
    held.truncate(8);
    let mut granted = Vec::new();
    while let Some(completion) = queue.poll() {
        granted.push((completion.tag, completion.outcome.unwrap()));
    }
    assert_eq!(granted.iter().map(|(tag, _)| *tag).collect::<Vec<_>>(), [2]);
}

#[test]
fn pressure_of_the_queue_gates_the_lowest_band_and_time_alone_opens_it_again() {
    let adaptive = "{signal: queueDepth, target: 0.3, full: 0.8, recoveryRate: 1}";
    let text = format!(
        "{}pools: {{p: {{slots: 10, holdback: {}}}}}",
        BANDS.replace("driver: host", "driver: host, maxRequests: 10"),
        shape(&format!("minCeiling: 0.1, adaptive: {adaptive}"))
    );
    let config = Config::load(&text, [], "t.yaml").unwrap();
    let clock = Clock::manual();
    let engine = Engine::start_with_clock(&config.settings, clock.clone()).unwrap();
    let pool = engine.pool("p").unwrap();
    let mut held: Vec<_> = (0..10).map(|_| admit(&pool, 0).unwrap()).collect();
    let queue = engine.completion_queue(16).unwrap();
    let top = Request::new(pool.band(20).unwrap());
    for tag in 0..8 {
        let _ticket = pool.submit(&top, &queue, tag).unwrap();
    }
    // Eight of ten places were taken: full pressure. Then all of them get their slots and are done.
    held.truncate(2);
    let done: Vec<_> = core::iter::from_fn(|| queue.poll()).collect();
    assert_eq!(done.len(), 8);
    drop(done);
    // Two run and nobody waits, but the pressure stays a while: a tenth of the pool is the lowest band's.
    assert_eq!(admit(&pool, 0).err(), Some(Reason::WouldQueue));
    let low = Request::new(pool.band(0).unwrap());
    let _ticket = pool.submit(&low, &queue, 99).unwrap();
    assert!(queue.poll().is_none());
    // After half a second half of it is given back: 0.55 of the pool.
    clock.set(clock.now_ns() + 500_000_000);
    engine.poll();
    assert_eq!(queue.poll().map(|completion| completion.tag), Some(99));
}

#[test]
fn the_soft_reflective_policy_opens_every_other_decision_at_seven_of_ten() {
    let (_engine, pool) = engine("soft-reflective-ceiling-policy");
    let mut held: Vec<_> = (0..7).map(|_| admit(&pool, 20).unwrap()).collect();
    // Given back at once, so that seven run at each decision.
    let open: Vec<_> = (0..6).map(|_| admit(&pool, 0).is_ok()).collect();
    assert_eq!(open.iter().filter(|open| **open).count(), 3, "{open:?}");
    held.extend((0..3).map(|_| admit(&pool, 20).unwrap()));
    assert_eq!(held.len(), 10, "the top band is never held back");
}

#[test]
fn a_newcomer_of_a_pool_whose_gates_move_fetches_the_unit_it_lacks() {
    for holdback in [
        shape("minCeiling: 0.5"),
        shape("minCeiling: 0.5, activeBands: busy"),
        "soft-reflective-ceiling-policy".to_owned(),
    ] {
        let text = format!(
            "{}pools: {{p: {{slots: 2, holdback: {holdback}}}, q: {{slots: 2}}}}",
            BANDS.replace("driver: host", "driver: host, ceiling: 2"),
        );
        let config = Config::load(&text, [], "t.yaml").unwrap();
        let engine = Engine::start_with_clock(&config.settings, Clock::manual()).unwrap();
        let pool = engine.pool("p").unwrap();
        let held: Vec<_> = (0..2).map(|_| admit(&pool, 20)).collect();
        assert!(held.iter().all(Result::is_ok), "{holdback}: {held:?}");
        assert!(admit(&pool, 20).is_err(), "the engine's ceiling holds");
    }
}

#[test]
fn an_engine_refuses_ceilings_that_no_loader_saw() {
    let faults = |holdback: Holdback, selection: Option<BandSelection>| {
        let mut settings = Config::load(BANDS, [], "t.yaml").unwrap().settings;
        settings.pools[0].holdback = holdback;
        if let Some(selection) = selection {
            settings.pools[0].selection = selection;
        }
        let error: StartError = Engine::start(&settings).unwrap_err();
        error.faults().to_vec()
    };
    let threshold = faults(Holdback::Static { threshold: 0.0 }, None);
    assert_eq!(threshold, ["pools.default.holdback.threshold: 0: must be above 0 and at most 1"]);
    let inverted = Holdback::Explicit { ceilings: vec![(20, 0.5), (0, 0.6)], default: None };
    assert_eq!(faults(inverted, None), ["pools.default.holdback.ceilings: priority inversion"]);
    let text = "flowControl: {bandSelectionPolicyPluginRef: w}\nplugins: [{type: cross-band-fairness-policy, name: w, parameters: {activationThreshold: 0.5}}]";
    let wfq = Config::load(text, [], "t.yaml").unwrap().settings.pools[0].selection.clone();
    let both = faults(Holdback::SoftReflective, Some(wfq));
    assert_eq!(both.len(), 1);
    assert!(both[0].contains("soft-reflective-ceiling-policy beside cross-band-fairness-policy"));
}
