//! Permits: the right to run one request, given back exactly once.
#![forbid(unsafe_code)]

use super::Pool;
use crate::queue::heap::MAX_INDICES;
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
    /// Index of the flow; or that of the entry of a request that keeps it, with [`TRACKED`](Self::TRACKED).
    name: u32,
    /// Generation of that entry; of a flow, whether it was queued.
    detail: u32,
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
    const TRACKED: u32 = 1 << 31;
    /// Of a tracked one: it was queued.
    const QUEUED: u32 = 1 << 30;

    #[inline(always)]
    pub(super) const fn new(flow: u32, cost: u32, how: Admitted) -> Self {
        let queued = matches!(how, Admitted::Queued);
        Self { name: flow, detail: queued as u32, charged: cost, actual: cost }
    }

    /// Of a request that keeps its entry.
    #[inline(always)]
    pub(super) const fn tracked(idx: u32, generation: u32, cost: u32, how: Admitted) -> Self {
        let queued = if matches!(how, Admitted::Queued) { Self::QUEUED } else { 0 };
        let name = idx | queued | Self::TRACKED;
        Self { name, detail: generation, charged: cost, actual: cost }
    }

    /// Neither flow nor entry: nothing but the pool's word knows of it.
    #[inline(always)]
    pub(super) const fn is_anonymous(&self) -> bool {
        self.name == NONE
    }

    /// Never asked of an anonymous one.
    #[inline(always)]
    const fn is_tracked(&self) -> bool {
        self.name & Self::TRACKED != 0
    }

    const fn how(&self) -> Admitted {
        let is_tracked = !self.is_anonymous() && self.is_tracked();
        let queued = if is_tracked { self.name & Self::QUEUED } else { self.detail };
        if queued == 0 { Admitted::Fast } else { Admitted::Queued }
    }

    #[inline(always)]
    pub(super) const fn ended(&self) -> Ended {
        let &Self { name, detail, charged, actual } = self;
        if !self.is_anonymous() && self.is_tracked() {
            let idx = name & !(Self::TRACKED | Self::QUEUED);
            return Ended::Tracked { idx, generation: detail, actual };
        }
        Ended::Flow { flow: name, charged, actual }
    }
}

// Neither flows nor entries reach up to the flags, and no entry is taken for "no flow".
const _: () = assert!(MAX_INDICES < Slot::QUEUED && PoolSettings::MAX_FLOWS < Slot::QUEUED);

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
        self.slot.how()
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
