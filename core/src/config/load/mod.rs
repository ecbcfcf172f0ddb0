//! The loader: YAML and variables -> typed, validated [`Settings`], all faults at once.
//!
//! The document is read into a tree with places (`node`), the variables are laid over it (`env`), the tree is
//! checked against the key table (`keys`, `check`), and the settings are made of what the checks left
//! (`engine`, `pools`, `plugins`, `policies`). [`schema`] and [`reference_markdown`] come from the same table.

mod check;
mod engine;
mod env;
mod fault;
mod flows;
mod holdback;
mod host;
mod keys;
mod limits;
mod node;
mod ops;
mod params;
mod plugins;
mod policies;
mod pools;
mod read;
mod reference;
mod saturation;
mod schema;
mod templates;
mod time;
mod value;

#[cfg(test)]
mod tests;

use crate::types::settings::Settings;

pub use fault::{ConfigError, Fault, Warning};
pub use host::{PolicyTypes, RegisterError};
pub use reference::reference_markdown;
pub use schema::schema;

/// Longest document that is read, in bytes.
pub const MAX_DOCUMENT: usize = 1 << 20;

/// A configuration that was accepted.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Config {
    /// What the engine is built from.
    pub settings: Settings,
    /// What was accepted but is probably not meant.
    pub warnings: Vec<Warning>,
}

impl Config {
    /// Reads a YAML document of at most [`MAX_DOCUMENT`] bytes and lays the `BANDGATE__` variables of `env` over
    /// it; other variables are not looked at. A variable wins over the document, the document over the defaults;
    /// an empty document is all defaults. `source_name` is how the document is called in messages.
    ///
    /// # Errors
    /// Every fault of the document and of the variables together; only a document that is too long or not YAML
    /// gives one fault and no more.
    ///
    /// Any thread; allocates; never panics, whatever the input; each warning is also logged.
    pub fn load(
        text: &str,
        env: impl IntoIterator<Item = (String, String)>,
        source_name: &str,
    ) -> Result<Self, ConfigError> {
        Self::load_with(&PolicyTypes::default(), text, env, source_name)
    }

    /// [`load`](Self::load) of a document that may name these policy types beside the built-in ones.
    ///
    /// # Errors
    /// As [`load`](Self::load); parameters that a type of the host refuses are faults like others.
    pub fn load_with(
        types: &PolicyTypes,
        text: &str,
        env: impl IntoIterator<Item = (String, String)>,
        source_name: &str,
    ) -> Result<Self, ConfigError> {
        let mut faults = fault::Faults::new(source_name).with_types(types);
        match tree(text) {
            Err((at, message)) => {
                faults.add("", &at, message);
                Err(faults.into_error())
            }
            Ok(mut root) => {
                env::apply(&mut root, env, &mut faults);
                check::object(&mut faults, "", &root, keys::ROOT);
                let view = read::View::new("", Some(&root), keys::ROOT, &root.at);
                let settings = engine::settings(&view, &mut faults);
                let warnings = faults.finish()?;
                for warning in &warnings {
                    tracing::warn!("{warning}");
                }
                Ok(Self { settings, warnings })
            }
        }
    }

    /// The same for the bytes of a file, which may turn out not to be UTF-8.
    ///
    /// # Errors
    /// As [`load`](Self::load); bytes that are not UTF-8 are one fault with their line.
    pub fn load_bytes(
        bytes: &[u8],
        env: impl IntoIterator<Item = (String, String)>,
        source_name: &str,
    ) -> Result<Self, ConfigError> {
        match core::str::from_utf8(bytes) {
            Ok(text) => Self::load(text, env, source_name),
            Err(error) => {
                let good = bytes.get(..error.valid_up_to()).unwrap_or_default();
                let mut faults = fault::Faults::new(source_name);
                faults.add("", &node::At::end_of(good), "not UTF-8: save the file as UTF-8");
                Err(faults.into_error())
            }
        }
    }
}

fn tree(text: &str) -> Result<node::Node, (node::At, String)> {
    if text.len() > MAX_DOCUMENT {
        let n = text.len();
        let message = format!("{n} bytes are out of range: a document has at most {MAX_DOCUMENT}");
        return Err((node::At::default(), message));
    }
    node::parse(text)
}
