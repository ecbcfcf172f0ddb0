//! P2: admit + release with flow, tenant and key caps, charge and holdback gate.
//!
//! The peers have no tenants and no caps: tokio's semaphore is one limit, the scheduler task one heap.

use core::hint::black_box;

use bandgate_benches::{
    ours::{Ours, Walk},
    peers::tasks,
};
use criterion::{BenchmarkId, Criterion};
use tokio::sync::Semaphore;

pub(crate) fn run(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("P2");
    for (flows, name) in [(64, "64"), (131_072, "131k")] {
        // Made on first use: naming 131,072 flows takes a while that a filtered run should not pay.
        let mut made = None;
        group.bench_function(BenchmarkId::new("bandgate", name), |b| {
            let (ours, walk) = made.get_or_insert_with(|| {
                let ours = Ours::all_limits(8, flows);
                let walk = Walk::over(ours.requests.len());
                (ours, walk)
            });
            b.iter(|| ours.admit_release(&ours.requests[walk.next()]));
        });
    }
    let semaphore = Semaphore::new(8);
    group
        .bench_function("tokio_semaphore", |b| b.iter(|| drop(black_box(semaphore.try_acquire()))));
    if let Some(runtime) = tasks::runtime() {
        group.bench_function("scheduler_task", |b| {
            b.iter_custom(|rounds| tasks::scheduler_alone(&runtime, rounds));
        });
    }
    group.finish();
}
