//! P5: a request crosses to the other core and its permit comes back, nobody parks. One request a microsecond.

use core::{cell::Cell, sync::atomic::AtomicU64};

use bandgate_benches::{
    gate::{expect, on_core, pair, send},
    machine::{Pace, latencies, latencies_with},
    ours::cross::Shard,
    peers::scheduler,
    report::{self, Args},
};
use crossbeam_utils::CachePadded;
use tokio::sync::mpsc;

const REQUESTS: usize = 10_000;
const PACE_NS: u32 = 1_000;

pub(crate) fn run(args: &Args) {
    let requests = args.effort(REQUESTS);
    report::cross_core(args, "P5/bandgate", || report::p50_p99(ours(requests)));
    report::cross_core(args, "P5/floor_store", || report::p50_p99(floor(requests)));
    report::cross_core(args, "P5/scheduler_thread", || report::p50_p99(scheduler_thread(requests)));
}

/// The shard's thread spins on core 1, the caller on core 0. A shard for each run: an idle one would still spin while
/// the round trip is probed.
fn ours(requests: usize) -> Vec<u64> {
    let shard = Shard::start();
    on_core(0, || {
        let queue = shard.queue();
        let held = Cell::new(None);
        latencies_with(
            requests,
            Some(Pace::every_ns(PACE_NS)),
            || held.set(shard.admit(&queue)),
            || drop(held.take()),
        )
    })
}

/// One store each way at the same pace: what a hand-off cannot be faster than.
fn floor(requests: usize) -> Vec<u64> {
    let there = CachePadded::new(AtomicU64::new(0));
    let back = CachePadded::new(AtomicU64::new(0));
    let mut turn = 0;
    let (ticks, (), _) = pair(
        || {
            latencies(requests, Some(Pace::every_ns(PACE_NS)), || {
                turn += 1;
                send(&there, turn);
                expect(&back, turn);
            })
        },
        || {
            for turn in 1..=requests as u64 {
                expect(&there, turn);
                send(&back, turn);
            }
        },
    );
    ticks
}

/// A thread on core 1 spins on its channel and owns the heap; the caller spins on its oneshot.
fn scheduler_thread(requests: usize) -> Vec<u64> {
    let (commands, inbox) = mpsc::channel(1024);
    let (ticks, (), _) = pair(
        move || {
            latencies_with(
                requests,
                Some(Pace::every_ns(PACE_NS)),
                || assert!(scheduler::admit_spinning(&commands, 1)),
                || assert!(commands.try_send(scheduler::Command::Release).is_ok()),
            )
        },
        || scheduler::spin(inbox, 8),
    );
    ticks
}
