//! Shares and waits while nothing is gated, and what holds for any input at all.

use bandgate_core::select::band::{BandPolicy, Order};
use bandgate_core::types::policy::Schedule;
use proptest::prelude::*;

use crate::bands::{CREDITS, OFF, ON, all, policy, priorities, reduced, seeded, selection, serve};

fn schedule() -> impl Strategy<Value = Schedule> {
    prop_oneof![
        Just(Schedule::Interleaved),
        prop::option::of(1_u32..40)
            .prop_map(|max_fairness_window| { Schedule::PriorityFirst { max_fairness_window } }),
    ]
}

fn any_weights() -> impl Strategy<Value = Vec<u32>> {
    prop_oneof![
        prop::collection::vec(0_u32..=12, 1..=8),
        prop::collection::vec(1_u32..=1 << 20, 1..=64),
        prop::collection::vec(prop_oneof![Just(1_u32), Just(1 << 20)], 64),
    ]
}

fn check_invariants(policy: &BandPolicy) -> Result<(), TestCaseError> {
    if let (Some(credit), Some(carry), Some(quota)) =
        (policy.credits(), policy.carry(), policy.quota())
    {
        for ((credit, carry), quota) in credit.iter().zip(carry).zip(quota) {
            prop_assert!(credit <= quota && carry <= quota, "{credit} {carry} {quota}");
        }
    }
    if let Some((times, unit)) = policy.virtual_times() {
        prop_assert!(unit <= 1 << 40);
        prop_assert!(times.iter().all(|time| *time < 1 << 62));
    }
    Ok(())
}

/// `rank` is a permutation, the gated last, and starts as repeated `best` does.
fn check_rank(policy: &BandPolicy, n: usize, eligible: u64) -> Result<(), TestCaseError> {
    let mut order = Order::new();
    policy.rank(eligible, &mut order);
    let mut left = eligible;
    for band in &order[..eligible.count_ones() as usize] {
        prop_assert_eq!(policy.best(left), Some(u32::from(*band)));
        left &= !(1 << band);
    }
    prop_assert_eq!(left, 0);
    order.sort_unstable();
    prop_assert!(order.iter().map(|b| usize::from(*b)).eq(0..n));
    Ok(())
}

