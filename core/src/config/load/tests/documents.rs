//! The documents others already have, and what ours mean.

use core::time::Duration;

use crate::types::policy::{
    BandSelection, Curve, Distribution, Holdback, HoldbackDomain, Ratio, Schedule, Shape, WfqParams,
};
use crate::types::settings::{BandSettings, DriverKind, PoolSettings, Settings};

use super::{good, load};

fn wfq(schedule: Schedule, distribution: Distribution) -> BandSelection {
    BandSelection::Wfq(WfqParams {
        activation: 0.5,
        deactivation: 0.5,
        retention_ns: 5_000_000_000,
        schedule,
        distribution,
    })
}

const CREDITS: Schedule = Schedule::PriorityFirst { max_fairness_window: None };

/// A pool that differs from the default one in its policies and bands.
fn pool(priorities: &[i32], selection: BandSelection, holdback: Holdback) -> Vec<PoolSettings> {
    let mut pool = PoolSettings::new("default", 32).with_bands(priorities);
    pool.selection = selection;
    pool.holdback = holdback;
    vec![pool]
}

fn linear(domain: HoldbackDomain) -> Holdback {
    Holdback::Curve(Curve::linear(domain, 0.3, 1.0))
}

#[test]
fn the_explicit_document_loads_byte_for_byte() {
    let config = good(include_str!("../../../../tests/configs/wfq-explicit.yaml"));
    let ratios = vec![(20, Ratio(7_000)), (10, Ratio(2_000)), (0, Ratio(1_000))];
    let distribution = Distribution::Explicit { ratios, default_ratio: None };
    let pools = pool(&[20, 10, 0], wfq(CREDITS, distribution), Holdback::None);
    assert_eq!(config.settings, Settings { pools, ..Settings::default() });
}

#[test]
fn the_interleaved_linear_document_loads_byte_for_byte() {
    let config = good(include_str!("../../../../tests/configs/wfq-interleaved-linear.yaml"));
    let selection = wfq(Schedule::Interleaved, Distribution::Linear);
    let pools = pool(&[0], selection, linear(HoldbackDomain::Rank));
    assert_eq!(config.settings, Settings { pools, ..Settings::default() });
}

#[test]
fn the_priority_first_proportional_document_loads_byte_for_byte() {
    let config =
        good(include_str!("../../../../tests/configs/wfq-priority-first-proportional.yaml"));
    let selection = wfq(CREDITS, Distribution::Proportional { anchor: None });
    let pools = pool(&[0], selection, linear(HoldbackDomain::Value));
    assert_eq!(config.settings, Settings { pools, ..Settings::default() });
}

#[test]
fn the_strict_document_loads_byte_for_byte() {
    let config = good(include_str!("../../../../tests/configs/strict.yaml"));
    assert_eq!(config.settings, Settings::default());
}

#[test]
fn the_sigmoid_document_loads_byte_for_byte() {
    let config = good(include_str!("../../../../tests/configs/holdback-sigmoid.yaml"));
    let shape = Shape::Sigmoid { steepness: 8.0, midpoint: 0.5 };
    let linear = Curve::linear(HoldbackDomain::Value, 0.6, 1.0);
    let pools = pool(&[0], BandSelection::Strict, Holdback::Curve(Curve { shape, ..linear }));
    assert_eq!(config.settings, Settings { pools, ..Settings::default() });
}

#[test]
fn an_empty_document_is_all_defaults() {
    for text in ["", "\n", "# nothing\n", "---\n", "{}", "version: 1", "\u{feff}version: 1", "null"]
    {
        assert_eq!(good(text).settings, Settings::default(), "{text:?}");
    }
    for text in ["engine:\npools:\nbands:\ntenants:\nplugins:\nflowControl:\n", "pools: {}"] {
        assert_eq!(good(text).settings, Settings::default(), "{text:?}");
    }
}

#[test]
fn an_envelope_loads_and_a_missing_gate_warns() {
    let envelope = "apiVersion: inference.networking.x-k8s.io/v1alpha1\nkind: EndpointPickerConfig\n\
        metadata: {name: x, labels: {a: b}}\n";
    assert_eq!(
        good(&format!("{envelope}featureGates: [flowControl]")).settings,
        Settings::default()
    );
    let config = load(&format!("{envelope}featureGates: [dataLayer]")).unwrap();
    let warnings: Vec<String> = config.warnings.iter().map(ToString::to_string).collect();
    assert_eq!(
        warnings,
        [
            "t.yaml:4: featureGates: flowControl is not listed: flow control is always on here, there is no path without it",
            "t.yaml:4: featureGates: the gate \"dataLayer\" is ignored",
        ]
    );
}

