//! The command ring of a pool: bounded, many producers, the holder of LOCK consumes.
//!
//! | word | written by | ordering | read by | ordering |
//! | --- | --- | --- | --- | --- |
//! | `tail` | pushers, CAS | Relaxed: claims a cell, publishes nothing | pushers, [`is_empty`](CommandRing::is_empty) | Relaxed |
//! | `head` | holder of LOCK | Release: the cells before it were read | pushers, `is_empty` | Acquire |
//! | `stamp` of a cell | its pusher | Release: the argument is there | holder | Acquire |
//! | `arg` of a cell | its pusher | Relaxed, before the stamp | holder, after the stamp | Relaxed |
//!
//! A cell is ready when its stamp carries the lap of the position that is looked for. Positions are `u64`
//! and never wrap (584 years at one command per nanosecond). The lap is their upper part modulo `2^32`; a
//! cell is stamped once per lap, so it holds either this lap or the one before, and the wrap cannot
//! confuse the two. Position 0 has lap 1, so that a fresh, zeroed cell is not ready.

use alloc::boxed::Box;
use core::fmt;

use crossbeam_utils::CachePadded;

use crate::sync::{AtomicU64, Backoff, Ordering, planted};

/// How many commands a drain takes at most before it gives their cells back to the pushers. Every one
/// under loom, where rings are tiny and a pusher should meet a half-taken batch.
const PUBLISH_EVERY: u64 = if cfg!(loom) { 1 } else { 32 };

/// One command; what `code` and `arg` mean is the pool's business.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Command {
    /// What to do.
    pub code: u32,
    /// With what.
    pub arg: u64,
}

/// The ring has no free cell. Nothing was left behind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Full;

impl fmt::Display for Full {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the command ring is full")
    }
}

impl core::error::Error for Full {}

/// `stamp` = lap 32 | code 32.
#[derive(Debug)]
#[repr(C)]
struct Cell {
    stamp: AtomicU64,
    arg: AtomicU64,
}

#[cfg(not(loom))]
const _: () = assert!(size_of::<Cell>() == 16, "four cells to a cache line");

/// Bounded ring of [`Command`]s: any thread pushes, the holder of the pool's LOCK drains.
///
/// Push is lock-free (a lost claim means that another one won), the drain wait-free. Taking from two
/// threads at once breaks no memory rule but may take a command twice: LOCK is what prevents it.
pub struct CommandRing {
    /// Next position to claim.
    tail: CachePadded<AtomicU64>,
    /// Next position to take.
    head: CachePadded<AtomicU64>,
    cells: Box<[Cell]>,
    /// `capacity == 1 << lap_shift`.
    lap_shift: u32,
}

impl CommandRing {
    /// A ring for `capacity` commands (a power of two, at least 1). The only allocation it ever makes.
    pub fn new(capacity: u32) -> Self {
        assert!(capacity.is_power_of_two(), "a ring's capacity is a power of two");
        let cell = || Cell { stamp: AtomicU64::new(0), arg: AtomicU64::new(0) };
        Self {
            tail: CachePadded::new(AtomicU64::new(0)),
            head: CachePadded::new(AtomicU64::new(0)),
            cells: (0..capacity).map(|_| cell()).collect(),
            lap_shift: capacity.trailing_zeros(),
        }
    }

    /// How many commands fit.
    #[inline]
    pub fn capacity(&self) -> u64 {
        1 << self.lap_shift
    }

    /// The stamp, without the code, of the cell of `position` once it is filled.
    #[inline(always)]
    fn lap(&self, position: u64) -> u64 {
        ((position >> self.lap_shift) + 1) << 32
    }

    #[inline(always)]
    #[allow(clippy::cast_possible_truncation, reason = "masked to the length of a slice")]
    fn cell(&self, position: u64) -> &Cell {
        let index = position as usize & (self.cells.len() - 1);
        debug_assert!(index < self.cells.len(), "a power of two of cells");
        // SAFETY: masked by the number of cells, a power of two that never changes.
        unsafe { self.cells.get_unchecked(index) }
    }

