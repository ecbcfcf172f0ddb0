//! The engine ceiling: most requests running in all pools together, leased to the pools in units.
//!
//! A pool's effective size is its slots or what it has leased, whichever is less, and that number is inside
//! `free` of its word, so the path never looks here. While the pools' slots sum to no more than the ceiling
//! every pool holds all it may use and nobody ever asks.
//!
//! | word | changed by | ordering |
//! |------|------------|----------|
//! | `spare` | who takes, CAS; who gives, `fetch_add` | Acquire; Release |
//! | `want`, asking ring | the pool's holder in; givers out | as a [`SchedulerRing`] |
//! | `mail` | giver `fetch_add`, the pool's holder `swap` | AcqRel |
//!
//! Two lost-wake pairs, each closed by a fence on both sides: *ask* (enter the ring, fence, look at
//! `spare` again) against *give* (add to `spare`, fence, look at the ring again); and *recall* (mark the
//! other pool, fence, try its LOCK) against its unlock. Nobody sets a bit in another pool's word: its
//! holder's plain store would wipe it.

use alloc::boxed::Box;
use core::ptr::NonNull;

use arrayvec::ArrayVec;

use super::codes::Node;
use super::hold::{Hold, Session, Submission};
use super::pool::{Marks, PoolCore};
use super::{Decider, Shard};
use crate::admit::caps::Room;
use crate::admit::word::TryLock;
use crate::clock::Now;
use crate::ring::scheduler::SchedulerRing;
use crate::sync::{AtomicBool, AtomicU32, Ordering, fence, planted};
use crate::types::{NONE, TURN_BUDGET};

/// Units of the ceiling that no pool holds, and who asks for one.
#[derive(Debug)]
pub struct Ceiling {
    spare: AtomicU32,
    askers: SchedulerRing,
    pools: Box<[Lease]>,
}

/// A pool's place in the asking ring, and the units on their way to it.
#[derive(Debug, Default)]
struct Lease {
    want: AtomicBool,
    mail: AtomicU32,
}

/// Where a unit went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Given {
    /// On its way to this pool.
    To(u32),
    /// Nobody asks.
    Spare,
    /// Spare, although somebody asks: all are to look for it.
    SpareAsked,
}

impl Ceiling {
    /// Splits `ceiling` units among pools of these slots: all they may use if that fits, else in
    /// proportion, the rest spare. Returns the units of each.
    pub fn split(ceiling: u32, slots: &[u32]) -> (Self, Box<[u32]>) {
        let sum: u64 = slots.iter().copied().map(u64::from).sum();
        let share = |&wanted: &u32| {
            let part = u64::from(wanted) * u64::from(ceiling) / sum.max(1);
            if sum <= u64::from(ceiling) { wanted } else { u32::try_from(part).unwrap_or(wanted) }
        };
        let shares: Box<[u32]> = slots.iter().map(share).collect();
        let leased: u32 = shares.iter().sum();
        let pools = u32::try_from(slots.len()).unwrap_or(u32::MAX);
        let ceiling = Self {
            spare: AtomicU32::new(ceiling.saturating_sub(leased)),
            askers: SchedulerRing::new(pools),
            pools: slots.iter().map(|_| Lease::default()).collect(),
        };
        (ceiling, shares)
    }

    /// Units nobody holds now; stale when it returns.
    pub fn spare(&self) -> u32 {
        // ORDERING: Relaxed; a report.
        self.spare.load(Ordering::Relaxed)
    }

    /// Takes up to `wanted` spare units.
    fn take(&self, wanted: u32) -> u32 {
        // ORDERING: Relaxed; a guess for the CAS.
        let mut spare = self.spare.load(Ordering::Relaxed);
        loop {
            let taken = spare.min(wanted);
            if taken == 0 {
                return 0;
            }
            // ORDERING: Acquire pairs with the Release of `give`: what ran in the unit is over.
            let left = spare - taken;
            match self.spare.compare_exchange_weak(
                spare,
                left,
                Ordering::Acquire,
                Ordering::Relaxed,
            ) {
                Ok(_) => return taken,
                Err(now) => spare = now,
            }
        }
    }

    /// Whether any pool asks.
    pub(super) fn is_asked(&self) -> bool {
        !self.askers.is_empty()
    }

    /// Enters the asking ring, once, and looks for a spare unit again. Whether it is new there, so that the
    /// others are to be recalled; and the unit, 0 or 1, which is the caller's now. Holder of the pool's LOCK only.
    pub fn ask(&self, pool: u32) -> (bool, u32) {
        let is_new = self.askers.schedule(pool, &self.pools[pool as usize].want);
        if !planted!("e2-ask") {
            // ORDERING: SeqCst fence between entering the ring and the second look at `spare`; pairs with
            // the one in `give`.
            fence(Ordering::SeqCst);
        }
        (is_new, if planted!("e2-look") { 0 } else { self.take(1) })
    }

