//! P3: queued hand-off on one thread: submit without a free slot, release, decide, see the grant.

use core::hint::black_box;
use std::sync::Mutex;

use bandgate_benches::peers::{handoff, scheduler::Scheduler};
use criterion::Criterion;
use tokio::sync::Semaphore;

pub(crate) fn run(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("P3");
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
