//! What a trace leaves open is assigned by a stated rule: a hash of (seed, row number), nothing else.
//!
//! With `h(seed, row, what) = mix64(mix64(seed + what x G) + row x G)`, where `mix64` is the finaliser of SplitMix64 and G its
//! increment (Steele, Lea, Flood, "Fast splittable pseudorandom number generators", OOPSLA 2014), and
//! `pick(h, n) = floor(h x n / 2^64)`:
//! - band (`what` 1): `pick(h, sum of the mix)` falls into the mix, laid out from the highest priority down. The default
//!   mix gives every provisioned band the same share.
//! - tenant (`what` 2): `pick(h, tenants)`, named `t0`, `t1`, ...
//! - key (`what` 3): `pick(h, keys)`, named `<tenant>-k0`, `<tenant>-k1`, ...
//!
//! Rows are numbered from 0. Only what the row itself does not say is assigned, so the answer for a row never depends on
//! the rows before it.
#![forbid(unsafe_code)]

use core::fmt;

/// Increment of SplitMix64: 2^64 divided by the golden ratio, odd.
const GAMMA: u64 = 0x9e37_79b9_7f4a_7c15;

/// What is being assigned; keeps the three choices independent.
#[derive(Clone, Copy, Debug)]
#[repr(u64)]
enum What {
    Band = 1,
    Tenant = 2,
    Key = 3,
}

/// The seeded rule that assigns band, tenant and key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    /// Seed; another one gives another assignment of the same rows.
    pub seed: u64,
    /// Parts per priority, at least one above 0; empty: every provisioned band the same.
    pub mix: Vec<(i32, u32)>,
    /// Tenants to choose among, at least 1.
    pub tenants: u32,
    /// Keys per tenant to choose among, at least 1.
    pub keys: u32,
}

impl Default for Rule {
    /// Seed 1, the even mix, 16 tenants of 4 keys.
    fn default() -> Self {
        Self { seed: 1, mix: Vec::new(), tenants: 16, keys: 4 }
    }
}

/// Why a rule does not fit the bands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RuleError {
    /// The mix names a priority that is not provisioned.
    UnknownBand(i32),
    /// The mix names a priority twice.
    Twice(i32),
    /// No band has a part.
    EmptyMix,
    /// Tenants or keys are 0.
    NoTenants,
}

impl fmt::Display for RuleError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnknownBand(p) => write!(f, "the mix names band {p}, which is not provisioned"),
            Self::Twice(p) => write!(f, "the mix names band {p} twice"),
            Self::EmptyMix => f.write_str("the mix gives no band a part"),
            Self::NoTenants => f.write_str("tenants and keys must be at least 1"),
        }
    }
}

impl core::error::Error for RuleError {}

/// A rule laid out over the provisioned bands.
#[derive(Clone, Debug)]
pub struct Assigner {
    seed: u64,
    /// End of each band's stretch of the mix, highest priority first.
    ends: Vec<u64>,
    tenants: u32,
    keys: u32,
}

impl Rule {
    /// Lays the rule out over `priorities` (descending).
    pub fn over(&self, priorities: &[i32]) -> Result<Assigner, RuleError> {
        if self.tenants == 0 || self.keys == 0 {
            return Err(RuleError::NoTenants);
        }
        for (i, &(priority, _)) in self.mix.iter().enumerate() {
            if !priorities.contains(&priority) {
                return Err(RuleError::UnknownBand(priority));
            }
            if self.mix[..i].iter().any(|&(earlier, _)| earlier == priority) {
                return Err(RuleError::Twice(priority));
            }
        }
        let mut end = 0;
        let ends: Vec<u64> = priorities
            .iter()
            .map(|&priority| {
                end += self.parts(priority);
                end
            })
            .collect();
        if end == 0 {
            return Err(RuleError::EmptyMix);
        }
        Ok(Assigner { seed: self.seed, ends, tenants: self.tenants, keys: self.keys })
    }

    fn parts(&self, priority: i32) -> u64 {
        if self.mix.is_empty() {
            return 1;
        }
        self.mix.iter().find(|&&(p, _)| p == priority).map_or(0, |&(_, parts)| u64::from(parts))
    }
}

/// The rule in one line, for reports.
impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "seed {}: a row without a band gets one by hash(seed, row) in the mix ",
            self.seed
        )?;
        if self.mix.is_empty() {
            f.write_str("1 part each")?;
        }
        for (i, (priority, parts)) in self.mix.iter().enumerate() {
            write!(f, "{}{priority}={parts}", if i == 0 { "" } else { "," })?;
        }
        write!(
            f,
            "; one without a tenant one of {}; one without a key one of {}",
            self.tenants, self.keys
        )
    }
}

