//! An order over the bands of your own: batch work first during its share of every period.
use bandgate_core::types::extend::{BandCycle, BandSelection};
use bandgate_core::{Engine, Request, Submitted};
use serde::Deserialize;

/// `parameters:` of the type: each `every`-th dispatch begins with the lowest band.
#[derive(Debug, Deserialize)]
struct Params {
    every: u32,
}

#[derive(Debug)]
struct LowestInTurn {
    every: u32,
    dispatched: u32,
}

impl BandSelection for LowestInTurn {
    fn rank(&mut self, _cycle: &BandCycle<'_>, order: &mut [u8]) {
        // `order` comes as 0, 1, 2, ...: most urgent first. It has to stay a permutation.
        if self.dispatched.is_multiple_of(self.every.max(1)) {
            order.reverse();
        }
    }

    fn record_dispatch(&mut self, _band: usize) {
        self.dispatched = self.dispatched.wrapping_add(1);
    }
}

const CONFIG: &str = "
pools:
  default:
    slots: 1
    bands: [{priority: 10}]
    bandSelection: {type: lowest-in-turn, parameters: {every: 2}}
";

fn main() -> Result<(), Box<dyn core::error::Error>> {
    let builder = Engine::builder().register_band_selection("lowest-in-turn", |p: &Params| {
        LowestInTurn { every: p.every, dispatched: 0 }
    })?;
    let engine = builder.start(&builder.load(CONFIG, [], "example.yaml")?.settings)?;
    let pool = engine.pool("default")?;
    let queue = engine.completion_queue(8)?;

    let running = pool.try_admit(&Request::new(pool.band(10)?))?; // dispatch 0
    for (tag, band) in [(0, 10), (1, 10), (2, 0), (3, 0)] {
        let submitted = pool.submit(&Request::new(pool.band(band)?), &queue, tag)?;
        assert!(matches!(submitted, Submitted::Queued(_)));
    }
    drop(running);
    let mut order = Vec::new();
    while let Some(done) = queue.poll() {
        order.push(done.tag);
        drop(done.outcome); // gives the slot to the next
    }
    assert_eq!(order, [0, 2, 1, 3]); // urgent, batch, urgent, batch
    Ok(())
}
