//! What the band tests share: policies out of weights, one decision, seeded cases.

use bandgate_core::select::band::BandPolicy;
use bandgate_core::types::policy::{
    BandSelection, Distribution, Ratio, Reading, Schedule, WfqParams,
};
use proptest::test_runner::{Config, RngSeed};

pub(crate) const ON: Reading = Reading { activates: true, stays_active: true };
pub(crate) const OFF: Reading = Reading { activates: false, stays_active: false };

pub(crate) const CREDITS: Schedule = Schedule::PriorityFirst { max_fairness_window: None };

/// Bounded and repeatable: the same cases on every machine.
pub(crate) fn seeded(seed: u64) -> Config {
    Config {
        cases: 96,
        rng_seed: RngSeed::Fixed(seed),
        failure_persistence: None,
        ..Config::default()
    }
}

/// Priorities n-1..=0 for n bands.
pub(crate) fn priorities(n: usize) -> Vec<i32> {
    (0..i32::try_from(n).unwrap()).rev().collect()
}

pub(crate) fn selection(schedule: Schedule, weights: &[u32]) -> BandSelection {
    let ratios = priorities(weights.len()).into_iter().zip(weights.iter().map(|w| Ratio(*w)));
    BandSelection::Wfq(WfqParams {
        activation: 0.0,
        deactivation: 0.0,
        retention_ns: 1_000,
        schedule,
        distribution: Distribution::Explicit { ratios: ratios.collect(), default_ratio: None },
    })
}

pub(crate) fn policy(schedule: Schedule, weights: &[u32]) -> BandPolicy {
    BandPolicy::new(&selection(schedule, weights), &priorities(weights.len()))
}

pub(crate) fn all(n: usize) -> u64 {
    u64::MAX >> (64 - n)
}

/// One decision: `None` if nobody waits.
pub(crate) fn serve(policy: &mut BandPolicy, eligible: u64, waiting: u64) -> Option<usize> {
    policy.begin(ON, eligible, || 0);
    let band = policy.best(eligible & waiting)?;
    policy.record(eligible, band);
    Some(band as usize)
}

/// Weights over their greatest common divisor, as the policy reduces them.
pub(crate) fn reduced(weights: &[u32]) -> Vec<u64> {
    let gcd = weights.iter().fold(0, |mut a, b| {
        let mut b = u64::from(*b);
        while b != 0 {
            (a, b) = (b, a % b);
        }
        a
    });
    weights.iter().map(|w| u64::from(*w) / gcd.max(1)).collect()
}
