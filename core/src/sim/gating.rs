//! Which bands were dispatched at which saturation: a replay's own look at the gates, beside the engine's.
#![forbid(unsafe_code)]

use std::collections::BTreeMap;

use serde::Serialize;

use super::regions::{Region, regions};
use crate::admit::gates::BandGates;
use crate::types::settings::PoolSettings;

/// Dispatches by the set of bands that were open, counted against the ceilings alone: the engine is not asked.
#[derive(Clone, Debug)]
pub struct Gating {
    /// Each with another set of open bands, from saturation 0 up; the last may be that of the full pool.
    regions: Vec<Region>,
    /// Modes of each, in the order of the saturation.
    modes: Vec<Vec<&'static str>>,
    /// Region by running requests before the dispatch.
    region_of: Box<[u8]>,
    /// Dispatches by region and band.
    counts: Box<[u64]>,
    bands: usize,
}

/// A range of saturations in which the same bands are open.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RegionReport {
    /// First saturation of it.
    pub from: f64,
    /// First saturation behind it.
    pub to: Option<f64>,
    /// Least and most running requests in it, before a dispatch; `null`: no count lies in it.
    pub running: Option<(u32, u32)>,
    /// Priorities that may run, most urgent first.
    pub open: Vec<i32>,
    /// Who orders the bands in it, as the saturation rises.
    pub modes: Vec<&'static str>,
    /// Dispatches in it, by priority.
    pub dispatches: BTreeMap<i32, u64>,
    /// Of these, of bands that are not open.
    pub gated_dispatches: u64,
}

impl Gating {
    /// For a pool with these bands, most urgent first. `None`: its gates are no counts of running requests that stay.
    pub fn of(pool: &PoolSettings, priorities: &[i32]) -> Option<Self> {
        let slots = pool.slots;
        let gates = BandGates::new(&pool.holdback, &pool.selection, priorities, slots);
        if gates.is_dynamic() || !gates.is_slot_count() {
            return None;
        }
        let (mut merged, mut modes): (Vec<Region>, Vec<Vec<&'static str>>) = Default::default();
        for next in regions(gates.ceilings(), &pool.selection, slots) {
            match (merged.last_mut(), modes.last_mut()) {
                (Some(last), Some(known)) if last.open == next.open => {
                    last.to = next.to;
                    last.running = joined(last.running, next.running);
                    if !known.contains(&next.mode.as_str()) {
                        known.push(next.mode.as_str());
                    }
                }
                _ => {
                    modes.push(vec![next.mode.as_str()]);
                    merged.push(next);
                }
            }
        }
        let region = |running| {
            let holds = |it: &Region| it.running.is_some_and(|(a, b)| (a..=b).contains(&running));
            u8::try_from(merged.iter().position(holds).unwrap_or(0)).unwrap_or(0)
        };
        Some(Self {
            region_of: (0..=slots).map(region).collect(),
            counts: vec![0; merged.len() * priorities.len()].into(),
            bands: priorities.len(),
            regions: merged,
            modes,
        })
    }

    /// A request of `band` (0 the most urgent) begins beside `running` others.
    #[inline]
    pub fn count(&mut self, band: u8, running: usize) {
        let Some(region) = self.region_of.get(running) else { return };
        let at = usize::from(*region) * self.bands + usize::from(band);
        if let Some(count) = self.counts.get_mut(at) {
            *count += 1;
        }
    }

    /// What was counted: a region for each set of open bands that is not empty, and how many dispatches of gated bands
    /// there were in all.
    pub fn report(&self, priorities: &[i32]) -> (Vec<RegionReport>, u64) {
        let rows = self.counts.chunks(self.bands.max(1)).zip(self.regions.iter().zip(&self.modes));
        let mut reports = Vec::new();
        let mut gated = 0;
        for (counts, (region, modes)) in rows {
            let is_open = |band: usize| region.open >> band & 1 == 1;
            let of_gated = (0..self.bands).filter(|&band| !is_open(band)).map(|band| counts[band]);
            let gated_dispatches = of_gated.sum();
            gated += gated_dispatches;
            if region.open != 0 {
                let open = priorities.iter().enumerate().filter(|(band, _)| is_open(*band));
                reports.push(RegionReport {
                    from: region.from,
                    to: region.to,
                    running: region.running,
                    open: open.map(|(_, priority)| *priority).collect(),
                    modes: modes.clone(),
                    dispatches: priorities.iter().copied().zip(counts.iter().copied()).collect(),
                    gated_dispatches,
                });
            }
        }
        (reports, gated)
    }
}

fn joined(a: Option<(u32, u32)>, b: Option<(u32, u32)>) -> Option<(u32, u32)> {
    match (a, b) {
        (Some((from, _)), Some((_, to))) => Some((from, to)),
        (a, b) => a.or(b),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test may stop at the first surprise")]
mod tests {
    use super::Gating;
    use crate::types::policy::Holdback;
    use crate::types::settings::PoolSettings;

    #[test]
    fn a_dispatch_counts_in_the_region_of_what_ran_before_it_and_a_gated_one_shows() {
        let mut pool = PoolSettings::new("p", 10).with_bands(&[20, 10]);
        let ceilings = vec![(20, 1.0), (10, 0.7), (0, 0.3)];
        pool.holdback = Holdback::Explicit { ceilings, default: None };
        let mut gating = Gating::of(&pool, &[20, 10, 0]).unwrap();
        for (band, running) in [(2, 2), (1, 3), (1, 6), (0, 9)] {
            gating.count(band, running);
        }
        let (regions, gated) = gating.report(&[20, 10, 0]);
        assert_eq!(gated, 0);
        let rows: Vec<_> =
            regions.iter().map(|r| (r.running.unwrap(), r.open.len(), r.dispatches[&10])).collect();
        assert_eq!(rows, [((0, 2), 3, 0), ((3, 6), 2, 2), ((7, 9), 1, 0)]);
        // One too many of the lowest band, and one in a full pool.
        gating.count(2, 3);
        gating.count(0, 10);
        let (regions, gated) = gating.report(&[20, 10, 0]);
        assert_eq!((gated, regions[1].gated_dispatches), (2, 1));
        pool.holdback = Holdback::SoftReflective;
        assert!(Gating::of(&pool, &[20, 10, 0]).is_none());
    }
}
