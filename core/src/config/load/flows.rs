//! Fairness among the flows of a band and order within them, in both spellings.

use core::time::Duration;

use crate::types::policy::{Fairness, Order};

use super::fault::Faults;
use super::keys::{Key, Kind};
use super::node::At;
use super::plugins::{Policy, Registry, Role};
use super::read::{Bound, View};

const FAIRNESS: Kind = Kind::Policy(Role::Fairness);

/// `fairness` of a band.
pub(crate) const FAIRNESS_OF_BAND: Key = Key::new(
    "fairness",
    FAIRNESS,
    "Which flow is next: `global-strict` (one order over all) or `round-robin` (one request each).",
)
.default("that of the pool");

/// `order` of a band.
pub(crate) const ORDER_OF_BAND: Key = Key::new(
    "order",
    Kind::Policy(Role::Ordering),
    "Which request of a flow is next: `fcfs`, `edf` (deadline) or `slo-deadline` (promised first token).",
)
.default("`fcfs`");

/// `fairness` of a pool.
pub(crate) const FAIRNESS_OF_POOL: Key =
    Key::new("fairness", FAIRNESS, "Fairness of its bands that name none.")
        .default("`global-strict`");

/// `flowIdle` of a pool.
pub(crate) const FLOW_IDLE: Key = Key::new(
    "flowIdle",
    Kind::Duration { unlimited: true },
    "A flow idle for so long may be forgotten while over half of `maxFlows` exist.",
)
.unit("time")
.default("10m")
.live();

/// `fairnessPolicyRef` of the seeds' bands.
pub(crate) const FAIRNESS_REF: Key =
    Key::new("fairnessPolicyRef", Kind::Reference(Role::Fairness), "Which flow is next.")
        .default("`global-strict-fairness-policy`");

/// `orderingPolicyRef` of the seeds' bands.
pub(crate) const ORDERING_REF: Key = Key::new(
    "orderingPolicyRef",
    Kind::Reference(Role::Ordering),
    "Which request of a flow is next.",
)
.default("`fcfs-ordering-policy`");

/// The keys of a band under which they stand.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Keys {
    fairness: &'static str,
    order: &'static str,
}

/// Our own spelling.
pub(crate) const OURS: Keys = Keys { fairness: "fairness", order: "order" };
/// That of `flowControl.priorityBands`.
pub(crate) const SEEDS: Keys = Keys { fairness: "fairnessPolicyRef", order: "orderingPolicyRef" };

/// One of the two policies, and where it stands.
#[derive(Clone, Debug)]
struct Stated<T> {
    policy: T,
    path: String,
    at: At,
}

/// What a band says about its flows.
#[derive(Clone, Debug, Default)]
pub(crate) struct Flows {
    fairness: Option<Stated<Fairness>>,
    order: Option<Stated<Order>>,
}

impl Flows {
    /// Reads the keys of one band.
    pub(crate) fn read(
        band: &View<'_>,
        keys: Keys,
        registry: &Registry,
        faults: &mut Faults,
    ) -> Self {
        let order = match registry.policy(band, keys.order, faults) {
            Some(Policy::Order(order)) => Some(stated(order, band, keys.order)),
            _ => None,
        };
        Self { fairness: fairness_at(band, keys.fairness, registry, faults), order }
    }

    /// Adds what the other spelling says of the same band; where both speak they must agree.
    pub(crate) fn merge(&mut self, other: Self, faults: &mut Faults) {
        agree(&mut self.fairness, other.fairness, faults);
        agree(&mut self.order, other.order, faults);
    }

    /// The policies of the band; `fairness` is that of the pool.
    pub(crate) fn settle(&self, fairness: &Fairness) -> (Fairness, Order) {
        let own = self.fairness.as_ref().map_or(fairness, |stated| &stated.policy);
        let order = self.order.as_ref().map(|stated| stated.policy.clone());
        (own.clone(), order.unwrap_or_default())
    }
}

/// How long a flow is idle before it may be forgotten.
pub(crate) fn idle(pool: &View<'_>, default: Option<Duration>) -> Option<Duration> {
    pool.duration("flowIdle").map_or(default, Bound::limit)
}

/// The fairness of a pool's bands that name none.
pub(crate) fn of_pool(pool: &View<'_>, registry: &Registry, faults: &mut Faults) -> Fairness {
    let stated = fairness_at(pool, OURS.fairness, registry, faults);
    stated.map_or(Fairness::default(), |stated| stated.policy)
}

fn fairness_at(
    view: &View<'_>,
    key: &str,
    registry: &Registry,
    faults: &mut Faults,
) -> Option<Stated<Fairness>> {
    match registry.policy(view, key, faults) {
        Some(Policy::Fairness(fairness)) => Some(stated(fairness, view, key)),
        _ => None,
    }
}

fn stated<T>(policy: T, view: &View<'_>, key: &str) -> Stated<T> {
    Stated { policy, path: view.path_of(key), at: view.at_of(key).clone() }
}

fn agree<T: PartialEq>(
    known: &mut Option<Stated<T>>,
    other: Option<Stated<T>>,
    faults: &mut Faults,
) {
    match (known.as_ref(), other) {
        (Some(known), Some(other)) if known.policy != other.policy => {
            let message = format!("differs from {}: keep one of them", known.path);
            faults.add(&other.path, &other.at, message);
        }
        (None, other) => *known = other,
        _ => {}
    }
}