    /// Puts a command behind all claimed before. Lock-free; any thread.
    #[inline]
    pub fn push(&self, command: Command) -> Result<(), Full> {
        let (at, n) = self.claim(1);
        if n == 0 {
            return Err(Full);
        }
        self.fill(at, command);
        Ok(())
    }

    /// Puts as many of a burst as fit behind all claimed before, side by side, by one claim. Returns
    /// how many: the first so many of `commands`. Lock-free; any thread.
    pub fn push_batch(&self, commands: &[Command]) -> usize {
        let (at, n) = self.claim(commands.len() as u64);
        (at..at + n).zip(commands).map(|(position, command)| self.fill(position, *command)).count()
    }

    /// Claims up to `wanted` positions: the first, and how many (0: full).
    #[inline]
    fn claim(&self, wanted: u64) -> (u64, u64) {
        let mut backoff = Backoff::new();
        loop {
            // ORDERING: Relaxed. Only a guess for the CAS below.
            let tail = self.tail.load(Ordering::Relaxed);
            // ORDERING: Acquire pairs with `Drain::publish`: the holder has read the cells before `head`,
            // so ours may be overwritten. Relaxed could let our store pass its load.
            let head = self.head.load(Ordering::Acquire);
            // A stale `tail` may lie before `head`: then all is free, and the CAS fails.
            let used = tail.saturating_sub(head);
            let n = wanted.min(self.capacity().saturating_sub(used));
            if n == 0 {
                return (tail, 0);
            }
            // ORDERING: Relaxed. The claim is exclusive by the CAS alone; the stamp publishes.
            let claim = self.tail.compare_exchange_weak(
                tail,
                tail + n,
                Ordering::Relaxed,
                Ordering::Relaxed,
            );
            if claim.is_ok() {
                return (tail, n);
            }
            backoff.snooze();
        }
    }

    /// Fills a claimed cell: argument first, then the stamp.
    #[inline]
    fn fill(&self, position: u64, command: Command) {
        let cell = self.cell(position);
        let publish = if planted!("m01") { Ordering::Relaxed } else { Ordering::Release };
        // ORDERING: Relaxed; the stamp behind it publishes.
        cell.arg.store(command.arg, Ordering::Relaxed);
        // ORDERING: Release pairs with the Acquire in `Drain::next`: who sees the stamp sees the argument.
        cell.stamp.store(self.lap(position) | u64::from(command.code), publish);
    }

    /// Whether nothing is in the ring, a claimed cell that is not filled yet included.
    ///
    /// Never `true` while a push that happened before this call is not taken. Wait-free; any thread.
    #[inline]
    pub fn is_empty(&self) -> bool {
        // ORDERING: Relaxed; a claim that happened before this load is seen by coherence.
        let tail = self.tail.load(Ordering::Relaxed);
        // ORDERING: Acquire pairs with `Drain::publish`: what the holder did before it gave the cell back,
        // the caller who finds the ring empty is ordered after.
        let head = self.head.load(Ordering::Acquire);
        tail == head
    }

    /// Whether the cell at `head` is filled: the look of a holder after its unlock.
    ///
    /// Asks for the stamp and not for `tail != head`, else a pusher that sleeps between claim and stamp
    /// would keep the holder here. The caller puts a `fence(SeqCst)` before it.
    #[inline(always)]
    pub fn has_stamped(&self) -> bool {
        // ORDERING: Relaxed. Ours or a later holder's; a later holder takes a look of its own.
        let head = self.head.load(Ordering::Relaxed);
        // ORDERING: Acquire, as in `Drain::next`: a hint would need less, but a caller may act on it.
        self.cell(head).stamp.load(Ordering::Acquire) >> 32 == self.lap(head) >> 32
    }

    /// Holder of LOCK only, no [`Drain`] alive: whether every claimed command was taken. `false` beside
    /// [`has_stamped`](Self::has_stamped) `false` is a hole: somebody sleeps between claim and stamp.
    #[inline(always)]
    pub fn is_drained(&self) -> bool {
        // ORDERING: Relaxed both; `head` is the holder's own, an earlier claim is seen by coherence.
        self.tail.load(Ordering::Relaxed) == self.head.load(Ordering::Relaxed)
    }

