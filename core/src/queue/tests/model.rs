//! The band queues beside a list that is searched from the front.

use alloc::{vec, vec::Vec};

use crate::{
    queue::{BandQueues, Front, Room, VecLinks, Waiter},
    types::NONE,
};

/// One who waits, in the model.
#[derive(Clone, Copy, Debug)]
struct Waiting {
    idx: u32,
    band: u32,
    flow: u32,
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
}

impl Pool {
    /// `tenant_of[flow]` names the tenant; every cap starts at `cap`.
    pub(super) fn new(bands: u32, capacity: u32, tenant_of: Vec<u32>, cap: u32) -> Self {
        let flows = u32::try_from(tenant_of.len()).unwrap();
        let mut queues = BandQueues::new(bands as usize, capacity, flows);
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
        }
    }

    pub(super) fn flow_count(&self) -> u32 {
        u32::try_from(self.flows.len()).unwrap()
    }

    pub(super) fn enqueue(&mut self, pick: usize, band: u32, flow: u32) {
        if self.free.is_empty() {
            return;
        }
        // Any free index, so that index order never stands in for arrival order.
        let idx = self.free.swap_remove(pick % self.free.len());
        let band = band % self.bands;
        self.queues.enqueue(&self.links, idx, band, flow);
        self.waiting.push(Waiting { idx, band, flow });
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
        let mut all = self.waiting.iter().filter(|it| it.band == band);
        all.find(|it| self.room(it.flow, self.tenant(it.flow)) == Room::Yes).copied()
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
        self.waiting.retain(|it| it.idx != found.idx);
        self.free.push(found.idx);
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
        let gone = self.waiting.remove(pick % self.waiting.len());
        assert!(self.queues.remove(&self.links, gone.idx));
        assert!(!self.queues.remove(&self.links, gone.idx), "a request leaves once");
        self.free.push(gone.idx);
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

    /// Lifts every cap and grants everything: the order is that of arrival, and nothing is left.
    pub(super) fn drain(&mut self) {
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
