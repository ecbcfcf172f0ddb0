//! Policies of the host, from a configuration file to the permit: each changes who is granted, and none is trusted.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on may panic")]
#![cfg(all(not(loom), feature = "config"))]

mod common;

use core::panic::AssertUnwindSafe;
use std::panic::catch_unwind;

use bandgate_core::types::extend::{
    BackendSample, BandCycle, BandSelection, FlowFairness, FlowHead, RequestOrder, RequestView,
    Sampled, SaturationDetector, UsageLimit,
};
use bandgate_core::types::saturation::SaturationSource;
use bandgate_core::{Engine, EngineBuilder, Pool, Reason, Request};
use serde::Deserialize;

use common::{host, queued};

/// The listed band first, the others by priority.
#[derive(Clone, Debug, Deserialize)]
struct Favour {
    band: i32,
}

impl BandSelection for Favour {
    fn rank(&mut self, cycle: &BandCycle<'_>, order: &mut [u8]) {
        let Some(at) = cycle.priorities.iter().position(|p| *p == self.band) else { return };
        order[..=at].rotate_right(1);
    }
}

/// Answers what is no order, or panics.
#[derive(Debug)]
struct Broken(bool);

impl BandSelection for Broken {
    fn rank(&mut self, _cycle: &BandCycle<'_>, order: &mut [u8]) {
        assert!(!self.0, "as asked");
        order.fill(200);
    }
}

/// One ceiling for all but the top band.
#[derive(Clone, Debug, Deserialize)]
struct Lower {
    to: f64,
}

impl UsageLimit for Lower {
    fn ceilings(&mut self, _saturation: f64, _priorities: &[i32], out: &mut [f64]) {
        out.iter_mut().skip(1).for_each(|ceiling| *ceiling = self.to);
    }
}

/// The flow whose first request costs most.
#[derive(Debug)]
struct Dearest;

impl FlowFairness for Dearest {
    fn key(&mut self, head: &FlowHead) -> u64 {
        u64::MAX - u64::from(head.head_cost)
    }
}

/// Small requests first, in steps of a size.
#[derive(Clone, Debug, Deserialize)]
struct Shortest {
    #[serde(default)]
    step: u32,
}

impl RequestOrder for Shortest {
    fn key(&mut self, request: &RequestView) -> u64 {
        (request.cost / self.step.max(1)).into()
    }
}

fn builder() -> EngineBuilder {
    Engine::builder()
        .register_band_selection("favour", Favour::clone)
        .and_then(|b| b.register_band_selection("broken", |(): &()| Broken(false)))
        .and_then(|b| b.register_band_selection("panics", |(): &()| Broken(true)))
        .and_then(|b| b.register_usage_limit("lower", Lower::clone))
        .and_then(|b| b.register_flow_fairness("dearest", |(): &()| Dearest))
        .and_then(|b| b.register_request_order("shortest", Shortest::clone))
        .unwrap()
}

/// A document of one pool; `pool` stands in its braces, `more` at the top.
fn document(pool: &str, more: &str) -> String {
    format!(
        "engine: {{driver: host, maxRequests: 64, admissionTimeout: unlimited}}\n\
         pools: {{default: {{slots: 2, {pool}}}}}\n{more}"
    )
}

fn engine(text: &str) -> (Engine, Pool) {
    let (engine, pool, _clock) = host(&builder().load(text, [], "t.yaml").unwrap().settings);
    (engine, pool)
}

fn faults(text: &str) -> String {
    builder().load(text, [], "t.yaml").unwrap_err().to_string()
}

/// The tags in the order granted of requests queued behind a full pool.
fn granted(engine: &Engine, pool: &Pool, requests: &[Request]) -> Vec<u64> {
    let queue = engine.completion_queue(64).unwrap();
    let top = Request::new(pool.band(20).unwrap());
    let (first, second) = (pool.try_admit(&top).unwrap(), pool.try_admit(&top).unwrap());
    for (tag, request) in (0..).zip(requests) {
        let _ticket = queued(pool.submit(request, &queue, tag).unwrap());
    }
    drop(first);
    let mut order = Vec::new();
    while let Some(completion) = queue.poll() {
        order.push(completion.tag);
        drop(completion.outcome.unwrap());
    }
    drop(second);
    order
}

fn by_band(engine: &Engine, pool: &Pool) -> Vec<u64> {
    let of = |priority| Request::new(pool.band(priority).unwrap());
    granted(engine, pool, &[of(0), of(10), of(20)])
}

const BANDS: &str = "bands: [{priority: 20}, {priority: 10}]";

