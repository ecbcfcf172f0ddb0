//! Real threads on small pools: whatever they do, caps hold at every moment, every request has one outcome,
//! and in the end every slot is free.
//!
//! Ghost counters stand beside the engine: a permit is counted after it was got and before it is given
//! back, so they never show more than really run.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on may panic")]
#![allow(clippy::print_stdout, reason = "how much was done")]
#![cfg(not(any(loom, miri)))]

mod common;

use core::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use core::time::Duration;
use std::time::Instant;

use bandgate_core::types::settings::DriverKind;
use bandgate_core::{
    CancelAnswer, CompletionQueue, Engine, OwnedPermit, Pool, Reason, Request, Settings, Submitted,
    Ticket,
};

use common::{CREDITS, Rng, Watchdog, explicit, poll_once, settings, start, wfq};

const THREADS: usize = 4;
/// A run lasts this long, or longer on a loaded machine: until this much was granted, within the limit.
const RUN: Duration = Duration::from_millis(300);
const LIMIT: Duration = Duration::from_secs(5);
const ENOUGH: u64 = 100;
const TENANTS: usize = 2;
const CAPS: [i64; TENANTS] = [1, 2];

fn small(driver: DriverKind, slots: u32, ring: u32) -> Settings {
    let mut settings = settings(driver, slots, &[20, 10]);
    settings.max_requests = 64;
    settings.pools[0].ring_capacity = ring;
    settings.pools[0].selection =
        wfq(CREDITS, explicit(&[(20, 6_000), (10, 3_000), (0, 1_000)]), 0.5);
    for (n, cap) in CAPS.into_iter().enumerate() {
        settings.tenants.push(common::tenant(&format!("t{n}"), u32::try_from(cap).unwrap()));
    }
    settings
}

/// What must be true beside the engine.
#[derive(Debug)]
struct Ghost {
    slots: i64,
    running: AtomicI64,
    tenants: [AtomicI64; TENANTS],
    granted: AtomicU64,
}

impl Ghost {
    fn new(slots: u32) -> Self {
        let (running, tenants) = (AtomicI64::new(0), Default::default());
        Self { slots: slots.into(), running, tenants, granted: AtomicU64::new(0) }
    }

    fn hold(&self, permit: OwnedPermit, tenant: Option<usize>) -> Held<'_> {
        self.granted.fetch_add(1, Ordering::SeqCst);
        assert!(self.running.fetch_add(1, Ordering::SeqCst) < self.slots, "cap of the pool");
        if let Some(tenant) = tenant {
            let before = self.tenants[tenant].fetch_add(1, Ordering::SeqCst);
            assert!(before < CAPS[tenant], "cap of tenant {tenant}");
        }
        Held { ghost: self, tenant, permit: Some(permit) }
    }
}

/// A permit that is counted.
#[derive(Debug)]
struct Held<'g> {
    ghost: &'g Ghost,
    tenant: Option<usize>,
    permit: Option<OwnedPermit>,
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        self.ghost.running.fetch_sub(1, Ordering::SeqCst);
        if let Some(tenant) = self.tenant {
            self.ghost.tenants[tenant].fetch_sub(1, Ordering::SeqCst);
        }
        drop(self.permit.take());
    }
}

/// One thread's part: its own completion queue, and what it holds and waits for.
struct Worker<'e> {
    pool: &'e Pool,
    queue: CompletionQueue,
    ghost: &'e Ghost,
    rng: Rng,
    requests: Vec<(Request, Option<usize>)>,
    held: Vec<Held<'e>>,
    /// Submitted and without an outcome: tag, ticket, tenant.
    open: Vec<(u64, Ticket, Option<usize>)>,
    next_tag: u64,
}

impl<'e> Worker<'e> {
    fn new(engine: &Engine, pool: &'e Pool, ghost: &'e Ghost, seed: u64) -> Self {
        let mut requests = Vec::new();
        for priority in [20, 10, 0] {
            let plain = Request::new(pool.band(priority).unwrap());
            requests.push((plain, None));
            for tenant in 0..TENANTS {
                let flow = pool.flow("", &format!("t{tenant}"), &format!("k{seed}")).unwrap();
                requests.push((plain.flow(flow), Some(tenant)));
            }
        }
        let queue = engine.completion_queue(16).unwrap();
        let (held, open, rng) = (Vec::new(), Vec::new(), Rng(seed));
        Self { pool, queue, ghost, rng, requests, held, open, next_tag: 0 }
    }

