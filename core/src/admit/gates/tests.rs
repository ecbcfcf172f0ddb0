//! Tests of the gates: counts against the comparison they stand for, and what must hold whatever the input.

#![allow(
    clippy::float_cmp,
    reason = "saturations and ceilings named here come out as they went in"
)]

use alloc::{vec, vec::Vec};
use proptest::prelude::*;

use super::super::ceiling::{eligible, tests::cases};
use super::*;
use crate::types::policy::{
    ActiveBands, Adaptive, Curve, Distribution, HoldbackDomain, Pressed, Rest, Schedule, Signal,
    WfqParams,
};

#[test]
fn a_reserve_admits_exactly_what_the_gate_admits() {
    let holdback =
        Holdback::Explicit { ceilings: vec![(20, 1.0), (10, 0.7), (0, 0.3)], default: None };
    for slots in [1, 2, 3, 10, 100, 997] {
        let mut gates = BandGates::new(&holdback, &BandSelection::Strict, &[20, 10, 0], slots);
        for running in 0..=slots {
            let free = i64::from(slots) - i64::from(running);
            for band in 0..3 {
                let open = gates.eligible(running) & 1 << band != 0;
                let admits = free > i64::from(gates.reserve(band, slots));
                assert_eq!(open, admits, "{slots} slots, {running} running, band {band}");
            }
        }
    }
}

#[test]
fn a_gauge_gates_by_its_own_value_until_it_is_taken_away() {
    let holdback = Holdback::Explicit { ceilings: vec![(1, 1.0), (0, 0.5)], default: None };
    let mut gates = BandGates::new(&holdback, &BandSelection::Strict, &[1, 0], 4);
    gates.set_gauge(Some(0.5));
    assert_eq!((gates.eligible(0), gates.reserve(1, 4)), (0b01, PoolGate::GATED));
    gates.set_gauge(Some(0.49));
    assert_eq!((gates.eligible(4), gates.reserve(1, 4)), (0b11, 0));
    gates.set_gauge(None);
    assert_eq!((gates.eligible(2), gates.reserve(1, 4)), (0b01, 2));
}

/// A host's policy that answers whatever it was told to, one buffer after the other.
#[derive(Debug)]
struct Scripted(Vec<Vec<f64>>);

impl UsageLimit for Scripted {
    fn ceilings(&mut self, _: f64, _: &[i32], out: &mut [f64]) {
        let next = self.0.pop().unwrap_or_default();
        out.iter_mut().zip(next).for_each(|(out, ceiling)| *out = ceiling);
    }
}

fn wfq(activation: f64, deactivation: f64) -> BandSelection {
    BandSelection::Wfq(WfqParams {
        activation,
        deactivation,
        retention_ns: 0,
        schedule: Schedule::Interleaved,
        distribution: Distribution::Linear,
    })
}

fn listed(ceilings: &[f64]) -> Holdback {
    let ceilings = (0..).zip(ceilings.iter().rev()).map(|(p, c)| (p, *c)).collect();
    Holdback::Explicit { ceilings, default: None }
}

fn down_from(count: usize) -> Vec<i32> {
    (0..i32::try_from(count).unwrap_or(0)).rev().collect()
}

#[test]
fn what_the_caller_counts_closes_the_gate_and_the_mode_follows_it() {
    for holdback in [listed(&[1.0, 0.5]), Holdback::SoftReflective] {
        let is_fixed = holdback != Holdback::SoftReflective;
        let mut gates = BandGates::new(&holdback, &wfq(0.75, 0.5), &[1, 0], 4);
        // Hundredths above a sample of 0.25.
        let base: u64 = 25;
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "0 to 100")]
        let room = |level: f64| ((level * 100.0) as u64).saturating_sub(base);
        gates.set_counted(0.25, room);
        assert!(!gates.is_slot_count());
        for count in [0, 24, 25, 26, 49, 50, 74, 75, 80] {
            #[allow(clippy::cast_precision_loss, reason = "small")]
            let saturation = (base + count) as f64 / 100.0;
            gates.set_count(count, || saturation);
            if is_fixed {
                let open = u64::from(count < 75) | u64::from(count < 25) << 1;
                assert_eq!(gates.eligible(3), open, "{count}");
            } else {
                assert_eq!(gates.saturation(3), saturation);
                assert_eq!(gates.eligible(3) & 1, u64::from(saturation < 1.0));
            }
            let reading = gates.reading(4);
            assert_eq!((reading.activates, reading.stays_active), (count >= 50, count >= 25));
        }
        gates.set_gauge(Some(0.1));
        assert_eq!(gates.eligible(3), 0b11);
        gates.set_gauge(None);
        gates.set_count(80, || 1.05);
        assert_eq!(gates.eligible(3), 0, "a gauge that came and went forgot nothing");
        assert_eq!(gates.reserve(0, 4), PoolGate::GATED, "not for the fast path to know");
        let mut next = BandGates::new(&listed(&[1.0, 0.2]), &BandSelection::Strict, &[1, 0], 4);
        next.inherit(&gates);
        assert!(!next.is_counted(), "to be told again");
        next.set_counted(0.25, room);
        assert_eq!(next.eligible(3), 0b01);
    }
}

