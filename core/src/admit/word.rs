//! The pool word: slot count, waiters and lock of one pool in one 64-bit atomic.
//!
//! | bits   | field     | meaning |
//! |--------|-----------|---------|
//! | 63..40 | `free`    | effective size - running, signed: below zero after a shrink |
//! | 39..16 | `waiters` | all who wait, if the last holder stopped for want of a slot or of budget; else 0 |
//! | 15..4  | `epoch`   | +1 with every change of a reserve or of the size |
//! | 3      | `DEAD`    | a holder panicked; LOCK stays set |
//! | 2      | `CLOSED`  | drain or shutdown: admits take LOCK |
//! | 1      | `BLOCKED` | somebody waits and nobody who waits may run: releases take LOCK |
//! | 0      | `LOCK`    | the plain state has an owner |
//!
//! `free` is on top, so one slot is `1 << 40`, no carry reaches another field, and an arithmetic shift
//! reads it. While LOCK is set only the holder changes the word (everybody else only tries a
//! compare-and-swap from a value with LOCK clear), which is why the holder unlocks by a plain store.
//!
//! | access | ordering | pairs with |
//! |--------|----------|------------|
//! | [`PoolGate::try_lock`] CAS | Acquire | [`PoolGate::unlock`] store, [`PoolGate::release`] CAS |
//! | [`PoolGate::admit`] load, CAS | Acquire | [`PoolGate::unlock`] store (reserves), [`PoolGate::release`] CAS |
//! | [`PoolGate::release`] CAS | Release | the two above |
//! | [`PoolGate::unlock`] store | Release | the first two |

use core::fmt;

use crate::sync::{AtomicI32, AtomicU64, Backoff, Ordering, planted};
use crate::types::MAX_BANDS;
use crossbeam_utils::CachePadded;

/// A value of the pool word.
#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(transparent)]
pub struct PoolWord(u64);

impl PoolWord {
    /// The plain state has an owner.
    pub const LOCK: u64 = 1;
    /// Releases must take LOCK: somebody waits whom only a release under LOCK may find.
    pub const BLOCKED: u64 = 1 << 1;
    /// Admits must take LOCK: the pool drains or is shut down.
    pub const CLOSED: u64 = 1 << 2;
    /// A holder panicked.
    pub const DEAD: u64 = 1 << 3;
    /// One slot.
    pub const ONE: u64 = 1 << Self::FREE_SHIFT;

    const EPOCH_SHIFT: u32 = 4;
    const EPOCH_MASK: u64 = 0xfff << Self::EPOCH_SHIFT;
    const WAITERS_SHIFT: u32 = 16;
    const WAITERS_MAX: u64 = (1 << 24) - 1;
    const WAITERS_MASK: u64 = Self::WAITERS_MAX << Self::WAITERS_SHIFT;
    const FREE_SHIFT: u32 = 40;

    /// An open, unlocked pool of `size` free slots (at most 2^20).
    pub const fn new(size: u32) -> Self {
        Self((size as u64) << Self::FREE_SHIFT)
    }

    /// The raw bits, for reports and models.
    pub const fn bits(self) -> u64 {
        self.0
    }

