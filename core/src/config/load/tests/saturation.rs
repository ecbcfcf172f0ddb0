//! Where the saturation comes from, in both spellings.

use core::time::Duration;

use crate::types::saturation::{
    Aggregate, ConcurrencyMode, ConcurrencyParams, SaturationSource, StalenessPolicy,
    UtilizationParams,
};

use super::{good, load, refused};

/// Of the first pool.
fn source(text: &str) -> SaturationSource {
    good(text).settings.pools[0].saturation.clone()
}

/// The warnings of a good document.
fn warnings(text: &str) -> Vec<String> {
    load(text).unwrap().warnings.iter().map(ToString::to_string).collect()
}

#[test]
fn without_a_word_it_is_slots_in_the_seeds_spelling_too() {
    for text in ["", "pools: {p: {}}", "flowControl:", "flowControl: {saturationDetector: }"] {
        assert_eq!(source(text), SaturationSource::Slots, "{text}");
    }
    for text in [
        include_str!("../../../../tests/configs/strict.yaml"),
        include_str!("../../../../tests/configs/wfq-explicit.yaml"),
        include_str!("../../../../tests/configs/wfq-interleaved-linear.yaml"),
        include_str!("../../../../tests/configs/wfq-priority-first-proportional.yaml"),
        include_str!("../../../../tests/configs/holdback-sigmoid.yaml"),
    ] {
        assert_eq!(source(text), SaturationSource::Slots);
    }
}

#[test]
fn a_pool_names_its_source_by_word_by_type_or_with_parameters() {
    let pool = |text: &str| source(&format!("pools: {{p: {{saturation: {text}}}}}"));
    assert_eq!(pool("slots"), SaturationSource::Slots);
    assert_eq!(pool("{type: slots}"), SaturationSource::Slots);
    assert_eq!(pool("gauge"), SaturationSource::Gauge);
    let (concurrency, utilization) = (ConcurrencyParams::default(), UtilizationParams::default());
    for text in ["concurrency-detector", "{type: concurrency-detector, parameters: {}}"] {
        assert_eq!(pool(text), SaturationSource::Concurrency(concurrency.clone()), "{text}");
    }
    for text in ["utilization-detector", "{type: utilization-detector}"] {
        assert_eq!(pool(text), SaturationSource::Utilization(utilization.clone()), "{text}");
    }
    let all = "{type: utilization-detector, parameters: {queueDepthThreshold: 2, kvCacheUtilThreshold: 0.5,
        metricsStalenessThreshold: 2s, stalenessPolicy: probe, aggregate: max, headroom: 0.25}}";
    let expected = UtilizationParams {
        queue_depth: 2,
        kv: 0.5,
        stale_after: Duration::from_secs(2),
        staleness: StalenessPolicy::Probe,
        aggregate: Aggregate::Max,
        headroom: 0.25,
    };
    assert_eq!(pool(all), SaturationSource::Utilization(expected));
    let all =
        "{type: concurrency-detector, parameters: {concurrencyMode: hybrid, maxConcurrency: 1k,
        maxTokenConcurrency: 1T, aggregate: max, headroom: 1}}";
    let expected = ConcurrencyParams {
        mode: ConcurrencyMode::Hybrid,
        max_requests: 1_000,
        max_tokens: 1_000_000_000_000,
        aggregate: Aggregate::Max,
        headroom: 1.0,
    };
    assert_eq!(pool(all), SaturationSource::Concurrency(expected));
}

#[test]
fn the_seeds_reference_reaches_every_pool_that_does_not_say_otherwise() {
    let text =
        "plugins: [{type: utilization-detector, name: u, parameters: {stalenessPolicy: ignore}}]
flowControl: {saturationDetector: {pluginRef: u}}
pools: {a: {}, b: {saturation: gauge}}";
    let pools = good(text).settings.pools;
    let staleness = StalenessPolicy::Ignore;
    let expected = UtilizationParams { staleness, ..UtilizationParams::default() };
    assert_eq!(pools[0].saturation, SaturationSource::Utilization(expected));
    assert_eq!(pools[1].saturation, SaturationSource::Gauge);
    let default = "flowControl: {saturationDetector: {pluginRef: concurrency-detector}}";
    assert_eq!(source(default), SaturationSource::Concurrency(ConcurrencyParams::default()));
}

