//! References and parameters of policies that cannot be meant, with the whole message.

use super::{faults, refused};

/// Parameters of the weights in a pool, as one line.
fn weights(parameters: &str) -> String {
    let parameters = format!("{{activationThreshold: 0.5, {parameters}}}");
    format!(
        "pools: {{p: {{bandSelection: {{type: cross-band-fairness-policy, parameters: {parameters}}}}}}}"
    )
}

/// Parameters of the holdback of a pool, as one line.
pub(super) fn ceilings(parameters: &str) -> String {
    format!(
        "pools: {{p: {{holdback: {{type: priority-holdback-policy, parameters: {{{parameters}}}}}}}}}"
    )
}

#[test]
fn references_to_nothing_or_to_the_wrong_kind_are_refused_with_what_exists() {
    let holdback =
        "plugins: [{type: priority-holdback-policy, name: hold, parameters: {minCeiling: 0.5}}]\n";
    refused(&[
        (
            "tenants: {t: {group: chatbt}}\ngroups: {chatbot: {}}",
            &[
                "t.yaml:1: tenants.t.group: no group \"chatbt\": list it under `groups` (did you mean chatbot)",
            ],
        ),
        (
            "keys: {k: {tenant: acme}}",
            &["t.yaml:1: keys.k.tenant: no tenant \"acme\": list it under `tenants`"],
        ),
        (
            &format!("{holdback}flowControl: {{bandSelectionPolicyPluginRef: hold}}"),
            &[
                "t.yaml:2: flowControl.bandSelectionPolicyPluginRef: \"hold\" is a usage limit policy, a band selection policy is needed here",
            ],
        ),
        (
            &format!("{holdback}flowControl: {{usageLimitPolicyPluginRef: holt}}"),
            &[
                "t.yaml:2: flowControl.usageLimitPolicyPluginRef: no usage limit policy is named \"holt\"; there are hold, priority-holdback-policy, static-usage-limit-policy, soft-reflective-ceiling-policy (did you mean hold)",
            ],
        ),
        (
            "flowControl: {dispatchPolicyPluginRef: nope}",
            &[
                "t.yaml:1: flowControl.dispatchPolicyPluginRef: no band selection policy is named \"nope\"; there are strict-band-selection-policy, cross-band-fairness-policy",
            ],
        ),
        (
            "flowControl: {dispatchPolicyPluginRef: cross-band-fairness-policy}",
            &[
                "t.yaml:1: flowControl.dispatchPolicyPluginRef: `cross-band-fairness-policy` needs parameters: list it under `plugins`",
            ],
        ),
        (
            "pools: {p: {holdback: {type: strict-band-selection-policy}}}",
            &[
                "t.yaml:1: pools.p.holdback.type: \"strict-band-selection-policy\" is a band selection policy, a usage limit policy is needed here",
            ],
        ),
        (
            "pools: {p: {bandSelection: edf-ordering-policy}}",
            &[
                "t.yaml:1: pools.p.bandSelection: \"edf-ordering-policy\" is an ordering policy, a band selection policy is needed here",
            ],
        ),
        (
            "plugins: [{type: strict-band-selection-policy, name: s}]\nflowControl: {bandSelectionPolicyPluginRef: s, dispatchPolicyPluginRef: strict-band-selection-policy}",
            &[
                "t.yaml:2: flowControl.dispatchPolicyPluginRef: \"strict-band-selection-policy\" differs from bandSelectionPolicyPluginRef \"s\": they are one key, keep one of them",
            ],
        ),
    ]);
}

#[test]
fn weights_that_contradict_themselves_are_refused() {
    let path = "t.yaml:1: pools.p.bandSelection.parameters";
    for (parameters, fault) in [
        (
            "distribution: explicit",
            "ratios: missing: distribution explicit needs a ratio for each priority",
        ),
        (
            "distribution: explicit, ratios: {1: 0.5, 0: 0.4}",
            "ratios: the ratios sum to 0.900000: they must sum to 1",
        ),
        (
            "distribution: explicit, ratios: {1: 0, 0: 0}",
            "ratios: no ratio is above 0: give at least one priority a share",
        ),
        (
            "distribution: explicit, ratios: {}",
            "ratios: no ratio is above 0: give at least one priority a share",
        ),
        (
            "distribution: explicit, ratios: {1: -0.5, 0: 1}",
            "ratios.1: -0.5 is out of range: use 0 to 1",
        ),
        (
            "distribution: explicit, ratios: {1: .nan, 0: 1}",
            "ratios.1: NaN is not a finite number: use 0 to 1",
        ),
        (
            "distribution: explicit, ratios: {high: 1}",
            "ratios.high: expected a priority, an integer from -2147483648 to 2147483647",
        ),
        (
            "distribution: explicit, ratios: {020: 1}",
            "ratios.020: expected a priority, an integer from -2147483648 to 2147483647",
        ),
        (
            "distribution: explicit, ratios: [1]",
            "ratios: expected a mapping of priorities to numbers, got a list",
        ),
        (
            "distribution: explicit, ratios: {1: 1}, defaultRatio: 0",
            "defaultRatio: 0 is out of range: use above 0 and at most 1",
        ),
        (
            "deactivationThreshold: 0.6",
            "deactivationThreshold: 0.6 is above activationThreshold (0.5): use 0 to 0.5",
        ),
        ("maxFairnessWindow: 0", "maxFairnessWindow: 0 is out of range: use 1 to 1000000000"),
        (
            "stateRetention: unlimited",
            "stateRetention: expected a duration like 250ms, 30s, 5m or 1h, got the text \"unlimited\"",
        ),
        (
            "schedule: strict",
            "schedule: \"strict\" is not one of the choices: use `priority-first` or `interleaved`",
        ),
    ] {
        assert_eq!(faults(&weights(parameters)), [format!("{path}.{fault}")], "{parameters}");
    }
    let text =
        "plugins: [{type: cross-band-fairness-policy, parameters: {activationThreshold: 1}}]";
    refused(&[(
        text,
        &[
            "t.yaml:1: plugins[0].parameters.activationThreshold: 1 is out of range: use at least 0 and below 1",
        ],
    )]);
}

