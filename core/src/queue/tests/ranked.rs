//! Bands in another order than arrival: against the model, with caps, cancels and requests that overtake.

use alloc::{boxed::Box, collections::BTreeMap, vec, vec::Vec};

use proptest::prelude::*;

use super::model::{Fair, Pool};
use crate::{
    queue::{BandQueues, Front, NoCaps, VecLinks},
    select::flow::{FlowPolicy, GlobalStrict, RoundRobin},
    types::NONE,
    types::rank::Rank,
};

#[derive(Clone, Debug)]
enum Op {
    Enqueue { pick: usize, band: u32, flow: u32, key: u64, tie: u64 },
    Grant(u32),
    Release(usize),
    Cancel(usize),
    Caps { index: u32, flow: u32, tenant: u32 },
    Spurious(u32),
}

fn ops() -> impl Strategy<Value = Vec<Op>> {
    let op = prop_oneof![
        6 => (any::<usize>(), 0..64_u32, 0..20_u32, 0..9_u64, 0..3_u64)
            .prop_map(|(pick, band, flow, key, tie)| Op::Enqueue { pick, band, flow, key, tie }),
        4 => (0..64_u32).prop_map(Op::Grant),
        3 => any::<usize>().prop_map(Op::Release),
        2 => any::<usize>().prop_map(Op::Cancel),
        1 => (0..32_u32, 0..4_u32, 0..5_u32)
            .prop_map(|(index, flow, tenant)| Op::Caps { index, flow, tenant }),
        1 => (0..32_u32).prop_map(Op::Spurious),
    ];
    proptest::collection::vec(op, 1..400)
}

fn robin() -> Fair {
    Fair::Robin { last: None, places: BTreeMap::new() }
}

fn run(rules: &[(Fair, bool)], flows: u32, tenants: u32, cap: u32, ops: Vec<Op>) {
    // Every fifth flow has no tenant; of 4 more flows than there are, the requests are anonymous.
    let tenant_of =
        (0..flows).map(|flow| if flow % 5 == 4 { NONE } else { flow % tenants }).collect();
    let mut pool = Pool::with_rules(rules, 200, tenant_of, cap);
    for op in ops {
        match op {
            Op::Enqueue { pick, band, flow, key, tie } => {
                let flow = flow % (flows + 4);
                let flow = if flow < flows { flow } else { NONE };
                pool.enqueue_by(pick, band, flow, Rank { key, tie });
            }
            Op::Grant(band) => drop(pool.grant(band)),
            Op::Release(pick) => pool.release(pick),
            Op::Cancel(pick) => pool.cancel(pick),
            Op::Caps { index, flow, tenant } => pool.set_caps(index % flows, flow, tenant),
            Op::Spurious(index) => pool.spurious(index % flows),
        }
        pool.check_counts();
    }
    pool.drain();
}

proptest! {
    #![proptest_config(super::cases(160))]

    #[test]
    fn the_front_is_the_least_rank_that_may_run(
        ops in ops(), flows in 1..16_u32, tenants in 1..5_u32, cap in 0..4_u32,
    ) {
        run(&[(Fair::Strict, true)], flows, tenants, cap, ops);
    }

    #[test]
    fn round_robin_gives_the_least_place_that_may_run_whatever_the_order_within_the_flows(
        ops in ops(), flows in 1..16_u32, tenants in 1..5_u32, cap in 0..4_u32, keyed: bool,
    ) {
        run(&[(robin(), keyed)], flows, tenants, cap, ops);
    }

    #[test]
    fn a_policy_of_the_host_is_obeyed_whatever_the_order_within_the_flows(
        ops in ops(), flows in 1..16_u32, tenants in 1..5_u32, cap in 0..4_u32, keyed: bool,
    ) {
        run(&[(Fair::Odd, keyed)], flows, tenants, cap, ops);
    }

    #[test]
    fn bands_of_every_kind_stand_side_by_side(
        ops in ops(), flows in 1..12_u32, tenants in 1..4_u32, cap in 0..4_u32,
    ) {
        let rules = [
            (Fair::Arrival, false), (Fair::Strict, true), (robin(), false), (Fair::Odd, true),
            (Fair::Strict, false), (robin(), true), (Fair::Odd, false),
        ];
        run(&rules, flows, tenants, cap, ops);
    }

    /// The rule of the specification, word for word: start after the flow served last, the first with waiters
    /// is next; nobody waits: the start is forgotten.
    #[test]
    fn round_robin_without_caps_is_a_scan_from_the_flow_served_last(
        ops in proptest::collection::vec((0..8_u32, 0..3_u8, any::<prop::sample::Index>()), 1..300),
    ) {
        let links = VecLinks::new(400);
        let order = Box::new(FlowPolicy::RoundRobin(RoundRobin::new()));
        let mut queues = BandQueues::new(1, 400, 8).with_order(0, order, false);
        (0..8).for_each(|flow| queues.add_flow(flow, NONE));
        let (mut waiting, mut last) = (vec![Vec::new(); 8], None::<usize>);
        for (idx, (flow, kind, pick)) in (0..).zip(ops) {
            match kind {
                0 | 1 => {
                    queues.enqueue_ranked(&links, idx, 0, flow, Rank::default());
                    waiting[flow as usize].push(idx);
                }
                _ if flow == 7 => {
                    let all: Vec<u32> = waiting.concat();
                    if !all.is_empty() {
                        let gone = all[pick.index(all.len())];
                        queues.remove(&links, gone);
                        for flow in &mut waiting {
                            flow.retain(|&idx| idx != gone);
                        }
                    }
                }
                _ => {
                    let start = last.map_or(0, |flow| flow + 1);
                    let next = (start..start + 8).map(|at| at % 8).find(|&at| !waiting[at].is_empty());
                    let expected = next.map(|at| waiting[at].remove(0));
                    let got = match queues.front(&links, 0, &NoCaps, &mut 1) {
                        Front::Ready(_) => queues.take_front(&links, 0, &NoCaps),
                        _ => None,
                    };
                    prop_assert_eq!(got, expected);
                    last = next;
                }
            }
            if waiting.iter().all(Vec::is_empty) {
                last = None;
            }
        }
    }
}

