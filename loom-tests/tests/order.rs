//! First come, first served within a band: nobody gets a slot while an earlier one who may run waits, be it
//! in the band or still in the ring.
//!
//! LOCK is taken before the actors start and given back by one of them, so that the others' commands go
//! on the ring. That spares each model one preemption.
#![cfg(loom)]

use bandgate_core::Reason;
use bandgate_core::ring::command::{Command, CommandRing};
use bandgate_loom_tests::Bound;
use bandgate_loom_tests::world::{Got, HIGH, LOW, Spec, World, act, check_world};
use std::sync::Arc;

/// The second of two submits of one thread has a slot: then the first one has one, too.
fn in_order(w: &World, first: Got, second: Got) {
    if let Got::Waits(ticket) = first {
        w.saw("first in the ring");
        if second == Got::Slot {
            w.saw("second at once");
            w.not_overtaken(ticket);
        }
    }
}

/// Two submits of one thread beside a holder, one slot: the first may be in the ring when LOCK is clear
/// again, and the second must not take the pool-only path past it.
#[test]
fn o1_a_pool_only_admit_looks_at_the_ring() {
    check_world("o1", 300, Bound::new(3, 5), &["first in the ring"], |ghost| {
        let world = World::new(Spec::ONE, ghost);
        let held = world.hold();
        world.run([
            act(|w| {
                let first = w.submit(HIGH);
                in_order(w, first, w.submit(HIGH));
            }),
            act(|w| w.leave(held)),
        ]);
        world.finish();
    });
}

/// The same, both with LOCK: what is in the ring comes before one's own command.
#[test]
fn o2_the_ring_comes_before_the_own_command() {
    let spec = Spec { flows: &[4], ..Spec::ONE };
    check_world("o2", 300, Bound::new(3, 5), &["first in the ring"], move |ghost| {
        let world = World::new(spec, ghost);
        let held = world.hold();
        world.run([
            act(|w| {
                let first = w.submit_as(0, HIGH);
                in_order(w, first, w.submit_as(0, HIGH));
            }),
            act(|w| w.leave(held)),
        ]);
        world.finish();
    });
}

/// A command that does nothing any more, and one of the two slots free again: what a pusher needs who shall
/// only make a hole. Who waits behind the hole is not his concern, so the model looks after it in the end.
fn stale_command(world: &World) -> Command {
    assert_eq!((world.submit(HIGH), world.submit(HIGH)), (Got::Slot, Got::Slot));
    let Got::Waits(ticket) = world.submit(HIGH) else { panic!("two slots") };
    let held = world.hold();
    world.cancel(ticket);
    let command = world.pool().ring.drain().next().expect("LOCK is taken, so it went there");
    world.leave(held);
    world.abandon(ticket);
    world.release();
    command
}

/// With a hole: another pusher sleeps between claim and stamp, so the holder cannot see the first submit
/// behind him. One slot is free.
#[test]
fn o3_an_own_submit_queues_behind_a_hole() {
    let witnesses = &["first in the ring", "waiter granted"];
    check_world("o3", 500, Bound::new(2, 3), witnesses, |ghost| {
        let world = World::new(Spec { ring: 4, ..Spec::TWO }, ghost);
        let command = stale_command(&world);
        let held = world.hold();
        world.run([
            act(move |w| {
                w.begin();
                w.pool().ring.push(command).expect("there is room");
            }),
            act(|w| {
                let first = w.submit(HIGH);
                in_order(w, first, w.submit(HIGH));
            }),
            act(|w| w.leave(held)),
        ]);
        world.look();
        world.finish();
    });
}

