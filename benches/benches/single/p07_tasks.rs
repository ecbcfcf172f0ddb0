//! P7: 64 async tasks over one slot on one thread; each yields while it holds the slot. Per admit.

use core::time::Duration;

use bandgate_benches::{ours::tasks::Tasks, peers::tasks};
use criterion::Criterion;

const TASKS: usize = 64;

pub(crate) fn run(criterion: &mut Criterion) {
    let Some(runtime) = tasks::runtime() else { return };
    let mut group = criterion.benchmark_group("P7");
    group.bench_function("bandgate", |b| {
        b.iter_custom(|admits| {
            let tasks = Tasks::new(TASKS, 1);
            per_admit(admits, |rounds| tasks.run(&runtime, rounds))
        });
    });
    group.bench_function("tokio_semaphore", |b| {
        b.iter_custom(|admits| {
            per_admit(admits, |rounds| tasks::tokio_semaphore(&runtime, TASKS, 1, rounds))
        });
    });
    group.bench_function("scheduler_task", |b| {
        b.iter_custom(|admits| {
            per_admit(admits, |rounds| tasks::scheduler_task(&runtime, TASKS, 1, rounds))
        });
    });
    group.finish();
}

/// The time of `admits` admits, measured over as many rounds of all tasks as hold them; at least 50 rounds, so
/// that starting the tasks does not show.
fn per_admit(admits: u64, run: impl FnOnce(u64) -> Duration) -> Duration {
    let rounds = admits.div_ceil(TASKS as u64).max(50);
    let made = rounds * TASKS as u64;
    run(rounds).mul_f64(admits as f64 / made as f64)
}
