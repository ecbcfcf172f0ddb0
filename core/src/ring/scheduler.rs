//! The scheduler ring of a shard: the pools that need a turn, each at most once.
//!
//! | word | written by | ordering | read by | ordering |
//! | --- | --- | --- | --- | --- |
//! | `queued` of a pool | scheduler and popper, swap | AcqRel | both, by the swap | AcqRel |
//! | `tail` | schedulers, `fetch_add` | AcqRel | schedulers, by the `fetch_add` | AcqRel |
//! | a cell, lap 32 \| pool 32 | the scheduler that claimed it | Release | popper, look | Acquire |
//! | `popping` | poppers, swap | AcqRel | poppers, by the swap | AcqRel |
//! | `head` | the popper | Release | popper; look | Relaxed; Acquire |
//!
//! There is no check for "full", because the ring cannot be: it has a cell for every pool, and a pool is
//! in it at most once. Why a claimed cell was also *read* by its last popper, as the orderings see it:
//! `capacity + 1` claims in a row name some pool twice; between the two lies that pool's pop, which is not
//! earlier than the pop of the cell in question; the pop comes before the `swap` that clears `queued`,
//! that before the `swap` that sets it again, and that before all later claims, by AcqRel on `tail`.

use alloc::boxed::Box;
use core::fmt;

use crossbeam_utils::CachePadded;

use crate::sync::{AtomicBool, AtomicU64, Ordering, planted};

/// Ring of pool indices. Scheduling and polling are wait-free; any thread may do either.
pub struct SchedulerRing {
    tail: CachePadded<AtomicU64>,
    head: CachePadded<AtomicU64>,
    popping: AtomicBool,
    cells: Box<[AtomicU64]>,
    /// `cells.len() == 1 << lap_shift`.
    lap_shift: u32,
}

impl SchedulerRing {
    /// A ring for pools `0..pools`. The only allocation it ever makes.
    pub fn new(pools: u32) -> Self {
        let capacity = u64::from(pools.max(1)).next_power_of_two();
        Self {
            tail: CachePadded::new(AtomicU64::new(0)),
            head: CachePadded::new(AtomicU64::new(0)),
            popping: AtomicBool::new(false),
            cells: (0..capacity).map(|_| AtomicU64::new(0)).collect(),
            lap_shift: capacity.trailing_zeros(),
        }
    }

    #[inline]
    #[allow(clippy::cast_possible_truncation, reason = "masked to the length of a slice")]
    fn cell(&self, position: u64) -> &AtomicU64 {
        &self.cells[(position & ((1 << self.lap_shift) - 1)) as usize]
    }

    /// The stamp, without the pool, of the cell of `position` once it is filled. Its wrap is as harmless
    /// as that of the command ring.
    #[inline]
    fn lap(&self, position: u64) -> u64 {
        ((position >> self.lap_shift) + 1) << 32
    }

    /// Puts a pool in, unless it is there already; `queued` is the pool's own flag. `true`: it was put
    /// in, and the caller rings the keeper's doorbell. A holder calls this after its unlock, never before.
    pub fn schedule(&self, pool: u32, queued: &AtomicBool) -> bool {
        // ORDERING: AcqRel. Acquire pairs with the clearing swap in `poll` (see the page on full rings);
        // Release lets the next popper see what was done before, even if this call finds the flag set.
        let was = if planted!("s2") {
            // ORDERING: Acquire, Release; right for the words, but two may pass between them.
            let was = queued.load(Ordering::Acquire);
            queued.store(true, Ordering::Release);
            was
        } else {
            queued.swap(true, Ordering::AcqRel)
        };
        if was {
            return false;
        }
        // ORDERING: AcqRel: carries each scheduler's view of the pops on to all later claims.
        let position = self.tail.fetch_add(1, Ordering::AcqRel);
        // ORDERING: Release pairs with the Acquire in `pop` and `is_empty`.
        self.cell(position).store(self.lap(position) | u64::from(pool), Ordering::Release);
        true
    }

