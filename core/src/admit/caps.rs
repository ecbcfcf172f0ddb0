//! Caps and charges of flows and tenants: plain rows that only the holder of the pool's LOCK touches.
//!
//! A flow stands for one (group, tenant, key) in one pool. Its row counts what the key runs; the tenant's
//! row counts what all its keys run. Both are taken together or not at all, since nobody else looks.
#![forbid(unsafe_code)]

use crate::types::NONE;
use crate::types::chunked::Chunked;

/// "No cap".
pub const UNCAPPED: u32 = u32::MAX;

/// What a flow may still do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Room {
    /// One more may run.
    Yes,
    /// The key is at its cap.
    FlowFull,
    /// The tenant is at its cap.
    TenantFull,
}

/// One flow: a key of a tenant.
#[derive(Clone, Copy, Debug)]
pub struct FlowRow {
    /// Tokens charged so far, at admission and corrected by `settle`.
    pub served: u64,
    /// Tenant row it belongs to.
    pub tenant: u32,
    /// Requests running.
    pub running: u32,
    /// Most requests running at once, or [`UNCAPPED`].
    pub cap: u32,
    /// Weight among the keys of its tenant; used by fair share.
    pub weight: u32,
}

/// One tenant.
#[derive(Clone, Copy, Debug)]
pub struct TenantRow {
    /// Tokens charged so far to all its keys.
    pub served: u64,
    /// Requests running over all its keys.
    pub running: u32,
    /// Most requests running at once, or [`UNCAPPED`].
    pub cap: u32,
    /// Weight among the tenants of its group; used by fair share.
    pub weight: u32,
    /// Group index; used by fair share.
    pub group: u32,
}

/// What came free with a release: whose waiters may run again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Freed {
    /// The key was at its cap and is not any more.
    pub flow: bool,
    /// The tenant was at its cap and is not any more.
    pub tenant: bool,
}

/// The rows of one pool, in chunks: adding one copies none of the others.
#[derive(Debug)]
pub struct Caps {
    flows: Chunked<FlowRow>,
    tenants: Chunked<TenantRow>,
    flow_count: u32,
    tenant_count: u32,
}

impl Caps {
    /// No rows yet, at most `max_flows` of each kind later.
    pub fn new(max_flows: u32) -> Self {
        let flow = FlowRow { served: 0, tenant: NONE, running: 0, cap: UNCAPPED, weight: 0 };
        let tenant = TenantRow { served: 0, running: 0, cap: UNCAPPED, weight: 0, group: 0 };
        Self {
            flows: Chunked::new(max_flows, 1, flow),
            tenants: Chunked::new(max_flows, 1, tenant),
            flow_count: 0,
            tenant_count: 0,
        }
    }

    /// Adds a tenant, returns its index. Interning only: allocates once per 1,024 rows.
    pub fn add_tenant(&mut self, cap: u32, weight: u32, group: u32) -> u32 {
        let index = self.tenant_count;
        self.tenants.ensure(index);
        *self.tenants.get_mut(index, 0) = TenantRow { served: 0, running: 0, cap, weight, group };
        self.tenant_count += 1;
        index
    }

    /// Adds a flow of a tenant, returns its index. Interning only, as [`Caps::add_tenant`].
    pub fn add_flow(&mut self, tenant: u32, cap: u32, weight: u32) -> u32 {
        let index = self.flow_count;
        self.flows.ensure(index);
        *self.flows.get_mut(index, 0) = FlowRow { served: 0, tenant, running: 0, cap, weight };
        self.flow_count += 1;
        index
    }

    /// The row of a flow.
    #[inline(always)]
    pub fn flow(&self, flow: u32) -> Option<&FlowRow> {
        (flow < self.flow_count).then(|| self.flows.get(flow, 0))
    }

    /// The row of a tenant.
    #[inline(always)]
    pub fn tenant(&self, tenant: u32) -> Option<&TenantRow> {
        (tenant < self.tenant_count).then(|| self.tenants.get(tenant, 0))
    }

    #[inline(always)]
    fn flow_mut(&mut self, flow: u32) -> Option<&mut FlowRow> {
        (flow < self.flow_count).then(|| self.flows.get_mut(flow, 0))
    }

