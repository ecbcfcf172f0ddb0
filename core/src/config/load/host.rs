//! The policy types a host adds to those there are.

use core::fmt;
use std::sync::Arc;

use serde::de::DeserializeOwned;

use crate::types::custom::Custom;
use crate::types::extend;
use crate::types::policy::{BandSelection, Fairness, Holdback, Order};

use crate::types::saturation::SaturationSource;

use super::node::Node;
use super::params::{Wrong, canonical, read};
use super::plugins::{self, Policy, Role};
use super::value::{check_name, quoted};

type Read = dyn Fn(Option<&Node>, &str) -> Result<Policy, Wrong> + Send + Sync;

/// A policy type of the host.
#[derive(Clone)]
pub(crate) struct HostType {
    pub(crate) name: Arc<str>,
    pub(crate) role: Role,
    read: Arc<Read>,
}

impl HostType {
    /// The policy these parameters make, if they are good.
    pub(crate) fn policy(&self, node: Option<&Node>, path: &str) -> Result<Policy, Wrong> {
        (self.read)(node, path)
    }
}

impl fmt::Debug for HostType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.name, self.role.noun())
    }
}

/// Why a policy type was not registered.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("policy type {}: {message}", quoted(.name))]
pub struct RegisterError {
    /// The name.
    pub name: String,
    /// What is wrong with it and what to do instead.
    pub message: String,
}

/// The policy types that [`Config::load_with`](super::Config::load_with) knows beside the built-in ones.
///
/// A factory is given the `parameters` of the document, read into a type of its own by serde: a value of the wrong
/// type, a missing one or a key the type does not have is a fault of the document with the path of the parameter.
/// What serde cannot check, `#[serde(try_from = "...")]` can. The factory is called once for each pool, or each band,
/// that uses the policy, and cannot fail.
#[derive(Clone, Debug, Default)]
pub struct PolicyTypes {
    types: Vec<HostType>,
}

/// One registration: the trait, its role, and where its policies go in the settings.
macro_rules! register {
    ($(#[$doc:meta])* $name:ident, $policy:path, $role:ident, $wrap:expr) => {
        $(#[$doc])*
        ///
        /// # Errors
        ///
        /// [`RegisterError`]: the name is taken, or is none.
        pub fn $name<P, T, F>(&mut self, name: &str, factory: F) -> Result<(), RegisterError>
        where
            P: DeserializeOwned + Send + Sync + 'static,
            T: $policy + 'static,
            F: Fn(&P) -> T + Send + Sync + 'static,
        {
            let (kind, factory) = (name.to_owned(), Arc::new(factory));
            self.add(name, Role::$role, move |node, path| {
                let (parameters, factory) = (read::<P>(node, path)?, Arc::clone(&factory));
                let make = move || Box::new(factory(&parameters)) as Box<dyn $policy>;
                Ok($wrap(Custom::new(&kind, &canonical(node), make)))
            })
        }
    };
}

impl PolicyTypes {
    register!(
        /// Adds an order over the bands.
        register_band_selection,
        extend::BandSelection,
        BandSelection,
        |custom| Policy::Selection(BandSelection::Custom(custom))
    );
    register!(
        /// Adds a policy that gives the bands their ceilings.
        register_usage_limit,
        extend::UsageLimit,
        UsageLimit,
        |custom| Policy::Holdback(Holdback::Custom(custom))
    );
    register!(
        /// Adds a fairness among the flows of a band; each band has its own instance.
        register_flow_fairness,
        extend::FlowFairness,
        Fairness,
        |custom| Policy::Fairness(Fairness::Custom(custom))
    );
    register!(
        /// Adds an order of the requests of a flow; each band has its own instance.
        register_request_order,
        extend::RequestOrder,
        Ordering,
        |custom| Policy::Order(Order::Custom(custom))
    );

    register!(
        /// Adds a detector that reads a saturation from the backends the host reports.
        register_saturation_detector,
        extend::SaturationDetector,
        Saturation,
        |custom| Policy::Saturation(SaturationSource::Custom(custom))
    );

    fn add(
        &mut self,
        name: &str,
        role: Role,
        read: impl Fn(Option<&Node>, &str) -> Result<Policy, Wrong> + Send + Sync + 'static,
    ) -> Result<(), RegisterError> {
        let refuse =
            |message: &str| Err(RegisterError { name: name.into(), message: message.into() });
        if let Err(message) = check_name(name) {
            return refuse(&message);
        }
        if plugins::is_built_in(name) {
            return refuse("is the name of a built-in type: choose another");
        }
        if self.find(name).is_some() {
            return refuse("is registered already: names are unique among all types");
        }
        self.types.push(HostType { name: name.into(), role, read: Arc::new(read) });
        Ok(())
    }

    pub(crate) fn find(&self, name: &str) -> Option<&HostType> {
        self.types.iter().find(|it| &*it.name == name)
    }

    pub(crate) fn all(&self) -> impl Iterator<Item = &HostType> {
        self.types.iter()
    }
}
