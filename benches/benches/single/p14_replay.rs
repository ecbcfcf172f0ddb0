//! P14: replay of a trace in virtual time, per dispatch: reading events, deciding, counting. Making the engine and
//! reading the file are not in it.

use core::time::Duration;

use bandgate_benches::ours::replay::Replay;
use criterion::Criterion;

pub(crate) fn run(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("P14");
    let mut made = None;
    group.bench_function("bandgate", |b| {
        let trace = made.get_or_insert_with(Replay::azure);
        b.iter_custom(|dispatches| {
            let (mut elapsed, mut done) = (Duration::ZERO, 0);
            while done < dispatches {
                let (time, count) = trace.run();
                assert!(count > 0, "the trace is not empty");
                elapsed += time;
                done += count;
            }
            elapsed.mul_f64(dispatches as f64 / done as f64)
        });
    });
    group.finish();
}