    /// Takes the next pool and clears its flag, which `lookup` finds; the caller **then** tries LOCK and
    /// turns. One popper at a time: `None` also if another thread is just popping, or if the next cell is
    /// claimed and not filled yet (its scheduler rings the doorbell).
    pub fn poll<'q>(&self, lookup: impl FnOnce(u32) -> &'q AtomicBool) -> Option<u32> {
        // ORDERING: AcqRel; Acquire pairs with the swap below, so `head` is the last popper's.
        if self.popping.swap(true, Ordering::AcqRel) {
            return None;
        }
        let popped = self.pop();
        // ORDERING: AcqRel; Release hands `head` to the next popper. A swap, as all flags that two sides
        // change.
        self.popping.swap(false, Ordering::AcqRel);
        let pool = popped?;
        // ORDERING: AcqRel. Release pairs with the swap in `schedule`; Acquire sees what those did who
        // found the flag set and left their work to this turn.
        lookup(pool).swap(false, Ordering::AcqRel);
        Some(pool)
    }

    /// The popper's part: caller holds `popping`.
    #[inline]
    #[allow(clippy::cast_possible_truncation, reason = "the lower half is the pool")]
    fn pop(&self) -> Option<u32> {
        // ORDERING: Relaxed; only poppers store it, and `popping` orders them.
        let head = self.head.load(Ordering::Relaxed);
        // ORDERING: Acquire pairs with the Release in `schedule`.
        let cell = self.cell(head).load(Ordering::Acquire);
        if cell >> 32 != self.lap(head) >> 32 {
            return None;
        }
        // ORDERING: Release pairs with the Acquire in `is_empty`.
        self.head.store(head + 1, Ordering::Release);
        Some(cell as u32)
    }

    /// Whether no pool is ready to be popped: the keeper's look before it sleeps, behind a
    /// `fence(SeqCst)`. A cell that is claimed and not filled counts as empty: who fills it wakes.
    #[inline]
    pub fn is_empty(&self) -> bool {
        // ORDERING: Acquire, so that the cell is not read at an older time than its position.
        let head = self.head.load(Ordering::Acquire);
        // ORDERING: Acquire, as in `pop`.
        self.cell(head).load(Ordering::Acquire) >> 32 != self.lap(head) >> 32
    }
}

impl fmt::Debug for SchedulerRing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SchedulerRing")
            .field("capacity", &self.cells.len())
            .field("tail", &self.tail)
            .field("head", &self.head)
            .finish_non_exhaustive()
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::SchedulerRing;
    use crate::sync::{AtomicBool, AtomicU64, Ordering};

    fn flags<const N: usize>() -> [AtomicBool; N] {
        core::array::from_fn(|_| AtomicBool::new(false))
    }

    #[test]
    fn a_pool_is_in_at_most_once_and_leaves_in_order() {
        let flags: [AtomicBool; 3] = flags();
        let ring = SchedulerRing::new(3);
        let poll = || ring.poll(|p| &flags[p as usize]);
        for _ in 0..10 {
            assert!(ring.is_empty());
            assert_eq!(poll(), None);
            for pool in [2, 0, 1] {
                assert!(ring.schedule(pool, &flags[pool as usize]));
                assert!(!ring.schedule(pool, &flags[pool as usize]));
                assert!(!ring.is_empty());
            }
            assert_eq!(poll(), Some(2));
            assert!(ring.schedule(2, &flags[2]), "popped, so it may be scheduled again");
            assert_eq!([poll(), poll(), poll(), poll()], [Some(0), Some(1), Some(2), None]);
        }
    }

    #[test]
    fn one_pool_and_no_pool_are_rings_too() {
        let flags: [AtomicBool; 1] = flags();
        for pools in [0, 1] {
            let ring = SchedulerRing::new(pools);
            for _ in 0..5 {
                assert!(ring.schedule(0, &flags[0]));
                assert_eq!(ring.poll(|_| &flags[0]), Some(0));
                assert!(ring.is_empty());
            }
        }
    }

    // Threads in the open: in a planted build it would find the race now and then, and that is the model's to find.
    #[cfg(not(planted))]
    #[test]
    fn work_published_before_scheduling_is_seen_by_a_later_turn() {
        const ROUNDS: u64 = if cfg!(miri) { 100 } else { 5_000 };
        let flags: [AtomicBool; 2] = flags();
        let work: [AtomicU64; 2] = core::array::from_fn(|_| AtomicU64::new(0));
        let ring = SchedulerRing::new(2);
        std::thread::scope(|s| {
            for pool in 0..2_u32 {
                let (ring, flags, work) = (&ring, &flags, &work);
                s.spawn(move || {
                    for _ in 0..ROUNDS {
                        work[pool as usize].fetch_add(1, Ordering::Relaxed);
                        ring.schedule(pool, &flags[pool as usize]);
                        std::thread::yield_now();
                    }
                });
            }
            let mut done = [0; 2];
            while done != [ROUNDS; 2] {
                match ring.poll(|p| &flags[p as usize]) {
                    Some(p) => done[p as usize] = work[p as usize].load(Ordering::Relaxed),
                    None => std::thread::yield_now(),
                }
            }
        });
        assert!(ring.is_empty(), "a pool that was scheduled late is still in the ring");
    }
}
