//! Which bands are open, and in which mode, from one saturation to the next: what `check` prints and draws.
#![forbid(unsafe_code)]

use crate::{
    admit::ceiling::{eligible, limit},
    admit::saturation::Thresholds,
    types::{BandMask, policy::BandSelection},
};

/// Who orders the bands in a region.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Highest priority first.
    Strict,
    /// Whichever it was before: between the two thresholds.
    AsBefore,
    /// By weight.
    Weighted,
}

impl Mode {
    /// As reports say it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Strict => "strict",
            Self::AsBefore => "as before",
            Self::Weighted => "wfq",
        }
    }
}

/// A range of saturations in which nothing changes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Region {
    /// First saturation of it.
    pub from: f64,
    /// First saturation behind it; absent: none is.
    pub to: Option<f64>,
    /// Least and most running requests of a pool that reads running over slots; absent: no count lies in it.
    pub running: Option<(u32, u32)>,
    /// Open bands, bit 0 the most urgent.
    pub open: BandMask,
    /// The mode, of the saturation with the request about to run in it.
    pub mode: Mode,
}

/// The regions of these ceilings (most urgent band first, swept) from saturation 0 up.
pub fn regions(ceilings: &[f64], selection: &BandSelection, slots: u32) -> Vec<Region> {
    let weighted = if let BandSelection::Wfq(wfq) = selection { Some(wfq) } else { None };
    let thresholds = weighted.map(Thresholds::of);
    let mut edges: Vec<f64> = vec![0.0, 1.0];
    edges.extend(ceilings);
    edges.extend(thresholds.iter().flat_map(|t| [t.activation, t.deactivation]));
    edges.sort_unstable_by(f64::total_cmp);
    edges.dedup();
    let mode = |saturation| {
        let reading = thresholds.map(|t| t.reading(saturation)).unwrap_or_default();
        match (reading.activates, reading.stays_active) {
            (true, _) => Mode::Weighted,
            (false, true) => Mode::AsBefore,
            (false, false) => Mode::Strict,
        }
    };
    let mut all: Vec<Region> = Vec::new();
    for from in edges {
        let (open, mode) = (eligible(from, ceilings), mode(from));
        // Nothing changes at the edge of a band that was gated before.
        if all.last().is_some_and(|before| (before.open, before.mode) == (open, mode)) {
            continue;
        }
        if let Some(before) = all.last_mut() {
            before.to = Some(from);
        }
        all.push(Region { from, to: None, running: None, open, mode });
    }
    for region in &mut all {
        let first = limit(region.from, slots);
        let behind = region.to.map_or(slots.saturating_add(1), |to| limit(to, slots));
        region.running = (first < behind).then(|| (first, behind - 1));
    }
    all
}

#[cfg(test)]
mod tests {
    use super::{Mode, regions};
    use crate::types::policy::{BandSelection, Distribution, Schedule, WfqParams};

    fn wfq(activation: f64, deactivation: f64) -> BandSelection {
        BandSelection::Wfq(WfqParams {
            activation,
            deactivation,
            retention_ns: 0,
            schedule: Schedule::Interleaved,
            distribution: Distribution::Linear,
        })
    }

    #[test]
    fn three_bands_and_an_activation_make_the_table_of_regions() {
        let rows: Vec<_> = regions(&[1.0, 0.7, 0.3], &wfq(0.5, 0.5), 10)
            .iter()
            .map(|r| (r.from, r.to, r.running, r.open, r.mode))
            .collect();
        assert_eq!(
            rows,
            [
                (0.0, Some(0.3), Some((0, 2)), 0b111, Mode::Strict),
                (0.3, Some(0.5), Some((3, 4)), 0b011, Mode::Strict),
                (0.5, Some(0.7), Some((5, 6)), 0b011, Mode::Weighted),
                (0.7, Some(1.0), Some((7, 9)), 0b001, Mode::Weighted),
                (1.0, None, Some((10, 10)), 0, Mode::Weighted),
            ]
        );
    }

    #[test]
    fn thresholds_apart_leave_a_region_where_the_mode_stays_and_a_region_may_hold_no_count() {
        let modes: Vec<_> =
            regions(&[1.0], &wfq(0.8, 0.4), 10).iter().map(|r| (r.from, r.mode)).collect();
        assert_eq!(
            modes,
            [
                (0.0, Mode::Strict),
                (0.4, Mode::AsBefore),
                (0.8, Mode::Weighted),
                (1.0, Mode::Weighted)
            ]
        );
        let counts: Vec<_> = regions(&[1.0, 0.6, 0.55], &BandSelection::Strict, 2)
            .iter()
            .map(|r| (r.from, r.running))
            .collect();
        assert_eq!(counts, [(0.0, Some((0, 1))), (0.55, None), (0.6, None), (1.0, Some((2, 2)))]);
    }
}
