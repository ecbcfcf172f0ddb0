//! Priority-first: integer credits, the most urgent band first within a round.
//!
//! Each band has a quota a round. A band gated when the round turns carries what it did not get, at most
//! one quota, and is repaid first. Worked examples: the rows `priority-first` and `pf-*` of `core/tests/vectors/flow.json`.
//!
//! One rule goes beyond plain carrying. Owed bands are repaid by priority, but a band repaid a whole quota while others are owed
//! goes behind them: a band whose debt is refilled by every flap of its gate would otherwise keep all lower owed
//! bands waiting for ever. Without such a refill the order is plainly by priority.
#![forbid(unsafe_code)]

use super::weights::{Origins, PerBand, Rescale};
use super::{Order, all, at, bits, first, has, narrow};
use crate::types::{BandMask, MAX_BANDS};

/// The credits of one pool. Single owner; nothing allocates.
#[derive(Clone, Debug)]
pub struct Credits {
    with_carry: BandMask,
    with_credit: BandMask,
    with_quota: BandMask,
    credit: PerBand,
    carry: PerBand,
    quota: PerBand,
    /// Place of each band in the queue of the owed (equal places: by priority), and what it was repaid there.
    place: PerBand,
    repaid: PerBand,
    last_place: u64,
    /// Whether places or repayments differ from 0.
    queued: bool,
    len: usize,
    window: Option<u32>,
}

impl Credits {
    /// A fresh round over `weights` (reduced; at most 64 bands), rescaled to `window` dispatches if it is longer.
    pub fn new(weights: &[u64], window: Option<u32>) -> Self {
        let mut this = Self {
            with_carry: 0,
            with_credit: 0,
            with_quota: 0,
            credit: [0; MAX_BANDS],
            carry: [0; MAX_BANDS],
            quota: [0; MAX_BANDS],
            place: [0; MAX_BANDS],
            repaid: [0; MAX_BANDS],
            last_place: 0,
            queued: false,
            len: 0,
            window,
        };
        this.set_quota(weights);
        this.reset();
        this
    }

    /// The longest round asked for.
    pub const fn window(&self) -> Option<u32> {
        self.window
    }

    /// Sets it; in force with the next weights.
    pub const fn set_window(&mut self, window: Option<u32>) {
        self.window = window;
    }

    fn set_quota(&mut self, weights: &[u64]) {
        let rescaled = Rescale::new(weights, self.window);
        self.len = rescaled.quota().len();
        self.quota = [0; MAX_BANDS];
        self.quota[..self.len].copy_from_slice(rescaled.quota());
        self.with_quota = positive(&self.quota);
    }

    /// Starts over: every band its quota, nobody owed.
    pub fn reset(&mut self) {
        self.credit = self.quota;
        self.carry = [0; MAX_BANDS];
        self.forget_places();
        self.with_credit = self.with_quota;
        self.with_carry = 0;
    }

    fn forget_places(&mut self) {
        self.place = [0; MAX_BANDS];
        self.repaid = [0; MAX_BANDS];
        self.last_place = 0;
        self.queued = false;
    }

    /// Turns the round if no eligible band has anything left. Without an eligible band nothing moves.
    #[inline(always)]
    pub fn begin(&mut self, eligible: BandMask) {
        if eligible & (self.with_credit | self.with_carry) == 0 && eligible != 0 {
            self.turn(eligible);
        }
    }

    /// The first of `candidates` in rank order: owed, then with credit, then the leftovers.
    #[inline(always)]
    pub fn best(&self, candidates: BandMask) -> Option<u32> {
        let owed = candidates & self.with_carry;
        if owed != 0 {
            return self.first_owed(owed);
        }
        let credited = candidates & self.with_credit;
        first(if credited != 0 { credited } else { candidates })
    }

