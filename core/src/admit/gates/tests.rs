//! Tests of the gates: counts against the comparison they stand for, and what must hold whatever the input.

use alloc::vec;

use super::*;

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
