//! What the engine's integration tests share.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on may panic")]
#![allow(dead_code, reason = "each test program uses its own part of this")]

use core::future::Future;
use core::pin::Pin;
use core::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use core::task::{Context, Poll, Waker};
use core::time::Duration;
use std::sync::Arc;
use std::task::Wake;
use std::time::Instant;

use bandgate_core::clock::Clock;
use bandgate_core::types::policy::{BandSelection, Distribution, Ratio, Schedule, WfqParams};
use bandgate_core::types::settings::{DriverKind, PoolSettings, TenantSettings};
use bandgate_core::{Engine, Pool, Settings, Submitted, Ticket};

/// One pool `default`.
pub(crate) fn settings(driver: DriverKind, slots: u32, bands: &[i32]) -> Settings {
    Settings {
        driver,
        max_requests: 4_096,
        pools: vec![PoolSettings::new("default", slots).with_bands(bands)],
        ..Settings::default()
    }
}

/// A tenant with a cap.
pub(crate) fn tenant(name: &str, cap: u32) -> TenantSettings {
    TenantSettings {
        name: name.into(),
        group: None,
        weight: 100,
        max_in_flight: Some(cap),
        exempt: false,
    }
}

/// An engine of the host driver on a clock that is turned by hand.
pub(crate) fn host(settings: &Settings) -> (Engine, Pool, Clock) {
    let clock = Clock::manual();
    let engine = Engine::start_with_clock(settings, clock.clone()).unwrap();
    let pool = engine.pool("default").unwrap();
    (engine, pool, clock)
}

/// An engine on the real clock.
pub(crate) fn start(settings: &Settings) -> (Engine, Pool) {
    let engine = Engine::start(settings).unwrap();
    let pool = engine.pool("default").unwrap();
    (engine, pool)
}

/// The ticket of a submit that must wait.
pub(crate) fn queued(submitted: Submitted<'_>) -> Ticket {
    match submitted {
        Submitted::Queued(ticket) => ticket,
        Submitted::Granted(permit) => panic!("granted at once: {permit:?}"),
    }
}

/// Polls once, with a waker that does nothing.
pub(crate) fn poll_once<F: Future + Unpin>(future: &mut F) -> Poll<F::Output> {
    Pin::new(future).poll(&mut Context::from_waker(Waker::noop()))
}

/// Polls the host driver until nothing is left to do now.
pub(crate) fn settle(engine: &Engine) {
    loop {
        let progress = engine.poll();
        let due = progress.next_deadline_ns.is_some_and(|at| at <= engine.clock().now_ns());
        if !progress.more && !due {
            return;
        }
    }
}

/// Weighted bands, always on.
pub(crate) fn wfq(
    schedule: Schedule,
    distribution: Distribution,
    activation: f64,
) -> BandSelection {
    BandSelection::Wfq(WfqParams {
        activation,
        deactivation: activation,
        retention_ns: 5_000_000_000,
        schedule,
        distribution,
    })
}

/// Listed ratios in 1/10,000.
pub(crate) fn explicit(ratios: &[(i32, u32)]) -> Distribution {
    let ratios = ratios.iter().map(|&(priority, parts)| (priority, Ratio(parts))).collect();
    Distribution::Explicit { ratios, default_ratio: None }
}

/// Priority first, without a window.
pub(crate) const CREDITS: Schedule = Schedule::PriorityFirst { max_fairness_window: None };

/// SplitMix64: the same numbers on every machine.
#[derive(Clone, Debug)]
pub(crate) struct Rng(pub(crate) u64);

impl Rng {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `n`.
    pub(crate) fn below(&mut self, n: usize) -> usize {
        usize::try_from(self.next() % n as u64).unwrap()
    }
}

/// A waker that counts.
#[derive(Debug, Default)]
pub(crate) struct Wakes(pub(crate) AtomicUsize);

impl Wakes {
    pub(crate) fn count(&self) -> usize {
        self.0.load(Ordering::SeqCst)
    }
}

impl Wake for Wakes {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

/// Ends the process with a report if a test hangs.
#[derive(Debug)]
pub(crate) struct Watchdog(Arc<AtomicBool>);

impl Watchdog {
    /// `report` says what the engine looks like; it runs on a thread of its own, without locks.
    pub(crate) fn start(limit: Duration, report: impl Fn() -> String + Send + 'static) -> Self {
        let done = Arc::new(AtomicBool::new(false));
        let seen = Arc::clone(&done);
        std::thread::spawn(move || {
            let start = Instant::now();
            while start.elapsed() < limit {
                if seen.load(Ordering::SeqCst) {
                    return;
                }
                std::thread::sleep(Duration::from_millis(20));
            }
            eprintln!("no end after {limit:?}: {}", report());
            std::process::abort();
        });
        Self(done)
    }
}

impl Drop for Watchdog {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}
