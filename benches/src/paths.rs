//! The paths whose instructions are counted: P1 to P4, ours and the peers', by name.
//!
//! Counts are exact where times are not: the same program on the same input executes the same instructions, so a
//! growth of a few per cent is a change of the code and nothing else.

use core::hint::black_box;
use std::sync::Mutex;

use tokio::sync::Semaphore;

use crate::{
    ours::{Ours, Walk, decision::Decision, handoff::Saturated},
    peers::{
        bands::{Bitmap, FinishTags},
        floor::CasPermits,
        handoff,
        scheduler::Scheduler,
    },
    rng::Rng,
};

/// Operations of one path in one run.
pub const ROUNDS: u32 = 10_000;

/// Name of a path, and what prepares and runs it.
pub type NamedPath = (&'static str, fn());

/// All paths.
pub const PATHS: &[NamedPath] = &[
    ("P1/bandgate", ours_pool_only),
    ("P2/bandgate/64", ours_all_limits),
    ("P3/bandgate/64", ours_handoff),
    ("P4/bandgate_strict/1k", ours_strict),
    ("P4/bandgate_strict_random/1k", ours_strict_random),
    ("P4/bandgate_wfq/1k", ours_weighted),
    ("P1/floor_cas", floor_cas),
    ("P1/tokio_semaphore", tokio_semaphore),
    ("P3/tokio_semaphore", tokio_handoff),
    ("P3/heap_oneshot", heap_handoff),
    ("P4/bitmap_vecdeque/1k", bitmap),
    ("P4/finish_tag_heap/1k", finish_tags),
];

/// Runs a path [`ROUNDS`] times. Collection is switched on while this function runs and nowhere else, so it must
/// not be inlined and must not be used for anything but the measured work.
#[inline(never)]
pub fn collected(mut operation: impl FnMut()) {
    for _ in 0..ROUNDS {
        operation();
    }
}

fn ours_pool_only() {
    let ours = Ours::pool_only(8);
    collected(|| ours.admit_release(black_box(&ours.requests[0])));
}

fn ours_all_limits() {
    let ours = Ours::all_limits(8, 64);
    let mut walk = Walk::over(ours.requests.len());
    collected(|| ours.admit_release(&ours.requests[walk.next()]));
}

fn ours_handoff() {
    let saturated = Saturated::new(64, None);
    let mut handoff = saturated.begin();
    collected(|| {
        black_box(handoff.step());
    });
}

fn ours_strict() {
    let mut decision = Decision::strict(DEPTH);
    collected(|| {
        black_box(decision.step_backlogged());
    });
}

fn ours_strict_random() {
    let mut decision = Decision::strict(DEPTH);
    collected(|| {
        black_box(decision.step());
    });
}

fn ours_weighted() {
    let mut decision = Decision::weighted(DEPTH);
    collected(|| {
        black_box(decision.step_backlogged());
    });
}

fn floor_cas() {
    let permits = CasPermits::new(8);
    collected(|| {
        black_box(permits.try_acquire());
        permits.release();
    });
}

fn tokio_semaphore() {
    let semaphore = Semaphore::new(8);
    collected(|| drop(black_box(semaphore.try_acquire())));
}

fn tokio_handoff() {
    let semaphore = Semaphore::new(0);
    collected(|| {
        black_box(handoff::tokio_semaphore(&semaphore));
    });
}

fn heap_handoff() {
    let heap = Mutex::new(Scheduler::new(0));
    collected(|| {
        black_box(handoff::heap_oneshot(&heap, 3));
    });
}

/// Requests that stand while a decision is measured.
const DEPTH: u32 = 1_000;

fn bitmap() {
    let (mut bands, mut rng) = (Bitmap::default(), Rng::new(1));
    for id in rng.shuffled(DEPTH) {
        bands.push(rng.below(8), id);
    }
    collected(|| {
        bands.push(rng.below(8), DEPTH);
        black_box(bands.pop());
    });
}

fn finish_tags() {
    let (mut tags, mut rng) = (FinishTags::default(), Rng::new(1));
    for _ in 0..DEPTH {
        tags.push(rng.below(64), 10);
    }
    collected(|| {
        tags.push(rng.below(64), 10);
        black_box(tags.pop());
    });
}
