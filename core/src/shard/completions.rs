//! Completion queues: where the outcomes of submitted requests go.
//!
//! A queue has one ring per pool, since the holder of a pool's LOCK is the ring's single producer, and one
//! bell for all. A submit reserves its place, so that the holder never finds a ring full.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::ptr::NonNull;
use std::sync::OnceLock;

use crate::error::Reason;
use crate::notify::doorbell::Doorbell;
use crate::ring::completion::CompletionRing;
use crate::sync::{AtomicU32, AtomicU64, Ordering};
use crate::types::NONE;

/// Completion queues an engine may have at once.
pub const MAX_QUEUES: usize = 64;

/// A completion queue as an entry names it: slot in the low bits, generation above, so that a request
/// never completes into a later queue of the same slot.
#[derive(Clone, Copy, Debug)]
pub struct QueueName;

impl QueueName {
    /// The name of the `generation`th queue in a slot. Never `NONE`.
    pub const fn pack(slot: usize, generation: u32) -> u32 {
        #[allow(clippy::cast_possible_truncation, reason = "a slot is below 64")]
        let slot = slot as u32;
        (generation % (1 << 25)) << 6 | slot
    }

    /// The slot of a name.
    pub const fn slot(name: u32) -> usize {
        (name & 63) as usize
    }
}

/// A completion queue as a pool's holder knows it: the way to its ring without the table of queues.
#[derive(Clone, Copy, Debug)]
pub struct OpenQueue {
    /// The queue's name, or `NONE`: the slot is not open here.
    pub name: u32,
    /// Places reserved ahead, so that a queued submit needs no read-modify-write of its own.
    pub places: u32,
    /// Absent while the slot is not open.
    link: Option<QueueLink>,
}

/// A completion queue and a pool's ring in it, in the engine's table of queues, whose memory is only freed
/// with the engine.
#[derive(Clone, Copy, Debug)]
pub(super) struct QueueLink {
    queue: NonNull<QueueCore>,
    ring: NonNull<CompletionRing<Record>>,
}

impl QueueLink {
    /// The queue.
    #[inline(always)]
    pub(super) fn get(&self) -> &QueueCore {
        // SAFETY: links are only used by calls into the engine that owns the table.
        unsafe { self.queue.as_ref() }
    }

    #[inline(always)]
    fn ring(&self) -> &CompletionRing<Record> {
        // SAFETY: as in `get`.
        unsafe { self.ring.as_ref() }
    }
}

impl OpenQueue {
    /// Not open.
    pub const NONE: Self = Self { name: NONE, places: 0, link: None };

    /// Open under this name, for the pool at this index of the engine. `queue` is one of the engine's.
    pub(super) fn new(name: u32, queue: &QueueCore, pool: usize) -> Self {
        let link = QueueLink { queue: NonNull::from(queue), ring: NonNull::from(queue.ring(pool)) };
        Self { name, places: 0, link: Some(link) }
    }

    /// The way to the queue.
    #[inline(always)]
    pub(super) const fn link(&self) -> Option<QueueLink> {
        self.link
    }

    /// The pool's ring; `None`: that queue is not open here (any more).
    #[inline(always)]
    pub(super) fn ring_of(&self, name: u32) -> Option<&CompletionRing<Record>> {
        if self.name == name { self.link.as_ref().map(QueueLink::ring) } else { None }
    }
}

/// One outcome, 32 bytes, as it lies in a ring.
///
/// In words of 64 bits: who takes it reads whole words right after they were written, which is slow on words written
/// in halves.
#[derive(Clone, Copy, Debug)]
pub struct Record {
    /// The caller's tag.
    pub tag: u64,
    /// Slab index and generation of the ticket.
    ticket: u64,
    /// Flow and cost of the request.
    charge: u64,
    /// Its band index.
    pub band: u8,
    /// Granted, or why not.
    pub evicted: Option<Reason>,
}

impl Record {
    /// The outcome of the request with this ticket (index, generation) that is charged so (flow or `NONE`, cost).
    #[inline(always)]
    pub const fn new(
        tag: u64,
        ticket: (u32, u32),
        charge: (u32, u32),
        band: u8,
        evicted: Option<Reason>,
    ) -> Self {
        Self { tag, ticket: join(ticket), charge: join(charge), band, evicted }
    }

    /// Slab index and generation of the ticket.
    #[inline(always)]
    pub const fn ticket(&self) -> (u32, u32) {
        split(self.ticket)
    }

    /// Flow of the request, or `NONE`, and its cost.
    #[inline(always)]
    pub const fn charge(&self) -> (u32, u32) {
        split(self.charge)
    }
}

#[inline(always)]
const fn join((low, high): (u32, u32)) -> u64 {
    low as u64 | (high as u64) << 32
}

