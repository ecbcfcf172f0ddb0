//! Fairness among flows and the order within them, from a configuration file to the permit: each policy changes who
//! is granted.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on may panic")]
#![cfg(all(not(loom), feature = "config"))]

mod common;

use core::time::Duration;

use bandgate_core::clock::Clock;
use bandgate_core::config::Config;
use bandgate_core::engine::BandError;
use bandgate_core::types::policy::Order;
use bandgate_core::types::settings::BandSettings;
use bandgate_core::{
    CancelAnswer, CompletionQueue, Engine, Flow, Permit, Pool, Reason, Request, Submitted, Ticket,
};

use common::{Rng, host, queued, settle};

const MS: u64 = 1_000_000;

/// An engine of the host driver with one slot, out of the document; `pool` stands in the pool's braces.
fn engine(pool: &str) -> (Engine, Pool, Clock) {
    let text = format!(
        "engine: {{driver: host, maxRequests: 512, admissionTimeout: unlimited}}\n\
         tenants: {{capped: {{maxInFlight: 1}}}}\npools: {{default: {{slots: 1, {pool}}}}}"
    );
    document(&text)
}

fn document(text: &str) -> (Engine, Pool, Clock) {
    host(&Config::load(text, [], "flows.yaml").unwrap().settings)
}

fn plain(pool: &Pool) -> Request {
    Request::new(pool.band(0).unwrap())
}

fn flows<const N: usize>(pool: &Pool, names: [&str; N]) -> [Flow; N] {
    names.map(|name| pool.flow("", name, "").unwrap())
}

/// Queues requests behind the one that runs, tagged 0, 1, ...; then lets one after the other run.
fn granted(pool: &Pool, engine: &Engine, requests: &[Request]) -> Vec<u64> {
    let queue = engine.completion_queue(512).unwrap();
    let running = pool.try_admit(&plain(pool)).unwrap();
    for (tag, request) in (0..).zip(requests) {
        let _ticket = queued(pool.submit(request, &queue, tag).unwrap());
    }
    drop(running);
    drain(&queue)
}

/// The tags of those granted, each giving its slot to the next.
fn drain(queue: &CompletionQueue) -> Vec<u64> {
    let mut order = Vec::new();
    while let Some(completion) = queue.poll() {
        order.push(completion.tag);
        drop(completion.outcome.unwrap());
    }
    order
}

/// Four requests that each order sees differently.
fn mixed(pool: &Pool) -> [Request; 4] {
    let wait = |ms| plain(pool).timeout(Duration::from_millis(ms));
    let promised = Duration::from_millis;
    [
        plain(pool).no_timeout().received_at(30 * MS),
        wait(900).slo(promised(50)).received_at(100 * MS),
        wait(300),
        wait(600).slo(promised(400)).received_at(0),
    ]
}

#[test]
fn each_order_of_a_band_grants_in_its_own_order() {
    for (order, expected) in [
        ("fcfs", [0, 1, 2, 3]),
        ("edf", [2, 3, 1, 0]),
        // Due at 150 ms and at 400 ms; of those promised nothing the one received first.
        ("slo-deadline", [1, 3, 2, 0]),
    ] {
        let (engine, pool, clock) = engine(&format!("bands: [{{priority: 0, order: {order}}}]"));
        clock.set(10 * MS);
        assert_eq!(granted(&pool, &engine, &mixed(&pool)), expected, "{order}");
    }
}

#[test]
fn each_fairness_of_a_pool_grants_in_its_own_order() {
    for (fairness, expected) in
        [("global-strict", [0, 1, 2, 3, 4, 5]), ("round-robin", [0, 3, 5, 1, 4, 2])]
    {
        let (engine, pool, _clock) = engine(&format!("fairness: {fairness}"));
        let [a, b, c] = flows(&pool, ["a", "b", "c"]);
        let requests = [a, a, a, b, b, c].map(|flow| plain(&pool).flow(flow));
        assert_eq!(granted(&pool, &engine, &requests), expected, "{fairness}");
    }
}

