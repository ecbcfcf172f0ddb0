//! Loads configurations: the one place where the command meets the loader.
#![forbid(unsafe_code)]

use std::{fs, path::Path};

use bandgate_core::{
    config::Config,
    types::settings::{PoolSettings, Settings},
};

use crate::{Failure, remark};

/// A configuration that was accepted.
#[derive(Clone, Debug)]
pub(crate) struct Loaded {
    /// Name in reports: the file's, without its ending.
    pub(crate) name: String,
    /// Where it was read from.
    pub(crate) source: String,
    pub(crate) settings: Settings,
    pub(crate) warnings: usize,
}

/// Loads the file at `path` with the variables of this process laid over it. Warnings go to standard error.
pub(crate) fn file(path: &Path) -> Result<Loaded, Failure> {
    let source = path.display().to_string();
    let bytes = fs::read(path).map_err(|e| Failure::Input(format!("cannot read {source}: {e}")))?;
    let name = path.file_stem().unwrap_or(path.as_os_str()).to_string_lossy().into_owned();
    // Only our own variables are looked at; one that is not Unicode cannot be one of them.
    let variables = std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)));
    let config = Config::load_bytes(&bytes, variables, &source);
    finish(name, source, config)
}

/// Loads a document that is part of this program; variables do not reach it.
pub(crate) fn embedded(name: &str, text: &str) -> Result<Loaded, Failure> {
    finish(name.to_owned(), name.to_owned(), Config::load(text, [], name))
}

fn finish(
    name: String,
    source: String,
    config: Result<Config, bandgate_core::config::ConfigError>,
) -> Result<Loaded, Failure> {
    let config =
        config.map_err(|faults| Failure::Input(format!("{source} is not valid:\n{faults}")))?;
    for warning in &config.warnings {
        remark(&format!("warning: {warning}"));
    }
    Ok(Loaded { name, source, warnings: config.warnings.len(), settings: config.settings })
}

impl Loaded {
    /// The pool called `name`, or the only one if no name is given.
    pub(crate) fn pool(&self, name: Option<&str>) -> Result<&PoolSettings, Failure> {
        let pools = &self.settings.pools;
        let known = || pools.iter().map(|p| p.name.as_str()).collect::<Vec<_>>().join(", ");
        match (name, &pools[..]) {
            (None, [only]) => Ok(only),
            (None, _) => Err(Failure::Input(format!(
                "{}: expected --pool with one of its {} pools, {}",
                self.source,
                pools.len(),
                known()
            ))),
            (Some(name), _) => pools.iter().find(|p| p.name == name).ok_or_else(|| {
                let known = known();
                Failure::Input(format!(
                    "{}: expected --pool with one of {known}, got {name}",
                    self.source
                ))
            }),
        }
    }
}

/// The priorities of a pool with their names, highest first.
pub(crate) fn bands(pool: &PoolSettings) -> Vec<(i32, Option<String>)> {
    let mut bands: Vec<(i32, Option<String>)> =
        pool.bands.iter().map(|b| (b.priority, b.name.clone())).collect();
    bands.sort_by_key(|&(priority, _)| core::cmp::Reverse(priority));
    bands
}
