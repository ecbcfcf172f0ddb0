//! The settings a pool runs under now: who changes them does so one after the other.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::types::settings::{BandSettings, PoolSettings};
use crate::types::template::UnknownPriority;

/// The current settings of one pool. Cold calls only: takes a mutex.
#[derive(Debug)]
pub struct Live {
    now: Mutex<PoolSettings>,
    /// Every priority the pool ever had, as it was made: what waits in a band keeps its place in the order, so the
    /// order is that of the priority for the pool's life.
    made: Mutex<Vec<BandSettings>>,
    /// The bands that exist because a template made them. Taken after `now`.
    templated: Mutex<Vec<FromTemplate>>,
    /// When they were last looked through, in nanoseconds of the engine's clock.
    swept_ns: Mutex<u64>,
}

/// A band made of a template.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FromTemplate {
    /// Its priority.
    pub priority: i32,
    /// When it was made or last found in use, in nanoseconds of the engine's clock.
    pub since_ns: u64,
}

impl Live {
    /// What the pool was made from.
    pub fn new(settings: PoolSettings) -> Self {
        Self {
            made: Mutex::new(settings.bands.clone()),
            now: Mutex::new(settings),
            templated: Mutex::default(),
            swept_ns: Mutex::default(),
        }
    }

    /// The bands made of templates; to be looked at or changed by who has the settings.
    pub fn templated(&self) -> MutexGuard<'_, Vec<FromTemplate>> {
        self.templated.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// These settings are in force: what they do not list is no band any more.
    pub fn forget_unlisted(&self, settings: &PoolSettings) {
        let listed = |priority| settings.bands.iter().any(|band| band.priority == priority);
        self.templated().retain(|it| listed(it.priority));
    }

    /// Adds the bands made of templates to settings that were loaded anew, unless they list them or make none.
    pub fn keep_templated(&self, settings: &mut PoolSettings) {
        let mut templated = self.templated();
        let listed = |priority| settings.bands.iter().any(|band| band.priority == priority);
        templated.retain(|it| !listed(it.priority));
        if settings.templates.unknown == UnknownPriority::Template {
            for it in &*templated {
                let band = self.from_template(settings, it.priority);
                settings.bands.push(band);
            }
        }
    }

    /// Whether so much time has passed since the last time this said yes.
    pub fn wants_sweep(&self, now_ns: u64, pause_ns: u64) -> bool {
        let mut swept_ns = self.swept_ns.lock().unwrap_or_else(PoisonError::into_inner);
        let is_due = now_ns.saturating_sub(*swept_ns) >= pause_ns;
        if is_due {
            *swept_ns = now_ns;
        }
        is_due
    }

    /// A band of this priority, made like the template of these settings; with the orders of the band of that
    /// priority there was before, if there was one.
    pub fn from_template(&self, settings: &PoolSettings, priority: i32) -> BandSettings {
        let made = self.made();
        let before = made.iter().find(|known| known.priority == priority);
        let template = settings.templates.of(priority);
        let (fairness, order) = match before {
            Some(band) => (&band.fairness, &band.order),
            None => (&template.fairness, &template.order),
        };
        let (fairness, order) = (fairness.clone(), order.clone());
        BandSettings { fairness, order, ..BandSettings::new(priority) }
    }

    /// The settings, to read or to change; whoever changes them puts them in force before letting go.
    pub fn lock(&self) -> MutexGuard<'_, PoolSettings> {
        // They are replaced whole or not at all, so a panic in between leaves them as they were.
        self.now.lock().unwrap_or_else(PoisonError::into_inner)
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
