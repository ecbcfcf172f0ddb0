//! P3, the tail: one hand-off at a time between two stamps (some 28 ns of every figure are the stamps).

use bandgate_benches::{
    machine::{self, latencies},
    ours::handoff::Saturated,
    peers::handoff,
    report::{self, Args, Figures},
    stats,
};
use tokio::sync::Semaphore;

const HANDOFFS: usize = 100_000;

pub(crate) fn run(args: &Args) {
    for waiting in [64, 1_024] {
        let saturated = Saturated::new(waiting, None);
        let mut handoff = saturated.begin();
        tail(args, &format!("P3/bandgate_{waiting}"), || {
            handoff.step();
        });
    }
    let semaphore = Semaphore::new(0);
    tail(args, "P3/tokio_semaphore_tail", || assert!(handoff::tokio_semaphore(&semaphore)));
}

/// p50, p99 and p99.9 of one operation.
fn tail(args: &Args, id: &str, mut operation: impl FnMut()) {
    let rounds = args.effort(HANDOFFS);
    report::one_thread(args, id, || -> Figures {
        let mut ticks = latencies(rounds, None, &mut operation);
        let mut figures = report::p50_p99(ticks.clone());
        figures.push(("p999", machine::ns(stats::percentile(&mut ticks, 999))));
        figures
    });
}
