//! The engine against a slow sequential model: random scripts, every answer and every completion compared
//! after every step.
//!
//! The host driver on a hand-turned clock makes the engine a function of its calls. The model knows nothing
//! of words, rings, lanes or wheels; see `model/reference.rs`.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on may panic")]
#![cfg(not(any(loom, miri)))]

mod common;
#[path = "model/reference.rs"]
mod reference;
#[path = "model/run.rs"]
mod run;
#[path = "model/script.rs"]
mod script;

use bandgate_core::types::policy::BandSelection;
use proptest::prelude::*;
use proptest::test_runner::{Config, FileFailurePersistence, RngSeed};

use run::compare;
use script::{script, shape, weighted};

/// The same cases on every run; what ever failed is kept beside this file.
fn cases(count: u32, seed: u64) -> Config {
    Config {
        cases: count,
        rng_seed: RngSeed::Fixed(seed),
        failure_persistence: Some(Box::new(FileFailurePersistence::WithSource("regressions"))),
        ..Config::default()
    }
}

proptest! {
    #![proptest_config(cases(2_000, 0x5eed_0001))]

    // INV: I01 I02 I03 I04 I05 I08 I11 I14 I19 I20 I30 I32 I35 I36 I39 I42 I46 I47
    #[test]
    fn strict_pools_answer_as_the_sequential_model(
        shape in shape(vec![BandSelection::Strict]),
        script in script(),
    ) {
        compare(&shape, &script);
    }
}

proptest! {
    #![proptest_config(cases(600, 0x5eed_0002))]

    // INV: I01 I02 I04 I14 I19 I23 I28
    #[test]
    fn weighted_pools_dispatch_in_the_order_of_the_policy(
        shape in shape(weighted()),
        script in script(),
    ) {
        compare(&shape, &script);
    }
}
