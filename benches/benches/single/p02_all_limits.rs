//! P2: admit + release with flow, tenant and key caps, charge and holdback gate.
//!
//! The peers have no tenants and no caps: tokio's semaphore is one limit, the scheduler task one heap.

use core::hint::black_box;

use bandgate_benches::peers::tasks;
use criterion::Criterion;
use tokio::sync::Semaphore;

pub(crate) fn run(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("P2");
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
