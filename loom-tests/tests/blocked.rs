//! Waiters behind a cap, a gate or a size: whoever makes room finds them, whatever overlaps.
//!
//! In each model the forbidden end is a free slot beside a waiter who may run.
#![cfg(loom)]

use bandgate_loom_tests::Bound;
use bandgate_loom_tests::world::{Got, HIGH, LOW, Spec, World, act, check_world};

/// A waiter at the cap of its key, with slots to spare: the key's release finds it, pool-only traffic
/// beside.
#[test]
fn b1_a_release_of_the_key_finds_the_capped_waiter() {
    let spec = Spec { flows: &[1], ring: 4, ..Spec::TWO };
    check_world("b1", 500, Bound::new(2, 3), &["waiter granted"], move |ghost| {
        let world = World::new(spec, ghost);
        assert_eq!(world.submit_as(0, HIGH), Got::Slot);
        world.run([
            act(|w| {
                w.submit_as(0, HIGH);
            }),
            act(|w| w.release_as(0)),
            act(|w| w.use_once(w.submit(HIGH))),
        ]);
        world.finish();
    });
}

/// A waiter behind the gate; the release that opens it must take LOCK, because it sees BLOCKED.
#[test]
fn b2_a_release_opens_the_gate() {
    check_world("b2", 200, Bound::NONE, &["waiter granted"], |ghost| {
        let world = World::new(Spec::GATED, ghost);
        assert_eq!(world.submit(HIGH), Got::Slot);
        world.run([
            act(|w| {
                w.submit(LOW);
            }),
            act(World::release),
        ]);
        world.finish();
    });
}

/// The same, and a newcomer of the band above stays on the pool-only path meanwhile.
#[test]
fn b3_the_band_above_stays_fast_beside_a_gated_waiter() {
    let witnesses = &["fast", "waiter granted"];
    check_world("b3", 300, Bound::new(3, 5), witnesses, |ghost| {
        let world = World::new(Spec::GATED, ghost);
        assert_eq!(world.submit(HIGH), Got::Slot);
        world.run([
            act(|w| {
                w.submit(LOW);
            }),
            act(|w| {
                if w.admit_fast(HIGH) {
                    w.saw("fast");
                    w.release();
                }
                w.release();
            }),
        ]);
        world.finish();
    });
}

/// Two of the gated band, in order: the second must not pass the first when the gate opens.
#[test]
fn b4_the_same_band_does_not_pass() {
    let witnesses = &["waits", "waiter granted"];
    check_world("b4", 300, Bound::new(3, 5), witnesses, |ghost| {
        let world = World::new(Spec::GATED, ghost);
        assert_eq!(world.submit(HIGH), Got::Slot);
        world.run([
            act(|w| {
                if let Got::Waits(first) = w.submit(LOW) {
                    w.saw("waits");
                    if w.submit(LOW) == Got::Slot {
                        w.not_overtaken(first);
                    }
                }
            }),
            act(World::release),
        ]);
        world.finish();
    });
}

/// A detector opens the gate beside a submit: whoever comes second grants it.
#[test]
fn g1_opening_the_gate_decides() {
    let witnesses = &["granted under LOCK", "waiter granted"];
    check_world("g1", 100, Bound::new(3, 5), witnesses, |ghost| {
        let world = World::new(Spec::GATED, ghost);
        world.shard.set_saturation(world.pool(), Some(0.9));
        world.run([
            act(|w| {
                w.submit(LOW);
            }),
            act(|w| {
                w.begin();
                w.shard.set_saturation(w.pool(), Some(0.0));
            }),
        ]);
        world.finish();
    });
}

/// The gate closes beside a pool-only admit: an admit with the reserve of before fails at its CAS.
#[test]
fn g2_no_admit_behind_a_gate_that_was_closed() {
    check_world("g2", 20, Bound::NONE, &["admitted", "refused"], |ghost| {
        let world = World::new(Spec::GATED, ghost);
        world.run([
            act(|w| w.saw(if w.admit_fast(LOW) { "admitted" } else { "refused" })),
            act(|w| {
                w.begin();
                w.shard.set_saturation(w.pool(), Some(0.9));
                w.note_closed();
            }),
        ]);
        world.finish();
    });
}