#[test]
fn the_older_place_is_read_with_a_warning_and_must_not_differ() {
    let older = "t.yaml:1: saturationDetector.pluginRef: an older place of flowControl.saturationDetector.pluginRef: move it there";
    let text = "saturationDetector: {pluginRef: gauge}";
    assert_eq!(warnings(text), [older]);
    assert_eq!(load(text).unwrap().settings.pools[0].saturation, SaturationSource::Gauge);
    let both = format!("{text}\nflowControl: {{saturationDetector: {{pluginRef: gauge}}}}");
    assert_eq!(warnings(&both), [older]);
    refused(&[(
        "saturationDetector: {pluginRef: gauge}\nflowControl: {saturationDetector: {pluginRef: slots}}",
        &[
            "t.yaml:1: saturationDetector.pluginRef: \"gauge\" differs from flowControl.saturationDetector.pluginRef \"slots\": they are one key, keep one of them",
        ],
    )]);
}

#[test]
fn what_is_accepted_but_hardly_meant_is_said() {
    let pool = |text: &str| format!("pools: {{p: {{saturation: {{{text}}}}}}}");
    let at = "t.yaml:1: pools.p.saturation.parameters";
    for (text, expected) in [
        (
            "type: utilization-detector, parameters: {headroom: 3}",
            "headroom: 3 is above 1: a backend would still be chosen at more than twice its limit",
        ),
        (
            "type: concurrency-detector, parameters: {headroom: 1.5}",
            "headroom: 1.5 is above 1: a backend would still be chosen at more than twice its limit",
        ),
        (
            "type: concurrency-detector, parameters: {inFlightLoadProducerName: x}",
            "inFlightLoadProducerName: ignored, because the host reports what is in flight",
        ),
        (
            "type: concurrency-detector, parameters: {maxTokenConcurrency: 7}",
            "maxTokenConcurrency: ignored, because concurrencyMode is requests",
        ),
        (
            "type: concurrency-detector, parameters: {concurrencyMode: tokens, maxConcurrency: 7}",
            "maxConcurrency: ignored, because concurrencyMode is tokens",
        ),
    ] {
        assert_eq!(warnings(&pool(text)), [format!("{at}.{expected}")]);
    }
}

#[test]
fn every_fault_of_a_detector_is_told_with_its_place_and_the_way_out() {
    refused(&[
        (
            "plugins:
- type: utilization-detector
  parameters:
    queueDepthThreshold: 0
    kvCacheUtilThreshold: 1.5
    metricsStalenessThreshold: 0s
    stalenessPolicy: panic
    aggregate: median
    headroom: -1
- type: concurrency-detector
  parameters:
    concurrencyMode: bytes
    maxConcurrency: 0
    maxTokenConcurrency: 2T
    kvCacheUtilThreshold: 0.5",
            &[
                "t.yaml:4: plugins[0].parameters.queueDepthThreshold: 0 is out of range: use 1 to 1000000",
                "t.yaml:5: plugins[0].parameters.kvCacheUtilThreshold: 1.5 is out of range: use above 0 and at most 1",
                "t.yaml:6: plugins[0].parameters.metricsStalenessThreshold: 0s is out of range: use above 0s, longer than the host takes between two reports",
                "t.yaml:7: plugins[0].parameters.stalenessPolicy: \"panic\" is not one of the choices: use `saturated`, `ignore` or `probe`",
                "t.yaml:8: plugins[0].parameters.aggregate: \"median\" is not one of the choices: use `mean` or `max` (did you mean mean)",
                "t.yaml:9: plugins[0].parameters.headroom: -1 is out of range: use 0 to 100",
                "t.yaml:12: plugins[1].parameters.concurrencyMode: \"bytes\" is not one of the choices: use `requests`, `tokens` or `hybrid`",
                "t.yaml:13: plugins[1].parameters.maxConcurrency: 0 is out of range: use 1 to 1000000",
                "t.yaml:14: plugins[1].parameters.maxTokenConcurrency: 2T is out of range: use 1 to 1000000000000",
                "t.yaml:15: plugins[1].parameters.kvCacheUtilThreshold: unknown key",
            ],
        ),
        (
            "pools: {p: {saturation: edf-ordering-policy}}",
            &[
                "t.yaml:1: pools.p.saturation: \"edf-ordering-policy\" is an ordering policy, a source of saturation is needed here",
            ],
        ),
        (
            "flowControl: {saturationDetector: {pluginRef: utilisation-detector}}",
            &[
                "t.yaml:1: flowControl.saturationDetector.pluginRef: no source of saturation is named \"utilisation-detector\"; there are slots, gauge, utilization-detector, concurrency-detector (did you mean utilization-detector)",
            ],
        ),
    ]);
}
