//! The settings a pool runs under now: who changes them does so one after the other.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::types::settings::{BandSettings, PoolSettings};

/// The current settings of one pool. Cold calls only: takes a mutex.
#[derive(Debug)]
pub struct Live {
    now: Mutex<PoolSettings>,
    /// The bands the pool was made with: the order within a band is fixed for its life.
    first: Vec<BandSettings>,
}

impl Live {
    /// What the pool was made from.
    pub fn new(settings: PoolSettings) -> Self {
        Self { first: settings.bands.clone(), now: Mutex::new(settings) }
    }

    /// The settings, to read or to change; whoever changes them puts them in force before letting go.
    pub fn lock(&self) -> MutexGuard<'_, PoolSettings> {
        // They are replaced whole or not at all, so a panic in between leaves them as they were.
        self.now.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// One line for each band of `wanted` that would need another order among its flows or requests than the pool
    /// has for it: bands that came later are first come, first served.
    pub fn fixed_orders(&self, wanted: &PoolSettings) -> Vec<String> {
        let mut faults = Vec::new();
        for band in &wanted.bands {
            let made = self.first.iter().find(|first| first.priority == band.priority);
            let (fairness, order) = made.map_or_else(Default::default, |b| (b.fairness, b.order));
            let at = |field: &str| format!("pools.{}.bands.{}.{field}", wanted.name, band.priority);
            let fixed = "is fixed when the pool is made: restart";
            if band.fairness != fairness {
                faults.push(format!("{}: {:?} {fixed}", at("fairness"), band.fairness));
            }
            if band.order != order {
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