/// Shrink below what runs, beside two releases: `free` goes below zero and the slots are not made up.
#[test]
fn z1_a_shrink_is_paid_by_releases() {
    check_world("z1", 300, Bound::new(1, 2), &["waits"], |ghost| {
        let world = World::new(Spec { ring: 4, ..Spec::TWO }, ghost);
        assert_eq!((world.submit(HIGH), world.submit(HIGH)), (Got::Slot, Got::Slot));
        world.run([
            act(World::release),
            act(|w| {
                w.release();
                if matches!(w.submit(HIGH), Got::Waits(_)) {
                    w.saw("waits");
                }
            }),
            act(|w| {
                w.begin();
                w.shard.resize(w.pool(), 1);
            }),
        ]);
        assert_eq!(world.settle().slots, 1);
        world.finish();
    });
}

/// Grow beside a submit to a full pool: whoever comes second grants it.
#[test]
fn z2_growing_decides() {
    let witnesses = &["granted under LOCK", "waiter granted"];
    check_world("z2", 100, Bound::new(3, 5), witnesses, |ghost| {
        let world = World::new(Spec::ONE, ghost);
        assert_eq!(world.submit(HIGH), Got::Slot);
        world.allow(2);
        world.run([
            act(|w| {
                w.submit(HIGH);
            }),
            act(|w| {
                w.begin();
                w.shard.resize(w.pool(), 2);
            }),
        ]);
        assert_eq!(world.settle().running, 2);
        world.finish();
    });
}

/// Shrink below what runs, then grow again, beside a release and a submit.
#[test]
fn z3_shrink_and_grow_keep_count() {
    check_world("z3", 300, Bound::new(3, 4), &["slot"], |ghost| {
        let world = World::new(Spec::TWO, ghost);
        assert_eq!((world.submit(HIGH), world.submit(HIGH)), (Got::Slot, Got::Slot));
        world.run([
            act(|w| {
                w.begin();
                w.shard.resize(w.pool(), 1);
                w.shard.resize(w.pool(), 2);
            }),
            act(|w| {
                w.release();
                if w.submit(HIGH) == Got::Slot {
                    w.saw("slot");
                }
            }),
        ]);
        assert_eq!(world.settle().slots, 2);
        world.finish();
    });
}

/// A resize beside a submit that takes LOCK: the size asked for is the size in the end.
#[test]
fn m13_a_size_asked_for_is_applied() {
    check_world("m13", 100, Bound::new(3, 5), &["waits", "slot"], |ghost| {
        let world = World::new(Spec::ONE, ghost);
        assert_eq!(world.submit(HIGH), Got::Slot);
        let held = world.hold();
        world.allow(2);
        world.run([
            act(|w| {
                w.begin();
                w.shard.resize(w.pool(), 2);
                w.saw(if w.submit(HIGH) == Got::Slot { "slot" } else { "waits" });
            }),
            act(|w| w.leave(held)),
        ]);
        assert_eq!(world.settle().slots, 2, "the size asked for is lost");
        world.finish();
    });
}

/// Two keys of one tenant with a cap of one: key and tenant are taken and given back together.
#[test]
fn m07_key_and_tenant_are_one_step() {
    let spec = Spec { flows: &[1, 1], tenant: 1, ring: 4, ..Spec::TWO };
    check_world("m07", 300, Bound::new(2, 3), &["waiter granted"], move |ghost| {
        let world = World::new(spec, ghost);
        assert_eq!(world.submit_as(0, HIGH), Got::Slot);
        world.run([
            act(|w| {
                w.submit_as(1, HIGH);
            }),
            act(|w| w.release_as(0)),
            act(|w: &World| {
                w.submit_as(0, HIGH);
            }),
        ]);
        world.finish();
    });
}
