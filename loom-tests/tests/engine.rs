//! Models through the front door, and of a pool that died.
#![cfg(loom)]

use core::future::Future;
use core::panic::AssertUnwindSafe;
use core::task::{Context, Poll, Waker};
use std::panic::catch_unwind;
use std::pin::pin;
use std::sync::{Arc, Once};

use bandgate_core::admit::word::PoolWord;
use bandgate_core::clock::Clock;
use bandgate_core::sync::{Ordering, fence};
use bandgate_core::types::settings::PoolSettings;
use bandgate_core::{DriverKind, Engine, Reason, Request, Settings};
use bandgate_loom_tests::world::{Flag, Got, HIGH, Spec, Ticket, World, act, check_world, deep};
use bandgate_loom_tests::{Bound, Ghost};

/// One pool of one slot, no threads.
fn engine() -> Engine {
    let mut settings =
        Settings { driver: DriverKind::Host, max_requests: 4, ..Settings::default() };
    let mut pool = PoolSettings::new("p", 1);
    pool.ring_capacity = 2;
    pool.max_flows = 4;
    settings.pools = vec![pool];
    Engine::start_with_clock(&settings, Clock::manual()).expect("sound settings")
}

fn request(engine: &Engine) -> Request {
    let band = engine.pool("p").and_then(|pool| pool.band(0)).expect("it has one");
    Request::new(band).no_timeout()
}

/// A future is dropped after one poll while the permit comes back: the slot is not lost with it.
#[test]
fn m11_a_dropped_future_passes_its_slot_on() {
    check_world("m11", 100, Bound::new(3, 4), &["granted", "dropped"], |ghost| {
        let engine = engine();
        let (pool, request) = (engine.pool("p").expect("it has one"), request(&engine));
        let permit = pool.try_admit(&request).expect("a free slot").into_owned();
        let (p, g) = (pool.clone(), Arc::clone(ghost));
        let waiter = deep(move || {
            let mut context = Context::from_waker(Waker::noop());
            let mut future = pin!(p.admit(request));
            g.saw(match future.as_mut().poll(&mut context) {
                Poll::Ready(_) => "granted",
                Poll::Pending => "dropped",
            });
        });
        let holder = deep(move || drop(permit));
        waiter.join().expect("the waiter");
        holder.join().expect("the holder");
        engine.poll();
        let view = pool.view();
        assert_eq!((view.free, view.waiting), (1, 0), "slot lost or made");
    });
}

/// A permit is released while the last handle of the engine goes, on two threads: the slot comes back, and
/// the last of the two frees the memory once (loom counts references and reports what leaks).
#[test]
fn m15_a_permit_outlives_the_engine() {
    check_world("m15", 50, Bound::new(3, 4), &["released"], |ghost| {
        let engine = engine();
        let request = request(&engine);
        let pool = engine.pool("p").expect("it has one");
        let permit = pool.try_admit(&request).expect("a free slot").into_owned();
        drop(pool);
        let g = Arc::clone(ghost);
        let holder = deep(move || {
            drop(permit);
            g.saw("released");
        });
        let owner = deep(move || drop(engine));
        holder.join().expect("the holder");
        owner.join().expect("the owner");
    });
}

/// A panic of this text is part of the model; all others are reported. Called in the model, so that it comes
/// before the hook that reports them.
fn hush() {
    let before = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        let text = info.payload_as_str().unwrap_or_default();
        if !text.contains("released more than ran") {
            before(info);
        }
    }));
}

/// What a future does: registers, looks at its state, then at the pool. `true`: it went to sleep.
fn sleeps(w: &World, ticket: Ticket, waker: &Waker) -> bool {
    let (idx, _) = ticket.name();
    let _old = w.shard.slab().waker(idx).register(waker);
    // ORDERING: SeqCst fence; the waker's own read-modify-writes order this, where loom does not see them.
    fence(Ordering::SeqCst);
    w.waits(ticket) && !w.pool().gate.peek().has(PoolWord::DEAD)
}

fn dead_model(ghost: &Arc<Ghost>) {
    let world = World::new(Spec { flows: &[1], ..Spec::ONE }, ghost);
    assert_eq!(world.submit(HIGH), Got::Slot);
    let woken = Arc::new(Flag::default());
    let asleep = Arc::new(Flag::default());
    let (waker, mark) = (Waker::from(Arc::clone(&woken)), Arc::clone(&asleep));
    world.run([
        act(move |w| {
            let call = catch_unwind(AssertUnwindSafe(|| w.submit(HIGH)));
            match call {
                Ok(Got::Waits(ticket)) if sleeps(w, ticket, &waker) => mark.set(),
                Ok(Got::Waits(_)) => w.saw("told at once"),
                Ok(Got::Refused(reason)) => {
                    assert_eq!(reason, Reason::Poisoned);
                    w.saw("refused");
                }
                Ok(Got::Slot) => panic!("the slot is taken"),
                Err(_) => w.saw("panicked as holder"),
            }
        }),
        act(|w| {
            w.begin();
            // A release of what does not run: the assertion that says so fails under LOCK.
            let _ = catch_unwind(AssertUnwindSafe(|| w.shard.release(w.pool(), 0, 1, 1)));
        }),
    ]);
    assert!(world.pool().gate.peek().has(PoolWord::DEAD), "alive");
    if asleep.is_set() {
        assert!(woken.is_set(), "sleeps for ever beside a dead pool");
        world.saw("woken");
    }
    world.release();
    assert_eq!(world.submit(HIGH), Got::Refused(Reason::Poisoned));
    assert_eq!(world.try_admit(HIGH), Got::Refused(Reason::Poisoned));
    assert!(world.shard.view(world.pool()).closed);
}

/// A holder panics under LOCK beside a future that begins to wait: it is told, refused or woken, later
/// calls are refused, and releases are accepted and do nothing.
#[test]
fn dead_nobody_waits_in_a_pool_that_died() {
    static HUSH: Once = Once::new();
    let witnesses = &["refused", "woken"];
    check_world("dead", 50, Bound::new(3, 4), witnesses, |ghost| {
        HUSH.call_once(hush);
        dead_model(ghost);
    });
}
