//! The timers' links: 8 bytes for each entry, in an array of their own.
//!
//! Setting or stopping a timer changes its neighbours in the slot, which are any entries. In the 128-byte entries that is a
//! cold line each; at 100,000 waiting this array is 800 kB and stays in the second-level cache.

use crate::sync::UnsafeCell;
use crate::types::NONE;

/// The place of a timer in the list of its slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct TimerLink {
    /// The next timer of the slot, [`NONE`] for the last.
    pub next: u32,
    /// The one before; for the first [`TimerLink::FIRST`] and the slot; [`NONE`] while the timer is not set.
    pub prev: u32,
}

impl TimerLink {
    /// A timer that is not set.
    pub const IDLE: Self = Self { next: NONE, prev: NONE };

    /// Marks `prev` of the first timer of a slot. A slab has fewer entries, the wheel fewer slots.
    pub const FIRST: u32 = 1 << 31;
}

impl Default for TimerLink {
    fn default() -> Self {
        Self::IDLE
    }
}

const _: () = assert!(core::mem::size_of::<TimerLink>() == 8);

/// The timers' links of a slab.
#[derive(Clone, Copy, Debug)]
pub struct TimerTable<'s>(pub(super) &'s [UnsafeCell<TimerLink>]);

impl TimerTable<'_> {
    /// Runs `f` on a timer's link.
    ///
    /// # Safety
    ///
    /// The caller owns the entry (page of [`crate::slab`]).
    #[inline(always)]
    pub unsafe fn with<R>(self, idx: u32, f: impl FnOnce(&mut TimerLink) -> R) -> R {
        debug_assert!((idx as usize) < self.0.len(), "an index of this slab");
        // SAFETY: the caller owns the entry, so its index came out of the free list; there are as many links.
        let link = unsafe { self.0.get_unchecked(idx as usize) };
        // SAFETY: the caller owns the entry, so nobody else has a reference to its timer's link.
        link.with_mut(|link| f(unsafe { &mut *link }))
    }
}
