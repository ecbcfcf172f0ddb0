//! P7: async tasks over one slot. The tasks stand in eight bands by weight and are of as many tenants as tasks.

use core::time::Duration;

use bandgate_core::{
    engine::{Engine, Request},
    types::settings::DriverKind,
};
use tokio::{runtime::Runtime, task::yield_now};

use super::{PRIORITIES, flow_of, must, settings, wfq};
use crate::peers::tasks::side_by_side;

/// Each task `rounds` times: admit, yield while holding, release.
pub fn run(runtime: &Runtime, tasks: usize, slots: u32, rounds: u64) -> Duration {
    let mut settings = settings(DriverKind::Inline, slots, wfq());
    settings.max_requests = 1024;
    let engine = must(Engine::start(&settings));
    let pool = must(engine.pool("bench"));
    side_by_side(runtime, tasks, |number| {
        let pool = pool.clone();
        let band = must(pool.band(PRIORITIES[number % PRIORITIES.len()]));
        let flow = flow_of(&pool, 8 * u32::try_from(number).unwrap_or(0));
        let request = Request::new(band).flow(flow).cost(100);
        async move {
            for _ in 0..rounds {
                let permit = must(pool.admit(request).await);
                yield_now().await;
                drop(permit);
            }
        }
    })
}