    /// The foremost place, then the highest priority.
    #[inline]
    fn first_owed(&self, owed: BandMask) -> Option<u32> {
        if !self.queued || owed.is_power_of_two() {
            return first(owed);
        }
        bits(owed).min_by_key(|band| self.place[*band]).map(|band| u32::from(narrow(band)))
    }

    /// Settles a dispatch of `band`. A dispatch out of the leftovers proves every credit holder empty and turns the round.
    #[inline(always)]
    pub fn record(&mut self, eligible: BandMask, band: u32) {
        let i = at(band);
        if has(self.with_carry, band) {
            self.repay(i);
            return;
        }
        if !has(self.with_credit, band) {
            self.turn(eligible);
            if !has(self.with_quota, band) {
                return;
            }
        }
        self.credit[i] -= 1;
        self.with_credit &= !(u64::from(self.credit[i] == 0) << i);
    }

    fn repay(&mut self, i: usize) {
        self.carry[i] -= 1;
        self.with_carry &= !(u64::from(self.carry[i] == 0) << i);
        if self.with_carry & !(1 << i) == 0 {
            // Nobody else is owed: nothing to be put behind.
            if self.queued {
                self.forget_places();
            }
            return;
        }
        self.queued = true;
        self.repaid[i] += 1;
        if self.repaid[i] >= self.quota[i] {
            self.last_place += 1;
            (self.place[i], self.repaid[i]) = (self.last_place, 0);
        }
    }

    #[cold]
    fn turn(&mut self, eligible: BandMask) {
        for i in bits(eligible & self.with_carry) {
            self.carry[i] = 0;
        }
        self.with_carry &= !eligible;
        for i in bits(self.with_quota & !eligible) {
            self.carry[i] = self.quota[i].min(self.carry[i] + self.credit[i]);
            self.with_carry |= u64::from(self.carry[i] > 0) << i;
        }
        self.credit = self.quota;
        self.with_credit = self.with_quota;
    }

    /// Takes another set of bands: survivors keep what fits their new quota, a new band has one quota at once.
    pub fn set_bands(&mut self, weights: &[u64], origins: &Origins) {
        let old = self.clone();
        self.set_quota(weights);
        self.credit = self.quota;
        self.carry = [0; MAX_BANDS];
        self.place = [0; MAX_BANDS];
        self.repaid = [0; MAX_BANDS];
        for (new, origin) in origins.iter().enumerate() {
            let Some(was) = origin.map(usize::from) else { continue };
            self.credit[new] = old.credit[was].min(self.quota[new]);
            self.carry[new] = old.carry[was].min(self.quota[new]);
            (self.place[new], self.repaid[new]) = (old.place[was], old.repaid[was]);
        }
        self.with_credit = positive(&self.credit);
        self.with_carry = positive(&self.carry);
    }

    /// Puts credits and carries in place (each limited to its quota): for conformance tests and reload.
    pub fn restore(&mut self, credit: &[u64], carry: &[u64]) {
        self.reset();
        for (i, quota) in self.quota.iter().enumerate().take(self.len) {
            self.credit[i] = credit.get(i).map_or(*quota, |c| (*c).min(*quota));
            self.carry[i] = carry.get(i).map_or(0, |c| (*c).min(*quota));
        }
        self.with_credit = positive(&self.credit);
        self.with_carry = positive(&self.carry);
    }

    /// Appends the full order of 3.4: the eligible by group, the gated last.
    pub(super) fn rank(&self, eligible: BandMask, order: &mut Order) {
        let eligible = eligible & all(self.len);
        let owed = eligible & self.with_carry;
        order.extend(bits(owed).map(narrow));
        order.sort_unstable_by_key(|i| (self.place[usize::from(*i)], *i));
        let credited = eligible & self.with_credit & !owed;
        let leftovers = eligible & !owed & !credited;
        for group in [credited, leftovers, all(self.len) & !eligible] {
            order.extend(bits(group).map(narrow));
        }
    }

