//! Bands a pool makes of its templates, and removes when nobody uses them. Cold: as every change of bands.
#![forbid(unsafe_code)]

use core::time::Duration;

use super::bands::BandError;
use super::{Band, Pool};
use crate::config::live::FromTemplate;
use crate::error::Reason;
use crate::types::settings::{BandSettings, PoolSettings};
use crate::types::template::UnknownPriority;

fn ns(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

impl Pool {
    /// The band of a priority that has none: made, where the pool makes bands.
    #[cold]
    pub(super) fn unlisted(&self, priority: i32) -> Result<Band, Reason> {
        if self.is_forked() {
            return Err(Reason::Forked);
        }
        let makes =
            |settings: &PoolSettings| settings.templates.unknown == UnknownPriority::Template;
        let idle = {
            let live = self.meta().live.lock();
            if !makes(&live) {
                return Err(Reason::UnknownBand);
            }
            live.templates.idle
        };
        if let Some(idle) = idle
            && self.meta().live.wants_sweep(self.now_ns(), ns(idle) / 2)
        {
            self.collect_idle_bands(idle);
        }
        let mut live = self.meta().live.lock();
        if let Some(index) = self.core().table().find(priority) {
            // Somebody else was faster.
            return Ok(Band { pool: self.id(), index });
        }
        if !makes(&live) {
            return Err(Reason::UnknownBand);
        }
        let mut wanted = live.clone();
        wanted.bands.push(self.meta().live.from_template(&live, priority));
        let made = FromTemplate { priority, since_ns: self.now_ns() };
        self.meta().live.templated().push(made);
        match self.put_in_force(&wanted) {
            Ok(()) => *live = wanted,
            Err(error) => {
                self.meta().live.templated().pop();
                return Err(match error {
                    BandError::Pool(reason) => reason,
                    _ => Reason::UnknownBand,
                });
            }
        }
        let index = self.core().table().find(priority).ok_or(Reason::UnknownBand)?;
        Ok(Band { pool: self.id(), index })
    }

    /// What a band of this priority would be made like if it were unknown: for [`Pool::add_band`].
    pub fn template(&self, priority: i32) -> BandSettings {
        self.meta().live.from_template(&self.meta().live.lock(), priority)
    }

    /// The priorities of the bands made of templates, most urgent first.
    pub fn templated_bands(&self) -> alloc::vec::Vec<i32> {
        let _live = self.meta().live.lock();
        let mut all: alloc::vec::Vec<i32> =
            self.meta().live.templated().iter().map(|it| it.priority).collect();
        all.sort_unstable_by(|a, b| b.cmp(a));
        all
    }

    /// Removes the bands made of templates that had no request for `idle_for`; how many. Never one in which
    /// somebody waits, and never a band that was configured or added. A removed band comes back under its old handle
    /// with the next [`Pool::band`] of its priority; until then requests that name it are refused as `unknown_band`.
    ///
    /// A band counts as idle from the call that last found it used: two calls, `idle_for` apart, remove what
    /// neither saw in use. Making a band calls this too, at most twice per `bandIdle`. Waits for the pool's lock bit.
    /// 0 in a child of `fork`, and for a poisoned pool.
    pub fn collect_idle_bands(&self, idle_for: Duration) -> usize {
        if self.is_forked() {
            return 0;
        }
        let mut live = self.meta().live.lock();
        let now_ns = self.now_ns();
        let Ok(in_use) = self.shard().bands_in_use(self.core()) else { return 0 };
        let table = self.core().table();
        let index_of = |priority| table.index_of(priority).map_or(0, u32::from);
        let mut idle = alloc::vec::Vec::new();
        for band in &mut *self.meta().live.templated() {
            if in_use >> index_of(band.priority) & 1 == 1 {
                band.since_ns = now_ns;
            } else if now_ns.saturating_sub(band.since_ns) >= ns(idle_for) {
                idle.push(band.priority);
            }
        }
        idle.retain(|&priority| self.remove_idle(&mut live, priority));
        idle.len()
    }

    /// Removes one band, unless it was used since it was looked at.
    fn remove_idle(&self, live: &mut PoolSettings, priority: i32) -> bool {
        let mut wanted = live.clone();
        wanted.bands.retain(|band| band.priority != priority);
        let removed = self.put_in_force_unless_used(&wanted, priority).is_ok();
        if removed {
            *live = wanted;
            self.meta().live.templated().retain(|it| it.priority != priority);
        }
        removed
    }
}
