//! Bands made and removed while the pool runs. Cold: every call takes a mutex and waits for the pool's lock bit.
#![forbid(unsafe_code)]

use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use super::build::check_pool;
use super::{Band, Pool};
use crate::error::Reason;
use crate::shard::plan::{Plan, Refused};
use crate::types::MAX_BANDS;
use crate::types::settings::{BandSettings, PoolSettings};

/// Why the bands of a pool were not changed; nothing changed.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum BandError {
    /// The priority is a band already.
    Exists(i32),
    /// No band has this priority.
    Unknown(i32),
    /// The pool has had as many different priorities as it has room for (`maxBands`).
    TooMany(usize),
    /// Band 0 and those that policies name stay.
    Needed(i32),
    /// The settings that would result are not valid: one line per fault.
    Invalid(Vec<String>),
    /// It was to be removed for being idle, and is not.
    InUse,
    /// The pool is poisoned, or the process a child of the one that made it.
    Pool(Reason),
}

impl fmt::Display for BandError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exists(priority) => write!(f, "band {priority}: exists already"),
            Self::Unknown(priority) => write!(f, "band {priority}: the pool has no such band"),
            Self::TooMany(most) => {
                write!(f, "the pool has room for {most} priorities in its life: raise maxBands")
            }
            Self::Needed(priority) => write!(f, "band {priority}: cannot be removed"),
            Self::InUse => f.write_str("in use"),
            Self::Invalid(faults) => f.write_str(&faults.join("; ")),
            Self::Pool(reason) => f.write_str(reason.as_str()),
        }
    }
}

impl core::error::Error for BandError {}

impl Pool {
    /// Adds a band. Weights and ceilings are made anew over all bands; credits and virtual times of the others
    /// stay, and the new one begins level with them.
    ///
    /// # Errors
    ///
    /// [`BandError`]; nothing changes.
    pub fn add_band(&self, band: BandSettings) -> Result<Band, BandError> {
        let priority = band.priority;
        self.change_settings(|settings| {
            if settings.bands.iter().any(|band| band.priority == priority) {
                return Err(BandError::Exists(priority));
            }
            settings.bands.push(band);
            Ok(())
        })?;
        self.band(priority).map_err(BandError::Pool)
    }

    /// Removes a band: from now on its requests are refused as `unknown_band`. Those that wait are served in
    /// their place; the band leaves the order with the last of them, at the next change of bands.
    ///
    /// # Errors
    ///
    /// [`BandError`]; nothing changes. Band 0 stays.
    pub fn remove_band(&self, priority: i32) -> Result<(), BandError> {
        if priority == 0 {
            return Err(BandError::Needed(0));
        }
        self.change_settings(|settings| {
            let before = settings.bands.len();
            settings.bands.retain(|band| band.priority != priority);
            if settings.bands.len() == before { Err(BandError::Unknown(priority)) } else { Ok(()) }
        })
    }

    /// The band of this name.
    ///
    /// # Errors
    ///
    /// [`Reason::UnknownBand`].
    pub fn band_named(&self, name: &str) -> Result<Band, Reason> {
        self.band(self.meta().live.priority_of(name).ok_or(Reason::UnknownBand)?)
    }

    /// The name of the band of this priority, if it has one.
    pub fn band_name(&self, priority: i32) -> Option<String> {
        self.meta().live.band_name(priority)
    }

    /// The settings in force.
    pub fn settings(&self) -> PoolSettings {
        self.meta().live.lock().clone()
    }

    /// Different priorities the pool has room for, and those it would have had under these settings.
    pub(super) fn bands_needed(&self, wanted: &PoolSettings) -> (usize, usize) {
        let table = self.core().table();
        let known =
            |priority| (0..MAX_BANDS).any(|at| table.get(at).is_some_and(|b| b.0 == priority));
        let taken = (0..MAX_BANDS).filter(|&at| table.get(at).is_some()).count();
        let fresh = wanted.bands.iter().filter(|band| !known(band.priority)).count();
        (self.core().most_bands(), taken + fresh)
    }

    /// Changes the settings in force, whole or not at all.
    pub(super) fn change_settings(
        &self,
        change: impl FnOnce(&mut PoolSettings) -> Result<(), BandError>,
    ) -> Result<(), BandError> {
        if self.is_forked() {
            return Err(BandError::Pool(Reason::Forked));
        }
        let mut live = self.meta().live.lock();
        let mut wanted = live.clone();
        change(&mut wanted)?;
        check_pool(&wanted).map_err(BandError::Invalid)?;
        let fixed = self.meta().live.fixed_orders(&wanted);
        if !fixed.is_empty() {
            return Err(BandError::Invalid(fixed));
        }
        self.put_in_force(&wanted)?;
        self.meta().live.forget_unlisted(&wanted);
        *live = wanted;
        Ok(())
    }

    /// Puts validated settings in force at the next decision.
    pub(super) fn put_in_force(&self, settings: &PoolSettings) -> Result<(), BandError> {
        self.adopt(settings, self.plan(settings))
    }

    /// The same with their slots too.
    pub(super) fn put_in_force_with_slots(&self, settings: &PoolSettings) -> Result<(), BandError> {
        let mut plan = self.plan(settings);
        plan.set_slots(settings.slots);
        self.adopt(settings, plan)
    }

    /// The same, unless the band they lack is in use.
    pub(super) fn put_in_force_unless_used(
        &self,
        settings: &PoolSettings,
        lacks: i32,
    ) -> Result<(), BandError> {
        let plan = self.plan(settings);
        self.adopt(settings, plan.unless_used(lacks))
    }

    fn plan(&self, settings: &PoolSettings) -> Box<Plan> {
        Plan::new(settings, self.core(), self.watch_again(settings))
    }

    fn adopt(&self, settings: &PoolSettings, plan: Box<Plan>) -> Result<(), BandError> {
        let made: Vec<i32> = self.meta().live.templated().iter().map(|it| it.priority).collect();
        let listed = |priority: &i32| settings.bands.iter().any(|it| it.priority == *priority);
        let mut plan = plan.with_made(made.into_iter().filter(listed));
        let adopted = self.shard().adopt(self.core(), &mut plan);
        adopted.map_err(|refused| match refused {
            Refused::Pool(reason) => BandError::Pool(reason),
            Refused::TooManyBands => BandError::TooMany(self.core().most_bands()),
            Refused::InUse => BandError::InUse,
        })?;
        self.meta().live.note_orders(settings);
        self.set_times_to_live(settings);
        if !settings.reads_backends() {
            // What it says is out of date when a detector comes back.
            *self.meta().live.reported() = None;
        }
        Ok(())
    }
}
