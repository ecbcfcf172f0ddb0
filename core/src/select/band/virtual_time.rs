//! Interleaved: integer virtual time, the band that is furthest behind first.
//!
//! A dispatch moves a band's time on by one stride, 1 / weight, in units of 1 / L with L a common multiple of
//! the weights: sums of sixths and thirds meet exactly, where floats would not. Start-time fair queuing (Goyal,
//! Vin, Cheng, 1996), corrected: a band that rejoins starts at most one stride behind the minimum, and one passed over
//! while empty banks nothing. Worked examples: the rows `il-*` of `core/tests/vectors/flow.json`.
//!
//! Two rules go further. Bands that rejoin together keep their order: pulling each up to one stride behind the
//! minimum would otherwise put a band that was just served before one that was not, at every flap of the gate.
//! And a moment in which every band is gated is no ranking: a band gated long before it would otherwise come
//! back with all its lag and keep the others waiting until it had caught up.
#![forbid(unsafe_code)]

use core::hint::select_unpredictable;

use arrayvec::ArrayVec;

use super::weights::{Origins, PerBand, gcd};
use super::{Order, all, at, bits, first, has, narrow};
use crate::types::{BandMask, MAX_BANDS};

/// Largest L; with it a stride of the largest weight (2^32) still has 8 bits.
const UNIT_MAX: u64 = 1 << 40;

/// Virtual times are rebased once the least of the eligible passes this.
const REBASE_AT: u64 = 1 << 60;

/// The virtual times of one pool. Single owner; nothing allocates.
#[derive(Clone, Debug)]
pub struct VirtualTime {
    /// Bands that were eligible at the last rank.
    before: BandMask,
    /// Bands with weight; the others take no part in any minimum.
    weighted: BandMask,
    /// Start of the last dispatch: the bands of `before` stand there at least. Lifting them one by one would cost a
    /// pass over all at every dispatch.
    floor: u64,
    times: PerBand,
    stride: PerBand,
    weights: PerBand,
    unit: u64,
    len: usize,
    vt_rescaled: u64,
}

impl VirtualTime {
    /// All bands level at 0, over `weights` (reduced; at most 64, each below 2^33).
    pub fn new(weights: &[u64]) -> Self {
        let mut this = Self {
            before: 0,
            weighted: 0,
            floor: 0,
            times: [0; MAX_BANDS],
            stride: [0; MAX_BANDS],
            weights: [0; MAX_BANDS],
            unit: 1,
            len: 0,
            vt_rescaled: 0,
        };
        this.set_weights(weights);
        this.set_unit(common(1, weights).unwrap_or(UNIT_MAX));
        this.reset();
        this
    }

    fn set_weights(&mut self, weights: &[u64]) {
        self.len = weights.len().min(MAX_BANDS);
        self.weights = [0; MAX_BANDS];
        self.weights[..self.len].copy_from_slice(&weights[..self.len]);
        self.weighted = bits(all(self.len)).fold(0, |m, i| m | u64::from(self.weights[i] > 0) << i);
    }

    fn set_unit(&mut self, unit: u64) {
        self.unit = unit;
        self.stride = [0; MAX_BANDS];
        for i in bits(self.weighted) {
            let weight = self.weights[i];
            self.stride[i] = ((unit + weight / 2) / weight).max(1);
        }
    }

    /// Starts over: all bands level at 0, nobody was gated.
    pub fn reset(&mut self) {
        self.times = [0; MAX_BANDS];
        self.floor = 0;
        self.before = all(self.len);
    }

    /// Lets bands rejoin that were gated at the last rank. Nearly free while the set stays the same.
    #[inline(always)]
    pub fn begin(&mut self, eligible: BandMask) {
        if eligible != self.before && eligible != 0 {
            self.rejoin(eligible);
        }
    }

    /// Writes the floor into the times it holds for.
    fn settle(&mut self) {
        for i in bits(self.before & self.weighted) {
            self.times[i] = self.times[i].max(self.floor);
        }
        self.floor = 0;
    }

