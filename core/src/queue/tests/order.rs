//! The ordering key near the end of its range.

use alloc::vec::Vec;

use crate::{
    queue::{BandQueues, Front, NoCaps, Room, VecLinks, heap::MAX_KEY, order::Order},
    types::NONE,
};

fn grant(queues: &mut BandQueues, links: &VecLinks) -> Option<u32> {
    match queues.front(links, 0, &NoCaps, &mut 1000) {
        Front::Ready(_) => queues.take_front(links, 0, &NoCaps),
        _ => None,
    }
}

#[test]
fn arrival_order_survives_a_new_base() {
    let links = VecLinks::new(64);
    let mut queues = BandQueues::new(1, 64, 8);
    for flow in 0..8 {
        queues.add_flow(flow, NONE);
    }
    // 20 arrive before the keys end, 20 after.
    queues.order = Order::starting_at(MAX_KEY - 19, 0);
    let idx: Vec<u32> = (0..40).map(|n| (n * 37 + 11) % 64).collect();
    for (n, &idx) in (0..).zip(&idx) {
        queues.enqueue(&links, idx, 0, (n * 5 + 3) % 9 % 8);
    }
    assert!(queues.order.base() > 0, "the base has moved");
    let got: Vec<u32> = core::iter::from_fn(|| grant(&mut queues, &links)).collect();
    assert_eq!(got, idx);
}

#[test]
fn who_waits_longer_than_the_keys_reach_stays_the_first() {
    let links = VecLinks::new(8);
    let mut queues = BandQueues::new(1, 8, 3);
    for flow in 0..3 {
        queues.add_flow(flow, 0);
    }
    queues.enqueue(&links, 5, 0, 2);
    let full = |_: u32, _: u32| Room::TenantFull;
    assert_eq!(queues.front(&links, 0, &full, &mut 1), Front::Empty);
    queues.order = Order::starting_at(MAX_KEY, 0);
    for (idx, flow) in [(4, 1), (3, 0), (2, 1)] {
        queues.enqueue(&links, idx, 0, flow);
    }
    queues.tenant_has_room(&links, 0);
    let got: Vec<u32> = core::iter::from_fn(|| grant(&mut queues, &links)).collect();
    assert_eq!(got, [5, 4, 3, 2]);
}

#[test]
fn those_who_wait_longer_than_the_keys_reach_keep_the_order_of_their_flow_and_come_first() {
    let links = VecLinks::new(16);
    let mut queues = BandQueues::new(1, 16, 2);
    queues.add_flow(0, NONE);
    queues.add_flow(1, NONE);
    for (idx, flow) in [(9, 0), (7, NONE), (8, 0), (6, NONE)] {
        queues.enqueue(&links, idx, 0, flow);
    }
    // The numbers go on far past 40 bits, in steps a base may take.
    for round in 1..=5 {
        let next = round * (MAX_KEY / 2 + 1) + 4;
        queues.order = Order::starting_at(next, queues.order.base());
        queues.rebase(&links);
        assert_eq!(queues.order.base(), next - MAX_KEY / 2);
    }
    queues.enqueue(&links, 1, 0, 1);
    queues.enqueue(&links, 2, 0, 0);
    let got: Vec<u32> = core::iter::from_fn(|| grant(&mut queues, &links)).collect();
    let place = |idx: u32| got.iter().position(|&it| it == idx).unwrap();
    assert!(place(9) < place(8) && place(7) < place(6));
    assert_eq!(got[4..], [1, 2]);
}
