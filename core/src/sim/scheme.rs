//! The order over the bands in numbers, asked of the engine's own policy: what `check` prints and reports carry.
#![forbid(unsafe_code)]

use std::collections::BTreeMap;

use crate::{
    select::band::BandPolicy,
    types::policy::{BandSelection, Schedule},
};

/// Weights, credits and round of one pool.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Scheme {
    /// `strict`, `wfq priority-first` or `wfq interleaved`.
    pub schedule: String,
    /// Weight per priority, without a common divisor; empty under strict.
    pub weights: BTreeMap<i32, u64>,
    /// Credits of a round per priority; empty unless the schedule is priority-first.
    pub credits: BTreeMap<i32, u64>,
    /// Dispatches of one round: the credits' sum, for the interleaved schedule the weights' sum; 0 under strict.
    pub round: u64,
}

impl Scheme {
    /// What `selection` makes of these priorities (unique, descending, at most 64).
    pub fn of(selection: &BandSelection, priorities: &[i32]) -> Self {
        let policy = BandPolicy::new(selection, priorities);
        let (BandSelection::Wfq(params), Some(wfq)) = (selection, policy.wfq()) else {
            return Self { schedule: "strict".into(), ..Self::default() };
        };
        let by_priority = |values: &[u64]| -> BTreeMap<i32, u64> {
            priorities.iter().copied().zip(values.iter().copied()).collect()
        };
        let weights = wfq.weights().reduced();
        let schedule = match params.schedule {
            Schedule::PriorityFirst { .. } => "wfq priority-first",
            Schedule::Interleaved => "wfq interleaved",
        };
        Self {
            schedule: schedule.into(),
            credits: policy.quota().map(by_priority).unwrap_or_default(),
            round: policy.round().unwrap_or_else(|| weights.iter().sum()),
            weights: by_priority(weights),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Scheme;
    use crate::types::policy::{BandSelection, Distribution, Ratio, Schedule, WfqParams};

    fn wfq(schedule: Schedule) -> BandSelection {
        BandSelection::Wfq(WfqParams {
            activation: 0.5,
            deactivation: 0.5,
            retention_ns: 0,
            schedule,
            distribution: Distribution::Explicit {
                ratios: vec![(20, Ratio(6000)), (10, Ratio(3000)), (0, Ratio(1000))],
                default_ratio: None,
            },
        })
    }

    #[test]
    fn ratios_of_60_30_10_are_a_round_of_10() {
        let one =
            Scheme::of(&wfq(Schedule::PriorityFirst { max_fairness_window: None }), &[20, 10, 0]);
        assert_eq!((one.schedule.as_str(), one.round), ("wfq priority-first", 10));
        let values = |map: &std::collections::BTreeMap<i32, u64>| -> Vec<(i32, u64)> {
            map.iter().map(|(&p, &w)| (p, w)).collect()
        };
        assert_eq!(values(&one.weights), [(0, 1), (10, 3), (20, 6)]);
        assert_eq!(values(&one.credits), [(0, 1), (10, 3), (20, 6)]);
        let other = Scheme::of(&wfq(Schedule::Interleaved), &[20, 10, 0]);
        assert_eq!((other.schedule.as_str(), other.round), ("wfq interleaved", 10));
        assert!(other.credits.is_empty());
    }

    #[test]
    fn a_window_shortens_the_round_and_strict_has_none() {
        let window = Schedule::PriorityFirst { max_fairness_window: Some(5) };
        let short = Scheme::of(&wfq(window), &[20, 10, 0]);
        assert_eq!(short.round, 5);
        assert_eq!(short.credits.values().sum::<u64>(), 5);
        let strict = Scheme::of(&BandSelection::Strict, &[20, 10, 0]);
        assert_eq!(strict, Scheme { schedule: "strict".into(), ..Scheme::default() });
    }
}
