//! The queues of one pool: for each band, who is next among those whose flow and tenant have room.
//!
//! # Structure
//!
//! Requests of one flow in one band form a *lane* (first in, first out). A band keeps its lanes in the order of the
//! arrival of their heads, in a list and a heap (`band.rs`). A lane whose flow or tenant turns out
//! to be at its cap when it reaches the top is *set aside*: on the flow (at most one lane per band), or in the
//! leftist heap of its (tenant, band).
//!
//! # Why `front` finds the first request that may run
//!
//! Call a request *runnable* if the caps have room for its flow and its tenant. After every operation:
//!
//! 1. a lane set aside on its flow is not runnable: the flow was full, and the caller calls
//!    [`flow_has_room`](BandQueues::flow_has_room) when that ends, which puts all its lanes back;
//! 2. if lanes of (tenant, band) are set aside, then the tenant is full, or the band's heap holds a lane of that
//!    tenant, a *guard*, whose head came before all of theirs.
//!
//! So with the tenant not full, everything set aside is behind a lane that is still in the heap, and the first
//! runnable request is in the heap; `front` looks at the heap in order and sets aside only what is not runnable.
//! Rule 2 is kept as follows. `tenant_has_room` puts the root, the earliest of the lanes set aside, back into the
//! heap of each band: it is the guard of the rest. A guard is lost only if it leaves the heap or its head
//! changes: it was granted ([`take_front`](BandQueues::take_front)), left ([`remove`](BandQueues::remove)) or
//! its flow was found full (`front`). In each case the next root is put back, and is the guard of what remains.
//! A lane is added to those set aside on a tenant only when the tenant is full. It may be put back once too often
//! if the tenant is full again meanwhile: then `front` sets it aside again, which costs one step of its budget.
//!
//! # Cost
//!
//! Each grant, removal and set-aside puts back at most one lane, each `*_has_room` one per band; a lane moves in
//! O(log lanes). Hence a release among 10,000 keys of a tenant at its cap costs O(bands x log lanes).
#![forbid(unsafe_code)]

use super::{
    band::Band,
    caps::{Caps, Room},
    heap::{MAX_INDICES, MAX_KEY},
    lanes::{Lane, Lanes, Place},
    links::{Link, Links},
    order::Order,
    parked,
    ranked::{self, Ranking},
    rows::Rows,
};
use alloc::boxed::Box;

use crate::types::{BandMask, MAX_BANDS, NONE};

/// A request that is next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Waiter {
    /// Slab index.
    pub idx: u32,
    /// Its flow, `NONE` if anonymous.
    pub flow: u32,
    /// The flow's tenant or `NONE`.
    pub tenant: u32,
}

/// What [`BandQueues::front`] found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Front {
    /// The first request of the band that may run.
    Ready(Waiter),
    /// Nobody in the band may run.
    Empty,
    /// The budget ran out while capped lanes were set aside: ask again.
    Budget,
}

/// The place of a band in the array of all that there can be: masked, so that no check is needed.
#[inline(always)]
pub(super) fn of(band: impl Into<u32>) -> usize {
    band.into() as usize % MAX_BANDS
}

/// The band queues of one pool. Not thread-safe: it belongs to the holder of the pool's lock.
///
/// Nothing allocates but `new` and `add_flow`. Bands are named by index, 0 the most urgent.
#[derive(Debug)]
pub struct BandQueues {
    pub(super) order: Order,
    pub(super) ready: BandMask,
    /// Requests that came and that went, modulo 2^32, as in [`Band`].
    came: u32,
    went: u32,
    pub(super) capped: u32,
    /// Lanes set aside on tenants, and one more if a band is ranked: while 0, nobody looks at a tenant's row.
    pub(super) on_tenants: u32,
    max_waiting: u32,
    drain_from: u32,
    /// Bands in use.
    count: u32,
    pub(super) bands: [Band; MAX_BANDS],
    pub(super) lanes: Lanes,
    pub(super) rows: Rows,
    /// Requests there are at most, as asked for.
    pub(super) capacity: u32,
    /// Bands in another order than arrival, and those of them whose lanes are heaps.
    pub(super) ranked: BandMask,
    pub(super) keyed: BandMask,
    pub(super) ranking: Option<Box<Ranking>>,
}

