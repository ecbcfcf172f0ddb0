//! Modes, who is tracked, and how many bands a pool may have in its life.

use core::time::Duration;

use crate::types::settings::{PoolMode, PoolSettings};

use super::{good, refused};

fn pool(text: &str) -> PoolSettings {
    good(text).settings.pools.remove(0)
}

#[test]
fn the_mode_of_the_engine_holds_for_the_pools_that_name_none() {
    let mode = |text: &str| pool(text).mode;
    assert_eq!((mode(""), mode("pools: {p: {}}")), (PoolMode::Enforce, PoolMode::Enforce));
    for text in [
        "engine: {mode: observe}",
        "engine: {mode: observe}\npools: {p: {}}",
        "pools: {p: {mode: observe}}",
    ] {
        assert_eq!(mode(text), PoolMode::Observe, "{text}");
    }
    assert_eq!(mode("engine: {mode: observe}\npools: {p: {mode: enforce}}"), PoolMode::Enforce);
}

#[test]
fn tracking_and_room_for_bands_are_read_as_written() {
    let plain = pool("pools: {p: {}}");
    assert_eq!((plain.holders, plain.max_hold, plain.max_bands), (false, None, 0));
    let all = pool("pools: {p: {holders: true, maxHold: 10m, maxBands: 7}}");
    let ten = Duration::from_secs(600);
    assert_eq!((all.holders, all.max_hold, all.max_bands), (true, Some(ten), 7));
    assert_eq!(pool("pools: {p: {maxHold: unlimited, holders: false}}").max_hold, None);
}

#[test]
fn what_is_out_of_range_is_refused_with_its_path() {
    refused(&[
        (
            "engine: {mode: watch}",
            &[
                "t.yaml:1: engine.mode: \"watch\" is not one of the choices: use `enforce` or `observe`",
            ],
        ),
        (
            "pools: {p: {holders: yes please, maxHold: 0s, maxBands: 65}}",
            &[
                "t.yaml:1: pools.p.holders: expected `true` or `false`, got the text \"yes please\"",
                "t.yaml:1: pools.p.maxHold: 0s would take every permit back at once: use a longer time, or `unlimited`",
                "t.yaml:1: pools.p.maxBands: 65 is out of range: use 1 to 64",
            ],
        ),
        (
            "pools: {p: {maxBands: 2, bands: [{priority: 20}, {priority: 10}]}}",
            &["t.yaml:1: pools.p.maxBands: 2 is below the 3 bands it starts with: use 3 to 64"],
        ),
    ]);
}