#[test]
fn fairness_and_order_combine() {
    for (fairness, order, expected) in [
        ("global-strict", "edf", [3, 1, 2, 0]),
        ("round-robin", "fcfs", [0, 2, 1, 3]),
        ("round-robin", "edf", [1, 3, 0, 2]),
    ] {
        let band = format!("bands: [{{priority: 0, fairness: {fairness}, order: {order}}}]");
        let (engine, pool, _clock) = engine(&band);
        let [a, b] = flows(&pool, ["a", "b"]);
        let request = |flow, ms| plain(&pool).flow(flow).timeout(Duration::from_millis(ms));
        let requests = [request(a, 400), request(a, 200), request(b, 300), request(b, 100)];
        assert_eq!(granted(&pool, &engine, &requests), expected, "{fairness} {order}");
    }
}

#[test]
fn the_seeds_spelling_gives_the_same_orders() {
    let text = "engine: {driver: host, defaultPoolSlots: 1}\n\
        plugins: [{type: round-robin-fairness-policy, name: turns}, {type: slo-deadline-ordering-policy}]\n\
        flowControl: {priorityBands: [{priority: 0, fairnessPolicyRef: turns, orderingPolicyRef: slo-deadline-ordering-policy}]}";
    let (engine, pool, _clock) = document(text);
    let [a, b] = flows(&pool, ["a", "b"]);
    let request = |flow, ms| plain(&pool).flow(flow).slo(Duration::from_millis(ms));
    let requests = [request(a, 9), request(a, 5), request(b, 7), plain(&pool).flow(a)];
    assert_eq!(granted(&pool, &engine, &requests), [1, 2, 0, 3]);
}

#[test]
fn what_comes_through_the_ring_keeps_its_deadline_promise_and_time_of_receipt() {
    for (order, expected) in [("edf", [2, 3, 1, 0]), ("slo-deadline", [1, 3, 2, 0])] {
        let (engine, pool, clock) = engine(&format!("bands: [{{priority: 0, order: {order}}}]"));
        clock.set(10 * MS);
        let queue = engine.completion_queue(512).unwrap();
        let running = pool.try_admit(&plain(&pool)).unwrap();
        // The lock is held: every submit goes on the ring, and is queued later, by another.
        let paused = pool.pause_inside_turn(|| {
            for (tag, request) in (0..).zip(mixed(&pool)) {
                let _ticket = queued(pool.submit(&request, &queue, tag).unwrap());
            }
            clock.set(20 * MS);
        });
        assert!(paused);
        settle(&engine);
        drop(running);
        settle(&engine);
        assert_eq!(drain(&queue), expected, "{order}");
    }
}

#[test]
fn under_an_engine_ceiling_the_orders_are_the_same() {
    let text = "engine: {driver: host, ceiling: 1, admissionTimeout: unlimited}\n\
        pools: {default: {slots: 1, bands: [{priority: 0, order: edf}]}}";
    let (engine, pool, clock) = document(text);
    clock.set(10 * MS);
    assert_eq!(granted(&pool, &engine, &mixed(&pool)), [2, 3, 1, 0]);
}

#[test]
fn an_eviction_costs_a_flow_no_turn() {
    let (engine, pool, clock) = engine("fairness: round-robin");
    let [a, b] = flows(&pool, ["a", "b"]);
    let queue = engine.completion_queue(512).unwrap();
    let running = pool.try_admit(&plain(&pool)).unwrap();
    let short = plain(&pool).flow(a).timeout(Duration::from_millis(5));
    let submit = |request: &Request, tag| queued(pool.submit(request, &queue, tag).unwrap());
    let _ = submit(&short, 0);
    let gone = submit(&plain(&pool).flow(a), 1);
    let _ = submit(&plain(&pool).flow(a), 2);
    let _ = submit(&plain(&pool).flow(b), 3);
    assert_eq!(pool.cancel(gone), CancelAnswer::Cancelled);
    clock.set(6 * MS);
    // Found to be too late only when its slot comes.
    drop(running);
    settle(&engine);
    let first = queue.poll().unwrap();
    assert_eq!((first.tag, first.outcome.err()), (0, Some(Reason::Deadline)));
    assert_eq!(drain(&queue), [2, 3], "the flow still has the turn of the one evicted");
}

