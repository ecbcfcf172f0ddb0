//! P7: async tasks over one slot. The tasks stand in eight bands by weight and are of as many tenants as tasks.

use core::time::Duration;

use bandgate_core::{
    engine::{Engine, Pool, Request},
    types::settings::DriverKind,
};
use tokio::{runtime::Runtime, task::yield_now};

use super::{PRIORITIES, flow_of, must, settings, wfq};
use crate::peers::tasks::side_by_side;

/// The pool of the tasks and a request for each.
#[derive(Debug)]
pub struct Tasks {
    pool: Pool,
    requests: Vec<Request>,
    _engine: Engine,
}

impl Tasks {
    /// So many tasks over so many slots.
    pub fn new(tasks: usize, slots: u32) -> Self {
        let mut settings = settings(DriverKind::Inline, slots, wfq());
        settings.max_requests = 1024;
        let engine = must(Engine::start(&settings));
        let pool = must(engine.pool("bench"));
        let requests = (0..tasks).map(|number| {
            let band = must(pool.band(PRIORITIES[number % PRIORITIES.len()]));
            let flow = flow_of(&pool, 8 * u32::try_from(number).unwrap_or(0));
            Request::new(band).flow(flow).cost(100)
        });
        Self { requests: requests.collect(), pool, _engine: engine }
    }

    /// Each task `rounds` times: admit, yield while holding, release.
    pub fn run(&self, runtime: &Runtime, rounds: u64) -> Duration {
        side_by_side(runtime, self.requests.len(), |number| {
            let (pool, request) = (self.pool.clone(), self.requests[number]);
            async move {
                for _ in 0..rounds {
                    let permit = must(pool.admit(request).await);
                    yield_now().await;
                    drop(permit);
                }
            }
        })
    }
}
