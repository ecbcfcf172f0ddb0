//! Order, counts and caps of the band queues.

use alloc::{vec, vec::Vec};

use proptest::prelude::*;

use super::model::Pool;
use crate::{
    queue::{BandQueues, Front, NoCaps, VecLinks},
    types::NONE,
};

#[derive(Clone, Debug)]
enum Op {
    Enqueue { pick: usize, band: u32, flow: u32 },
    Front(u32),
    Grant(u32),
    Release(usize),
    Cancel(usize),
    Caps { index: u32, flow: u32, tenant: u32 },
    Spurious(u32),
}

fn ops() -> impl Strategy<Value = Vec<Op>> {
    let op = prop_oneof![
        6 => (any::<usize>(), 0..64_u32, 0..40_u32)
            .prop_map(|(pick, band, flow)| Op::Enqueue { pick, band, flow }),
        2 => (0..64_u32).prop_map(Op::Front),
        4 => (0..64_u32).prop_map(Op::Grant),
        3 => any::<usize>().prop_map(Op::Release),
        2 => any::<usize>().prop_map(Op::Cancel),
        1 => (0..32_u32, 0..4_u32, 0..5_u32).prop_map(|(index, flow, tenant)| Op::Caps { index, flow, tenant }),
        1 => (0..32_u32).prop_map(Op::Spurious),
    ];
    proptest::collection::vec(op, 1..400)
}

fn run(bands: u32, flows: u32, tenants: u32, cap: u32, ops: Vec<Op>) {
    // Every fifth flow has no tenant; of 8 more flows than there are, the requests are anonymous.
    let tenant_of =
        (0..flows).map(|flow| if flow % 5 == 4 { NONE } else { flow % tenants }).collect();
    let mut pool = Pool::new(bands, 200, tenant_of, cap);
    for op in ops {
        match op {
            Op::Enqueue { pick, band, flow } => {
                let flow = flow % (flows + 8);
                pool.enqueue(pick, band, if flow < flows { flow } else { NONE });
            }
            Op::Front(band) => drop(pool.front(band)),
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
    #![proptest_config(super::cases(128))]

    #[test]
    fn the_front_is_the_first_arrival_that_may_run_with_few_bands(
        ops in ops(), flows in 1..32_u32, tenants in 1..6_u32, cap in 0..4_u32,
    ) {
        run(2, flows, tenants, cap, ops);
    }

    #[test]
    fn the_front_is_the_first_arrival_that_may_run_with_one_band_and_one_tenant(
        ops in ops(), flows in 2..32_u32, cap in 1..4_u32,
    ) {
        run(1, flows, 1, cap, ops);
    }

    #[test]
    fn the_front_is_the_first_arrival_that_may_run_with_all_bands(
        ops in ops(), flows in 1..8_u32, tenants in 1..3_u32, cap in 0..4_u32,
    ) {
        run(64, flows, tenants, cap, ops);
    }
}

#[test]
fn every_waiter_leaves_exactly_once_at_shutdown_caps_or_not() {
    let mut pool = Pool::new(4, 300, vec![0, 0, 1, NONE], 1);
    for n in 0..300_u32 {
        let flow = n % 5;
        pool.enqueue(n as usize, n % 4, if flow < 4 { flow } else { NONE });
    }
    for band in 0..4 {
        while pool.grant(band) {}
    }
    assert!(pool.queues.capped() > 0);
    let waiting = pool.queues.waiting();
    let mut seen = vec![false; 300];
    for _ in 0..waiting {
        let idx = pool.queues.pop_any(&pool.links, 1_000).unwrap() as usize;
        assert!(!core::mem::replace(&mut seen[idx], true));
    }
    assert_eq!(pool.queues.pop_any(&pool.links, 1_000), None);
    assert_eq!((pool.queues.waiting(), pool.queues.capped(), pool.queues.ready()), (0, 0, 0));
}

#[test]
fn the_search_for_whom_to_evict_is_cut_off_and_goes_on() {
    let links = VecLinks::new(1_000);
    let mut queues = BandQueues::new(1, 1_000, 1_000);
    for flow in 0..1_000 {
        queues.add_flow(flow, NONE);
        queues.enqueue(&links, flow, 0, flow);
    }
    // All but the last lane are idle again; the anonymous one always was.
    for idx in 0..999 {
        assert!(queues.remove(&links, idx));
    }
    for _ in 0..10 {
        assert_eq!((queues.pop_any(&links, 90), queues.waiting()), (None, 1));
    }
    assert_eq!(queues.pop_any(&links, 100), Some(999));
    assert_eq!((queues.pop_any(&links, 100), queues.waiting()), (None, 0));
}

#[test]
fn an_empty_band_has_no_front_and_nothing_to_take() {
    let links = VecLinks::new(4);
    let mut queues = BandQueues::new(2, 4, 0);
    queues.enqueue(&links, 3, 1, NONE);
    assert_eq!(queues.front(&links, 0, &NoCaps, &mut 1), Front::Empty);
    assert_eq!(queues.take_front(&links, 0, &NoCaps), None);
    assert_eq!(queues.ready(), 0b10);
}

#[test]
fn without_budget_a_capped_lane_stays_where_it_is() {
    let mut pool = Pool::new(1, 8, vec![0], 0);
    pool.enqueue(0, 0, 0);
    let full = |_: u32, _: u32| crate::queue::Room::TenantFull;
    assert_eq!(pool.queues.front(&pool.links, 0, &full, &mut 0), Front::Budget);
    assert_eq!((pool.queues.capped(), pool.queues.ready()), (0, 1));
}
