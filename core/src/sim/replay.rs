//! The event loop in virtual time: arrivals from the workload, completions from a heap, deadlines from the dispatcher.
//!
//! At one instant completions come before deadlines, deadlines before arrivals; completions that end together come in row
//! order. So the order of events, and with it the report, does not depend on anything but the inputs.
#![forbid(unsafe_code)]

use core::fmt;

use super::{
    ends::Ends,
    stats::Collector,
    workload::{SimRequest, Workload},
};
use crate::error::Reason;

/// Arrivals between two calls of the progress function.
const PROGRESS_EVERY: usize = 4096;

/// Answer to a submit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SubmitResult {
    /// It has its slot now, without having been queued.
    Granted,
    /// It waits, or is on its way; what becomes of it comes out of [`Dispatcher::drain`].
    Queued,
    /// It was refused.
    Rejected(Reason),
}

/// What became of a queued request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The request of this row has its slot.
    Granted(u32),
    /// The request of this row waits no longer.
    Evicted(u32, Reason),
}

/// What is being replayed: the engine, or a model of it in tests.
pub trait Dispatcher {
    /// A request arrives.
    fn submit(&mut self, now_ns: u64, request: &SimRequest) -> SubmitResult;
    /// The request of this row gives its slot back.
    fn release(&mut self, now_ns: u64, row: u32);
    /// Time passes: expire deadlines, finish work a bounded turn left over.
    fn poll(&mut self, now_ns: u64);
    /// Moves the outcomes since the last call to `out`, in the order they were decided.
    fn drain(&mut self, out: &mut Vec<Outcome>);
    /// When `poll` wants to be called next, if at all; a time that has passed: now.
    fn next_deadline(&self) -> Option<u64>;
}

/// The dispatcher did what it must never do, or virtual time ran out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReplayError {
    /// An outcome for a row that was not waiting.
    NotWaiting(u32),
    /// More requests running than slots.
    OverAdmitted {
        /// Slots of the pool.
        slots: u32,
        /// Virtual time in nanoseconds.
        t_ns: u64,
    },
    /// Virtual time would pass 2^64 nanoseconds.
    TimeOverflow,
    /// A pool without slots.
    NoSlots,
}

impl fmt::Display for ReplayError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotWaiting(row) => write!(f, "row {row} got an outcome while it was not waiting"),
            Self::OverAdmitted { slots, t_ns } => {
                write!(f, "more than {slots} requests run at {t_ns} ns of virtual time")
            }
            Self::TimeOverflow => f.write_str("virtual time runs past 2^64 nanoseconds"),
            Self::NoSlots => f.write_str("slots must be at least 1, got 0"),
        }
    }
}

impl core::error::Error for ReplayError {}

/// Where a request is; checked at each step, so a slot granted twice is an error and not a nicer report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Outside,
    Waiting,
    Running,
}

/// What starting a request needs to know of it. Written when it is queued: thousands may wait, and what is read when one
/// of them is granted has left the near caches, so it is kept small.
#[derive(Clone, Copy, Debug, Default)]
struct Waiter {
    arrive_ns: u64,
    service_ns: u64,
}

/// State of one replay.
struct Run<'a, D> {
    dispatcher: &'a mut D,
    collector: &'a mut Collector,
    /// Where each row is, and its band.
    places: Vec<(Place, u8)>,
    /// By row.
    waiters: Vec<Waiter>,
    running: Ends,
    outcomes: Vec<Outcome>,
    /// Outcomes so far.
    decided: u64,
    /// Virtual time of the last event.
    now: u64,
    slots: u32,
}

