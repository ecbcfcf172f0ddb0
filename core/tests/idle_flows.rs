//! Flows come and go: what nobody uses is forgotten, what somebody uses never is, and a stale handle names nobody.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on may panic")]
#![cfg(not(loom))]

mod common;

use core::time::Duration;

use bandgate_core::types::settings::DriverKind;
use bandgate_core::{Flow, Pool, Reason, Request, Settings};

use common::{Rng, host, queued, settings, settle, tenant};

const MIN: u64 = 60_000_000_000;

fn small(slots: u32, max_flows: u32) -> Settings {
    let mut settings = settings(DriverKind::Host, slots, &[0]);
    settings.admission_timeout = None;
    settings.pools[0].max_flows = max_flows;
    settings.tenants.push(tenant("capped", 1));
    settings.tenants.push(tenant("shut", 0));
    settings
}

fn request(pool: &Pool, flow: Flow) -> Request {
    Request::new(pool.band(0).unwrap()).flow(flow)
}

fn collect(pool: &Pool, minutes: u64) -> usize {
    pool.collect_idle_flows(Duration::from_nanos(minutes * MIN))
}

#[test]
fn what_waits_or_runs_is_kept_and_what_does_not_is_forgotten() {
    let (engine, pool, clock) = host(&small(1, 64));
    let queue = engine.completion_queue(8).unwrap();
    let [runs, waits, idle, used] =
        ["runs", "waits", "idle", "used"].map(|name| pool.flow("", name, "").unwrap());
    let permit = pool.try_admit(&request(&pool, runs)).unwrap();
    let _ticket = queued(pool.submit(&request(&pool, waits), &queue, 0).unwrap());
    assert_eq!(collect(&pool, 10), 0, "all were interned just now");
    clock.set(9 * MIN);
    let _ = pool.flow("", "used", "").unwrap();
    clock.set(10 * MIN);
    assert_eq!(collect(&pool, 10), 1, "idle, and not interned since");
    assert_eq!(pool.try_admit(&request(&pool, idle)).err(), Some(Reason::FlowTableFull));
    drop(permit);
    drop(queue.poll().unwrap().outcome.unwrap());
    // Both were in use at the last look, so their time starts there.
    clock.set(19 * MIN);
    assert_eq!(collect(&pool, 10), 1, "used");
    clock.set(20 * MIN);
    assert_eq!(collect(&pool, 10), 0, "what ran is seen to have changed only now");
    clock.set(30 * MIN);
    assert_eq!(collect(&pool, 10), 2);
    let _ = used;
}

#[test]
fn a_stale_handle_names_nobody_on_every_way_in() {
    let (engine, pool, clock) = host(&small(1, 64));
    let queue = engine.completion_queue(8).unwrap();
    let stale = request(&pool, pool.flow("", "old", "").unwrap());
    clock.set(MIN);
    let mut new = None;
    let running = pool.try_admit(&Request::new(pool.band(0).unwrap())).unwrap();
    // One goes on the ring before the flow is forgotten and is applied when its row stands for another.
    let before = pool.pause_inside_turn(|| {
        let _ticket = queued(pool.submit(&stale, &queue, 1).unwrap());
    });
    assert!(before);
    settle(&engine);
    assert_eq!(collect(&pool, 1), 0, "it waits");
    drop(running);
    drop(queue.poll().unwrap().outcome.unwrap());
    for at in [2, 3] {
        clock.set(at * MIN);
        let _ = collect(&pool, 1);
    }
    new.get_or_insert(pool.flow("", "capped", "").unwrap());
    let new = request(&pool, new.unwrap());
    let held = pool.try_admit(&new).unwrap();
    assert_eq!(pool.try_admit(&stale).err(), Some(Reason::FlowTableFull));
    assert_eq!(pool.submit(&stale, &queue, 2).err(), Some(Reason::FlowTableFull));
    let paused = pool.pause_inside_turn(|| {
        let _ticket = queued(pool.submit(&stale, &queue, 3).unwrap());
    });
    assert!(paused);
    settle(&engine);
    let evicted = queue.poll().unwrap();
    assert_eq!((evicted.tag, evicted.outcome.err()), (3, Some(Reason::FlowTableFull)));
    assert_eq!(pool.refusals()[0].flow, None, "not laid to the charge of who stands there now");
    // The row has the new tenant's cap, and its refusals their own reason.
    assert_eq!(pool.try_admit(&new).err(), Some(Reason::WouldQueue));
    drop(held);
    let shut = request(&pool, pool.flow("", "shut", "").unwrap());
    assert_eq!(pool.try_admit(&shut).err(), Some(Reason::TenantQueueFull));
}

