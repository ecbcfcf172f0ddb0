//! Permits: the right to run one request, given back exactly once.
#![forbid(unsafe_code)]

use super::Pool;
use crate::types::NONE;
use crate::types::settings::PoolSettings;

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

/// What both kinds of permit know, in 16 bytes: one that was got without LOCK is made and dropped in registers.
#[derive(Clone, Copy, Debug)]
pub(super) struct Slot {
    /// Index of the flow, or of the entry of a request that keeps it.
    name: u32,
    /// Generation of that entry.
    generation: u32,
    /// The cost, and above it [`QUEUED`](Self::QUEUED) and [`TRACKED`](Self::TRACKED).
    charged: u32,
    actual: u32,
}

/// What ends with a permit.
pub(super) enum Ended {
    /// The slot of a flow, or of no flow.
    Flow { flow: u32, charged: u32, actual: u32 },
    /// A request that kept its entry.
    Tracked { idx: u32, generation: u32, actual: u32 },
}

impl Slot {
    const QUEUED: u32 = 1 << 31;
    const TRACKED: u32 = 1 << 30;
    const COST: u32 = Self::TRACKED - 1;

    #[inline(always)]
    pub(super) const fn new(flow: u32, cost: u32, how: Admitted) -> Self {
        let how = if matches!(how, Admitted::Queued) { Self::QUEUED } else { 0 };
        Self { name: flow, generation: 0, charged: cost | how, actual: cost }
    }

    /// Of a request that keeps its entry.
    #[inline(always)]
    pub(super) const fn tracked(idx: u32, generation: u32, cost: u32, how: Admitted) -> Self {
        let Self { charged, .. } = Self::new(idx, cost, how);
        Self { name: idx, generation, charged: charged | Self::TRACKED, actual: cost }
    }

    /// Neither flow nor entry: nothing but the pool's word knows of it.
    #[inline(always)]
    pub(super) const fn is_anonymous(&self) -> bool {
        self.name == NONE
    }

    #[inline(always)]
    const fn how(&self) -> Admitted {
        if self.charged & Self::QUEUED == 0 { Admitted::Fast } else { Admitted::Queued }
    }

    #[inline(always)]
    const fn cost(&self) -> u32 {
        self.charged & Self::COST
    }

    #[inline(always)]
    pub(super) const fn ended(&self) -> Ended {
        let &Self { name, generation, charged, actual } = self;
        if charged & Self::TRACKED == 0 {
            Ended::Flow { flow: name, charged: self.cost(), actual }
        } else {
            Ended::Tracked { idx: name, generation, actual }
        }
    }
}

const _: () = assert!(PoolSettings::MAX_COST <= Slot::COST);

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
        self.slot.how()
    }

    /// Cost charged at admission, in tokens.
    pub const fn cost(&self) -> u32 {
        self.slot.cost()
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
        self.slot.how()
    }

    /// Cost charged at admission, in tokens.
    pub const fn cost(&self) -> u32 {
        self.slot.cost()
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