    /// Credits each band has left in this round.
    pub fn credit(&self) -> &[u64] {
        &self.credit[..self.len]
    }

    /// Credits each band is owed from rounds that turned while it was gated.
    pub fn carry(&self) -> &[u64] {
        &self.carry[..self.len]
    }

    /// Credits each band gets a round.
    pub fn quota(&self) -> &[u64] {
        &self.quota[..self.len]
    }

    /// Dispatches in one round.
    pub fn round(&self) -> u64 {
        self.quota().iter().sum()
    }
}

fn positive(values: &PerBand) -> BandMask {
    values.iter().enumerate().fold(0, |mask, (i, v)| mask | u64::from(*v > 0) << i)
}

#[cfg(test)]
mod tests {
    use super::Credits;
    use alloc::vec::Vec;

    const ALL: u64 = 0b111;

    fn serve(credits: &mut Credits, eligible: u64, candidates: u64) -> Option<u32> {
        credits.begin(eligible);
        let band = credits.best(candidates & eligible)?;
        credits.record(eligible, band);
        Some(band)
    }

    #[test]
    fn a_full_round_of_six_three_one_reads_as_the_table() {
        let mut credits = Credits::new(&[6, 3, 1], None);
        let table = [
            ([6, 3, 1], 0),
            ([5, 3, 1], 0),
            ([4, 3, 1], 0),
            ([3, 3, 1], 0),
            ([2, 3, 1], 0),
            ([1, 3, 1], 0),
            ([0, 3, 1], 1),
            ([0, 2, 1], 1),
            ([0, 1, 1], 1),
            ([0, 0, 1], 2),
            ([6, 3, 1], 0),
        ];
        for (before, selected) in table {
            credits.begin(ALL);
            assert_eq!(credits.credit(), before);
            assert_eq!(credits.best(ALL), Some(selected));
            credits.record(ALL, selected);
        }
    }

    #[test]
    fn an_empty_band_keeps_its_credit_until_the_round_turns_out_of_the_leftovers() {
        let mut credits = Credits::new(&[6, 3, 1], None);
        let served: Vec<_> = (0..14).filter_map(|_| serve(&mut credits, ALL, 0b101)).collect();
        assert_eq!(served, [0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 2]);
    }

    #[test]
    fn a_band_gated_at_the_turn_is_owed_one_quota_at_most_and_repaid_first() {
        let mut credits = Credits::new(&[6, 3, 1], None);
        for _ in 0..40 {
            serve(&mut credits, 0b011, ALL);
        }
        assert_eq!(credits.carry(), [0, 0, 1]);
        assert_eq!(serve(&mut credits, ALL, ALL), Some(2));
        assert_eq!(credits.carry(), [0, 0, 0]);
    }

    #[test]
    fn two_bands_behind_one_flapping_gate_are_both_repaid() {
        let mut credits = Credits::new(&[1, 1, 1], None);
        let mut served = [0; 3];
        for _ in 0..30 {
            for eligible in [0b001, ALL] {
                let band = serve(&mut credits, eligible, ALL).map_or(0, |b| b as usize);
                served[band] += 1;
            }
        }
        assert!(served.iter().all(|n| *n >= 10), "{served:?}");
    }

    #[test]
    fn without_an_eligible_band_nothing_moves() {
        let mut credits = Credits::new(&[2, 1], None);
        credits.begin(0);
        assert_eq!((credits.credit(), credits.carry()), (&[2, 1][..], &[0, 0][..]));
        assert_eq!(credits.best(0), None);
    }

    #[test]
    fn a_band_of_weight_zero_lives_on_leftovers() {
        let mut credits = Credits::new(&[9, 1, 0], None);
        assert_eq!(serve(&mut credits, ALL, ALL), Some(0));
        assert_eq!(serve(&mut credits, ALL, 0b100), Some(2));
        assert_eq!(credits.credit(), [9, 1, 0]);
    }
}
