//! Stage `config`: the names of flows, and with the feature `config` the loader of YAML documents.
#![forbid(unsafe_code)]

pub mod flows;
#[cfg(feature = "config")]
mod load;
mod names;

#[cfg(feature = "config")]
pub use load::{Config, ConfigError, Fault, MAX_DOCUMENT, Warning, reference_markdown, schema};