    /// Free slots; below zero after a shrink under load.
    #[inline(always)]
    pub const fn free(self) -> i32 {
        // 24 bits remain after the shift: always fits.
        #[allow(
            clippy::cast_possible_truncation,
            clippy::cast_possible_wrap,
            reason = "24 bits remain"
        )]
        let free = ((self.0 as i64) >> Self::FREE_SHIFT) as i32;
        free
    }

    /// The waiter count that closes the fast path (0 when nobody who waits could run).
    pub const fn waiters(self) -> u32 {
        #[allow(clippy::cast_possible_truncation, reason = "24 bits remain")]
        let waiters = ((self.0 & Self::WAITERS_MASK) >> Self::WAITERS_SHIFT) as u32;
        waiters
    }

    /// Counts reserve and size changes, modulo 4,096.
    pub const fn epoch(self) -> u32 {
        #[allow(clippy::cast_possible_truncation, reason = "12 bits remain")]
        let epoch = ((self.0 & Self::EPOCH_MASK) >> Self::EPOCH_SHIFT) as u32;
        epoch
    }

    /// Whether all of `flags` are set.
    #[inline(always)]
    pub const fn has(self, flags: u64) -> bool {
        self.0 & flags == flags
    }

    /// Whether a pool-only admit has to take the slow path.
    #[inline(always)]
    const fn closes_admit(self) -> bool {
        self.0 & (Self::LOCK | Self::CLOSED | Self::WAITERS_MASK) != 0
    }

    /// Whether a pool-only release has to take the slow path.
    #[inline(always)]
    const fn closes_release(self) -> bool {
        self.0 & (Self::LOCK | Self::BLOCKED | Self::WAITERS_MASK) != 0
    }

    /// The same word with `n` slots more (or fewer) free.
    #[inline(always)]
    #[must_use]
    pub const fn add_free(self, n: i32) -> Self {
        #[allow(
            clippy::cast_sign_loss,
            reason = "two's complement addition of a signed field on top"
        )]
        Self(self.0.wrapping_add((n as i64 as u64) << Self::FREE_SHIFT))
    }

    /// The same word, one epoch later.
    #[must_use]
    pub const fn next_epoch(self) -> Self {
        let epoch = self.0.wrapping_add(1 << Self::EPOCH_SHIFT) & Self::EPOCH_MASK;
        Self(self.0 & !Self::EPOCH_MASK | epoch)
    }

    /// The same word, closed to admits.
    #[must_use]
    pub const fn closed(self) -> Self {
        Self(self.0 | Self::CLOSED)
    }

    /// The same word with LOCK clear: for a hold that changed nothing that decides.
    #[must_use]
    pub const fn without_lock(self) -> Self {
        Self(self.0 & !Self::LOCK)
    }

    /// The word to unlock with: LOCK clear, `waiters` (saturating) and BLOCKED as given.
    #[inline(always)]
    #[must_use]
    pub const fn unlocked(self, waiters: u32, blocked: bool) -> Self {
        let waiters =
            if waiters as u64 > Self::WAITERS_MAX { Self::WAITERS_MAX } else { waiters as u64 };
        let kept = self.0 & !(Self::LOCK | Self::BLOCKED | Self::WAITERS_MASK);
        Self(kept | waiters << Self::WAITERS_SHIFT | (blocked as u64) << 1)
    }
}

impl fmt::Debug for PoolWord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PoolWord")
            .field("free", &self.free())
            .field("waiters", &self.waiters())
            .field("epoch", &self.epoch())
            .field("dead", &self.has(Self::DEAD))
            .field("closed", &self.has(Self::CLOSED))
            .field("blocked", &self.has(Self::BLOCKED))
            .field("lock", &self.has(Self::LOCK))
            .finish()
    }
}

/// What a try for LOCK found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TryLock {
    /// LOCK is ours; the word as it was, with LOCK set.
    Ours(PoolWord),
    /// Somebody else holds it.
    Taken,
    /// A holder panicked: nobody will ever hold it again.
    Dead,
}

/// The pool word with the reserves it is read together with.
#[derive(Debug)]
pub struct PoolGate {
    word: CachePadded<AtomicU64>,
    /// Free slots a band must leave: it is admitted iff `free > reserve`. Written only under LOCK,
    /// together with a step of the epoch.
    reserves: [AtomicI32; RESERVES],
}

/// One reserve per band; few in the loom models, which build them anew for each execution.
const RESERVES: usize = if cfg!(loom) { 4 } else { MAX_BANDS };

impl PoolGate {
    /// Tries of a pool-only admit or release before it takes the slow path.
    const TRIES: u32 = 8;

    /// Reserve of a band that a detector or gauge gates: no count of free slots is enough.
    pub const GATED: i32 = i32::MAX;

    /// An open pool of `size` free slots without reserves.
    pub fn new(size: u32) -> Self {
        Self {
            word: CachePadded::new(AtomicU64::new(PoolWord::new(size).0)),
            reserves: core::array::from_fn(|_| AtomicI32::new(0)),
        }
    }

