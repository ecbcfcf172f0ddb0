//! What a reload gives a pool: made whole before LOCK is taken, put in place at a turn boundary.

use alloc::boxed::Box;

use super::Shard;
use super::bands::{Priorities, TooManyBands};
use super::hold::Hold;
use super::limits::QueueLimits;
use super::orders::NewOrders;
use super::pool::{PoolCore, PoolState};
use super::view::SlabView;
use crate::admit::gates::BandGates;
use crate::config::flows::NewSpec;
use crate::error::Reason;
use crate::select::band::BandPolicy;
use crate::types::settings::{PoolMode, PoolSettings};
use crate::types::{BandMask, MAX_BANDS};

/// Everything decisions of a pool follow that may change while it lives.
#[derive(Debug)]
pub struct Plan {
    settings: PoolSettings,
    priorities: Priorities,
    gates: BandGates,
    policy: BandPolicy,
    orders: NewOrders,
    made: Priorities,
    /// Slots from now on; absent: as they are.
    slots: Option<u32>,
    /// Nothing changes if a request named this priority since the last look, or waits in it.
    unless_used: Option<i32>,
    limits: QueueLimits,
}

/// Why a plan could not be put in place; nothing changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    /// The pool is poisoned.
    Pool(Reason),
    /// More different priorities than the pool has room for.
    TooManyBands,
    /// A band that was to be removed for being idle is not.
    InUse,
}

impl From<TooManyBands> for Refused {
    fn from(TooManyBands: TooManyBands) -> Self {
        Self::TooManyBands
    }
}

impl Plan {
    /// For validated settings of this pool. Allocates.
    pub fn new(settings: &PoolSettings, pool: &PoolCore) -> Box<Self> {
        let max_waiting = pool.max_waiting();
        let mut priorities: Priorities = settings.bands.iter().map(|band| band.priority).collect();
        priorities.sort_unstable_by(|a, b| b.cmp(a));
        Box::new(Self {
            gates: BandGates::new(
                &settings.holdback,
                &settings.selection,
                &priorities,
                settings.slots,
            ),
            policy: BandPolicy::new(&settings.selection, &priorities),
            orders: NewOrders::new(settings, max_waiting),
            limits: QueueLimits::new(settings, pool.table(), pool.most_bands(), max_waiting),
            settings: settings.clone(),
            priorities,
            made: Priorities::new(),
            slots: None,
            unless_used: None,
        })
    }

    /// The bands of these priorities are made of templates.
    #[must_use]
    pub fn with_made(mut self: Box<Self>, made: impl Iterator<Item = i32>) -> Box<Self> {
        self.made = made.take(MAX_BANDS).collect();
        self
    }

    /// With another number of slots, in the same hold of LOCK: no decision sees the one without the other.
    pub fn set_slots(&mut self, slots: u32) {
        self.slots = Some(slots);
    }

    /// Only if no request named this priority since the last look, and nobody waits in it.
    #[must_use]
    pub fn unless_used(mut self: Box<Self>, priority: i32) -> Box<Self> {
        self.unless_used = Some(priority);
        self
    }

    /// Changes places with what is in force: afterwards the plan holds the old rules, to be freed after the unlock.
    fn swap(
        &mut self,
        shard: &Shard,
        pool: &PoolCore,
        hold: &mut Hold<'_, '_>,
    ) -> Result<(), Refused> {
        let st = &mut *hold.st;
        let PoolState { ranks, queues, orders, .. } = st;
        let idle = self.unless_used.and_then(|priority| pool.table().index_of(priority));
        if idle.is_some_and(|at| ranks.is_used(at) || queues.waiting_in(at.into()) != 0) {
            return Err(Refused::InUse);
        }
        let waits = |band| queues.waiting_in(band) != 0;
        let standing = ranks.set(pool.table(), &self.priorities, pool.most_bands(), waits)?;
        ranks.set_made(pool.table(), &self.made);
        self.orders.swap(orders, pool.table(), queues);
        if standing != self.priorities {
            // Closed bands with waiters keep their place, and with it a ceiling and a weight.
            let Self { settings, gates, policy, .. } = self;
            *gates = BandGates::new(&settings.holdback, &settings.selection, &standing, st.slots);
            policy.set_bands(&standing);
        }
        self.limits.on |= shard.reserve().is_some();
        self.limits.place(&self.settings, pool.table(), pool.max_waiting());
        st.recount(&mut self.limits, shard);
        core::mem::swap(&mut self.limits, &mut st.limits);
        self.gates.inherit(&st.gates);
        self.policy.inherit(&mut st.policy);
        core::mem::swap(&mut self.gates, &mut st.gates);
        core::mem::swap(&mut self.policy, &mut st.policy);
        st.observes = self.settings.mode == PoolMode::Observe;
        st.tracking.on = self.settings.is_tracked();
        st.tracking.max_hold_ns = self.settings.max_hold_ns();
        if let Some(slots) = self.slots {
            pool.set_resize_to(slots);
            hold.resize(slots);
        }
        Ok(())
    }
}

/// Rows changed in one hold of LOCK.
const ROWS_PER_HOLD: usize = 256;

impl Shard {
    /// Gives flows and their tenants other caps and weights, a bounded number per hold of LOCK.
    ///
    /// # Errors
    ///
    /// [`Reason::Poisoned`].
    pub(crate) fn change_rows(&self, pool: &PoolCore, rows: &[NewSpec]) -> Result<(), Reason> {
        for some in rows.chunks(ROWS_PER_HOLD) {
            self.reconfigure(pool, |st| {
                for NewSpec { handle, flow, tenant } in some {
                    // It may have been forgotten since: then there is nothing to change.
                    if st.caps.is_stale(handle.index, handle.generation) {
                        continue;
                    }
                    st.caps.set_exempt(handle.index, flow.exempt);
                    let (own, its) = ((flow.cap, flow.weight), (tenant.cap, tenant.weight));
                    let freed = st.caps.change(handle.index, own, its);
                    st.unpark(SlabView::new(self), handle.index, freed);
                }
            })?;
        }
        Ok(())
    }

    /// Bands, by index, that a request named since the last call, or in which somebody waits. Waits for LOCK.
    ///
    /// # Errors
    ///
    /// [`Reason::Poisoned`].
    pub(crate) fn bands_in_use(&self, pool: &PoolCore) -> Result<BandMask, Reason> {
        let in_use = self.locked(pool, |st, _| {
            #[allow(clippy::cast_possible_truncation, reason = "at most 64")]
            let all = 0..pool.most_bands() as u32;
            let waits = all.filter(|&band| st.queues.waiting_in(band) != 0);
            waits.fold(st.ranks.take_used(), |mask, band| mask | 1 << band)
        })?;
        self.look_after(pool);
        Ok(in_use)
    }

    /// Puts a plan in place; the decision that follows in the same hold obeys it. Waits for LOCK.
    ///
    /// # Errors
    ///
    /// [`Refused`]; nothing changes.
    pub(crate) fn adopt(&self, pool: &PoolCore, plan: &mut Plan) -> Result<(), Refused> {
        self.reconfigure_held(pool, |hold| plan.swap(self, pool, hold)).map_err(Refused::Pool)?
    }
}
