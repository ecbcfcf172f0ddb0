//! Soft-reflective ceilings: the share of open decisions.
#![allow(
    clippy::float_arithmetic,
    clippy::cast_precision_loss,
    reason = "saturations that are stepped through"
)]

use super::super::reflective::{SoftReflective, period};
use crate::types::extend::UsageLimit;

#[test]
fn held_back_bands_open_together_once_a_period_and_the_top_band_always() {
    for step in 50..100_u32 {
        let saturation = f64::from(step) / 100.0;
        let (mut policy, period) = (SoftReflective::default(), period(saturation));
        let (mut opened, rounds) = (0, 7);
        for _ in 0..rounds * period {
            let mut out = [1.0; 4];
            policy.ceilings(saturation, &[3, 2, 1, 0], &mut out);
            assert_eq!(out[0], 1.0);
            assert!(out.windows(2).all(|pair| pair[0] >= pair[1]), "{out:?}");
            opened += u64::from(out[3] == 1.0);
        }
        assert_eq!((opened, policy.tick()), (rounds, rounds * period), "{saturation}");
    }
}

#[test]
fn a_lone_band_and_no_band_are_left_alone() {
    let mut policy = SoftReflective::default();
    let mut one = [0.5];
    policy.ceilings(0.9, &[0], &mut one);
    policy.ceilings(0.9, &[], &mut []);
    assert_eq!((one, policy.tick()), ([1.0], 0));
}

#[test]
fn outside_its_range_nothing_alternates_whatever_the_number() {
    for saturation in [f64::NAN, f64::INFINITY, -1.0, 0.0, 0.499, 1.0, 7.0] {
        let mut policy = SoftReflective::default();
        policy.ceilings(saturation, &[1, 0], &mut [1.0; 2]);
        assert_eq!(policy.tick(), 0, "{saturation}");
        assert!(!SoftReflective::alternates(saturation));
    }
}
