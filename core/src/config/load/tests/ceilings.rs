//! What the usage limit policies read into the settings.

use crate::types::policy::{
    ActiveBands, Adaptive, Curve, Holdback, HoldbackDomain, Pressed, Rest, Shape, Signal,
};

use super::good;
use super::policies::ceilings;

fn read(parameters: &str) -> Holdback {
    good(&ceilings(parameters)).settings.pools[0].holdback.clone()
}

const LINE: Curve = Curve::linear(HoldbackDomain::Rank, 0.25, 0.75);
const SPAN: &str = "minCeiling: 0.25, maxCeiling: 0.75";

#[test]
fn every_spelling_of_a_sigmoid_means_the_same() {
    let shape = Shape::Sigmoid { steepness: 8.0, midpoint: 0.5 };
    let sigmoid = |domain| Holdback::Curve(Curve { shape, domain, ..LINE });
    for (spelling, domain) in [
        ("shape: sigmoid", HoldbackDomain::Rank),
        ("strategy: sigmoid-smoothed", HoldbackDomain::Rank),
        ("strategy: sigmoid-smoothed, shape: sigmoid, domain: value", HoldbackDomain::Value),
        ("shape: sigmoid, sigmoidDomain: value", HoldbackDomain::Value),
        ("shape: sigmoid, sigmoidDomain: value, domain: value", HoldbackDomain::Value),
    ] {
        assert_eq!(read(&format!("{SPAN}, {spelling}")), sigmoid(domain), "{spelling}");
    }
    let shape = Shape::Sigmoid { steepness: 700.0, midpoint: 1.0 };
    let own = format!("{SPAN}, shape: sigmoid, sigmoidSteepness: 700, sigmoidMidpoint: 1");
    assert_eq!(read(&own), Holdback::Curve(Curve { shape, ..LINE }));
}

#[test]
fn every_spelling_of_a_list_means_the_same() {
    let listed = Holdback::Explicit { ceilings: vec![(9, 1.0), (0, 0.5)], default: None };
    for spelling in [
        "domain: explicit",
        "strategy: static",
        "shape: explicit",
        "shape: static, domain: explicit, strategy: static",
    ] {
        assert_eq!(read(&format!("{spelling}, ceilings: {{0: 0.5, 9: 1}}")), listed, "{spelling}");
    }
}

#[test]
fn busy_bands_and_adaptive_ceilings_are_read_with_their_defaults() {
    let busy = Curve { active: ActiveBands::Busy, ..LINE };
    assert_eq!(read(&format!("{SPAN}, activeBands: busy")), Holdback::Curve(busy));
    let adaptive = |text: &str| match read(text) {
        Holdback::Adaptive(adaptive) => adaptive,
        other => panic!("{other:?}"),
    };
    let plain = Adaptive {
        pressed: Pressed::Curve(LINE),
        rest: Rest::All(0.75),
        signal: Signal::Saturation,
        target: 0.5,
        full: 1.0,
        recovery_rate: 0.1,
    };
    assert_eq!(adaptive(&format!("{SPAN}, adaptive: {{target: 0.5}}")), plain);
    let text = format!(
        "{SPAN}, activeBands: busy, adaptive: {{signal: queueDepth, target: 0, full: 2.5, recoveryRate: 4, restCeiling: 0.5}}"
    );
    let other = Adaptive {
        pressed: Pressed::Curve(busy),
        rest: Rest::All(0.5),
        signal: Signal::QueueDepth,
        target: 0.0,
        full: 2.5,
        recovery_rate: 4.0,
    };
    assert_eq!(adaptive(&text), other);
    let lists = "domain: explicit, ceilings: {5: 1, 0: 0.25}, adaptive: {target: 0, restCeilings: {7: 1, 0: 0.5}}";
    assert_eq!(adaptive(lists).rest, Rest::Each(vec![(7, 1.0), (0, 0.5)]));
    let bands: Vec<i32> =
        good(&ceilings(lists)).settings.pools[0].bands.iter().map(|b| b.priority).collect();
    assert_eq!(bands, [7, 5, 0], "what the lists name is provisioned");
}

#[test]
fn limits_without_needed_parameters_may_be_named_alone() {
    let of = |text: &str| good(text).settings.pools[0].holdback.clone();
    let reference = |name: &str| of(&format!("flowControl: {{usageLimitPolicyPluginRef: {name}}}"));
    assert_eq!(reference("static-usage-limit-policy"), Holdback::Static { threshold: 1.0 });
    assert_eq!(reference("soft-reflective-ceiling-policy"), Holdback::SoftReflective);
    let own =
        "pools: {p: {holdback: {type: static-usage-limit-policy, parameters: {threshold: 0.8}}}}";
    assert_eq!(of(own), Holdback::Static { threshold: 0.8 });
}
