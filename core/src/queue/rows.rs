//! What the queues of a pool remember of each flow and tenant.
#![forbid(unsafe_code)]

use crate::types::chunked::Chunked;
use crate::types::{BandMask, NONE};

/// Cells of a row before those of its bands: two for a mask of bands, inverted, so that a fresh cell means none.
const MASK: u32 = 2;
/// The same in a flow's row, which begins with its tenant.
const HEADER: u32 = 1 + MASK;

/// For each flow its tenant, the bands in which its lane is set aside because the flow is at its cap, and for each
/// band its lane. For each tenant the bands in which it has parked lanes, and for each band the root of these.
///
/// What is known of one flow is side by side, so that a submit looks up one row. A flow costs 12 + 4 x bands bytes,
/// a tenant 8 + 4 x bands.
#[derive(Debug)]
pub(super) struct Rows {
    flows: Chunked<u32>,
    tenants: Chunked<u32>,
}

impl Rows {
    pub(super) fn new(bands: u32, max_flows: u32) -> Self {
        Self {
            flows: Chunked::new(max_flows, HEADER + bands, NONE),
            tenants: Chunked::new(max_flows, MASK + bands, NONE),
        }
    }

    pub(super) fn add(&mut self, flow: u32, tenant: u32) {
        self.flows.ensure(flow);
        *self.flows.get_mut(flow, 0) = tenant;
        if tenant != NONE {
            self.tenants.ensure(tenant);
        }
    }

    #[inline]
    pub(super) fn tenant_of(&self, flow: u32) -> u32 {
        *self.flows.get(flow, 0)
    }

    /// The lane last given to the flow in the band: still its own only if it says so.
    #[inline(always)]
    pub(super) fn lane(&self, flow: u32, band: u32) -> u32 {
        *self.flows.get(flow, HEADER + band)
    }

    /// Gives the flow a lane in the band; returns its tenant.
    #[inline(always)]
    pub(super) fn give_lane(&mut self, flow: u32, band: u32, lane: u32) -> u32 {
        let row = self.flows.row_mut(flow);
        row[(HEADER + band) as usize] = lane;
        row[0]
    }

    #[inline]
    pub(super) fn park_on_flow(&mut self, flow: u32, band: u32) {
        set(&mut self.flows, flow, 1, band, true);
    }

    #[inline]
    pub(super) fn unpark_from_flow(&mut self, flow: u32, band: u32) {
        set(&mut self.flows, flow, 1, band, false);
    }

    /// Bands in which the flow is set aside; none for a flow that was never added.
    #[inline]
    pub(super) fn parked_bands_of_flow(&self, flow: u32) -> BandMask {
        mask(&self.flows, flow, 1)
    }

    /// Bands in which the tenant has parked lanes; none for one that was never added.
    #[inline]
    pub(super) fn parked_bands_of_tenant(&self, tenant: u32) -> BandMask {
        mask(&self.tenants, tenant, 0)
    }

    #[inline]
    pub(super) fn root(&self, tenant: u32, band: u32) -> u32 {
        *self.tenants.get(tenant, MASK + band)
    }

    /// Sets the root and the tenant's bit with it.
    #[inline]
    pub(super) fn set_root(&mut self, tenant: u32, band: u32, root: u32) {
        *self.tenants.get_mut(tenant, MASK + band) = root;
        set(&mut self.tenants, tenant, 0, band, root != NONE);
    }
}

/// The mask that starts at a column of a row.
#[inline]
fn mask(table: &Chunked<u32>, row: u32, column: u32) -> BandMask {
    if !table.contains(row) {
        return 0;
    }
    let (low, high) = (*table.get(row, column), *table.get(row, column + 1));
    !(u64::from(high) << 32 | u64::from(low))
}

#[inline]
fn set(table: &mut Chunked<u32>, row: u32, column: u32, band: u32, value: bool) {
    let cell = table.get_mut(row, column + band / 32);
    let bit = 1 << (band % 32);
    *cell = if value { *cell & !bit } else { *cell | bit };
}
