//! A forked child has the engine's memory and none of its threads.

use core::time::Duration;
use std::time::Instant;

use bandgate_core::types::settings::DriverKind;
use bandgate_core::{CancelAnswer, Engine, Permit, Pool, Reason, Request, Ticket};

use super::common::{host, poll_once, queued, settings, start};
use super::{DRIVERS, alone};

/// What the child has of its parent.
struct Inherited<'e> {
    engine: &'e Engine,
    pool: &'e Pool,
    queue: &'e bandgate_core::CompletionQueue,
    running: Permit<'e>,
    waiting: bandgate_core::Admit<'e>,
    ticket: Ticket,
}

/// Runs in the child; the number of the first wrong answer, or 0.
fn in_child(inherited: Inherited<'_>) -> i32 {
    let Inherited { engine, pool, queue, running, mut waiting, ticket } = inherited;
    let request = Request::new(pool.band(0).unwrap());
    let forked = Some(Reason::Forked);
    let waiting_is_told = match poll_once(&mut waiting) {
        core::task::Poll::Ready(answer) => answer.err() == forked,
        core::task::Poll::Pending => false,
    };
    drop(waiting);
    let answers = [
        pool.try_admit(&request).err() == forked,
        pool.submit(&request, queue, 9).err() == forked,
        pool.admit_blocking(request, None).err() == forked,
        pool.flow("", "new", "").err() == forked,
        pool.cancel(ticket) == CancelAnswer::Stale,
        !pool.resize(3) && !pool.set_saturation(Some(0.5)),
        waiting_is_told,
        engine.poll() == bandgate_core::Progress::default(),
        pool.view().closed,
        engine.completion_queue(4).is_err(),
        !queue.wait(None),
        engine.drain(Duration::from_secs(1)),
    ];
    drop(running);
    engine.shutdown();
    if let Some(wrong) = answers.iter().position(|right| !right) {
        return i32::try_from(wrong + 1).unwrap();
    }
    // An engine of its own works.
    let (own, pool, _clock) = host(&settings(DriverKind::Host, 1, &[]));
    let works = pool.try_admit(&Request::new(pool.band(0).unwrap())).is_ok();
    drop(own);
    if works { 0 } else { 99 }
}

fn fork(run: impl FnOnce() -> i32) -> libc::pid_t {
    // SAFETY: the child calls the engine, which touches no lock of a thread that is gone (that is the
    // test), and leaves by `_exit`.
    let child = unsafe { libc::fork() };
    assert!(child >= 0, "fork was refused");
    if child == 0 {
        let code = std::panic::catch_unwind(core::panic::AssertUnwindSafe(run)).unwrap_or(98);
        // SAFETY: ends the child without running anything of the parent's.
        unsafe { libc::_exit(code) };
    }
    child
}

/// The child's exit code; a child that hangs is killed and fails the test.
fn wait(child: libc::pid_t) -> i32 {
    let (mut status, start) = (0, Instant::now());
    loop {
        // SAFETY: `status` lives across the call; `child` is ours and not waited for elsewhere.
        let waited = unsafe { libc::waitpid(child, &raw mut status, libc::WNOHANG) };
        if waited == child {
            assert!(libc::WIFEXITED(status), "the child was killed: status {status}");
            return libc::WEXITSTATUS(status);
        }
        if start.elapsed() > Duration::from_secs(10) {
            // SAFETY: a signal to our own child.
            unsafe { libc::kill(child, libc::SIGKILL) };
            panic!("the child hangs");
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

// INV: I49
#[test]
fn a_forked_child_is_told_at_once_even_if_the_lock_was_held_and_its_parent_goes_on() {
    let _alone = alone();
    for driver in DRIVERS {
        let (engine, pool) = start(&settings(driver, 1, &[]));
        let queue = engine.completion_queue(8).unwrap();
        let request = Request::new(pool.band(0).unwrap()).no_timeout();
        let running = pool.try_admit(&request).unwrap();
        let ticket = queued(pool.submit(&request, &queue, 1).unwrap());
        let mut waiting = pool.admit(request);
        assert!(poll_once(&mut waiting).is_pending());
        super::script::until(&engine, driver, || pool.view().waiting == 2);
        let inherited =
            Inherited { engine: &engine, pool: &pool, queue: &queue, running, waiting, ticket };
        // Parent and child both own a copy; only the parent's is the engine's.
        let mut inherited = Some(inherited);
        let mut child = -1;
        // In the child's copy the lock stays held for ever.
        while !pool.pause_inside_turn(|| child = fork(|| in_child(inherited.take().unwrap()))) {
            std::thread::yield_now();
        }
        assert_eq!(wait(child), 0, "{driver:?}: number of the wrong answer");
        // The child gave nothing back and took nothing: the parent's request is granted by its release.
        assert!(queue.poll().is_none());
        assert_eq!((pool.view().running, pool.view().waiting), (1, 2));
        let Inherited { running, waiting, .. } = inherited.take().unwrap();
        drop(running);
        assert!(queue.wait(Some(Duration::from_secs(10))));
        drop(queue.poll().unwrap().outcome.unwrap());
        drop(waiting);
        super::script::until(&engine, driver, || pool.view().free == 1);
    }
}
