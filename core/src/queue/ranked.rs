//! Bands in another order than arrival: of the requests in a lane, of the lanes among each other, or of both.
//!
//! `select` says the ranks; here they are obeyed. In such a band the lanes not set aside stand in a
//! [leftist] heap by (rank, arrival of the head). With an order within the flows a lane is no list but
//! such a heap itself, whose links are in a table beside the slab: 40 bytes for each request that may wait, made at
//! construction, and only in pools with such a band. Any request leaves in O(log n).
//!
//! The rules of [`bands`](super::bands) about lanes set aside hold with "rank" for "arrival". One is added: a lane set
//! aside on a tenant that gets an earlier rank, because a request overtook the others of its flow, is put back at
//! once: it may have to go before the lane that guards it.
#![forbid(unsafe_code)]

use alloc::{boxed::Box, vec, vec::Vec};

use super::{
    band::Band,
    bands::{BandQueues, of, unlink},
    caps::Caps,
    lanes::{Lane, Lanes, Place},
    leftist::{self, Nodes, Spot},
    links::{Link, Links},
};
use crate::types::extend::FlowHead;
use crate::types::rank::{Head, LaneOrder, Rank};
use crate::types::{MAX_BANDS, NONE};

/// A request in the heap of its lane.
#[derive(Clone, Copy, Debug)]
struct Node {
    rank: Rank,
    seq: u64,
    spot: Spot,
}

const _: () = assert!(size_of::<Node>() == 40);

/// The requests of the lanes that are heaps, by slab index.
#[derive(Debug, Default)]
struct Requests(Vec<Node>);

impl Nodes for Requests {
    #[inline]
    fn spot(&self, idx: u32) -> Spot {
        self.0[idx as usize].spot
    }

    #[inline]
    fn set_spot(&mut self, idx: u32, spot: Spot) {
        self.0[idx as usize].spot = spot;
    }

    #[inline]
    fn is_before(&self, a: u32, b: u32) -> bool {
        let (a, b) = (&self.0[a as usize], &self.0[b as usize]);
        (a.rank, a.seq) < (b.rank, b.seq)
    }
}

/// Lanes by their ranks.
struct ByRank<'a> {
    lanes: &'a mut Lanes,
    ranks: &'a [Rank],
}

impl Nodes for ByRank<'_> {
    #[inline]
    fn spot(&self, lane: u32) -> Spot {
        self.lanes.spot(lane)
    }

    #[inline]
    fn set_spot(&mut self, lane: u32, spot: Spot) {
        self.lanes.set_spot(lane, spot);
    }

    #[inline]
    fn is_before(&self, a: u32, b: u32) -> bool {
        let place = |lane: u32| (self.ranks[lane as usize], self.lanes.get(lane).seq);
        place(a) <= place(b)
    }

    #[inline]
    fn count_step(&mut self) {
        self.lanes.count_step();
    }
}

/// What ranked bands need beside the rest.
#[derive(Debug)]
pub struct Ranking {
    orders: [Option<Box<dyn LaneOrder>>; MAX_BANDS],
    requests: Requests,
    /// The rank of each lane in use.
    ranks: Vec<Rank>,
}

impl Ranking {
    /// For [`BandQueues`] of as many requests and `keyed` bands, if there will be any. Allocates 16 bytes for each
    /// request and band, and 40 for each request if keyed.
    pub fn new(max_waiting: u32, keyed: bool) -> Box<Self> {
        let idle = Node { rank: Rank::default(), seq: 0, spot: Spot::ALONE };
        Box::new(Self {
            orders: [const { None }; MAX_BANDS],
            requests: Requests(vec![idle; if keyed { max_waiting as usize } else { 0 }]),
            // A lane in use has a waiter, or is the anonymous one of a band.
            ranks: vec![Rank::default(); max_waiting as usize + MAX_BANDS],
        })
    }

    fn order(&mut self, band: u8) -> &mut dyn LaneOrder {
        let order = self.orders[of(band)].as_deref_mut();
        order.expect("a ranked band has an order")
    }

    /// A flow does not exist any more.
    pub(super) fn forget(&mut self, flow: u32) {
        for order in self.orders.iter_mut().flatten() {
            order.forget(flow);
        }
    }

