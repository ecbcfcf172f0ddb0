//! A mutex and a condition variable: the parker of every platform.

use core::time::Duration;
use std::sync::{Condvar as Signal, Mutex, MutexGuard, PoisonError};

use super::Slept;

#[derive(Debug)]
pub(super) struct Condvar {
    rung: Mutex<bool>,
    signal: Signal,
}

impl Condvar {
    pub(super) fn new() -> Self {
        Self { rung: Mutex::new(false), signal: Signal::new() }
    }

    /// Nothing panics while it is locked, so a poisoned lock is as good as another.
    fn lock(&self) -> MutexGuard<'_, bool> {
        self.rung.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn wake(&self) {
        *self.lock() = true;
        self.signal.notify_one();
    }

    pub(super) fn drain(&self) {
        *self.lock() = false;
    }

    pub(super) fn sleep(&self, timeout_ns: Option<u64>) -> Slept {
        let mut rung = self.lock();
        let mut timed_out = false;
        if !*rung {
            rung = match timeout_ns {
                None => self.signal.wait(rung).unwrap_or_else(PoisonError::into_inner),
                Some(ns) => {
                    let (guard, result) = self
                        .signal
                        .wait_timeout(rung, Duration::from_nanos(ns))
                        .unwrap_or_else(PoisonError::into_inner);
                    timed_out = result.timed_out();
                    guard
                }
            };
        }
        match (core::mem::take(&mut *rung), timed_out) {
            (true, _) => Slept::Woken,
            (false, true) => Slept::TimedOut,
            (false, false) => Slept::Interrupted,
        }
    }
}