    /// A returning band gets max(own, m - one stride), m the least of those that stayed: at most one item extra.
    #[cold]
    fn rejoin(&mut self, eligible: BandMask) {
        self.settle();
        let stayed = eligible & self.before & self.weighted;
        let mut back = eligible & !self.before & self.weighted;
        self.before = eligible;
        let Some(least) = self.least(stayed) else { return };
        // From the furthest ahead to the furthest behind: a band that is strictly behind stays so.
        let (mut own, mut cap, mut ceiling) = (u64::MAX, u64::MAX, u64::MAX);
        while let Some(i) = bits(back).max_by_key(|i| self.times[*i]) {
            back &= !(1 << i);
            if self.times[i] < own {
                (own, cap) = (self.times[i], ceiling);
            }
            let pulled = self.times[i].max(least.saturating_sub(self.stride[i])).min(cap);
            ceiling = ceiling.min(pulled.saturating_sub(1));
            self.times[i] = pulled;
        }
    }

    fn least(&self, bands: BandMask) -> Option<u64> {
        bits(bands).map(|i| self.times[i]).min()
    }

    /// The first of `candidates` in rank order: least virtual time, ties to the higher priority, no weight last.
    #[inline(always)]
    pub fn best(&self, candidates: BandMask) -> Option<u32> {
        let mut rest = candidates & self.weighted;
        if rest == 0 {
            return first(candidates);
        }
        if rest == 0xff {
            let (band, time) = self.first_of_eight();
            if time >= self.floor {
                // Then all are at the floor or later, and it changes nothing.
                return Some(band);
            }
        }
        let (mut best, mut least) = (0, u64::MAX);
        while rest != 0 {
            let band = rest.trailing_zeros();
            rest &= rest - 1;
            let time = self.times[at(band)].max(self.floor);
            (best, least) = before((best, least), (band, time));
        }
        Some(best)
    }

    /// The first eight bands by time alone, the usual case under load: no search for the next bit, and two halves
    /// that overlap.
    #[inline(always)]
    fn first_of_eight(&self) -> (u32, u64) {
        let half = |base: u32| {
            let mut best = (base, self.times[at(base)]);
            for band in base + 1..base + 4 {
                best = before(best, (band, self.times[at(band)]));
            }
            best
        };
        before(half(0), half(4))
    }

    /// Settles a dispatch of `band`: eligible bands passed over (offered, empty) bank no lag, `band` moves on one stride.
    #[inline(always)]
    pub fn record(&mut self, eligible: BandMask, band: u32) {
        if !has(self.weighted, band) {
            return;
        }
        self.begin(eligible);
        let i = at(band);
        let start = self.times[i].max(self.floor);
        self.times[i] = start + self.stride[i];
        // Those behind `band` in the order are at `start` or later: for them the floor changes nothing.
        self.floor = start;
        if start >= REBASE_AT {
            self.rebase(eligible | 1 << i);
        }
    }

    /// Subtracts the least time of `bands`; a gated band stops at 0, which its rejoin makes harmless.
    #[cold]
    fn rebase(&mut self, bands: BandMask) {
        self.settle();
        if let Some(least) = self.least(bands & self.weighted) {
            for time in &mut self.times {
                *time = time.saturating_sub(least);
            }
        }
    }

    /// Takes another set of bands: survivors keep their times, a new band starts at the least of the
    /// bands that were eligible (of all, if none was).
    pub fn set_bands(&mut self, weights: &[u64], origins: &Origins) {
        self.settle();
        let old = self.clone();
        let level = old.least(old.before & old.weighted).or_else(|| old.least(old.weighted));
        self.set_weights(weights);
        self.times = [0; MAX_BANDS];
        self.before = 0;
        for (new, origin) in origins.iter().enumerate() {
            let was = origin.map(usize::from);
            let kept = was.filter(|was| old.weighted >> *was & 1 == 1);
            self.times[new] = kept.map_or(level.unwrap_or(0), |was| old.times[was]);
            let was_eligible = was.is_none_or(|was| old.before >> was & 1 == 1);
            self.before |= u64::from(was_eligible) << new;
        }
        self.change_unit(weights);
    }

