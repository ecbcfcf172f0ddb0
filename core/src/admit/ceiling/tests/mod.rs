//! Tests of the ceilings beside the vectors: shapes, the sweep, and what must hold whatever the input.
#![allow(clippy::float_cmp, reason = "ceilings named by the tables come out as they went in")]

mod adaptive;
mod reflective;
mod shapes;

use alloc::vec::Vec;
use proptest::test_runner::{Config, RngSeed};

use super::{CeilingError, Ceilings, ceilings, eligible, gated, validate};
use crate::types::policy::{Curve, Holdback, HoldbackDomain};

/// The same cases on every run.
pub(crate) fn cases(count: u32) -> Config {
    Config {
        cases: count,
        rng_seed: RngSeed::Fixed(0xba9d_6a7e),
        failure_persistence: None,
        ..Config::default()
    }
}

fn of(holdback: &Holdback, priorities: &[i32]) -> Vec<f64> {
    let mut out = Ceilings::new();
    ceilings(holdback, priorities, &mut out);
    out.to_vec()
}

fn linear(domain: HoldbackDomain, min: f64, max: f64) -> Holdback {
    Holdback::Curve(Curve::linear(domain, min, max))
}

#[test]
fn the_regions_of_three_bands_follow_the_closed_gate() {
    let ceilings = [1.0, 0.7, 0.3];
    for (saturation, open) in [(0.29, 0b111), (0.3, 0b011), (0.6, 0b011), (0.7, 0b001)] {
        assert_eq!(eligible(saturation, &ceilings), open, "{saturation}");
    }
    assert_eq!(eligible(0.8, &ceilings), 0b001);
    assert_eq!(eligible(1.0, &ceilings), 0);
    assert!(gated(0.0, 0.0), "a ceiling of 0 is never");
}

#[test]
fn a_line_runs_by_rank_or_by_value_and_spares_a_lone_band() {
    let (rank, value) = (HoldbackDomain::Rank, HoldbackDomain::Value);
    assert_eq!(of(&linear(rank, 0.5, 1.0), &[100, 50, 10]), [1.0, 0.75, 0.5]);
    assert_eq!(of(&linear(rank, 0.3, 1.0), &[20, 10, 0]), [1.0, 0.65, 0.3]);
    assert_eq!(of(&linear(value, 0.5, 1.0), &[10, -5, -20]), [1.0, 0.75, 0.5]);
    assert_eq!(of(&linear(value, 0.5, 0.9), &[7, 7]), [0.9, 0.9]);
    assert_eq!(of(&linear(rank, 0.5, 0.9), &[10]), [0.9]);
    assert_eq!(of(&linear(value, 0.5, 0.9), &[10]), [0.9]);
    assert_eq!(of(&linear(value, 0.0, 1.0), &[i32::MAX, i32::MIN]), [1.0, 0.0]);
    assert!(of(&linear(rank, 0.5, 0.9), &[]).is_empty());
}

#[test]
fn listed_ceilings_fall_back_to_the_default_or_the_nearest_below() {
    let listed = [(100, 0.95), (50, 0.7), (10, 0.3)].to_vec();
    let nearest = Holdback::Explicit { ceilings: listed.clone(), default: None };
    let bands = [100, 75, 50, 10, -5];
    assert_eq!(of(&nearest, &bands), [0.95, 0.7, 0.7, 0.3, 0.3]);
    let with_default = Holdback::Explicit { ceilings: listed, default: Some(0.5) };
    assert_eq!(of(&with_default, &bands), [0.95, 0.7, 0.7, 0.5, 0.5]);
    assert_eq!(of(&Holdback::None, &bands), [1.0; 5]);
}

#[test]
fn a_faulty_ceiling_opens_and_an_inverted_one_is_lifted() {
    let listed = [(3, 0.5), (2, f64::NAN), (1, -0.1), (0, 0.3)].to_vec();
    let holdback = Holdback::Explicit { ceilings: listed, default: None };
    let mut out = Ceilings::new();
    assert_eq!(ceilings(&holdback, &[3, 2, 1, 0], &mut out), 2);
    assert_eq!(out[..], [1.0, 1.0, 1.0, 0.3]);
    let mut inverted = [0.5, 1.0, 0.3];
    super::sweep(&mut inverted);
    assert_eq!(inverted, [1.0, 1.0, 0.3]);
}

#[test]
fn explicit_ceilings_are_checked_as_a_whole() {
    assert_eq!(validate(&[(0, 0.6), (100, 0.6)], Some(0.1)), Ok(()));
    assert_eq!(validate(&[], None), Err(CeilingError::Required));
    assert_eq!(validate(&[(0, 0.6), (100, 0.5)], None), Err(CeilingError::PriorityInversion));
    for wrong in [1.2, -0.1, f64::NAN] {
        assert_eq!(validate(&[(100, wrong)], None), Err(CeilingError::OutOfRange));
        assert_eq!(validate(&[(100, 1.0)], Some(wrong)), Err(CeilingError::OutOfRange));
    }
}
