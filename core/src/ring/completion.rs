//! Completion ring: answers on their way to a host, for which the place was reserved beforehand.
//!
//! A submit that wants its answer here reserves a place first, and is refused if there is none. So the
//! holder of LOCK, who cannot wait and cannot lose an answer, never finds the ring full.
//!
//! | word | written by | ordering | read by | ordering |
//! | --- | --- | --- | --- | --- |
//! | `reserved` | reserving, RMW | Acquire | same | |
//! | | consumer, unreserving, RMW | Release | | |
//! | `tail` | producer | Release: the slot is filled | consumer | Acquire |
//! | `head` | consumer | Relaxed: `reserved` gives the slot back | [`len`](CompletionRing::len) | Relaxed |
//!
//! Why a slot is free when the producer comes to it: before push number `t` at least `t + 1` places were
//! reserved, and of the first `t + 1` reservations the last could only succeed after `t + 1 - capacity`
//! pops, that of this slot among them. Every change of `reserved` is an RMW, so its Acquire sees all of
//! those pops; and the reservation comes before its own push, that push not after push `t`.

use alloc::boxed::Box;
use core::fmt;
use core::mem::MaybeUninit;

use crossbeam_utils::CachePadded;

use crate::sync::{AtomicU64, Backoff, Ordering, UnsafeCell, planted};

/// What only the consumer touches.
struct Consumer {
    head: AtomicU64,
    /// Places taken out and not given back yet.
    freed: UnsafeCell<u64>,
    /// The last `tail` the consumer saw: it reads the producer's line only when this is used up.
    tail_seen: UnsafeCell<u64>,
}

/// Bounded ring with one producer and one consumer at a time, places reserved by anybody.
///
/// What is still in it is dropped with it. `reserve` is lock-free, the rest wait-free.
pub struct CompletionRing<T> {
    reserved: CachePadded<AtomicU64>,
    tail: CachePadded<AtomicU64>,
    consumer: CachePadded<Consumer>,
    slots: Box<[UnsafeCell<MaybeUninit<T>>]>,
    capacity: u64,
    batch: u64,
}

// SAFETY: values of `T` only pass through, owned by one side at a time; `push` and `pop` are unsafe and
// their callers are the only producer and the only consumer.
unsafe impl<T: Send> Sync for CompletionRing<T> {}
// SAFETY: as above; nothing is tied to the thread that made it.
unsafe impl<T: Send> Send for CompletionRing<T> {}

impl<T> CompletionRing<T> {
    /// A ring with `capacity` places (a power of two, at least 1). The only allocation it ever makes.
    pub fn new(capacity: u32) -> Self {
        assert!(capacity.is_power_of_two(), "a ring's capacity is a power of two");
        Self {
            reserved: CachePadded::new(AtomicU64::new(0)),
            tail: CachePadded::new(AtomicU64::new(0)),
            consumer: CachePadded::new(Consumer {
                head: AtomicU64::new(0),
                freed: UnsafeCell::new(0),
                tail_seen: UnsafeCell::new(0),
            }),
            slots: (0..capacity).map(|_| UnsafeCell::new(MaybeUninit::uninit())).collect(),
            capacity: u64::from(capacity),
            batch: u64::from(capacity / 16).clamp(1, 32),
        }
    }

    #[inline(always)]
    #[allow(clippy::cast_possible_truncation, reason = "masked to the length of a slice")]
    fn slot(&self, position: u64) -> &UnsafeCell<MaybeUninit<T>> {
        let index = (position & (self.capacity - 1)) as usize;
        debug_assert!(index < self.slots.len(), "as many slots as the capacity");
        // SAFETY: masked by the capacity, a power of two and the number of slots; neither ever changes.
        unsafe { self.slots.get_unchecked(index) }
    }

    /// Places a holder reserves ahead, and a consumer gives back, at a time: one read-modify-write for
    /// many. 1 in a small ring, where every place counts.
    #[inline]
    pub const fn batch(&self) -> u64 {
        self.batch
    }

    /// Reserves a place for one later [`push`](Self::push); `false` if all are reserved or filled.
    /// Lock-free; any thread.
    #[must_use]
    pub fn reserve(&self) -> bool {
        self.reserve_up_to(1) == 1
    }