#[test]
fn ceilings_that_contradict_themselves_are_refused() {
    let path = "t.yaml:1: pools.p.holdback.parameters";
    for (parameters, fault) in [
        (
            "minCeiling: 0.6, maxCeiling: 0.6",
            "minCeiling: 0.6 is not below maxCeiling (0.6): lower it or raise maxCeiling",
        ),
        ("minCeiling: 1", "minCeiling: 1 is out of range: use at least 0 and below 1"),
        (
            "minCeiling: 0, maxCeiling: 0",
            "maxCeiling: 0 is out of range: use above 0 and at most 1",
        ),
        (
            "minCeiling: 0.1, domain: rank, strategy: static",
            "strategy: strategy static contradicts domain rank: keep one of them",
        ),
        (
            "minCeiling: 0.1, ceilings: {0: 1}",
            "ceilings: does not apply here: remove it, or set domain: explicit",
        ),
        (
            "domain: explicit",
            "ceilings: missing: explicit ceilings need a ceiling for each priority",
        ),
        (
            "domain: explicit, ceilings: {}",
            "ceilings: no ceiling is listed: give at least one priority a ceiling",
        ),
        (
            "domain: explicit, ceilings: {0: 1}, minCeiling: 0.5",
            "minCeiling: does not apply here: remove it, or set domain: rank or value",
        ),
        (
            "domain: explicit, ceilings: {9: 0.5, 0: 0.6}",
            "ceilings.0: 0.6 is above the ceiling of priority 9 (0.5): a ceiling must not rise as the priority falls, use at most 0.5",
        ),
        ("domain: explicit, ceilings: {0: 2}", "ceilings.0: 2 is out of range: use 0 to 1"),
    ] {
        assert_eq!(faults(&ceilings(parameters)), [format!("{path}.{fault}")], "{parameters}");
    }
    let holdback =
        "plugins: [{type: priority-holdback-policy, name: h, parameters: {minCeiling: 0.5}}]\n";
    refused(&[
        (
            "bands: [{priority: 2, ceiling: 0.5}, {priority: 9}, {priority: 1, ceiling: 0.75}]",
            &[
                "t.yaml:1: bands[2].ceiling: 0.75 is above the ceiling of priority 2 (0.5): a ceiling must not rise as the priority falls, use at most 0.5",
            ],
        ),
        (
            &format!(
                "{holdback}bands: [{{priority: 2, ceiling: 0.5}}]\nflowControl: {{usageLimitPolicyPluginRef: h}}"
            ),
            &[
                "t.yaml:3: flowControl.usageLimitPolicyPluginRef: flowControl.usageLimitPolicyPluginRef and bands[0].ceiling both set the ceilings: keep one of them",
            ],
        ),
        (
            &format!(
                "{holdback}pools: {{p: {{holdback: h, bands: [{{priority: 2, ceiling: 0.5}}]}}}}"
            ),
            &[
                "t.yaml:2: pools.p.holdback: pools.p.holdback and pools.p.bands[0].ceiling both set the ceilings: keep one of them",
            ],
        ),
    ]);
}

