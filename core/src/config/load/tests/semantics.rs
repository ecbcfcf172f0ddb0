//! What spans several keys: policies, references, provisioned bands, ceilings.

use crate::types::policy::{
    BandSelection, Curve, Distribution, Holdback, HoldbackDomain, Ratio, Schedule,
};

use super::{good, load};

fn priorities(text: &str) -> Vec<i32> {
    good(text).settings.pools[0].bands.iter().map(|b| b.priority).collect()
}

fn holdback(text: &str) -> Holdback {
    good(text).settings.pools[0].holdback.clone()
}

#[test]
fn named_priorities_and_zero_are_provisioned() {
    assert_eq!(
        priorities("flowControl: {priorityBands: [{priority: -3}, {priority: 9}]}"),
        [9, 0, -3]
    );
    assert_eq!(
        priorities(
            "bands: [{priority: 5}]\nflowControl: {priorityBands: [{priority: 9, name: x}, {priority: 5, name: y}]}"
        ),
        [9, 5, 0]
    );
    let ratios = "{type: cross-band-fairness-policy, parameters: {activationThreshold: 0.1, distribution: explicit, ratios: {7: 0.4, -1: 0.6}}}";
    assert_eq!(priorities(&format!("pools: {{a: {{bandSelection: {ratios}}}}}")), [7, 0, -1]);
    let ceilings = "{type: priority-holdback-policy, parameters: {domain: explicit, ceilings: {8: 1, 2: 0.5}}}";
    assert_eq!(priorities(&format!("pools: {{a: {{holdback: {ceilings}}}}}")), [8, 2, 0]);
}

#[test]
fn the_older_name_of_the_reference_is_an_alias() {
    let plugin = "plugins: [{type: cross-band-fairness-policy, name: w, parameters: {activationThreshold: 0.5}}]\n";
    for reference in [
        "{bandSelectionPolicyPluginRef: w}",
        "{dispatchPolicyPluginRef: w}",
        "{dispatchPolicyPluginRef: w, bandSelectionPolicyPluginRef: w}",
    ] {
        let config = good(&format!("{plugin}flowControl: {reference}"));
        assert!(matches!(config.settings.pools[0].selection, BandSelection::Wfq(_)), "{reference}");
    }
}

#[test]
fn a_pool_may_name_a_plugin_a_type_or_write_it_out() {
    let head = "plugins: [{type: cross-band-fairness-policy, name: w, parameters: {activationThreshold: 0.5}}]\n\
        flowControl: {bandSelectionPolicyPluginRef: w}\npools: ";
    let wfq = |pool: &str| {
        let config = good(&format!("{head}{{p: {pool}}}"));
        matches!(config.settings.pools[0].selection, BandSelection::Wfq(_))
    };
    assert!(wfq("{}"));
    assert!(wfq("{bandSelection: w}"));
    assert!(!wfq("{bandSelection: strict-band-selection-policy}"));
    assert!(!wfq("{bandSelection: {type: strict-band-selection-policy}}"));
    assert!(wfq(
        "{bandSelection: {type: cross-band-fairness-policy, parameters: {activationThreshold: 0.2}}}"
    ));
}

#[test]
fn every_parameter_of_the_weights_is_read() {
    let text = "pools: {p: {bandSelection: {type: cross-band-fairness-policy, parameters: {activationThreshold: 0.8, \
        deactivationThreshold: 0.25, stateRetention: 250ms, schedule: priority-first, distribution: explicit, \
        ratios: {20: 0.99995, 10: 0.00005, 0: 0}, defaultRatio: 0.5, maxFairnessWindow: 20}}}}";
    let BandSelection::Wfq(params) = good(text).settings.pools[0].selection.clone() else {
        panic!("wfq")
    };
    assert!((params.activation - 0.8).abs() < 1e-12 && (params.deactivation - 0.25).abs() < 1e-12);
    assert_eq!(params.retention_ns, 250_000_000);
    assert_eq!(params.schedule, Schedule::PriorityFirst { max_fairness_window: Some(20) });
    let ratios = vec![(20, Ratio(10_000)), (10, Ratio(1)), (0, Ratio(0))];
    assert_eq!(
        params.distribution,
        Distribution::Explicit { ratios, default_ratio: Some(Ratio(5_000)) }
    );
    let text = "pools: {p: {bandSelection: {type: cross-band-fairness-policy, parameters: {activationThreshold: 0.8, anchorPriority: -7}}}}";
    let BandSelection::Wfq(params) = good(text).settings.pools[0].selection.clone() else {
        panic!("wfq")
    };
    assert_eq!(params.distribution, Distribution::Proportional { anchor: Some(-7) });
}