#[test]
fn a_tenant_stays_while_one_of_its_keys_is_in_use() {
    let (_engine, pool, clock) = host(&small(4, 64));
    let [first, second] = ["first", "second"].map(|key| pool.flow("", "capped", key).unwrap());
    let permit = pool.try_admit(&request(&pool, second)).unwrap();
    clock.set(MIN);
    assert_eq!(collect(&pool, 1), 0, "the tenant is counted in the row of its first key");
    assert_eq!(pool.try_admit(&request(&pool, first)).err(), Some(Reason::WouldQueue));
    drop(permit);
    for (at, forgotten) in [(2, 0), (3, 1), (4, 1)] {
        clock.set(at * MIN);
        assert_eq!(collect(&pool, 1), forgotten, "{at}");
    }
    // A tenant of another life: nothing of the first is left.
    let again = pool.flow("", "capped", "third").unwrap();
    assert!(pool.try_admit(&request(&pool, again)).is_ok());
}

#[test]
fn a_full_table_makes_room_by_itself_and_keeps_what_is_used() {
    let (_engine, pool, clock) = host(&small(64, 64));
    let busy = pool.flow("", "busy", "").unwrap();
    let permit = pool.try_admit(&request(&pool, busy)).unwrap();
    let intern = |n: u32| pool.flow(&format!("g{n}"), &format!("t{n}"), "");
    for n in 0..63 {
        assert!(intern(n).is_ok(), "{n}");
    }
    assert_eq!(intern(63).err(), Some(Reason::FlowTableFull));
    for round in 1..40_u32 {
        clock.set(u64::from(round) * 20 * MIN);
        for n in 0..63 {
            assert!(intern(round * 100 + n).is_ok(), "{round} {n}");
        }
    }
    assert!(pool.try_admit(&request(&pool, busy)).is_ok(), "its handle is good");
    drop(permit);
}

#[test]
fn a_pool_that_keeps_flows_for_ever_refuses_when_it_is_full() {
    let mut settings = small(4, 2);
    settings.pools[0].flow_idle = None;
    let (_engine, pool, clock) = host(&settings);
    let _ = ["a", "b"].map(|name| pool.flow("", name, "").unwrap());
    clock.set(1_000 * MIN);
    assert_eq!(pool.flow("", "c", "").err(), Some(Reason::FlowTableFull));
    assert_eq!(collect(&pool, 10), 2, "but the host may ask");
    assert!(pool.flow("", "c", "").is_ok());
}

/// At random: a flow that has a permit or waits is never forgotten, a stale handle is always refused, and whoever is
/// granted is counted for its own flow.
#[test]
fn handles_are_exact_under_random_use_and_collection() {
    for seed in 0..if cfg!(miri) { 1 } else { 20 } {
        let (engine, pool, clock) = host(&small(3, 16));
        let queue = engine.completion_queue(64).unwrap();
        let (mut rng, mut now) = (Rng(seed), 0);
        let mut handles: Vec<(usize, Flow)> = Vec::new();
        let (mut running, mut waiting) = (Vec::new(), Vec::new());
        for step in 0..800_u64 {
            match rng.below(6) {
                0 => {
                    let name = rng.below(24);
                    if let Ok(flow) = pool.flow("", &format!("t{name}"), "") {
                        handles.retain(|(known, _)| *known != name);
                        handles.push((name, flow));
                    }
                }
                1 | 2 if !handles.is_empty() && waiting.len() < 40 => {
                    let (name, flow) = handles[rng.below(handles.len())];
                    match pool.submit(&request(&pool, flow), &queue, step) {
                        Ok(bandgate_core::Submitted::Granted(permit)) => {
                            running.push((name, permit));
                        }
                        Ok(bandgate_core::Submitted::Queued(_)) => waiting.push((step, name)),
                        Err(reason) => {
                            assert_eq!(reason, Reason::FlowTableFull);
                            let in_use = running.iter().any(|(other, _)| *other == name)
                                || waiting.iter().any(|(_, other)| *other == name);
                            assert!(!in_use, "forgotten while in use");
                            handles.retain(|(known, _)| *known != name);
                        }
                    }
                }
                3 if !running.is_empty() => {
                    drop(running.swap_remove(rng.below(running.len())));
                }
                4 => {
                    now += rng.below(3) as u64 * MIN;
                    clock.set(now);
                }
                _ => drop(collect(&pool, 1)),
            }
            while let Some(done) = queue.poll() {
                let at = waiting.iter().position(|(tag, _)| *tag == done.tag).unwrap();
                running.push((waiting.remove(at).1, done.outcome.unwrap()));
            }
            let view = pool.view();
            let counts = (view.running as usize, view.waiting as usize);
            assert_eq!(counts, (running.len(), waiting.len()));
        }
    }
}