/// Replays `workload` on `dispatcher`, a pool of `slots` slots, and counts into `collector`, until nothing more can
/// happen: requests may still wait then, if the configuration never lets them run.
///
/// `progress` is told the number of requests that arrived, now and then. Allocates only before the loop starts and when
/// more requests run than ever before.
pub fn replay<D: Dispatcher>(
    workload: &Workload,
    slots: u32,
    dispatcher: &mut D,
    collector: &mut Collector,
    progress: &mut dyn FnMut(usize),
) -> Result<(), ReplayError> {
    if slots == 0 {
        return Err(ReplayError::NoSlots);
    }
    let requests = &workload.requests[..];
    let heap = usize::try_from(slots).unwrap_or(usize::MAX).min(requests.len());
    let mut run = Run {
        dispatcher,
        collector,
        places: vec![(Place::Outside, 0); requests.len()],
        waiters: vec![Waiter::default(); requests.len()],
        running: Ends::with_capacity(heap),
        outcomes: Vec::with_capacity(64),
        decided: 0,
        now: 0,
        slots,
    };
    let mut next = 0;
    loop {
        // `u64::MAX`: nothing of that kind.
        let arrival = requests.get(next).map_or(u64::MAX, |r| r.arrive_ns);
        let end = run.running.first_ns().unwrap_or(u64::MAX);
        let deadline = run.dispatcher.next_deadline().unwrap_or(u64::MAX);
        if deadline < end && deadline <= arrival && run.turn(deadline)? {
            continue;
        }
        if end <= arrival && end != u64::MAX {
            run.complete()?;
        } else if let Some(request) = requests.get(next) {
            next += 1;
            run.arrive(request)?;
            if next % PROGRESS_EVERY == 0 {
                progress(next);
            }
        } else {
            break;
        }
    }
    progress(next);
    run.collector.finish();
    Ok(())
}

impl<D: Dispatcher> Run<'_, D> {
    #[inline]
    fn arrive(&mut self, request: &SimRequest) -> Result<(), ReplayError> {
        let SimRequest { arrive_ns, service_ns, row, band, .. } = *request;
        let waiter = Waiter { arrive_ns, service_ns };
        self.now = arrive_ns;
        self.collector.arrived(band);
        match self.dispatcher.submit(arrive_ns, request) {
            SubmitResult::Granted => self.start(row, band, waiter, false)?,
            SubmitResult::Queued => {
                self.places[row as usize] = (Place::Waiting, band);
                self.waiters[row as usize] = waiter;
                self.collector.queued(band);
            }
            SubmitResult::Rejected(reason) => self.collector.rejected(band, reason),
        }
        self.outcomes()
    }

    /// The request that ends first gives its slot back.
    #[inline]
    fn complete(&mut self) -> Result<(), ReplayError> {
        let Some((now, row)) = self.running.pop() else { return Ok(()) };
        self.now = now;
        self.places[row as usize].0 = Place::Outside;
        self.collector.left(now);
        self.dispatcher.release(now, row);
        self.outcomes()
    }

    /// Polls the dispatcher at its deadline. False if that changed nothing: the next event then comes first.
    fn turn(&mut self, deadline: u64) -> Result<bool, ReplayError> {
        let before = self.decided;
        self.now = self.now.max(deadline);
        self.dispatcher.poll(self.now);
        self.outcomes()?;
        Ok(self.decided != before || self.dispatcher.next_deadline() != Some(deadline))
    }

    /// Applies what the dispatcher decided since the last call.
    #[inline]
    fn outcomes(&mut self) -> Result<(), ReplayError> {
        self.dispatcher.drain(&mut self.outcomes);
        let count = self.outcomes.len();
        for at in 0..count {
            self.apply(self.outcomes[at])?;
        }
        self.decided += count as u64;
        self.outcomes.clear();
        Ok(())
    }

    #[inline]
    fn apply(&mut self, outcome: Outcome) -> Result<(), ReplayError> {
        let (Outcome::Granted(row) | Outcome::Evicted(row, _)) = outcome;
        let at = row as usize;
        let Some(&(Place::Waiting, band)) = self.places.get(at) else {
            return Err(ReplayError::NotWaiting(row));
        };
        if let Outcome::Evicted(_, reason) = outcome {
            self.places[at].0 = Place::Outside;
            self.collector.evicted(band, reason);
            return Ok(());
        }
        self.start(row, band, self.waiters[at], true)
    }

    /// A request begins to run.
    #[inline]
    fn start(
        &mut self,
        row: u32,
        band: u8,
        waiter: Waiter,
        queued: bool,
    ) -> Result<(), ReplayError> {
        let now = self.now;
        let end = now.checked_add(waiter.service_ns).filter(|&end| end != u64::MAX);
        let end = end.ok_or(ReplayError::TimeOverflow)?;
        self.places[row as usize].0 = Place::Running;
        self.collector.began(band, self.running.len());
        self.running.push(end, row);
        if self.running.len() > self.slots as usize {
            return Err(ReplayError::OverAdmitted { slots: self.slots, t_ns: now });
        }
        self.collector.granted(band, now, now - waiter.arrive_ns, queued);
        Ok(())
    }
}

#[cfg(test)]
mod tests;
