//! Every class of bad input, with the whole message.

use super::{faults, refused};

#[test]
fn numbers_out_of_range_are_refused_with_the_range() {
    refused(&[
        (
            "pools: {p: {slots: 0}}",
            &["t.yaml:1: pools.p.slots: 0 is out of range: use 1 to 1048576"],
        ),
        (
            "pools:\n p:\n  slots: 1048577",
            &["t.yaml:3: pools.p.slots: 1048577 is out of range: use 1 to 1048576"],
        ),
        ("engine: {shards: 0}", &["t.yaml:1: engine.shards: 0 is out of range: use 1 to 64"]),
        (
            "engine: {maxRequests: 0}",
            &["t.yaml:1: engine.maxRequests: 0 is out of range: use 1 to 4194304"],
        ),
        (
            "engine: {maxRequests: 1Gi}",
            &["t.yaml:1: engine.maxRequests: 1Gi is out of range: use 1 to 4194304"],
        ),
        (
            "engine: {maxRequests: 99999999999999999999T}",
            &[
                "t.yaml:1: engine.maxRequests: 99999999999999999999T is out of range: use 1 to 4194304",
            ],
        ),
        (
            "engine: {ceiling: 0}",
            &["t.yaml:1: engine.ceiling: 0 is out of range: use 1 to 1073741824"],
        ),
        (
            "engine: {admissionTimeout: 8761h}",
            &["t.yaml:1: engine.admissionTimeout: 8761h is out of range: use 0s to 8760h"],
        ),
        (
            "groups: {g: {weight: -5}}",
            &["t.yaml:1: groups.g.weight: -5 is out of range: use 1 to 1000000"],
        ),
        (
            "tenants: {t: {maxInFlight: -1}}",
            &["t.yaml:1: tenants.t.maxInFlight: -1 is out of range: use 0 to 1048576"],
        ),
        (
            "bands: [{priority: 2147483648}]",
            &[
                "t.yaml:1: bands[0].priority: 2147483648 is out of range: use -2147483648 to 2147483647",
            ],
        ),
        (
            "bands: [{priority: 1, ceiling: 1.5}]",
            &["t.yaml:1: bands[0].ceiling: 1.5 is out of range: use 0 to 1"],
        ),
        (
            "bands: [{priority: 1, ceiling: .nan}]",
            &["t.yaml:1: bands[0].ceiling: NaN is not a finite number: use 0 to 1"],
        ),
        (
            "bands: [{priority: 1, ceiling: -.inf}]",
            &["t.yaml:1: bands[0].ceiling: -inf is not a finite number: use 0 to 1"],
        ),
        (
            "bands: [{priority: 1, ceiling: 99999999999}]",
            &["t.yaml:1: bands[0].ceiling: 99999999999 is out of range: use 0 to 1"],
        ),
        ("version: 2", &["t.yaml:1: version: 2 is out of range: use 1"]),
    ]);
}

#[test]
fn values_of_the_wrong_type_are_refused_with_what_was_expected() {
    refused(&[
        (
            "engine: {shards: two}",
            &["t.yaml:1: engine.shards: expected an integer, got the text \"two\""],
        ),
        (
            "engine: {shards: 1.5}",
            &["t.yaml:1: engine.shards: expected an integer, got the number 1.5"],
        ),
        (
            "engine: {shards: true}",
            &["t.yaml:1: engine.shards: expected an integer, got the boolean true"],
        ),
        ("engine: {shards: }", &["t.yaml:1: engine.shards: expected an integer, got nothing"]),
        ("engine: {shards: [1]}", &["t.yaml:1: engine.shards: expected an integer, got a list"]),
        (
            "engine: {maxRequests: 5x}",
            &[
                "t.yaml:1: engine.maxRequests: expected an integer like 8, 5k or 1Ki, got the text \"5x\"",
            ],
        ),
        (
            "engine: {ceiling: lots}",
            &[
                "t.yaml:1: engine.ceiling: expected an integer or `unlimited`, got the text \"lots\"",
            ],
        ),
        (
            "engine: {admissionTimeout: 30}",
            &[
                "t.yaml:1: engine.admissionTimeout: expected a duration like 250ms, 30s, 5m or 1h, or `unlimited`, got the integer 30: add the unit, as in 30s",
            ],
        ),
        (
            "engine: {admissionTimeout: 30s5m}",
            &[
                "t.yaml:1: engine.admissionTimeout: expected a duration like 250ms, 30s, 5m or 1h, or `unlimited`, got the text \"30s5m\"",
            ],
        ),
        (
            "engine: {driver: 3}",
            &["t.yaml:1: engine.driver: expected `inline`, `host` or `threads`, got the integer 3"],
        ),
        ("engine: 3", &["t.yaml:1: engine: expected a mapping, got the integer 3"]),
        ("bands: {priority: 1}", &["t.yaml:1: bands: expected a list, got a mapping"]),
        ("pools: [chat]", &["t.yaml:1: pools: expected a mapping, got a list"]),
        ("pools: {p: 8}", &["t.yaml:1: pools.p: expected a mapping, got the integer 8"]),
        (
            "bands: [{priority: 1, ceiling: false}]",
            &["t.yaml:1: bands[0].ceiling: expected a number, got the boolean false"],
        ),
        (
            "bands: [{priority: 1, name: [x]}]",
            &["t.yaml:1: bands[0].name: expected a text, got a list"],
        ),
        (
            "bands: [{priority: 1, name: ''}]",
            &["t.yaml:1: bands[0].name: a name of 0 bytes is out of range: use 1 to 256 bytes"],
        ),
        (
            "pools: {\"a\\nb\": {}}",
            &["t.yaml:1: pools[\"a\\nb\"]: a name must not hold control characters"],
        ),
        (
            "pools: {p: {holdback: 1.5}}",
            &[
                "t.yaml:1: pools.p.holdback: expected a plugin name, a plugin type or a mapping, got the number 1.5",
            ],
        ),
        (
            "featureGates: flowControl",
            &["t.yaml:1: featureGates: expected a list, got the text \"flowControl\""],
        ),
        ("- 1", &["t.yaml:1: expected a mapping, got a list"]),
    ]);
}

