//! Permits: the right to run one request, given back exactly once.
#![forbid(unsafe_code)]

use super::Pool;
use crate::types::HELD;

/// How a permit was got.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Admitted {
    /// Without ever being queued.
    Fast,
    /// After a wait.
    Queued,
}

impl Admitted {
    /// The stable name.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Fast => "fast",
            Self::Queued => "queued",
        }
    }
}

/// What both kinds of permit know.
#[derive(Clone, Copy, Debug)]
pub(super) struct Slot {
    pub(super) flow: u32,
    pub(super) charged: u32,
    pub(super) actual: u32,
    pub(super) how: Admitted,
    /// The entry of a tracked request; means nothing unless `flow` is [`HELD`].
    pub(super) idx: u32,
    pub(super) generation: u32,
}

impl Slot {
    pub(super) const fn new(flow: u32, cost: u32, how: Admitted) -> Self {
        Self { flow, charged: cost, actual: cost, how, idx: 0, generation: 0 }
    }

    /// Of a request that keeps its entry.
    pub(super) const fn held(idx: u32, generation: u32, cost: u32, how: Admitted) -> Self {
        Self { flow: HELD, charged: cost, actual: cost, how, idx, generation }
    }
}

/// An admitted request. Dropping it, on any thread and during unwinding too, gives the slot back; it can
/// not be given back twice. Borrows its [`Pool`]; [`Permit::into_owned`] makes one that does not.
#[derive(Debug)]
#[must_use = "dropping a permit gives its slot back at once"]
pub struct Permit<'p> {
    pool: &'p Pool,
    slot: Slot,
}

impl<'p> Permit<'p> {
    #[inline(always)]
    pub(super) const fn new(pool: &'p Pool, slot: Slot) -> Self {
        Self { pool, slot }
    }

    /// Whether it had to wait.
    pub const fn how(&self) -> Admitted {
        self.slot.how
    }

    /// Cost charged at admission, in tokens.
    pub const fn cost(&self) -> u32 {
        self.slot.charged
    }

    /// The tokens really used; corrects the tenant's and key's charge when the permit ends.
    pub const fn settle(&mut self, actual: u32) {
        self.slot.actual = actual;
    }

    /// Gives the slot back now. Never waits, never fails.
    pub fn release(self) {
        drop(self);
    }

    /// The same permit without the borrow, for tasks and threads: holds a reference to the engine.
    pub fn into_owned(self) -> OwnedPermit {
        let owned = OwnedPermit { pool: self.pool.clone(), slot: self.slot };
        core::mem::forget(self);
        owned
    }
}

impl Drop for Permit<'_> {
    #[inline(always)]
    fn drop(&mut self) {
        self.pool.give_back(&self.slot);
    }
}

/// A [`Permit`] that keeps its engine alive by itself.
#[derive(Debug)]
#[must_use = "dropping a permit gives its slot back at once"]
pub struct OwnedPermit {
    pool: Pool,
    slot: Slot,
}

impl OwnedPermit {
    /// Whether it had to wait.
    pub const fn how(&self) -> Admitted {
        self.slot.how
    }

    /// Cost charged at admission, in tokens.
    pub const fn cost(&self) -> u32 {
        self.slot.charged
    }

    /// As [`Permit::settle`].
    pub const fn settle(&mut self, actual: u32) {
        self.slot.actual = actual;
    }

    /// Gives the slot back now.
    pub fn release(self) {
        drop(self);
    }
}

impl Drop for OwnedPermit {
    fn drop(&mut self) {
        // The slot first, then (by drop glue) the reference that keeps the pool's memory alive.
        self.pool.give_back(&self.slot);
    }
}