impl Assigner {
    fn hash(&self, row: u32, what: What) -> u64 {
        let stream = mix64(self.seed.wrapping_add((what as u64).wrapping_mul(GAMMA)));
        mix64(stream.wrapping_add(u64::from(row).wrapping_mul(GAMMA)))
    }

    /// Band index of this row, 0 the highest priority.
    pub fn band(&self, row: u32) -> usize {
        let parts = self.ends.last().copied().unwrap_or(1);
        let at = pick(self.hash(row, What::Band), parts);
        self.ends.partition_point(|&end| end <= at)
    }

    /// Tenant number of this row.
    pub fn tenant(&self, row: u32) -> u32 {
        pick32(self.hash(row, What::Tenant), self.tenants)
    }

    /// Key number of this row within its tenant.
    pub fn key(&self, row: u32) -> u32 {
        pick32(self.hash(row, What::Key), self.keys)
    }
}

/// SplitMix64's finaliser.
pub(super) fn mix64(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// A number below `n` from 64 hashed bits.
#[allow(clippy::cast_possible_truncation, reason = "the product's high half is below n")]
fn pick(hash: u64, n: u64) -> u64 {
    ((u128::from(hash) * u128::from(n)) >> 64) as u64
}

#[allow(clippy::cast_possible_truncation, reason = "the result is below n, which has 32 bits")]
fn pick32(hash: u64, n: u32) -> u32 {
    pick(hash, u64::from(n)) as u32
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]
    use super::{Rule, RuleError};

    #[test]
    fn a_row_is_assigned_the_same_whatever_came_before_and_differently_under_another_seed() {
        let one = Rule::default().over(&[20, 10, 0]).unwrap();
        let again = Rule::default().over(&[20, 10, 0]).unwrap();
        let other = Rule { seed: 2, ..Rule::default() }.over(&[20, 10, 0]).unwrap();
        let rows = |a: &super::Assigner| -> Vec<(usize, u32, u32)> {
            (0..1000).rev().map(|r| (a.band(r), a.tenant(r), a.key(r))).collect()
        };
        assert_eq!(rows(&one), rows(&again));
        assert_ne!(rows(&one), rows(&other));
    }

    #[test]
    fn the_assignment_of_seed_1_is_pinned() {
        let a = Rule::default().over(&[20, 10, 0]).unwrap();
        let first: Vec<(usize, u32, u32)> =
            (0..8).map(|r| (a.band(r), a.tenant(r), a.key(r))).collect();
        assert_eq!(first, PINNED);
    }

    /// Recomputed by an independent program from the formula in the module text.
    const PINNED: [(usize, u32, u32); 8] =
        [(2, 15, 1), (1, 7, 2), (2, 0, 1), (0, 0, 2), (2, 9, 0), (0, 6, 3), (2, 12, 0), (1, 6, 2)];

    #[test]
    fn shares_follow_the_mix() {
        let rule = Rule { mix: vec![(0, 5), (20, 2), (10, 3)], ..Rule::default() };
        let a = rule.over(&[20, 10, 5, 0]).unwrap();
        let mut counts = [0u32; 4];
        for row in 0..100_000 {
            counts[a.band(row)] += 1;
        }
        assert_eq!(counts[2], 0, "a band the mix leaves out gets nothing");
        for (count, expected) in counts.into_iter().zip([20_000u32, 30_000, 0, 50_000]) {
            assert!(count.abs_diff(expected) < 1_000, "{count} for {expected}");
        }
    }

    #[test]
    fn every_tenant_and_key_is_drawn_and_none_beyond() {
        let a = Rule { tenants: 7, keys: 3, ..Rule::default() }.over(&[0]).unwrap();
        let mut seen = [[false; 3]; 7];
        for row in 0..1000 {
            seen[a.tenant(row) as usize][a.key(row) as usize] = true;
            assert_eq!(a.band(row), 0);
        }
        assert!(seen.iter().flatten().all(|&s| s));
    }

    #[test]
    fn a_rule_that_does_not_fit_is_refused() {
        let over = |mix: &[(i32, u32)]| {
            Rule { mix: mix.to_vec(), ..Rule::default() }.over(&[20, 0]).map(|_| ()).unwrap_err()
        };
        assert_eq!(over(&[(5, 1)]), RuleError::UnknownBand(5));
        assert_eq!(over(&[(0, 1), (0, 2)]), RuleError::Twice(0));
        assert_eq!(over(&[(0, 0), (20, 0)]), RuleError::EmptyMix);
        assert_eq!(
            Rule { tenants: 0, ..Rule::default() }.over(&[0]).map(|_| ()).unwrap_err(),
            RuleError::NoTenants
        );
    }
}
