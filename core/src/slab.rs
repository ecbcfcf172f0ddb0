//! The slab: every waiting request of a shard, allocated at start, named by index + generation.
//!
//! Arrays side by side. *Entries* (128 bytes, one line pair each) hold the request; the 16-byte
//! *links* hold what a decision walks over, so that 100,000 waiters fit into the cache, and the 8-byte
//! *timers* what the wheel does; the *nodes* stand beside the entries on the urgent list, so that freeing an
//! entry never breaks it.
//!
//! | memory | written by | read by |
//! |--------|------------|---------|
//! | `Entry::state` | the owner of the entry (see below), Release | anybody, Acquire |
//! | `Entry::body`, link, timer | the owner of the entry | the same |
//! | `Entry::waker` | the waiting future registers, the deliverer wakes | `WakerCell` orders them |
//! | node | any caller, by RMW | the holder of LOCK |
//!
//! The owner: whoever took the index from the free list, until it publishes the entry by a command; then
//! the holder of the pool's LOCK, until it stores a final state; then the one caller that holds the
//! ticket, who collects it. So each change of state has one writer, and no compare-and-swap is needed.

mod cache;
mod timers;
mod waker;

pub use cache::FreeCache;

use alloc::boxed::Box;
use core::fmt;

use crate::error::Reason;
use crate::ring::free_list::FreeList;
use crate::ring::urgent::UrgentNode;
use crate::sync::planted;
use crate::sync::{AtomicU64, Ordering, UnsafeCell};
use crate::types::NONE;

pub use timers::{TimerLink, TimerTable};
pub use waker::WakerCell;

/// Indices a pool keeps at hand under LOCK; refilled and spilt in halves. Two in the loom models, whose
/// slabs are tiny.
pub const CACHE: usize = if cfg!(loom) { 2 } else { 64 };

/// Where a request is in its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Phase {
    /// Not in use.
    Free = 0,
    /// Being written, or its command is in the ring.
    New,
    /// Waits in its band.
    Queued,
    /// Has a slot, not collected yet.
    Granted,
    /// Lost its place; the reason stands beside it. Not collected yet.
    Evicted,
    /// In a pool that keeps track of who runs: has a slot, its future has not collected it yet.
    Held,
    /// The same with the permit out: the entry stands for it until the slot comes back.
    Running,
}

/// One reading of an entry's state word: `generation 32 | reason 8 | phase 8`.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct State(u64);

impl State {
    const PHASE_BITS: u64 = 0xff;

    /// A state without a reason.
    pub const fn new(generation: u32, phase: Phase) -> Self {
        Self((generation as u64) << 32 | phase as u64)
    }

    /// The final state of a request that lost its place.
    pub const fn evicted(generation: u32, reason: Reason) -> Self {
        Self((generation as u64) << 32 | (reason as u64) << 8 | Phase::Evicted as u64)
    }

    /// Counts the lives of this index.
    pub const fn generation(self) -> u32 {
        (self.0 >> 32) as u32
    }

    /// The phase.
    pub const fn phase(self) -> Phase {
        match self.0 & Self::PHASE_BITS {
            1 => Phase::New,
            2 => Phase::Queued,
            3 => Phase::Granted,
            4 => Phase::Evicted,
            5 => Phase::Held,
            6 => Phase::Running,
            _ => Phase::Free,
        }
    }

    /// Why it was evicted.
    pub fn reason(self) -> Option<Reason> {
        #[allow(clippy::cast_possible_truncation, reason = "one byte is meant")]
        Reason::from_u8((self.0 >> 8) as u8)
    }
}

impl fmt::Debug for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{:?}", self.generation(), self.phase())?;
        self.reason().map_or(Ok(()), |reason| write!(f, "({reason})"))
    }
}