#[test]
fn an_order_over_the_bands_is_usable_in_both_spellings() {
    let strict = engine(&document(BANDS, ""));
    assert_eq!(by_band(&strict.0, &strict.1), [2, 1, 0]);
    let inline = format!("{BANDS}, bandSelection: {{type: favour, parameters: {{band: 10}}}}");
    let (engine_, pool) = engine(&document(&inline, ""));
    assert_eq!(by_band(&engine_, &pool), [1, 2, 0]);
    let seeds = "plugins: [{name: mine, type: favour, parameters: {band: 0}}]\n\
                 flowControl: {bandSelectionPolicyPluginRef: mine}";
    let (engine_, pool) = engine(&document(BANDS, seeds));
    assert_eq!(by_band(&engine_, &pool), [0, 2, 1]);
}

#[test]
fn a_reload_puts_other_parameters_in_force() {
    let text = |band: i32| {
        let pool =
            format!("{BANDS}, bandSelection: {{type: favour, parameters: {{band: {band}}}}}");
        document(&pool, "")
    };
    let (engine, pool) = engine(&text(10));
    let before = engine.config_info().hash;
    engine.reload(&builder().load(&text(0), [], "t.yaml").unwrap().settings).unwrap();
    assert_ne!(engine.config_info().hash, before);
    assert_eq!(by_band(&engine, &pool), [0, 2, 1]);
}

#[test]
fn the_order_of_a_band_keeps_its_parameters_for_the_life_of_the_pool() {
    let text = |step: u32| {
        let order = format!("order: {{type: shortest, parameters: {{step: {step}}}}}");
        document(&format!("bands: [{{priority: 20, {order}}}]"), "")
    };
    let (engine, _pool) = engine(&text(1));
    engine.reload(&builder().load(&text(1), [], "t.yaml").unwrap().settings).unwrap();
    let error = engine.reload(&builder().load(&text(2), [], "t.yaml").unwrap().settings);
    assert!(error.unwrap_err().to_string().contains("bands.20.order"));
}

#[test]
fn an_order_that_is_none_is_strict_order_and_counted() {
    let (engine, pool) = engine(&document(&format!("{BANDS}, bandSelection: broken"), ""));
    assert_eq!(by_band(&engine, &pool), [2, 1, 0]);
    assert!(pool.view().stats.faulty_answers > 0);
}

#[test]
fn a_policy_that_panics_poisons_its_pool() {
    let (engine, pool) = engine(&document(&format!("{BANDS}, bandSelection: panics"), ""));
    let request = Request::new(pool.band(20).unwrap());
    let panicked = catch_unwind(AssertUnwindSafe(|| pool.try_admit(&request).map(drop)));
    assert!(panicked.is_err());
    assert_eq!(pool.try_admit(&request).map(drop), Err(Reason::Poisoned));
    drop(engine);
}

#[test]
fn ceilings_of_the_host_gate_and_those_that_are_none_do_not() {
    let low = |to: &str, seeds: bool| {
        let policy = format!("type: lower, parameters: {{to: {to}}}");
        let text = if seeds {
            let more = format!(
                "plugins: [{{name: mine, {policy}}}]\nflowControl: {{usageLimitPolicyPluginRef: mine}}"
            );
            document(BANDS, &more)
        } else {
            document(&format!("{BANDS}, holdback: {{{policy}}}"), "")
        };
        let (_engine, pool) = engine(&text);
        let first = pool.try_admit(&Request::new(pool.band(20).unwrap())).unwrap();
        let second = pool.try_admit(&Request::new(pool.band(0).unwrap())).map(drop);
        drop(first);
        (second, pool.view().stats.faulty_answers > 0)
    };
    assert_eq!(low("0.5", false), (Err(Reason::WouldQueue), false));
    assert_eq!(low("0.5", true), (Err(Reason::WouldQueue), false));
    assert_eq!(low("0.6", false), (Ok(()), false));
    assert_eq!(low(".nan", false), (Ok(()), true));
    assert_eq!(low("-1", false), (Ok(()), true));
}

