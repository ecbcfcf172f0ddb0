//! The script all drivers run: one slot, so that the order of grants is the policy's alone.

use core::time::Duration;
use std::collections::BTreeSet;
use std::sync::Mutex;
use std::time::Instant;

use bandgate_core::types::settings::DriverKind;
use bandgate_core::{
    CancelAnswer, CompletionQueue, Engine, Info, Permit, Pool, Reason, Request, Submitted, Ticket,
};

use super::common::{poll_once, settings, start};

/// What came of it: grants in order, evictions in any.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Log {
    grants: Vec<u64>,
    evictions: BTreeSet<(u64, Reason)>,
}

/// As the specification says: strict bands, first come first served within one; 9 is the blocking call,
/// 8 the request behind a future that is dropped with its grant.
pub(crate) fn expected() -> Log {
    Log {
        grants: vec![4, 5, 2, 9, 1, 6, 8],
        evictions: [(3, Reason::Cancelled), (7, Reason::Deadline)].into(),
    }
}

/// Waits for a condition; the host driver is polled meanwhile.
pub(crate) fn until(engine: &Engine, driver: DriverKind, mut holds: impl FnMut() -> bool) {
    let start = Instant::now();
    while !holds() {
        if driver == DriverKind::Host {
            engine.poll();
        }
        assert!(start.elapsed() < Duration::from_secs(20), "{driver:?}: {:?}", engine.info());
        std::thread::sleep(Duration::from_micros(100));
    }
}

struct Script<'e> {
    engine: &'e Engine,
    pool: &'e Pool,
    queue: &'e CompletionQueue,
    driver: DriverKind,
    log: Mutex<Log>,
}

pub(crate) fn run(driver: DriverKind) -> (Log, Info) {
    let (engine, pool) = start(&settings(driver, 1, &[20, 10]));
    let queue = engine.completion_queue(16).unwrap();
    let script =
        Script { engine: &engine, pool: &pool, queue: &queue, driver, log: Mutex::default() };
    script.run();
    let log = script.log.into_inner().unwrap();
    // A thread that has nothing to do must fall asleep before the last wake below.
    until(&engine, driver, || driver != DriverKind::Threads || engine.info().parks > 0);
    let request = Request::new(pool.band(0).unwrap());
    until(&engine, driver, || pool.try_admit(&request).is_ok());
    (log, engine.info())
}

impl<'e> Script<'e> {
    fn request(&self, priority: i32) -> Request {
        Request::new(self.pool.band(priority).unwrap())
    }

    fn submit(&self, priority: i32, tag: u64) -> Ticket {
        match self.pool.submit(&self.request(priority), self.queue, tag).unwrap() {
            Submitted::Queued(ticket) => ticket,
            Submitted::Granted(_) => panic!("{tag} was granted beside the one that runs"),
        }
    }

    fn until(&self, holds: impl FnMut() -> bool) {
        until(self.engine, self.driver, holds);
    }

    fn until_waiting(&self, count: u32) {
        self.until(|| self.pool.view().waiting == count);
    }

    fn evict(&self, tag: u64, reason: Reason) {
        assert!(self.log.lock().unwrap().evictions.insert((tag, reason)), "{tag} twice");
    }

    /// The next outcome; evictions are written down.
    fn next(&self) -> Option<Permit<'e>> {
        let completion = self.queue.poll()?;
        match completion.outcome {
            Ok(permit) => {
                self.log.lock().unwrap().grants.push(completion.tag);
                Some(permit)
            }
            Err(reason) => {
                self.evict(completion.tag, reason);
                None
            }
        }
    }

    fn evictions(&self) -> usize {
        self.log.lock().unwrap().evictions.len()
    }

    fn run(&self) {
        let running = self.pool.try_admit(&self.request(0)).unwrap();
        let tickets: Vec<_> = [(0, 1), (10, 2), (10, 3), (20, 4), (20, 5)]
            .map(|(priority, tag)| self.submit(priority, tag))
            .into();
        self.until_waiting(5);
        self.cancel(tickets[2]);
        self.until_waiting(4);
        let short = self.request(20).timeout(Duration::from_millis(20));
        assert!(matches!(self.pool.submit(&short, self.queue, 7), Ok(Submitted::Queued(_))));
        self.until(|| {
            assert!(self.next().is_none(), "nobody has a slot to run in");
            self.evictions() == 2
        });
        let mut dropped = self.pool.admit(self.request(20));
        assert!(poll_once(&mut dropped).is_pending());
        self.until_waiting(5);
        drop(dropped);
        self.until_waiting(4);
        std::thread::scope(|scope| {
            let (pool, log, request) = (self.pool, &self.log, self.request(10));
            scope.spawn(move || block(pool, log, request));
            self.until_waiting(5);
            let _ticket = self.submit(0, 6);
            self.until_waiting(6);
            drop(running);
            self.until(|| {
                drop(self.next());
                self.log.lock().unwrap().grants.len() == 6
            });
        });
        self.drop_a_grant();
    }

    fn cancel(&self, ticket: Ticket) {
        match self.pool.cancel(ticket) {
            CancelAnswer::Cancelled => self.evict(3, Reason::Cancelled),
            // The outcome comes by completion.
            CancelAnswer::Requested => {}
            other => panic!("{other:?}"),
        }
        self.until(|| {
            assert!(self.next().is_none());
            self.evictions() == 1
        });
        self.until(|| self.pool.cancel(ticket) == CancelAnswer::Stale);
    }

    /// A future that has its grant and is dropped before anybody looks: the slot goes on to the next.
    fn drop_a_grant(&self) {
        let mut running = None;
        self.until(|| {
            running = self.pool.try_admit(&self.request(0)).ok();
            running.is_some()
        });
        let mut future = self.pool.admit(self.request(20));
        assert!(poll_once(&mut future).is_pending());
        self.until_waiting(1);
        let _ticket = self.submit(0, 8);
        self.until_waiting(2);
        drop(running);
        self.until_waiting(1);
        assert!(self.queue.poll().is_none());
        drop(future);
        let mut last = None;
        self.until(|| {
            last = self.next();
            last.is_some()
        });
    }
}

fn block(pool: &Pool, log: &Mutex<Log>, request: Request) {
    let permit = pool.admit_blocking(request, None).unwrap();
    log.lock().unwrap().grants.push(9);
    drop(permit);
}
