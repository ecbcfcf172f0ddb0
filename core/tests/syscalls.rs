//! No system call on the fast path: the kernel kills whoever makes one (seccomp, strict mode: only read,
//! write and the exit of a thread are left).
#![allow(clippy::unwrap_used, reason = "a test that cannot go on may panic")]
#![cfg(all(target_os = "linux", not(any(loom, miri))))]

mod common;

use core::sync::atomic::{AtomicU32, Ordering};
use core::time::Duration;
use std::time::Instant;

use bandgate_core::types::settings::DriverKind;
use bandgate_core::{Pool, Reason, Request, Settings};

use common::{host, poll_once, settings};

const ROUNDS: u32 = 100_000;

/// From here on any system call but read, write and exit ends the calling thread.
fn forbid_system_calls() {
    // SAFETY: changes only what this thread may do from now on.
    let answer = unsafe { libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_STRICT) };
    assert_eq!(answer, 0, "seccomp was refused");
}

/// Ends this thread by the one system call that is left (libc's exit makes another one).
fn exit_thread(code: i32) -> ! {
    // SAFETY: does not return.
    unsafe { libc::syscall(libc::SYS_exit, code) };
    unreachable!("exit does not return")
}

/// Runs `run` in a child; its wait status.
fn in_child(run: impl FnOnce()) -> i32 {
    // SAFETY: the child makes an engine of its own and leaves by an exit that runs nothing of ours.
    let child = unsafe { libc::fork() };
    assert!(child >= 0, "fork was refused");
    if child == 0 {
        let ran = std::panic::catch_unwind(core::panic::AssertUnwindSafe(run));
        exit_thread(i32::from(ran.is_err()));
    }
    let (mut status, start) = (0, Instant::now());
    loop {
        // SAFETY: `status` lives across the call; `child` is ours and not waited for elsewhere.
        if unsafe { libc::waitpid(child, &raw mut status, libc::WNOHANG) } == child {
            return status;
        }
        if start.elapsed() > Duration::from_secs(60) {
            // SAFETY: a signal to our own child.
            unsafe { libc::kill(child, libc::SIGKILL) };
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Seccomp may be forbidden itself, in a sandbox: then there is nothing to measure with.
fn is_available() -> bool {
    in_child(forbid_system_calls) == 0
}

fn pool_settings() -> Settings {
    let mut settings = settings(DriverKind::Host, 4, &[10]);
    settings.admission_timeout = None;
    settings.tenants = vec![common::tenant("t", 3)];
    settings
}

/// What `look` finds at last. Without sleeping, which would be a system call.
fn soon<T>(mut look: impl FnMut() -> Option<T>) -> T {
    for _ in 0..100_000_000 {
        if let Some(found) = look() {
            return found;
        }
        core::hint::spin_loop();
    }
    panic!("it never came");
}

/// Admits and releases, without and with a flow, a refusal, and a hand-off to a waiter.
fn fast_path(pool: &Pool, rounds: u32) {
    let flowless = Request::new(pool.band(10).unwrap());
    let flow = flowless.flow(pool.flow("", "t", "k").unwrap());
    let mut waiting = pool.admit(flow);
    forbid_system_calls();
    for _ in 0..rounds {
        drop(pool.try_admit(&flowless));
        drop(pool.try_admit(&flow));
    }
    let running = [&flowless, &flow, &flow, &flow].map(|request| pool.try_admit(request));
    if running.iter().all(Result::is_ok) {
        // While another thread decides the answer is `Busy`, and a release is left to it: both pass by themselves.
        let refused = || Some(pool.try_admit(&flow).err()).filter(|it| *it != Some(Reason::Busy));
        assert_eq!(soon(refused), Some(Reason::WouldQueue));
        assert!(poll_once(&mut waiting).is_pending());
        drop(running);
        soon(|| poll_once(&mut waiting).is_ready().then_some(()));
    }
}

// INV: I54
#[test]
fn the_fast_path_makes_no_system_call() {
    if !is_available() {
        eprintln!("seccomp is refused here: not measured");
        return;
    }
    // The filter works: a child that asks for its parent's number dies.
    let forbidden = in_child(|| {
        forbid_system_calls();
        // SAFETY: a plain system call.
        unsafe { libc::syscall(libc::SYS_getppid) };
    });
    assert!(libc::WIFSIGNALED(forbidden), "status {forbidden}");
    let status = in_child(|| {
        let (_engine, pool, _clock) = host(&pool_settings());
        fast_path(&pool, ROUNDS);
        exit_thread(0);
    });
    assert_eq!(status, 0, "a system call, or a wrong answer");
}

// INV: I54
#[test]
fn contended_admits_and_releases_make_no_system_call_either() {
    if !is_available() {
        eprintln!("seccomp is refused here: not measured");
        return;
    }
    let status = in_child(|| {
        let (engine, pool, _clock) = host(&pool_settings());
        static DONE: AtomicU32 = AtomicU32::new(0);
        for _ in 0..2 {
            let pool = pool.clone();
            std::thread::spawn(move || {
                fast_path(&pool, ROUNDS / 4);
                DONE.fetch_add(1, Ordering::SeqCst);
                // The thread's own end would unmap its stack.
                exit_thread(0);
            });
        }
        let start = Instant::now();
        while DONE.load(Ordering::SeqCst) < 2 {
            // A thread that made a system call is gone without a word.
            if start.elapsed() > Duration::from_secs(30) {
                // SAFETY: ends the child without running anything of the parent's.
                unsafe { libc::_exit(2) };
            }
            engine.poll();
            std::thread::sleep(Duration::from_millis(1));
        }
        // SAFETY: as above.
        unsafe { libc::_exit(0) };
    });
    assert_eq!(status, 0, "a system call, or a wrong answer");
}
