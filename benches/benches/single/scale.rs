//! Scale: a decision over bands and flows, the expiry of 100,000 at once, a drain of 50,000 without arrivals.

use bandgate_benches::ours::scale::{Backlog, Choice};
use criterion::{BatchSize, BenchmarkId, Criterion, Throughput};

pub(crate) fn run(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("scale");
    for bands in [2, 8, 64] {
        for (flows, name) in [(10, "10"), (10_000, "10k")] {
            // Made on first use: a filtered run must not build what it does not measure.
            let mut made = None;
            let id = BenchmarkId::new(format!("decision_{bands}_bands"), format!("{name}_flows"));
            group.bench_function(id, |b| {
                let choice = made.get_or_insert_with(|| Choice::new(bands, flows));
                b.iter(|| choice.step());
            });
        }
    }
    group.sample_size(10);
    group.throughput(Throughput::Elements(100_000));
    group.bench_function("expiry_100k", |b| {
        b.iter_batched(|| Backlog::new(100_000), |it| (it.expire(), it), BatchSize::PerIteration);
    });
    group.throughput(Throughput::Elements(50_000));
    group.bench_function("drain_50k", |b| {
        b.iter_batched(|| Backlog::new(50_000), |mut it| (it.drain(), it), BatchSize::PerIteration);
    });
    group.finish();
}
