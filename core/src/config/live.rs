//! The settings a pool runs under now: who changes them does so one after the other.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::types::extend::BackendSample;
use crate::types::settings::{BandSettings, PoolSettings};

/// The last report of a pool's backends, kept for a detector that a reload brings.
#[derive(Debug)]
pub struct Reported {
    /// As the host gave them.
    pub samples: Vec<BackendSample>,
    /// When, in nanoseconds of the engine's clock.
    pub at_ns: u64,
}

/// The current settings of one pool. Cold calls only: takes a mutex.
#[derive(Debug)]
pub struct Live {
    now: Mutex<PoolSettings>,
    /// Every priority the pool ever had, as it was made: what waits in a band keeps its place in the order, so the
    /// order is that of the priority for the pool's life.
    made: Mutex<Vec<BandSettings>>,
    reported: Mutex<Option<Reported>>,
}

impl Live {
    /// What the pool was made from.
    pub fn new(settings: PoolSettings) -> Self {
        let made = Mutex::new(settings.bands.clone());
        Self { made, now: Mutex::new(settings), reported: Mutex::new(None) }
    }

    /// The settings, to read or to change; whoever changes them puts them in force before letting go.
    pub fn lock(&self) -> MutexGuard<'_, PoolSettings> {
        // They are replaced whole or not at all, so a panic in between leaves them as they were.
        self.now.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The last report, to read or to replace; who replaces it holds the settings too.
    pub fn reported(&self) -> MutexGuard<'_, Option<Reported>> {
        // Replaced whole.
        self.reported.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn made(&self) -> MutexGuard<'_, Vec<BandSettings>> {
        self.made.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// These settings are in force: the bands that are new were made with their orders.
    pub fn note_orders(&self, settings: &PoolSettings) {
        let mut made = self.made();
        for band in &settings.bands {
            if made.iter().all(|known| known.priority != band.priority) {
                made.push(band.clone());
            }
        }
    }

    /// One line for each band of `wanted` that had another order among its flows or requests when its priority was
    /// made.
    pub fn fixed_orders(&self, wanted: &PoolSettings) -> Vec<String> {
        let (mut faults, made) = (Vec::new(), self.made());
        for band in &wanted.bands {
            let Some(known) = made.iter().find(|known| known.priority == band.priority) else {
                continue;
            };
            let at = |field: &str| format!("pools.{}.bands.{}.{field}", wanted.name, band.priority);
            let fixed = "is fixed when the band is made: restart";
            if band.fairness != known.fairness {
                faults.push(format!("{}: {:?} {fixed}", at("fairness"), band.fairness));
            }
            if band.order != known.order {
                faults.push(format!("{}: {:?} {fixed}", at("order"), band.order));
            }
        }
        faults
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