#[test]
fn unknown_words_are_refused_with_the_nearest() {
    refused(&[
        ("engin: {}", &["t.yaml:1: engin: unknown key (did you mean engine)"]),
        ("engine: {\n  xyzzy: 1}", &["t.yaml:2: engine.xyzzy: unknown key"]),
        (
            "engine: {driver: tread}",
            &[
                "t.yaml:1: engine.driver: \"tread\" is not one of the choices: use `inline`, `host` or `threads` (did you mean threads)",
            ],
        ),
        (
            "kind: Pod",
            &["t.yaml:1: kind: \"Pod\" is not one of the choices: use `EndpointPickerConfig`"],
        ),
        (
            "plugins: [{type: priority-holdbac-policy}]",
            &[
                "t.yaml:1: plugins[0].type: no plugin type \"priority-holdbac-policy\"; there are strict-band-selection-policy, cross-band-fairness-policy, priority-holdback-policy, static-usage-limit-policy, soft-reflective-ceiling-policy, global-strict-fairness-policy, round-robin-fairness-policy, fcfs-ordering-policy, edf-ordering-policy, slo-deadline-ordering-policy, slots, gauge, utilization-detector, concurrency-detector (did you mean priority-holdback-policy)",
            ],
        ),
    ]);
    let fault = &super::load("engine:\n  shard: 1").unwrap_err().faults[0];
    assert_eq!((fault.path.as_str(), fault.line, fault.column), ("engine.shard", Some(2), Some(3)));
    assert_eq!((fault.origin.as_str(), fault.suggestion.as_deref()), ("t.yaml", Some("shards")));
}

#[test]
fn what_the_design_knows_is_refused_as_not_available_never_as_unknown() {
    let not_yet = |path: &str, name: &str| {
        format!("t.yaml:1: {path}: `{name}` is known but not available in this version")
    };
    for (text, path, name) in [
        ("replicas: {}", "replicas", "replicas"),
        ("routing: {}", "routing", "routing"),
        ("metrics: {}", "metrics", "metrics"),
        ("bands: [{priority: 1, ttl: 30s}]", "bands[0].ttl", "ttl"),
        ("bands: [{priority: 1, maxRequests: 5}]", "bands[0].maxRequests", "maxRequests"),
        ("bands: [{priority: 1, maxBytes: 1Gi}]", "bands[0].maxBytes", "maxBytes"),
        ("bands: [{priority: 1, maxTokens: unlimited}]", "bands[0].maxTokens", "maxTokens"),
        ("pools: {p: {slotIdentity: true}}", "pools.p.slotIdentity", "slotIdentity"),
        ("pools: {p: {sessionAffinity: {}}}", "pools.p.sessionAffinity", "sessionAffinity"),
        ("tenants: {t: {tokensPerMinute: 1}}", "tenants.t.tokensPerMinute", "tokensPerMinute"),
        ("tenants: {t: {termTokens: 1}}", "tenants.t.termTokens", "termTokens"),
        ("plugins: [{type: program-aware-fairness}]", "plugins[0].type", "program-aware-fairness"),
        (
            "bands: [{priority: 1, fairness: program-aware-fairness}]",
            "bands[0].fairness",
            "program-aware-fairness",
        ),
        (
            "flowControl: {defaultRequestTTL: 1s}",
            "flowControl.defaultRequestTTL",
            "defaultRequestTTL",
        ),
        (
            "flowControl: {priorityBands: [{priority: 1, maxBytes: 0}]}",
            "flowControl.priorityBands[0].maxBytes",
            "maxBytes",
        ),
    ] {
        assert_eq!(faults(text), [not_yet(path, name)], "{text}");
    }
}

