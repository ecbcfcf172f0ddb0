//! The gates of a pool's bands, as slot counts: where ceilings meet the number that runs.
//!
//! Configuration and gauges are floats; they are turned into integers here, when they change, with the
//! comparison the gate itself makes. No float is looked at per decision.
#![forbid(unsafe_code)]

use super::ceiling::{Ceilings, ceilings, eligible};
use super::saturation::{ThresholdSlots, Thresholds, limit};
use super::word::PoolGate;
use crate::types::policy::{BandSelection, Holdback, Reading};
use crate::types::{BandMask, MAX_BANDS, first_bands};

/// Ceilings, limits and thresholds of one pool. Plain memory under LOCK.
#[derive(Debug)]
pub struct BandGates {
    /// Swept: never rising as priority falls.
    ceilings: Ceilings,
    /// The least running count at which the band is gated.
    limits: [u32; MAX_BANDS],
    /// The saturation the host set, as what it means: open bands, side of the thresholds.
    gauge: Option<(BandMask, Reading)>,
    /// The last look: these bands are open while `open_from <= running < open_from + open_for`.
    open: BandMask,
    open_from: u32,
    open_for: u32,
    /// WFQ thresholds; absent: strict.
    thresholds: Option<(Thresholds, ThresholdSlots)>,
}

impl BandGates {
    /// For these priorities (most urgent first) and slots.
    pub fn new(
        holdback: &Holdback,
        selection: &BandSelection,
        priorities_desc: &[i32],
        slots: u32,
    ) -> Self {
        let mut swept = Ceilings::new();
        ceilings(holdback, priorities_desc, &mut swept);
        let thresholds = match selection {
            BandSelection::Strict => None,
            BandSelection::Wfq(wfq) => {
                let thresholds = Thresholds::of(wfq);
                Some((thresholds, thresholds.limits(slots)))
            }
        };
        let mut gates = Self {
            ceilings: swept,
            limits: [0; MAX_BANDS],
            gauge: None,
            open: 0,
            open_from: 0,
            open_for: 0,
            thresholds,
        };
        gates.resize(slots);
        gates
    }

    /// The ceilings in force, most urgent band first.
    pub fn ceilings(&self) -> &[f64] {
        &self.ceilings
    }

    /// Recomputes the slot counts for a new number of slots.
    pub fn resize(&mut self, slots: u32) {
        for (count, &ceiling) in self.limits.iter_mut().zip(&self.ceilings) {
            *count = limit(ceiling, slots);
        }
        if let Some((thresholds, counts)) = &mut self.thresholds {
            *counts = thresholds.limits(slots);
        }
        self.open_for = 0;
    }

    /// From now on gates and mode follow this saturation; `None`: running / capacity again.
    pub fn set_gauge(&mut self, saturation: Option<f64>) {
        self.gauge = saturation.map(|saturation| {
            let reading = self.thresholds.map(|(thresholds, _)| thresholds.reading(saturation));
            (eligible(saturation, &self.ceilings), reading.unwrap_or_default())
        });
        self.open_for = 0;
    }

    /// Bands that are not gated while `running` requests run: the last answer, while it holds.
    #[inline(always)]
    pub fn eligible(&mut self, running: u32) -> BandMask {
        if running.wrapping_sub(self.open_from) >= self.open_for {
            self.look(running);
        }
        self.open
    }

    /// Limits never rise as priority falls, so the open bands are the first ones, and they stay open from
    /// the limit of the next below to the limit of their last.
    #[inline(never)]
    fn look(&mut self, running: u32) {
        if let Some((open, _)) = self.gauge {
            (self.open, self.open_from, self.open_for) = (open, 0, u32::MAX);
            return;
        }
        let limits = &self.limits[..self.ceilings.len()];
        let open = limits.partition_point(|&limit| running < limit);
        let until = if open == 0 { u32::MAX } else { limits[open - 1] };
        self.open = first_bands(open);
        self.open_from = limits.get(open).copied().unwrap_or(0);
        self.open_for = until - self.open_from;
    }

    /// Which side of the WFQ thresholds the pool is on, `running` counted after the dispatch.
    #[inline(always)]
    pub fn reading(&self, running: u32) -> Reading {
        match (&self.thresholds, &self.gauge) {
            (None, _) => Reading::default(),
            (Some(_), Some((_, reading))) => *reading,
            (Some((_, counts)), None) => counts.reading(running),
        }
    }

    /// Free slots the band must leave in a pool of `size`: it may run iff `free > reserve`.
    pub fn reserve(&self, band: usize, size: u32) -> i32 {
        if let Some((open, _)) = self.gauge {
            return if open & 1 << band == 0 { PoolGate::GATED } else { 0 };
        }
        let limit = self.limits.get(band).copied().unwrap_or(0);
        i32::try_from(size.saturating_sub(limit)).unwrap_or(PoolGate::GATED)
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use alloc::vec;

    #[test]
    fn a_reserve_admits_exactly_what_the_gate_admits() {
        let holdback =
            Holdback::Explicit { ceilings: vec![(20, 1.0), (10, 0.7), (0, 0.3)], default: None };
        for slots in [1, 2, 3, 10, 100, 997] {
            let mut gates = BandGates::new(&holdback, &BandSelection::Strict, &[20, 10, 0], slots);
            for running in 0..=slots {
                let free = i64::from(slots) - i64::from(running);
                for band in 0..3 {
                    let open = gates.eligible(running) & 1 << band != 0;
                    let admits = free > i64::from(gates.reserve(band, slots));
                    assert_eq!(open, admits, "{slots} slots, {running} running, band {band}");
                }
            }
        }
    }

    #[test]
    fn a_gauge_gates_by_its_own_value_until_it_is_taken_away() {
        let holdback = Holdback::Explicit { ceilings: vec![(1, 1.0), (0, 0.5)], default: None };
        let mut gates = BandGates::new(&holdback, &BandSelection::Strict, &[1, 0], 4);
        gates.set_gauge(Some(0.5));
        assert_eq!((gates.eligible(0), gates.reserve(1, 4)), (0b01, PoolGate::GATED));
        gates.set_gauge(Some(0.49));
        assert_eq!((gates.eligible(4), gates.reserve(1, 4)), (0b11, 0));
        gates.set_gauge(None);
        assert_eq!((gates.eligible(2), gates.reserve(1, 4)), (0b01, 2));
    }
}
