//! A running engine takes another document: whole or not at all, counted, and in force at the next decision.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on may panic")]
#![cfg(all(not(loom), feature = "config"))]

mod common;

use bandgate_core::config::Config;
use bandgate_core::{Engine, Pool, Reason, Request};
use common::host;

const BEFORE: &str = "engine: {driver: host}
bands: [{priority: 10, name: interactive}]
pools: {default: {slots: 2, maxBands: 4, holders: true}}
tenants: {acme: {maxInFlight: 1}}
";

fn engine(text: &str) -> (Engine, Pool) {
    let (engine, pool, _clock) = host(&Config::load(text, [], "t.yaml").unwrap().settings);
    (engine, pool)
}

fn reload(engine: &Engine, text: &str) -> Result<(), Vec<String>> {
    let answer = engine.reload_text(text, [], "t.yaml");
    answer.map(|warnings| assert!(warnings.is_empty())).map_err(|error| error.faults().to_vec())
}

#[test]
fn a_document_that_says_observe_admits_everything_and_one_that_says_enforce_ends_it() {
    let (engine, pool) = engine(BEFORE);
    let request = Request::new(pool.band(0).unwrap());
    let mut permits = vec![pool.try_admit(&request).unwrap(), pool.try_admit(&request).unwrap()];
    assert_eq!(pool.try_admit(&request).err(), Some(Reason::WouldQueue));
    reload(&engine, &BEFORE.replace("slots: 2", "slots: 2, mode: observe")).unwrap();
    permits.push(pool.try_admit(&request).unwrap());
    assert_eq!((pool.view().running, pool.view().stats.would_queue), (3, 1));
    reload(&engine, BEFORE).unwrap();
    permits.truncate(2);
    assert_eq!(pool.try_admit(&request).err(), Some(Reason::WouldQueue));
    // The same said for every pool that says nothing.
    reload(&engine, &BEFORE.replace("driver: host", "driver: host, mode: observe")).unwrap();
    permits.push(pool.try_admit(&request).unwrap());
}

#[test]
fn bands_caps_slots_and_tracking_follow_a_document() {
    let (engine, pool) = engine(BEFORE);
    let text = "engine: {driver: host, admissionTimeout: 5s}
bands: [{priority: 20, name: urgent}, {priority: 10, name: quick, ceiling: 0.5}]
pools: {default: {slots: 4, maxBands: 4, maxHold: 1m}}
tenants: {acme: {maxInFlight: 2}}
";
    reload(&engine, text).unwrap();
    assert_eq!(pool.priorities(), [20, 10, 0]);
    assert_eq!(pool.band_named("quick"), pool.band(10));
    assert_eq!(pool.band_named("interactive").err(), Some(Reason::UnknownBand));
    let acme = pool.flow("", "acme", "").unwrap();
    let request = Request::new(pool.band(10).unwrap()).flow(acme);
    let permits = [pool.try_admit(&request).unwrap(), pool.try_admit(&request).unwrap()];
    // Gated from half of the slots on, and tracked since maxHold implies it.
    let other = Request::new(pool.band(10).unwrap());
    assert_eq!(pool.try_admit(&other).err(), Some(Reason::WouldQueue));
    assert!(pool.try_admit(&Request::new(pool.band(20).unwrap())).is_ok());
    assert_eq!(pool.holders(8).len(), 2);
    drop(permits);
}

#[test]
fn a_bad_document_keeps_the_old_one_names_every_fault_and_is_counted() {
    let (engine, pool) = engine(BEFORE);
    let before = engine.config_info();
    let bad = reload(&engine, "engine: {mode: watch}\npools: {default: {slots: 0}}").unwrap_err();
    assert_eq!(bad.len(), 2, "{bad:?}");
    assert!(bad[0].starts_with("t.yaml:1: engine.mode") && bad[1].contains("pools.default.slots"));
    let fixed = reload(&engine, &BEFORE.replace("maxBands: 4", "maxBands: 5, maxCost: 7"));
    let fixed = fixed.unwrap_err();
    for field in ["pools.default.maxBands", "pools.default.maxCost"] {
        assert!(fixed.iter().any(|fault| fault.contains(field)), "{fixed:?}");
    }
    let info = engine.config_info();
    assert_eq!((info.hash, info.reloads, info.refused), (before.hash, 0, 2));
    assert_eq!((pool.view().slots, pool.priorities()), (2, vec![10, 0]));
    reload(&engine, &BEFORE.replace("slots: 2", "slots: 3")).unwrap();
    let info = engine.config_info();
    assert_ne!(info.hash, before.hash);
    let text = info.prometheus();
    for line in [
        &format!("bandgate_config_info{{hash=\"{:016x}\"}} 1\n", info.hash),
        "bandgate_config_reload_total{result=\"applied\"} 1\n",
        "bandgate_config_reload_total{result=\"refused\"} 2\n",
    ] {
        assert!(text.contains(line), "{text}");
    }
}

/// Variables are laid over a document that is loaded anew as they were at start.
#[test]
fn a_variable_wins_over_a_reloaded_document() {
    let (engine, pool) = engine(BEFORE);
    let slots = ("BANDGATE__POOLS__DEFAULT__SLOTS".to_owned(), "9".to_owned());
    engine.reload_text(BEFORE, [slots], "t.yaml").unwrap();
    assert_eq!(pool.view().slots, 9);
}