    /// Gives one unit to the first asker other than `from`, who is to be driven; else it becomes spare. For
    /// the holder of the LOCK of pool `from`, which had the unit.
    pub fn give(&self, from: u32) -> Given {
        // Twice at most: the ring may look empty because another giver is just popping, and a holder does
        // not wait for one that has lost its core.
        for _ in 0..2 {
            while let Some(asker) = self.askers.poll(|pool| &self.pools[pool as usize].want) {
                if asker != from {
                    // ORDERING: AcqRel pairs with `open_mail`.
                    self.pools[asker as usize].mail.fetch_add(1, Ordering::AcqRel);
                    return Given::To(asker);
                }
            }
            // ORDERING: Release pairs with `take`.
            self.spare.fetch_add(1, Ordering::Release);
            // ORDERING: SeqCst fence between adding and the second look at the askers; see `ask`.
            if !planted!("e2-give") {
                fence(Ordering::SeqCst);
            }
            if planted!("e2-giver") || !self.is_asked() || self.take(1) == 0 {
                return Given::Spare;
            }
        }
        // ORDERING: Release pairs with `take`.
        self.spare.fetch_add(1, Ordering::Release);
        Given::SpareAsked
    }

    /// The units that were on their way to a pool, which has them now. Holder of its LOCK only.
    pub fn open_mail(&self, pool: u32) -> u32 {
        // ORDERING: AcqRel pairs with `give`.
        self.pools[pool as usize].mail.swap(0, Ordering::AcqRel)
    }
}

impl Hold<'_, '_> {
    fn own_number(&self) -> u32 {
        u32::try_from(self.pool.engine_index()).unwrap_or(u32::MAX)
    }

    /// Changes the effective size by whole units.
    fn add_units(&mut self, units: i32) {
        self.st.size = self.st.size.saturating_add_signed(units);
        self.word = self.word.add_free(units);
        self.publish_reserves();
    }

    fn draw(&mut self, ceiling: &Ceiling, wanted: u32) -> bool {
        let units = ceiling.take(wanted);
        if units > 0 {
            self.add_units(i32::try_from(units).unwrap_or(0));
        }
        units > 0
    }

    /// Takes a spare unit for a newcomer, if that is all it lacks, nobody who waits here lacks only that too,
    /// and nobody asked before.
    #[cold]
    pub(super) fn draw_for_newcomer(&mut self, newcomer: &Submission) -> bool {
        let Some(ceiling) = self.shard.ceiling.as_deref() else { return false };
        let (free, size, flow) = (self.word.free(), self.st.size, newcomer.flow);
        let rank = self.st.ranks.rank(newcomer.band.into());
        let has_room = || flow == NONE || self.st.caps.room(flow) == Room::Yes;
        // One unit helps only where none is missing already; asked of the gates, not of the reserve, which tells
        // nothing of gates that move.
        let lacks_unit =
            free == 0 && size < self.st.slots && has_room() && !self.st.backends.none_exists();
        let running = self.running();
        let is_open = lacks_unit && self.st.gates.eligible(running) >> rank & 1 == 1;
        if !is_open || self.would_run_with_unit() {
            return false;
        }
        if !ceiling.is_asked() && self.draw(ceiling, 1) {
            return true;
        }
        self.ask(ceiling);
        // The second look of `ask` may have found one.
        self.word.free() > 0
    }

    fn ask(&mut self, ceiling: &Ceiling) {
        let (is_new, units) = ceiling.ask(self.own_number());
        if is_new {
            self.session.errands.recall();
        }
        if units > 0 {
            self.add_units(1);
        }
    }

    /// Units that arrived by mail.
    pub(super) fn open_mail(&mut self) {
        if let Some(ceiling) = self.shard.ceiling.as_deref() {
            let units = ceiling.open_mail(self.own_number());
            self.add_units(i32::try_from(units).unwrap_or(0));
        }
    }

    /// A new number of slots: what is missing is taken from the spare units, what is too much is given
    /// back by [`Hold::settle_ceiling`] as it becomes idle.
    pub(super) fn lease_for(&mut self, slots: u32) {
        if let Some(ceiling) = self.shard.ceiling.as_deref() {
            let missing = slots.saturating_sub(self.st.size);
            if missing > 0 && !ceiling.is_asked() {
                self.draw(ceiling, missing);
            }
        }
    }

    /// Whether anybody waits who lacks only a slot. A pool whose waiters are all gated or at their caps must
    /// not ask: it would hand the unit to the next such pool, and that one back, for ever.
    fn would_run_with_unit(&mut self) -> bool {
        if self.st.queues.waiting() == 0 || self.st.backends.none_exists() {
            return false;
        }
        self.follow_reports();
        let running = self.running();
        let ready = self.st.ready_by_rank();
        let candidates = self.st.gates.eligible(running) & ready;
        self.is_any_runnable(candidates)
    }

