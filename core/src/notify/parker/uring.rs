//! io_uring: a multishot poll stays armed on the eventfd, and a sleep is one `io_uring_enter` that
//! waits with its own timeout; there is no timer to set, move or cancel.
//!
//! The eventfd is not read: each write to it posts a completion, and that is the latch. Probed at
//! construction on a ring that is thrown away, because a poll belongs to the thread that armed it: the
//! ring in use is armed by the first sleeper. If that thread ends, the kernel cancels the poll and says
//! so; the next sleeper finds the answer and arms it anew.

use alloc::string::{String, ToString};
use core::fmt;
use std::io;
use std::os::fd::AsRawFd as _;
use std::sync::{Mutex, MutexGuard, PoisonError};

use io_uring::types::{Fd, SubmitArgs, Timespec};
use io_uring::{IoUring, cqueue, opcode};

use super::eventfd::EventFd;
use super::{Slept, Tally};

/// Enough for the poll and a few late completions; the kernel keeps what does not fit.
const ENTRIES: u32 = 8;

const NS_PER_S: u64 = 1_000_000_000;

/// How long the probe waits for a completion that is there already.
const PROBE_NS: u64 = NS_PER_S;

pub(super) struct Uring {
    bell: EventFd,
    /// Locked by the one sleeper for the whole sleep; wakers never touch it.
    state: Mutex<State>,
}

struct State {
    ring: IoUring,
    /// The poll is armed.
    armed: bool,
}

impl Uring {
    /// Gives the eventfd back, with the reason, if the kernel refuses anything that is needed.
    pub(super) fn new(bell: EventFd) -> Result<Self, (EventFd, String)> {
        let parker = match IoUring::new(ENTRIES) {
            Ok(ring) => Self { bell, state: Mutex::new(State { ring, armed: false }) },
            Err(e) => return Err((bell, alloc::format!("io_uring: {e}"))),
        };
        if let Err(why) = parker.probe() {
            return Err((parker.bell, alloc::format!("io_uring: {why}")));
        }
        match IoUring::new(ENTRIES) {
            Ok(ring) => {
                Ok(Self { bell: parker.bell, state: Mutex::new(State { ring, armed: false }) })
            }
            Err(e) => Err((parker.bell, alloc::format!("io_uring: {e}"))),
        }
    }

    /// Two wakes through one armed poll: everything a sleep needs.
    fn probe(&self) -> Result<(), String> {
        if !self.lock().ring.params().is_feature_ext_arg() {
            return Err("the kernel cannot wait with a timeout (5.11 can)".to_string());
        }
        let calls = Tally::new();
        for _ in 0..2 {
            self.bell.wake(&calls);
            let slept = self.sleep(Some(PROBE_NS), &calls);
            if slept != Slept::Woken || !self.lock().armed {
                return Err("multishot poll does not work (5.13 has it)".to_string());
            }
        }
        self.bell.drain(&calls);
        Ok(())
    }

    pub(super) fn bell(&self) -> &EventFd {
        &self.bell
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn drain(&self, calls: &Tally) {
        self.bell.drain(calls);
        let mut state = self.lock();
        calls.add(1);
        // Lets the kernel post what it holds back; a refusal leaves an early wake, no more.
        if state.ring.submit().is_ok() {
            state.reap();
        }
    }

    pub(super) fn sleep(&self, timeout_ns: Option<u64>, calls: &Tally) -> Slept {
        let mut state = self.lock();
        if state.reap() {
            return Slept::Woken;
        }
        if !state.armed {
            calls.add(1);
            if !state.arm(&self.bell) {
                drop(state);
                return self.bell.sleep(timeout_ns, calls);
            }
        }
        calls.add(1);
        let result = state.wait(timeout_ns);
        if state.reap() {
            return Slept::Woken;
        }
        match result {
            Err(e) if e.raw_os_error() == Some(libc::ETIME) => Slept::TimedOut,
            // EINTR, EAGAIN, EBUSY, or only the poll's own end: the caller looks again and comes back.
            _ => Slept::Interrupted,
        }
    }
}

impl State {
    /// Arms the poll by a system call of its own: a wait that submits would not tell that its time was
    /// over. `false`: refused now; the next sleep tries again.
    fn arm(&mut self, bell: &EventFd) -> bool {
        let events = u32::from(libc::POLLIN.unsigned_abs());
        let poll = opcode::PollAdd::new(Fd(bell.as_raw_fd()), events).multi(true).build();
        let mut queue = self.ring.submission();
        // SAFETY: a poll has no buffers, and the descriptor outlives the ring's use of it: the kernel
        // holds a reference of its own.
        let queued = unsafe { queue.push(&poll) }.is_ok();
        drop(queue);
        // Submitted late (EINTR, EBUSY) it is armed late; a second one would only wake twice.
        self.armed = queued && self.ring.submit().is_ok();
        self.armed
    }

    /// One system call: waits for one completion.
    fn wait(&mut self, timeout_ns: Option<u64>) -> io::Result<usize> {
        let Some(ns) = timeout_ns else {
            return self.ring.submit_and_wait(1);
        };
        let subsecond = u32::try_from(ns % NS_PER_S).unwrap_or(0);
        let time = Timespec::new().sec(ns / NS_PER_S).nsec(subsecond);
        self.ring.submitter().submit_with_args(1, &SubmitArgs::new().timespec(&time))
    }

    /// Takes all completions; whether one of them was a wake.
    fn reap(&mut self) -> bool {
        let mut woken = false;
        for entry in self.ring.completion() {
            woken |= entry.result() > 0;
            self.armed &= cqueue::more(entry.flags());
        }
        woken
    }
}

impl fmt::Debug for Uring {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Uring").field("bell", &self.bell).finish_non_exhaustive()
    }
}
