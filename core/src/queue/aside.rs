//! Lanes set aside because of a cap, and how they come back. The rules and their proof: [`bands`](super::bands).
#![forbid(unsafe_code)]

use super::{
    bands::{BandQueues, of},
    caps::{Caps, Room},
    lanes::Place,
    links::Links,
    parked,
};
use crate::types::NONE;

impl BandQueues {
    /// The flow stopped being at its cap: its lanes take their places again. O(bands x log lanes).
    ///
    /// Harmless if it was not; must not be left out if it was.
    pub fn flow_has_room<L: Links>(&mut self, links: &L, flow: u32) {
        let mut bands = self.rows.parked_bands_of_flow(flow);
        while bands != 0 {
            let band = bands.trailing_zeros();
            bands &= bands - 1;
            self.rows.unpark_from_flow(flow, band);
            let lane = self.rows.lane(flow, band);
            self.put_back(links, lane);
        }
    }

    /// The tenant stopped being at its cap: in each band its earliest lane takes its place again.
    /// O(bands x log lanes), however many keys the tenant has.
    ///
    /// Harmless if it was not; must not be left out if it was.
    pub fn tenant_has_room<L: Links>(&mut self, links: &L, tenant: u32) {
        let mut bands = self.rows.parked_bands_of_tenant(tenant);
        while bands != 0 {
            let band = bands.trailing_zeros();
            bands &= bands - 1;
            self.unpark_root(links, tenant, band);
        }
    }

    /// Sets the top lane of a band aside: on its flow, or on its tenant.
    #[cold]
    pub(super) fn park_top<L: Links>(
        &mut self,
        links: &L,
        band: u32,
        room: Room,
        caps: &impl Caps,
    ) {
        let is_ranked = self.is_ranked(band);
        let lane = self.bands[of(band)].top();
        if is_ranked {
            self.pull_top(band);
        } else {
            self.bands[of(band)].pop(links, &self.order, &mut self.lanes);
        }
        if self.bands[of(band)].top() == NONE {
            self.ready &= !(1 << band);
        }
        let it = self.lanes.get_mut(lane);
        let (flow, tenant) = (it.flow, it.tenant);
        self.capped += it.len;
        debug_assert!(
            room != Room::TenantFull || tenant != NONE,
            "a flow without tenant has no full tenant"
        );
        if room == Room::TenantFull && tenant != NONE {
            it.place = Place::Tenant;
            let root = self.rows.root(tenant, band);
            let root = if is_ranked {
                self.park_ranked(root, lane)
            } else {
                it.seq = self.order.number(links.read(it.head).seq());
                parked::insert(&mut self.lanes, root, lane)
            };
            self.rows.set_root(tenant, band, root);
            self.on_tenants += 1;
        } else {
            it.place = Place::Flow;
            self.rows.park_on_flow(flow, band);
            self.follow(links, tenant, band, Some(caps));
        }
    }

    /// A lane of the tenant left the heap of the band, or its head did: the next one set aside becomes the guard,
    /// unless the tenant is full (then nobody needs one).
    #[inline]
    pub(super) fn follow<L: Links>(
        &mut self,
        links: &L,
        tenant: u32,
        band: u32,
        caps: Option<&impl Caps>,
    ) {
        if self.on_tenants == 0
            || tenant == NONE
            || self.rows.parked_bands_of_tenant(tenant) & (1 << band) == 0
        {
            return;
        }
        let flow = self.lanes.get(self.rows.root(tenant, band)).flow;
        if caps.is_none_or(|caps| caps.room(flow, tenant) != Room::TenantFull) {
            self.unpark_root(links, tenant, band);
        }
    }

    /// Puts the earliest lane of (tenant, band) back into the heap; there is one.
    fn unpark_root<L: Links>(&mut self, links: &L, tenant: u32, band: u32) {
        let lane = self.rows.root(tenant, band);
        let root = if self.is_ranked(band) {
            self.unpark_ranked(lane)
        } else {
            parked::remove(&mut self.lanes, lane, lane)
        };
        self.rows.set_root(tenant, band, root);
        self.on_tenants -= 1;
        self.put_back(links, lane);
    }

    /// Puts a lane that was set aside among those of its band.
    pub(super) fn put_back<L: Links>(&mut self, links: &L, lane: u32) {
        let it = self.lanes.get(lane);
        self.capped -= it.len;
        let band = it.band;
        if self.is_ranked(band.into()) {
            self.push_ranked(lane);
        } else {
            self.bands[of(band)].put_back(links, &self.order, &mut self.lanes, lane);
        }
        self.ready |= 1 << band;
    }
}