proptest! {
    #![proptest_config(seeded(1))]

    #[test]
    fn whatever_happens_somebody_who_waits_is_chosen_and_the_state_stays_in_bounds(
        schedule in schedule(),
        weights in any_weights(),
        steps in prop::collection::vec((any::<u64>(), any::<u64>(), 0_u8..20), 120),
    ) {
        let n = weights.len();
        let mut policy = policy(schedule, &weights);
        let mut bands = priorities(n);
        for (now, (gates, waiting, what)) in steps.into_iter().enumerate() {
            if what == 0 {
                let kept = |(i, _): &(usize, i32)| waiting >> i & 1 == 1;
                bands = priorities(n).into_iter().enumerate().filter(kept).map(|(_, p)| p).collect();
                policy.set_bands(&bands);
            }
            let present = if bands.is_empty() { 0 } else { all(bands.len()) };
            let eligible = present & gates;
            let reading = if what == 1 { OFF } else { ON };
            policy.begin(reading, eligible, || now as u64 * 300);
            let candidates = eligible & waiting;
            let best = policy.best(candidates);
            prop_assert_eq!(best.is_some(), candidates != 0, "work-conserving");
            if what != 1 {
                check_rank(&policy, bands.len(), eligible)?;
            }
            if let Some(band) = best {
                prop_assert!(candidates >> band & 1 == 1);
                policy.record(eligible, band);
            }
            check_invariants(&policy)?;
        }
    }

    #[test]
    fn credits_give_exact_shares_each_round_and_bound_every_wait_by_it(
        weights in prop::collection::vec(1_u32..=15, 2..=8),
        window in prop::option::of(1_u32..60),
    ) {
        let n = weights.len();
        let mut policy = policy(Schedule::PriorityFirst { max_fairness_window: window }, &weights);
        let (quota, round) = (policy.quota().unwrap().to_vec(), policy.round().unwrap());
        prop_assert!(window.is_none_or(|w| round <= u64::from(w).max(n as u64)));
        let (mut served, mut waited) = (vec![0_u64; n], vec![0_u64; n]);
        for dispatch in 1..=4 * round {
            let band = serve(&mut policy, all(n), all(n)).unwrap();
            served[band] += 1;
            for i in 0..n {
                waited[i] = if i == band { 0 } else { waited[i] + 1 };
                prop_assert!(waited[i] <= round - quota[i], "band {i} waits {}", waited[i]);
                let whole = dispatch / round * quota[i];
                prop_assert!((whole..=whole + quota[i]).contains(&served[i]));
            }
        }
        prop_assert!(served.iter().zip(&quota).all(|(s, q)| *s == 4 * q));
    }

    #[test]
    fn with_others_coming_and_going_a_busy_band_waits_two_rounds_at_most(
        weights in prop::collection::vec(1_u32..=9, 2..=6),
        busy in 0_usize..6,
        waiting in prop::collection::vec(any::<u64>(), 400),
    ) {
        let (n, busy) = (weights.len(), busy % weights.len());
        let mut policy = policy(CREDITS, &weights);
        let bound = 2 * (policy.round().unwrap() - policy.quota().unwrap()[busy]);
        let mut waited = 0;
        for waiting in waiting {
            let band = serve(&mut policy, all(n), waiting | 1 << busy).unwrap();
            waited = if band == busy { 0 } else { waited + 1 };
            prop_assert!(waited <= bound, "{waited} > {bound}");
        }
    }

    // Over one stride of the band, 1 / w, each other band starts at most floor(v / w) + 1 items of stride 1 / v.
    #[test]
    fn interleaved_keeps_shares_and_waits_within_a_stride_of_each_band(
        weights in prop::collection::vec(1_u32..=15, 2..=8),
    ) {
        let (n, reduced) = (weights.len(), reduced(&weights));
        let sum: u64 = reduced.iter().sum();
        let mut policy = policy(Schedule::Interleaved, &weights);
        let (mut served, mut waited) = (vec![0_u64; n], vec![0_u64; n]);
        for dispatch in 1..=3 * sum {
            let band = serve(&mut policy, all(n), all(n)).unwrap();
            served[band] += 1;
            for i in 0..n {
                let others = || reduced.iter().enumerate().filter(|(j, _)| *j != i);
                let bound: u64 = others().map(|(_, v)| v / reduced[i] + 1).sum();
                waited[i] = if i == band { 0 } else { waited[i] + 1 };
                prop_assert!(waited[i] <= bound, "band {i} waits {} of {bound}", waited[i]);
                // share error, times the sum: from -n strides to one item
                let (has, due) = (served[i] * sum, dispatch * reduced[i]);
                prop_assert!(has <= due + sum && due <= has + n as u64 * reduced[i]);
            }
        }
        prop_assert!(served.iter().zip(&reduced).all(|(s, w)| *s == 3 * w));
    }

    #[test]
    fn weights_without_a_small_common_multiple_still_share_by_weight(
        weights in prop::collection::vec(900_000_u32..=1 << 20, 5..=64),
    ) {
        let n = weights.len();
        let mut policy = policy(Schedule::Interleaved, &weights);
        let sum: u64 = weights.iter().map(|w| u64::from(*w)).sum();
        let mut served = vec![0_u64; n];
        for _ in 0..n * 40 {
            served[serve(&mut policy, all(n), all(n)).unwrap()] += 1;
        }
        for (served, weight) in served.iter().zip(&weights) {
            let due = n as u64 * 40 * u64::from(*weight) / sum;
            prop_assert!(served.abs_diff(due) <= 3, "{served} of {due}");
        }
    }

    #[test]
    fn short_dips_below_the_threshold_leave_the_weighted_order_as_it_was(
        schedule in schedule(),
        weights in prop::collection::vec(1_u32..=9, 2..=6),
        dips in prop::collection::vec(any::<bool>(), 200),
    ) {
        let n = weights.len();
        let mut steady = policy(schedule, &weights);
        let mut toggled = policy(schedule, &weights);
        for (now, dip) in dips.into_iter().enumerate() {
            toggled.begin(if dip { OFF } else { ON }, all(n), || now as u64);
            let band = toggled.best(all(n)).unwrap();
            toggled.record(all(n), band);
            let expected = if dip { 0 } else { serve(&mut steady, all(n), all(n)).unwrap() };
            prop_assert_eq!(band as usize, expected);
        }
    }

    #[test]
    fn a_change_of_bands_keeps_the_pair_ratio_of_those_that_stay(
        weights in prop::collection::vec(1_u32..=9, 3..=6),
        schedule in prop_oneof![Just(CREDITS), Just(Schedule::Interleaved)],
        at in 0_usize..50,
    ) {
        let n = weights.len();
        let mut policy = BandPolicy::new(&selection(schedule, &weights), &priorities(n));
        for _ in 0..at {
            serve(&mut policy, all(n), all(n)).unwrap();
        }
        policy.set_bands(&priorities(n)[..2]);
        let sum = u64::from(weights[0] + weights[1]);
        let mut served = [0_u64; 2];
        for _ in 0..20 * sum {
            served[serve(&mut policy, 0b11, 0b11).unwrap()] += 1;
        }
        // At most what was left of the old round, and one new round, off.
        let due = 20 * u64::from(weights[0]);
        prop_assert!(served[0].abs_diff(due) <= sum, "{served:?} of {due}");
    }
}
