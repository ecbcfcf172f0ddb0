//! The settings a pool runs under now: who changes them does so one after the other.

use alloc::string::String;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::types::settings::PoolSettings;

/// The current settings of one pool. Cold calls only: takes a mutex.
#[derive(Debug)]
pub struct Live(Mutex<PoolSettings>);

impl Live {
    /// What the pool was made from.
    pub fn new(settings: PoolSettings) -> Self {
        Self(Mutex::new(settings))
    }

    /// The settings, to read or to change; whoever changes them puts them in force before letting go.
    pub fn lock(&self) -> MutexGuard<'_, PoolSettings> {
        // They are replaced whole or not at all, so a panic in between leaves them as they were.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The name of a band.
    pub fn band_name(&self, priority: i32) -> Option<String> {
        let settings = self.lock();
        settings.bands.iter().find(|band| band.priority == priority)?.name.clone()
    }

    /// The priority of the band of this name.
    pub fn priority_of(&self, name: &str) -> Option<i32> {
        let settings = self.lock();
        let named = settings.bands.iter().find(|band| band.name.as_deref() == Some(name));
        named.map(|band| band.priority)
    }
}
