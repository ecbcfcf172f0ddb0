//! P15: two threads on two cores, each with its own pool, against one thread alone. Nanoseconds per operation of
//! all threads together: with perfect scaling two threads show half of one.

use core::hint::black_box;

use bandgate_benches::{
    gate::pair,
    ours::TwoPools,
    peers::floor::CasPermits,
    report::{self, Args, Figures},
};

const OPERATIONS: usize = 1_000_000;

pub(crate) fn run(args: &Args) {
    let ours = TwoPools::start();
    both(args, "bandgate", || ours.admit_release(0), || ours.admit_release(1));
    let (one, two) = (CasPermits::new(8), CasPermits::new(8));
    let operation = |permits: &CasPermits| {
        black_box(permits.try_acquire());
        permits.release();
    };
    // What the machine itself scales by: two counters on two lines.
    both(args, "floor_cas", || operation(&one), || operation(&two));
}

/// One thread alone, then both, in the same run.
fn both(args: &Args, who: &str, first: impl Fn() + Sync, second: impl Fn() + Sync) {
    let rounds = args.effort(OPERATIONS);
    report::cross_core(args, &format!("P15/{who}"), || scaling(rounds, &first, &second));
}

fn scaling(rounds: usize, first: &(impl Fn() + Sync), second: &(impl Fn() + Sync)) -> Figures {
    let ((), (), alone) = pair(|| (0..rounds).for_each(|_| first()), || ());
    let ((), (), together) =
        pair(|| (0..rounds).for_each(|_| first()), || (0..rounds).for_each(|_| second()));
    vec![("one", alone / rounds as f64), ("two", together / (2 * rounds) as f64)]
}
