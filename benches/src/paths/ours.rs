//! Our paths.

use core::{hint::black_box, time::Duration};

use bandgate_core::error::Reason;

use super::{ROUNDS, collected, collected_once, peers::TASKS};
use crate::{
    halves::Halves,
    ours::{
        Ours, TwoPools, Walk, beside::Blocked, decision::Decision, handoff::Saturated,
        replay::Replay, tasks::Tasks, timers::Timers,
    },
    peers,
};

/// Requests of the committed conversation trace.
pub(super) const DISPATCHES: u32 = 19_366;

pub(super) fn pool_only() {
    let ours = Ours::pool_only(8);
    collected(|| ours.admit_release(black_box(&ours.requests[0])));
}

pub(super) fn all_limits() {
    limits_over(64);
}

/// The same code over cold rows: what differs are the cache misses.
pub(super) fn all_limits_131k() {
    limits_over(131_072);
}

fn limits_over(flows: u32) {
    let ours = Ours::all_limits(8, flows);
    let mut walk = Walk::over(ours.requests.len());
    collected(|| ours.admit_release(&ours.requests[walk.next()]));
}

pub(super) fn handoff_64() {
    handoff(64, None);
}

pub(super) fn handoff_1024() {
    handoff(1_024, None);
}

pub(super) fn handoff_deadlines() {
    handoff(64, Some(Duration::from_secs(60)));
}

fn handoff(waiting: u32, timeout: Option<Duration>) {
    let saturated = Saturated::new(waiting, timeout);
    let mut handoff = saturated.begin();
    collected(|| {
        black_box(handoff.step());
    });
}

pub(super) fn strict<const DEPTH: u32>() {
    let mut decision = Decision::strict(DEPTH);
    collected(|| {
        black_box(decision.step_backlogged());
    });
}

pub(super) fn strict_random<const DEPTH: u32>() {
    let mut decision = Decision::strict(DEPTH);
    collected(|| {
        black_box(decision.step());
    });
}

pub(super) fn weighted<const DEPTH: u32>() {
    let mut decision = Decision::weighted(DEPTH);
    collected(|| {
        black_box(decision.step_backlogged());
    });
}

/// P5, what stands between the submitter's two stamps: the command handed over, the outcome read.
pub(super) fn submitter_half() {
    halves(|halves, part| match part {
        Part::Submit => collected_once(|| halves.submit()),
        Part::See => collected_once(|| halves.see()),
        other => halves.run(other),
    });
}

/// P5, what the shard's thread does between them, its successful look included.
pub(super) fn shard_half() {
    halves(|halves, part| match part {
        Part::Turn => collected_once(|| halves.turn()),
        other => halves.run(other),
    });
}

/// P5, what the shard's thread does after the permit is out, before it looks again.
pub(super) fn shard_after() {
    halves(|halves, part| match part {
        Part::Settle => collected_once(|| halves.settle()),
        other => halves.run(other),
    });
}

#[derive(Clone, Copy)]
enum Part {
    Submit,
    Turn,
    See,
    Settle,
}

impl Halves {
    fn run(&self, part: Part) {
        match part {
            Part::Submit => self.submit(),
            Part::Turn => self.turn(),
            Part::See => self.see(),
            Part::Settle => self.settle(),
        }
    }
}

fn halves(run: impl Fn(&Halves, Part)) {
    let halves = Halves::new();
    for _ in 0..ROUNDS {
        for part in [Part::Submit, Part::Turn, Part::See, Part::Settle] {
            run(&halves, part);
        }
        halves.release();
        halves.turn();
        halves.settle();
    }
}

/// P7, one of its runs; the tasks are made inside, some ten instructions an admit.
pub(super) fn tasks() {
    let Some(runtime) = peers::tasks::runtime() else { return };
    let tasks = Tasks::new(TASKS, 1);
    collected_once(|| tasks.run(&runtime, super::peers::ROUNDS_OF_TASKS));
}

/// P8, the one thread's work when the other is not there.
pub(super) fn beside_nobody() {
    let limits = Ours::all_limits(8, 16);
    collected(|| limits.admit_release_contended(&limits.requests[0]));
}

/// P8, a try that finds LOCK taken, up to its answer: the bounded spin.
pub(super) fn try_of_a_taken_pool() {
    let limits = Ours::all_limits(8, 16);
    let is_held = limits.pool.pause_inside_turn(|| {
        collected(|| {
            let answer = limits.pool.try_admit(&limits.requests[0]);
            assert!(matches!(answer, Err(Reason::Busy)), "LOCK is taken");
        });
    });
    assert!(is_held, "nobody else is there");
}

/// P8, a release that finds LOCK taken and leaves its command; the holder's part is not in it.
pub(super) fn release_into_a_taken_pool() {
    let limits = Ours::all_limits(8, 16);
    for _ in 0..ROUNDS {
        let permit = limits.pool.try_admit(&limits.requests[0]);
        assert!(permit.is_ok(), "there is room");
        let is_held = limits.pool.pause_inside_turn(|| collected_once(|| drop(permit)));
        assert!(is_held, "nobody else is there");
    }
}

/// P14, one replay.
pub(super) fn replay() {
    let ((), dispatches) = Replay::azure().run_inside(|replay| collected_once(replay));
    assert_eq!(dispatches, u64::from(DISPATCHES), "the trace is another one");
}

/// P15, one of its threads.
pub(super) fn one_of_two_pools() {
    let pools = TwoPools::start();
    collected(|| pools.admit_release(0));
}

/// P15, the other one: that the two write no line both use is seen in their traces (`instructions.sh --lines`).
pub(super) fn other_of_two_pools() {
    let pools = TwoPools::start();
    collected(|| pools.admit_release(1));
}

pub(super) fn beside_blocked() {
    let blocked = Blocked::new();
    let beside = blocked.begin();
    collected(|| beside.admit_release());
}

/// Timers that stand in P17.
pub(super) const TIMERS: u32 = 100_000;

pub(super) fn timers_random() {
    let mut timers = Timers::random(TIMERS);
    collected(|| timers.step());
}

pub(super) fn timers_oldest() {
    let mut timers = Timers::equal(TIMERS);
    collected(|| timers.step_oldest());
}