    /// The next position to be claimed: every push that happened before this call lies before it. Holder of
    /// LOCK only, who compares it with [`Drain::position`].
    #[inline]
    pub fn tail(&self) -> u64 {
        // ORDERING: Relaxed; a claim that happened before this load is seen by coherence.
        self.tail.load(Ordering::Relaxed)
    }

    /// Holder of LOCK only: starts taking commands, in the order of their claims. One drain at a time.
    #[inline]
    pub fn drain(&self) -> Drain<'_> {
        // ORDERING: Relaxed; only holders store `head`, and LOCK orders them.
        let head = self.head.load(Ordering::Relaxed);
        Drain { ring: self, head, published: head }
    }
}

impl fmt::Debug for CommandRing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CommandRing")
            .field("capacity", &self.capacity())
            .field("tail", &self.tail)
            .field("head", &self.head)
            .finish_non_exhaustive()
    }
}

/// The consumer's side of a [`CommandRing`]. Gives the cells back in batches, the last when dropped.
#[derive(Debug)]
pub struct Drain<'a> {
    ring: &'a CommandRing,
    head: u64,
    published: u64,
}

impl Drain<'_> {
    /// The next command; `None` at the first cell that is not filled, be it claimed or not.
    #[inline]
    #[allow(clippy::should_implement_trait, reason = "not fused: it may go on after a None")]
    pub fn next(&mut self) -> Option<Command> {
        let cell = self.ring.cell(self.head);
        // ORDERING: Acquire pairs with the stamp's Release in `CommandRing::fill`.
        let stamp = cell.stamp.load(Ordering::Acquire);
        #[allow(clippy::cast_possible_truncation, reason = "the lower half is the code")]
        let code = stamp as u32;
        if stamp - u64::from(code) != self.ring.lap(self.head) {
            return None;
        }
        self.head += 1;
        if planted!("m02") {
            self.publish_if_due();
        }
        // ORDERING: Relaxed; ordered by the stamp.
        let arg = cell.arg.load(Ordering::Relaxed);
        self.publish_if_due();
        Some(Command { code, arg })
    }

    /// The position of the command that comes next.
    #[inline]
    pub const fn position(&self) -> u64 {
        self.head
    }

    #[inline]
    fn publish_if_due(&mut self) {
        if self.head - self.published >= PUBLISH_EVERY {
            self.publish();
        }
    }

    /// Gives the taken cells back to the pushers now.
    #[inline]
    pub fn publish(&mut self) {
        if self.head != self.published {
            // ORDERING: Release pairs with the Acquire in `CommandRing::claim` and `is_empty`: our loads of
            // the cells come before a pusher's stores into them.
            self.ring.head.store(self.head, Ordering::Release);
            self.published = self.head;
        }
    }
}

impl Drop for Drain<'_> {
    fn drop(&mut self) {
        self.publish();
    }
}

#[cfg(all(test, not(loom)))]
impl CommandRing {
    /// A pusher that loses its core between claim and stamp; [`fill_hole`](Self::fill_hole) is its return.
    pub(crate) fn leave_hole(&self) -> Option<u64> {
        let (at, n) = self.claim(1);
        (n == 1).then_some(at)
    }

