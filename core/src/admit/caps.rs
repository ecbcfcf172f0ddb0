//! Caps and charges of flows and tenants: plain rows that only the holder of the pool's LOCK touches.
//!
//! A flow stands for one (group, tenant, key) in one pool. Its row counts what the key runs; the tenant's
//! row counts what all its keys run. Both are taken together or not at all, since nobody else looks.
#![forbid(unsafe_code)]

use alloc::{boxed::Box, vec::Vec};

use crate::types::NONE;

/// Rows in one allocation: adding one copies none of the others.
const CHUNK_ROWS: usize = 1024;

/// "No cap".
pub const UNCAPPED: u32 = u32::MAX;

/// The generation no handle has.
const NOBODY: u32 = u32::MAX;

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

/// What a key or a tenant has used and uses.
#[derive(Clone, Copy, Debug)]
pub struct Usage {
    /// Tokens charged so far, at admission and corrected by `settle`.
    pub served: u64,
    /// Requests running.
    pub running: u32,
    /// Most requests running at once, or [`UNCAPPED`].
    pub cap: u32,
}

impl Usage {
    /// Nothing yet, and at most `cap` requests at once.
    pub const fn up_to(cap: u32) -> Self {
        Self { served: 0, running: 0, cap }
    }

    #[inline(always)]
    const fn is_full(&self) -> bool {
        self.running >= self.cap
    }

    #[inline(always)]
    const fn count(&mut self, cost: u32) {
        self.running += 1;
        self.served = self.served.saturating_add(cost as u64);
    }

    /// Whether it was full and is not any more.
    #[inline(always)]
    const fn give(&mut self, count: u32) -> bool {
        debug_assert!(self.running >= count, "released more than ran");
        let before = self.running;
        self.running = before.saturating_sub(count);
        // Both at once: the cap lies in between.
        self.cap.wrapping_sub(self.running).wrapping_sub(1) < before.wrapping_sub(self.running)
    }
}

/// One flow: a key of a tenant.
#[derive(Clone, Copy, Debug)]
pub struct FlowRow {
    /// What the key uses.
    pub usage: Usage,
    /// Row in which its tenant is counted.
    pub tenant: u32,
    /// Weight among the keys of its tenant; for fair share, not used yet.
    pub weight: u32,
}

/// One tenant, counted in the row of its first flow.
#[derive(Clone, Copy, Debug)]
pub struct TenantRow {
    /// What all its keys use.
    pub usage: Usage,
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
    /// Counts the flows this row has stood for.
    generation: u32,
    /// The generation whose requests are accepted: that of the row; that of nobody if the cap of the key or its
    /// tenant is 0, or the row is free.
    accepts: u32,
    /// Flows of the tenant, if it is counted here.
    keys: u32,
    is_free: bool,
    /// Requests of the flow bypass slots and caps. They are not accepted, so that only who asks why not sees it.
    is_exempt: bool,
}

const _: () = assert!(size_of::<Row>() == 64);

impl Row {
    const EMPTY: Self = Self {
        flow: FlowRow { usage: Usage::up_to(UNCAPPED), tenant: NONE, weight: 0 },
        tenant: TenantRow { usage: Usage::up_to(UNCAPPED), weight: 0, group: 0 },
        generation: 0,
        accepts: 0,
        keys: 0,
        is_free: false,
        is_exempt: false,
    };
}

/// What came free with a release: whose waiters may run again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Freed {
    /// The key was at its cap and is not any more.
    pub flow: bool,
    /// The tenant was at its cap and is not any more.
    pub tenant: bool,
}

/// What a look at a flow found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Activity {
    /// Tokens charged so far: another number than before means that it was used.
    pub served: u64,
    /// It has permits.
    pub is_used: bool,
    /// Its tenant is counted in its row, and has permits or other flows.
    pub is_pinned: bool,
}

/// The rows of one pool.
#[derive(Debug)]
pub struct Caps {
    chunks: Vec<Box<[Row; CHUNK_ROWS]>>,
    count: u32,
    /// The free rows, linked by `tenant`.
    free: u32,
}

impl Caps {
    /// No rows yet, at most `max_flows` later.
    pub fn new(max_flows: u32) -> Self {
        let chunks = (max_flows as usize).div_ceil(CHUNK_ROWS);
        Self { chunks: Vec::with_capacity(chunks), count: 0, free: NONE }
    }

