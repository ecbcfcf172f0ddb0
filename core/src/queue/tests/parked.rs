//! The leftist heap: order, shape, steps.

use alloc::{vec, vec::Vec};

use proptest::prelude::*;

use crate::{
    queue::{
        lanes::{Lane, Lanes},
        parked,
    },
    types::NONE,
};

/// Checks links, order and ranks below `lane`; returns how many lanes there are.
fn check(lanes: &Lanes, lane: u32, parent: u32) -> (u32, u8) {
    if lane == NONE {
        return (0, 0);
    }
    let it = lanes.get(lane);
    assert_eq!(it.at, parent);
    assert!(parent == NONE || lanes.get(parent).seq < it.seq);
    let (left, deep) = check(lanes, it.left, lane);
    let (right, shallow) = check(lanes, it.right, lane);
    assert!(deep >= shallow, "leftist");
    assert_eq!(it.rank, shallow + 1);
    (left + right + 1, it.rank)
}

proptest! {
    #![proptest_config(super::cases(200))]

    #[test]
    fn it_stays_leftist_and_each_operation_takes_logarithmic_steps(
        ops in proptest::collection::vec((any::<prop::sample::Index>(), 0..4_u8), 1..300),
        seed in any::<u64>(),
    ) {
        let mut lanes = Lanes::new(1);
        let (mut root, mut model) = (NONE, Vec::<u32>::new());
        for (n, (pick, kind)) in (1_u64..).zip(ops) {
            let before = lanes.steps;
            if kind > 0 || model.is_empty() {
                let lane = lanes.allocate();
                *lanes.get_mut(lane) = Lane::new(0, 0, 0);
                // Distinct, in no order: odd multiples are a permutation of 64 bits.
                lanes.get_mut(lane).seq = (n ^ seed).wrapping_mul(0x9e37_79b9_7f4a_7c15);
                root = parked::insert(&mut lanes, root, lane);
                model.push(lane);
            } else {
                let lane = model.swap_remove(pick.index(model.len()));
                root = parked::remove(&mut lanes, root, lane);
                lanes.free(lane);
            }
            let log = u64::from((model.len() + 2).ilog2()) + 1;
            prop_assert!(lanes.steps - before <= 6 * log, "{} steps", lanes.steps - before);
            prop_assert_eq!(check(&lanes, root, NONE).0 as usize, model.len());
        }
        let mut order = vec![];
        while root != NONE {
            order.push(lanes.get(root).seq);
            root = parked::remove(&mut lanes, root, root);
        }
        prop_assert!(order.is_sorted());
        prop_assert_eq!(order.len(), model.len());
    }
}
