//! Free indices of the slab: a Treiber stack whose head carries a tag.
//!
//! | word | written by | ordering | read by | ordering |
//! | --- | --- | --- | --- | --- |
//! | `head`, tag 32 \| index 32 | pop, CAS | Acquire | pop, push | Acquire, Relaxed |
//! | | push, CAS | Release: links and the entry's last use | | |
//! | `links` | push, before the CAS | Relaxed | pop, checked by the CAS | Relaxed |
//!
//! Every change is an RMW of `head`, so an Acquire of a late value sees the links of all earlier pushes.
//! The tag counts pops. Without it a popper that slept with an old link could put it into the head after
//! its index had been popped and pushed again (ABA). It would have to sleep through exactly a multiple of
//! `2^32` pops, and find the same index on top, to be fooled.
//!
//! Source: R. K. Treiber, Systems Programming: Coping with Parallelism, IBM RJ 5118, 1986.

use alloc::boxed::Box;
use core::fmt;

use arrayvec::ArrayVec;
use crossbeam_utils::CachePadded;

use crate::sync::{AtomicU32, AtomicU64, Backoff, Ordering, planted};
use crate::types::NONE;

/// Stack of free indices. Lock-free; any thread; never allocates after construction.
pub struct FreeList {
    head: CachePadded<AtomicU64>,
    links: Box<[AtomicU32]>,
}

#[inline]
const fn join(tag: u32, index: u32) -> u64 {
    (tag as u64) << 32 | index as u64
}

#[inline]
#[allow(clippy::cast_possible_truncation, reason = "the lower half is the index")]
const fn split(head: u64) -> (u32, u32) {
    ((head >> 32) as u32, head as u32)
}

impl FreeList {
    /// All of `0..n` free (`n` below [`NONE`]), the lowest on top.
    pub fn new(n: u32) -> Self {
        assert!(n != NONE, "NONE is the end of the list");
        let link = |i: u32| AtomicU32::new(if i + 1 == n { NONE } else { i + 1 });
        let top = if n == 0 { NONE } else { 0 };
        Self {
            head: CachePadded::new(AtomicU64::new(join(0, top))),
            links: (0..n).map(link).collect(),
        }
    }

    /// How many indices there are, free or not.
    pub fn capacity(&self) -> usize {
        self.links.len()
    }

    /// Whether nothing seems free; it may change at once.
    #[inline]
    pub fn is_probably_empty(&self) -> bool {
        // ORDERING: Relaxed; a hint.
        split(self.head.load(Ordering::Relaxed)).1 == NONE
    }

    #[inline]
    fn link(&self, index: u32) -> &AtomicU32 {
        &self.links[index as usize]
    }

    /// Takes the top index; `None` if nothing is free.
    #[inline]
    pub fn pop(&self) -> Option<u32> {
        let mut one = ArrayVec::<u32, 1>::new();
        self.pop_chain(1, &mut one);
        one.pop()
    }

    /// Takes up to `max` indices by one CAS, as many as are free and `out` has room for; returns how many.
    pub fn pop_chain<const N: usize>(&self, max: usize, out: &mut ArrayVec<u32, N>) -> usize {
        let room = max.min(out.remaining_capacity());
        let start = out.len();
        let mut backoff = Backoff::new();
        // ORDERING: Acquire pairs with the Release in `push_chain`: the links read below are at least as
        // new as the push that made this head.
        let mut head = self.head.load(Ordering::Acquire);
        loop {
            let (tag, mut next) = split(head);
            while next != NONE && out.len() < start + room {
                out.push(next);
                // ORDERING: Relaxed. If somebody popped meanwhile it may be anything; then the tag has
                // moved on and the CAS fails.
                next = self.link(next).load(Ordering::Relaxed);
            }
            if out.len() == start {
                return 0;
            }
            let tag = if planted!("m16") { tag } else { tag.wrapping_add(1) };
            // ORDERING: Acquire on success: the freeing thread's last use of the entry comes before ours.
            // No Release: nothing is handed on, and as an RMW it keeps the earlier pushes visible.
            match self.head.compare_exchange_weak(
                head,
                join(tag, next),
                Ordering::Acquire,
                Ordering::Acquire,
            ) {
                Ok(_) => return out.len() - start,
                Err(now) => head = now,
            }
            out.truncate(start);
            backoff.snooze();
        }
    }

