//! Stage `config`: the names of flows, and with the feature `config` the loader of YAML documents.
#![forbid(unsafe_code)]

pub mod current;
pub mod flows;
pub mod live;
#[cfg(feature = "config")]
mod load;
mod names;

#[cfg(feature = "config")]
pub use load::{
    Config, ConfigError, Fault, MAX_DOCUMENT, PolicyTypes, RegisterError, Warning,
    reference_markdown, schema,
};