    /// Adds a flow of a tenant that has one already, by its index; returns the flow's and its generation. Interning
    /// only: allocates once per 1,024 rows.
    pub fn add_flow(&mut self, tenant: u32, cap: u32, weight: u32) -> (u32, u32) {
        let mut tenant_refuses = false;
        if let Some(home) = self.row_mut(tenant) {
            home.keys += 1;
            tenant_refuses = home.tenant.usage.cap == 0;
        }
        let flow = FlowRow { usage: Usage::up_to(cap), tenant, weight };
        self.add(Row { flow, ..Row::EMPTY }, cap == 0 || tenant_refuses)
    }

    /// Adds a tenant with its first flow; both have the index returned. Interning only.
    pub fn add_tenant(&mut self, tenant: TenantRow, cap: u32, weight: u32) -> (u32, u32) {
        let home = if self.free == NONE { self.count } else { self.free };
        let flow = FlowRow { usage: Usage::up_to(cap), tenant: home, weight };
        self.add(Row { flow, tenant, keys: 1, ..Row::EMPTY }, cap == 0 || tenant.usage.cap == 0)
    }

    /// Gives a flow and its tenant other caps and weights; whether either was full and is not any more. Those who
    /// run beyond a lower cap go on.
    pub fn change(&mut self, flow: u32, own: (u32, u32), tenant: (u32, u32)) -> Freed {
        let Some(row) = self.row_mut(flow) else { return Freed::default() };
        let was_full = row.flow.usage.is_full();
        (row.flow.usage.cap, row.flow.weight) = own;
        let refuses = own.0 == 0 || tenant.0 == 0 || row.is_exempt;
        row.accepts = if refuses { NOBODY } else { row.generation };
        let (freed, home) = (was_full && !row.flow.usage.is_full(), row.flow.tenant);
        let Some(Row { tenant: row, .. }) = self.row_mut(home) else {
            return Freed { flow: freed, tenant: false };
        };
        let was_full = row.usage.is_full();
        (row.usage.cap, row.weight) = tenant;
        Freed { flow: freed, tenant: was_full && !row.usage.is_full() }
    }

    /// Lets requests of a flow bypass slots and caps, or not any more; in force with the next [`change`](Self::change).
    pub fn set_exempt(&mut self, flow: u32, is_exempt: bool) {
        let Some(row) = self.row_mut(flow) else { return };
        row.is_exempt = is_exempt;
        if is_exempt {
            row.accepts = NOBODY;
        }
    }

    /// Whether requests of this handle bypass slots and caps.
    #[cold]
    pub fn is_exempt(&self, flow: u32, generation: u32) -> bool {
        self.row(flow).is_some_and(|row| row.is_exempt && row.generation == generation)
    }

    /// Charges an exempt request: its key counts it, but takes nothing from its tenant's cap.
    pub fn take_exempt(&mut self, flow: u32, cost: u32) {
        let Some(row) = self.row_mut(flow) else { return };
        row.flow.usage.count(cost);
        let home = row.flow.tenant;
        if let Some(Row { tenant, .. }) = self.row_mut(home) {
            tenant.usage.served = tenant.usage.served.saturating_add(u64::from(cost));
        }
    }

    /// An exempt request ended.
    pub fn give_exempt(&mut self, flow: u32) -> Freed {
        let row = self.row_mut(flow);
        Freed { flow: row.is_some_and(|row| row.flow.usage.give(1)), tenant: false }
    }

    fn add(&mut self, row: Row, refuses: bool) -> (u32, u32) {
        let mut index = self.free;
        if index == NONE {
            index = self.count;
            self.count += 1;
            if index as usize / CHUNK_ROWS == self.chunks.len() {
                let empty = alloc::vec![Row::EMPTY; CHUNK_ROWS].into_boxed_slice();
                // The length is that of the array, so this always succeeds.
                self.chunks.extend(empty.try_into().ok());
            }
        }
        let mut free = NONE;
        let mut generation = 0;
        if let Some(place) = self.row_mut(index) {
            if place.is_free {
                free = place.flow.tenant;
            }
            generation = place.generation;
            let accepts = if refuses { NOBODY } else { generation };
            *place = Row { generation, accepts, ..row };
        }
        self.free = free;
        (index, generation)
    }

    /// What the flow did so far; none for a free row.
    pub fn activity(&self, flow: u32) -> Option<Activity> {
        let row = self.row(flow).filter(|row| !row.is_free && flow < self.count)?;
        let is_home = row.flow.tenant == flow;
        Some(Activity {
            served: row.flow.usage.served,
            is_used: row.flow.usage.running != 0,
            is_pinned: is_home && (row.keys > 1 || row.tenant.usage.running != 0),
        })
    }