    /// Gives an index back. The caller owns it and is done with its entry.
    #[inline]
    pub fn push(&self, index: u32) {
        self.push_chain(&[index]);
    }

    /// Gives indices back by one CAS; the first comes out first.
    pub fn push_chain(&self, indices: &[u32]) {
        let (Some(&first), Some(&last)) = (indices.first(), indices.last()) else {
            return;
        };
        for pair in indices.windows(2) {
            // ORDERING: Relaxed; published by the CAS below.
            self.link(pair[0]).store(pair[1], Ordering::Relaxed);
        }
        let mut backoff = Backoff::new();
        // ORDERING: Relaxed. Only a guess for the CAS; nothing behind it is read.
        let mut head = self.head.load(Ordering::Relaxed);
        loop {
            let (tag, top) = split(head);
            // ORDERING: Relaxed; published by the CAS below.
            self.link(last).store(top, Ordering::Relaxed);
            // ORDERING: Release pairs with the Acquires in `pop_chain`. The tag stays: only a pop can make
            // an old head come back.
            match self.head.compare_exchange_weak(
                head,
                join(tag, first),
                Ordering::Release,
                Ordering::Relaxed,
            ) {
                Ok(_) => return,
                Err(now) => head = now,
            }
            backoff.snooze();
        }
    }
}

impl fmt::Debug for FreeList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FreeList")
            .field("capacity", &self.capacity())
            .field("head", &self.head)
            .finish_non_exhaustive()
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::FreeList;
    use crate::sync::{AtomicBool, Ordering};
    use arrayvec::ArrayVec;

    #[test]
    fn all_indices_come_out_once_in_ascending_order() {
        let list = FreeList::new(5);
        for i in 0..5 {
            assert!(!list.is_probably_empty());
            assert_eq!(list.pop(), Some(i));
        }
        assert!(list.is_probably_empty());
        assert_eq!(list.pop(), None);
        assert_eq!(FreeList::new(0).pop(), None);
    }

    #[test]
    fn a_chain_goes_in_and_out_in_its_own_order() {
        let list = FreeList::new(6);
        let mut out = ArrayVec::<u32, 4>::new();
        assert_eq!(list.pop_chain(3, &mut out), 3);
        assert_eq!(list.pop_chain(3, &mut out), 1, "no more than there is room for");
        assert_eq!(out.as_slice(), [0, 1, 2, 3]);
        list.push_chain(&[2, 0, 3]);
        list.push_chain(&[]);
        list.push(1);
        let mut out = ArrayVec::<u32, 8>::new();
        assert_eq!(list.pop_chain(8, &mut out), 6);
        assert_eq!(out.as_slice(), [1, 2, 0, 3, 4, 5]);
        assert_eq!(list.pop_chain(0, &mut out), 0);
        assert_eq!(list.pop_chain(8, &mut out), 0);
    }

    #[test]
    fn an_index_has_one_owner_at_a_time() {
        const ROUNDS: usize = if cfg!(miri) { 100 } else { 3_000 };
        let list = FreeList::new(6);
        let owned: [AtomicBool; 6] = core::array::from_fn(|_| AtomicBool::new(false));
        std::thread::scope(|s| {
            for _ in 0..2 {
                s.spawn(|| {
                    for round in 0..ROUNDS {
                        let mut mine = ArrayVec::<u32, 3>::new();
                        list.pop_chain(1 + round % 3, &mut mine);
                        for i in &mine {
                            assert!(!owned[*i as usize].swap(true, Ordering::AcqRel));
                        }
                        for i in &mine {
                            assert!(owned[*i as usize].swap(false, Ordering::AcqRel));
                        }
                        list.push_chain(&mine);
                    }
                });
            }
        });
        let mut rest = ArrayVec::<u32, 6>::new();
        assert_eq!(list.pop_chain(6, &mut rest), 6, "nothing was lost");
    }
}