    fn run(&mut self, begin: Instant) {
        let is_over = |ghost: &Ghost| {
            let enough = ghost.granted.load(Ordering::SeqCst) >= ENOUGH;
            begin.elapsed() > if enough { RUN } else { LIMIT }
        };
        while !is_over(self.ghost) {
            let (request, tenant) = self.requests[self.rng.below(self.requests.len())];
            match self.rng.below(12) {
                0..=2 => self.submit(&request, tenant),
                3..=5 => self.try_admit(&request, tenant),
                6 => self.cancel(),
                7 => self.future(request, tenant),
                8 => self.block(request, tenant),
                _ if self.held.is_empty() => {}
                _ => drop(self.held.swap_remove(self.rng.below(self.held.len()))),
            }
            self.take_outcomes();
        }
    }

    fn submit(&mut self, request: &Request, tenant: Option<usize>) {
        let timeout = [200, 2_000, 1_000_000][self.rng.below(3)];
        let request = request.timeout(Duration::from_micros(timeout));
        self.next_tag += 1;
        match self.pool.submit(&request, &self.queue, self.next_tag) {
            Ok(Submitted::Granted(permit)) => {
                self.held.push(self.ghost.hold(permit.into_owned(), tenant));
            }
            Ok(Submitted::Queued(ticket)) => self.open.push((self.next_tag, ticket, tenant)),
            Err(reason) => assert!(matches!(reason, Reason::Busy | Reason::QueueFull), "{reason}"),
        }
    }

    fn try_admit(&mut self, request: &Request, tenant: Option<usize>) {
        match self.pool.try_admit(request) {
            Ok(permit) => self.held.push(self.ghost.hold(permit.into_owned(), tenant)),
            Err(reason) => assert!(matches!(reason, Reason::Busy | Reason::WouldQueue)),
        }
    }

    fn cancel(&mut self) {
        if self.open.is_empty() {
            return;
        }
        let at = self.rng.below(self.open.len());
        match self.pool.cancel(self.open[at].1) {
            // No completion follows: that was its outcome.
            CancelAnswer::Cancelled => drop(self.open.swap_remove(at)),
            // Its outcome is in the queue, or comes.
            CancelAnswer::Requested | CancelAnswer::TooLate | CancelAnswer::Stale => {}
            other => panic!("{other:?}"),
        }
    }

    /// Polled a few times, then taken or dropped with whatever it has.
    fn future(&mut self, request: Request, tenant: Option<usize>) {
        let mut future = self.pool.admit(request);
        for _ in 0..=self.rng.below(4) {
            match poll_once(&mut future) {
                core::task::Poll::Ready(Ok(permit)) => {
                    self.held.push(self.ghost.hold(permit.into_owned(), tenant));
                    return;
                }
                core::task::Poll::Ready(Err(reason)) => {
                    assert!(matches!(reason, Reason::Busy | Reason::QueueFull), "{reason}");
                    return;
                }
                core::task::Poll::Pending => std::thread::yield_now(),
            }
        }
    }

    fn block(&mut self, request: Request, tenant: Option<usize>) {
        let timeout = Duration::from_micros(50 + self.rng.next() % 1_000);
        match self.pool.admit_blocking(request, Some(timeout)) {
            Ok(permit) => self.held.push(self.ghost.hold(permit.into_owned(), tenant)),
            Err(reason) => assert!(
                matches!(reason, Reason::Deadline | Reason::Busy | Reason::QueueFull),
                "{reason}"
            ),
        }
    }

    fn take_outcomes(&mut self) {
        while let Some(completion) = self.queue.poll() {
            let found = self.open.iter().position(|open| open.0 == completion.tag);
            let at = found.expect("an outcome for one that has its outcome already");
            let (_, ticket, tenant) = self.open.swap_remove(at);
            assert_eq!(completion.ticket, ticket);
            match completion.outcome {
                Ok(permit) => self.held.push(self.ghost.hold(permit.into_owned(), tenant)),
                Err(reason) => {
                    assert!(matches!(reason, Reason::Deadline | Reason::Cancelled), "{reason}");
                }
            }
        }
    }

    /// Gives everything back and waits until each submit has its outcome.
    fn finish(&mut self) {
        while !self.open.is_empty() {
            self.held.clear();
            self.take_outcomes();
            std::thread::yield_now();
        }
        self.held.clear();
    }
}

