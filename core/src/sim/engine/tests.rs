#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use core::time::Duration;

use super::SimEngine;
use crate::{
    error::Reason,
    sim::{
        assign::Rule,
        model::{Model, Order},
        replay::{Dispatcher, Outcome, SubmitResult, replay},
        service::Speedup,
        stats::Collector,
        trace::Trace,
        workload::{Plan, SimRequest, Workload},
    },
    types::{
        policy::{BandSelection, Distribution, Ratio, Schedule, WfqParams},
        settings::{PoolSettings, Settings, TenantSettings},
    },
};

const PRIORITIES: [i32; 3] = [20, 10, 0];

/// Writes down who got a slot, in order.
struct Recording<D> {
    inner: D,
    granted: Vec<u32>,
}

impl<D: Dispatcher> Dispatcher for Recording<D> {
    fn submit(&mut self, now_ns: u64, request: &SimRequest) -> SubmitResult {
        let result = self.inner.submit(now_ns, request);
        if result == SubmitResult::Granted {
            self.granted.push(request.row);
        }
        result
    }
    fn release(&mut self, now_ns: u64, row: u32) {
        self.inner.release(now_ns, row);
    }
    fn poll(&mut self, now_ns: u64) {
        self.inner.poll(now_ns);
    }
    fn drain(&mut self, out: &mut Vec<Outcome>) {
        self.inner.drain(out);
        self.granted.extend(out.iter().filter_map(|outcome| match outcome {
            Outcome::Granted(row) => Some(*row),
            Outcome::Evicted(..) => None,
        }));
    }
    fn next_deadline(&self) -> Option<u64> {
        self.inner.next_deadline()
    }
}

fn workload(csv: &str, timeout: Option<Duration>) -> Workload {
    let text = format!("t_ms,band,tenant,key,input_tokens,output_tokens\n{csv}");
    let trace = Trace::read(text.as_bytes()).unwrap();
    let rule = Rule::default();
    let timeout_ns = timeout.map(|t| u64::try_from(t.as_nanos()).unwrap());
    let plan = Plan { rule: &rule, priorities: &PRIORITIES, speedup: Speedup::ONE, timeout_ns };
    Workload::build(&trace, &plan).unwrap()
}

/// Requests of one flow in bands by the rule, in bursts: the queue fills and drains several times.
fn bursts(rows: u32) -> Workload {
    let csv: String = (0..rows)
        .map(|n| format!("{},,acme,k,{},{}\n", n / 100 * 500 + n % 7, n % 50 + 1, n % 3))
        .scan(0u32, |last, line| {
            // Sorted, as a trace must be.
            let (t, rest) = line.split_once(',')?;
            *last = t.parse::<u32>().ok()?.max(*last);
            Some(format!("{last},{rest}"))
        })
        .collect();
    workload(&csv, None)
}

fn settings(selection: BandSelection, slots: u32) -> Settings {
    let pool = PoolSettings { selection, ..PoolSettings::new("p", slots).with_bands(&PRIORITIES) };
    Settings { pools: vec![pool], admission_timeout: None, ..Settings::default() }
}

fn wfq(schedule: Schedule) -> BandSelection {
    BandSelection::Wfq(WfqParams {
        activation: 0.0,
        deactivation: 0.0,
        retention_ns: 0,
        schedule,
        distribution: Distribution::Explicit {
            ratios: vec![(20, Ratio(6000)), (10, Ratio(3000)), (0, Ratio(1000))],
            default_ratio: None,
        },
    })
}

fn run<D: Dispatcher>(workload: &Workload, slots: u32, inner: D) -> (Vec<u32>, Collector) {
    let mut recording = Recording { inner, granted: Vec::new() };
    let mut collector = Collector::new(PRIORITIES.len()).unwrap();
    replay(workload, slots, &mut recording, &mut collector, &mut |_| {}).unwrap();
    (recording.granted, collector)
}

fn engine(workload: &Workload, settings: &Settings) -> (Vec<u32>, Collector) {
    let pool = &settings.pools[0];
    let mut engine = SimEngine::start(settings, pool, workload).unwrap();
    run(workload, pool.slots, engine.dispatcher())
}