    /// See [`leave_hole`](Self::leave_hole).
    pub(crate) fn fill_hole(&self, position: u64, command: Command) {
        self.fill(position, command);
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::{Command, CommandRing, Full};

    fn command(n: u32) -> Command {
        Command { code: n, arg: u64::from(n) << 33 | 1 }
    }

    fn take(ring: &CommandRing) -> Option<Command> {
        ring.drain().next()
    }

    #[test]
    fn commands_leave_in_the_order_they_came_over_many_laps() {
        for capacity in [1, 2, 8] {
            let ring = CommandRing::new(capacity);
            for n in 0..100 {
                assert!(ring.is_empty() && ring.is_drained() && !ring.has_stamped());
                for i in 0..capacity {
                    assert_eq!(ring.push(command(n * capacity + i)), Ok(()));
                }
                assert_eq!(ring.push(command(0)), Err(Full));
                assert!(!ring.is_empty() && !ring.is_drained() && ring.has_stamped());
                for i in 0..capacity {
                    assert_eq!(take(&ring), Some(command(n * capacity + i)));
                }
                assert_eq!(take(&ring), None);
            }
        }
    }

    #[test]
    fn a_batch_takes_what_fits_and_no_more() {
        let ring = CommandRing::new(4);
        let burst = [0, 1, 2, 3, 4, 5].map(command);
        assert_eq!(ring.push(command(9)), Ok(()));
        assert_eq!(ring.push_batch(&burst), 3);
        assert_eq!(ring.push_batch(&burst), 0);
        assert_eq!(ring.push_batch(&[]), 0);
        assert_eq!(take(&ring), Some(command(9)));
        for i in 0..3 {
            assert_eq!(take(&ring), Some(command(i)));
        }
        assert_eq!(ring.push_batch(&burst), 4);
    }

    #[test]
    fn the_drain_stops_at_a_claimed_cell_that_is_not_filled() {
        let ring = CommandRing::new(4);
        assert_eq!(ring.push(command(1)), Ok(()));
        let (hole, n) = ring.claim(1);
        assert_eq!(n, 1);
        assert_eq!(ring.push(command(3)), Ok(()));
        {
            let mut drain = ring.drain();
            assert_eq!(drain.next(), Some(command(1)));
            assert_eq!(drain.next(), None);
        }
        assert!(!ring.is_empty() && !ring.is_drained(), "a claim closes the fast path");
        assert!(!ring.has_stamped(), "a hole does not keep the holder");
        ring.fill(hole, command(2));
        assert!(ring.has_stamped());
        let mut drain = ring.drain();
        assert_eq!(drain.next(), Some(command(2)));
        assert_eq!(drain.next(), Some(command(3)));
    }

    #[test]
    fn a_long_drain_gives_cells_back_while_it_runs() {
        let ring = CommandRing::new(64);
        for i in 0..64 {
            assert_eq!(ring.push(command(i)), Ok(()));
        }
        let mut drain = ring.drain();
        for i in 0..31 {
            assert_eq!(drain.next(), Some(command(i)));
        }
        assert_eq!(ring.push(command(99)), Err(Full));
        assert_eq!(drain.next(), Some(command(31)));
        assert_eq!(ring.push(command(99)), Ok(()));
    }

    #[test]
    fn the_lap_survives_its_wrap() {
        let ring = CommandRing::new(2);
        let start = (1_u64 << 33) - 6; // three laps before the 32-bit lap wraps
        for position in start..start + 2 {
            let before = ring.lap(position - 2);
            ring.cell(position).stamp.store(before, super::Ordering::Relaxed);
        }
        ring.tail.store(start, super::Ordering::Relaxed);
        ring.head.store(start, super::Ordering::Relaxed);
        for n in 0..20 {
            assert_eq!(take(&ring), None);
            assert_eq!(ring.push(command(n)), Ok(()));
            assert!(ring.has_stamped());
            assert_eq!(take(&ring), Some(command(n)));
        }
    }

    #[test]
    fn two_pushers_lose_nothing_and_keep_their_own_order() {
        const EACH: u32 = if cfg!(miri) { 100 } else { 20_000 };
        let ring = CommandRing::new(8);
        std::thread::scope(|s| {
            for who in 0..2_u32 {
                let ring = &ring;
                s.spawn(move || {
                    for n in 0..EACH {
                        let c = Command { code: who, arg: u64::from(n) };
                        while ring.push(c).is_err() {
                            std::thread::yield_now();
                        }
                    }
                });
            }
            let mut next = [0_u64; 2];
            while next != [u64::from(EACH); 2] {
                let mut drain = ring.drain();
                while let Some(c) = drain.next() {
                    let expected = &mut next[c.code as usize];
                    assert_eq!(c.arg, *expected);
                    *expected += 1;
                }
                drop(drain);
                std::thread::yield_now();
            }
        });
        assert!(ring.is_empty());
    }
}
