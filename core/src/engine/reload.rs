//! Other settings for a running engine: validated whole, then put in force pool by pool at a turn boundary.
#![forbid(unsafe_code)]

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use super::bands::BandError;
use super::build::check;
use super::{Engine, EngineCore, Pool};
use crate::config::current::fingerprint;
use crate::error::Reason;
use crate::sync::Ordering;
use crate::types::settings::{PoolSettings, Settings};

/// Why settings were not put in force; those before stay.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReloadError {
    faults: Vec<String>,
}

impl ReloadError {
    /// One line per fault: `field: value: what is expected`.
    pub fn faults(&self) -> &[String] {
        &self.faults
    }
}

impl fmt::Display for ReloadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.faults.join("; "))
    }
}

impl core::error::Error for ReloadError {}

/// What is in force and how it came to be, for the metrics `config_info` and `config_reload_total`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ConfigInfo {
    /// Equal for equal settings.
    pub hash: u64,
    /// Reloads put in force.
    pub reloads: u64,
    /// Reloads refused.
    pub refused: u64,
}

impl ConfigInfo {
    /// The two metrics as Prometheus text: `bandgate_config_info{hash}` and `bandgate_config_reload_total{result}`.
    pub fn prometheus(&self) -> String {
        let Self { hash, reloads, refused } = self;
        format!(
            "# HELP bandgate_config_info The configuration in force, by its fingerprint.\n\
             # TYPE bandgate_config_info gauge\n\
             bandgate_config_info{{hash=\"{hash:016x}\"}} 1\n\
             # HELP bandgate_config_reload_total Reloads by result.\n\
             # TYPE bandgate_config_reload_total counter\n\
             bandgate_config_reload_total{{result=\"applied\"}} {reloads}\n\
             bandgate_config_reload_total{{result=\"refused\"}} {refused}\n"
        )
    }
}

/// Collects what cannot change while the engine runs.
struct Fixed(Vec<String>);

impl Fixed {
    fn same<T: PartialEq + fmt::Debug>(&mut self, field: &str, old: &T, new: &T) {
        if old != new {
            let message = "cannot change while the engine runs: restart";
            self.0.push(format!("{field}: {old:?} to {new:?}: {message}"));
        }
    }

    fn settings(&mut self, old: &Settings, new: &Settings) {
        self.same("engine.driver", &old.driver, &new.driver);
        self.same("engine.shards", &old.shards, &new.shards);
        self.same("engine.ceiling", &old.ceiling, &new.ceiling);
        self.same("engine.maxRequests", &old.max_requests, &new.max_requests);
        let names = |settings: &Settings| -> Vec<String> {
            settings.pools.iter().map(|pool| pool.name.clone()).collect()
        };
        self.same("pools", &names(old), &names(new));
        for tenant in &new.tenants {
            let Some(was) = old.tenants.iter().find(|was| was.name == tenant.name) else {
                continue;
            };
            self.same(&format!("tenants.{}.group", tenant.name), &was.group, &tenant.group);
        }
        for pool in &new.pools {
            if let Some(was) = old.pools.iter().find(|was| was.name == pool.name) {
                self.pool(was, pool);
            }
        }
    }

    fn pool(&mut self, old: &PoolSettings, new: &PoolSettings) {
        let at = |field: &str| format!("pools.{}.{field}", new.name);
        self.same(&at("maxFlows"), &old.max_flows, &new.max_flows);
        self.same(&at("maxCost"), &old.max_cost, &new.max_cost);
        self.same(&at("ringCapacity"), &old.ring_capacity, &new.ring_capacity);
        self.same(&at("maxBands"), &old.max_bands, &new.max_bands);
    }
}