#[test]
fn parameters_of_another_distribution_or_schedule_are_ignored_with_a_warning() {
    let text = "pools:\n  p:\n    bandSelection:\n      type: cross-band-fairness-policy\n      parameters:\n        activationThreshold: 0.5\n        distribution: linear\n        schedule: interleaved\n        ratios: {1: 0.5}\n        defaultRatio: 0.1\n        anchorPriority: 3\n        maxFairnessWindow: 9\n";
    let shown: Vec<String> = load(text).unwrap().warnings.iter().map(ToString::to_string).collect();
    let path = "pools.p.bandSelection.parameters";
    assert_eq!(
        shown,
        [
            format!("t.yaml:9: {path}.ratios: ignored, because distribution is linear"),
            format!("t.yaml:10: {path}.defaultRatio: ignored, because distribution is linear"),
            format!("t.yaml:11: {path}.anchorPriority: ignored, because distribution is linear"),
            format!(
                "t.yaml:12: {path}.maxFairnessWindow: ignored, because schedule is interleaved"
            ),
        ]
    );
}

#[test]
fn both_spellings_of_the_holdback_mean_the_same() {
    let read = |parameters: &str| {
        holdback(&format!(
            "pools: {{p: {{holdback: {{type: priority-holdback-policy, parameters: {parameters}}}}}}}"
        ))
    };
    let linear = |domain| Holdback::Curve(Curve::linear(domain, 0.25, 0.75));
    let span = "minCeiling: 0.25, maxCeiling: 0.75";
    for rank in [
        "",
        ", shape: linear",
        ", domain: rank",
        ", strategy: stepwise-spread",
        ", strategy: stepwise-spread, domain: rank",
    ] {
        assert_eq!(read(&format!("{{{span}{rank}}}")), linear(HoldbackDomain::Rank), "{rank}");
    }
    for value in [", domain: value", ", strategy: linear-proportional"] {
        assert_eq!(read(&format!("{{{span}{value}}}")), linear(HoldbackDomain::Value), "{value}");
    }
    for explicit in ["domain: explicit", "strategy: static", "strategy: static, domain: explicit"] {
        let ceilings = vec![(20, 1.0), (0, 0.5)];
        assert_eq!(
            read(&format!(
                "{{{explicit}, ceilings: {{0: 0.5, 20: 1}}, defaultStaticCeiling: 0.4}}"
            )),
            Holdback::Explicit { ceilings, default: Some(0.4) },
            "{explicit}"
        );
    }
}

#[test]
fn a_band_without_a_ceiling_has_that_of_the_next_band_above() {
    let text = "bands: [{priority: 30}, {priority: 10, ceiling: 0.5}, {priority: 20}, {priority: -1, ceiling: 0.25}]";
    let ceilings = vec![(30, 1.0), (20, 1.0), (10, 0.5), (0, 0.5), (-1, 0.25)];
    assert_eq!(holdback(text), Holdback::Explicit { ceilings, default: None });
}

#[test]
fn the_nearest_statement_about_ceilings_wins() {
    let plugin =
        "plugins: [{type: priority-holdback-policy, name: h, parameters: {minCeiling: 0.5}}]\n";
    let inherited = format!("{plugin}flowControl: {{usageLimitPolicyPluginRef: h}}\n");
    let linear = Holdback::Curve(Curve::linear(HoldbackDomain::Rank, 0.5, 1.0));
    assert_eq!(holdback(&inherited), linear);
    assert_eq!(holdback(&format!("{inherited}pools: {{p: {{bands: [{{priority: 1}}]}}}}")), linear);
    let own =
        holdback(&format!("{inherited}pools: {{p: {{bands: [{{priority: 0, ceiling: 0.125}}]}}}}"));
    assert_eq!(own, Holdback::Explicit { ceilings: vec![(0, 0.125)], default: None });
    let over = holdback(&format!(
        "{plugin}bands: [{{priority: 1, ceiling: 0.1}}]\npools: {{p: {{holdback: h}}}}"
    ));
    assert_eq!(over, linear);
}
