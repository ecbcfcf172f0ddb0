//! Reload from a document: read, checked and put in force as a whole.
#![forbid(unsafe_code)]

use alloc::string::{String, ToString};
use alloc::vec::Vec;

use super::{Engine, ReloadError};
use crate::config::{Config, Warning};

impl Engine {
    /// Puts the settings of a YAML document in force, as [`Engine::reload`] does: nothing changes unless all of it is
    /// good. `env` and `source_name` as in [`Config::load`]: variables win over the document here too. What the
    /// document does not say goes back to its default, so this is the whole configuration, never a part of it.
    ///
    /// Answers what was accepted but is probably not meant. Any thread; blocks and allocates.
    ///
    /// # Errors
    ///
    /// [`ReloadError`]: the faults of the document by line, or what the running engine cannot take, by name. Either
    /// counts as a refused reload.
    pub fn reload_text(
        &self,
        text: &str,
        env: impl IntoIterator<Item = (String, String)>,
        source_name: &str,
    ) -> Result<Vec<Warning>, ReloadError> {
        match Config::load(text, env, source_name) {
            Ok(config) => self.reload(&config.settings).map(|()| config.warnings),
            Err(error) => {
                let faults = error.faults.iter().map(ToString::to_string).collect();
                Err(self.refuse_reload(faults))
            }
        }
    }
}
