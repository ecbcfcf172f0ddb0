//! Tests of the configuration.
#![allow(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

use super::{Config, ConfigError};

mod bounds;
mod ceilings;
mod documents;
mod faults;
mod flows;
mod ops;
mod policies;
mod saturation;
mod semantics;
mod table;
mod templates;
mod variables;

fn load(text: &str) -> Result<Config, ConfigError> {
    Config::load(text, [], "t.yaml")
}

/// Loads a document that must be good and give no warning.
fn good(text: &str) -> Config {
    match load(text) {
        Ok(config) => {
            assert_eq!(config.warnings, [], "{text}");
            config
        }
        Err(error) => panic!("{text}\n{error}"),
    }
}

/// Every fault of a document that must be refused, as it is shown.
fn faults(text: &str) -> Vec<String> {
    match load(text) {
        Ok(_) => panic!("accepted: {text}"),
        Err(error) => error.to_string().lines().map(Into::into).collect(),
    }
}

/// Asserts that each document is refused with exactly these faults.
fn refused(cases: &[(&str, &[&str])]) {
    for (text, expected) in cases {
        assert_eq!(faults(text), *expected, "{text}");
    }
}