    /// To a unit in which the old times stay exact if there is one, else to that of the weights alone.
    fn change_unit(&mut self, weights: &[u64]) {
        let old = self.unit;
        let unit = common(old, weights).unwrap_or_else(|| {
            self.vt_rescaled += 1;
            common(1, weights).unwrap_or(UNIT_MAX)
        });
        let highest = self.times.iter().max().copied().unwrap_or(0);
        if u128::from(highest) * u128::from(unit) / u128::from(old) > u128::from(REBASE_AT) {
            self.rebase(if self.before & self.weighted == 0 { self.weighted } else { self.before });
        }
        for time in &mut self.times {
            let scaled = u128::from(*time) * u128::from(unit) / u128::from(old);
            *time = u64::try_from(scaled).unwrap_or(REBASE_AT).min(REBASE_AT);
        }
        self.set_unit(unit);
    }

    /// Puts virtual times (numerator, denominator; rounded down if no unit holds them exactly) and the bands
    /// eligible at the last rank in place: for conformance tests and reload.
    pub fn restore(&mut self, times: &[(u64, u64)], eligible_before: BandMask) {
        self.reset();
        let mut unit = self.unit;
        for (_, denominator) in times {
            unit = common(unit, &[*denominator]).unwrap_or(unit);
        }
        self.set_unit(unit);
        for (time, (numerator, denominator)) in self.times.iter_mut().zip(times).take(self.len) {
            let exact = u128::from(*numerator) * u128::from(unit) / u128::from(*denominator).max(1);
            *time = u64::try_from(exact).unwrap_or(REBASE_AT).min(REBASE_AT);
        }
        self.before = eligible_before;
    }

    /// Appends the full order of 3.5: by virtual time, then no weight, then gated.
    pub(super) fn rank(&self, eligible: BandMask, order: &mut Order) {
        let eligible = eligible & all(self.len);
        order.extend(bits(eligible & self.weighted).map(narrow));
        order.sort_unstable_by_key(|i| (self.time(usize::from(*i)), *i));
        for group in [eligible & !self.weighted, all(self.len) & !eligible] {
            order.extend(bits(group).map(narrow));
        }
    }

    fn time(&self, band: usize) -> u64 {
        let held = self.before & self.weighted;
        if held >> band & 1 == 1 { self.times[band].max(self.floor) } else { self.times[band] }
    }

    /// Virtual times, in 1 / [`unit`](Self::unit).
    pub fn times(&self) -> ArrayVec<u64, MAX_BANDS> {
        bits(all(self.len)).map(|i| self.time(i)).collect()
    }

    /// The denominator of all virtual times: at most 2^40.
    pub fn unit(&self) -> u64 {
        self.unit
    }

    /// Weight changes after which the old times were rounded to a new unit.
    pub fn vt_rescaled(&self) -> u64 {
        self.vt_rescaled
    }
}

/// The earlier of a band with its time and a less urgent one: that one only if it is strictly behind.
///
/// Who is behind follows no pattern a branch predictor could learn.
#[inline(always)]
fn before(a: (u32, u64), b: (u32, u64)) -> (u32, u64) {
    let behind = b.1 < a.1;
    (select_unpredictable(behind, b.0, a.0), select_unpredictable(behind, b.1, a.1))
}

/// Least common multiple of `unit` and the positive `weights`; `None` above 2^40.
fn common(unit: u64, weights: &[u64]) -> Option<u64> {
    weights.iter().filter(|weight| **weight > 0).try_fold(unit, |unit, weight| {
        unit.checked_mul(weight / gcd(unit, *weight)).filter(|unit| *unit <= UNIT_MAX)
    })
}

#[cfg(test)]
#[path = "virtual_time_tests.rs"]
mod tests;