/// Names the first grant that differs.
fn assert_same(got: &[u32], expected: &[u32], what: &str, slots: u32) {
    let differs = got.iter().zip(expected).position(|(a, b)| a != b);
    let at = differs.map(|i| (i, got[i], expected[i]));
    assert_eq!(at, None, "{what}, {slots} slots: (grant, row, expected row)");
    assert_eq!(got.len(), expected.len(), "{what}, {slots} slots");
}

#[test]
fn the_engine_grants_in_the_order_of_the_naive_model() {
    let workload = bursts(2000);
    let credits = wfq(Schedule::PriorityFirst { max_fairness_window: None });
    for slots in [1, 2, 7] {
        let model = |order| run(&workload, slots, Model::new(order, slots as usize)).0;
        let strict = engine(&workload, &settings(BandSelection::Strict, slots)).0;
        assert_same(&strict, &model(Order::Strict), "strict", slots);
        let weighted = engine(&workload, &settings(credits.clone(), slots)).0;
        let quota = vec![6, 3, 1];
        let expected = model(Order::Credits { left: quota.clone(), quota });
        assert_same(&weighted, &expected, "priority-first", slots);
    }
}

#[test]
fn both_schedules_share_60_30_10_within_a_round_while_every_band_waits() {
    let rows = 6000;
    let flood = workload(&"0,,,,10,1\n".repeat(rows), None);
    let credits = Schedule::PriorityFirst { max_fairness_window: None };
    for schedule in [credits, Schedule::Interleaved] {
        for slots in [1, 2, 8, 64] {
            let counted = engine(&flood, &settings(wfq(schedule), slots)).1;
            let all = counted.dispatches_all_backlogged();
            assert!(all >= 2000, "{all}");
            for (band, weight) in counted.bands().iter().zip([6, 3, 1]) {
                let got = band.dispatched_all_backlogged;
                assert!((got * 10).abs_diff(all * weight) <= 100, "{got} of {all}");
            }
            assert!(counted.bands()[2].longest_gap <= 9);
            assert_eq!(counted.dispatches(), rows as u64);
        }
    }
}

#[test]
fn a_timeout_evicts_in_virtual_time_and_nothing_is_lost() {
    let timeout = Duration::from_millis(200);
    let workload = workload(&"0,,,,10,1\n".repeat(300), Some(timeout));
    let mut settings = settings(BandSelection::Strict, 3);
    settings.admission_timeout = Some(timeout);
    let (granted, counted) = engine(&workload, &settings);
    let evicted: u64 = counted.bands().iter().map(|b| b.evicted.total()).sum();
    assert_eq!(granted.len() as u64 + evicted, 300);
    // 3 slots, 18 ms each: 11 or 12 rounds fit into 200 ms.
    assert!((33..=39).contains(&granted.len()), "{}", granted.len());
    let reasons: Vec<Reason> =
        counted.bands().iter().flat_map(|b| b.evicted.iter()).map(|(reason, _)| reason).collect();
    assert!(reasons.iter().all(|&reason| reason == Reason::Deadline));
    assert!(counted.bands().iter().all(|b| b.waiting == 0));
}

#[test]
fn limits_of_the_configuration_reject_with_their_reasons() {
    let workload =
        workload(&"0,0,acme,k,10,1\n0,0,none,k,10,1\n0,0,big,k,4000,1\n".repeat(10), None);
    let mut settings = settings(BandSelection::Strict, 2);
    settings.max_requests = 4;
    settings.pools[0].max_cost = 100;
    settings.tenants.push(TenantSettings {
        name: "none".into(),
        group: None,
        weight: 100,
        max_in_flight: Some(0),
        exempt: false,
    });
    let (granted, counted) = engine(&workload, &settings);
    let low = &counted.bands()[2];
    let reasons: Vec<(Reason, u64)> = low.rejected.iter().collect();
    let expected = [(Reason::QueueFull, 4), (Reason::TenantQueueFull, 10), (Reason::TooLarge, 10)];
    assert_eq!(reasons, expected);
    assert_eq!(granted.len(), 6);
}