#[test]
fn a_sample_that_is_no_number_is_a_full_pool() {
    let mut gates = BandGates::new(&Holdback::None, &BandSelection::Strict, &[0], 4);
    gates.set_counted(f64::NAN, |level| if 1.0 >= level { 0 } else { u64::MAX });
    assert_eq!((gates.eligible(0), gates.saturation(0)), (0, 1.0));
}

#[test]
fn what_the_running_requests_do_not_tell_is_kept_from_the_fast_path() {
    let fixed = || BandGates::new(&listed(&[1.0, 0.5]), &BandSelection::Strict, &[1, 0], 4);
    let reserves = |gates: &BandGates| [gates.reserve(0, 4), gates.reserve(1, 4)];
    let closed = [PoolGate::GATED; 2];
    let mut gates = fixed();
    assert_eq!(reserves(&gates), [0, 2]);
    gates.set_counted(0.0, |_| u64::MAX);
    assert_eq!(reserves(&gates), closed);
    for moving in [
        Holdback::SoftReflective,
        Holdback::Curve(Curve {
            active: ActiveBands::Busy,
            ..Curve::linear(HoldbackDomain::Rank, 0.5, 1.0)
        }),
    ] {
        let gates = BandGates::new(&moving, &BandSelection::Strict, &[1, 0], 4);
        assert!(gates.is_dynamic() && !gates.is_slot_count());
        assert_eq!(reserves(&gates), closed);
    }
    assert!(fixed().is_slot_count() && !fixed().is_dynamic());
}

#[test]
fn a_nan_of_a_custom_policy_opens_is_counted_and_told_once() {
    let answers = vec![vec![0.5, f64::NAN, 0.2], vec![0.9, 0.4, 0.2], vec![f64::NAN, 7.0, -1.0]];
    let policy = Box::new(Scripted(answers));
    let mut gates = BandGates::custom(policy, &BandSelection::Strict, &[2, 1, 0], 10);
    // The first answer is that of the start.
    assert_eq!((gates.ceilings(), gates.faults()), (&[1.0; 3][..], 3));
    assert_eq!((gates.untold_faults(), gates.untold_faults()), (Some(3), None));
    let input = GateInput { running: 5, ..GateInput::default() };
    assert!(gates.refresh(&input));
    assert_eq!((gates.eligible(5), gates.ceilings()), (0b001, &[0.9, 0.4, 0.2][..]));
    assert!(gates.refresh(&input));
    assert_eq!((gates.eligible(5), gates.ceilings()), (0b011, &[1.0, 1.0, 0.2][..]));
    assert_eq!((gates.faults(), gates.untold_faults()), (4, None));
}

#[test]
fn busy_bands_move_the_gates_at_the_next_decision() {
    let curve = Curve::linear(HoldbackDomain::Rank, 0.5, 1.0);
    let holdback = Holdback::Curve(Curve { active: ActiveBands::Busy, ..curve });
    let mut gates = BandGates::new(&holdback, &BandSelection::Strict, &[20, 0], 4);
    let at = |busy| GateInput { running: 2, busy, ..GateInput::default() };
    assert!(gates.refresh(&at(0b10)));
    assert_eq!(gates.eligible(2), 0b11, "alone it is not held back");
    assert!(!gates.refresh(&at(0b10)), "nothing moved");
    assert!(gates.refresh(&at(0b11)));
    assert_eq!((gates.eligible(2), gates.eligible(1)), (0b01, 0b11));
}

#[test]
fn pressure_follows_the_signal_it_names_and_is_inherited() {
    let of = |signal| {
        Holdback::Adaptive(Adaptive {
            pressed: Pressed::Curve(Curve::linear(HoldbackDomain::Rank, 0.0, 1.0)),
            rest: Rest::All(1.0),
            signal,
            target: 0.0,
            full: 1.0,
            recovery_rate: 0.001,
        })
    };
    let input = GateInput {
        running: 1,
        waiting: 5,
        queue_limit: 10,
        detector: Some(0.25),
        ..GateInput::default()
    };
    for (signal, lowest) in [
        (Signal::Saturation, 0.9),
        (Signal::QueueDepth, 0.5),
        (Signal::Detector("backends".into()), 0.75),
    ] {
        let mut gates = BandGates::new(&of(signal.clone()), &BandSelection::Strict, &[1, 0], 10);
        gates.refresh(&input);
        assert!((gates.ceilings()[1] - lowest).abs() < 1e-9, "{signal:?}");
        let mut next = BandGates::new(&of(signal), &BandSelection::Strict, &[1, 0], 10);
        next.inherit(&gates);
        next.refresh(&GateInput { queue_limit: 10, ..GateInput::default() });
        assert!((next.ceilings()[1] - lowest).abs() < 1e-9, "a reload forgets no pressure");
    }
}