impl BandQueues {
    /// Queues of `bands` bands (1..=64, others are clamped) for at most `max_waiting` requests (below 2^24) of
    /// at most `max_flows` flows.
    #[allow(clippy::cast_possible_truncation, reason = "clamped to 64")]
    pub fn new(bands: usize, max_waiting: u32, max_flows: u32) -> Self {
        let bands = bands.clamp(1, MAX_BANDS) as u8;
        let count = u32::from(bands);
        Self {
            order: Order::new(),
            ready: 0,
            came: 0,
            went: 0,
            capped: 0,
            on_tenants: 0,
            // The highest index of a lane means none.
            max_waiting: max_waiting.min(MAX_INDICES - 1 - count),
            drain_from: 0,
            count,
            bands: [const { Band::new() }; MAX_BANDS],
            lanes: Lanes::new(bands),
            rows: Rows::new(count, max_flows),
            capacity: max_waiting,
            ranked: 0,
            keyed: 0,
            ranking: None,
        }
    }

    /// Makes a flow of `tenant` (`NONE`: none) known; off the hot path, it may allocate.
    ///
    /// Indices are dense. A flow that has no waiters may be given another tenant the same way.
    ///
    /// Reserves, but does not touch, what n flows need at most: 8 bytes per band for each of n + 1 lanes and 48
    /// for each of n x bands lanes, both no more than `max_waiting`.
    pub fn add_flow(&mut self, flow: u32, tenant: u32) {
        self.rows.add(flow, tenant);
        let (flows, most) = (flow.saturating_add(1), self.max_waiting);
        self.lanes.reserve(most.min(flows.saturating_mul(self.count)), most);
        for band in self.bands.iter_mut().take(self.count as usize) {
            band.reserve(most.min(flows.saturating_add(1)), most);
        }
    }

    /// Whether requests of the flow wait, in any band. O(bands).
    pub fn has_waiters(&self, flow: u32) -> bool {
        (0..self.count).any(|band| {
            let lane = self.lanes.find(self.rows.lane(flow, band));
            lane.is_some_and(|it| it.is_of(flow, band) && it.place != Place::Idle)
        })
    }

    /// A flow without waiters does not exist any more; its index may be [added](Self::add_flow) for another one.
    pub fn forget_flow(&mut self, flow: u32) {
        debug_assert!(!self.has_waiters(flow), "it has no waiters");
        if let Some(ranking) = &mut self.ranking {
            ranking.forget(flow);
        }
    }

    /// The bands that have a lane not set aside: a superset of those that have a runnable request.
    #[inline]
    pub fn ready(&self) -> BandMask {
        self.ready
    }

    /// Requests that wait.
    #[inline]
    pub fn waiting(&self) -> u32 {
        self.came.wrapping_sub(self.went)
    }

    /// Requests that wait in one band.
    #[inline]
    pub fn waiting_in(&self, band: u32) -> u32 {
        self.bands[of(band)].waiting()
    }

    /// Requests that wait in lanes set aside: known to be held up by a cap.
    #[inline]
    pub fn capped(&self) -> u32 {
        self.capped
    }

    /// The tenant of a flow that was added.
    #[inline]
    pub fn tenant_of(&self, flow: u32) -> u32 {
        if flow == NONE { NONE } else { self.rows.tenant_of(flow) }
    }