    /// Reserves up to `wanted` places, as many as there are; how many. Lock-free; any thread.
    #[must_use]
    pub fn reserve_up_to(&self, wanted: u64) -> u64 {
        let mut backoff = Backoff::new();
        // ORDERING: Relaxed. Only a guess for the CAS below.
        let mut n = self.reserved.load(Ordering::Relaxed);
        let take = if planted!("completion") { Ordering::Relaxed } else { Ordering::Acquire };
        while n < self.capacity {
            let got = wanted.min(self.capacity - n);
            // ORDERING: Acquire pairs with the Release in `pop`: the consumer is done with the place.
            match self.reserved.compare_exchange_weak(n, n + got, take, Ordering::Relaxed) {
                Ok(_) => return got,
                Err(now) => n = now,
            }
            backoff.snooze();
        }
        0
    }

    /// Gives `n` reservations back that will not be used. Wait-free; any thread.
    pub fn unreserve(&self, n: u64) {
        // ORDERING: Relaxed. It hands no slot over, and as an RMW keeps earlier Releases visible.
        let before = self.reserved.fetch_sub(n, Ordering::Relaxed);
        debug_assert!(before >= n, "unreserve without a reservation");
    }

    /// Fills a reserved place. Cannot fail. Wait-free.
    ///
    /// # Safety
    ///
    /// The caller is the only one in `push` on this ring (it holds the LOCK of the only pool that answers
    /// here), uses up a reservation that succeeded, and both are ordered: the previous `push` and that
    /// `reserve` happened before this call.
    #[inline(always)]
    pub unsafe fn push(&self, value: T) {
        // ORDERING: Relaxed; only producers store it, and the caller's lock orders them.
        let tail = self.tail.load(Ordering::Relaxed);
        self.slot(tail).with_mut(|slot| {
            // SAFETY: the slot is free (see the page), and no other producer is here (caller).
            let slot = unsafe { &mut *slot };
            slot.write(value);
        });
        // ORDERING: Release pairs with the Acquire in `pop`: who sees `tail` sees the value.
        self.tail.store(tail + 1, Ordering::Release);
    }

    /// Takes the oldest answer and frees its place. Wait-free.
    ///
    /// # Safety
    ///
    /// The caller is the only one in `pop` on this ring, and the previous `pop` happened before.
    #[inline(always)]
    pub unsafe fn pop(&self) -> Option<T> {
        // ORDERING: Relaxed; only consumers store it, one after the other (caller).
        let head = self.consumer.head.load(Ordering::Relaxed);
        let is_filled = self.consumer.tail_seen.with_mut(|seen| {
            // SAFETY: only the consumer touches `tail_seen`, and the caller is the only one.
            let seen = unsafe { &mut *seen };
            if *seen != head {
                return true;
            }
            // ORDERING: Acquire pairs with the Release in `push`: the slots before it are filled.
            let tail = self.tail.load(Ordering::Acquire);
            if tail != head {
                *seen = tail;
            }
            tail != head
        });
        if !is_filled {
            // Nothing left to come: what was taken out is given back now, whatever the batch.
            self.give_back();
            return None;
        }
        // SAFETY: the slot of `head` is filled, and our caller is the only consumer.
        Some(unsafe { self.take(head) })
    }

    /// Takes the answer at `head`.
    ///
    /// # Safety
    ///
    /// As [`pop`](Self::pop), and `tail` was seen beyond `head`.
    #[inline(always)]
    unsafe fn take(&self, head: u64) -> T {
        let value = self.slot(head).with_mut(|slot| {
            // SAFETY: the pointer is to a live slot, and the producer does not touch it: it is not free.
            let slot = unsafe { &mut *slot };
            // SAFETY: `tail` was beyond it, so it was filled; `head` moves on, so it is read once.
            unsafe { slot.assume_init_read() }
        });
        // ORDERING: Relaxed; the release in `give_back` gives the slot back.
        self.consumer.head.store(head + 1, Ordering::Relaxed);
        self.count_taken();
        value
    }

    /// Counts a place taken out, and gives places back once there are `batch`. Consumer only.
    #[inline(always)]
    fn count_taken(&self) {
        let is_batch = self.consumer.freed.with_mut(|freed| {
            // SAFETY: only the consumer touches `freed`, and our caller is the only one.
            let freed = unsafe { &mut *freed };
            *freed += 1;
            *freed >= self.batch
        });
        if is_batch {
            self.give_back();
        }
    }

