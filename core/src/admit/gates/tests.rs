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
fn own_dispatches_since_a_sample_close_the_gate_without_another_sample() {
    let mut gates = BandGates::new(&listed(&[1.0, 0.5]), &BandSelection::Strict, &[1, 0], 4);
    gates.set_sampled(Sampled { saturation: 0.25, per_dispatch: 0.125, ..Sampled::default() });
    assert!(gates.counts_dispatches() && !gates.is_slot_count());
    let mut seen = Vec::new();
    for _ in 0..8 {
        seen.push(gates.eligible(0));
        gates.count_dispatch();
    }
    assert_eq!(seen, [0b11, 0b11, 0b01, 0b01, 0b01, 0b01, 0, 0]);
    gates.set_sampled(Sampled { saturation: 0.25, per_dispatch: 0.125, ..Sampled::default() });
    assert_eq!(gates.eligible(9), 0b11, "the sample has them in it");
    gates.set_gauge(Some(0.75));
    assert_eq!(gates.eligible(0), 0b01);
    gates.set_gauge(None);
    assert_eq!(gates.eligible(0), 0b11);
}

#[test]
fn faulty_samples_close_rather_than_open() {
    let mut gates = BandGates::new(&Holdback::None, &BandSelection::Strict, &[0], 4);
    gates.set_sampled(Sampled {
        saturation: f64::NAN,
        per_dispatch: f64::NAN,
        ..Sampled::default()
    });
    assert_eq!((gates.eligible(0), gates.saturation(0)), (0, 1.0));
    gates.set_sampled(Sampled { saturation: 0.5, per_dispatch: -1.0, ..Sampled::default() });
    gates.count_dispatch();
    assert_eq!((gates.eligible(0), gates.reserve(0, 4)), (1, 0), "a step back is no step");
}

#[test]
fn what_the_running_requests_do_not_tell_is_kept_from_the_fast_path() {
    let fixed = || BandGates::new(&listed(&[1.0, 0.5]), &BandSelection::Strict, &[1, 0], 4);
    let reserves = |gates: &BandGates| [gates.reserve(0, 4), gates.reserve(1, 4)];
    let closed = [PoolGate::GATED; 2];
    let mut gates = fixed();
    assert_eq!(reserves(&gates), [0, 2]);
    for (source, expected) in [
        (Source::Requests { max: 2 }, [2, 3]),
        (Source::Requests { max: 100 }, [0, 0]),
        (Source::Tokens { max: 1_000 }, closed),
        (Source::Hybrid { requests: 4, tokens: 1_000 }, closed),
        (Source::Stepped { base: 0.0, per_dispatch: 0.1 }, closed),
        (Source::Stepped { base: 0.5, per_dispatch: 0.0 }, [0, PoolGate::GATED]),
    ] {
        gates.set_source(source);
        assert_eq!(reserves(&gates), expected, "{source:?}");
    }
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
    fn any_source()(
        kind in 0..6,
        base in -0.5..2.0_f64,
        step in prop_oneof![Just(0.0), 1e-12..0.5_f64],
        requests in 0..300_u32,
        tokens in prop_oneof![0..5_000_u64, 0..=MAX_TOKENS],
    ) -> Source {
        match kind {
            0 => Source::Running,
            1 => Source::Gauge(base),
            2 => Source::Stepped { base, per_dispatch: step },
            3 => Source::Requests { max: requests },
            4 => Source::Tokens { max: tokens },
            _ => Source::Hybrid { requests, tokens },
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
        steps in proptest::collection::vec((0..320_u32, 0..5_500_u64, 0..4_u32), 1..30),
    ) {
        let deactivation = deactivation.min(activation);
        let bands = down_from(ceilings.len());
        let mut gates = BandGates::new(&listed(&ceilings), &wfq(activation, deactivation), &bands, slots);
        gates.set_source(source);
        let thresholds = Thresholds { activation, deactivation };
        for (running, tokens, dispatches) in steps {
            gates.set_tokens(tokens);
            (0..dispatches).for_each(|_| gates.count_dispatch());
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
        gates.set_source(source);
        for (running, busy, now_ns) in inputs {
            gates.refresh(&GateInput { running, busy, now_ns, ..GateInput::default() });
            gates.count_dispatch();
            let open = gates.eligible(running);
            // Open bands are the most urgent ones: none below a gated one.
            prop_assert_eq!(open, first_bands(open.count_ones() as usize));
            prop_assert_eq!(open, eligible(gates.saturation(running), gates.ceilings()));
            prop_assert!(gates.ceilings().windows(2).all(|pair| pair[0] >= pair[1]));
            prop_assert!(gates.ceilings().iter().all(|c| (0.0..=1.0).contains(c)));
        }
    }
}
