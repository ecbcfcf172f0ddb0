//! What the formula of the adaptive ceilings promises.
#![allow(clippy::float_arithmetic, reason = "bounds of what is tested")]

use alloc::vec::Vec;
use proptest::prelude::*;

use super::super::Ceilings;
use super::super::adaptive::{AdaptiveCeilings, FULL, Pressure};
use super::cases;
use super::shapes::any_bands;
use crate::types::BandMask;
use crate::types::policy::{ActiveBands, Adaptive, Curve, HoldbackDomain, Pressed, Rest, Signal};

const SECOND: u64 = 1_000_000_000;

fn holdback(min: f64, rest: f64, max: f64, rate: f64) -> Adaptive {
    Adaptive {
        pressed: Pressed::Curve(Curve::linear(HoldbackDomain::Rank, min, max)),
        rest: Rest::All(rest),
        signal: Signal::Saturation,
        target: 0.5,
        full: 1.0,
        recovery_rate: rate,
    }
}

/// The ceilings at one look.
fn look(ceilings: &mut AdaptiveCeilings, bands: &[i32], signal: f64, now_ns: u64) -> Vec<f64> {
    let mut out = Ceilings::new();
    ceilings.at(0, &mut out);
    ceilings.refresh(bands, BandMask::MAX, signal, now_ns, &mut out);
    out.to_vec()
}

#[test]
fn lower_bands_give_way_at_once_the_top_rises_and_all_come_back_slowly() {
    let bands = [20, 10, 0];
    let mut ceilings = AdaptiveCeilings::new(&holdback(0.25, 0.75, 1.0, 0.1), &bands);
    let at = |ceilings: &mut _, signal, s: u64| look(ceilings, &bands, signal, s * SECOND);
    assert_eq!(at(&mut ceilings, 0.5, 0), [0.75, 0.75, 0.75], "up to the target nothing moves");
    assert_eq!(at(&mut ceilings, 0.75, 1), [0.875, 0.6875, 0.5]);
    assert_eq!(at(&mut ceilings, 3.0, 1), [1.0, 0.625, 0.25], "full pressure, no more");
    // A tenth of the full pressure per second: after four seconds 0.6 of it, after ten none.
    assert_eq!(at(&mut ceilings, 0.2, 5), [0.9, 0.675, 0.45]);
    assert_eq!(at(&mut ceilings, 0.2, 11), [0.75; 3]);
}

#[test]
fn lists_press_and_rest_band_by_band() {
    let listed = |all: &[(i32, f64)]| all.to_vec();
    let params = Adaptive {
        pressed: Pressed::Explicit { ceilings: listed(&[(20, 1.0), (0, 0.0)]), default: None },
        rest: Rest::Each(listed(&[(20, 0.8), (10, 0.6), (0, 0.5)])),
        ..holdback(0.0, 1.0, 1.0, 1.0)
    };
    let bands = [20, 10, 0];
    let mut ceilings = AdaptiveCeilings::new(&params, &bands);
    assert_eq!(look(&mut ceilings, &bands, 0.0, 0), [0.8, 0.6, 0.5]);
    assert_eq!(look(&mut ceilings, &bands, 1.0, 0), [1.0, 0.0, 0.0]);
}

#[test]
fn a_nan_signal_counts_as_full_and_a_clock_that_stands_gives_nothing_back() {
    let mut pressure = Pressure::new(0.5, 1.0, 1000.0);
    assert_eq!(pressure.look(f64::NAN, 5), FULL);
    assert_eq!(pressure.look(0.0, 5), FULL);
    assert_eq!(pressure.look(0.0, 4), FULL, "nor one that goes back");
    assert_eq!(pressure.look(0.0, u64::MAX), 0);
}

#[test]
fn a_look_without_an_event_is_asked_for_only_while_something_fades() {
    let mut pressure = Pressure::new(0.5, 1.0, 0.1);
    assert_eq!(pressure.look_again_ns(0.0, 0), None);
    pressure.look(1.0, 0);
    assert_eq!(pressure.look_again_ns(1.0, SECOND), None);
    assert_eq!(pressure.look_again_ns(0.0, SECOND), Some(10_000_000));
    pressure.look(0.0, 20 * SECOND);
    assert_eq!(pressure.look_again_ns(0.0, 20 * SECOND), None);
}

