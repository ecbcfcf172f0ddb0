//! Tests of the stage, against naive models.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod bands;
mod heap;
mod model;
mod order;
mod parked;
mod ranked;
mod wheel;
mod worst;

use proptest::test_runner::{Config, RngSeed};

/// The same cases on every run.
fn cases(count: u32) -> Config {
    Config {
        cases: count,
        rng_seed: RngSeed::Fixed(0xba9d_6a7e),
        failure_persistence: None,
        ..Config::default()
    }
}
