//! A policy of the host as settings name it: its type, its parameters, and how an instance is made.

use alloc::boxed::Box;
use alloc::sync::Arc;
use core::fmt;
use core::hash::{Hash, Hasher};

use super::extend;

/// A policy that implements one of the traits of [`extend`]. Two are equal if type and parameters are: so a reload
/// can tell whether anything changed.
///
/// Usually made by [`EngineBuilder`](crate::engine::EngineBuilder) out of YAML; a host that fills in settings itself
/// makes one with [`new`](Self::new). Cloning counts a reference.
pub struct Custom<P: ?Sized> {
    kind: Arc<str>,
    parameters: Arc<str>,
    make: Arc<dyn Fn() -> Box<P> + Send + Sync>,
}

/// An order over the bands.
pub type CustomBandSelection = Custom<dyn extend::BandSelection>;
/// Ceilings.
pub type CustomUsageLimit = Custom<dyn extend::UsageLimit>;
/// A fairness among flows.
pub type CustomFairness = Custom<dyn extend::FlowFairness>;
/// An order of requests.
pub type CustomOrder = Custom<dyn extend::RequestOrder>;
/// A detector.
pub type CustomDetector = Custom<dyn extend::SaturationDetector>;

impl<P: ?Sized> Custom<P> {
    /// A policy of this type. `parameters` must differ whenever `make` would make something else; `make` is called
    /// once per pool (or band) that uses the policy, never under a pool's lock bit at start, and must not fail.
    pub fn new(
        kind: &str,
        parameters: &str,
        make: impl Fn() -> Box<P> + Send + Sync + 'static,
    ) -> Self {
        Self { kind: kind.into(), parameters: parameters.into(), make: Arc::new(make) }
    }

    /// The type's name.
    pub fn kind(&self) -> &str {
        &self.kind
    }

    /// The parameters in one line, keys sorted.
    pub fn parameters(&self) -> &str {
        &self.parameters
    }

    /// Another instance.
    pub fn make(&self) -> Box<P> {
        (self.make)()
    }
}

impl<P: ?Sized> Clone for Custom<P> {
    fn clone(&self) -> Self {
        let Self { kind, parameters, make } = self;
        Self { kind: Arc::clone(kind), parameters: Arc::clone(parameters), make: Arc::clone(make) }
    }
}

impl<P: ?Sized> PartialEq for Custom<P> {
    fn eq(&self, other: &Self) -> bool {
        (&self.kind, &self.parameters) == (&other.kind, &other.parameters)
    }
}

impl<P: ?Sized> Eq for Custom<P> {}

impl<P: ?Sized> Hash for Custom<P> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (&self.kind, &self.parameters).hash(state);
    }
}

// Fingerprints of settings are made of this text: it has to say everything that `eq` compares.
impl<P: ?Sized> fmt::Debug for Custom<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.kind, self.parameters)
    }
}