prop_compose! {
    fn any_holdback()(
        min in 0.0..0.9_f64,
        rest in 0.0..=1.0_f64,
        span in 0.01..=1.0_f64,
        by_value: bool,
        is_busy: bool,
        target in 0.0..2.0_f64,
        width in 0.001..3.0_f64,
        rate in Adaptive::MIN_RATE..=Adaptive::MAX_RATE,
    ) -> Adaptive {
        let max = (min + span).min(1.0);
        let domain = if by_value { HoldbackDomain::Value } else { HoldbackDomain::Rank };
        let active = if is_busy { ActiveBands::Busy } else { ActiveBands::Provisioned };
        Adaptive {
            pressed: Pressed::Curve(Curve { active, ..Curve::linear(domain, min, max) }),
            rest: Rest::All((min + rest * (max - min)).clamp(min, max)),
            signal: Signal::Saturation,
            target,
            full: target + width,
            recovery_rate: rate,
        }
    }
}

/// Signals with the time since the one before.
fn any_signals() -> impl Strategy<Value = Vec<(f64, u64)>> {
    let signal = prop_oneof![0.0..5.0_f64, Just(f64::NAN), Just(f64::INFINITY), Just(-1.0)];
    proptest::collection::vec((signal, 0..3 * SECOND), 1..40)
}

proptest! {
    #![proptest_config(cases(300))]

    #[test]
    fn ceilings_are_bounded_and_never_rise_as_priority_falls(
        params in any_holdback(),
        bands in any_bands(),
        signals in any_signals(),
        busy: BandMask,
    ) {
        let Pressed::Curve(Curve { min, max, .. }) = params.pressed else { return Ok(()) };
        let mut ceilings = AdaptiveCeilings::new(&params, &bands);
        let (mut out, mut now) = (Ceilings::new(), 0);
        ceilings.at(0, &mut out);
        for (signal, after) in signals {
            now += after;
            ceilings.refresh(&bands, busy, signal, now, &mut out);
            prop_assert!(out.windows(2).all(|pair| pair[0] >= pair[1]), "{out:?}");
            prop_assert!(out.iter().all(|c| *c >= min && *c <= max), "{min} {max} {out:?}");
        }
    }

    #[test]
    fn more_signal_never_presses_less(target in 0.0..2.0_f64, width in 0.001..3.0_f64, a in 0.0..6.0_f64, b in 0.0..6.0_f64) {
        let pressure = Pressure::new(target, target + width, 1.0);
        prop_assert!(pressure.demand(a.min(b)) <= pressure.demand(a.max(b)));
        prop_assert_eq!((pressure.demand(target), pressure.demand(target + width)), (0, FULL));
    }

    #[test]
    fn under_a_constant_signal_the_pressure_never_turns_and_comes_to_rest_in_time(
        params in any_holdback(),
        signals in any_signals(),
        last in 0.0..5.0_f64,
        steps in proptest::collection::vec(1..SECOND, 1..60),
    ) {
        let mut pressure = Pressure::new(params.target, params.full, params.recovery_rate);
        let mut now = 0;
        for (signal, after) in signals {
            now += after;
            pressure.look(signal, now);
        }
        let (first, begun, demand) = (pressure.look(last, now), now, pressure.demand(last));
        let mut before = first;
        for step in steps {
            now += step;
            let level = pressure.look(last, now);
            prop_assert!(level <= before && level >= demand);
            before = level;
        }
        // From where it was to rest it takes (p - d) / rate seconds, one part of rounding more.
        #[allow(clippy::cast_precision_loss, reason = "parts are far below 2^53")]
        let seconds = (first - demand) as f64 / FULL as f64 / params.recovery_rate;
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "at most 1,000 s")]
        let takes = (seconds * 1e9) as u64;
        let mut again = Pressure::new(params.target, params.full, params.recovery_rate);
        again.inherit_for_test(first, begun);
        prop_assert_eq!(again.look(last, begun + takes + takes / 1_000 + 2_000), demand);
        if first > demand + FULL / 100 {
            let mut early = Pressure::new(params.target, params.full, params.recovery_rate);
            early.inherit_for_test(first, begun);
            prop_assert!(early.look(last, begun + takes - takes / 100) > demand);
        }
    }

    #[test]
    fn looking_more_often_at_an_unchanged_signal_changes_nothing(
        signals in any_signals(),
        parts in 1..20_u64,
        rate in Adaptive::MIN_RATE..=Adaptive::MAX_RATE,
    ) {
        let mut seldom = Pressure::new(0.5, 1.5, rate);
        let mut often = seldom;
        let mut now = 0;
        let mut held = 0.0;
        for (signal, after) in signals {
            // The old signal is looked at until the new one comes. What it presses it presses till then.
            for part in 1..=parts {
                often.look(held, now + after * part / parts);
            }
            now += after;
            seldom.look(held, now);
            prop_assert_eq!(seldom.look(signal, now), often.look(signal, now));
            held = signal;
        }
    }
}