/// The same for `try_admit`: with a hole it is `Busy`.
#[test]
fn t3_a_try_does_not_pass_a_hole() {
    check_world("t3", 500, Bound::new(2, 3), &["first in the ring", "busy"], |ghost| {
        let world = World::new(Spec { ring: 4, ..Spec::TWO }, ghost);
        let command = stale_command(&world);
        let held = world.hold();
        world.run([
            act(move |w| {
                w.begin();
                w.pool().ring.push(command).expect("there is room");
            }),
            act(|w| {
                let first = w.submit(HIGH);
                let second = w.try_admit(HIGH);
                if second == Got::Refused(Reason::Busy) {
                    w.saw("busy");
                }
                in_order(w, first, second);
            }),
            act(|w| w.leave(held)),
        ]);
        world.look();
        world.finish();
    });
}

/// Order across threads: the second submitter has heard (by an acquire load) that the first has returned.
#[test]
fn o4_who_submits_after_a_return_does_not_overtake() {
    let witnesses = &["first in the ring", "heard of it"];
    check_world("o4", 300, Bound::new(2, 3), witnesses, |ghost| {
        let world = World::new(Spec::ONE, ghost);
        let held = world.hold();
        let word = Arc::new(CommandRing::new(1));
        let heard = Arc::clone(&word);
        world.run([
            act(move |w| {
                if let Got::Waits(ticket) = w.submit(HIGH) {
                    w.saw("first in the ring");
                    word.push(Command { code: 1, arg: ticket.pack() }).expect("one command");
                }
            }),
            act(move |w| {
                if let Some(command) = heard.drain().next() {
                    w.saw("heard of it");
                    if w.submit(HIGH) == Got::Slot {
                        w.not_overtaken(w.unpack(command.arg));
                    }
                }
            }),
            act(|w| w.leave(held)),
        ]);
        world.finish();
    });
}

/// The same with slots scarce: the only one comes back meanwhile.
#[test]
fn o5_a_slot_that_comes_back_goes_to_the_first() {
    let witnesses = &["first in the ring", "waiter granted"];
    check_world("o5", 300, Bound::new(1, 2), witnesses, |ghost| {
        let world = World::new(Spec { ring: 4, ..Spec::ONE }, ghost);
        assert_eq!(world.submit(HIGH), Got::Slot);
        let held = world.hold();
        world.run([
            act(|w| {
                let first = w.submit(HIGH);
                in_order(w, first, w.submit(HIGH));
            }),
            act(World::release),
            act(|w| w.leave(held)),
        ]);
        world.finish();
    });
}

/// `try_admit` beside submits and releases: a slot, `Busy` or `WouldQueue`, and nothing left behind.
#[test]
fn t1_a_try_answers_and_posts_nothing() {
    let witnesses = &["slot", "busy", "would queue"];
    check_world("t1", 500, Bound::new(2, 3), witnesses, |ghost| {
        let world = World::new(Spec::ONE, ghost);
        assert_eq!(world.submit(HIGH), Got::Slot);
        world.run([
            act(|w| match w.try_admit(HIGH) {
                Got::Slot => w.saw("slot"),
                Got::Refused(Reason::Busy) => w.saw("busy"),
                Got::Refused(Reason::WouldQueue) => w.saw("would queue"),
                other => panic!("no answer to a try: {other:?}"),
            }),
            act(|w| {
                w.submit(HIGH);
            }),
            act(World::release),
        ]);
        world.finish();
    });
}

/// `try_admit` of the band above passes a waiter behind the gate, and that waiter is found when the slot
/// comes back.
#[test]
fn t2_a_try_of_the_band_above_passes_a_gated_waiter() {
    let witnesses = &["slot", "waiter granted"];
    check_world("t2", 300, Bound::new(3, 5), witnesses, |ghost| {
        let world = World::new(Spec::GATED, ghost);
        assert_eq!(world.submit(HIGH), Got::Slot);
        world.run([
            act(|w| {
                w.submit(LOW);
            }),
            act(|w| {
                if w.try_admit(HIGH) == Got::Slot {
                    w.saw("slot");
                    w.release();
                }
                w.release();
            }),
        ]);
        world.finish();
    });
}