    /// Forgets a flow that is neither used nor [pinned](Activity): its row may stand for another one, and whoever still
    /// has its handle is refused. A row that has stood for 2^32 flows is not used again.
    pub fn forget(&mut self, flow: u32) {
        let free = self.free;
        let Some(row) = self.row_mut(flow) else { return };
        let home = row.flow.tenant;
        let generation = row.generation + 1;
        *row = Row { generation, accepts: NOBODY, is_free: true, ..Row::EMPTY };
        row.flow.tenant = free;
        if generation != NOBODY {
            self.free = flow;
        }
        if home != flow
            && let Some(home) = self.row_mut(home)
        {
            home.keys -= 1;
        }
    }

    /// The row of a flow; none for the anonymous one.
    #[inline(always)]
    fn row(&self, flow: u32) -> Option<&Row> {
        let chunk = self.chunks.get(flow as usize / CHUNK_ROWS)?;
        Some(&chunk[flow as usize % CHUNK_ROWS])
    }

    #[inline(always)]
    fn row_mut(&mut self, flow: u32) -> Option<&mut Row> {
        let chunk = self.chunks.get_mut(flow as usize / CHUNK_ROWS)?;
        Some(&mut chunk[flow as usize % CHUNK_ROWS])
    }

    /// The row of a flow.
    #[inline(always)]
    pub fn flow(&self, flow: u32) -> Option<&FlowRow> {
        self.row(flow).map(|row| &row.flow)
    }

    /// The row of a tenant.
    #[inline(always)]
    pub fn tenant(&self, tenant: u32) -> Option<&TenantRow> {
        self.row(tenant).map(|row| &row.tenant)
    }

    /// The tenant of a flow, [`NONE`] for the anonymous flow.
    #[inline]
    pub fn tenant_of(&self, flow: u32) -> u32 {
        self.flow(flow).map_or(NONE, |row| row.tenant)
    }

    /// Whether one more request of the flow may run.
    #[inline(always)]
    pub fn room(&self, flow: u32) -> Room {
        let Some(row) = self.row(flow) else { return Room::Yes };
        if row.flow.usage.is_full() {
            return Room::FlowFull;
        }
        let home = row.flow.tenant;
        let tenant = if home == flow { Some(&row.tenant) } else { self.tenant(home) };
        if tenant.is_some_and(|row| row.usage.is_full()) { Room::TenantFull } else { Room::Yes }
    }

    /// Whether requests of the flow may wait: its handle is not stale, and neither its key nor its tenant has a cap
    /// of 0.
    #[inline(always)]
    pub fn accepts(&self, flow: u32, generation: u32) -> bool {
        self.row(flow).is_none_or(|row| row.accepts == generation)
    }

    /// Whether the flow of this handle was forgotten.
    pub fn is_stale(&self, flow: u32, generation: u32) -> bool {
        self.row(flow).is_some_and(|row| row.generation != generation)
    }

    /// Takes one of each and charges the cost if the flow is [accepted](Self::accepts) and both have room.
    #[inline(always)]
    pub fn try_take(&mut self, flow: u32, generation: u32, cost: u32) -> bool {
        let Some(row) = self.row_mut(flow) else { return true };
        if row.accepts != generation || row.flow.usage.is_full() {
            return false;
        }
        let home = row.flow.tenant;
        if home != flow {
            return self.try_take_apart(flow, home, cost);
        }
        if row.tenant.usage.is_full() {
            return false;
        }
        row.tenant.usage.count(cost);
        row.flow.usage.count(cost);
        true
    }

    /// [`try_take`](Self::try_take) if the tenant is counted in another row.
    #[inline(never)]
    fn try_take_apart(&mut self, flow: u32, home: u32, cost: u32) -> bool {
        if let Some(Row { tenant, .. }) = self.row_mut(home) {
            if tenant.usage.is_full() {
                return false;
            }
            tenant.usage.count(cost);
        }
        if let Some(row) = self.row_mut(flow) {
            row.flow.usage.count(cost);
        }
        true
    }

    /// Takes one of each and charges the cost. The caller has seen [`Room::Yes`].
    #[inline(always)]
    pub fn take(&mut self, flow: u32, cost: u32) {
        debug_assert!(self.room(flow) == Room::Yes, "cap exceeded");
        let Some(row) = self.row_mut(flow) else { return };
        row.flow.usage.count(cost);
        let home = row.flow.tenant;
        if home == flow {
            row.tenant.usage.count(cost);
        } else if let Some(Row { tenant, .. }) = self.row_mut(home) {
            tenant.usage.count(cost);
        }
    }

