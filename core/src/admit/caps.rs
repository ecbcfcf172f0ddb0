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
    /// Row in which its tenant is counted.
    pub tenant: u32,
    /// Requests running.
    pub running: u32,
    /// Most requests running at once, or [`UNCAPPED`].
    pub cap: u32,
    /// Weight among the keys of its tenant; for fair share, not used yet.
    pub weight: u32,
}

/// One tenant, counted in the row of its first flow.
#[derive(Clone, Copy, Debug)]
pub struct TenantRow {
    /// Tokens charged so far to all its keys.
    pub served: u64,
    /// Requests running over all its keys.
    pub running: u32,
    /// Most requests running at once, or [`UNCAPPED`].
    pub cap: u32,
    /// Weight among the tenants of its group; for fair share, not used yet.
    pub weight: u32,
    /// Group index; for fair share, not used yet.
    pub group: u32,
}

/// A flow, and the tenant if this is its first flow: most tenants have one key, and touch one cache line.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
struct Row {
    flow: FlowRow,
    tenant: TenantRow,
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
    rows: Chunked<Row>,
    count: u32,
}

impl Caps {
    /// No rows yet, at most `max_flows` later.
    pub fn new(max_flows: u32) -> Self {
        let flow = FlowRow { served: 0, tenant: NONE, running: 0, cap: UNCAPPED, weight: 0 };
        let tenant = TenantRow { served: 0, running: 0, cap: UNCAPPED, weight: 0, group: 0 };
        Self { rows: Chunked::new(max_flows, 1, Row { flow, tenant }), count: 0 }
    }

    /// Adds a flow of a tenant that has one already, by its index; returns the flow's. Interning only:
    /// allocates once per 1,024 rows.
    pub fn add_flow(&mut self, tenant: u32, cap: u32, weight: u32) -> u32 {
        let index = self.count;
        self.rows.ensure(index);
        self.rows.get_mut(index, 0).flow = FlowRow { served: 0, tenant, running: 0, cap, weight };
        self.count += 1;
        index
    }

    /// Adds a tenant with its first flow; both have the index returned. Interning only.
    pub fn add_tenant(&mut self, tenant: TenantRow, cap: u32, weight: u32) -> u32 {
        let index = self.add_flow(self.count, cap, weight);
        self.rows.get_mut(index, 0).tenant = tenant;
        index
    }

    /// The row of a flow.
    #[inline(always)]
    pub fn flow(&self, flow: u32) -> Option<&FlowRow> {
        (flow < self.count).then(|| &self.rows.get(flow, 0).flow)
    }

    /// The row of a tenant.
    #[inline(always)]
    pub fn tenant(&self, tenant: u32) -> Option<&TenantRow> {
        (tenant < self.count).then(|| &self.rows.get(tenant, 0).tenant)
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

    /// Takes one of each and charges the cost if both have room.
    #[inline(always)]
    pub fn try_take(&mut self, flow: u32, cost: u32) -> bool {
        if flow >= self.count {
            return true;
        }
        let &FlowRow { tenant, running, cap, .. } = &self.rows.get(flow, 0).flow;
        let counted = &mut self.rows.get_mut(tenant, 0).tenant;
        let has_room = running < cap && counted.running < counted.cap;
        if has_room {
            counted.running += 1;
            counted.served = counted.served.saturating_add(u64::from(cost));
            let row = &mut self.rows.get_mut(flow, 0).flow;
            row.running += 1;
            row.served = row.served.saturating_add(u64::from(cost));
        }
        has_room
    }

    /// Takes one of each and charges the cost. The caller has seen [`Room::Yes`].
    #[inline(always)]
    pub fn take(&mut self, flow: u32, cost: u32) {
        let has_room = self.try_take(flow, cost);
        debug_assert!(has_room, "cap exceeded");
    }

    /// Gives `count` of each back.
    #[inline(always)]
    pub fn give(&mut self, flow: u32, count: u32) -> Freed {
        if flow >= self.count {
            return Freed::default();
        }
        let row = &mut self.rows.get_mut(flow, 0).flow;
        debug_assert!(row.running >= count, "released more than ran");
        let was_full = row.running >= row.cap;
        row.running = row.running.saturating_sub(count);
        let (has_room, home) = (row.running < row.cap, row.tenant);
        let tenant = &mut self.rows.get_mut(home, 0).tenant;
        debug_assert!(tenant.running >= count, "released more than ran");
        let tenant_was_full = tenant.running >= tenant.cap;
        tenant.running = tenant.running.saturating_sub(count);
        Freed { flow: was_full && has_room, tenant: tenant_was_full && tenant.running < tenant.cap }
    }

    /// Corrects the charge from the estimate to what was really used.
    pub fn settle(&mut self, flow: u32, charged: u32, actual: u32) {
        if flow >= self.count {
            return;
        }
        let correct = |served: u64| {
            served.saturating_sub(u64::from(charged)).saturating_add(u64::from(actual))
        };
        let row = &mut self.rows.get_mut(flow, 0).flow;
        row.served = correct(row.served);
        let home = row.tenant;
        let tenant = &mut self.rows.get_mut(home, 0).tenant;
        tenant.served = correct(tenant.served);
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn caps_of_key_and_tenant_are_taken_together_and_say_whose_waiters_may_run() {
        let mut caps = Caps::new(8);
        let tenant = TenantRow { served: 0, running: 0, cap: 2, weight: 100, group: 0 };
        let a = caps.add_tenant(tenant, 1, 100);
        let tenant = a;
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
