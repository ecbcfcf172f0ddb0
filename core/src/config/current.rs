//! The settings an engine runs under now, and what became of reloads.

use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::types::settings::Settings;

/// What is in force.
#[derive(Debug)]
pub struct InForce {
    /// The settings.
    pub settings: Settings,
    /// Reloads put in force.
    pub reloads: u64,
    /// Reloads refused; the settings before stayed.
    pub refused: u64,
}

/// The settings of one engine. Cold calls only: takes a mutex, which orders reloads.
#[derive(Debug)]
pub struct Current(Mutex<InForce>);

impl Current {
    /// What the engine was started from.
    pub fn new(settings: Settings) -> Self {
        Self(Mutex::new(InForce { settings, reloads: 0, refused: 0 }))
    }

    /// The settings, to read or to replace.
    pub fn lock(&self) -> MutexGuard<'_, InForce> {
        // Replaced whole or not at all, so a panic in between leaves them as they were.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A fingerprint of settings: equal for equal settings of one version of this crate, made for telling
/// configurations apart in logs and metrics.
pub fn fingerprint(settings: &Settings) -> u64 {
    xxhash_rust::xxh3::xxh3_64(alloc::format!("{settings:?}").as_bytes())
}