impl Engine {
    /// Puts other settings in force: bands, weights, ceilings, limits, modes and slots at the next decision of
    /// each pool, caps of tenants and keys within a few. All or nothing: every fault is found before anything
    /// changes. Blocks: takes a mutex and waits for the pools' lock bits in turn. Bands added by
    /// [`Pool::add_band`] that the settings do not name are removed.
    ///
    /// # Errors
    ///
    /// [`ReloadError`]: faults of the settings, and what cannot change without a restart, by name. A poisoned pool
    /// is named too, after the others took the settings.
    pub fn reload(&self, settings: &Settings) -> Result<(), ReloadError> {
        let mut current = self.core.current.lock();
        let mut faults =
            check(settings).map_or_else(|error| error.faults().to_vec(), |()| Vec::new());
        let mut fixed = Fixed(Vec::new());
        fixed.settings(&current.settings, settings);
        faults.append(&mut fixed.0);
        if self.core.is_forked() {
            faults.push(String::from(Reason::Forked.as_str()));
        }
        if faults.is_empty() {
            faults = self.room_for(settings);
        }
        if !faults.is_empty() {
            current.refused += 1;
            return Err(ReloadError { faults });
        }
        let faults = self.put_in_force(settings);
        current.settings = settings.clone();
        current.reloads += 1;
        if faults.is_empty() { Ok(()) } else { Err(ReloadError { faults }) }
    }

    /// Counts a reload that failed before it reached the settings in force.
    #[cfg_attr(not(feature = "config"), allow(dead_code, reason = "documents need the feature"))]
    pub(super) fn refuse_reload(&self, faults: Vec<String>) -> ReloadError {
        self.core.current.lock().refused += 1;
        ReloadError { faults }
    }

    /// What is in force.
    pub fn config_info(&self) -> ConfigInfo {
        let current = self.core.current.lock();
        let hash = fingerprint(&current.settings);
        ConfigInfo { hash, reloads: current.reloads, refused: current.refused }
    }

    /// What the pools have no room for, or have fixed when they were made.
    fn room_for(&self, settings: &Settings) -> Vec<String> {
        let mut faults = Vec::new();
        for (pool, wanted) in self.pools().zip(&settings.pools) {
            faults.append(&mut pool.meta().live.fixed_orders(wanted));
            let (most, needed) = pool.bands_needed(wanted);
            if needed > most {
                faults.push(format!(
                    "pools.{}.bands: {needed} different priorities in this pool's life are more than {most}: \
                     restart, or raise maxBands",
                    pool.name()
                ));
            }
        }
        faults
    }

    fn put_in_force(&self, settings: &Settings) -> Vec<String> {
        self.core.set_admission_timeout(settings.admission_timeout);
        let mut faults = Vec::new();
        for (pool, wanted) in self.pools().zip(&settings.pools) {
            if let Err(error) = pool.reload(wanted, settings) {
                faults.push(format!("pools.{}: {error}", wanted.name));
            }
        }
        faults
    }
}

impl Pool {
    fn reload(&self, wanted: &PoolSettings, settings: &Settings) -> Result<(), BandError> {
        let mut live = self.meta().live.lock();
        let mut wanted = wanted.clone();
        self.meta().live.keep_templated(&mut wanted);
        self.put_in_force(&wanted)?;
        self.meta().live.forget_unlisted(&wanted);
        if live.slots != wanted.slots {
            self.resize(wanted.slots);
        }
        *live = wanted;
        drop(live);
        let changed = self.meta().flows.reload(settings);
        self.shard().change_rows(self.core(), &changed).map_err(BandError::Pool)
    }
}

impl EngineCore {
    pub(super) fn set_admission_timeout(&self, timeout: Option<core::time::Duration>) {
        // ORDERING: Relaxed; a number by itself, read once per request.
        self.admission_timeout_ns.store(super::build::nanoseconds(timeout), Ordering::Relaxed);
    }

    /// The wait of a request that names none.
    #[inline(always)]
    pub(super) fn admission_timeout_ns(&self) -> u64 {
        // ORDERING: Relaxed, as above.
        self.admission_timeout_ns.load(Ordering::Relaxed)
    }
}