    /// The same whatever the caps say: for pools that only observe.
    pub fn take_beyond(&mut self, flow: u32, cost: u32) {
        let Some(row) = self.row_mut(flow) else { return };
        row.flow.usage.count(cost);
        let home = row.flow.tenant;
        if let Some(Row { tenant, .. }) = self.row_mut(home) {
            tenant.usage.count(cost);
        }
    }

    /// Gives `count` of each back.
    #[inline(always)]
    pub fn give(&mut self, flow: u32, count: u32) -> Freed {
        let Some(row) = self.row_mut(flow) else { return Freed::default() };
        let freed = row.flow.usage.give(count);
        let home = row.flow.tenant;
        let tenant = if home == flow {
            row.tenant.usage.give(count)
        } else {
            self.row_mut(home).is_some_and(|row| row.tenant.usage.give(count))
        };
        Freed { flow: freed, tenant }
    }

    /// Corrects the charge from the estimate to what was really used.
    #[inline(never)]
    pub fn settle(&mut self, flow: u32, charged: u32, actual: u32) {
        self.correct(flow, i64::from(actual) - i64::from(charged));
    }

    /// Adds to the charge what was used above the estimates; below zero: takes it off.
    pub fn correct(&mut self, flow: u32, difference: i64) {
        let Some(row) = self.row_mut(flow) else { return };
        row.flow.usage.served = row.flow.usage.served.saturating_add_signed(difference);
        let home = row.flow.tenant;
        if let Some(Row { tenant, .. }) = self.row_mut(home) {
            tenant.usage.served = tenant.usage.served.saturating_add_signed(difference);
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn caps_of_key_and_tenant_are_taken_together_and_say_whose_waiters_may_run() {
        let mut caps = Caps::new(8);
        let tenant = TenantRow { usage: Usage::up_to(2), weight: 100, group: 0 };
        let (a, _) = caps.add_tenant(tenant, 1, 100);
        let tenant = a;
        let (b, _) = caps.add_flow(tenant, UNCAPPED, 100);
        caps.take(a, 10);
        assert_eq!((caps.room(a), caps.room(b)), (Room::FlowFull, Room::Yes));
        caps.take(b, 5);
        assert_eq!((caps.room(a), caps.room(b)), (Room::FlowFull, Room::TenantFull));
        assert_eq!(caps.give(b, 1), Freed { flow: false, tenant: true });
        assert_eq!(caps.give(a, 1), Freed { flow: true, tenant: false });
        assert_eq!(caps.room(NONE), Room::Yes);
        caps.settle(a, 10, 25);
        let served =
            (caps.flow(a).map(|r| r.usage.served), caps.tenant(tenant).map(|r| r.usage.served));
        assert_eq!(served, (Some(25), Some(30)));
    }

    #[test]
    fn a_forgotten_row_stands_for_another_flow_under_another_generation() {
        let mut caps = Caps::new(8);
        let tenant = TenantRow { usage: Usage::up_to(2), weight: 100, group: 0 };
        let (home, _) = caps.add_tenant(tenant, UNCAPPED, 100);
        let (key, first) = caps.add_flow(home, UNCAPPED, 100);
        assert!(caps.try_take(key, first, 5));
        let needed = |caps: &Caps, flow| {
            caps.activity(flow).map(|it| (it.is_used | it.is_pinned, it.served))
        };
        assert_eq!(needed(&caps, key), Some((true, 5)), "it has a permit");
        assert_eq!(needed(&caps, home), Some((true, 0)), "its tenant is counted there");
        let _ = caps.give(key, 1);
        assert_eq!(needed(&caps, key), Some((false, 5)));
        caps.forget(key);
        assert_eq!((needed(&caps, key), needed(&caps, home)), (None, Some((false, 0))));
        assert!(caps.is_stale(key, first) && !caps.accepts(key, first));
        assert!(!caps.try_take(key, first, 1));
        // Last in, first out; the tenant's number is that of its row.
        caps.forget(home);
        let (again, second) = caps.add_tenant(tenant, UNCAPPED, 100);
        assert_eq!((again, second, caps.tenant_of(again)), (home, 1, home));
        assert_eq!(caps.add_flow(again, 0, 100), (key, 1));
        assert!(!caps.accepts(key, 1) && !caps.is_stale(key, 1), "a cap of 0 is another refusal");
        assert_eq!(caps.add_flow(again, UNCAPPED, 100), (2, 0));
        assert!(caps.accepts(NONE, 7));
    }
}
