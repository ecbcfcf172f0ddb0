//! Curves: numbers of the tables, busy bands, and order whatever the input.
#![allow(clippy::float_arithmetic, reason = "bounds of what is tested")]

use alloc::vec::Vec;
use proptest::prelude::*;

use super::super::shapes::spread;
use super::super::{Ceilings, ceilings, sweep};
use super::cases;
use crate::types::policy::{ActiveBands, Curve, Holdback, HoldbackDomain, Shape};
use crate::types::{BandMask, first_bands};

const DOMAINS: [HoldbackDomain; 2] = [HoldbackDomain::Rank, HoldbackDomain::Value];

fn on(curve: &Curve, bands: &[i32], busy: BandMask) -> Vec<f64> {
    let mut out = Ceilings::new();
    spread(curve, bands, busy, &mut out);
    out.to_vec()
}

fn busy(shape: Shape, domain: HoldbackDomain) -> Curve {
    Curve { shape, active: ActiveBands::Busy, ..Curve::linear(domain, 0.5, 0.9) }
}

fn close(got: &[f64], expected: &[f64]) {
    let near = |(a, b): (&f64, &f64)| (a - b).abs() < 1e-6;
    assert!(got.len() == expected.len() && got.iter().zip(expected).all(near), "{got:?}");
}

#[test]
fn a_sigmoid_has_the_numbers_of_the_table_and_a_flat_one_is_a_line() {
    let shape = Shape::Sigmoid { steepness: 8.0, midpoint: 0.5 };
    let of = |domain| Curve { shape, ..Curve::linear(domain, 0.6, 1.0) };
    let [rank, value] = DOMAINS.map(|domain| on(&of(domain), &[100, 90, 10, 0], 0));
    close(&value, &[1.0, 0.991_212_072, 0.608_787_928, 0.6]);
    close(&rank, &[1.0, 0.920_905_866, 0.679_094_134, 0.6]);
    let shape = Shape::Sigmoid { steepness: 1e-13, midpoint: 0.5 };
    for domain in DOMAINS {
        let line = Curve::linear(domain, 0.6, 1.0);
        assert_eq!(on(&Curve { shape, ..line }, &[9, 4, 0], 0), on(&line, &[9, 4, 0], 0));
    }
}

#[test]
fn the_steepest_sigmoid_is_a_step_and_never_a_nan() {
    for midpoint in [0.0, 0.25, 1.0] {
        let shape = Shape::Sigmoid { steepness: Shape::MAX_STEEPNESS, midpoint };
        for domain in DOMAINS {
            let curve = Curve { shape, ..Curve::linear(domain, 0.2, 1.0) };
            let got = on(&curve, &[3, 2, 1, 0], 0);
            assert!(got.iter().all(|c| (0.2..=1.0).contains(c)), "{got:?}");
        }
    }
}

#[test]
fn a_lone_busy_band_is_not_held_back_and_an_idle_one_counts_as_if_it_came_now() {
    for domain in DOMAINS {
        let curve = busy(Shape::Linear, domain);
        let bands = [20, 10, 0];
        // Only the lowest is busy: it has the top's ceiling, and so have those that would come above it.
        assert_eq!(on(&curve, &bands, 0b100), [0.9, 0.9, 0.9]);
        // Only the top is: whoever comes below it would be the lowest.
        assert_eq!(on(&curve, &bands, 0b001), [0.9, 0.5, 0.5]);
        // Nobody is: each would be alone.
        assert_eq!(on(&curve, &bands, 0), [0.9; 3]);
        close(&on(&curve, &bands, 0b101), &[0.9, 0.7, 0.5]);
        let provisioned = Curve { active: ActiveBands::Provisioned, ..curve };
        assert_eq!(on(&curve, &bands, 0b111), on(&provisioned, &bands, 0));
    }
}

#[test]
fn a_static_limit_is_the_same_for_all_and_lists_are_not_bypassed_by_a_lone_band() {
    let mut out = Ceilings::new();
    assert_eq!(ceilings(&Holdback::Static { threshold: 0.8 }, &[2, 1, 0], &mut out), 0);
    assert_eq!(out[..], [0.8; 3]);
    let listed = Holdback::Explicit { ceilings: alloc::vec![(1, 1.0), (-1, 0.6)], default: None };
    ceilings(&listed, &[-1], &mut out);
    assert_eq!(out[..], [0.6]);
}

prop_compose! {
    fn any_curve()(
        is_sigmoid: bool,
        steepness in 1e-9..=700.0_f64,
        midpoint in 0.0..=1.0_f64,
        by_value: bool,
        is_busy: bool,
        min in 0.0..0.99_f64,
        span in 0.001..=1.0_f64,
    ) -> Curve {
        Curve {
            shape: if is_sigmoid { Shape::Sigmoid { steepness, midpoint } } else { Shape::Linear },
            domain: DOMAINS[usize::from(by_value)],
            min,
            max: (min + span).min(1.0),
            active: if is_busy { ActiveBands::Busy } else { ActiveBands::Provisioned },
        }
    }
}

pub(super) fn any_bands() -> impl Strategy<Value = Vec<i32>> {
    proptest::collection::btree_set(any::<i32>(), 1..=64)
        .prop_map(|set| set.into_iter().rev().collect())
}

proptest! {
    #![proptest_config(cases(500))]

    #[test]
    fn curves_stay_in_their_bounds_and_never_rise_as_priority_falls(
        curve in any_curve(),
        bands in any_bands(),
        busy: BandMask,
    ) {
        let raw = on(&curve, &bands, busy);
        let mut swept = raw.clone();
        sweep(&mut swept);
        // But for rounding the shapes fall by themselves: the sweep is a net, not the rule.
        for (raw, swept) in raw.iter().zip(&swept) {
            prop_assert!(*raw >= curve.min - 1e-12 && *raw <= curve.max + 1e-12);
            prop_assert!((raw - swept).abs() < 1e-12, "{curve:?} {bands:?} {busy:b}");
        }
        prop_assert!(swept.windows(2).all(|pair| pair[0] >= pair[1]));
    }

    #[test]
    fn an_idle_band_has_the_ceiling_it_would_have_if_it_became_busy_now(
        curve in any_curve(),
        bands in any_bands(),
        busy: BandMask,
        at: prop::sample::Index,
    ) {
        let curve = Curve { active: ActiveBands::Busy, ..curve };
        let i = at.index(bands.len());
        let before = on(&curve, &bands, busy);
        prop_assert_eq!(before[i], on(&curve, &bands, busy | 1 << i)[i]);
        // And it is the curve over just those bands.
        let set = (busy | 1 << i) & first_bands(bands.len());
        let some: Vec<i32> = (0..bands.len()).filter(|b| set >> b & 1 == 1).map(|b| bands[b]).collect();
        let alone = Curve { active: ActiveBands::Provisioned, ..curve };
        let place = some.iter().position(|p| *p == bands[i]).unwrap_or_default();
        prop_assert_eq!(before[i], on(&alone, &some, 0)[place]);
    }
}
