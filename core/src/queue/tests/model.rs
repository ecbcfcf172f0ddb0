//! The band queues beside a list that is searched from the front.

use alloc::{boxed::Box, collections::BTreeMap, vec, vec::Vec};

use crate::select::flow::{FlowPolicy, GlobalStrict, RoundRobin};
use crate::{
    queue::{BandQueues, Front, Room, VecLinks, Waiter},
    types::NONE,
    types::extend::{FlowFairness, FlowHead},
    types::rank::{LaneOrder, Rank},
};

/// One who waits, in the model.
#[derive(Clone, Copy, Debug)]
struct Waiting {
    idx: u32,
    band: u32,
    flow: u32,
    rank: Rank,
    arrival: u64,
}

/// Which flow is next, in the model.
#[derive(Clone, Debug)]
pub(super) enum Fair {
    /// The earliest first request, by the queue's own order.
    Arrival,
    /// The first request with the least rank.
    Strict,
    /// The flow with the least place (round, flow); the place served last, and the place of each who waits.
    Robin { last: Option<(u64, u64)>, places: BTreeMap<u32, (u64, u64)> },
    /// As [`Odd`] says.
    Odd,
}

/// An order over flows that no policy of ours has, from what a policy is shown.
#[derive(Debug)]
struct Odd;

impl FlowFairness for Odd {
    fn key(&mut self, head: &FlowHead) -> u64 {
        odd(head.flow, head.head_key)
    }
}

fn odd(flow: u32, head_key: u64) -> u64 {
    (u64::from(flow) ^ head_key).wrapping_mul(0x9e37_79b9) % 11
}

impl Fair {
    fn order(&self) -> Option<Box<dyn LaneOrder>> {
        Some(Box::new(match self {
            Self::Arrival => return None,
            Self::Strict => FlowPolicy::GlobalStrict(GlobalStrict),
            Self::Robin { .. } => FlowPolicy::RoundRobin(RoundRobin::new()),
            Self::Odd => FlowPolicy::Custom(Box::new(Odd)),
        }))
    }

    /// Somebody came to a flow.
    fn came(&mut self, flow: u32) {
        if let Self::Robin { last, places } = self {
            let index = u64::from(flow.min((1 << 24) - 1));
            let place = match *last {
                None => (0, index),
                Some((round, served)) => (round + u64::from(index <= served), index),
            };
            places.entry(flow).or_insert(place);
        }
    }

    /// Somebody left a flow in which `more` wait, the band has `others`.
    fn left(&mut self, flow: u32, dispatched: bool, more: bool, others: bool) {
        let Self::Robin { last, places } = self else { return };
        let Some(&place) = places.get(&flow) else { panic!("it had a place") };
        if dispatched {
            *last = (*last).max(Some(place));
            places.insert(flow, (last.map_or(0, |(round, _)| round) + 1, place.1));
        }
        if !more {
            places.remove(&flow);
        }
        if !others {
            *last = None;
        }
    }
}

/// Running and cap of flows or tenants.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Limit {
    running: u32,
    cap: u32,
}

impl Limit {
    fn full(self) -> bool {
        self.running >= self.cap
    }
}

/// A pool that grants from real queues and checks every answer against the model.
#[derive(Debug)]
pub(super) struct Pool {
    pub(super) queues: BandQueues,
    pub(super) links: VecLinks,
    waiting: Vec<Waiting>,
    pub(super) running: Vec<Waiter>,
    flows: Vec<Limit>,
    tenants: Vec<Limit>,
    tenant_of: Vec<u32>,
    free: Vec<u32>,
    bands: u32,
    fair: Vec<Fair>,
    arrivals: u64,
}

impl Pool {
    /// `tenant_of[flow]` names the tenant; every cap starts at `cap`.
    pub(super) fn new(bands: u32, capacity: u32, tenant_of: Vec<u32>, cap: u32) -> Self {
        let rules = vec![(Fair::Arrival, false); bands as usize];
        Self::with_rules(&rules, capacity, tenant_of, cap)
    }

    /// The same with a fairness for each band, and whether its requests have ranks of their own.
    pub(super) fn with_rules(
        rules: &[(Fair, bool)],
        capacity: u32,
        tenant_of: Vec<u32>,
        cap: u32,
    ) -> Self {
        let flows = u32::try_from(tenant_of.len()).unwrap();
        let bands = u32::try_from(rules.len()).unwrap();
        let mut queues = BandQueues::new(rules.len(), capacity, flows);
        for (band, (fair, keyed)) in (0..).zip(rules) {
            if let Some(order) = fair.order() {
                queues = queues.with_order(band, order, *keyed);
            }
        }
        for (flow, &tenant) in (0..).zip(&tenant_of) {
            queues.add_flow(flow, tenant);
        }
        let limit = Limit { running: 0, cap };
        Self {
            queues,
            links: VecLinks::new(capacity),
            waiting: Vec::new(),
            running: Vec::new(),
            flows: vec![limit; tenant_of.len()],
            tenants: vec![limit; tenant_of.len()],
            tenant_of,
            free: (0..capacity).collect(),
            bands,
            fair: rules.iter().map(|(fair, _)| fair.clone()).collect(),
            arrivals: 0,
        }
    }