#[test]
fn those_a_cap_holds_back_keep_their_order() {
    let text = "engine: {driver: host, admissionTimeout: unlimited}\ntenants: {capped: {maxInFlight: 1}}\n\
        pools: {default: {slots: 2, bands: [{priority: 0, order: edf}]}}";
    let (engine, pool, _clock) = document(text);
    let queue = engine.completion_queue(512).unwrap();
    let [x, y] = ["x", "y"].map(|key| pool.flow("", "capped", key).unwrap());
    let request = |flow, ms| plain(&pool).flow(flow).timeout(Duration::from_millis(ms));
    let first = pool.try_admit(&request(x, 1)).unwrap();
    let other = pool.try_admit(&plain(&pool)).unwrap();
    for (tag, (flow, ms)) in (0..).zip([(x, 500), (y, 300), (x, 100), (y, 400), (y, 200)]) {
        let _ticket = queued(pool.submit(&request(flow, ms), &queue, tag).unwrap());
    }
    // A slot is free, but the tenant has its one: all of them are set aside, and one comes that overtakes.
    drop(other);
    assert!(queue.poll().is_none());
    assert_eq!(pool.view().capped, 5);
    let _ticket = queued(pool.submit(&request(y, 50), &queue, 5).unwrap());
    drop(first);
    assert_eq!(drain(&queue), [5, 2, 4, 1, 3, 0]);
}

/// One who waits, in the model.
#[derive(Clone, Copy, Debug)]
struct Waiting {
    tag: u64,
    ticket: Ticket,
    flow: usize,
    key: (u64, u64),
    deadline: u64,
}

/// An engine and a list sorted by hand, side by side.
struct Random<'p> {
    order: &'static str,
    engine: &'p Engine,
    pool: &'p Pool,
    clock: &'p Clock,
    queue: &'p CompletionQueue,
    flows: [Flow; 5],
    rng: Rng,
    now: u64,
    waiting: Vec<Waiting>,
    running: Vec<(Permit<'p>, usize)>,
    granted: u32,
}

impl Random<'_> {
    fn submit(&mut self, tag: u64) {
        let flow = self.rng.below(5);
        let mut upto = |n| self.rng.below(n) as u64;
        let (wait, promise, received) = (5 + upto(400), upto(300), upto(50));
        let request = plain(self.pool)
            .flow(self.flows[flow])
            .timeout(Duration::from_millis(wait))
            .slo(Duration::from_millis(promise))
            .received_at(received * MS);
        let deadline = self.now + wait * MS;
        let key = match self.order {
            "edf" => (deadline, self.now),
            _ => ((received + promise) * MS, received * MS),
        };
        match self.pool.submit(&request, self.queue, tag).unwrap() {
            Submitted::Granted(permit) => self.running.push((permit, flow)),
            Submitted::Queued(ticket) => {
                self.waiting.push(Waiting { tag, ticket, flow, key, deadline });
            }
        }
    }

    fn has_room(&self, flow: usize) -> bool {
        let used =
            |flows: &[usize]| self.running.iter().filter(|(_, flow)| flows.contains(flow)).count();
        match flow {
            0 | 1 => used(&[0, 1]) < 1,
            2 => used(&[2, 3]) < 2 && used(&[2]) < 1,
            3 => used(&[2, 3]) < 2,
            _ => true,
        }
    }

    /// Whoever is granted is the first of the list that has room; who is evicted is too late.
    fn take(&mut self) {
        while let Some(done) = self.queue.poll() {
            let at = self.waiting.iter().position(|it| it.tag == done.tag).unwrap();
            let it = self.waiting[at];
            match done.outcome {
                Err(reason) => {
                    assert_eq!(reason, Reason::Deadline);
                    assert!(it.deadline <= self.now);
                }
                Ok(permit) => {
                    let runnable = self.waiting.iter().filter(|it| self.has_room(it.flow));
                    let first = runnable.min_by_key(|it| (it.key, it.tag)).unwrap();
                    assert_eq!((first.tag, first.key), (it.tag, it.key), "{}", self.order);
                    self.running.push((permit, it.flow));
                    self.granted += 1;
                }
            }
            self.waiting.remove(at);
        }
    }

    fn step(&mut self, tag: u64) {
        match self.rng.below(8) {
            0..=3 => self.submit(tag),
            4 if !self.waiting.is_empty() => {
                let gone = self.waiting.remove(self.rng.below(self.waiting.len()));
                assert_eq!(self.pool.cancel(gone.ticket), CancelAnswer::Cancelled);
            }
            5 => {
                self.now += self.rng.below(40) as u64 * MS;
                self.clock.set(self.now);
                settle(self.engine);
            }
            _ if !self.running.is_empty() => {
                drop(self.running.swap_remove(self.rng.below(self.running.len())));
            }
            _ => {}
        }
        self.take();
        let view = self.pool.view();
        let counts = (view.waiting as usize, view.running as usize);
        assert_eq!(counts, (self.waiting.len(), self.running.len()));
    }
}

