//! What criterion cannot hold: cross-core runs under the gate (P5, P8, P15) and tails by stamps (P3, P17).
#![allow(missing_docs, reason = "a program, not a library")]
#![allow(
    clippy::float_arithmetic,
    clippy::cast_precision_loss,
    reason = "a measuring program: it computes ratios"
)]

use bandgate_benches::{
    gate,
    report::{self, Args},
};

mod p03_tail;
mod p05_cross_core;
mod p08_contended;
mod p15_two_pools;
mod p17_pause;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() {
    let args = Args::from_env();
    // The first of the three programs in `cargo bench`'s order.
    report::begin(&args);
    report::cross_core(&args, "P5/round_trip", || vec![("rtt", gate::round_trip_ns())]);
    p03_tail::run(&args);
    p05_cross_core::run(&args);
    p08_contended::run(&args);
    p15_two_pools::run(&args);
    p17_pause::run(&args);
}
