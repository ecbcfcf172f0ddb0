//! Stage `notify`: how a sleeper learns that there is something to do.
//!
//! | file | what |
//! | --- | --- |
//! | [`doorbell`] | the protocol between one who sleeps and those who wake it: no wake lost, few made |
//! | [`parker`] | the sleep itself: io_uring, eventfd + ppoll, or a condition variable |
//! | [`wait`] | a blocking call's wait for a future, on the calling thread |
//! | [`fork`] | a generation that a forked child does not share |

use crate::sync::{AtomicU64, Ordering};

pub mod doorbell;
pub mod fork;
pub mod parker;
pub mod wait;

/// A statistic. Counts nothing under loom, where each increment would multiply the schedules.
#[derive(Debug)]
struct Tally(AtomicU64);

impl Tally {
    fn new() -> Self {
        Self(AtomicU64::new(0))
    }

    fn add(&self, n: u64) {
        if !cfg!(loom) {
            // ORDERING: Relaxed; a statistic.
            self.0.fetch_add(n, Ordering::Relaxed);
        }
    }

    fn get(&self) -> u64 {
        // ORDERING: Relaxed; a statistic.
        self.0.load(Ordering::Relaxed)
    }
}