#[test]
fn round_robin_serves_every_flow_that_waits_once_a_round() {
    let links = VecLinks::new(1_000);
    let order = Box::new(FlowPolicy::RoundRobin(RoundRobin::new()));
    let mut queues = BandQueues::new(1, 1_000, 40).with_order(0, order, false);
    (0..40).for_each(|flow| queues.add_flow(flow, NONE));
    // Each brings 25, in an order that has nothing to do with turns.
    for idx in 0..1_000 {
        queues.enqueue_ranked(&links, idx, 0, idx * 7 % 40, Rank::default());
    }
    for _round in 0..25 {
        let mut served = Vec::new();
        for _ in 0..40 {
            let Front::Ready(waiter) = queues.front(&links, 0, &NoCaps, &mut 1) else { panic!() };
            assert_eq!(queues.take_front(&links, 0, &NoCaps), Some(waiter.idx));
            served.push(waiter.flow);
        }
        assert!(served.iter().copied().eq(0..40), "{served:?}");
    }
    assert_eq!(queues.waiting(), 0);
}

#[test]
fn a_request_that_overtakes_its_flow_set_aside_goes_before_the_guard_of_its_tenant() {
    let mut pool = Pool::with_rules(&[(Fair::Strict, true)], 16, vec![0, 0, 0], 1);
    for (flow, key) in [(0, 5), (1, 20), (2, 30)] {
        pool.enqueue_by(0, 0, flow, Rank::by(key));
    }
    assert!(pool.grant(0));
    // The tenant is full: both others are set aside. Then it has room, and the first of them stands guard.
    assert!(!pool.grant(0));
    pool.release(0);
    pool.enqueue_by(0, 0, 2, Rank::by(1));
    assert!(pool.grant(0));
    pool.drain();
}

#[test]
fn an_order_of_ranks_survives_a_new_base_of_the_arrival_numbers() {
    let links = VecLinks::new(16);
    let order = Box::new(FlowPolicy::GlobalStrict(GlobalStrict));
    let mut queues = BandQueues::new(2, 16, 2).with_order(0, order, true);
    queues.add_flow(0, NONE);
    queues.add_flow(1, NONE);
    for (idx, key) in [(0, 7), (1, 3), (2, 7), (3, 5)] {
        queues.enqueue_ranked(&links, idx, 0, idx % 2, Rank::by(key));
    }
    queues.enqueue(&links, 9, 1, NONE);
    queues.order = crate::queue::order::Order::starting_at(1 << 41, 0);
    queues.rebase(&links);
    queues.enqueue_ranked(&links, 4, 0, 1, Rank::by(7));
    queues.enqueue(&links, 8, 1, NONE);
    let mut take = |band| match queues.front(&links, band, &NoCaps, &mut 9) {
        Front::Ready(_) => queues.take_front(&links, band, &NoCaps),
        _ => None,
    };
    assert_eq!(
        [take(0), take(0), take(0), take(0), take(0), take(0)],
        [Some(1), Some(3), Some(0), Some(2), Some(4), None]
    );
    assert_eq!([take(1), take(1), take(1)], [Some(9), Some(8), None]);
}
