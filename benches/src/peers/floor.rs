//! The floor: a counter of free slots on one line, one compare-and-swap to take, one to give back.
//! No queue, no order, no limit but one.

use core::sync::atomic::{
    AtomicUsize,
    Ordering::{Acquire, Relaxed, Release},
};

use crossbeam_utils::CachePadded;

/// Free slots.
#[derive(Debug)]
pub struct CasPermits(CachePadded<AtomicUsize>);

impl CasPermits {
    /// So many free slots.
    pub fn new(slots: usize) -> Self {
        Self(CachePadded::new(AtomicUsize::new(slots)))
    }

    /// Takes a slot; false if none is free.
    #[inline(always)]
    pub fn try_acquire(&self) -> bool {
        // ORDERING: a guess, checked by the exchange below.
        let mut free = self.0.load(Relaxed);
        while free > 0 {
            // ORDERING: Acquire pairs with the Release in `release`: the slot's last use is seen.
            match self.0.compare_exchange_weak(free, free - 1, Acquire, Relaxed) {
                Ok(_) => return true,
                Err(now) => free = now,
            }
        }
        false
    }

    /// Gives a slot back.
    #[inline(always)]
    pub fn release(&self) {
        // ORDERING: a guess, checked by the exchange below.
        let mut free = self.0.load(Relaxed);
        // ORDERING: Release pairs with the Acquire in `try_acquire`.
        while let Err(now) = self.0.compare_exchange_weak(free, free + 1, Release, Relaxed) {
            free = now;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::CasPermits;

    #[test]
    fn a_slot_is_given_once_until_it_comes_back() {
        let permits = CasPermits::new(1);
        assert!(permits.try_acquire());
        assert!(!permits.try_acquire());
        permits.release();
        assert!(permits.try_acquire());
    }
}
