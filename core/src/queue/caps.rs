//! What the queues ask about the limits of a flow and its tenant.
#![forbid(unsafe_code)]

/// Whether one more request of a flow may run now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Room {
    /// The flow and its tenant both have room.
    Yes,
    /// The flow is at its own cap.
    FlowFull,
    /// The tenant is at its cap. Only for a flow that has a tenant.
    TenantFull,
}

/// The limits, as the queues see them.
///
/// The answer is a promise: whoever says [`Room::FlowFull`] or [`Room::TenantFull`] calls
/// [`flow_has_room`](super::BandQueues::flow_has_room) or
/// [`tenant_has_room`](super::BandQueues::tenant_has_room) when that ends, by a release or by a raised cap.
/// If both are full either may be said. Any `Fn(flow, tenant) -> Room` will do.
pub trait Caps {
    /// Whether `flow` of `tenant` (`NONE`: it has none) may run one more request. Never asked for anonymous ones.
    fn room(&self, flow: u32, tenant: u32) -> Room;
}

impl<F: Fn(u32, u32) -> Room> Caps for F {
    #[inline]
    fn room(&self, flow: u32, tenant: u32) -> Room {
        self(flow, tenant)
    }
}

/// No limits at all.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoCaps;

impl Caps for NoCaps {
    #[inline]
    fn room(&self, _flow: u32, _tenant: u32) -> Room {
        Room::Yes
    }
}
