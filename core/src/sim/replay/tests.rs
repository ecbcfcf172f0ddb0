#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use super::{Dispatcher, Outcome, ReplayError, SubmitResult, replay};
use crate::{
    error::Reason,
    sim::{
        assign::Rule,
        model::{Model, Order},
        report::{BandReport, ConfigReport, STARVED_RULE, starved_after},
        scheme::Scheme,
        service::{Speedup, service_ns},
        stats::Collector,
        trace::Trace,
        workload::{Plan, SimRequest, Workload, WorkloadError},
    },
};

const PRIORITIES: [i32; 3] = [20, 10, 0];

fn workload(csv: &str, timeout_ns: Option<u64>) -> Workload {
    let text = format!("t_ms,band,tenant,key,input_tokens,output_tokens\n{csv}");
    let trace = Trace::read(text.as_bytes()).unwrap();
    let rule = Rule::default();
    let plan = Plan { rule: &rule, priorities: &PRIORITIES, speedup: Speedup::ONE, timeout_ns };
    Workload::build(&trace, &plan).unwrap()
}

/// `rows` requests at the same instant, bands by the rule.
fn flood(rows: usize) -> Workload {
    workload(&"0,,,,10,1\n".repeat(rows), None)
}

fn run<D: Dispatcher>(workload: &Workload, slots: u32, dispatcher: &mut D) -> Collector {
    let mut collector = Collector::new(PRIORITIES.len()).unwrap();
    replay(workload, slots, dispatcher, &mut collector, &mut |_| {}).unwrap();
    collector
}

fn reports(model: &mut Model, workload: &Workload, round: u64) -> Vec<BandReport> {
    let slots = u32::try_from(model.slots).unwrap();
    let collector = run(workload, slots, model);
    let scheme = Scheme { round, ..Scheme::default() };
    let bands = PRIORITIES.map(|p| (p, None));
    ConfigReport::new("test", slots, scheme, &bands, &collector).bands
}

#[test]
fn a_fifo_pool_of_one_slot_serves_one_after_the_other() {
    let service = service_ns(10, 1);
    let mut model = Model::new(Order::Fifo, 1);
    let collector = run(&flood(5), 1, &mut model);
    assert_eq!(model.granted, [0, 1, 2, 3, 4]);
    assert_eq!((collector.dispatches(), collector.completed()), (5, 5));
    assert_eq!(collector.end_ns(), 5 * service);
    let longest = collector.bands().iter().map(|b| b.wait_ns_max).max();
    assert_eq!(longest, Some(4 * service));
}

#[test]
fn a_slot_that_comes_back_as_a_request_arrives_is_free_for_it() {
    // 10 input and 1 output tokens run 18 ms.
    let workload = workload("0,0,a,k,10,1\n18,0,a,k,10,1", None);
    let collector = run(&workload, 1, &mut Model::new(Order::Fifo, 1));
    assert_eq!(collector.bands()[2].wait_ns_max, 0);
}

#[test]
fn a_deadline_between_two_events_evicts_in_time() {
    // The second waits 5 ms of the 18 the first runs; the third comes after that.
    let workload = workload("0,0,a,k,10,1\n1,20,a,k,10,1\n17,20,a,k,10,1", Some(5_000_000));
    let mut model = Model::new(Order::Fifo, 1);
    let collector = run(&workload, 1, &mut model);
    assert_eq!(model.granted, [0, 2]);
    let top = &collector.bands()[0];
    assert_eq!((top.arrived, top.dispatched, top.evicted.total(), top.waiting), (2, 1, 1, 0));
    assert_eq!(top.evicted.iter().collect::<Vec<_>>(), [(Reason::Deadline, 1)]);
}

#[test]
fn every_request_is_dispatched_rejected_or_evicted() {
    let workload = workload(&"0,,,,10,1\n".repeat(500), Some(100_000_000));
    let mut model = Model::new(Order::Strict, 3);
    model.most_waiting = 200;
    let collector = run(&workload, 3, &mut model);
    let mut evicted = 0;
    for band in collector.bands() {
        let ended = band.dispatched + band.rejected.total() + band.evicted.total();
        assert_eq!((band.arrived, band.waiting), (ended, 0));
        evicted += band.evicted.total();
    }
    assert_eq!(collector.bands().iter().map(|b| b.rejected.total()).sum::<u64>(), 297);
    assert!(evicted > 0);
    assert_eq!(collector.dispatches(), collector.completed());
}