#[test]
fn spellings_and_keys_of_another_shape_are_refused() {
    let path = "t.yaml:1: pools.p.holdback.parameters";
    for (parameters, expected) in [
        (
            "minCeiling: 0.1, strategy: sigmoid-smoothed, shape: linear",
            "strategy: strategy sigmoid-smoothed contradicts shape linear: keep one of them",
        ),
        (
            "minCeiling: 0.1, strategy: stepwise-spread, domain: value",
            "strategy: strategy stepwise-spread contradicts domain value: keep one of them",
        ),
        (
            "minCeiling: 0.1, shape: sigmoid, domain: rank, sigmoidDomain: value",
            "sigmoidDomain: sigmoidDomain value contradicts domain rank: keep one of them",
        ),
        (
            "shape: sigmoid, domain: explicit, ceilings: {0: 1}",
            "shape: shape sigmoid contradicts domain explicit: keep one of them",
        ),
        (
            "minCeiling: 0.1, sigmoidSteepness: 8",
            "sigmoidSteepness: does not apply here: remove it, or set shape: sigmoid",
        ),
        (
            "shape: static, ceilings: {0: 1}, sigmoidDomain: rank",
            "sigmoidDomain: does not apply here: remove it, or set shape: sigmoid",
        ),
        (
            "minCeiling: 0.1, shape: sigmoid, sigmoidSteepness: 0",
            "sigmoidSteepness: 0 is out of range: use above 0 and at most 700",
        ),
        (
            "minCeiling: 0.1, shape: sigmoid, sigmoidSteepness: .inf",
            "sigmoidSteepness: inf is not a finite number: use above 0 and at most 700",
        ),
        (
            "minCeiling: 0.1, shape: sigmoid, sigmoidMidpoint: 1.5",
            "sigmoidMidpoint: 1.5 is out of range: use 0 to 1",
        ),
        (
            "shape: static, ceilings: {0: 1}, activeBands: busy",
            "activeBands: does not apply here: remove it, or set domain: rank or value",
        ),
    ] {
        assert_eq!(faults(&ceilings(parameters)), [format!("{path}.{expected}")], "{parameters}");
    }
}

#[test]
fn an_adaptive_holdback_that_cannot_be_meant_is_refused() {
    let path = "t.yaml:1: pools.p.holdback.parameters.adaptive";
    for (adaptive, expected) in [
        ("{}", "target: missing: a number is required"),
        ("{target: -0.5}", "target: -0.5 is out of range: use at least 0 and below 100"),
        ("{target: 1}", "target: 1 is not below full (1): lower it or raise full"),
        ("{target: 0, full: 101}", "full: 101 is out of range: use above 0 and at most 100"),
        ("{target: 0, recoveryRate: 0}", "recoveryRate: 0 is out of range: use 0.001 to 1000"),
        (
            "{target: 0, restCeiling: 0.25}",
            "restCeiling: 0.25 is outside minCeiling (0.5) to maxCeiling (1): the ceilings stay between them",
        ),
        (
            "{target: 0, restCeiling: 0.75, restCeilings: {0: 1}}",
            "restCeilings: restCeilings contradicts restCeiling: keep one of them",
        ),
        (
            "{target: 0, restCeilings: {1: 0.5, 0: 0.75}}",
            "restCeilings.0: 0.75 is above the ceiling of priority 1 (0.5): a ceiling must not rise as the priority falls, use at most 0.5",
        ),
        (
            "{target: 0, signal: queueDepht}",
            "signal: no signal is named \"queueDepht\"; there are saturation, queueDepth (did you mean queueDepth)",
        ),
    ] {
        let text = ceilings(&format!("minCeiling: 0.5, adaptive: {adaptive}"));
        let found = faults(&text);
        // Detectors are listed behind the two words where there are any.
        let start = format!("{path}.{expected}");
        let words: Vec<&str> = start.split(" (did you mean").collect();
        assert!(found.len() == 1 && words.iter().all(|part| found[0].contains(part)), "{found:?}");
    }
}

#[test]
fn two_policies_that_take_turns_are_refused_with_both_names() {
    let why = "soft-reflective-ceiling-policy beside cross-band-fairness-policy: both share the pool among the bands, and the decisions one opens fall into the rounds of the other; keep one of them";
    let weights = "{type: cross-band-fairness-policy, parameters: {activationThreshold: 0.5}}";
    let plugins =
        format!("plugins: [{{type: soft-reflective-ceiling-policy, name: soft}}, {weights}]\n");
    let both =
        "bandSelectionPolicyPluginRef: cross-band-fairness-policy, usageLimitPolicyPluginRef: soft";
    refused(&[
        (
            &format!("{plugins}flowControl: {{{both}}}\npools: {{a: {{}}, b: {{}}}}"),
            &[&format!("t.yaml:2: flowControl.usageLimitPolicyPluginRef: {why}")],
        ),
        (
            &format!(
                "pools: {{p: {{bandSelection: {weights}, holdback: soft-reflective-ceiling-policy}}}}"
            ),
            &[&format!("t.yaml:1: pools.p.holdback: {why}")],
        ),
        (
            &format!(
                "{plugins}flowControl: {{usageLimitPolicyPluginRef: soft}}\npools: {{p: {{bandSelection: {weights}}}, q: {{}}}}"
            ),
            &[&format!("t.yaml:3: pools.p.bandSelection: {why}")],
        ),
        (
            "plugins: [{type: soft-reflective-ceiling-policy, parameters: {period: 3}}]",
            &["t.yaml:1: plugins[0].parameters.period: unknown key"],
        ),
        (
            "plugins: [{type: static-usage-limit-policy, parameters: {threshold: 0}}]",
            &[
                "t.yaml:1: plugins[0].parameters.threshold: 0 is out of range: use above 0 and at most 1",
            ],
        ),
    ]);
}
