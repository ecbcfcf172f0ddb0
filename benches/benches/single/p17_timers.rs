//! P17: cancel one timer of 100,000 and insert it anew.

use core::hint::black_box;

use bandgate_benches::{
    ours::timers::{SPREAD_NS, Timers},
    peers::heap4::Heap4,
    rng::Rng,
};
use criterion::Criterion;

/// Timers that stand.
const TIMERS: u32 = 100_000;

pub(crate) fn run(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("P17");
    let mut made = None;
    group.bench_function("bandgate", |b| {
        let timers = made.get_or_insert_with(|| Timers::random(TIMERS));
        b.iter(|| timers.step());
    });
    let mut made = None;
    group.bench_function("bandgate_oldest", |b| {
        let timers = made.get_or_insert_with(|| Timers::equal(TIMERS));
        b.iter(|| timers.step_oldest());
    });
    let mut made = None;
    group.bench_function("heap4_random", |b| {
        let (heap, rng) = made.get_or_insert_with(|| {
            let mut rng = Rng::new(1);
            let deadlines: Vec<u64> = (0..TIMERS).map(|_| rng.bits() % SPREAD_NS).collect();
            (Heap4::new(deadlines), rng)
        });
        b.iter(|| {
            let timer = rng.below(TIMERS);
            heap.cancel(timer);
            heap.insert(black_box(timer), rng.bits() % SPREAD_NS);
        });
    });
    let mut made = None;
    group.bench_function("heap4_oldest", |b| {
        // Equal timeouts: deadlines in order of arrival, and the one cancelled is the oldest.
        let (heap, next) = made.get_or_insert_with(|| (Heap4::new(0..u64::from(TIMERS)), 0u32));
        b.iter(|| {
            let timer = *next % TIMERS;
            heap.cancel(timer);
            heap.insert(black_box(timer), u64::from(*next) + u64::from(TIMERS));
            *next += 1;
        });
    });
    group.finish();
}