    /// Appends a request to a band that is not [ranked](Self::is_ranked). O(1).
    ///
    /// `idx` does not wait yet, fewer than `max_waiting` do, `flow` was added or is `NONE`.
    #[inline(always)]
    pub fn enqueue<L: Links>(&mut self, links: &L, idx: u32, band: u32, flow: u32) {
        debug_assert!(self.waiting() < self.max_waiting, "the slab bounds what waits");
        debug_assert!(!self.is_ranked(band), "the caller asked");
        // The usual append first and alone, the rest out of line: it needs no saved registers then.
        let lane = if flow == NONE { band } else { self.rows.lane(flow, band) };
        let spent = self.order.is_spent();
        let is_own = |it: &Lane| flow == NONE || it.is_of(flow, band);
        let usual = |it: &&mut Lane| is_own(it) && it.is_in_band() && !spent;
        let Some(it) = self.lanes.find_mut(lane).filter(usual) else {
            let is_new = flow != NONE && !self.lanes.find(lane).is_some_and(is_own);
            if is_new && !spent {
                return self.enqueue_first(links, idx, band, flow);
            }
            return self.enqueue_rarely(links, idx, band, flow);
        };
        let seq = self.order.stamp();
        let tail = it.tail;
        it.tail = idx;
        it.len += u32::from(flow != NONE);
        self.came = self.came.wrapping_add(1);
        self.bands[of(band)].count_in();
        links.set_next(tail, idx);
        links.write(idx, Link::new(NONE, tail, seq, lane));
    }

    /// The first request of the band that may run, by arrival or rank; it stays queued.
    ///
    /// Sets aside the capped lanes on the way; each takes 1 from `budget` and O(log lanes).
    #[inline(always)]
    pub fn front<L: Links>(
        &mut self,
        links: &L,
        band: u32,
        caps: &impl Caps,
        budget: &mut u32,
    ) -> Front {
        loop {
            let top = self.bands[of(band)].top();
            let Some(&Lane { head, flow, tenant, .. }) = self.lanes.find(top) else {
                return Front::Empty;
            };
            let room = if flow == NONE { Room::Yes } else { caps.room(flow, tenant) };
            if room == Room::Yes {
                return Front::Ready(Waiter { idx: head, flow, tenant });
            }
            if *budget == 0 {
                return Front::Budget;
            }
            *budget -= 1;
            self.park_top(links, band, room, caps);
        }
    }

    /// Takes out the request that [`front`](Self::front) just reported, and says which it was.
    ///
    /// Called after the grant was counted, so that `caps` knows whether the tenant still has room.
    /// O(log lanes), O(1) while the band has one lane.
    #[inline(always)]
    pub fn take_front<L: Links>(&mut self, links: &L, band: u32, caps: &impl Caps) -> Option<u32> {
        let here = &mut self.bands[of(band)];
        let lane = here.top();
        let it = self.lanes.find_mut(lane)?;
        let idx = it.head;
        let next = links.leave(idx);
        it.head = next;
        if it.flow != NONE {
            it.len -= 1;
        }
        here.count_out();
        self.went = self.went.wrapping_add(1);
        if self.on_tenants != 0 {
            self.settle_taken(links, lane, caps);
        } else if next == NONE {
            here.pop(links, &self.order, &mut self.lanes);
            self.emptied(lane, band);
        } else if !here.has_one() {
            here.top_changed(links, &self.order, &mut self.lanes);
        }
        Some(idx)
    }

    /// Takes out a request wherever it stands: cancelled, expired or displaced. False if it does not wait.
    ///
    /// O(log lanes), O(1) inside a lane.
    pub fn remove<L: Links>(&mut self, links: &L, idx: u32) -> bool {
        let link = links.read(idx);
        let lane = link.lane();
        let Some(it) = self.lanes.find_mut(lane) else { return false };
        if self.ranked >> it.band & 1 != 0 {
            self.remove_ranked(links, idx, lane);
            return true;
        }
        links.leave(idx);
        let was_head = unlink(links, it, idx, link);
        it.len -= u32::from(it.flow != NONE);
        let (tenant, band, in_band) = (it.tenant, u32::from(it.band), it.is_in_band());
        self.count_out(band);
        self.capped -= u32::from(!in_band);
        if was_head {
            self.settle_head(links, lane);
            if in_band {
                self.follow(links, tenant, band, None::<&super::NoCaps>);
            }
        }
        true
    }

