//! What is left over: the ring is full, the budget is spent, the keeper sleeps. Nothing stays behind.
//!
//! The budget is two under loom. LOCK is taken before the actors start, and what is to be in the ring is
//! put there then.
#![cfg(loom)]

use bandgate_core::Reason;
use bandgate_loom_tests::Bound;
use bandgate_loom_tests::world::{Got, HIGH, Spec, Ticket, World, act, check_world};

/// Fills the pool's slots, then queues so many.
fn crowd<const N: usize>(world: &World, slots: u32) -> [Ticket; N] {
    for _ in 0..slots {
        assert_eq!(world.submit(HIGH), Got::Slot);
    }
    core::array::from_fn(|_| match world.submit(HIGH) {
        Got::Waits(ticket) => ticket,
        other => panic!("the pool is full: {other:?}"),
    })
}

fn poll(w: &World) {
    w.begin();
    w.shard.poll(w.shard.clock().now_ns());
}

/// A ring of one is full: a release and a cancel are posted, and the holder finds them.
#[test]
fn u1_what_is_posted_is_found() {
    check_world("u1", 300, Bound::new(1, 2), &["waiter granted", "cancelled"], |ghost| {
        let world = World::new(Spec { ring: 1, ..Spec::TWO }, ghost);
        let [first, _] = crowd(&world, 2);
        let held = world.hold();
        world.release();
        world.run([
            act(World::release),
            act(move |w| {
                w.cancel(first);
            }),
            act(|w| w.leave(held)),
        ]);
        world.settle();
        if world.evicted(first) == Some(Reason::Cancelled) {
            world.saw("cancelled");
        }
        world.finish();
    });
}

/// A node posted again while the holder is between its word and its link, with another behind it.
#[test]
fn u2_a_node_posted_again_keeps_the_chain() {
    check_world("u2", 300, Bound::new(2, 3), &["waiter granted"], |ghost| {
        let world = World::new(Spec { ring: 1, ..Spec::TWO }, ghost);
        let [_, second] = crowd(&world, 2);
        let held = world.hold();
        // The ring is full; the cancel is posted first, so it is the end of the chain.
        world.cancel(second);
        world.cancel(second);
        world.run([
            act(|w| {
                w.release();
                w.release();
            }),
            act(|w| w.leave(held)),
        ]);
        world.finish();
    });
}

/// The ring is full: a submit is refused and leaves nothing behind, a release is not.
#[test]
fn u3_a_full_ring_refuses_submits_only() {
    check_world("u3", 200, Bound::new(1, 2), &["busy", "waiter granted"], |ghost| {
        let world = World::new(Spec { ring: 1, ..Spec::TWO }, ghost);
        let [_] = crowd(&world, 2);
        let held = world.hold();
        world.release();
        world.run([
            act(|w| {
                if w.submit(HIGH) == Got::Refused(Reason::Busy) {
                    w.saw("busy");
                }
            }),
            act(World::release),
            act(|w| w.leave(held)),
        ]);
        world.finish();
    });
}

/// Two releases spend the holder's budget, so the grants are left to the keeper: unlock first, then
/// schedule; the keeper clears the flag first, then turns.
#[test]
fn s1_the_keeper_goes_on_where_the_budget_ended() {
    check_world("s1", 50, Bound::new(3, 4), &["waiter granted", "scheduled"], |ghost| {
        let world = World::new(Spec::TWO, ghost);
        let [_, _] = crowd(&world, 2);
        let held = world.hold();
        world.release();
        world.release();
        world.run([act(|w| w.leave(held)), act(poll)]);
        world.finish();
    });
}

/// The keeper's own turn spends its budget, too, while another holder spends his.
#[test]
fn s2_two_holders_spend_their_budgets() {
    check_world("s2", 300, Bound::new(2, 3), &["waiter granted", "scheduled"], |ghost| {
        let world = World::new(Spec { slots: 3, ring: 4, slab: 6, ..Spec::ONE }, ghost);
        let [_, _, _] = crowd(&world, 3);
        let held = world.hold();
        world.release();
        world.release();
        world.release();
        world.run([
            act(|w| w.leave(held)),
            act(poll),
            act(|w| {
                w.submit(HIGH);
            }),
        ]);
        world.finish();
    });
}

/// Work is left and slots are free: pool-only admits stay closed, or they would overtake.
#[test]
fn s3_left_work_closes_the_pool_only_path() {
    check_world("s3", 100, Bound::new(3, 4), &["waiter granted", "waits"], |ghost| {
        let world = World::new(Spec::TWO, ghost);
        let [first, _] = crowd(&world, 2);
        let held = world.hold();
        world.release();
        world.release();
        world.run([
            act(|w| w.leave(held)),
            act(move |w| match w.submit(HIGH) {
                Got::Slot => w.not_overtaken(first),
                Got::Waits(_) => w.saw("waits"),
                Got::Refused(_) => w.saw("refused"),
            }),
        ]);
        world.finish();
    });
}

/// Two cancels are posted while the holder takes another from the ring; his budget ends in the middle of
/// the chain, and what is left of it is gone on with.
#[test]
fn chain_a_cut_off_chain_is_gone_on_with() {
    check_world("chain", 100, Bound::new(3, 4), &["scheduled"], |ghost| {
        let world = World::new(Spec { ring: 1, ..Spec::ONE }, ghost);
        let [first, second, third] = crowd(&world, 1);
        let held = world.hold();
        world.cancel(first);
        world.run([
            act(move |w| {
                w.cancel(second);
                w.cancel(third);
            }),
            act(|w| w.leave(held)),
        ]);
        assert_eq!(world.settle().waiting, 0, "cancel lost");
        world.finish();
    });
}

/// The keeper goes to sleep while a holder hands over: it looks again, or it is woken. Else it sleeps for
/// ever, which loom reports.
#[test]
fn k1_the_keeper_sleeps_or_works() {
    check_world("k1", 50, Bound::new(3, 5), &["waiter granted"], |ghost| {
        let world = World::new(Spec::TWO, ghost);
        let [_, _] = crowd(&world, 2);
        let held = world.hold();
        world.release();
        world.release();
        world.run([
            act(|w| w.leave(held)),
            act(|w| {
                w.sleeper.bell.park(|| w.shard.has_work(), None);
                poll(w);
            }),
        ]);
        world.finish();
    });
}
