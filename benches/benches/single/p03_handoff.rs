//! P3: queued hand-off on one thread: submit without a free slot, release, decide, see the grant.

use core::{hint::black_box, time::Duration};
use std::sync::Mutex;

use bandgate_benches::{
    ours::handoff::Saturated,
    peers::{handoff, scheduler::Scheduler},
};
use criterion::{BenchmarkId, Criterion};
use tokio::sync::Semaphore;

pub(crate) fn run(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("P3");
    for waiting in [64, 1_024] {
        let saturated = Saturated::new(waiting, None);
        let mut handoff = saturated.begin();
        group.bench_function(BenchmarkId::new("bandgate", waiting), |b| b.iter(|| handoff.step()));
    }
    // A deadline for each request costs a clock read and a timer set and stopped; the peers have none.
    let saturated = Saturated::new(64, Some(Duration::from_secs(60)));
    let mut handoff = saturated.begin();
    group.bench_function("bandgate_deadlines/64", |b| b.iter(|| handoff.step()));
    let semaphore = Semaphore::new(0);
    group.bench_function("tokio_semaphore", |b| {
        b.iter(|| assert!(handoff::tokio_semaphore(black_box(&semaphore))));
    });
    let heap = Mutex::new(Scheduler::new(0));
    group.bench_function("heap_oneshot", |b| {
        b.iter(|| assert!(handoff::heap_oneshot(black_box(&heap), 3)));
    });
    group.finish();
}
