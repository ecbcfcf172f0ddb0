//! P5: the threads driver. The caller hands a request over, the shard's thread spins on the other core.

use core::hint::spin_loop;

use bandgate_core::{
    engine::{CompletionQueue, Engine, Permit, Pool, Request, Submitted},
    types::{policy::BandSelection, settings::DriverKind},
};

use super::{PRIORITIES, flow_of, must, settings};

/// An engine whose shard thread runs on the last core.
#[derive(Debug)]
pub struct Shard {
    pool: Pool,
    request: Request,
    engine: Engine,
}

impl Shard {
    /// Eight slots, one request with a flow: only such requests are the shard's to decide.
    pub fn start() -> Self {
        let mut settings = settings(DriverKind::Threads, 8, BandSelection::Strict);
        settings.max_requests = 1024;
        let engine = must(Engine::start(&settings));
        let pool = must(engine.pool("bench"));
        let band = must(pool.band(PRIORITIES[0]));
        let request = Request::new(band).flow(flow_of(&pool, 0)).cost(100);
        Self { pool, request, engine }
    }

    /// Where the caller sees its permits; made on the caller's thread, which alone may look.
    pub fn queue(&self) -> CompletionQueue {
        must(self.engine.completion_queue(64))
    }

    /// Submits and spins until the permit is seen.
    #[inline(always)]
    pub fn admit<'q>(&self, queue: &'q CompletionQueue) -> Option<Permit<'q>> {
        let submitted = self.pool.submit(&self.request, queue, 0);
        assert!(matches!(submitted, Ok(Submitted::Queued(_))), "the shard decides, not the caller");
        loop {
            if let Some(completion) = queue.poll() {
                return completion.outcome.ok();
            }
            spin_loop();
        }
    }
}
