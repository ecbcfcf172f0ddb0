//! The pool word and its LOCK: no slot is lost or made, nothing is stranded.
#![cfg(loom)]

use bandgate_loom_tests::Bound;
use bandgate_loom_tests::world::{Got, HIGH, Spec, World, act, check_world};

/// Two callers admit and release without a flow, one slot. Either may get it first, the other gets it
/// after him or waits; a slot that came back beside a waiter is his.
#[test]
fn w1_pool_only_steps_beside_a_holder() {
    let witnesses = &["waiter granted", "command from ring or list"];
    check_world("w1", 500, Bound::new(4, 5), witnesses, |ghost| {
        let world = World::new(Spec::ONE, ghost);
        world.run([0, 1].map(|_| act(|w| w.use_once(w.submit(HIGH)))));
        world.finish();
    });
}

/// Three callers, two slots.
#[test]
fn w2_three_callers_share_two_slots() {
    check_world("w2", 500, Bound::new(2, 3), &["waiter granted"], |ghost| {
        let world = World::new(Spec::TWO, ghost);
        world.run([0, 1, 2].map(|_| act(|w| w.use_once(w.submit(HIGH)))));
        world.finish();
    });
}

/// Every call takes LOCK or leaves its command to who has it: the flow keeps them off the pool-only path.
#[test]
fn l1_a_command_is_run_by_its_caller_or_by_the_holder() {
    let spec = Spec { flows: &[2], ..Spec::ONE };
    let witnesses = &["waiter granted", "command from ring or list"];
    check_world("l1", 500, Bound::new(3, 5), witnesses, move |ghost| {
        let world = World::new(spec, ghost);
        world.run([0, 1].map(|_| {
            act(|w: &World| match w.submit_as(0, HIGH) {
                Got::Slot => w.release_as(0),
                waits => w.use_once(waits),
            })
        }));
        world.finish();
    });
}

/// The loser's second try beside pool-only steps: a count that changed is not a LOCK that is taken.
#[test]
fn l2_a_changed_count_is_not_a_taken_lock() {
    let spec = Spec { flows: &[2], ..Spec::TWO };
    check_world("l2", 300, Bound::new(3, 5), &["granted under LOCK"], move |ghost| {
        let world = World::new(spec, ghost);
        world.run([
            act(|w| {
                w.submit_as(0, HIGH);
            }),
            act(|w| w.use_once(w.submit(HIGH))),
        ]);
        world.finish();
    });
}

/// Three callers, one slot, nobody waits: never two at once.
#[test]
fn m06_one_slot_has_one_user() {
    check_world("m06", 300, Bound::new(2, 3), &["had it", "would queue"], |ghost| {
        let world = World::new(Spec::ONE, ghost);
        world.run([0, 1, 2].map(|_| {
            act(|w: &World| match w.try_admit(HIGH) {
                Got::Slot => {
                    w.saw("had it");
                    w.release();
                }
                Got::Refused(_) => w.saw("would queue"),
                Got::Waits(_) => panic!("try_admit queues nobody"),
            })
        }));
        world.finish();
    });
}

/// Cancel against grant: one of them ends the request. Cancelled, and the slot stays free; or granted.
#[test]
fn x1_an_entry_has_one_outcome() {
    check_world("x1", 100, Bound::new(3, 5), &["cancelled", "granted"], |ghost| {
        let world = World::new(Spec::ONE, ghost);
        assert_eq!(world.submit(HIGH), Got::Slot);
        let Got::Waits(ticket) = world.submit(HIGH) else { panic!("one slot") };
        world.run([
            act(move |w| {
                w.cancel(ticket);
            }),
            act(World::release),
        ]);
        world.saw(if world.settle().running == 1 { "granted" } else { "cancelled" });
        world.finish();
    });
}