const WHOLE: &str = "
version: 1
engine: {driver: threads, shards: 2, ceiling: 4096, defaultPoolSlots: 16, admissionTimeout: 1m30s, maxRequests: 8Ki, mode: enforce}
bands: [{priority: 20, name: interactive}, {priority: -5, name: batch}]
pools:
  chat: {slots: 8, maxCost: 32k, maxFlows: 1024}
  batch:
    bands: [{priority: 7, ceiling: 0.9}]
    bandSelection: {type: cross-band-fairness-policy, parameters: {activationThreshold: 0}}
groups: {chatbot: {weight: 500}}
tenants: {acme: {group: chatbot, weight: 7, maxInFlight: 0}, other: {maxInFlight: unlimited}, 12: {group: default}}
keys: {k-1: {tenant: acme, weight: 9, maxInFlight: 2}, k-2: {tenant: 12}}
";

#[test]
fn every_section_of_our_own_spelling_reaches_the_settings() {
    let settings = good(WHOLE).settings;
    assert_eq!(settings.driver, DriverKind::Threads);
    assert_eq!((settings.shards, settings.ceiling), (2, Some(4096)));
    assert_eq!(settings.admission_timeout, Some(Duration::from_secs(90)));
    assert_eq!(settings.max_requests, 8192);
    let [chat, batch] = &settings.pools[..] else { panic!("two pools") };
    assert_eq!(
        (chat.name.as_str(), chat.slots, chat.max_cost, chat.max_flows),
        ("chat", 8, 32_000, 1024)
    );
    let band = |priority, name: Option<&str>| BandSettings {
        name: name.map(Into::into),
        ..BandSettings::new(priority)
    };
    assert_eq!(chat.bands, [band(20, Some("interactive")), band(0, None), band(-5, Some("batch"))]);
    assert_eq!(
        (chat.selection.clone(), chat.holdback.clone()),
        (BandSelection::Strict, Holdback::None)
    );
    assert_eq!((batch.name.as_str(), batch.slots), ("batch", 16));
    assert_eq!(batch.bands, [band(7, None), band(0, None)]);
    let ceilings = vec![(7, 0.9), (0, 0.9)];
    assert_eq!(batch.holdback, Holdback::Explicit { ceilings, default: None });
    let BandSelection::Wfq(params) = &batch.selection else { panic!("wfq") };
    assert!(params.activation.abs() < f64::EPSILON);
    assert_eq!((settings.groups[0].name.as_str(), settings.groups[0].weight), ("chatbot", 500));
    let tenants: Vec<_> = settings
        .tenants
        .iter()
        .map(|t| (&*t.name, t.group.as_deref(), t.weight, t.max_in_flight))
        .collect();
    assert_eq!(
        tenants,
        [
            ("acme", Some("chatbot"), 7, Some(0)),
            ("other", None, 100, None),
            ("12", Some("default"), 100, None)
        ]
    );
    let keys: Vec<_> =
        settings.keys.iter().map(|k| (&*k.name, &*k.tenant, k.weight, k.max_in_flight)).collect();
    assert_eq!(keys, [("k-1", "acme", 9, Some(2)), ("k-2", "12", 100, None)]);
}

#[test]
fn zero_absent_and_unlimited_are_three_different_limits() {
    let cap =
        |text: &str| good(&format!("tenants: {{t: {text}}}")).settings.tenants[0].max_in_flight;
    assert_eq!(cap("{maxInFlight: 0}"), Some(0));
    assert_eq!(cap("{maxInFlight: 1048576}"), Some(1_048_576));
    assert_eq!((cap("{}"), cap("{maxInFlight: unlimited}")), (None, None));
    let timeout = |text: &str| good(&format!("engine: {text}")).settings.admission_timeout;
    assert_eq!(timeout("{admissionTimeout: 0s}"), Some(Duration::ZERO));
    assert_eq!(timeout("{}"), Some(Duration::from_secs(60)));
    assert_eq!(timeout("{admissionTimeout: unlimited}"), None);
}

#[test]
fn durations_are_read_in_every_unit() {
    let read = |text: &str| {
        good(&format!("engine: {{admissionTimeout: {text}}}")).settings.admission_timeout.unwrap()
    };
    assert_eq!(read("250ms"), Duration::from_millis(250));
    assert_eq!(read("30s"), Duration::from_secs(30));
    assert_eq!(read("5m"), Duration::from_secs(300));
    assert_eq!(read("1h"), Duration::from_secs(3_600));
    assert_eq!(read("1h30m5s250ms7us9ns"), Duration::new(5_405, 250_007_009));
    assert_eq!(read("8760h"), Duration::from_secs(31_536_000));
}
