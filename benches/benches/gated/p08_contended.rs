//! P8: two threads, eight slots: per operation when both go as fast as they can, and the tail of one admit +
//! release, paced and hammered.

use bandgate_benches::{
    gate::pair,
    machine::{self, Pace, latencies},
    ours::Ours,
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
const SLOTS_OF_OURS: u32 = 8;

pub(crate) fn run(args: &Args) {
    let pool = Ours::pool_only(SLOTS_OF_OURS);
    all_of(args, "bandgate_pool", |_| pool.admit_release_contended(&pool.requests[0]));
    // Each thread has a tenant and a key of its own: they share the pool and nothing else.
    let limits = Ours::all_limits(SLOTS_OF_OURS, 16);
    let of_thread = |thread: usize| &limits.requests[8 * thread];
    all_of(args, "bandgate_limits", |thread| limits.admit_release_contended(of_thread(thread)));
    let floor = CasPermits::new(SLOTS);
    all_of(args, "floor_cas", |_| {
        black_box(floor.try_acquire());
        floor.release();
    });
    let semaphore = Semaphore::new(SLOTS);
    all_of(args, "tokio_semaphore", |_| drop(black_box(semaphore.try_acquire())));
}

/// Throughput and both tails of one admit + release; the operation is told which thread it is on.
fn all_of(args: &Args, who: &str, operation: impl Fn(usize) + Sync) {
    report::cross_core(args, &format!("P8/{who}"), || per_operation(args, &operation));
    report::cross_core(args, &format!("P8/{who}/paced"), || {
        tail(args, Some(Pace::every_ns(PACE_NS)), &operation)
    });
    report::cross_core(args, &format!("P8/{who}/hammered"), || tail(args, None, &operation));
}

fn per_operation(args: &Args, operation: &(impl Fn(usize) + Sync)) -> Figures {
    let rounds = args.effort(OPERATIONS);
    let work = |thread| (0..rounds).for_each(|_| operation(thread));
    let ((), (), elapsed) = pair(|| work(0), || work(1));
    vec![("per_op", elapsed / (2 * rounds) as f64)]
}

/// Both threads do the same; the figures are over the operations of both.
fn tail(args: &Args, pace: Option<Pace>, operation: &(impl Fn(usize) + Sync)) -> Figures {
    let rounds = args.effort(STAMPED);
    let work = |thread| latencies(rounds, pace, || operation(thread));
    let (mut ticks, others, _) = pair(|| work(0), || work(1));
    ticks.extend(others);
    let mut figures = report::p50_p99(ticks.clone());
    figures.push(("p999", machine::ns(stats::percentile(&mut ticks, 999))));
    figures
}
