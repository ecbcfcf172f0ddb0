//! Which flow of a band is next: a rank for each flow with waiters, the least is next.
//!
//! A rank is asked for when a flow begins to wait and when its first request changes, and stays until then: a flow
//! that a cap holds back keeps its place and is served there as soon as it has room.
#![forbid(unsafe_code)]

use alloc::boxed::Box;

use crate::types::extend::FlowFairness;
use crate::types::policy::Fairness;
use crate::types::rank::{Head, LaneOrder, Rank};

pub mod global_strict;
pub mod round_robin;

pub use global_strict::GlobalStrict;
pub use round_robin::RoundRobin;

/// The fairness among flows of one band. Single owner (the holder of the pool's lock); no call allocates.
#[derive(Debug)]
pub enum FlowPolicy {
    /// The flow whose first request comes first under the band's order.
    GlobalStrict(GlobalStrict),
    /// Every flow with waiters in turn.
    RoundRobin(RoundRobin),
    /// The host's own.
    Custom(Box<dyn FlowFairness>),
}

impl FlowPolicy {
    /// The policy a configuration names.
    pub fn new(fairness: &Fairness) -> Self {
        match fairness {
            Fairness::GlobalStrict => Self::GlobalStrict(GlobalStrict),
            Fairness::RoundRobin => Self::RoundRobin(RoundRobin::new()),
            Fairness::Custom(custom) => Self::Custom(custom.make()),
        }
    }
}

impl LaneOrder for FlowPolicy {
    fn begins(&mut self, head: &Head) -> Rank {
        match self {
            Self::GlobalStrict(policy) => policy.begins(head),
            Self::RoundRobin(policy) => policy.begins(head),
            Self::Custom(policy) => Rank::by(policy.key(&head.flow)),
        }
    }

    fn head_changed(&mut self, head: &Head, was: Rank) -> Rank {
        match self {
            Self::GlobalStrict(policy) => policy.head_changed(head, was),
            Self::RoundRobin(policy) => policy.head_changed(head, was),
            Self::Custom(policy) => Rank::by(policy.key(&head.flow)),
        }
    }

    fn dispatched(&mut self, served: &Head, was: Rank) {
        match self {
            Self::GlobalStrict(policy) => policy.dispatched(served, was),
            Self::RoundRobin(policy) => policy.dispatched(served, was),
            Self::Custom(policy) => policy.record_dispatch(&served.flow),
        }
    }

    fn goes_on(&mut self, head: &Head) -> Rank {
        match self {
            Self::GlobalStrict(policy) => policy.goes_on(head),
            Self::RoundRobin(policy) => policy.goes_on(head),
            Self::Custom(policy) => Rank::by(policy.key(&head.flow)),
        }
    }

    fn emptied(&mut self) {
        if let Self::RoundRobin(policy) = self {
            policy.emptied();
        }
    }

    fn forget(&mut self, flow: u32) {
        if let Self::RoundRobin(policy) = self {
            policy.forget(flow);
        }
    }
}
