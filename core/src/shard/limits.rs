//! How much may wait in a pool and how much does: of the pool, of each band, of each tenant in a band.
//!
//! Plain memory under LOCK. A request is booked when it gets its place and taken off when it leaves it, however it
//! does; what was booked is read from its entry again. Pools without limits never come here: `on` is all they read.

mod reserve;
mod shares;

use alloc::boxed::Box;

use super::Shard;
use super::bands::BandTable;
use super::hold::{Hold, Submission};
use super::pool::PoolState;
use super::view::SlabView;
use crate::slab::Body;
use crate::types::NONE;
use crate::types::limits::{Exceeded, Limits, Load};
use crate::types::outcome::Bound;
use crate::types::settings::PoolSettings;

pub use reserve::Reserve;
use shares::Shares;

/// What a request takes while it waits, and where.
#[derive(Clone, Copy, Debug)]
pub struct Wait {
    band: u8,
    flow: u32,
    size: Load,
}

impl Wait {
    /// Of a request on its way in.
    pub(super) const fn of(sub: &Submission) -> Self {
        Self { band: sub.band, flow: sub.flow, size: Load::one(sub.bytes, sub.cost) }
    }

    /// Of an entry.
    pub(super) const fn at(body: &Body) -> Self {
        Self { band: body.band, flow: body.flow, size: Load::one(body.bytes, body.cost) }
    }
}

/// One band.
#[derive(Clone, Copy, Debug)]
struct BandLimit {
    most: Load,
    /// Most of one tenant.
    share: Option<Load>,
    waiting: Load,
}

/// The limits of a pool and what waits under them.
#[derive(Debug)]
pub struct QueueLimits {
    /// Anything is limited, here or in the engine: every wait is booked.
    pub(super) on: bool,
    most: Load,
    waiting: Load,
    /// By band index; empty where nothing of the pool is limited.
    bands: Box<[BandLimit]>,
    shares: Shares,
}

impl QueueLimits {
    /// Those of these settings, with nothing booked. Allocates: `max_waiting` decides how much for shares of tenants.
    pub fn new(settings: &PoolSettings, table: &BandTable, bands: usize, max_waiting: u32) -> Self {
        let on = settings.is_limited();
        let none = Limits::NONE.most();
        let band = BandLimit { most: none, share: None, waiting: Load::default() };
        let has_shares = settings.bands.iter().any(|band| band.tenant_share.is_some());
        let mut limits = Self {
            on,
            most: settings.limits.most(),
            waiting: Load::default(),
            bands: (0..if on { bands } else { 0 }).map(|_| band).collect(),
            shares: if has_shares { Shares::new(max_waiting) } else { Shares::none() },
        };
        limits.place(settings, table, max_waiting);
        limits
    }

    /// Gives each band its limits, once it has an index.
    pub(super) fn place(&mut self, settings: &PoolSettings, table: &BandTable, max_waiting: u32) {
        for band in &settings.bands {
            let Some(index) = table.index_of(band.priority) else { continue };
            let Some(here) = self.bands.get_mut(usize::from(index)) else { continue };
            here.most = band.limits.most();
            here.share = band.tenant_share.map(|share| {
                let requests = here.most.requests.min(max_waiting.into());
                Load { requests, ..here.most }.share(share)
            });
        }
    }

    /// The first bound that one more request would exceed; `tenant` may be none.
    fn full(&self, wait: &Wait, tenant: u32) -> Option<Bound> {
        let Wait { band, size, .. } = wait;
        if let Some(exceeded) = self.waiting.exceeds(size, &self.most) {
            return Some(match exceeded {
                Exceeded::Bytes => Bound::PoolBytes,
                Exceeded::Requests => Bound::PoolRequests,
                Exceeded::Tokens => Bound::PoolTokens,
            });
        }
        let here = self.bands.get(usize::from(*band))?;
        if let Some(exceeded) = here.waiting.exceeds(size, &here.most) {
            return Some(match exceeded {
                Exceeded::Bytes => Bound::BandBytes,
                Exceeded::Requests => Bound::BandRequests,
                Exceeded::Tokens => Bound::BandTokens,
            });
        }
        let share = here.share.filter(|_| tenant != NONE)?;
        let its = self.shares.of(*band, tenant);
        its.exceeds(size, &share).map(|_| Bound::TenantShare)
    }

    fn add(&mut self, wait: &Wait, tenant: u32) {
        self.waiting.add(&wait.size);
        let Some(here) = self.bands.get_mut(usize::from(wait.band)) else { return };
        here.waiting.add(&wait.size);
        if tenant != NONE {
            self.shares.add(wait.band, tenant, &wait.size);
        }
    }

    fn remove(&mut self, wait: &Wait, tenant: u32) {
        self.waiting.remove(&wait.size);
        let Some(here) = self.bands.get_mut(usize::from(wait.band)) else { return };
        here.waiting.remove(&wait.size);
        if tenant != NONE {
            self.shares.remove(wait.band, tenant, &wait.size);
        }
    }
}

impl PoolState {
    fn tenant(&self, flow: u32) -> u32 {
        if flow == NONE { NONE } else { self.caps.tenant_of(flow) }
    }

    /// The bound of the pool that one more request would exceed.
    pub(super) fn full(&self, wait: &Wait) -> Option<Bound> {
        self.limits.full(wait, self.tenant(wait.flow))
    }

    /// Books under other limits what waits now: O(waiting), for a change of settings.
    pub(super) fn recount(&self, limits: &mut QueueLimits, shard: &Shard) {
        if !limits.on {
            return;
        }
        self.queues.walk_all(&SlabView::new(shard), |idx| {
            // SAFETY: called under LOCK for entries that wait in this pool: the holder owns them.
            let wait = unsafe { shard.slab().with_body(idx, |body| Wait::at(body)) };
            limits.add(&wait, self.tenant(wait.flow));
        });
    }
}

impl Hold<'_, '_> {
    /// Books one more that waits, unless a bound would be exceeded; a pool that observes refuses nobody.
    #[cold]
    pub(super) fn book(&mut self, wait: &Wait) -> Option<Bound> {
        let tenant = self.st.tenant(wait.flow);
        if let Some(reserve) = self.shard.reserve() {
            let taken = reserve.take(&wait.size);
            if let Err(exceeded) = taken {
                if !self.st.observes {
                    return Some(Reserve::bound(exceeded));
                }
                reserve.take_beyond(&wait.size);
            }
        }
        let full = self.st.limits.full(wait, tenant).filter(|_| !self.st.observes);
        match full {
            Some(_) => {
                if let Some(reserve) = self.shard.reserve() {
                    reserve.give(&wait.size);
                }
            }
            None => self.st.limits.add(wait, tenant),
        }
        full
    }

    /// Takes off one that waits no more.
    #[inline(always)]
    pub(super) fn unbook(&mut self, wait: impl FnOnce() -> Wait) {
        if self.st.limits.on {
            self.take_off(&wait());
        }
    }

    #[cold]
    fn take_off(&mut self, wait: &Wait) {
        let tenant = self.st.tenant(wait.flow);
        self.st.limits.remove(wait, tenant);
        if let Some(reserve) = self.shard.reserve() {
            reserve.give(&wait.size);
        }
    }
}