    pub(super) fn flow_count(&self) -> u32 {
        u32::try_from(self.flows.len()).unwrap()
    }

    pub(super) fn enqueue(&mut self, pick: usize, band: u32, flow: u32) {
        self.enqueue_by(pick, band, flow, Rank::default());
    }

    /// The same with a rank, which counts where requests have ranks.
    pub(super) fn enqueue_by(&mut self, pick: usize, band: u32, flow: u32, rank: Rank) {
        if self.free.is_empty() {
            return;
        }
        // Any free index, so that index order never stands in for arrival order.
        let idx = self.free.swap_remove(pick % self.free.len());
        let band = band % self.bands;
        if self.queues.is_ranked(band) {
            self.queues.enqueue_ranked(&self.links, idx, band, flow, rank);
        } else {
            self.queues.enqueue(&self.links, idx, band, flow);
        }
        let rank = if self.queues.is_keyed(band) { rank } else { Rank::default() };
        self.waiting.push(Waiting { idx, band, flow, rank, arrival: self.arrivals });
        self.arrivals += 1;
        self.fair[band as usize].came(flow);
    }

    fn tenant(&self, flow: u32) -> u32 {
        if flow == NONE { NONE } else { self.tenant_of[flow as usize] }
    }

    fn room(&self, flow: u32, tenant: u32) -> Room {
        if flow == NONE {
            Room::Yes
        } else if self.flows[flow as usize].full() {
            Room::FlowFull
        } else if tenant != NONE && self.tenants[tenant as usize].full() {
            Room::TenantFull
        } else {
            Room::Yes
        }
    }

    fn expected(&self, band: u32) -> Option<Waiting> {
        let all = self.waiting.iter().filter(|it| it.band == band);
        let runnable = all.filter(|it| self.room(it.flow, self.tenant(it.flow)) == Room::Yes);
        let mut heads = BTreeMap::<u32, Waiting>::new();
        for it in runnable {
            let head = heads.entry(it.flow).or_insert(*it);
            if (it.rank, it.arrival) < (head.rank, head.arrival) {
                *head = *it;
            }
        }
        let heads = heads.into_values();
        match &self.fair[band as usize] {
            Fair::Arrival => heads.min_by_key(|it| it.arrival),
            Fair::Strict => heads.min_by_key(|it| (it.rank, it.arrival)),
            Fair::Robin { places, .. } => heads.min_by_key(|it| places[&it.flow]),
            Fair::Odd => heads.min_by_key(|it| {
                // Where arrival is the order within a flow, it is the key as well.
                let key = if self.queues.is_keyed(band) { it.rank.key } else { it.arrival };
                (odd(it.flow, key), it.arrival)
            }),
        }
    }

    /// Takes one who waits out of the model.
    fn forget(&mut self, idx: u32, dispatched: bool) {
        let at = self.waiting.iter().position(|it| it.idx == idx).unwrap();
        let gone = self.waiting.remove(at);
        let mut band = self.waiting.iter().filter(|it| it.band == gone.band);
        let others = band.clone().next().is_some();
        let more = band.any(|it| it.flow == gone.flow);
        self.fair[gone.band as usize].left(gone.flow, dispatched, more, others);
        self.free.push(idx);
    }

    /// Asks for the front of a band, a little budget at a time, and compares.
    pub(super) fn front(&mut self, band: u32) -> Option<Waiter> {
        let band = band % self.bands;
        let expected = self.expected(band);
        assert!(
            expected.is_none() || self.queues.ready() >> band & 1 == 1,
            "a band with a runnable request is ready"
        );
        let (flows, tenants) = (self.flows.clone(), self.tenants.clone());
        let caps = |flow: u32, tenant: u32| {
            if flows[flow as usize].full() {
                Room::FlowFull
            } else if tenant != NONE && tenants[tenant as usize].full() {
                Room::TenantFull
            } else {
                Room::Yes
            }
        };
        let lanes = self.waiting.len();
        for _ in 0..=lanes {
            let mut budget = 1;
            match self.queues.front(&self.links, band, &caps, &mut budget) {
                Front::Budget => {}
                Front::Empty => {
                    assert!(expected.is_none(), "{expected:?} could run");
                    return None;
                }
                Front::Ready(found) => {
                    let want = expected.unwrap();
                    assert_eq!((found.idx, found.flow), (want.idx, want.flow));
                    assert_eq!(found.tenant, self.tenant(want.flow));
                    return Some(found);
                }
            }
        }
        panic!("more lanes set aside than there are");
    }

