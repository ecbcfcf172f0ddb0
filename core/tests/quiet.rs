//! No allocation from the first submit after start, on any thread of the engine or its callers.
//!
//! Excepted, and allocating by contract: interning a flow (`Pool::flow`), making an engine or a completion
//! queue, and the first blocking call of a thread, which makes the thread's alarm.
//!
//! One test, because the counter sees the whole process but the harness's own thread.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on may panic")]
#![cfg(all(target_os = "linux", not(any(loom, miri))))]

mod common;

use core::alloc::{GlobalAlloc, Layout};
use core::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use core::time::Duration;
use std::alloc::System;
use std::sync::Arc;

use bandgate_core::types::settings::DriverKind;
use bandgate_core::{
    Admit, CompletionQueue, Engine, Flow, Permit, Pool, Reason, Request, Submitted,
};

use common::{Wakes, settings, start};

struct Counting;

static ARMED: AtomicBool = AtomicBool::new(false);
static COUNT: AtomicUsize = AtomicUsize::new(0);
/// Size of the first allocation that was counted, to find it by.
static FIRST: AtomicUsize = AtomicUsize::new(0);

fn note(size: usize) {
    if !ARMED.load(Ordering::SeqCst) {
        return;
    }
    // SAFETY: plain system calls.
    let process = unsafe { libc::getpid() };
    // SAFETY: as above.
    if unsafe { libc::gettid() } == process {
        return; // The harness waits there, and may report.
    }
    COUNT.fetch_add(1, Ordering::SeqCst);
    let _first = FIRST.compare_exchange(0, size, Ordering::SeqCst, Ordering::SeqCst);
}