#[test]
fn a_fairness_and_an_order_of_the_host_decide_within_a_band() {
    let by = |text: &str| {
        let (engine, pool) = engine(text);
        let flows = ["a", "b"].map(|name| pool.flow("", name, "").unwrap());
        let request =
            |flow: usize, cost| Request::new(pool.band(20).unwrap()).flow(flows[flow]).cost(cost);
        granted(&engine, &pool, &[request(0, 50), request(0, 10), request(1, 30), request(1, 60)])
    };
    let ours = |keys: &str| document(&format!("bands: [{{priority: 20, {keys}}}]"), "");
    let seeds = |keys: &str| {
        document("", &format!("flowControl: {{priorityBands: [{{priority: 20, {keys}}}]}}"))
            .replace("slots: 2, ", "slots: 2")
    };
    assert_eq!(by(&ours("fairness: dearest")), [0, 2, 3, 1]);
    assert_eq!(by(&seeds("fairnessPolicyRef: dearest")), [0, 2, 3, 1]);
    assert_eq!(by(&ours("order: shortest")), [1, 2, 0, 3]);
    assert_eq!(by(&seeds("orderingPolicyRef: shortest")), [1, 2, 0, 3]);
    assert_eq!(by(&ours("order: {type: shortest, parameters: {step: 100}}")), [0, 1, 2, 3]);
}

#[test]
fn faults_of_parameters_have_their_path_and_unknown_types_list_all() {
    let pool = |selection: &str| faults(&document(&format!("bandSelection: {selection}"), ""));
    for (selection, expected) in [
        (
            "{type: favour, parameters: {band: x}}",
            "pools.default.bandSelection.parameters.band: inv",
        ),
        ("{type: favour, parameters: {}}", "pools.default.bandSelection.parameters.band: missing"),
        ("{type: favour}", "pools.default.bandSelection.parameters.band: missing"),
        ("favour", "band: missing"),
        ("{type: favour, parameters: {band: 1, bnad: 2}}", "parameters.bnad: unknown parameter"),
        ("{type: broken, parameters: {band: 1}}", "parameters.band: unknown parameter"),
        ("{type: favour, parameters: {band: 1, band: 2}}", "parameters.band: duplicate key"),
        ("{type: lower, parameters: {to: 1}}", "\"lower\" is a usage limit policy"),
        ("{type: favor, parameters: {band: 1}}", "(did you mean favour)"),
        (
            "favor",
            "strict-band-selection-policy, cross-band-fairness-policy, favour, broken, panics",
        ),
    ] {
        let fault = pool(selection);
        assert!(fault.contains(expected), "{selection}: {fault}");
    }
    let types = pool("{type: nothing-like-it}");
    assert!(types.contains("fcfs-ordering-policy") && types.contains("shortest"), "{types}");
}

#[test]
fn a_name_is_registered_once() {
    for name in ["favour", "slots", "edf", "cross-band-fairness-policy", ""] {
        let again = builder().register_usage_limit(name, Lower::clone);
        assert_eq!(again.unwrap_err().name, name);
    }
}

/// Reads what it was told to.
#[derive(Clone, Debug, Deserialize)]
struct Constant {
    at: f64,
}

impl SaturationDetector for Constant {
    fn read(&self, _samples: &[BackendSample]) -> Sampled {
        Sampled { saturation: self.at, ..Sampled::default() }
    }
}

#[test]
fn a_detector_of_the_host_is_named_in_both_spellings() {
    let builder = builder().register_saturation_detector("constant", Constant::clone).unwrap();
    let ours = document("saturation: {type: constant, parameters: {at: 0.75}}", "");
    let seeds = document(
        "saturation: mine",
        "plugins: [{name: mine, type: constant, parameters: {at: 0.75}}]",
    );
    for text in [ours, seeds] {
        let settings = builder.load(&text, [], "t.yaml").unwrap().settings;
        let SaturationSource::Custom(custom) = &settings.pools[0].saturation else {
            panic!("{:?}", settings.pools[0].saturation)
        };
        assert_eq!((custom.kind(), custom.parameters()), ("constant", "{\"at\": 0.75}"));
        assert_eq!(custom.make().read(&[]), Sampled { saturation: 0.75, ..Sampled::default() });
    }
}

#[test]
fn what_a_detector_of_the_host_reads_gates_and_what_is_sent_since_counts_on() {
    let builder = builder().register_saturation_detector("constant", Constant::clone).unwrap();
    for (at, is_open) in [("0.75", true), ("1.0", false)] {
        let text =
            document(&format!("saturation: {{type: constant, parameters: {{at: {at}}}}}"), "");
        let settings = builder.load(&text, [], "t.yaml").unwrap().settings;
        let engine = builder.start(&settings).unwrap();
        let pool = engine.pool("default").unwrap();
        let request = Request::new(pool.band(0).unwrap());
        assert!(pool.try_admit(&request).is_ok(), "until the first report the slots count");
        pool.report_backends(&[BackendSample::default()]).unwrap();
        assert_eq!(pool.try_admit(&request).is_ok(), is_open, "{at}");
    }
}