prop_compose! {
    fn any_source()(kind in 0..3, saturation in -0.5..2.0_f64) -> Source {
        match kind {
            0 => Source::Running,
            1 => Source::Gauge(saturation),
            _ => Source::Counted { saturation },
        }
    }
}

fn set(gates: &mut BandGates, source: Source) {
    match source {
        Source::Running => {}
        Source::Gauge(value) => gates.set_gauge(Some(value)),
        Source::Counted { saturation } => {
            // Nothing was counted since: reached is what the sample has reached.
            gates.set_counted(saturation, |level| u64::from(saturation < level));
        }
    }
}

/// Ceilings as a policy may give them: good ones, ends, nonsense.
fn any_ceilings() -> impl Strategy<Value = Vec<f64>> {
    let one = prop_oneof![
        4 => 0.0..=1.0_f64,
        1 => Just(0.0),
        1 => Just(1.0),
        1 => prop::sample::select(vec![f64::NAN, f64::INFINITY, -0.1, 1.1]),
    ];
    proptest::collection::vec(one, 1..=64)
}

proptest! {
    #![proptest_config(cases(250))]

    #[test]
    fn counts_say_what_the_comparison_says_for_every_source(
        source in any_source(),
        ceilings in any_ceilings(),
        activation in 0.0..1.0_f64,
        deactivation in 0.0..1.0_f64,
        slots in 1..300_u32,
        steps in proptest::collection::vec(0..320_u32, 1..30),
    ) {
        let deactivation = deactivation.min(activation);
        let bands = down_from(ceilings.len());
        let mut gates = BandGates::new(&listed(&ceilings), &wfq(activation, deactivation), &bands, slots);
        set(&mut gates, source);
        let thresholds = Thresholds { activation, deactivation };
        for running in steps {
            let saturation = gates.saturation(running);
            prop_assert_eq!(gates.eligible(running), eligible(saturation, gates.ceilings()), "{:?} at {}", source, saturation);
            if source == Source::Running {
                let after = super::super::saturation::saturation(running + 1, slots);
                prop_assert_eq!(gates.reading(running + 1), thresholds.reading(after));
            } else {
                prop_assert_eq!(gates.reading(running + 1), thresholds.reading(saturation));
            }
            for band in 0..bands.len() {
                let reserve = gates.reserve(band, slots);
                let free = i64::from(slots) - i64::from(running);
                let is_open = gates.eligible(running) >> band & 1 == 1;
                // The fast path never admits what is gated, and all that is open where it can know it.
                prop_assert!(is_open || free <= i64::from(reserve));
                let is_known = gates.is_slot_count() && free > 0;
                prop_assert!(!is_known || !is_open || free > i64::from(reserve));
            }
        }
    }

    #[test]
    fn gating_never_inverts_whatever_a_policy_answers(
        source in any_source(),
        answers in proptest::collection::vec(any_ceilings(), 1..12),
        kind in 0..3,
        inputs in proptest::collection::vec((0..40_u32, any::<u64>(), 0..2_000_000_000_u64), 1..30),
    ) {
        let bands = down_from(answers[0].len());
        let curve = Curve { active: ActiveBands::Busy, ..Curve::linear(HoldbackDomain::Value, 0.1, 0.9) };
        let mut gates = match kind {
            0 => BandGates::custom(Box::new(Scripted(answers)), &BandSelection::Strict, &bands, 32),
            1 => BandGates::new(&Holdback::SoftReflective, &BandSelection::Strict, &bands, 32),
            _ => BandGates::new(&Holdback::Curve(curve), &BandSelection::Strict, &bands, 32),
        };
        set(&mut gates, source);
        for (running, busy, now_ns) in inputs {
            gates.refresh(&GateInput { running, busy, now_ns, ..GateInput::default() });
            let open = gates.eligible(running);
            // Open bands are the most urgent ones: none below a gated one.
            prop_assert_eq!(open, first_bands(open.count_ones() as usize));
            prop_assert_eq!(open, eligible(gates.saturation(running), gates.ceilings()));
            prop_assert!(gates.ceilings().windows(2).all(|pair| pair[0] >= pair[1]));
            prop_assert!(gates.ceilings().iter().all(|c| (0.0..=1.0).contains(c)));
        }
    }
}