// SAFETY: hands every call to the system's allocator as it came.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        note(layout.size());
        // SAFETY: the caller's contract is passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        // SAFETY: as above.
        unsafe { System.dealloc(at, layout) }
    }

    unsafe fn realloc(&self, at: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        note(size);
        // SAFETY: as above.
        unsafe { System.realloc(at, layout, size) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

/// Allocations during `f`.
fn count(f: impl FnOnce()) -> usize {
    COUNT.store(0, Ordering::SeqCst);
    FIRST.store(0, Ordering::SeqCst);
    ARMED.store(true, Ordering::SeqCst);
    f();
    ARMED.store(false, Ordering::SeqCst);
    COUNT.load(Ordering::SeqCst)
}

struct Scene<'e> {
    engine: &'e Engine,
    pool: &'e Pool,
    queue: &'e CompletionQueue,
    driver: DriverKind,
    flow: Flow,
    permits: Vec<Permit<'e>>,
    futures: Vec<Admit<'e>>,
    tickets: Vec<bandgate_core::Ticket>,
    wakes: Arc<Wakes>,
}

const SLOTS: usize = 8;

impl<'e> Scene<'e> {
    fn request(&self) -> Request {
        Request::new(self.pool.band(10).unwrap()).no_timeout()
    }

    fn until(&self, mut holds: impl FnMut() -> bool) {
        let start = std::time::Instant::now();
        while !holds() {
            assert!(start.elapsed() < Duration::from_secs(20), "{:?}", self.pool.view());
            if self.driver == DriverKind::Host {
                self.engine.poll();
            }
            std::thread::sleep(Duration::from_micros(50));
        }
    }

    fn until_counts(&self, running: usize, waiting: usize) {
        self.until(|| {
            let view = self.pool.view();
            (view.running as usize, view.waiting as usize) == (running, waiting)
        });
    }

    fn fast(&self) {
        for _ in 0..1_000 {
            for request in [self.request(), self.request().flow(self.flow)] {
                self.until(|| match self.pool.try_admit(&request) {
                    Ok(mut permit) => {
                        permit.settle(3);
                        drop(permit.into_owned());
                        true
                    }
                    Err(reason) => {
                        assert!(matches!(reason, Reason::Busy | Reason::WouldQueue));
                        false
                    }
                });
            }
        }
    }

    fn fill(&mut self) {
        self.until_counts(0, 0);
        while self.permits.len() < SLOTS {
            match self.pool.try_admit(&self.request().flow(self.flow)) {
                Ok(permit) => self.permits.push(permit),
                Err(reason) => assert_eq!(reason, Reason::Busy),
            }
        }
    }

    fn submit(&mut self, request: &Request, count: u64) {
        for tag in 0..count {
            match self.pool.submit(request, self.queue, tag) {
                Ok(Submitted::Queued(ticket)) => self.tickets.push(ticket),
                other => panic!("{other:?}"),
            }
        }
    }

    fn queued_and_released(&mut self) {
        self.fill();
        let request = self.request();
        self.submit(&request, 50);
        self.until_counts(SLOTS, 50);
        self.permits.clear();
        let mut outcomes = 0;
        self.until(|| {
            outcomes += self.queue.drain(|completion| drop(completion.outcome.unwrap()));
            outcomes == 50
        });
        self.tickets.clear();
    }

    fn cancelled_and_expired(&mut self) {
        self.fill();
        let request = self.request();
        self.submit(&request, 20);
        while let Some(ticket) = self.tickets.pop() {
            let _answer = self.pool.cancel(ticket);
        }
        self.until_counts(SLOTS, 0);
        self.submit(&request.timeout(Duration::from_millis(3)), 20);
        self.tickets.clear();
        let mut expired = 0;
        self.until(|| {
            while let Some(completion) = self.queue.poll() {
                expired += usize::from(completion.outcome.err() == Some(Reason::Deadline));
            }
            expired == 20
        });
        self.permits.clear();
    }

    fn poll(future: &mut Admit<'e>, wakes: &Arc<Wakes>) -> Option<Result<Permit<'e>, Reason>> {
        let waker = Arc::clone(wakes).into();
        let mut context = core::task::Context::from_waker(&waker);
        match core::future::Future::poll(core::pin::Pin::new(future), &mut context) {
            core::task::Poll::Ready(answer) => Some(answer),
            core::task::Poll::Pending => None,
        }
    }

    fn futures(&mut self) {
        self.fill();
        for _ in 0..20 {
            self.futures.push(self.pool.admit(self.request()));
            assert!(Self::poll(self.futures.last_mut().unwrap(), &self.wakes).is_none());
        }
        self.until_counts(SLOTS, 20);
        self.futures.truncate(10);
        self.until_counts(SLOTS, 10);
        self.permits.clear();
        while !self.futures.is_empty() {
            // In order: the last ones get the slots of the first.
            let mut future = self.futures.remove(0);
            self.until(|| {
                Self::poll(&mut future, &self.wakes).is_some_and(|answer| answer.is_ok())
            });
        }
        self.until_counts(0, 0);
        assert_eq!(Arc::strong_count(&self.wakes), 1, "an ended future keeps no waker");
    }

    fn changed(&mut self) {
        self.fill();
        let slots = u32::try_from(SLOTS).unwrap();
        let saturations = [Some(0.5), Some(1.0), None];
        for n in 0..50 {
            assert!(self.pool.resize(1 + n % slots) && self.pool.resize(slots));
            assert!(self.pool.set_saturation(saturations[n as usize % 3]));
        }
        assert!(self.pool.set_saturation(None));
        self.permits.clear();
        self.until_counts(0, 0);
    }

    /// Everything at once behind a paused holder: ring, urgent list, owed releases.
    fn left_behind(&mut self) {
        self.fill();
        let request = self.request();
        self.submit(&request, 30);
        self.until_counts(SLOTS, 30);
        let (pool, tickets, permits) = (self.pool, &mut self.tickets, &mut self.permits);
        let mut leave = || {
            tickets.drain(..10).for_each(|ticket| _ = pool.cancel(ticket));
            permits.clear();
        };
        while !pool.pause_inside_turn(&mut leave) {}
        self.tickets.clear();
        let mut outcomes = 0;
        self.until(|| {
            outcomes += self.queue.drain(|completion| drop(completion));
            outcomes == 30
        });
        self.until_counts(0, 0);
    }

    fn all(&mut self) {
        self.fast();
        self.queued_and_released();
        self.cancelled_and_expired();
        self.futures();
        self.changed();
        self.left_behind();
    }
}

// INV: I54
#[test]
fn nothing_allocates_from_the_first_submit_on() {
    for driver in [DriverKind::Host, DriverKind::Inline, DriverKind::Threads] {
        let mut settings = settings(driver, u32::try_from(SLOTS).unwrap(), &[10]);
        settings.pools[0].ring_capacity = if driver == DriverKind::Threads { 128 } else { 2 };
        settings.tenants = vec![common::tenant("t", 100)];
        let (engine, pool) = start(&settings);
        let queue = engine.completion_queue(64).unwrap();
        let interning = count(|| _ = pool.flow("", "t", "k"));
        assert_ne!(interning, 0, "the counter counts");
        let flow = pool.flow("", "t", "k").unwrap();
        let mut scene = Scene {
            engine: &engine,
            pool: &pool,
            queue: &queue,
            driver,
            flow,
            permits: Vec::with_capacity(SLOTS),
            futures: Vec::with_capacity(64),
            tickets: Vec::with_capacity(256),
            wakes: Arc::default(),
        };
        // The engine's thread has started when it first sleeps: its start allocates.
        scene.until(|| driver == DriverKind::Host || engine.info().parks > 0);
        let allocations = count(|| scene.all());
        let first = FIRST.load(Ordering::SeqCst);
        assert_eq!(allocations, 0, "{driver:?}: the first has {first} bytes");
        assert_eq!(count(|| engine.shutdown()), 0, "{driver:?}: shutdown");
    }
}
