//! From a distribution to integer weights, and from weights to the quotas of one round.
//!
//! Only ratios matter, so weights are divided by their greatest common divisor. Everything here runs when
//! the set of bands changes, never per decision. Worked examples: the
//! rows `distribution`, `round` and `rescale` of `core/tests/vectors/flow.json`.
#![forbid(unsafe_code)]

use arrayvec::ArrayVec;

use crate::types::MAX_BANDS;
use crate::types::policy::{Distribution, Ratio};

/// One integer for each band, parallel to the priorities.
pub type PerBand = [u64; MAX_BANDS];

/// Priorities of the provisioned bands, most urgent first.
pub type Priorities = ArrayVec<i32, MAX_BANDS>;

/// For each band of a new set, its index in the old one; `None` is a band that was not there.
pub type Origins = ArrayVec<Option<u8>, MAX_BANDS>;

/// The weights of the provisioned bands, gated or not: a gate that flaps must not change a ratio.
#[derive(Clone, Debug)]
pub struct Weights {
    distribution: Distribution,
    /// Lowest priority ever provisioned; only goes down, so that pair ratios survive a removal.
    lowest_seen: i32,
    priorities: Priorities,
    distributed: PerBand,
    reduced: PerBand,
}

impl Weights {
    /// The weights of `priorities_desc` (most urgent first; those past the 64th are left out).
    pub fn new(distribution: &Distribution, priorities_desc: &[i32]) -> Self {
        let mut weights = Self {
            distribution: distribution.clone(),
            lowest_seen: i32::MAX,
            priorities: Priorities::new(),
            distributed: [0; MAX_BANDS],
            reduced: [0; MAX_BANDS],
        };
        weights.provision(priorities_desc);
        weights
    }

    /// Takes another set of bands; says where each of them stood before. Allocates nothing.
    pub fn provision(&mut self, priorities_desc: &[i32]) -> Origins {
        debug_assert!(priorities_desc.len() <= MAX_BANDS, "the configuration limits bands to 64");
        let old = core::mem::take(&mut self.priorities);
        self.priorities.extend(priorities_desc.iter().copied().take(MAX_BANDS));
        self.lowest_seen = self.priorities.iter().copied().fold(self.lowest_seen, i32::min);
        self.distributed = [0; MAX_BANDS];
        distribute(&self.distribution, self.lowest_seen, &self.priorities, &mut self.distributed);
        self.reduced = self.distributed;
        reduce(&mut self.reduced);
        let origin = |p| old.iter().position(|o| *o == p).and_then(|i| u8::try_from(i).ok());
        self.priorities.iter().map(|p| origin(*p)).collect()
    }

    /// Takes over what was the lowest priority ever from earlier weights; says where each band stood there.
    pub fn follow(&mut self, old: &Self) -> Origins {
        self.lowest_seen = self.lowest_seen.min(old.lowest_seen);
        let priorities = self.priorities.clone();
        self.provision(&priorities);
        let place = |p| old.priorities.iter().position(|o| *o == p);
        self.priorities.iter().map(|p| place(*p).and_then(|i| u8::try_from(i).ok())).collect()
    }

    /// Number of bands.
    pub fn len(&self) -> usize {
        self.priorities.len()
    }

    /// Whether no band is provisioned.
    pub fn is_empty(&self) -> bool {
        self.priorities.is_empty()
    }

    /// Priorities, most urgent first.
    pub fn priorities(&self) -> &[i32] {
        &self.priorities
    }

    /// Weights as the distribution gives them (explicit: in 1/10,000), before the reduction.
    pub fn distributed(&self) -> &[u64] {
        &self.distributed[..self.len()]
    }

    /// Weights over their greatest common divisor; 0 = leftovers only.
    pub fn reduced(&self) -> &[u64] {
        &self.reduced[..self.len()]
    }
}

/// Fills `out` for `priorities`; `lowest` is the anchor of a proportional distribution that names none.
fn distribute(distribution: &Distribution, lowest: i32, priorities: &[i32], out: &mut PerBand) {
    match distribution {
        Distribution::Proportional { anchor } => {
            let anchor = i64::from(anchor.unwrap_or(lowest));
            for (weight, priority) in out.iter_mut().zip(priorities) {
                *weight = u64::try_from(i64::from(*priority) - anchor + 1).unwrap_or(1).max(1);
            }
        }
        Distribution::Linear => {
            for (weight, rank) in out.iter_mut().zip((1..=priorities.len() as u64).rev()) {
                *weight = rank;
            }
        }
        Distribution::Explicit { ratios, default_ratio } => {
            let least = ratios.iter().map(|(_, ratio)| ratio.0).filter(|parts| *parts > 0).min();
            let unlisted = default_ratio.unwrap_or(Ratio(least.unwrap_or(1)));
            for (weight, priority) in out.iter_mut().zip(priorities) {
                let listed = ratios.iter().find(|(listed, _)| listed == priority);
                *weight = u64::from(listed.map_or(unlisted, |(_, ratio)| *ratio).0);
            }
        }
    }
}

