//! The parker of the loom models. There is no time in a model: a sleep of 0 ends at once, any other only
//! by a wake, so that a lost wake is a deadlock, which loom reports.

use loom::sync::{Condvar, Mutex};

use super::Slept;

#[derive(Debug)]
pub(super) struct Model {
    rung: Mutex<bool>,
    signal: Condvar,
}

impl Model {
    pub(super) fn new() -> Self {
        Self { rung: Mutex::new(false), signal: Condvar::new() }
    }

    pub(super) fn wake(&self) {
        if let Ok(mut rung) = self.rung.lock() {
            *rung = true;
        }
        self.signal.notify_one();
    }

    pub(super) fn drain(&self) {
        if let Ok(mut rung) = self.rung.lock() {
            *rung = false;
        }
    }

    pub(super) fn sleep(&self, timeout_ns: Option<u64>) -> Slept {
        let Ok(mut rung) = self.rung.lock() else {
            return Slept::Interrupted;
        };
        while !*rung {
            if timeout_ns == Some(0) {
                return Slept::TimedOut;
            }
            match self.signal.wait(rung) {
                Ok(guard) => rung = guard,
                Err(_) => return Slept::Interrupted,
            }
        }
        *rung = false;
        Slept::Woken
    }
}
