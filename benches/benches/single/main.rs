//! One thread, criterion: P1, P2, P3, P4, P7, P14, P16, P17, scale. Each group is an id of the table.
#![allow(missing_docs, reason = "a program, not a library")]
#![allow(
    clippy::float_arithmetic,
    clippy::cast_precision_loss,
    reason = "a measuring program: it computes ratios"
)]

use core::time::Duration;

use bandgate_benches::machine;
use criterion::Criterion;

mod p01_pool_only;
mod p02_all_limits;
mod p03_handoff;
mod p04_decision;
mod p07_tasks;
mod p14_replay;
mod p16_beside;
mod p17_timers;
mod scale;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() {
    machine::pin(0);
    // Short on purpose: some forty measurements have to fit into two minutes. The medians of back-to-back
    // loops settle within 1 % in this time.
    let mut criterion = Criterion::default()
        .warm_up_time(Duration::from_millis(300))
        .measurement_time(Duration::from_secs(2))
        .sample_size(30)
        .nresamples(2_000)
        .without_plots()
        .configure_from_args();
    p01_pool_only::run(&mut criterion);
    p02_all_limits::run(&mut criterion);
    p03_handoff::run(&mut criterion);
    p04_decision::run(&mut criterion);
    p07_tasks::run(&mut criterion);
    p14_replay::run(&mut criterion);
    p16_beside::run(&mut criterion);
    p17_timers::run(&mut criterion);
    scale::run(&mut criterion);
    criterion.final_summary();
}
