//! When a cross-core run counts.
//!
//! A hypervisor moves virtual cores: the round trip of one cache line is about 100 ns while two cores are
//! near, and three to six times that for some 100 ms at a time when they are not. So the bare round trip is
//! measured just before and just after every cross-core run; the run counts only if both are below
//! [`NEAR_NS`]. Runs repeat until [`WANTED`] are counted or [`TRIES`] are tried. Fewer than [`ENOUGH`]
//! counted runs are no measurement.

use core::{
    hint::spin_loop,
    sync::atomic::{
        AtomicU64, AtomicUsize,
        Ordering::{AcqRel, Acquire, Release},
    },
};
use std::thread;

use crossbeam_utils::CachePadded;

use crate::{machine, stats};

/// A round trip above this means the cores were far apart, in nanoseconds.
pub const NEAR_NS: f64 = 150.0;
/// Runs to count.
pub const WANTED: usize = 9;
/// Runs to try at most.
pub const TRIES: usize = 40;
/// Counted runs below which nothing is reported.
pub const ENOUGH: usize = 5;
/// Exchanges of one probe: about 0.3 ms when near.
const EXCHANGES: u64 = 3_000;

/// The counted runs of one measurement.
#[derive(Clone, Debug)]
pub struct Gated<T> {
    /// What the counted runs gave, in order.
    pub counted: Vec<T>,
    /// Runs tried, counted ones included.
    pub tried: usize,
    /// Round trips around the counted runs, in nanoseconds.
    pub near_ns: Vec<f64>,
    /// Round trips of the probes that refused a run, in nanoseconds.
    pub far_ns: Vec<f64>,
}

impl<T> Gated<T> {
    /// Median round trip around the counted runs.
    pub fn round_trip_ns(&self) -> Option<f64> {
        stats::median(&self.near_ns)
    }
}

/// Runs until enough runs are counted or all tries are used.
pub fn gated<T>(run: impl FnMut() -> T) -> Gated<T> {
    gated_by(round_trip_ns, run)
}

fn gated_by<T>(mut probe: impl FnMut() -> f64, mut run: impl FnMut() -> T) -> Gated<T> {
    let mut gated = Gated { counted: vec![], tried: 0, near_ns: vec![], far_ns: vec![] };
    while gated.counted.len() < WANTED && gated.tried < TRIES {
        let before = probe();
        let result = run();
        let after = probe();
        gated.tried += 1;
        if before < NEAR_NS && after < NEAR_NS {
            gated.near_ns.extend([before, after]);
            gated.counted.push(result);
        } else {
            gated.far_ns.push(before.max(after));
        }
    }
    gated
}

/// The bare round trip between cores 0 and 1 now: one store each way, on two lines.
pub fn round_trip_ns() -> f64 {
    let there = CachePadded::new(AtomicU64::new(0));
    let back = CachePadded::new(AtomicU64::new(0));
    let ((), (), elapsed) = pair(
        || {
            for turn in 1..=EXCHANGES {
                send(&there, turn);
                expect(&back, turn);
            }
        },
        || {
            for turn in 1..=EXCHANGES {
                expect(&there, turn);
                send(&back, turn);
            }
        },
    );
    elapsed / EXCHANGES as f64
}

/// Hands `turn` to the other core.
#[inline(always)]
pub fn send(line: &AtomicU64, turn: u64) {
    // ORDERING: Release pairs with the Acquire in `expect`, as a real hand-off would need.
    line.store(turn, Release);
}

/// Spins until the other core has handed over `turn`.
#[inline(always)]
pub fn expect(line: &AtomicU64, turn: u64) {
    // ORDERING: Acquire pairs with the Release in `send`.
    while line.load(Acquire) != turn {
        spin_loop();
    }
}

/// Runs two closures on cores 0 and 1 from a common start: both results, and the nanoseconds from the
/// earlier start to the later end.
pub fn pair<A: Send, B: Send>(
    first: impl FnOnce() -> A + Send,
    second: impl FnOnce() -> B + Send,
) -> (A, B, f64) {
    let ready = AtomicUsize::new(0);
    let (one, two) = thread::scope(|scope| {
        let one = scope.spawn(|| timed(0, &ready, first));
        let two = scope.spawn(|| timed(1, &ready, second));
        (one.join(), two.join())
    });
    let ((a, a_from, a_to), (b, b_from, b_to)) = match (one, two) {
        (Ok(one), Ok(two)) => (one, two),
        (Err(panic), _) | (_, Err(panic)) => std::panic::resume_unwind(panic),
    };
    let ticks = a_to.max(b_to).saturating_sub(a_from.min(b_from));
    (a, b, machine::ns(ticks))
}

/// Runs a closure on a thread kept on one core.
pub fn on_core<T: Send>(core: usize, work: impl FnOnce() -> T + Send) -> T {
    let pinned = || {
        machine::pin(core);
        work()
    };
    let done = thread::scope(|scope| scope.spawn(pinned).join());
    done.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

fn timed<T>(core: usize, ready: &AtomicUsize, work: impl FnOnce() -> T) -> (T, u64, u64) {
    machine::pin(core);
    // ORDERING: AcqRel pairs with the Acquire below: both threads leave after both have arrived.
    ready.fetch_add(1, AcqRel);
    // ORDERING: Acquire pairs with the fetch_add of the other thread.
    while ready.load(Acquire) < 2 {
        spin_loop();
    }
    let from = machine::stamp();
    let result = work();
    (result, from, machine::stamp_after())
}

#[cfg(test)]
mod tests {
    use super::{ENOUGH, TRIES, WANTED, gated_by};

    #[test]
    fn a_run_counts_only_between_two_near_round_trips() {
        // Probes come in pairs: the second run ends far, all others stand between near ones.
        let mut probes = [100.0, 100.0, 100.0, 300.0].into_iter().chain(core::iter::repeat(90.0));
        let mut runs = 0;
        let gated = gated_by(
            || probes.next().unwrap_or(90.0),
            || {
                runs += 1;
                runs
            },
        );
        assert_eq!(gated.tried, WANTED + 1);
        assert_eq!(gated.counted.len(), WANTED);
        assert!(!gated.counted.contains(&2));
        assert_eq!(gated.far_ns, [300.0]);
    }

    #[test]
    fn cores_that_stay_far_end_after_the_tries_with_nothing_counted() {
        let gated = gated_by(|| 400.0, || ());
        assert_eq!((gated.tried, gated.counted.len()), (TRIES, 0));
        assert!(gated.counted.len() < ENOUGH);
        assert_eq!(gated.round_trip_ns(), None);
    }
}
