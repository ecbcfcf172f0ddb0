//! In which order each band of a pool is served: fixed when the band is made, which may be while the pool runs.

use alloc::boxed::Box;
use alloc::vec::Vec;

use super::bands::BandTable;
use crate::queue::BandQueues;
use crate::queue::ranked::Ranking;
use crate::select::flow::FlowPolicy;
use crate::select::request::RequestPolicy;
use crate::types::MAX_BANDS;
use crate::types::extend::RequestView;
use crate::types::policy::{Fairness, Order};
use crate::types::rank::{LaneOrder, Rank};
use crate::types::settings::{BandSettings, PoolSettings};

type Named = (Fairness, Order);

/// First come, first served over all flows: the queue has it without asking anybody.
const PLAIN: Named = (Fairness::GlobalStrict, Order::Fcfs);

/// The order within the flows of each band, by index. Plain memory under LOCK.
#[derive(Debug)]
pub struct BandOrders {
    requests: [RequestPolicy; MAX_BANDS],
    named: [Named; MAX_BANDS],
}

impl BandOrders {
    /// Every band first come, first served.
    pub const fn new() -> Self {
        Self { requests: [const { RequestPolicy::Fcfs }; MAX_BANDS], named: [PLAIN; MAX_BANDS] }
    }

    /// The rank of a request; `about` is asked only if its band has an order within the flows.
    pub(super) fn rank(&mut self, band: u32, about: impl FnOnce() -> RequestView) -> Rank {
        let order = &mut self.requests[band as usize % MAX_BANDS];
        if order.is_fcfs() { Rank::default() } else { order.rank(&about()) }
    }
}

impl Default for BandOrders {
    fn default() -> Self {
        Self::new()
    }
}

/// The orders one band is to have.
#[derive(Debug)]
struct Wanted {
    priority: i32,
    named: Named,
    lanes: Option<Box<dyn LaneOrder>>,
    requests: RequestPolicy,
}

/// The orders that all bands are to have, made before LOCK is taken.
#[derive(Debug)]
pub struct NewOrders {
    wanted: Vec<Wanted>,
    room: Option<Box<Ranking>>,
}

impl NewOrders {
    /// Those of these settings, for queues of `max_waiting` requests. Allocates.
    pub fn new(settings: &PoolSettings, max_waiting: u32) -> Self {
        let wanted = |band: &BandSettings| {
            let named = (band.fairness.clone(), band.order.clone());
            let lanes = || Box::new(FlowPolicy::new(&band.fairness)) as Box<dyn LaneOrder>;
            Wanted {
                priority: band.priority,
                lanes: (named != PLAIN).then(lanes),
                named,
                requests: RequestPolicy::new(&band.order),
            }
        };
        let wanted: Vec<Wanted> = settings.bands.iter().map(wanted).collect();
        let is_keyed = wanted.iter().any(|it| !it.requests.is_fcfs());
        let is_ranked = wanted.iter().any(|it| it.lanes.is_some());
        Self { wanted, room: is_ranked.then(|| Ranking::new(max_waiting, is_keyed)) }
    }

    /// Puts those of new bands in force; every band has its index, and an old one keeps the orders it was made with.
    /// Afterwards `self` holds what is not needed, to be freed after the unlock.
    pub(super) fn swap(
        &mut self,
        orders: &mut BandOrders,
        table: &BandTable,
        queues: &mut BandQueues,
    ) {
        for it in &mut self.wanted {
            let Some(index) = table.index_of(it.priority) else { continue };
            let at = usize::from(index);
            if orders.named[at] == it.named {
                continue;
            }
            let is_keyed = !it.requests.is_fcfs();
            queues.set_order(index.into(), &mut it.lanes, is_keyed, &mut self.room);
            core::mem::swap(&mut orders.named[at], &mut it.named);
            core::mem::swap(&mut orders.requests[at], &mut it.requests);
        }
    }
}
