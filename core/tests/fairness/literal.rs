//! The two schedules as their text reads, in exact fractions: a second opinion to compare the policies with.
//!
//! The policies differ from the text in one case each, both needed against starvation: a band repaid more than
//! a quota while another is still owed, and bands that rejoin together. So only one band's gate moves here.

use bandgate_core::types::policy::Schedule;
use proptest::prelude::*;

use crate::bands::{CREDITS, all, policy, reduced, seeded, serve};

/// Priority-first, literally.
struct Literal {
    quota: Vec<u64>,
    credit: Vec<u64>,
    carry: Vec<u64>,
}

fn members(n: usize, set: u64) -> impl Iterator<Item = usize> {
    (0..n).filter(move |i| set >> i & 1 == 1)
}

impl Literal {
    fn turn(&mut self, eligible: u64) {
        for i in 0..self.quota.len() {
            let owed = self.quota[i].min(self.carry[i] + self.credit[i]);
            self.carry[i] = if eligible >> i & 1 == 1 { 0 } else { owed };
            self.credit[i] = self.quota[i];
        }
    }

    fn serve(&mut self, eligible: u64, waiting: u64) -> Option<usize> {
        let n = self.quota.len();
        let spent = members(n, eligible).all(|i| self.credit[i] + self.carry[i] == 0);
        if spent && eligible != 0 {
            self.turn(eligible);
        }
        let group = |i: &usize| match (self.carry[*i], self.credit[*i]) {
            (1.., _) => 0,
            (0, 1..) => 1,
            _ => 2,
        };
        let chosen = members(n, eligible & waiting).min_by_key(|i| (group(i), *i))?;
        match group(&chosen) {
            0 => self.carry[chosen] -= 1,
            1 => self.credit[chosen] -= 1,
            _ => {
                self.turn(eligible);
                self.credit[chosen] = self.credit[chosen].saturating_sub(1);
            }
        }
        Some(chosen)
    }
}

/// Interleaved, literally, in units of the product of the weights.
struct LiteralTime {
    stride: Vec<u128>,
    time: Vec<u128>,
    before: u64,
}

impl LiteralTime {
    fn new(weights: &[u64]) -> Self {
        let unit: u128 = weights.iter().map(|w| u128::from(*w)).product();
        let stride = weights.iter().map(|w| unit / u128::from(*w)).collect();
        Self { stride, time: vec![0; weights.len()], before: u64::MAX }
    }

    fn serve(&mut self, eligible: u64, waiting: u64) -> Option<usize> {
        let n = self.time.len();
        let least = members(n, eligible & self.before).map(|i| self.time[i]).min();
        if let Some(least) = least {
            for i in members(n, eligible & !self.before) {
                self.time[i] = self.time[i].max(least.saturating_sub(self.stride[i]));
            }
        }
        self.before = eligible;
        let chosen = members(n, eligible & waiting).min_by_key(|i| (self.time[*i], *i))?;
        let start = (self.time[chosen], chosen);
        for i in members(n, eligible) {
            if (self.time[i], i) < start {
                self.time[i] = start.0;
            }
        }
        self.time[chosen] = start.0 + self.stride[chosen];
        Some(chosen)
    }
}

proptest! {
    #![proptest_config(seeded(11))]

    #[test]
    fn the_policies_decide_as_their_text_while_one_band_is_gated_at_a_time(
        weights in prop::collection::vec(1_u32..=12, 2..=6),
        cycles in prop::collection::vec((any::<bool>(), any::<u64>(), any::<bool>()), 300),
        gate in 0_usize..6,
    ) {
        let (n, gate) = (weights.len(), gate % weights.len());
        let (mut credits, mut times) = (policy(CREDITS, &weights), policy(Schedule::Interleaved, &weights));
        let quota = reduced(&weights);
        let mut literal =
            Literal { credit: quota.clone(), carry: vec![0; n], quota: quota.clone() };
        let mut literal_time = LiteralTime::new(&quota);
        for (shut, waiting, full) in cycles {
            let eligible = if shut { all(n) & !(1 << gate) } else { all(n) };
            let waiting = if full { all(n) } else { waiting };
            prop_assert_eq!(
                serve(&mut credits, eligible, waiting),
                literal.serve(eligible, waiting)
            );
            prop_assert_eq!(credits.credits().unwrap(), &literal.credit[..]);
            prop_assert_eq!(credits.carry().unwrap(), &literal.carry[..]);
            prop_assert_eq!(
                serve(&mut times, eligible, waiting),
                literal_time.serve(eligible, waiting)
            );
        }
    }
}
