//! The few words a model needs beside the types it checks, so that models name no atomics themselves.

use core::sync::atomic::{AtomicBool as StdBool, AtomicU64 as StdU64};

use bandgate_core::sync::{AtomicBool, AtomicU64, Ordering};

/// A count outside loom: no schedules, no order, exact at every step.
#[derive(Debug, Default)]
pub struct GhostCount(StdU64);

impl GhostCount {
    /// Adds to it.
    pub fn add(&self, n: u64) {
        // ORDERING: Relaxed; loom runs a model's threads on one.
        self.0.fetch_add(n, Ordering::Relaxed);
    }

    /// Reads it.
    pub fn get(&self) -> u64 {
        // ORDERING: Relaxed, as above.
        self.0.load(Ordering::Relaxed)
    }
}

/// A flag outside loom, for instance "owned".
#[derive(Debug, Default)]
pub struct GhostFlag(StdBool);

impl GhostFlag {
    /// Sets it; what it was before.
    pub fn swap(&self, value: bool) -> bool {
        // ORDERING: Relaxed; loom runs a model's threads on one.
        self.0.swap(value, Ordering::Relaxed)
    }

    /// Reads it.
    pub fn get(&self) -> bool {
        // ORDERING: Relaxed, as above.
        self.0.load(Ordering::Relaxed)
    }
}

/// Work as loom sees it: a relaxed counter that orders nothing. The protocol under test has to.
#[derive(Debug)]
pub struct Work(AtomicU64);

impl Work {
    /// No work yet.
    pub fn new() -> Self {
        Self(AtomicU64::new(0))
    }

    /// One more piece of work.
    pub fn add(&self) {
        // ORDERING: Relaxed; the protocol under test orders it.
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    /// What is visible to this thread.
    pub fn get(&self) -> u64 {
        // ORDERING: Relaxed; the protocol under test orders it.
        self.0.load(Ordering::Relaxed)
    }
}

impl Default for Work {
    fn default() -> Self {
        Self::new()
    }
}

/// A flag as loom sees it: raised by one, seen by others with all that came before.
#[derive(Debug)]
pub struct Flag(AtomicBool);

impl Flag {
    /// Not raised.
    pub fn new() -> Self {
        Self(AtomicBool::new(false))
    }

    /// Raises it.
    pub fn raise(&self) {
        // ORDERING: Release; pairs with `is_raised`.
        self.0.store(true, Ordering::Release);
    }

    /// Whether it is raised.
    pub fn is_raised(&self) -> bool {
        // ORDERING: Acquire; pairs with `raise`.
        self.0.load(Ordering::Acquire)
    }

    /// The word itself, for a type of core that works on a flag of its caller's.
    pub fn word(&self) -> &AtomicBool {
        &self.0
    }
}

impl Default for Flag {
    fn default() -> Self {
        Self::new()
    }
}
