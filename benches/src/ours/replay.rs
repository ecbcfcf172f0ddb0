//! P14: a recorded trace replayed by the engine in virtual time.

use core::time::Duration;
use std::{fs::File, io::BufReader, path::Path, time::Instant};

use bandgate_core::{
    sim::{
        assign::Rule,
        engine::SimEngine,
        replay::replay,
        service::Speedup,
        stats::Collector,
        trace::Trace,
        workload::{Plan, Workload},
    },
    types::settings::{DriverKind, Settings},
};

use super::{PRIORITIES, must, settings, wfq};

/// Slots of the pool: the trace, eight times as fast, keeps them taken most of the time.
const SLOTS: u32 = 64;

/// A trace made ready, and the engine's settings for it.
#[derive(Debug)]
pub struct Replay {
    workload: Workload,
    settings: Settings,
}

impl Replay {
    /// The conversation trace of this folder, over eight bands by weight and 16 tenants of 4 keys.
    pub fn azure() -> Self {
        let path =
            Path::new(env!("CARGO_MANIFEST_DIR")).join("traces/AzureLLMInferenceTrace_conv.csv");
        let trace = must(Trace::read(BufReader::new(must(File::open(path)))));
        let plan = Plan {
            rule: &Rule::default(),
            priorities: &PRIORITIES,
            speedup: Speedup::whole(8),
            timeout_ns: None,
        };
        let workload = must(Workload::build(&trace, &plan));
        Self { workload, settings: settings(DriverKind::Host, SLOTS, wfq()) }
    }

    /// One replay: how long it took, without making the engine, and how many requests were dispatched.
    pub fn run(&self) -> (Duration, u64) {
        self.run_inside(|replay| {
            let start = Instant::now();
            replay();
            start.elapsed()
        })
    }

    /// The same inside `measure`, which calls what it is given once; its answer and the dispatches.
    pub fn run_inside<T>(&self, measure: impl FnOnce(&mut dyn FnMut()) -> T) -> (T, u64) {
        let pool = &self.settings.pools[0];
        let mut engine = must(SimEngine::start(&self.settings, pool, &self.workload));
        let mut collector = must(Collector::new(PRIORITIES.len()));
        let mut dispatcher = engine.dispatcher();
        let measured = measure(&mut || {
            must(replay(&self.workload, SLOTS, &mut dispatcher, &mut collector, &mut |_| ()));
        });
        (measured, collector.dispatches())
    }

    /// Requests of the trace.
    pub fn requests(&self) -> u64 {
        self.workload.requests.len() as u64
    }
}

#[cfg(test)]
mod tests {
    use super::Replay;

    #[test]
    fn a_replay_dispatches_every_request_of_the_trace() {
        let replay = Replay::azure();
        assert_eq!(replay.run().1, replay.requests());
    }
}