/// Divides all by their greatest common divisor; zeros stay zero.
fn reduce(weights: &mut PerBand) {
    let divisor = weights.iter().fold(0, |divisor, weight| gcd(divisor, *weight));
    if divisor > 1 {
        for weight in weights {
            *weight /= divisor;
        }
    }
}

/// Greatest common divisor (Euclid); of 0 and `b` it is `b`.
pub(super) const fn gcd(mut a: u64, mut b: u64) -> u64 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

/// Weights fitted into a window, with the steps on the way (3.4): what `check` and `explain` print.
#[derive(Clone, Debug)]
pub struct Rescale {
    len: usize,
    weights: PerBand,
    sum: u64,
    window: u64,
    floors: PerBand,
    left_over: i64,
    quota: PerBand,
}

impl Rescale {
    /// Fits `weights` (at most 64, each below 2^33) into `window` dispatches; `None` = no limit.
    ///
    /// The round is at most the larger of the window and the number of bands with weight: no band with
    /// weight is left without a credit.
    pub fn new(weights: &[u64], window: Option<u32>) -> Self {
        let len = weights.len().min(MAX_BANDS);
        let mut all = [0; MAX_BANDS];
        all[..len].copy_from_slice(&weights[..len]);
        let sum: u64 = all.iter().sum();
        let window = window.map_or(sum, |w| u64::from(w).max(1)).min(sum);
        let mut this =
            Self { len, weights: all, sum, window, floors: all, left_over: 0, quota: all };
        if window < sum {
            this.fit();
        }
        this
    }

    fn fit(&mut self) {
        let mut fraction: [u128; MAX_BANDS] = [0; MAX_BANDS];
        for ((floor, fraction), weight) in
            self.floors.iter_mut().zip(&mut fraction).zip(&self.weights)
        {
            let scaled = u128::from(*weight) * u128::from(self.window);
            *floor = u64::try_from(scaled / u128::from(self.sum)).unwrap_or(u64::MAX);
            *fraction = scaled % u128::from(self.sum);
            if *floor == 0 && *weight > 0 {
                (*floor, *fraction) = (1, 0);
            }
        }
        self.quota = self.floors;
        let given: u64 = self.floors.iter().sum();
        self.left_over = self.window.cast_signed() - given.cast_signed();
        for _ in 0..self.left_over {
            // Ties go to the higher priority: the first of the largest fractions.
            let Some(i) = (0..self.len).rev().max_by_key(|i| fraction[*i]) else { break };
            self.quota[i] += 1;
            fraction[i] = 0;
        }
        for _ in self.left_over..0 {
            // Ties come from the lowest priority: the last of the largest quotas.
            let Some(i) = (0..self.len).max_by_key(|i| self.quota[*i]) else { break };
            if self.quota[i] <= 1 {
                break;
            }
            self.quota[i] -= 1;
        }
    }

    /// Credits of each band in one round.
    pub fn quota(&self) -> &[u64] {
        &self.quota[..self.len]
    }

    /// Dispatches in one round.
    pub fn round(&self) -> u64 {
        self.quota().iter().sum()
    }

    /// The whole credits before the left-over ones are given out or taken back.
    pub fn floors(&self) -> &[u64] {
        &self.floors[..self.len]
    }

    /// Window minus the sum of the floors; negative when tiny bands were lifted to one credit.
    pub fn left_over(&self) -> i64 {
        self.left_over
    }

