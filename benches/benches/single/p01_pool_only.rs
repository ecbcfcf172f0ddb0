//! P1: admit + release, pool limit only, nobody else there.

use core::hint::black_box;

use bandgate_benches::{ours::Ours, peers::floor::CasPermits};
use criterion::Criterion;
use tokio::sync::Semaphore;

pub(crate) fn run(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("P1");
    let ours = Ours::pool_only(8);
    group.bench_function("bandgate", |b| {
        b.iter(|| ours.admit_release(black_box(&ours.requests[0])));
    });
    let floor = CasPermits::new(8);
    group.bench_function("floor_cas", |b| {
        b.iter(|| {
            black_box(floor.try_acquire());
            floor.release();
        });
    });
    let semaphore = Semaphore::new(8);
    group
        .bench_function("tokio_semaphore", |b| b.iter(|| drop(black_box(semaphore.try_acquire()))));
    group.finish();
}
