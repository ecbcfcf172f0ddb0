//! Every shape of ceilings through the loader and `submit`: the configuration decides which request is granted.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on may panic")]
#![cfg(not(loom))]

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
