//! Gates that flap: nobody who may run again and again is passed over for ever.

use bandgate_core::types::policy::Schedule;
use proptest::prelude::*;

use crate::bands::{CREDITS, all, policy, reduced, seeded, serve};

/// Gates over time: by ceilings (an open prefix of the bands), each band for itself, or a short pattern for ever.
fn gates() -> impl Strategy<Value = Vec<u64>> {
    let prefix = (1_u32..=8).prop_map(|open| u64::MAX >> (64 - open));
    prop_oneof![
        prop::collection::vec(prefix.clone(), 1500),
        prop::collection::vec(any::<u64>(), 1500),
        prop::collection::vec(prefix, 2..7).prop_map(|p| p
            .into_iter()
            .cycle()
            .take(1500)
            .collect()),
        prop::collection::vec(any::<u64>(), 2..7).prop_map(|p| p
            .into_iter()
            .cycle()
            .take(1500)
            .collect()),
    ]
}

/// The longest run of decisions a band was eligible in and not chosen, per band.
fn longest_passed_over(schedule: Schedule, weights: &[u32], gates: &[u64]) -> Vec<u64> {
    let n = weights.len();
    let mut policy = policy(schedule, weights);
    let (mut passed, mut longest) = (vec![0_u64; n], vec![0_u64; n]);
    for gate in gates {
        let eligible = gate & all(n);
        let chosen = serve(&mut policy, eligible, all(n));
        for i in (0..n).filter(|i| eligible >> i & 1 == 1) {
            passed[i] = if chosen == Some(i) { 0 } else { passed[i] + 1 };
            longest[i] = longest[i].max(passed[i]);
        }
    }
    longest
}

proptest! {
    #![proptest_config(seeded(2))]

    // Before it others may have what they held in credit and carry when it was last served, and, once a round turned and
    // it is owed itself, one quota each.
    #[test]
    fn credits_pass_nobody_over_for_more_than_four_rounds(
        weights in prop::collection::vec(1_u32..=9, 2..=6),
        gates in gates(),
    ) {
        let round: u64 = reduced(&weights).iter().sum();
        let longest = longest_passed_over(CREDITS, &weights, &gates);
        prop_assert!(longest.iter().all(|l| *l <= 4 * round), "{longest:?} round {round}");
    }

    #[test]
    fn virtual_time_passes_nobody_over_for_long(
        weights in prop::collection::vec(1_u32..=9, 2..=6),
        gates in gates(),
    ) {
        let reduced = reduced(&weights);
        let longest = longest_passed_over(Schedule::Interleaved, &weights, &gates);
        for (i, longest) in longest.iter().enumerate() {
            let stride: u64 = reduced.iter().map(|v| v / reduced[i] + 1).sum();
            prop_assert!(*longest <= 4 * stride, "band {i}: {longest} with {stride} a stride");
        }
    }
}
