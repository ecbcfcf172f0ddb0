//! An engine with policies of the host's own.
#![forbid(unsafe_code)]

use alloc::string::String;

use serde::de::DeserializeOwned;

use super::{Engine, StartError};
use crate::config::{Config, ConfigError, PolicyTypes, RegisterError};
use crate::types::extend;
use crate::types::settings::Settings;

/// Registers policy types, then reads configurations that may name them: in `type:` and by name, in every place a
/// built-in policy may stand. How to write one: [`types::extend`](crate::types::extend). Keep the builder to read
/// the configurations of reloads. Any thread; cold.
#[derive(Clone, Debug, Default)]
pub struct EngineBuilder {
    types: PolicyTypes,
}

/// One registration, handed on.
macro_rules! register {
    ($(#[$doc:meta])* $name:ident, $policy:path) => {
        $(#[$doc])*
        ///
        /// The factory gets the `parameters` of the document, checked against `P`: a wrong, missing or
        /// unknown one is a fault of the document, with its path.
        ///
        /// # Errors
        ///
        /// [`RegisterError`]: the name is that of a built-in or registered type, or is none.
        pub fn $name<P, T, F>(mut self, name: &str, factory: F) -> Result<Self, RegisterError>
        where
            P: DeserializeOwned + Send + Sync + 'static,
            T: $policy + 'static,
            F: Fn(&P) -> T + Send + Sync + 'static,
        {
            self.types.$name(name, factory)?;
            Ok(self)
        }
    };
}

impl EngineBuilder {
    register!(
        /// Adds an order over the bands, one instance a pool.
        register_band_selection,
        extend::BandSelection
    );
    register!(
        /// Adds a policy that gives the bands their ceilings, one instance a pool.
        register_usage_limit,
        extend::UsageLimit
    );
    register!(
        /// Adds a fairness among flows, one instance a band.
        register_flow_fairness,
        extend::FlowFairness
    );
    register!(
        /// Adds an order of the requests of a flow, one instance a band.
        register_request_order,
        extend::RequestOrder
    );

    register!(
        /// Adds a detector that reads a saturation from the backends the host reports, one instance a pool.
        register_saturation_detector,
        extend::SaturationDetector
    );

    /// Reads a configuration as [`Config::load`] does.
    ///
    /// # Errors
    ///
    /// [`ConfigError`]: every fault at once, those of parameters included.
    pub fn load(
        &self,
        text: &str,
        env: impl IntoIterator<Item = (String, String)>,
        source_name: &str,
    ) -> Result<Config, ConfigError> {
        Config::load_with(&self.types, text, env, source_name)
    }

    /// [`Engine::start`]: the settings carry the factories of the policies they name.
    ///
    /// # Errors
    ///
    /// [`StartError`].
    pub fn start(&self, settings: &Settings) -> Result<Engine, StartError> {
        Engine::start(settings)
    }
}

impl Engine {
    /// Where policies of the host's own are registered.
    pub fn builder() -> EngineBuilder {
        EngineBuilder::default()
    }
}