#[test]
fn strict_starves_the_lowest_band_and_credits_do_not() {
    let workload = flood(1000);
    let strict = reports(&mut Model::new(Order::Strict, 4), &workload, 0);
    assert_eq!(strict.iter().map(|b| b.starved).collect::<Vec<_>>(), [false, true, true]);
    let credits = reports(&mut Model::credits(&[6, 3, 1], 4), &workload, 10);
    assert!(credits.iter().all(|b| !b.starved));
    assert_eq!(credits[2].longest_gap_all_backlogged, 9);
    assert!(STARVED_RULE.contains("max(100, 4 x round)"));
    assert_eq!([0, 10, 25, 26, u64::MAX].map(starved_after), [100, 100, 100, 104, u64::MAX]);
}

#[test]
fn while_all_bands_wait_shares_are_those_of_the_credits_within_one_round() {
    for slots in [1, 2, 8, 64] {
        let bands = reports(&mut Model::credits(&[6, 3, 1], slots), &flood(3000), 10);
        let all: u64 = bands.iter().map(|b| b.dispatched_all_backlogged).sum();
        assert!(all >= 1500, "{all} with {slots} slots");
        for (band, weight) in bands.iter().zip([6, 3, 1]) {
            assert!((band.dispatched_all_backlogged * 10).abs_diff(all * weight) <= 100);
        }
        assert!(bands[2].longest_gap_while_backlogged <= 9);
    }
}

#[test]
fn a_replay_is_a_function_of_its_inputs() {
    let workload = flood(400);
    let order = || {
        let mut model = Model::credits(&[6, 3, 1], 7);
        run(&workload, 7, &mut model);
        model.granted
    };
    assert_eq!(order(), order());
}

#[test]
fn progress_ends_at_the_number_of_rows() {
    let workload = flood(9000);
    let mut seen = Vec::new();
    let mut collector = Collector::new(3).unwrap();
    let mut model = Model::new(Order::Fifo, 9000);
    replay(&workload, 9000, &mut model, &mut collector, &mut |n| seen.push(n)).unwrap();
    assert_eq!(seen, [4096, 8192, 9000]);
}

#[test]
fn a_band_the_pool_does_not_have_is_refused_with_its_line() {
    let text = "t_ms,band,tenant,key,input_tokens,output_tokens\n0,0,a,k,1,1\n0,5,a,k,1,1";
    let trace = Trace::read(text.as_bytes()).unwrap();
    let rule = Rule::default();
    let plan =
        Plan { rule: &rule, priorities: &PRIORITIES, speedup: Speedup::ONE, timeout_ns: None };
    let error = Workload::build(&trace, &plan).unwrap_err();
    assert_eq!(error.to_string(), "line 3: expected a provisioned band (20, 10, 0), got 5");
    let none = Workload::build(&trace, &Plan { priorities: &[], ..plan }).unwrap_err();
    assert_eq!(none, WorkloadError::Bands(0));
}

/// Breaks one promise of a dispatcher.
struct Broken {
    outcomes: Vec<Outcome>,
    answer: SubmitResult,
}

impl Dispatcher for Broken {
    fn submit(&mut self, _now_ns: u64, request: &SimRequest) -> SubmitResult {
        if self.answer == SubmitResult::Queued {
            self.outcomes.extend([Outcome::Granted(request.row); 2]);
        }
        self.answer
    }
    fn release(&mut self, _now_ns: u64, _row: u32) {}
    fn poll(&mut self, _now_ns: u64) {}
    fn drain(&mut self, out: &mut Vec<Outcome>) {
        out.append(&mut self.outcomes);
    }
    /// Always due, and a poll never changes anything: the loop must go on all the same.
    fn next_deadline(&self) -> Option<u64> {
        Some(0)
    }
}

#[test]
fn a_dispatcher_that_grants_twice_or_beyond_its_slots_is_an_error() {
    let result = |answer, slots| {
        let mut broken = Broken { outcomes: Vec::new(), answer };
        let mut collector = Collector::new(3).unwrap();
        replay(&flood(3), slots, &mut broken, &mut collector, &mut |_| {})
    };
    assert_eq!(result(SubmitResult::Queued, 8), Err(ReplayError::NotWaiting(0)));
    assert_eq!(
        result(SubmitResult::Granted, 2),
        Err(ReplayError::OverAdmitted { slots: 2, t_ns: 0 })
    );
    assert_eq!(result(SubmitResult::Granted, 3), Ok(()));
    assert_eq!(result(SubmitResult::Granted, 0), Err(ReplayError::NoSlots));
}
