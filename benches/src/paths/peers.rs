//! The peers' paths.

use core::hint::black_box;
use std::sync::Mutex;

use tokio::sync::Semaphore;

use super::{collected, collected_once, ours::TIMERS};
use crate::{
    ours::timers::SPREAD_NS,
    peers::{
        bands::{Bitmap, FinishTags},
        floor::CasPermits,
        handoff,
        heap4::Heap4,
        scheduler::Scheduler,
        tasks,
    },
    rng::Rng,
};

/// Requests that stand while a decision is measured.
const DEPTH: u32 = 1_000;

/// Tasks of P7 and the rounds of each.
pub(super) const TASKS: usize = 64;
pub(super) const ROUNDS_OF_TASKS: u64 = 160;
/// Admits of a run of P7.
pub(super) const ADMITS: u32 = 64 * 160;

pub(super) fn floor_cas() {
    let permits = CasPermits::new(8);
    collected(|| {
        black_box(permits.try_acquire());
        permits.release();
    });
}

pub(super) fn tokio_semaphore() {
    let semaphore = Semaphore::new(8);
    collected(|| drop(black_box(semaphore.try_acquire())));
}

pub(super) fn tokio_handoff() {
    let semaphore = Semaphore::new(0);
    collected(|| {
        black_box(handoff::tokio_semaphore(&semaphore));
    });
}

pub(super) fn heap_handoff() {
    let heap = Mutex::new(Scheduler::new(0));
    collected(|| {
        black_box(handoff::heap_oneshot(&heap, 3));
    });
}

pub(super) fn bitmap() {
    let (mut bands, mut rng) = (Bitmap::default(), Rng::new(1));
    for id in rng.shuffled(DEPTH) {
        bands.push(rng.below(8), id);
    }
    collected(|| {
        bands.push(rng.below(8), DEPTH);
        black_box(bands.pop());
    });
}

pub(super) fn finish_tags() {
    let (mut tags, mut rng) = (FinishTags::default(), Rng::new(1));
    for _ in 0..DEPTH {
        tags.push(rng.below(64), 10);
    }
    collected(|| {
        tags.push(rng.below(64), 10);
        black_box(tags.pop());
    });
}

/// P7, as ours.
pub(super) fn tokio_tasks() {
    let Some(runtime) = tasks::runtime() else { return };
    collected_once(|| tasks::tokio_semaphore(&runtime, TASKS, 1, ROUNDS_OF_TASKS));
}

pub(super) fn timers_in_a_heap() {
    let mut rng = Rng::new(1);
    let deadlines: Vec<u64> = (0..TIMERS).map(|_| rng.bits() % SPREAD_NS).collect();
    let mut heap = Heap4::new(deadlines);
    collected(|| {
        let timer = rng.below(TIMERS);
        heap.cancel(timer);
        heap.insert(black_box(timer), rng.bits() % SPREAD_NS);
    });
}
