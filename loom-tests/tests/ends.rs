//! How a request ends: grant, cancel, expiry, abandon, shutdown. One outcome each, and a slot that nobody
//! wants goes on.
#![cfg(loom)]

use bandgate_core::Reason;
use bandgate_core::admit::word::PoolWord;
use bandgate_loom_tests::Bound;
use bandgate_loom_tests::world::{Got, HIGH, Spec, Ticket, World, act, check_world};

fn waits(got: Got) -> Ticket {
    match got {
        Got::Waits(ticket) => ticket,
        other => panic!("the pool is full: {other:?}"),
    }
}

/// A waiter's owner leaves while the slot comes back: the next one gets it, whoever was first.
#[test]
fn c1_an_abandoned_grant_goes_to_the_next() {
    check_world("c1", 200, Bound::new(3, 5), &["waiter granted"], |ghost| {
        let world = World::new(Spec::ONE, ghost);
        assert_eq!(world.submit(HIGH), Got::Slot);
        let (first, second) = (waits(world.submit(HIGH)), waits(world.submit(HIGH)));
        world.run([act(move |w| w.abandon(first)), act(World::release)]);
        world.settle();
        assert!(!world.waits(second), "the slot did not go on");
        world.finish();
    });
}

/// Cancel, expiry and grant of one request: one of the three.
#[test]
fn m08_cancel_expiry_and_grant_have_one_winner() {
    let witnesses = &["cancelled", "expired", "granted"];
    check_world("m08", 300, Bound::new(1, 2), witnesses, |ghost| {
        let world = World::new(Spec { ring: 4, ..Spec::ONE }, ghost);
        assert_eq!(world.submit(HIGH), Got::Slot);
        let ticket = waits(world.submit_until(1_000_000));
        world.run([
            act(move |w| {
                w.cancel(ticket);
            }),
            act(World::release),
            act(|w| {
                w.begin();
                w.shard.poll(3_000_000);
            }),
        ]);
        let view = world.settle();
        match world.evicted(ticket) {
            Some(Reason::Cancelled) => world.saw("cancelled"),
            Some(Reason::Deadline) => world.saw("expired"),
            Some(other) => panic!("evicted as {other}"),
            None => {
                assert_eq!(view.running, 1, "no outcome");
                world.saw("granted");
            }
        }
        world.finish();
    });
}

/// The ring holds a submit and is full: its cancel is posted and overtakes it. Cancelled all the same.
#[test]
fn c3_a_cancel_overtakes_its_own_submit() {
    check_world("c3", 50, Bound::new(3, 5), &["in the ring"], |ghost| {
        let world = World::new(Spec { ring: 1, ..Spec::ONE }, ghost);
        assert_eq!(world.submit(HIGH), Got::Slot);
        let held = world.hold();
        world.run([
            act(|w| {
                let ticket = waits(w.submit(HIGH));
                if !w.pool().ring.is_empty() {
                    w.saw("in the ring");
                }
                w.cancel(ticket);
            }),
            act(|w| w.leave(held)),
        ]);
        let view = world.settle();
        assert_eq!((view.waiting, view.running), (0, 1), "cancel lost");
        world.finish();
    });
}

/// A late cancel while its entry ends and serves the next request: the next one is not struck.
#[test]
fn m09_a_stale_cancel_does_not_strike_the_next_request() {
    let witnesses = &["cancelled in time", "used again"];
    check_world("m09", 200, Bound::new(3, 5), witnesses, |ghost| {
        let world = World::new(Spec { slab: 1, ..Spec::ONE }, ghost);
        assert_eq!(world.submit(HIGH), Got::Slot);
        let first = waits(world.submit(HIGH));
        world.run([
            act(move |w| {
                w.cancel(first);
            }),
            act(move |w| {
                w.release();
                match w.collect(first) {
                    Some(Ok(())) => {}
                    Some(Err(_)) => return w.saw("cancelled in time"),
                    None => return,
                }
                if let Got::Waits(second) = w.submit(HIGH) {
                    w.saw("used again");
                    w.expect_waiting(second);
                }
            }),
        ]);
        world.settle();
        world.finish();
    });
}