    /// The end of a hold in an engine with a ceiling: a pool in want takes or asks, an idle one gives up.
    #[cold]
    #[inline(never)]
    pub(super) fn settle_ceiling(&mut self, ceiling: &Ceiling) {
        while self.word.free() <= 0 && self.st.size < self.st.slots && self.would_run_with_unit() {
            if ceiling.is_asked() || !self.draw(ceiling, 1) {
                self.ask(ceiling);
                if self.word.free() <= 0 {
                    break;
                }
            }
            self.decide();
        }
        let is_idle = self.st.queues.waiting() == 0 || self.nobody_may_run();
        let mut given = 0;
        while self.word.free() > given {
            let too_many = self.st.size.saturating_add_signed(-given) > self.st.slots;
            if !(too_many || (is_idle && ceiling.is_asked())) {
                break;
            }
            given += 1;
            match ceiling.give(self.own_number()) {
                Given::To(asker) => self.session.errands.mail(asker),
                Given::SpareAsked => self.session.errands.recall(),
                Given::Spare => {}
            }
        }
        if given > 0 {
            self.add_units(-given);
        }
    }

    /// Whether releases must come through LOCK for the ceiling's sake.
    #[inline(always)]
    pub(super) fn ceiling_blocks(&self) -> bool {
        !planted!("e1")
            && self
                .shard
                .ceiling
                .as_deref()
                .is_some_and(|c| self.st.size > self.st.slots || c.is_asked())
    }
}

/// What a session has to do for the ceiling after its unlock: pools to drive, by their number in the engine.
#[derive(Clone, Debug, Default)]
pub struct Errands {
    everyone: bool,
    mailed: ArrayVec<u32, 8>,
}

impl Errands {
    fn recall(&mut self) {
        self.everyone = true;
    }

    fn mail(&mut self, pool: u32) {
        // Too many to remember: everybody looks into his mail.
        self.everyone |= self.mailed.try_push(pool).is_err();
    }

    #[inline(always)]
    pub(super) fn is_empty(&self) -> bool {
        !self.everyone && self.mailed.is_empty()
    }

    fn absorb(&mut self, other: &Self) {
        self.everyone |= other.everyone;
        for &pool in &other.mailed {
            self.mail(pool);
        }
    }
}

/// Where the pools of the other shards are.
#[derive(Debug)]
pub(super) struct Peers {
    shards: NonNull<[Shard]>,
    /// Shard and index of each pool, by its number in the engine.
    places: Box<[(usize, usize)]>,
}

// SAFETY: the pointer leads to the engine's shards, which are Sync and outlive every call on one of them.
unsafe impl Send for Peers {}
// SAFETY: as above.
unsafe impl Sync for Peers {}

impl Shard {
    /// Makes the shards of an engine known to each other. Once, before the engine is used. The slice is in its
    /// final place: nobody moves its owner or takes an exclusive reference to it as long as its shards live,
    /// for a move of the `Box` alone ends the right to use what was borrowed from it.
    pub(crate) fn introduce(shards: &[Self], places: &[(usize, usize)]) {
        for shard in shards {
            // Set once: a second introduction has no effect.
            shard
                .peers
                .get_or_init(|| Peers { shards: NonNull::from(shards), places: places.into() });
        }
    }

    fn peer(&self, number: usize) -> Option<(&Self, &PoolCore)> {
        let Some(peers) = self.peers.get() else {
            let pool = self.pools.iter().find(|pool| pool.engine_index() == number)?;
            return Some((self, pool));
        };
        let &(shard, index) = peers.places.get(number)?;
        // SAFETY: we are one of these shards and alive, so the engine that owns the slice is.
        let shards = unsafe { peers.shards.as_ref() };
        let shard = shards.get(shard)?;
        Some((shard, shard.pools.get(index)?))
    }

    /// Recalls units and drives pools that got some, until no errand is left. Bounded: only a pool asks that
    /// would use the unit at once, so each unit that moves ends in a grant, and nothing comes back here. A pool
    /// whose LOCK is taken is looked after by its holder, one that a thread decides for by that thread.
    #[cold]
    #[inline(never)]
    pub(super) fn run_errands(&self, mut errands: Errands, ceiling: &Ceiling) {
        while !errands.is_empty() {
            let mut next = Errands::default();
            if errands.everyone {
                for number in 0..ceiling.pools.len() {
                    self.drive(number, Marks::RECALL | Marks::MAIL, &mut next);
                }
            } else {
                for &number in &errands.mailed {
                    self.drive(number as usize, Marks::MAIL, &mut next);
                }
            }
            errands = next;
        }
    }

    /// Marks a pool and runs one hold of it if its LOCK is free; its own errands go to `next`.
    fn drive(&self, number: usize, mark: u64, next: &mut Errands) {
        let Some((shard, pool)) = self.peer(number) else { return };
        if planted!("e4-mark") {
            return;
        }
        if pool.marks().mark(mark) {
            pool.urgent().push(Node::Marks.id(), pool.marks());
        }
        if shard.decider == Decider::Thread && !shard.is_orphaned() {
            shard.schedule(pool);
            return;
        }
        // ORDERING: SeqCst fence between the mark and the try for LOCK; pairs with the one after unlock.
        fence(Ordering::SeqCst);
        let now = Now::lazy(&shard.clock);
        let mut session = Session::new(&now, TURN_BUDGET);
        if let TryLock::Ours(word) = pool.gate.try_lock() {
            shard.hold_once(pool, word, &mut session);
        }
        next.absorb(&session.errands);
        session.errands = Errands::default();
        session.deliver(shard);
    }
}