    fn by_rank<'a>(&'a self, lanes: &'a mut Lanes) -> ByRank<'a> {
        ByRank { lanes, ranks: &self.ranks }
    }

    /// Puts a lane, whose rank is set, among those of its band.
    fn push(&self, band: &mut Band, lanes: &mut Lanes, lane: u32) {
        lanes.get_mut(lane).place = Place::Ranked;
        let root = leftist::insert(&mut self.by_rank(lanes), band.top(), lane);
        band.set_root(root);
    }

    /// Takes a lane out of those of its band.
    fn pull(&self, band: &mut Band, lanes: &mut Lanes, lane: u32) {
        let root = leftist::remove(&mut self.by_rank(lanes), band.top(), lane);
        band.set_root(root);
    }
}

/// What changed at the front of a lane.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Change {
    Begins,
    Dispatched,
    Other,
}

impl BandQueues {
    /// Puts an empty band in another order: `lanes` ranks its flows (`None`: arrival over all flows), `keyed` says
    /// that its requests come with ranks as well. `room` is used if the queues have not enough. Afterwards both
    /// hold what is not needed any more. O(1), nothing is allocated or freed.
    pub fn set_order(
        &mut self,
        band: u32,
        lanes: &mut Option<Box<dyn LaneOrder>>,
        keyed: bool,
        room: &mut Option<Box<Ranking>>,
    ) {
        debug_assert!(self.waiting_in(band) == 0, "the band is empty");
        let (is_ranked, was_ranked) = (lanes.is_some(), self.ranked != 0);
        if is_ranked && self.ranking.is_none() {
            self.ranking = room.take();
        }
        let Some(ranking) = self.ranking.as_deref_mut() else { return };
        if keyed
            && ranking.requests.0.is_empty()
            && let Some(room) = room.as_deref_mut()
        {
            core::mem::swap(&mut ranking.requests, &mut room.requests);
        }
        core::mem::swap(&mut ranking.orders[of(band)], lanes);
        let bit = 1 << (band % 64);
        self.ranked = self.ranked & !bit | if is_ranked { bit } else { 0 };
        self.keyed = self.keyed & !bit | if is_ranked && keyed { bit } else { 0 };
        // While there is one, every dispatch is settled out of line, where the ranks are looked at.
        self.on_tenants += u32::from(self.ranked != 0);
        self.on_tenants -= u32::from(was_ranked);
    }

    /// The same for queues that are not in use yet. Allocates.
    #[must_use]
    pub fn with_order(mut self, band: u32, lanes: Box<dyn LaneOrder>, keyed: bool) -> Self {
        let mut room = Some(Ranking::new(self.capacity, keyed));
        self.set_order(band, &mut Some(lanes), keyed, &mut room);
        self
    }

    /// Whether requests of the band come in by [`enqueue_ranked`](Self::enqueue_ranked).
    #[inline(always)]
    pub fn is_ranked(&self, band: u32) -> bool {
        self.ranked >> (band % 64) & 1 != 0
    }

    /// Whether they come with ranks of their own.
    #[inline]
    pub fn is_keyed(&self, band: u32) -> bool {
        self.keyed >> (band % 64) & 1 != 0
    }

    /// Adds a request to a ranked band; `rank` counts if the band is keyed. O(log n).
    pub fn enqueue_ranked<L: Links>(
        &mut self,
        links: &L,
        idx: u32,
        band: u32,
        flow: u32,
        rank: Rank,
    ) {
        debug_assert!(self.is_ranked(band), "the caller asked");
        let seq = self.count_in(links, band);
        let lane = self.lane_of(flow, band);
        let is_keyed = self.is_keyed(band);
        let it = self.lanes.get_mut(lane);
        it.len += u32::from(flow != NONE);
        let place = it.place;
        let is_first = if is_keyed && let Some(ranking) = &mut self.ranking {
            links.write(idx, Link::new(NONE, NONE, seq, lane));
            ranking.requests.0[idx as usize] = Node { rank, seq, spot: Spot::ALONE };
            it.head = leftist::insert(&mut ranking.requests, it.head, idx);
            it.tail = it.head;
            it.head == idx
        } else {
            links.write(idx, Link::new(NONE, it.tail, seq, lane));
            let tail = core::mem::replace(&mut it.tail, idx);
            if place == Place::Idle {
                it.head = idx;
            } else {
                links.set_next(tail, idx);
            }
            place == Place::Idle
        };
        self.capped += u32::from(matches!(place, Place::Flow | Place::Tenant));
        if is_first {
            let change = if place == Place::Idle { Change::Begins } else { Change::Other };
            let is_later = self.settle_ranked(links, lane, change);
            if is_later && place == Place::Ranked {
                // A policy of the host may rank a flow behind where it was for a request that overtook the others.
                let tenant = self.lanes.get(lane).tenant;
                self.follow(links, tenant, band, None::<&super::NoCaps>);
            }
        }
    }