#[inline(always)]
#[allow(clippy::cast_possible_truncation, reason = "one half each")]
const fn split(word: u64) -> (u32, u32) {
    (word as u32, (word >> 32) as u32)
}

#[cfg(not(loom))]
const _: () = assert!(core::mem::size_of::<Record>() == 32);

/// One queue: a ring per pool of the engine, and the bell of who drains them.
#[derive(Debug)]
pub struct QueueCore {
    rings: Box<[CompletionRing<Record>]>,
    bell: Doorbell,
}

impl QueueCore {
    /// A ring of `capacity` places for each of `pools`.
    pub fn new(pools: usize, capacity: u32, bell: Doorbell) -> Self {
        Self { rings: (0..pools).map(|_| CompletionRing::new(capacity)).collect(), bell }
    }

    /// The ring of a pool, by its index in the engine.
    pub fn ring(&self, pool: usize) -> &CompletionRing<Record> {
        &self.rings[pool]
    }

    /// All rings, by pool.
    pub fn rings(&self) -> &[CompletionRing<Record>] {
        &self.rings
    }

    /// Whether nobody holds a place: no outcome is in it or will come.
    fn is_unreserved(&self) -> bool {
        self.rings.iter().all(|ring| ring.reserved() == 0)
    }

    /// The bell.
    pub fn bell(&self) -> &Doorbell {
        &self.bell
    }
}

/// All completion queues of an engine. A queue's memory lives as long as the engine, so a holder may ring
/// its bell after unlocking whatever happened to the queue's owner.
#[derive(Debug)]
pub struct Queues {
    slots: Box<[OnceLock<QueueCore>]>,
    /// Bit set: the slot is in use. Cleared when the owner is gone and its ring is empty.
    used: AtomicU64,
    /// Queues made so far.
    made: AtomicU32,
}

impl Queues {
    /// No queue yet.
    pub fn new() -> Self {
        Self {
            slots: (0..MAX_QUEUES).map(|_| OnceLock::new()).collect(),
            used: AtomicU64::new(0),
            made: AtomicU32::new(0),
        }
    }

    /// The queue in a slot.
    #[inline]
    pub fn get(&self, slot: usize) -> Option<&QueueCore> {
        self.slots.get(slot)?.get()
    }

    /// Claims a slot for a queue of `capacity` places per pool: one that was given back, has that capacity
    /// and all its places, else a fresh one, else one whose places are still taken by requests that wait
    /// for the queue that was there. `None`: all slots are used or have another capacity.
    pub fn claim(
        &self,
        pools: usize,
        capacity: u32,
        bell: impl FnOnce() -> Doorbell,
    ) -> Option<u32> {
        let fits = |slot: usize| self.slots[slot].get().map(|q| fits_capacity(q, capacity));
        let has_places =
            |slot: &usize| self.slots[*slot].get().is_some_and(QueueCore::is_unreserved);
        let reusable = (0..MAX_QUEUES).filter(|&s| fits(s) == Some(true));
        let (whole, partly): (Vec<usize>, Vec<usize>) = reusable.partition(has_places);
        let fresh = (0..MAX_QUEUES).filter(|&s| fits(s).is_none());
        let slot = whole.into_iter().chain(fresh).chain(partly).find(|&slot| self.take(slot))?;
        self.slots[slot].get_or_init(|| QueueCore::new(pools, capacity, bell()));
        // ORDERING: Relaxed; a counter.
        Some(QueueName::pack(slot, self.made.fetch_add(1, Ordering::Relaxed)))
    }

    fn take(&self, slot: usize) -> bool {
        // ORDERING: AcqRel; pairs with `release`, so that the next owner sees an empty ring.
        self.used.fetch_or(1 << slot, Ordering::AcqRel) & 1 << slot == 0
    }

    /// Gives a slot back; its rings are empty and no pool has it open.
    pub fn release(&self, slot: usize) {
        // ORDERING: AcqRel, pairs with `take`.
        self.used.fetch_and(!(1 << slot), Ordering::AcqRel);
    }
}

fn fits_capacity(queue: &QueueCore, capacity: u32) -> bool {
    queue.rings.first().is_none_or(|ring| ring.capacity() == u64::from(capacity))
}

impl Default for Queues {
    fn default() -> Self {
        Self::new()
    }
}

impl super::Shard {
    /// A batch of places in a pool's ring of a queue; 0: none is left.
    #[inline(never)]
    pub(super) fn reserve_places(&self, pool: &super::pool::PoolCore, name: u32) -> u32 {
        let queue = self.queues.get(QueueName::slot(name));
        let reserved = queue.map_or(0, |queue| {
            let ring = queue.ring(pool.engine_index());
            ring.reserve_up_to(ring.batch())
        });
        u32::try_from(reserved).unwrap_or(0)
    }
}