    #[inline(always)]
    fn tenant_mut(&mut self, tenant: u32) -> Option<&mut TenantRow> {
        (tenant < self.tenant_count).then(|| self.tenants.get_mut(tenant, 0))
    }

    /// The tenant of a flow, [`NONE`] for the anonymous flow.
    #[inline]
    pub fn tenant_of(&self, flow: u32) -> u32 {
        self.flow(flow).map_or(NONE, |row| row.tenant)
    }

    /// Whether one more request of the flow may run.
    #[inline]
    pub fn room(&self, flow: u32) -> Room {
        let Some(row) = self.flow(flow) else { return Room::Yes };
        if row.running >= row.cap {
            return Room::FlowFull;
        }
        match self.tenant(row.tenant) {
            Some(tenant) if tenant.running >= tenant.cap => Room::TenantFull,
            _ => Room::Yes,
        }
    }

    /// Whether the flow can never run: its key or tenant has a cap of 0.
    #[inline]
    pub fn refuses(&self, flow: u32) -> bool {
        self.flow(flow)
            .is_some_and(|row| row.cap == 0 || self.tenant(row.tenant).is_some_and(|t| t.cap == 0))
    }

    /// Takes one of each and charges the cost. The caller has seen [`Room::Yes`].
    #[inline]
    pub fn take(&mut self, flow: u32, cost: u32) {
        let Some(row) = self.flow_mut(flow) else { return };
        debug_assert!(row.running < row.cap, "key cap exceeded");
        row.running += 1;
        row.served = row.served.saturating_add(u64::from(cost));
        let tenant = row.tenant;
        if let Some(tenant) = self.tenant_mut(tenant) {
            debug_assert!(tenant.running < tenant.cap, "tenant cap exceeded");
            tenant.running += 1;
            tenant.served = tenant.served.saturating_add(u64::from(cost));
        }
    }

    /// Gives `count` of each back.
    #[inline]
    pub fn give(&mut self, flow: u32, count: u32) -> Freed {
        let mut freed = Freed::default();
        let Some(row) = self.flow_mut(flow) else { return freed };
        debug_assert!(row.running >= count, "released more than ran");
        freed.flow = row.running >= row.cap;
        row.running = row.running.saturating_sub(count);
        freed.flow &= row.running < row.cap;
        let tenant = row.tenant;
        if let Some(tenant) = self.tenant_mut(tenant) {
            debug_assert!(tenant.running >= count, "released more than ran");
            freed.tenant = tenant.running >= tenant.cap;
            tenant.running = tenant.running.saturating_sub(count);
            freed.tenant &= tenant.running < tenant.cap;
        }
        freed
    }

    /// Corrects the charge from the estimate to what was really used.
    pub fn settle(&mut self, flow: u32, charged: u32, actual: u32) {
        let correct = |served: u64| {
            served.saturating_sub(u64::from(charged)).saturating_add(u64::from(actual))
        };
        let Some(row) = self.flow_mut(flow) else { return };
        row.served = correct(row.served);
        let tenant = row.tenant;
        if let Some(tenant) = self.tenant_mut(tenant) {
            tenant.served = correct(tenant.served);
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn caps_of_key_and_tenant_are_taken_together_and_say_whose_waiters_may_run() {
        let mut caps = Caps::new(8);
        let tenant = caps.add_tenant(2, 100, 0);
        let a = caps.add_flow(tenant, 1, 100);
        let b = caps.add_flow(tenant, UNCAPPED, 100);
        caps.take(a, 10);
        assert_eq!((caps.room(a), caps.room(b)), (Room::FlowFull, Room::Yes));
        caps.take(b, 5);
        assert_eq!((caps.room(a), caps.room(b)), (Room::FlowFull, Room::TenantFull));
        assert_eq!(caps.give(b, 1), Freed { flow: false, tenant: true });
        assert_eq!(caps.give(a, 1), Freed { flow: true, tenant: false });
        assert_eq!(caps.room(NONE), Room::Yes);
        caps.settle(a, 10, 25);
        let served = (caps.flow(a).map(|r| r.served), caps.tenant(tenant).map(|r| r.served));
        assert_eq!(served, (Some(25), Some(30)));
    }
}