/// A permit is released on a thread that did not admit it, while its slot is asked for.
#[test]
fn m10_a_foreign_release_finds_the_waiter() {
    check_world("m10", 100, Bound::new(3, 5), &["waiter granted"], |ghost| {
        let world = World::new(Spec::ONE, ghost);
        assert_eq!(world.submit(HIGH), Got::Slot);
        world.run([
            act(|w| {
                w.submit(HIGH);
            }),
            act(World::release),
        ]);
        assert_eq!(world.settle().running, 1, "free slot beside a waiter");
        world.finish();
    });
}

/// Drain beside a submit and a release: who waits is granted, and who submits after he has seen the pool
/// closed is refused, in the ring as well.
#[test]
fn closed_nobody_is_admitted_after_a_drain() {
    let witnesses = &["refused at once", "evicted", "before"];
    check_world("closed", 300, Bound::new(3, 4), witnesses, |ghost| {
        let world = World::new(Spec::TWO, ghost);
        world.run([
            act(|w| {
                w.begin();
                w.shard.drain(w.pool());
                w.note_closed();
                w.shard.view(w.pool());
            }),
            act(|w| {
                if !w.pool().gate.peek().has(PoolWord::CLOSED) {
                    w.saw("before");
                    w.admit_fast(HIGH);
                    return;
                }
                match w.submit(HIGH) {
                    Got::Slot => panic!("admitted after the drain"),
                    Got::Waits(ticket) => w.expect_evicted(ticket),
                    Got::Refused(reason) => {
                        assert_eq!(reason, Reason::ShuttingDown);
                        w.saw("refused at once");
                    }
                }
            }),
        ]);
        world.settle();
        world.finish();
    });
}

/// A drain finds a hole in the ring: the submit stamped behind it was accepted before, and keeps its place.
#[test]
fn drain_a_submit_behind_a_hole_is_not_refused() {
    let witnesses = &["accepted behind a hole", "accepted"];
    check_world("drain", 100, Bound::new(2, 3), witnesses, |ghost| {
        let world = World::new(Spec { ring: 4, ..Spec::ONE }, ghost);
        assert_eq!(world.submit(HIGH), Got::Slot);
        let held = world.hold();
        world.run([
            act(|w| {
                w.submit(HIGH);
            }),
            act(move |w| {
                // LOCK is taken: it goes on the ring, before the drain is asked for.
                let ticket = waits(w.submit(HIGH));
                w.expect_waiting(ticket);
                let is_behind = !w.pool().ring.is_empty() && !w.pool().ring.has_stamped();
                w.saw(if is_behind { "accepted behind a hole" } else { "accepted" });
                w.shard.drain(w.pool());
                w.leave(held);
            }),
        ]);
        world.settle();
        world.finish();
    });
}

/// Shutdown beside a submit and a release: every waiter has one outcome, nobody is left.
#[test]
fn closed_a_shutdown_ends_every_wait() {
    let witnesses = &["evicted", "granted before"];
    check_world("shutdown", 300, Bound::new(1, 2), witnesses, |ghost| {
        let world = World::new(Spec { ring: 4, ..Spec::ONE }, ghost);
        assert_eq!(world.submit(HIGH), Got::Slot);
        let first = waits(world.submit(HIGH));
        world.run([
            act(|w| {
                w.begin();
                w.shard.shut_down(w.pool());
            }),
            act(|w| {
                w.submit(HIGH);
            }),
            act(World::release),
        ]);
        assert_eq!(world.settle().waiting, 0, "waits for ever");
        let evicted = world.evicted(first) == Some(Reason::ShuttingDown);
        world.saw(if evicted { "evicted" } else { "granted before" });
        world.finish();
    });
}