#[test]
fn repeated_and_missing_keys_are_refused() {
    refused(&[
        (
            "engine: {}\nengine: {}",
            &["t.yaml:2: engine: duplicate key, first on line 1: remove one"],
        ),
        (
            "pools:\n  a: {}\n  b: {}\n  a: {slots: 0}",
            &["t.yaml:4: pools.a: duplicate key, first on line 2: remove one"],
        ),
        ("bands: [{name: x}]", &["t.yaml:1: bands[0].priority: missing: an integer is required"]),
        ("keys: {k: {}}", &["t.yaml:1: keys.k.tenant: missing: a text is required"]),
        (
            "plugins: [{name: x}]",
            &["t.yaml:1: plugins[0].type: missing: a plugin type is required"],
        ),
        (
            "plugins: [{type: cross-band-fairness-policy}]",
            &["t.yaml:1: plugins[0].parameters.activationThreshold: missing: a number is required"],
        ),
        (
            "plugins: [{type: cross-band-fairness-policy, parameters: }]",
            &["t.yaml:1: plugins[0].parameters.activationThreshold: missing: a number is required"],
        ),
        (
            "plugins: [{type: priority-holdback-policy}]",
            &[
                "t.yaml:1: plugins[0].parameters.minCeiling: missing: a number, at least 0 and below 1, is required",
            ],
        ),
        (
            "bands: [{priority: 3}, {priority: 3}]",
            &[
                "t.yaml:1: bands[1].priority: priority 3 is that of bands[0] already: priorities are unique",
            ],
        ),
        (
            "bands: [{priority: 3, name: x}, {priority: 4, name: x}]",
            &[
                "t.yaml:1: bands[1].name: the name \"x\" is that of bands[0] already: names are unique",
            ],
        ),
        (
            "plugins: [{type: strict-band-selection-policy}, {type: strict-band-selection-policy}]",
            &[
                "t.yaml:1: plugins[1].name: a plugin named \"strict-band-selection-policy\" exists already: names are unique",
            ],
        ),
        (
            "bands: [{priority: 1, name: a}]\nflowControl: {priorityBands: [{priority: 1, name: b}]}",
            &[
                "t.yaml:2: flowControl.priorityBands[0].name: priority 1 is named \"b\" here and \"a\" in bands[0]: keep one name",
            ],
        ),
    ]);
}

#[test]
fn all_faults_are_reported_together_in_the_order_of_the_document() {
    let text = "\
engine:
  shards: 0
  drivr: inline
bands:
  - {priority: 1, ttl: 1s}
  - {priority: 1}
pools:
  chat: {slots: no, bandSelection: nothing}
tenants:
  acme: {group: none, weight: 0}
keys:
  k: {tenant: acm}
";
    assert_eq!(
        faults(text),
        [
            "t.yaml:2: engine.shards: 0 is out of range: use 1 to 64",
            "t.yaml:3: engine.drivr: unknown key (did you mean driver)",
            "t.yaml:5: bands[0].ttl: `ttl` is known but not available in this version",
            "t.yaml:6: bands[1].priority: priority 1 is that of bands[0] already: priorities are unique",
            "t.yaml:8: pools.chat.slots: expected an integer, got the text \"no\"",
            "t.yaml:8: pools.chat.bandSelection: no band selection policy is named \"nothing\"; there are strict-band-selection-policy, cross-band-fairness-policy",
            "t.yaml:10: tenants.acme.group: no group \"none\": list it under `groups`",
            "t.yaml:10: tenants.acme.weight: 0 is out of range: use 1 to 1000000",
            "t.yaml:12: keys.k.tenant: no tenant \"acm\": list it under `tenants` (did you mean acme)",
        ]
    );
}

#[test]
fn a_pool_has_64_bands_at_most_with_zero_among_them() {
    let list = |n: i32| {
        let bands: Vec<String> = (1..=n).map(|p| format!("{{priority: {p}}}")).collect();
        format!("bands: [{}]", bands.join(", "))
    };
    assert_eq!(super::good(&list(63)).settings.pools[0].bands.len(), 64);
    let text = list(64);
    refused(&[(
        &text,
        &[
            "t.yaml:1: bands: 65 bands are out of range: list and name at most 64 priorities, 0 included",
        ],
    )]);
}
