//! An eventfd as the latch, ppoll as the sleep: two system calls a sleep, one a wake.

use core::ptr;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};

use super::{Slept, Tally};

const NS_PER_S: u64 = 1_000_000_000;

/// A non-blocking eventfd; closed when dropped.
#[derive(Debug)]
pub(super) struct EventFd(OwnedFd);

impl EventFd {
    pub(super) fn new() -> io::Result<Self> {
        // SAFETY: no pointers; the result is checked.
        let fd = unsafe { libc::eventfd(0, libc::EFD_CLOEXEC | libc::EFD_NONBLOCK) };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: `fd` is open, was made one line above, and nobody else has it.
        Ok(Self(unsafe { OwnedFd::from_raw_fd(fd) }))
    }

    pub(super) fn wake(&self, calls: &Tally) {
        let one: [u8; 8] = 1_u64.to_ne_bytes();
        loop {
            calls.add(1);
            // SAFETY: writes 8 bytes that live across the call, to a descriptor that is open.
            let n = unsafe { libc::write(self.as_raw_fd(), one.as_ptr().cast(), one.len()) };
            // EAGAIN: the counter is at its end, so the descriptor is readable: as good as woken.
            if n >= 0 || errno() != libc::EINTR {
                return;
            }
        }
    }

    /// Takes the latched wake; whether there was one.
    pub(super) fn drain(&self, calls: &Tally) -> bool {
        let mut count = [0_u8; 8];
        loop {
            calls.add(1);
            // SAFETY: reads 8 bytes into a buffer that lives across the call, from an open descriptor.
            let n = unsafe { libc::read(self.as_raw_fd(), count.as_mut_ptr().cast(), count.len()) };
            // EAGAIN: nothing was there.
            if n >= 0 || errno() != libc::EINTR {
                return n > 0;
            }
        }
    }

    pub(super) fn sleep(&self, timeout_ns: Option<u64>, calls: &Tally) -> Slept {
        let mut poll = libc::pollfd { fd: self.as_raw_fd(), events: libc::POLLIN, revents: 0 };
        let timeout = timeout_ns.map(timespec);
        let timeout = timeout.as_ref().map_or(ptr::null(), ptr::from_ref);
        calls.add(1);
        // SAFETY: one pollfd and a timespec (or null) that live across the call; no signal mask.
        let n = unsafe { libc::ppoll(&raw mut poll, 1, timeout, ptr::null()) };
        match n {
            0 => Slept::TimedOut,
            // The read can find nothing only if somebody else reads: no wake of ours then.
            1.. if self.drain(calls) => Slept::Woken,
            _ => Slept::Interrupted,
        }
    }
}

impl AsRawFd for EventFd {
    fn as_raw_fd(&self) -> RawFd {
        self.0.as_raw_fd()
    }
}

fn errno() -> i32 {
    io::Error::last_os_error().raw_os_error().unwrap_or(0)
}

/// Cut to what the platform's `time_t` holds.
fn timespec(ns: u64) -> libc::timespec {
    libc::timespec {
        tv_sec: libc::time_t::try_from(ns / NS_PER_S).unwrap_or(libc::time_t::MAX),
        tv_nsec: libc::c_long::try_from(ns % NS_PER_S).unwrap_or(0),
    }
}
