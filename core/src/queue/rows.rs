//! What the queues of a pool remember of each flow and tenant.
#![forbid(unsafe_code)]

use crate::types::chunked::Chunked;
use crate::types::{BandMask, NONE};

#[derive(Clone, Copy, Debug)]
struct Flow {
    /// Bands in which its lane is set aside because the flow is at its cap.
    parked: BandMask,
    tenant: u32,
}

/// The rows, and for each flow and band its lane, for each tenant and band the root of its parked lanes.
///
/// A table per band instead of a list per flow: the lane is found in one step whatever the number of bands.
/// A flow costs 16 + 4 x bands bytes, a tenant 8 + 4 x bands.
#[derive(Debug)]
pub(super) struct Rows {
    flows: Chunked<Flow>,
    lanes: Chunked<u32>,
    tenants: Chunked<BandMask>,
    roots: Chunked<u32>,
}

impl Rows {
    pub(super) fn new(bands: u32, max_flows: u32) -> Self {
        Self {
            flows: Chunked::new(max_flows, 1, Flow { parked: 0, tenant: NONE }),
            lanes: Chunked::new(max_flows, bands, NONE),
            tenants: Chunked::new(max_flows, 1, 0),
            roots: Chunked::new(max_flows, bands, NONE),
        }
    }

    pub(super) fn add(&mut self, flow: u32, tenant: u32) {
        self.flows.ensure(flow);
        self.lanes.ensure(flow);
        self.flows.get_mut(flow, 0).tenant = tenant;
        if tenant != NONE {
            self.tenants.ensure(tenant);
            self.roots.ensure(tenant);
        }
    }

    #[inline]
    pub(super) fn tenant_of(&self, flow: u32) -> u32 {
        self.flows.get(flow, 0).tenant
    }

    #[inline]
    pub(super) fn lane(&self, flow: u32, band: u32) -> u32 {
        *self.lanes.get(flow, band)
    }

    #[inline]
    pub(super) fn set_lane(&mut self, flow: u32, band: u32, lane: u32) {
        *self.lanes.get_mut(flow, band) = lane;
    }

    #[inline]
    pub(super) fn park_on_flow(&mut self, flow: u32, band: u32) {
        self.flows.get_mut(flow, 0).parked |= 1 << band;
    }

    #[inline]
    pub(super) fn unpark_from_flow(&mut self, flow: u32, band: u32) {
        self.flows.get_mut(flow, 0).parked &= !(1 << band);
    }

    /// Bands in which the flow is set aside; none for a flow that was never added.
    #[inline]
    pub(super) fn parked_bands_of_flow(&self, flow: u32) -> BandMask {
        if self.flows.contains(flow) { self.flows.get(flow, 0).parked } else { 0 }
    }

    /// Bands in which the tenant has parked lanes; none for one that was never added.
    #[inline]
    pub(super) fn parked_bands_of_tenant(&self, tenant: u32) -> BandMask {
        if self.tenants.contains(tenant) { *self.tenants.get(tenant, 0) } else { 0 }
    }

    #[inline]
    pub(super) fn root(&self, tenant: u32, band: u32) -> u32 {
        *self.roots.get(tenant, band)
    }

    /// Sets the root and the tenant's bit with it.
    #[inline]
    pub(super) fn set_root(&mut self, tenant: u32, band: u32, root: u32) {
        *self.roots.get_mut(tenant, band) = root;
        let mask = self.tenants.get_mut(tenant, 0);
        if root == NONE {
            *mask &= !(1 << band);
        } else {
            *mask |= 1 << band;
        }
    }
}