    /// Gives back what was taken out, if anything. Consumer only.
    #[inline(never)]
    fn give_back(&self) {
        let freed = self.consumer.freed.with_mut(|freed| {
            // SAFETY: only the consumer touches `freed`, and our caller is the only one.
            core::mem::take(unsafe { &mut *freed })
        });
        if freed > 0 {
            // ORDERING: Release pairs with the Acquire in `reserve_up_to`: our reads of the slots first.
            self.reserved.fetch_sub(freed, Ordering::Release);
        }
    }

    /// Places reserved or filled; stale at once. Wait-free; any thread.
    pub fn reserved(&self) -> u64 {
        // ORDERING: Relaxed; a statistic.
        self.reserved.load(Ordering::Relaxed)
    }

    /// Places there are.
    pub const fn capacity(&self) -> u64 {
        self.capacity
    }

    /// How many answers wait; stale at once. Wait-free; any thread.
    pub fn len(&self) -> u64 {
        // ORDERING: Relaxed both; a statistic.
        let head = self.consumer.head.load(Ordering::Relaxed);
        self.tail.load(Ordering::Relaxed).saturating_sub(head)
    }

    /// Whether no answer waits: the consumer's look before it sleeps, behind a `fence(SeqCst)`.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl<T> Drop for CompletionRing<T> {
    fn drop(&mut self) {
        // SAFETY: `&mut self`: nobody else is in `pop` or ever will be.
        while let Some(value) = unsafe { self.pop() } {
            drop(value);
        }
    }
}

impl<T> fmt::Debug for CompletionRing<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CompletionRing")
            .field("capacity", &self.capacity)
            .field("reserved", &self.reserved)
            .field("len", &self.len())
            .finish_non_exhaustive()
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::CompletionRing;
    use crate::sync::Arc;

    fn push<T>(ring: &CompletionRing<T>, value: T) {
        // SAFETY: each test pushes from one thread, after a reservation.
        unsafe { ring.push(value) }
    }

    fn pop<T>(ring: &CompletionRing<T>) -> Option<T> {
        // SAFETY: each test pops from one thread.
        unsafe { ring.pop() }
    }

    #[test]
    fn a_place_is_reserved_until_its_answer_is_taken() {
        for capacity in [1, 4] {
            let ring = CompletionRing::new(capacity);
            for lap in 0..10_u32 {
                assert_eq!(pop(&ring), None);
                for _ in 0..capacity {
                    assert!(ring.reserve());
                }
                assert!(!ring.reserve(), "all reserved, none filled");
                for i in 0..capacity {
                    push(&ring, lap * 100 + i);
                }
                assert_eq!(ring.len(), u64::from(capacity));
                assert!(!ring.reserve(), "all filled");
                for i in 0..capacity {
                    assert_eq!(pop(&ring), Some(lap * 100 + i));
                }
                assert!(ring.is_empty());
            }
        }
    }

    #[test]
    fn an_unused_reservation_can_be_given_back() {
        let ring = CompletionRing::<u8>::new(1);
        assert!(ring.reserve());
        ring.unreserve(1);
        assert!(ring.reserve());
        assert!(!ring.reserve());
    }

    #[test]
    fn answers_that_nobody_took_are_dropped_once() {
        let value = Arc::new(());
        {
            let ring = CompletionRing::new(4);
            for _ in 0..3 {
                assert!(ring.reserve());
                push(&ring, Arc::clone(&value));
            }
            drop(pop(&ring));
            assert_eq!(Arc::strong_count(&value), 3);
        }
        assert_eq!(Arc::strong_count(&value), 1);
    }

    #[test]
    fn a_slow_consumer_stops_reservations_and_loses_nothing() {
        const ROUNDS: u64 = if cfg!(miri) { 100 } else { 20_000 };
        let ring = CompletionRing::new(4);
        std::thread::scope(|s| {
            s.spawn(|| {
                for n in 0..ROUNDS {
                    while !ring.reserve() {
                        std::thread::yield_now();
                    }
                    push(&ring, n);
                }
            });
            for n in 0..ROUNDS {
                let taken = loop {
                    match pop(&ring) {
                        Some(taken) => break taken,
                        None => std::thread::yield_now(),
                    }
                };
                assert_eq!(taken, n);
            }
        });
    }
}