    /// Takes out some request, caps or not: for shutdown. `None`: nobody waits, or `looks` lanes without waiters
    /// were passed and the next call goes on from there. O(looks + log lanes).
    pub fn pop_any<L: Links>(&mut self, links: &L, mut looks: u32) -> Option<u32> {
        if self.waiting() == 0 {
            return None;
        }
        while self.lanes.get(self.drain_from).place == Place::Idle {
            looks = looks.checked_sub(1)?;
            self.drain_from = (self.drain_from + 1) % self.lanes.made();
        }
        let idx = self.lanes.get(self.drain_from).head;
        self.remove(links, idx);
        Some(idx)
    }

    /// [`enqueue`](Self::enqueue) of a flow without a lane in the band: it gets one.
    #[inline(always)]
    fn enqueue_first<L: Links>(&mut self, links: &L, idx: u32, band: u32, flow: u32) {
        let seq = self.order.stamp();
        self.came = self.came.wrapping_add(1);
        let lane = self.lanes.allocate();
        links.write(idx, Link::new(NONE, NONE, seq, lane));
        let tenant = self.rows.give_lane(flow, band, lane);
        #[allow(clippy::cast_possible_truncation, reason = "a band index is below 64")]
        let new = Lane { head: idx, tail: idx, len: 1, ..Lane::new(flow, tenant, band as u8) };
        let here = &mut self.bands[of(band)];
        here.count_in();
        here.append(&mut self.lanes, lane, |it| *it = new);
        self.ready |= 1 << band;
    }

    /// [`enqueue`](Self::enqueue) if the lane is set aside, an anonymous one has no waiters yet, or the keys are
    /// used up.
    #[inline(never)]
    fn enqueue_rarely<L: Links>(&mut self, links: &L, idx: u32, band: u32, flow: u32) {
        if self.order.is_spent() {
            self.rebase(links);
            return self.enqueue(links, idx, band, flow);
        }
        let lane = if flow == NONE { band } else { self.rows.lane(flow, band) };
        let seq = self.order.stamp();
        self.came = self.came.wrapping_add(1);
        let here = &mut self.bands[of(band)];
        here.count_in();
        let it = self.lanes.get_mut(lane);
        let tail = core::mem::replace(&mut it.tail, idx);
        it.len += u32::from(flow != NONE);
        links.write(idx, Link::new(NONE, tail, seq, lane));
        if it.place == Place::Idle {
            here.append(&mut self.lanes, lane, |it| it.head = idx);
            self.ready |= 1 << band;
        } else {
            self.capped += u32::from(!it.is_in_band());
            links.set_next(tail, idx);
        }
    }

    /// Counts an arrival; its number.
    #[inline(always)]
    pub(super) fn count_in<L: Links>(&mut self, links: &L, band: u32) -> u64 {
        if self.order.is_spent() {
            self.rebase(links);
        }
        self.came = self.came.wrapping_add(1);
        self.bands[of(band)].count_in();
        self.order.stamp()
    }

    /// Counts one who leaves.
    #[inline(always)]
    pub(super) fn count_out(&mut self, band: u32) {
        self.went = self.went.wrapping_add(1);
        self.bands[of(band)].count_out();
    }

    /// The lane of a flow in a band: its own, or a new one.
    #[inline(always)]
    pub(super) fn lane_of(&mut self, flow: u32, band: u32) -> u32 {
        if flow == NONE {
            return band;
        }
        let known = self.rows.lane(flow, band);
        if self.lanes.find(known).is_some_and(|it| it.is_of(flow, band)) {
            return known;
        }
        let lane = self.lanes.allocate();
        let tenant = self.rows.give_lane(flow, band, lane);
        #[allow(clippy::cast_possible_truncation, reason = "a band index is below 64")]
        let fresh = Lane::new(flow, tenant, band as u8);
        *self.lanes.get_mut(lane) = fresh;
        lane
    }

