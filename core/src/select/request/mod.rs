//! Which request of a flow is next: a rank for each, given once, when it is queued; the least is next.
#![forbid(unsafe_code)]

use alloc::boxed::Box;

use crate::types::extend::{RequestOrder, RequestView};
use crate::types::policy::Order;
use crate::types::rank::Rank;

pub mod edf;
pub mod fcfs;
pub mod slo_deadline;

/// The order within the flows of one band. Single owner (the holder of the pool's lock); no call allocates.
#[derive(Debug)]
pub enum RequestPolicy {
    /// First come, first served.
    Fcfs,
    /// The nearest deadline.
    Edf,
    /// The nearest time its first token was promised for.
    SloDeadline,
    /// The host's own.
    Custom(Box<dyn RequestOrder>),
}

impl RequestPolicy {
    /// The policy a configuration names.
    pub fn new(order: &Order) -> Self {
        match order {
            Order::Fcfs => Self::Fcfs,
            Order::Edf => Self::Edf,
            Order::SloDeadline => Self::SloDeadline,
            Order::Custom(custom) => Self::Custom(custom.make()),
        }
    }

    /// Whether arrival alone decides, so that nobody has to be asked for a rank.
    pub const fn is_fcfs(&self) -> bool {
        matches!(self, Self::Fcfs)
    }

    /// The rank of a request; equal ones go by arrival.
    pub fn rank(&mut self, request: &RequestView) -> Rank {
        match self {
            Self::Fcfs => fcfs::rank(request),
            Self::Edf => edf::rank(request),
            Self::SloDeadline => slo_deadline::rank(request),
            Self::Custom(policy) => Rank::by(policy.key(request)),
        }
    }
}
