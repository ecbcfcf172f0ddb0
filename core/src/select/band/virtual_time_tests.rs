//! The tables of interleaved scheduling, in sixths where the weights are 6, 3, 1.

use super::{Origins, REBASE_AT, UNIT_MAX, VirtualTime};
use alloc::vec::Vec;

const ALL: u64 = 0b111;

fn serve(vt: &mut VirtualTime, eligible: u64, candidates: u64) -> Option<u32> {
    vt.begin(eligible);
    let band = vt.best(candidates & eligible)?;
    vt.record(eligible, band);
    Some(band)
}

#[test]
fn ten_decisions_of_six_three_one_read_as_the_table() {
    let mut vt = VirtualTime::new(&[6, 3, 1]);
    assert_eq!(vt.unit(), 6);
    let table = [
        ([0, 0, 0], 0),
        ([1, 0, 0], 1),
        ([1, 2, 0], 2),
        ([1, 2, 6], 0),
        ([2, 2, 6], 0),
        ([3, 2, 6], 1),
        ([3, 4, 6], 0),
        ([4, 4, 6], 0),
        ([5, 4, 6], 1),
        ([5, 6, 6], 0),
        ([6, 6, 6], 0),
    ];
    for (before, selected) in table {
        vt.begin(ALL);
        assert_eq!(vt.times()[..], before);
        assert_eq!(vt.best(ALL), Some(selected));
        vt.record(ALL, selected);
    }
}

#[test]
fn a_band_that_was_empty_returns_level_and_not_behind() {
    let mut vt = VirtualTime::new(&[6, 3, 1]);
    for _ in 0..10 {
        serve(&mut vt, ALL, 0b101);
    }
    let mut counts = [0; 3];
    for _ in 0..10 {
        counts[serve(&mut vt, ALL, ALL).map_or(0, |b| b as usize)] += 1;
    }
    assert_eq!(counts, [6, 3, 1]);
}

#[test]
fn a_band_that_was_gated_returns_at_most_one_stride_behind() {
    let mut vt = VirtualTime::new(&[6, 1]);
    for _ in 0..60 {
        serve(&mut vt, 0b01, 0b01);
    }
    vt.begin(0b11);
    assert_eq!(vt.times()[..], [60, 54]);
    assert_eq!(serve(&mut vt, 0b11, 0b11), Some(1));
    assert_eq!(serve(&mut vt, 0b11, 0b11), Some(0));
}

#[test]
fn a_band_that_was_ahead_gains_nothing_by_being_gated() {
    let mut vt = VirtualTime::new(&[2, 1]);
    vt.restore(&[(0, 1), (5, 1)], 0b01);
    vt.begin(0b11);
    assert_eq!(vt.times()[..], [0, 10]);
}

#[test]
fn bands_behind_one_flapping_gate_are_all_served() {
    for weights in [[3, 2, 1], [1, 1, 1], [1, 1, 6], [6, 1, 1]] {
        for shut in 1..8 {
            let mut vt = VirtualTime::new(&weights);
            let mut served = [0; 3];
            for cycle in 0..400 {
                let eligible = if cycle % (shut + 1) == shut { ALL } else { 0b001 };
                served[serve(&mut vt, eligible, ALL).map_or(0, |b| b as usize)] += 1;
            }
            assert!(served[1] > 2 && served[2] > 2, "{weights:?} {shut}: {served:?}");
        }
    }
}

#[test]
fn a_band_added_mid_way_starts_at_the_minimum_in_exact_new_units() {
    let mut vt = VirtualTime::new(&[2, 1]);
    let served: Vec<_> = (0..4).filter_map(|_| serve(&mut vt, 0b11, 0b11)).collect();
    assert_eq!(served, [0, 1, 0, 0]);
    vt.set_bands(&[3, 2, 1], &Origins::from_iter([Some(0), Some(1), None]));
    assert_eq!((&vt.times()[..], vt.unit()), (&[9, 6, 6][..], 6));
    for _ in 0..6 {
        serve(&mut vt, ALL, ALL);
    }
    assert_eq!(vt.times()[..], [13, 15, 12]);
    assert_eq!(vt.vt_rescaled(), 0);
}

#[test]
fn weights_whose_multiple_is_too_large_are_rounded_and_counted() {
    let primes = [1_048_573, 1_048_571, 1_048_559];
    let mut vt = VirtualTime::new(&primes);
    assert_eq!(vt.unit(), UNIT_MAX);
    for _ in 0..30 {
        serve(&mut vt, ALL, ALL);
    }
    let level = vt.times()[0];
    vt.set_bands(&[2, 1], &Origins::from_iter([Some(0), Some(1)]));
    assert_eq!((vt.unit(), vt.vt_rescaled()), (UNIT_MAX, 0), "2 and 1 divide the old unit");
    vt.set_bands(&[3, 1], &Origins::from_iter([Some(0), Some(1)]));
    assert_eq!((vt.unit(), vt.vt_rescaled()), (3, 1));
    assert_eq!(u128::from(vt.times()[0]), u128::from(level) * 3 / u128::from(UNIT_MAX));
}

#[test]
fn times_are_rebased_and_the_order_survives() {
    let mut vt = VirtualTime::new(&[6, 3, 1]);
    let near = (REBASE_AT / 6, 1);
    vt.restore(&[near, near, near], ALL);
    let mut fresh = VirtualTime::new(&[6, 3, 1]);
    for _ in 0..40 {
        assert_eq!(serve(&mut vt, ALL, ALL), serve(&mut fresh, ALL, ALL));
    }
    assert!(vt.times().iter().all(|t| *t < 1 << 20), "{:?}", vt.times());
}

#[test]
fn a_band_without_weight_is_last_and_moves_nobody() {
    let mut vt = VirtualTime::new(&[2, 0, 1]);
    assert_eq!(vt.best(ALL), Some(0));
    assert_eq!(serve(&mut vt, ALL, 0b010), Some(1));
    assert_eq!(vt.times()[..], [0, 0, 0]);
}

#[test]
fn a_moment_with_every_band_gated_does_not_bring_old_lag_back() {
    let mut vt = VirtualTime::new(&[6, 1]);
    for _ in 0..60 {
        serve(&mut vt, 0b01, 0b01);
    }
    assert_eq!(serve(&mut vt, 0, 0b11), None);
    let served: Vec<_> = (0..8).filter_map(|_| serve(&mut vt, 0b11, 0b11)).collect();
    assert_eq!(served, [1, 0, 1, 0, 0, 0, 0, 0]);
}