    /// The rest of [`take_front`](Self::take_front) if a tenant has lanes set aside or a band is ranked.
    #[inline(never)]
    fn settle_taken<L: Links>(&mut self, links: &L, lane: u32, caps: &impl Caps) {
        let &Lane { tenant, band, place, .. } = self.lanes.get(lane);
        if place == Place::Ranked {
            return self.settle_served(links, lane, caps);
        }
        self.settle_head(links, lane);
        self.follow(links, tenant, u32::from(band), Some(caps));
    }

    /// Clears up after a lane that lost its last waiter and stands nowhere any more.
    #[inline(always)]
    pub(super) fn emptied(&mut self, lane: u32, band: u32) {
        if self.bands[of(band)].top() == NONE {
            self.ready &= !(1 << band);
        }
        self.lanes.free(lane);
    }

    /// The head of a lane was taken out: the lane gets its new place, or goes.
    fn settle_head<L: Links>(&mut self, links: &L, lane: u32) {
        let Lane { head, flow, tenant, band, place, .. } = *self.lanes.get(lane);
        let (here, band) = (&mut self.bands[of(band)], u32::from(band));
        match place {
            Place::List | Place::Heap if head == NONE => {
                here.remove(links, &self.order, &mut self.lanes, lane);
            }
            Place::List | Place::Heap => here.update(links, &self.order, &mut self.lanes, lane),
            Place::Flow if head == NONE => self.rows.unpark_from_flow(flow, band),
            Place::Tenant => {
                let mut root = parked::remove(&mut self.lanes, self.rows.root(tenant, band), lane);
                if head == NONE {
                    self.on_tenants -= 1;
                } else {
                    self.lanes.get_mut(lane).seq = self.order.number(links.read(head).seq());
                    root = parked::insert(&mut self.lanes, root, lane);
                }
                self.rows.set_root(tenant, band, root);
            }
            Place::Flow | Place::Idle | Place::Ranked => {}
        }
        if head == NONE {
            self.emptied(lane, band);
        }
    }

    /// Moves the base of the keys up before they pass 40 bits. Every 2^39 arrivals, O(lanes) and the requests
    /// older than that.
    #[cold]
    pub(super) fn rebase<L: Links>(&mut self, links: &L) {
        let order = &mut self.order;
        let number = |lane: &Lane| order.number(links.read(lane.head).seq());
        // A heap of requests has their whole numbers beside it.
        let lists = || self.lanes.in_use().filter(|lane| ranked::is_list(self.keyed, lane));
        let oldest = lists().map(number).min();
        let step = order.rebase(oldest);
        for lane in lists() {
            let mut idx = lane.head;
            while idx != NONE {
                let link = links.read(idx);
                let old_key = order.key(link.seq()).wrapping_add(step) & MAX_KEY;
                if old_key >= step {
                    break;
                }
                links.write(idx, Link::new(link.next, link.prev, order.base(), link.lane()));
                idx = link.next;
            }
        }
        for (index, band) in self.bands.iter_mut().enumerate() {
            if self.ranked >> index & 1 == 0 {
                band.rekey(links, order, &mut self.lanes);
            }
        }
    }
}

/// Takes a request out of the list of its lane; whether it was the first.
#[inline(always)]
pub(super) fn unlink<L: Links>(links: &L, it: &mut Lane, idx: u32, link: Link) -> bool {
    let was_head = it.head == idx;
    if was_head {
        it.head = link.next;
    } else {
        links.set_next(link.prev, link.next);
    }
    if it.tail == idx {
        it.tail = if was_head { NONE } else { link.prev };
    } else if !was_head {
        links.set_prev(link.next, link.prev);
    }
    was_head
}