/// What the owner of an entry keeps in it. In this order: what a grant reads comes first and shares a cache line with
/// the state.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Body {
    /// Given back with the outcome.
    pub tag: u64,
    /// Evicted at this time; `u64::MAX`: never.
    pub deadline_ns: u64,
    /// Flow index in the pool, or [`NONE`].
    pub flow: u32,
    /// Estimated tokens.
    pub cost: u32,
    /// Completion queue (slot and generation), or [`NONE`]: the outcome goes to a waker.
    pub queue: u32,
    /// Size in bytes.
    pub bytes: u32,
    /// Since when it waits or runs; 0 where nobody keeps track.
    pub since_ns: u64,
    /// Band index; [`EXEMPT`](Self::EXEMPT) added while a request runs without a slot.
    pub band: u8,
    /// Which of the flows that stood at the index `flow`. This and the next two are for who queues an entry that
    /// came through the ring, and written on that way alone.
    pub flow_generation: u32,
    /// When the host received it.
    pub received_ns: u64,
    /// How long after that its first token was promised; `u64::MAX`: nothing was.
    pub slo_ns: u64,
    /// Its time to live while backends exist, and its absolute end; both only in pools with another budget for the
    /// time without backends, where `deadline_ns` is when it is looked at again.
    pub to_live_ns: u64,
    /// See [`to_live_ns`](Self::to_live_ns).
    pub limit_ns: u64,
}

impl Body {
    /// Set in `band` of a request that runs without a slot: a bit no index has.
    pub const EXEMPT: u8 = 1 << 7;

    /// The band index alone.
    #[inline(always)]
    pub const fn band_index(&self) -> u8 {
        self.band & !Self::EXEMPT
    }

    /// Whether it runs without a slot.
    #[inline(always)]
    pub const fn is_exempt(&self) -> bool {
        self.band & Self::EXEMPT != 0
    }

    const EMPTY: Self = Self {
        tag: 0,
        deadline_ns: u64::MAX,
        flow: NONE,
        cost: 0,
        since_ns: 0,
        bytes: 0,
        queue: NONE,
        band: 0,
        flow_generation: 0,
        received_ns: 0,
        slo_ns: u64::MAX,
        to_live_ns: u64::MAX,
        limit_ns: u64::MAX,
    };
}

/// One request, 128 bytes. State and body share the first line: a grant reads one cold line, not two.
#[derive(Debug)]
#[repr(C, align(128))]
pub struct Entry {
    state: AtomicU64,
    body: UnsafeCell<Body>,
    /// Whom to wake when the state becomes final.
    pub waker: WakerCell,
}

#[cfg(not(loom))]
const _: () = assert!(core::mem::size_of::<Entry>() == 128);
#[cfg(not(loom))]
const _: () = {
    use core::mem::offset_of;
    assert!(offset_of!(Entry, body) + offset_of!(Body, slo_ns) <= 64);
};

/// The place of one waiting request in its lane: the 16 bytes a decision touches.
///
/// In an array of their own: at 100,000 waiting that array stays in the cache, the 128-byte entries do not.
/// The arrival number stands here too, cut to 40 bits, so that the order between lanes is found without
/// the entry; [`Order`](crate::queue::order::Order) keeps it exact.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct Link {
    /// The next request of the lane, [`NONE`] for the last.
    pub next: u32,
    /// The one before; meaningless for the head of a lane, so that taking a head writes no second entry.
    pub prev: u32,
    /// `arrival number 40 | lane 24`.
    place: u64,
}

impl Link {
    /// A request that does not wait.
    pub const IDLE: Self = Self { next: NONE, prev: NONE, place: Self::NOWHERE };

    const LANE_BITS: u32 = 24;
    const LANES: u64 = (1 << Self::LANE_BITS) - 1;
    /// No lane has the highest index.
    const NOWHERE: u64 = Self::LANES;

    /// A request with this arrival number (the lowest 40 bits are kept) in a lane below 2^24 - 1.
    #[inline(always)]
    pub const fn new(next: u32, prev: u32, seq: u64, lane: u32) -> Self {
        Self { next, prev, place: seq << Self::LANE_BITS | lane as u64 }
    }

    /// The lane, [`NONE`] while the request does not wait.
    #[inline(always)]
    #[allow(clippy::cast_possible_truncation, reason = "masked to 24 bits")]
    pub const fn lane(self) -> u32 {
        let lane = self.place & Self::LANES;
        if lane == Self::NOWHERE { NONE } else { lane as u32 }
    }

    /// The lowest 40 bits of the arrival number.
    #[inline(always)]
    pub const fn seq(self) -> u64 {
        self.place >> Self::LANE_BITS
    }

