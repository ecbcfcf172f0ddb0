//! Templates of bands, in both spellings, and what becomes of unknown priorities.

use core::time::Duration;

use crate::types::policy::{Fairness, Order};
use crate::types::template::{BandTemplate, Templates, UnknownPriority};

use super::{good, refused};

fn templates(text: &str) -> Templates {
    good(text).settings.pools[0].templates.clone()
}

const fn like(fairness: Fairness, order: Order) -> BandTemplate {
    BandTemplate { fairness, order }
}

const PLAIN: BandTemplate = like(Fairness::GlobalStrict, Order::Fcfs);
const ROBIN: BandTemplate = like(Fairness::RoundRobin, Order::Edf);

#[test]
fn without_a_word_an_unknown_priority_is_an_error() {
    for text in ["", "pools: {p: {}}", "pools: {p: {unknownPriority: error}}"] {
        assert_eq!(templates(text), Templates::NONE, "{text}");
    }
    let ten = Duration::from_secs(600);
    assert_eq!(Templates::NONE.idle, Some(ten));
}

#[test]
fn a_pool_has_a_template_for_each_sign_and_room_for_what_it_makes() {
    let text =
        "pools: {p: {unknownPriority: template, fairness: round-robin, bandTemplate: {order: edf},
        negativeBandTemplate: {fairness: global-strict}, bandIdle: 90s}}";
    let all = templates(text);
    assert_eq!((all.unknown, all.idle), (UnknownPriority::Template, Some(Duration::from_secs(90))));
    assert_eq!((all.of(7), all.of(0), all.of(-1)), (&ROBIN, &ROBIN, &PLAIN));
    // The negative one falls back to the other.
    let one = templates("pools: {p: {bandTemplate: {fairness: round-robin, order: edf}}}");
    assert_eq!((one.of(-1), templates("pools: {p: {bandIdle: unlimited}}").idle), (&ROBIN, None));
    let room = |text: &str| good(text).settings.pools[0].most_bands();
    assert_eq!(room("pools: {p: {bands: [{priority: 5}]}}"), 2);
    assert_eq!(room("pools: {p: {unknownPriority: template}}"), 16);
    assert_eq!(room("pools: {p: {unknownPriority: template, maxBands: 3}}"), 3);
}

#[test]
fn the_seeds_default_bands_are_the_templates_of_pools_that_state_none() {
    let seeds = "plugins: [{type: round-robin-fairness-policy, name: rr}]
flowControl: {defaultPriorityBand: {priority: 0, fairnessPolicyRef: rr, orderingPolicyRef: edf-ordering-policy},
  defaultNegativePriorityBand: {fairnessPolicyRef: global-strict-fairness-policy}}\n";
    let all = templates(seeds);
    assert_eq!((all.of(3), all.of(-3), all.unknown), (&ROBIN, &PLAIN, UnknownPriority::Error));
    let own = templates(&format!("{seeds}pools: {{p: {{bandTemplate: {{}}}}}}"));
    assert_eq!((own.of(3), own.of(-3)), (&PLAIN, &PLAIN));
}

#[test]
fn what_is_no_policy_or_out_of_range_is_refused_with_its_path() {
    refused(&[(
        "pools: {p: {unknownPriority: zero, bandIdle: 0s, bandTemplate: {order: lifo, name: x}}}",
        &[
            "t.yaml:1: pools.p.unknownPriority: \"zero\" is not one of the choices: use `error` or `template`",
            "t.yaml:1: pools.p.bandIdle: 0s would remove every band between two requests: use a longer time, or `unlimited`",
            "t.yaml:1: pools.p.bandTemplate.order: no ordering policy is named \"lifo\"; there are fcfs, edf, slo-deadline",
            "t.yaml:1: pools.p.bandTemplate.name: unknown key",
        ],
    )]);
}