fn hammer(driver: DriverKind, slots: u32, ring: u32, seed: u64) {
    let (engine, pool) = start(&small(driver, slots, ring));
    let shown = pool.clone();
    let _watchdog = Watchdog::start(Duration::from_secs(20), move || format!("{shown:#?}"));
    let ghost = Ghost::new(slots);
    let begin = Instant::now();
    std::thread::scope(|scope| {
        for n in 0..THREADS as u64 {
            let (engine, pool, ghost) = (&engine, &pool, &ghost);
            scope.spawn(move || {
                let mut worker = Worker::new(engine, pool, ghost, seed * 16 + n);
                worker.run(begin);
                worker.finish();
            });
        }
    });
    assert!(engine.drain(Duration::from_secs(10)), "{:?}", pool.view());
    let view = pool.view();
    let what = format!("{driver:?}, {slots} slots, ring of {ring}, seed {seed}: {view:?}");
    assert_eq!((view.free, view.waiting), (i32::try_from(slots).unwrap(), 0), "{what}");
    let granted = ghost.granted.load(Ordering::SeqCst);
    println!("{granted} granted: {what}");
    assert!(granted >= ENOUGH, "{granted} granted: {what}");
    assert_eq!(ghost.running.load(Ordering::SeqCst), 0, "{what}");
}

// INV: I01 I02 I03 I04 I05 I07 I13 I14 I20 I35 I36 I37 I39
#[test]
fn hammered_pools_keep_their_caps_and_lose_nothing() {
    for (seed, slots) in [1, 2, 8].into_iter().enumerate() {
        hammer(DriverKind::Inline, slots, 1_024, seed as u64);
        hammer(DriverKind::Threads, slots, 1_024, 10 + seed as u64);
    }
}

// INV: I01 I02 I04 I05 I14 I21 I35
#[test]
fn rings_of_1_and_2_lose_nothing_either() {
    for (seed, ring) in [1, 2].into_iter().enumerate() {
        hammer(DriverKind::Inline, 2, ring, 20 + seed as u64);
        hammer(DriverKind::Threads, 2, ring, 30 + seed as u64);
    }
}

/// The engine goes while others submit, wait in futures and hold permits.
// INV: I06 I22 I47 I48
#[test]
fn an_engine_dropped_under_load_answers_every_request() {
    for round in 0..30 {
        for driver in [DriverKind::Inline, DriverKind::Threads] {
            let (engine, pool) = start(&small(driver, 2, 4));
            let shown = pool.clone();
            let _watchdog = Watchdog::start(Duration::from_secs(20), move || format!("{shown:#?}"));
            let held = pool.try_admit(&Request::new(pool.band(0).unwrap())).ok();
            let held = held.map(bandgate_core::Permit::into_owned);
            std::thread::scope(|scope| {
                for n in 0..2 {
                    let (pool, queue) = (pool.clone(), engine.completion_queue(16).unwrap());
                    scope.spawn(move || until_shut_down(&pool, &queue, round * 2 + n));
                }
                std::thread::sleep(Duration::from_micros(300));
                drop(engine);
            });
            assert_eq!(pool.view().waiting, 0);
            drop(held);
            // The release is applied by whoever has the lock: nobody else is left.
            assert_eq!(pool.view().free, 2, "{driver:?}");
        }
    }
}

/// Submits and waits, both ways, until told that the pool is shut down; each submit has its outcome.
fn until_shut_down(pool: &Pool, queue: &CompletionQueue, seed: u64) {
    let mut rng = Rng(seed);
    let request = Request::new(pool.band(10).unwrap()).no_timeout();
    loop {
        let answer = if rng.below(2) == 0 {
            pool.admit_blocking(request, None).map(drop)
        } else {
            match pool.submit(&request, queue, 1) {
                Ok(Submitted::Granted(permit)) => {
                    drop(permit);
                    Ok(())
                }
                Ok(Submitted::Queued(_)) => {
                    assert!(queue.wait(Some(Duration::from_secs(15))), "no outcome");
                    queue.poll().unwrap().outcome.map(drop)
                }
                Err(reason) => Err(reason),
            }
        };
        match answer {
            Err(Reason::ShuttingDown) => return,
            Ok(()) | Err(Reason::Busy) => {}
            Err(other) => panic!("{other}"),
        }
    }
}