    /// The exact scaled credit of a band in hundredths, half up; 0 for a band that is not there.
    pub fn scaled_hundredths(&self, band: usize) -> u64 {
        let weight = self.weights.get(band).copied().unwrap_or(0);
        let (scaled, sum) =
            (u128::from(weight) * u128::from(self.window) * 200, u128::from(self.sum).max(1));
        u64::try_from((scaled + sum) / (2 * sum)).unwrap_or(u64::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::{Distribution, Ratio, Rescale, Weights};
    use alloc::vec::Vec;

    const PROPORTIONAL: Distribution = Distribution::Proportional { anchor: None };

    fn explicit(ratios: &[(i32, u32)], default_ratio: Option<u32>) -> Distribution {
        Distribution::Explicit {
            ratios: ratios.iter().map(|(p, r)| (*p, Ratio(*r))).collect(),
            default_ratio: default_ratio.map(Ratio),
        }
    }

    #[test]
    fn the_weight_tables_of_the_proposal_hold() {
        let proportional = [
            (&[20, 10, 0], [21, 11, 1]),
            (&[20, 18, 1], [20, 18, 1]),
            (&[20, 10, -1], [22, 12, 1]),
            (&[100, 50, 1], [100, 50, 1]),
        ];
        for (priorities, weights) in proportional {
            assert_eq!(Weights::new(&PROPORTIONAL, priorities).reduced(), weights);
        }
        assert_eq!(Weights::new(&Distribution::Linear, &[100, 50, 1]).reduced(), [3, 2, 1]);
        let listed = explicit(&[(20, 7000), (10, 2000), (0, 1000)], None);
        assert_eq!(Weights::new(&listed, &[20, 10, 0]).reduced(), [7, 2, 1]);
        assert_eq!(Weights::new(&listed, &[30, 20, 10, 0]).reduced(), [1, 7, 2, 1]);
        let uneven = explicit(&[(20, 5000), (10, 3000), (0, 2000)], Some(1000));
        assert_eq!(Weights::new(&uneven, &[20, 10, 0]).reduced(), [5, 3, 2]);
        assert_eq!(Weights::new(&uneven, &[20, 10, 0, -1]).reduced(), [5, 3, 2, 1]);
    }

    #[test]
    fn the_anchor_only_goes_down_so_pair_ratios_survive_a_removal() {
        let mut weights = Weights::new(&PROPORTIONAL, &[20, 10, 0]);
        let origins = weights.provision(&[20, 10]);
        assert_eq!(origins[..], [Some(0), Some(1)]);
        assert_eq!(weights.distributed(), [21, 11]);
        let origins = weights.provision(&[30, 20, -10]);
        assert_eq!(origins[..], [None, Some(0), None]);
        assert_eq!(weights.distributed(), [41, 31, 1]);
        let anchored = Distribution::Proportional { anchor: Some(-1) };
        assert_eq!(Weights::new(&anchored, &[5, 3, -7]).distributed(), [7, 5, 1]);
    }

    #[test]
    fn the_extremes_of_i32_neither_overflow_nor_vanish() {
        let weights = Weights::new(&PROPORTIONAL, &[i32::MAX, 0, i32::MIN]);
        assert_eq!(weights.distributed(), [1 << 32, (1 << 31) + 1, 1]);
        let none = explicit(&[(1, 0)], None);
        assert_eq!(Weights::new(&none, &[1]).reduced(), [0]);
        assert!(Weights::new(&PROPORTIONAL, &[]).is_empty());
    }

    #[test]
    fn a_window_keeps_the_ratios_as_close_as_whole_credits_can() {
        let table: [(&[u64], u32, &[u64]); 9] = [
            (&[100, 50, 1], 80, &[53, 26, 1]),
            (&[100, 50, 1], 20, &[13, 6, 1]),
            (&[18, 8, 1], 10, &[6, 3, 1]),
            (&[3, 2, 1], 6, &[3, 2, 1]),
            (&[1000, 1, 1, 1, 1], 5, &[1, 1, 1, 1, 1]),
            (&[9, 5, 1], 2, &[1, 1, 1]),
            (&[2, 2, 2], 5, &[2, 2, 1]),
            (&[5, 0, 5], 4, &[2, 0, 2]),
            (&[10, 10, 1, 1, 1], 6, &[2, 1, 1, 1, 1]),
        ];
        for (weights, window, quota) in table {
            assert_eq!(Rescale::new(weights, Some(window)).quota(), quota, "{weights:?} {window}");
        }
        let steps = Rescale::new(&[18, 8, 1], Some(10));
        let scaled: Vec<u64> = (0..3).map(|i| steps.scaled_hundredths(i)).collect();
        assert_eq!(scaled, [667, 296, 37]);
        assert_eq!((steps.floors(), steps.left_over(), steps.round()), (&[6, 2, 1][..], 1, 10));
        assert_eq!(Rescale::new(&[100, 50, 1], None).round(), 151);
    }
}
