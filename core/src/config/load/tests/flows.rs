//! Fairness among flows and order within them.

use crate::types::policy::{Fairness, Order};

use super::{good, refused};

fn policies(text: &str) -> Vec<(i32, Fairness, Order)> {
    let settings = good(text).settings;
    settings.pools[0]
        .bands
        .iter()
        .map(|b| (b.priority, b.fairness.clone(), b.order.clone()))
        .collect()
}

#[test]
fn without_a_word_every_band_is_first_come_first_served_over_all_flows() {
    let plain = [(0, Fairness::GlobalStrict, Order::Fcfs)];
    assert_eq!(policies(""), plain);
    assert_eq!(policies("pools: {p: {}}"), plain);
}

#[test]
fn a_band_wins_over_its_pool_and_short_words_mean_the_types() {
    let text = "pools: {p: {fairness: round-robin, bands: [
        {priority: 3, order: edf-ordering-policy}, {priority: 2, fairness: global-strict},
        {priority: 1, order: slo-deadline}, {priority: 0, order: edf, fairness: {type: global-strict-fairness-policy}}]}}";
    let (strict, robin) = (Fairness::GlobalStrict, Fairness::RoundRobin);
    let expected = [
        (3, robin.clone(), Order::Edf),
        (2, strict.clone(), Order::Fcfs),
        (1, robin.clone(), Order::SloDeadline),
        (0, strict, Order::Edf),
    ];
    assert_eq!(policies(text), expected);
    let unlisted = "pools: {p: {fairness: round-robin}}";
    assert_eq!(policies(unlisted), [(0, robin, Order::Fcfs)]);
}

#[test]
fn the_seeds_references_reach_every_pool_and_agree_with_our_words() {
    let text = "plugins: [{type: round-robin-fairness-policy, name: rr}, {type: edf-ordering-policy}]
bands: [{priority: 0, order: edf}]
flowControl: {priorityBands: [{priority: 0, fairnessPolicyRef: rr, orderingPolicyRef: edf-ordering-policy}]}
pools: {p: {}}";
    assert_eq!(policies(text), [(0, Fairness::RoundRobin, Order::Edf)]);
}

#[test]
fn idle_flows_may_be_kept_for_ever() {
    let idle = |text: &str| good(text).settings.pools[0].flow_idle.map(|it| it.as_secs());
    assert_eq!((idle(""), idle("pools: {p: {}}")), (Some(600), Some(600)));
    assert_eq!(idle("pools: {p: {flowIdle: 90s}}"), Some(90));
    assert_eq!(idle("pools: {p: {flowIdle: unlimited}}"), None);
}

#[test]
fn what_names_nothing_or_another_kind_or_contradicts_itself_is_refused() {
    refused(&[
        (
            "bands: [{priority: 1, order: lifo}]",
            &[
                "t.yaml:1: bands[0].order: no ordering policy is named \"lifo\"; there are fcfs, edf, slo-deadline",
            ],
        ),
        (
            "bands: [{priority: 1, order: slo-deadlin}]",
            &[
                "t.yaml:1: bands[0].order: no ordering policy is named \"slo-deadlin\"; there are fcfs, edf, slo-deadline (did you mean slo-deadline)",
            ],
        ),
        (
            "pools: {p: {fairness: edf-ordering-policy}}",
            &[
                "t.yaml:1: pools.p.fairness: \"edf-ordering-policy\" is an ordering policy, a fairness policy is needed here",
            ],
        ),
        (
            "pools: {p: {fairness: edf}}",
            &[
                "t.yaml:1: pools.p.fairness: no fairness policy is named \"edf\"; there are global-strict, round-robin",
            ],
        ),
        (
            "plugins: [{type: edf-ordering-policy, parameters: {slack: 1}}]",
            &["t.yaml:1: plugins[0].parameters.slack: unknown key"],
        ),
        (
            "bands: [{priority: 5, order: fcfs}]\nflowControl: {priorityBands: [{priority: 5, orderingPolicyRef: edf-ordering-policy}]}",
            &[
                "t.yaml:2: flowControl.priorityBands[0].orderingPolicyRef: differs from bands[0].order: keep one of them",
            ],
        ),
    ]);
}
