//! Reloads under load: no decision sees a part of one configuration beside a part of another, and no slot is lost.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on may panic")]
#![cfg(all(not(loom), feature = "config"))]

mod common;

use core::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use core::time::Duration;

use bandgate_core::config::Config;
use bandgate_core::{Engine, Pool, Reason, Request};
use common::{Watchdog, start};

const FEW: &str = "pools: {default: {slots: 2, maxBands: 5, bands: [{priority: 10}, {priority: 0, ceiling: 0.5}]}}";
const MANY: &str =
    "pools: {default: {slots: 8, maxBands: 5, bands: [{priority: 20}, {priority: 10},
    {priority: 0, ceiling: 0.125}]}}";

fn engine(text: &str) -> (Engine, Pool) {
    start(&Config::load(text, [], "t.yaml").unwrap().settings)
}

fn rounds(debug: usize, release: usize) -> usize {
    if cfg!(debug_assertions) { debug } else { release }
}

/// Runs `load` on some threads while the documents are put in force by turns.
fn reload_under(engine: &Engine, documents: &[&str], load: impl Fn(&AtomicBool) + Sync) {
    let stop = AtomicBool::new(false);
    let _watchdog = Watchdog::start(Duration::from_secs(120), || "reloads under load".into());
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| load(&stop));
        }
        for round in 0..rounds(400, 4_000) {
            let text = documents[round % documents.len()];
            engine.reload_text(text, [], "t.yaml").unwrap();
        }
        stop.store(true, Ordering::Relaxed);
    });
}

/// Under either document one request of band 0 may run; the ceiling of one with the slots of the other lets four.
#[test]
fn no_decision_sees_the_ceiling_of_one_document_with_the_slots_of_another() {
    for path in ["fast", "locked"] {
        let (engine, pool) = engine(FEW);
        let running = AtomicU32::new(0);
        let request = Request::new(pool.band(0).unwrap());
        let flow = pool.flow("", "acme", "").unwrap();
        let request = if path == "fast" { request } else { request.flow(flow) };
        reload_under(&engine, &[MANY, FEW], |stop| {
            while !stop.load(Ordering::Relaxed) {
                let permit = pool.admit_blocking(request, Some(Duration::from_secs(60))).unwrap();
                assert_eq!(running.fetch_add(1, Ordering::SeqCst), 0, "{path}: a torn table");
                std::thread::yield_now();
                running.fetch_sub(1, Ordering::SeqCst);
                drop(permit);
            }
        });
        let view = pool.view();
        assert_eq!((view.running, view.waiting, view.free), (0, 0, 2), "{path}");
    }
}

/// Modes, tracking, weights, caps, bands and slots at once.
#[test]
fn everything_that_may_change_changes_under_load_and_every_slot_comes_back() {
    let wfq = "engine: {mode: observe}
pools: {default: {slots: 1, maxBands: 5, holders: true, bands: [{priority: 30, name: top}, {priority: 0}],
  bandSelection: {type: cross-band-fairness-policy, parameters: {activationThreshold: 0.5}}}}
tenants: {acme: {maxInFlight: 1}}";
    let probe = "pools: {default: {slots: 3, maxBands: 5, maxHold: 1h, unknownPriority: template}}
tenants: {acme: {exempt: true}}";
    let (engine, pool) = engine(FEW);
    let acme = pool.flow("", "acme", "").unwrap();
    let turn = AtomicU32::new(0);
    reload_under(&engine, &[wfq, MANY, probe, FEW], |stop| {
        while !stop.load(Ordering::Relaxed) {
            let n = turn.fetch_add(1, Ordering::Relaxed);
            let Ok(band) = pool.band([0, 10, 20, 30][n as usize % 4]) else { continue };
            let request = Request::new(band);
            let request = if n % 3 == 1 { request.flow(acme) } else { request };
            match pool.admit_blocking(request, Some(Duration::from_secs(60))) {
                Ok(permit) => drop(permit),
                Err(reason) => assert_eq!(reason, Reason::UnknownBand),
            }
        }
    });
    let view = pool.view();
    assert_eq!((view.running, view.waiting, view.exempt, view.tracked), (0, 0, 0, 0));
    assert_eq!((view.free, view.slots), (2, 2));
    let info = engine.config_info();
    assert_eq!((info.reloads, info.refused), (rounds(400, 4_000) as u64, 0));
}
