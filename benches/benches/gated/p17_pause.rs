//! P17, the pause: the longest single advance of a wheel of 100,000 timers through a minute, cascades included.

use bandgate_benches::{
    ours::timers::Timers,
    report::{self, Args},
};

const TIMERS: usize = 100_000;

pub(crate) fn run(args: &Args) {
    let timers = u32::try_from(args.effort(TIMERS)).unwrap_or(1);
    report::exact(args, "P17/longest_advance/max", "ns", || Timers::longest_advance(timers));
}