    /// The request stops waiting; `next` stays.
    #[inline(always)]
    pub const fn leave(&mut self) {
        self.place = Self::NOWHERE;
    }
}

impl Default for Link {
    fn default() -> Self {
        Self::IDLE
    }
}

const _: () = assert!(core::mem::size_of::<Link>() == 16);

/// The links of a slab. Held by value: its address and length stay in registers over a decision.
#[derive(Clone, Copy, Debug)]
pub struct LinkTable<'s>(&'s [UnsafeCell<Link>]);

impl LinkTable<'_> {
    /// Runs `f` on a link.
    ///
    /// # Safety
    ///
    /// The caller owns the entry (module page).
    #[inline(always)]
    pub unsafe fn with<R>(self, idx: u32, f: impl FnOnce(&mut Link) -> R) -> R {
        debug_assert!((idx as usize) < self.0.len(), "an index of this slab");
        // SAFETY: the caller owns the entry, so its index came out of the free list; there are as many links.
        let link = unsafe { self.0.get_unchecked(idx as usize) };
        // SAFETY: the caller owns the entry, so nobody else has a reference to its link.
        link.with_mut(|link| f(unsafe { &mut *link }))
    }
}

/// Every request that may wait in one shard.
#[derive(Debug)]
pub struct Slab {
    entries: Box<[Entry]>,
    links: Box<[UnsafeCell<Link>]>,
    timers: Box<[UnsafeCell<TimerLink>]>,
    nodes: Box<[UrgentNode]>,
    free: FreeList,
}

// SAFETY: entries, links and timers are only touched by their owner (module page); ownership moves by the
// Release/Acquire pairs of the ring, the pool word and `Entry::state`.
unsafe impl Send for Slab {}
// SAFETY: as above.
unsafe impl Sync for Slab {}

impl Slab {
    /// Room for `capacity` requests. Allocates; nothing later does.
    pub fn new(capacity: u32) -> Self {
        let entry = |_| Entry {
            state: AtomicU64::new(State::new(1, Phase::Free).0),
            waker: WakerCell::new(),
            body: UnsafeCell::new(Body::EMPTY),
        };
        let link = |_| UnsafeCell::new(Link::IDLE);
        Self {
            entries: (0..capacity).map(entry).collect(),
            links: (0..capacity).map(link).collect(),
            timers: (0..capacity).map(|_| UnsafeCell::new(TimerLink::IDLE)).collect(),
            nodes: (0..capacity).map(|_| UrgentNode::new()).collect(),
            free: FreeList::new(capacity),
        }
    }

    /// Requests there is room for.
    pub fn capacity(&self) -> u32 {
        u32::try_from(self.entries.len()).unwrap_or(u32::MAX)
    }

    /// The state of an entry; `None` for an index outside the slab.
    pub fn state(&self, idx: u32) -> Option<State> {
        let entry = self.entries.get(idx as usize)?;
        // ORDERING: Acquire pairs with `set_state`: what the owner wrote before a final state is visible.
        Some(State(entry.state.load(Ordering::Acquire)))
    }

    /// Changes the state. Owner of the entry only.
    #[inline]
    pub fn set_state(&self, idx: u32, state: State) {
        self.entries[idx as usize].set_state(state);
    }

    /// The state as its owner knows it. Owner of the entry only.
    #[inline]
    pub fn own_state(&self, idx: u32) -> State {
        self.entries[idx as usize].own_state()
    }

    /// The entry's waker.
    pub fn waker(&self, idx: u32) -> &WakerCell {
        &self.entries[idx as usize].waker
    }

    /// The entry's node on the urgent list.
    pub fn node(&self, idx: u32) -> &UrgentNode {
        &self.nodes[idx as usize]
    }

    /// The entry of an index the caller owns, without a bounds check.
    ///
    /// # Safety
    ///
    /// The caller owns the entry (module page): the index came out of this slab.
    #[inline(always)]
    pub unsafe fn owned(&self, idx: u32) -> &Entry {
        debug_assert!((idx as usize) < self.entries.len(), "an index of this slab");
        // SAFETY: the free list gives out only indices below the length, and the caller got it there.
        unsafe { self.entries.get_unchecked(idx as usize) }
    }