    /// The word now; stale when it returns. For reports, and for the look before a long way.
    pub fn peek(&self) -> PoolWord {
        // ORDERING: Relaxed; a report, nothing is read on the strength of it.
        PoolWord(self.word.load(Ordering::Relaxed))
    }

    /// Whether a holder panicked.
    pub fn is_dead(&self) -> bool {
        self.peek().has(PoolWord::DEAD)
    }

    /// Takes LOCK, or says who has it. Lock-free: a lost CAS means a pool-only step of another won.
    #[inline(always)]
    pub fn try_lock(&self) -> TryLock {
        // ORDERING: Relaxed; only the CAS below decides.
        let mut word = self.word.load(Ordering::Relaxed);
        loop {
            if word & PoolWord::LOCK != 0 {
                return if word & PoolWord::DEAD != 0 { TryLock::Dead } else { TryLock::Taken };
            }
            // ORDERING: Acquire pairs with `unlock` (the last holder's plain state) and with the Release
            // of `release` (what ran before a slot came back); nothing is published here.
            match self.word.compare_exchange_weak(
                word,
                word | PoolWord::LOCK,
                Ordering::Acquire,
                Ordering::Relaxed,
            ) {
                Ok(_) => return TryLock::Ours(PoolWord(word | PoolWord::LOCK)),
                // A changed count is not a taken lock: go on.
                Err(now) => {
                    if planted!("l2") {
                        return TryLock::Taken;
                    }
                    word = now;
                }
            }
        }
    }

    /// Takes LOCK within a bounded back-off.
    #[inline(always)]
    pub fn lock_within_backoff(&self) -> TryLock {
        match self.try_lock() {
            TryLock::Taken => self.lock_contended(),
            answer => answer,
        }
    }

    #[cold]
    fn lock_contended(&self) -> TryLock {
        if cfg!(loom) {
            // Each pause would cost a model one preemption, so the ways of the loser would go unexplored.
            return TryLock::Taken;
        }
        let mut backoff = Backoff::new();
        while !backoff.is_spent() {
            backoff.snooze();
            match self.try_lock() {
                TryLock::Taken => {}
                answer => return answer,
            }
        }
        TryLock::Taken
    }

    /// Pool-only admit: one CAS that succeeds only if LOCK and CLOSED are clear, nobody who could run
    /// waits, the ring is empty and `free > reserve[band]`. `false`: take the slow path.
    #[inline(always)]
    pub fn admit(&self, band: usize, ring_is_empty: impl Fn() -> bool) -> bool {
        let mut backoff = Backoff::new();
        for _ in 0..Self::TRIES {
            // ORDERING: Acquire pairs with `unlock`: the reserve read next is at least as new as this word.
            let word = PoolWord(self.word.load(Ordering::Acquire));
            if word.closes_admit() {
                return false;
            }
            // ORDERING: Relaxed; ordered by the Acquire above, and the epoch in `word` makes the CAS fail
            // if a holder has changed it since.
            let reserve = self.reserves[band].load(Ordering::Relaxed);
            if word.free() <= reserve {
                return false;
            }
            // The ring is part of the queue: whoever admits without looking at it overtakes a command.
            if !planted!("o1") && !ring_is_empty() {
                return false;
            }
            if planted!("m06") {
                // ORDERING: Release, as if only the publication mattered.
                self.word.store(word.add_free(-1).0, Ordering::Release);
                return true;
            }
            // ORDERING: Acquire pairs with the Release of `release`: what ran in this slot is over.
            let taken = self.word.compare_exchange_weak(
                word.0,
                word.add_free(-1).0,
                Ordering::Acquire,
                Ordering::Relaxed,
            );
            if taken.is_ok() {
                return true;
            }
            backoff.snooze();
        }
        false
    }