#[test]
fn ranked_orders_are_exact_under_random_cancels_expiries_and_caps() {
    for order in ["edf", "slo-deadline"] {
        let text = format!(
            "engine: {{driver: host, maxRequests: 512, admissionTimeout: unlimited}}\n\
             tenants: {{a: {{maxInFlight: 1}}, b: {{maxInFlight: 2}}}}\n\
             keys: {{k: {{tenant: b, maxInFlight: 1}}}}\n\
             pools: {{default: {{slots: 4, bands: [{{priority: 0, order: {order}}}]}}}}"
        );
        for seed in 0..if cfg!(miri) { 1 } else { 12 } {
            let (engine, pool, clock) = document(&text);
            let queue = engine.completion_queue(512).unwrap();
            let named = [("a", ""), ("a", "other"), ("b", "k"), ("b", "l"), ("c", "")];
            let mut random = Random {
                order,
                engine: &engine,
                pool: &pool,
                clock: &clock,
                queue: &queue,
                flows: named.map(|(tenant, key)| pool.flow("", tenant, key).unwrap()),
                rng: Rng(seed),
                now: 0,
                waiting: Vec::new(),
                running: Vec::new(),
                granted: 0,
            };
            (0..600).for_each(|tag| random.step(tag));
            assert!(random.granted > 50, "{}", random.granted);
        }
    }
}

#[test]
fn a_band_made_while_the_pool_runs_brings_its_order_and_keeps_it() {
    let mut settings = common::settings(bandgate_core::DriverKind::Host, 1, &[0]);
    settings.pools[0].max_bands = 2;
    let (engine, pool, _clock) = host(&settings);
    let made = |order| BandSettings { order, ..BandSettings::new(7) };
    let band = pool.add_band(made(Order::Edf)).unwrap();
    let wait = |ms| Request::new(band).timeout(Duration::from_millis(ms));
    let requests = [wait(900), wait(300), wait(600)];
    assert_eq!(granted(&pool, &engine, &requests), [1, 2, 0]);
    // Removed with waiters: they are served in their order, and it comes back in no other.
    let queue = engine.completion_queue(8).unwrap();
    let running = pool.try_admit(&plain(&pool)).unwrap();
    for (tag, ms) in [(8, 200), (9, 100)] {
        let _ticket = queued(pool.submit(&wait(ms), &queue, tag).unwrap());
    }
    pool.remove_band(7).unwrap();
    assert!(matches!(pool.add_band(made(Order::Fcfs)), Err(BandError::Invalid(_))));
    assert_eq!(pool.band(7), Err(Reason::UnknownBand), "nothing changed");
    drop(running);
    assert_eq!(drain(&queue), [9, 8]);
    pool.add_band(made(Order::Edf)).unwrap();
    assert_eq!(granted(&pool, &engine, &requests), [1, 2, 0]);
}
