//! The only door to atomics, interior-mutable cells and spin hints: std, or loom under `cfg(loom)`.
//!
//! Everything that two threads may touch goes through here, so that the loom models in `loom-tests`
//! run the production types and not a copy of them.

#[cfg(loom)]
pub use loom::{
    hint::spin_loop,
    sync::Arc,
    sync::atomic::{AtomicBool, AtomicI32, AtomicPtr, AtomicU32, AtomicU64, Ordering, fence},
    thread::yield_now,
};
#[cfg(not(loom))]
pub use {
    alloc::sync::Arc,
    core::hint::spin_loop,
    core::sync::atomic::{AtomicBool, AtomicI32, AtomicPtr, AtomicU32, AtomicU64, Ordering, fence},
    std::thread::yield_now,
};

/// A cell whose accesses loom can watch: the closure form of `core::cell::UnsafeCell`.
///
/// The caller guarantees exclusivity; loom reports two accesses that are not ordered.
#[derive(Debug, Default)]
#[repr(transparent)]
pub struct UnsafeCell<T>(
    #[cfg(loom)] loom::cell::UnsafeCell<T>,
    #[cfg(not(loom))] core::cell::UnsafeCell<T>,
);

impl<T> UnsafeCell<T> {
    /// Wraps a value.
    pub fn new(value: T) -> Self {
        #[cfg(loom)]
        return Self(loom::cell::UnsafeCell::new(value));
        #[cfg(not(loom))]
        return Self(core::cell::UnsafeCell::new(value));
    }

    /// Calls `f` with a shared pointer. Sound only while nobody has the exclusive one.
    #[inline(always)]
    pub fn with<R>(&self, f: impl FnOnce(*const T) -> R) -> R {
        #[cfg(loom)]
        return self.0.with(f);
        #[cfg(not(loom))]
        return f(self.0.get());
    }

    /// Calls `f` with the exclusive pointer. Sound only while the caller owns the cell.
    #[inline(always)]
    pub fn with_mut<R>(&self, f: impl FnOnce(*mut T) -> R) -> R {
        #[cfg(loom)]
        return self.0.with_mut(f);
        #[cfg(not(loom))]
        return f(self.0.get());
    }
}

/// Numbers that are given out once in a process. Plain under loom too: a static lives longer than one
/// explored execution.
#[derive(Debug)]
pub struct Numbers(core::sync::atomic::AtomicU32);

impl Numbers {
    /// Starts at 0.
    #[allow(clippy::new_without_default, reason = "made in statics")]
    pub const fn new() -> Self {
        Self(core::sync::atomic::AtomicU32::new(0))
    }

    /// The first of `count` numbers nobody else has; they come again after 2^32.
    pub fn take(&self, count: u32) -> u32 {
        // ORDERING: Relaxed; a counter.
        self.0.fetch_add(count, core::sync::atomic::Ordering::Relaxed)
    }
}

/// Bounded exponential back-off after a lost compare-and-swap: test first, then up to `2^limit` pauses.
///
/// Under loom every step yields, so that a model explores the other threads instead of spinning.
#[derive(Debug)]
pub struct Backoff {
    step: u32,
}

impl Backoff {
    /// Exponent of the longest pause (64 `PAUSE`s; 16 to 64 were the best of those tried).
    const LIMIT: u32 = 6;

    /// A fresh back-off.
    #[inline]
    pub const fn new() -> Self {
        Self { step: 0 }
    }

    /// Pauses a little longer than the last time.
    #[inline]
    pub fn snooze(&mut self) {
        #[cfg(loom)]
        yield_now();
        #[cfg(not(loom))]
        for _ in 0..1_u32 << self.step {
            spin_loop();
        }
        if self.step < Self::LIMIT {
            self.step += 1;
        }
    }

    /// Whether the longest pause has been reached: time to leave instead of spinning on.
    #[inline]
    pub const fn is_spent(&self) -> bool {
        self.step >= Self::LIMIT
    }
}

impl Default for Backoff {
    fn default() -> Self {
        Self::new()
    }
}

/// Whether the planted bug of this name is switched on: a constant `false` in every ordinary build.
///
/// Each loom model must fail when the rule it checks is broken. The broken form stands beside the right
/// one, in the production file; `--cfg loom` or a bare `--cfg planted` builds both and the environment
/// variable `BANDGATE_PLANT` chooses, so that one build serves every plant.
#[cfg(any(loom, planted))]
macro_rules! planted {
    ($name:literal) => {
        $crate::sync::is_planted($name)
    };
}
#[cfg(not(any(loom, planted)))]
macro_rules! planted {
    ($name:literal) => {
        false
    };
}
pub(crate) use planted;

/// Whether `BANDGATE_PLANT` names this bug; read once per process.
#[cfg(any(loom, planted))]
pub fn is_planted(name: &str) -> bool {
    static PLANT: std::sync::OnceLock<Option<alloc::string::String>> = std::sync::OnceLock::new();
    PLANT.get_or_init(|| std::env::var("BANDGATE_PLANT").ok()).as_deref() == Some(name)
}