    /// Runs `f` on the body.
    ///
    /// # Safety
    ///
    /// The caller owns the entry (module page).
    #[inline(always)]
    pub unsafe fn with_body<R>(&self, idx: u32, f: impl FnOnce(&mut Body) -> R) -> R {
        // SAFETY: the caller owns the entry.
        let entry = unsafe { self.owned(idx) };
        // SAFETY: the caller owns the entry, so nobody else has a reference to its body.
        entry.body.with_mut(|body| f(unsafe { &mut *body }))
    }

    /// The links.
    #[inline(always)]
    pub fn links(&self) -> LinkTable<'_> {
        LinkTable(&self.links)
    }

    /// The timers' links.
    #[inline(always)]
    pub fn timers(&self) -> TimerTable<'_> {
        TimerTable(&self.timers)
    }

    /// Takes a free index from the shared list: lock-free. `None`: full. The caller owns it, phase New.
    pub fn take(&self) -> Option<(u32, u32)> {
        let idx = self.free.pop()?;
        Some((idx, self.start(idx)))
    }

    /// Takes a free index from the pool's cache, refilled from the shared list. Holder of LOCK only.
    #[inline]
    pub fn take_cached(&self, cache: &mut FreeCache) -> Option<(u32, u32)> {
        let idx = self.take_raw(cache)?;
        Some((idx, self.start(idx)))
    }

    /// The first half of [`take_cached`](Self::take_cached): the index alone, its phase still Free.
    #[inline(always)]
    pub fn take_raw(&self, cache: &mut FreeCache) -> Option<u32> {
        match cache.pop() {
            Some(idx) => Some(idx),
            None => self.refill(cache),
        }
    }

    #[inline]
    fn start(&self, idx: u32) -> u32 {
        let generation = self.own_state(idx).generation();
        self.set_state(idx, State::new(generation, Phase::New));
        generation
    }

    #[cold]
    fn refill(&self, cache: &mut FreeCache) -> Option<u32> {
        for _ in 0..(cache.limit / 2).max(1) {
            match self.free.pop() {
                Some(idx) => cache.push(idx),
                None => break,
            }
        }
        cache.pop()
    }

    /// Gives an index back to the shared list. Owner only.
    pub fn give(&self, idx: u32) {
        self.entries[idx as usize].end();
        self.free.push(idx);
    }

    /// Gives an index back to the pool's cache. Holder of LOCK only, and owner of the entry.
    #[inline]
    pub fn give_cached(&self, cache: &mut FreeCache, idx: u32) {
        self.entries[idx as usize].end();
        self.keep(cache, idx);
    }

    /// The second half of [`give_cached`](Self::give_cached), after [`Entry::end`].
    #[inline(always)]
    pub fn keep(&self, cache: &mut FreeCache, idx: u32) {
        if cache.len < cache.limit {
            cache.push(idx);
        } else {
            self.spill(cache, idx);
        }
    }

    #[cold]
    #[inline(never)]
    fn spill(&self, cache: &mut FreeCache, idx: u32) {
        for _ in cache.limit / 2..cache.limit {
            if let Some(idx) = cache.pop() {
                self.free.push(idx);
            }
        }
        self.free.push(idx);
    }
}

impl Entry {
    /// The state as its owner knows it. Owner of the entry only.
    #[inline(always)]
    pub fn own_state(&self) -> State {
        // ORDERING: Relaxed; the owner wrote it, or acquired it together with the ownership.
        State(self.state.load(Ordering::Relaxed))
    }

    /// Changes the state. Owner of the entry only.
    #[inline(always)]
    pub fn set_state(&self, state: State) {
        // ORDERING: Release pairs with `Slab::state`; a plain store, since an entry has one owner at a time.
        self.state.store(state.0, Ordering::Release);
    }

    /// Ends a life: the next one has another generation, so every command and ticket of this one is stale.
    /// Returns the generation that ended. Owner of the entry only.
    #[inline(always)]
    pub fn end(&self) -> u32 {
        let generation = self.own_state().generation();
        let next = if planted!("m09") { generation } else { generation.wrapping_add(1) };
        self.set_state(State::new(next, Phase::Free));
        generation
    }
}