    /// [`remove`](Self::remove) in a ranked band.
    pub(super) fn remove_ranked<L: Links>(&mut self, links: &L, idx: u32, lane: u32) {
        let link = links.read(idx);
        links.leave(idx);
        let it = self.lanes.get_mut(lane);
        let (tenant, band, in_band) = (it.tenant, u32::from(it.band), it.is_in_band());
        let was_head = match &mut self.ranking {
            Some(ranking) if self.keyed >> band & 1 != 0 => {
                let before = it.head;
                it.head = leftist::remove(&mut ranking.requests, before, idx);
                it.tail = it.head;
                before == idx
            }
            _ => unlink(links, it, idx, link),
        };
        it.len -= u32::from(it.flow != NONE);
        self.count_out(band);
        self.capped -= u32::from(!in_band);
        if was_head {
            self.settle_ranked(links, lane, Change::Other);
            if in_band {
                self.follow(links, tenant, band, None::<&super::NoCaps>);
            }
        }
    }

    /// The rest of [`take_front`](Self::take_front) in a ranked band: the list's head moved on already.
    pub(super) fn settle_served<L: Links>(&mut self, links: &L, lane: u32, caps: &impl Caps) {
        let &Lane { head, tail, flow, tenant, band, seq, .. } = self.lanes.get(lane);
        let is_keyed = self.is_keyed(band.into());
        let Some(ranking) = self.ranking.as_deref_mut() else { return };
        // A lane that is a heap has its root in `tail` too, one that is a list the old head before the new one.
        let served = if is_keyed || head == NONE { tail } else { links.read(head).prev };
        let mut rank = Rank::by(seq);
        if is_keyed {
            rank = ranking.requests.0[served as usize].rank;
            let root = leftist::remove(&mut ranking.requests, served, served);
            let it = self.lanes.get_mut(lane);
            (it.head, it.tail) = (root, root);
        }
        let head_cost = links.cost(served);
        let view = FlowHead { flow, tenant, head_key: rank.key, head_arrival: seq, head_cost };
        let was = ranking.ranks[lane as usize];
        ranking.order(band).dispatched(&Head { flow: view, tie: rank.tie }, was);
        self.settle_ranked(links, lane, Change::Dispatched);
        self.follow(links, tenant, band.into(), Some(caps));
    }