    /// Pool-only release: one CAS unless LOCK, BLOCKED or `waiters` is set. `false`: take the slow path.
    #[inline(always)]
    pub fn release(&self) -> bool {
        let mut backoff = Backoff::new();
        for _ in 0..Self::TRIES {
            // ORDERING: Relaxed; the CAS decides, and nothing of others is read.
            let word = PoolWord(self.word.load(Ordering::Relaxed));
            if word.closes_release() && (word.has(PoolWord::LOCK) || !planted!("b2")) {
                return false;
            }
            if planted!("w1") {
                // ORDERING: Release; right, but LOCK may have been taken since the look.
                self.word.fetch_add(PoolWord::ONE, Ordering::Release);
                return true;
            }
            // ORDERING: Release pairs with the Acquire of `admit` and `try_lock`.
            let given = self.word.compare_exchange_weak(
                word.0,
                word.add_free(1).0,
                Ordering::Release,
                Ordering::Relaxed,
            );
            if given.is_ok() {
                return true;
            }
            backoff.snooze();
        }
        false
    }

    /// Gives LOCK back with the word the holder computed (LOCK clear in it). Holder only.
    #[inline(always)]
    pub fn unlock(&self, word: PoolWord) {
        debug_assert!(!word.has(PoolWord::LOCK), "the holder unlocks with LOCK clear");
        let order = if planted!("l1-relaxed") { Ordering::Relaxed } else { Ordering::Release };
        // ORDERING: Release pairs with the Acquire of `try_lock` and `admit`: the plain state and the
        // reserves written under LOCK. A plain store suffices: nobody else writes while LOCK is set.
        self.word.store(word.0, order);
    }

    /// Marks the pool dead, LOCK left set: every later call answers `Poisoned`. Holder only.
    pub fn poison(&self, word: PoolWord) {
        // ORDERING: Release, as `unlock`; later tries read DEAD and never the plain state.
        self.word.store(word.0 | PoolWord::LOCK | PoolWord::DEAD, Ordering::Release);
    }

    /// Sets the reserve of a band. Under LOCK only, together with [`PoolWord::next_epoch`].
    pub fn set_reserve(&self, band: usize, reserve: i32) {
        // ORDERING: Relaxed; published by `unlock`, and a stale read is caught by the epoch.
        self.reserves[band].store(reserve, Ordering::Relaxed);
    }

    /// The reserve of a band as last set. Exact under LOCK.
    #[inline(always)]
    pub fn reserve(&self, band: usize) -> i32 {
        // ORDERING: Relaxed; the holder wrote it or acquired it with LOCK.
        self.reserves[band].load(Ordering::Relaxed)
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn fields_do_not_carry_into_each_other() {
        let word = PoolWord::new(3).add_free(-5);
        assert_eq!((word.free(), word.waiters(), word.epoch()), (-2, 0, 0));
        let word = word.unlocked(u32::MAX, true);
        assert_eq!((word.free(), word.waiters()), (-2, (1 << 24) - 1));
        assert!(word.has(PoolWord::BLOCKED) && !word.has(PoolWord::LOCK));
        let word = (0..4_096).fold(word, |w, _| w.next_epoch());
        assert_eq!((word.free(), word.epoch(), word.waiters()), (-2, 0, (1 << 24) - 1));
    }

    #[test]
    fn an_admit_stops_at_the_reserve_and_at_every_closing_mark() {
        let gate = PoolGate::new(2);
        gate.set_reserve(1, 1);
        assert!(gate.admit(1, || true), "two free, one reserved");
        assert!(!gate.admit(1, || true), "one free, one reserved");
        assert!(!gate.admit(0, || false), "a command in the ring");
        assert!(gate.admit(0, || true) && !gate.admit(0, || true));
        let TryLock::Ours(word) = gate.try_lock() else { panic!("free lock") };
        assert_eq!(gate.try_lock(), TryLock::Taken);
        assert!(!gate.release(), "a release under LOCK goes the slow way");
        gate.unlock(word.add_free(2).unlocked(0, true));
        assert!(!gate.release(), "BLOCKED sends releases through LOCK");
        assert!(gate.admit(0, || true), "BLOCKED leaves admits open");
        let TryLock::Ours(word) = gate.try_lock() else { panic!("free lock") };
        gate.unlock(word.closed().unlocked(0, false));
        assert!(!gate.admit(0, || true) && gate.release());
        let TryLock::Ours(word) = gate.try_lock() else { panic!("free lock") };
        gate.poison(word);
        assert_eq!(gate.try_lock(), TryLock::Dead);
    }
}
