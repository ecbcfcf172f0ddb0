//! P8: two threads, eight slots: per operation when both go as fast as they can, and the tail of one admit +
//! release, paced and hammered.

use bandgate_benches::{
    gate::pair,
    machine::{Pace, latencies},
    peers::floor::CasPermits,
    report::{self, Args, Figures},
    stats,
};
use core::hint::black_box;
use tokio::sync::Semaphore;

const OPERATIONS: usize = 200_000;
const STAMPED: usize = 20_000;
const PACE_NS: u32 = 1_000;
const SLOTS: usize = 8;

pub(crate) fn run(args: &Args) {
    let floor = CasPermits::new(SLOTS);
    all_of(args, "floor_cas", || {
        black_box(floor.try_acquire());
        floor.release();
    });
    let semaphore = Semaphore::new(SLOTS);
    all_of(args, "tokio_semaphore", || drop(black_box(semaphore.try_acquire())));
}

/// Throughput and both tails of one admit + release.
pub(crate) fn all_of(args: &Args, who: &str, operation: impl Fn() + Sync) {
    report::cross_core(args, &format!("P8/{who}"), || per_operation(args, &operation));
    report::cross_core(args, &format!("P8/{who}/paced"), || {
        tail(args, Some(Pace::every_ns(PACE_NS)), &operation)
    });
    report::cross_core(args, &format!("P8/{who}/hammered"), || tail(args, None, &operation));
}

fn per_operation(args: &Args, operation: &(impl Fn() + Sync)) -> Figures {
    let rounds = args.effort(OPERATIONS);
    let work = || (0..rounds).for_each(|_| operation());
    let ((), (), elapsed) = pair(work, work);
    vec![("per_op", elapsed / (2 * rounds) as f64)]
}

/// Both threads do the same; the figures are over the operations of both.
fn tail(args: &Args, pace: Option<Pace>, operation: &(impl Fn() + Sync)) -> Figures {
    let rounds = args.effort(STAMPED);
    let work = || latencies(rounds, pace, operation);
    let (mut ticks, others, _) = pair(work, work);
    ticks.extend(others);
    let mut figures = report::p50_p99(ticks.clone());
    figures.push(("p999", bandgate_benches::machine::ns(stats::percentile(&mut ticks, 999))));
    figures
}