    /// The first request of a lane is another one, or none: the lane gets its new rank and place, or goes. Whether
    /// its rank is later than before.
    fn settle_ranked<L: Links>(&mut self, links: &L, lane: u32, change: Change) -> bool {
        let Lane { head, flow, tenant, band, place, .. } = *self.lanes.get(lane);
        let Some(ranking) = self.ranking.as_deref_mut() else { return false };
        let here = &mut self.bands[of(band)];
        match place {
            Place::Ranked => ranking.pull(here, &mut self.lanes, lane),
            Place::Tenant => {
                let root = self.rows.root(tenant, band.into());
                let root = leftist::remove(&mut ranking.by_rank(&mut self.lanes), root, lane);
                self.rows.set_root(tenant, band.into(), root);
                self.on_tenants -= 1;
            }
            Place::Flow if head == NONE => self.rows.unpark_from_flow(flow, band.into()),
            _ => {}
        }
        if head == NONE {
            if here.waiting() == 0 {
                ranking.order(band).emptied();
            }
            self.emptied(lane, band.into());
            return true;
        }
        let first = self.head_of(links, lane);
        let Some(ranking) = self.ranking.as_deref_mut() else { return false };
        let was = ranking.ranks[lane as usize];
        let rank = match change {
            Change::Begins => ranking.order(band).begins(&first),
            Change::Dispatched => ranking.order(band).goes_on(&first),
            Change::Other => ranking.order(band).head_changed(&first, was),
        };
        ranking.ranks[lane as usize] = rank;
        let arrival = first.flow.head_arrival;
        let was = (was, core::mem::replace(&mut self.lanes.get_mut(lane).seq, arrival));
        match place {
            Place::Flow => {}
            Place::Tenant if (rank, arrival) > was => {
                let root = self.rows.root(tenant, band.into());
                let root = leftist::insert(&mut ranking.by_rank(&mut self.lanes), root, lane);
                self.rows.set_root(tenant, band.into(), root);
                self.on_tenants += 1;
            }
            Place::Tenant => self.put_back(links, lane),
            _ => {
                ranking.push(&mut self.bands[of(band)], &mut self.lanes, lane);
                self.ready |= 1 << band;
            }
        }
        (rank, arrival) > was
    }

    /// The first request of a lane that has one, as a policy is shown it.
    fn head_of<L: Links>(&self, links: &L, lane: u32) -> Head {
        let &Lane { head, flow, tenant, band, .. } = self.lanes.get(lane);
        let (rank, head_arrival) = match &self.ranking {
            Some(ranking) if self.is_keyed(band.into()) => {
                let node = &ranking.requests.0[head as usize];
                (node.rank, node.seq)
            }
            _ => {
                let arrival = self.order.number(links.read(head).seq());
                (Rank::by(arrival), arrival)
            }
        };
        let head_cost = links.cost(head);
        let flow = FlowHead { flow, tenant, head_key: rank.key, head_arrival, head_cost };
        Head { flow, tie: rank.tie }
    }

    /// Takes the top lane of a ranked band out of it.
    pub(super) fn pull_top(&mut self, band: u32) {
        if let Some(ranking) = &self.ranking {
            let here = &mut self.bands[of(band)];
            ranking.pull(here, &mut self.lanes, here.top());
        }
    }

    /// Puts a lane, whose rank it keeps, among those of its ranked band.
    pub(super) fn push_ranked(&mut self, lane: u32) {
        if let Some(ranking) = &self.ranking {
            let band = self.lanes.get(lane).band;
            ranking.push(&mut self.bands[of(band)], &mut self.lanes, lane);
        }
    }

    /// [`walk`](Self::walk) over a lane that is a heap, from its root: parents before children.
    pub(super) fn walk_heap(&self, root: u32, visit: &mut impl FnMut(u32) -> bool) -> bool {
        let Some(ranking) = &self.ranking else { return true };
        let (mut idx, mut from) = (root, NONE);
        while idx != NONE {
            let Spot { up, left, right, .. } = ranking.requests.spot(idx);
            if from == up && !visit(idx) {
                return false;
            }
            // Down to the left, then to the right, then back; a child that is absent is not gone to.
            let next = if from == up && left != NONE {
                left
            } else if from != right && right != NONE {
                right
            } else {
                up
            };
            (from, idx) = (idx, next);
        }
        true
    }

    /// The heap of lanes set aside on a tenant with one more.
    pub(super) fn park_ranked(&mut self, root: u32, lane: u32) -> u32 {
        self.ranking.as_deref().map_or(root, |ranking| {
            leftist::insert(&mut ranking.by_rank(&mut self.lanes), root, lane)
        })
    }

    /// The same without its root.
    pub(super) fn unpark_ranked(&mut self, root: u32) -> u32 {
        self.ranking.as_deref().map_or(NONE, |ranking| {
            leftist::remove(&mut ranking.by_rank(&mut self.lanes), root, root)
        })
    }
}

/// Whether a lane is a list by arrival, in a band where `keyed` are heaps.
pub(super) const fn is_list(keyed: u64, lane: &Lane) -> bool {
    keyed >> lane.band & 1 == 0
}