    /// Grants the front of a band, if any.
    pub(super) fn grant(&mut self, band: u32) -> bool {
        let band = band % self.bands;
        let Some(found) = self.front(band) else { return false };
        if found.flow != NONE {
            self.flows[found.flow as usize].running += 1;
            if found.tenant != NONE {
                self.tenants[found.tenant as usize].running += 1;
            }
        }
        let (flows, tenants) = (self.flows.clone(), self.tenants.clone());
        let caps = |flow: u32, tenant: u32| {
            if tenant != NONE && tenants[tenant as usize].full() {
                Room::TenantFull
            } else if flows[flow as usize].full() {
                Room::FlowFull
            } else {
                Room::Yes
            }
        };
        assert_eq!(self.queues.take_front(&self.links, band, &caps), Some(found.idx));
        self.forget(found.idx, true);
        self.running.push(found);
        true
    }

    /// Ends one of the running requests.
    pub(super) fn release(&mut self, pick: usize) {
        if self.running.is_empty() {
            return;
        }
        let done = self.running.swap_remove(pick % self.running.len());
        if done.flow == NONE {
            return;
        }
        let (flow, tenant) = (done.flow, done.tenant);
        let was = self.flows[flow as usize].full();
        self.flows[flow as usize].running -= 1;
        if was && !self.flows[flow as usize].full() {
            self.queues.flow_has_room(&self.links, flow);
        }
        if tenant != NONE {
            let was = self.tenants[tenant as usize].full();
            self.tenants[tenant as usize].running -= 1;
            if was && !self.tenants[tenant as usize].full() {
                self.queues.tenant_has_room(&self.links, tenant);
            }
        }
    }

    /// Cancels one of those who wait.
    pub(super) fn cancel(&mut self, pick: usize) {
        if self.waiting.is_empty() {
            return;
        }
        self.check_walk();
        let gone = self.waiting[pick % self.waiting.len()];
        assert!(self.queues.remove(&self.links, gone.idx));
        assert!(!self.queues.remove(&self.links, gone.idx), "a request leaves once");
        self.forget(gone.idx, false);
    }

    /// Sets the cap of a flow and of the tenant with the same index.
    pub(super) fn set_caps(&mut self, index: u32, flow_cap: u32, tenant_cap: u32) {
        let (flow, tenant) = (&mut self.flows[index as usize], &mut self.tenants[index as usize]);
        let (flow_was, tenant_was) = (flow.full(), tenant.full());
        flow.cap = flow_cap;
        tenant.cap = tenant_cap;
        if flow_was && !flow.full() {
            self.queues.flow_has_room(&self.links, index);
        }
        if tenant_was && !tenant.full() {
            self.queues.tenant_has_room(&self.links, index);
        }
    }

    /// Tells the queues about room that may not be there: allowed at any time.
    pub(super) fn spurious(&mut self, index: u32) {
        self.queues.flow_has_room(&self.links, index);
        self.queues.tenant_has_room(&self.links, index);
    }

    fn check_walk(&self) {
        if self.waiting.len() > 1_000 {
            return;
        }
        let (mut seen, mut all) = (Vec::new(), Vec::new());
        self.queues.walk(&self.links, |idx| {
            seen.push(idx);
            true
        });
        all.extend(self.waiting.iter().map(|it| it.idx));
        seen.sort_unstable();
        all.sort_unstable();
        assert!(seen == all, "a walk meets everybody once");
    }

    /// Compares the counts.
    pub(super) fn check_counts(&self) {
        assert_eq!(self.queues.waiting() as usize, self.waiting.len());
        for band in 0..self.bands {
            let here = self.waiting.iter().filter(|it| it.band == band).count();
            assert_eq!(self.queues.waiting_in(band) as usize, here);
            assert!(here > 0 || self.queues.ready() >> band & 1 == 0, "an empty band is not ready");
        }
        let runnable =
            self.waiting.iter().filter(|it| self.room(it.flow, self.tenant(it.flow)) == Room::Yes);
        // A runnable request may be set aside only behind an earlier one of its tenant, so if any can run,
        // not all are set aside.
        if runnable.count() > 0 {
            assert!(self.queues.capped() < self.queues.waiting());
        }
    }

    /// Lifts every cap and grants everything: the order is the model's, and nothing is left.
    pub(super) fn drain(&mut self) {
        self.check_walk();
        for index in 0..self.flow_count() {
            self.set_caps(index, u32::MAX, u32::MAX);
        }
        for band in 0..self.bands {
            while self.grant(band) {}
        }
        assert!(self.waiting.is_empty());
        assert_eq!((self.queues.waiting(), self.queues.capped(), self.queues.ready()), (0, 0, 0));
    }
}
