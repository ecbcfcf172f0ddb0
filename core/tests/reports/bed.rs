//! A pool with a detector on a clock turned by hand.

use bandgate_core::clock::Clock;
use bandgate_core::config::Config;
use bandgate_core::types::extend::BackendSample;
use bandgate_core::{CompletionQueue, Engine, Permit, Pool, Reason, Request};

pub(crate) const MS: u64 = 1_000_000;
pub(crate) const CONCURRENCY: &str = "concurrency-detector";
pub(crate) const UTILIZATION: &str = "utilization-detector";

/// A pool of 100 slots in an engine whose clock is turned by hand.
#[derive(Debug)]
pub(crate) struct Bed {
    pub(crate) engine: Engine,
    pub(crate) pool: Pool,
    pub(crate) clock: Clock,
    pub(crate) queue: CompletionQueue,
}

pub(crate) fn text(pool: &str) -> String {
    format!(
        "engine: {{driver: host}}\nbands: [{{priority: 20}}, {{priority: 10}}]\npools: {{p: {{slots: 100, {pool}}}}}"
    )
}

pub(crate) fn detector(kind: &str, parameters: &str) -> String {
    format!("saturation: {{type: {kind}, parameters: {{{parameters}}}}}")
}

impl Bed {
    pub(crate) fn new(pool: &str) -> Self {
        let config = Config::load(&text(pool), [], "t.yaml").unwrap();
        let clock = Clock::manual();
        let engine = Engine::start_with_clock(&config.settings, clock.clone()).unwrap();
        let pool = engine.pool("p").unwrap();
        let queue = engine.completion_queue(1024).unwrap();
        Self { engine, pool, clock, queue }
    }

    pub(crate) fn reload(&self, pool: &str) {
        let config = Config::load(&text(pool), [], "t.yaml").unwrap();
        self.engine.reload(&config.settings).unwrap();
    }

    pub(crate) fn admit(&self, priority: i32) -> Result<Permit<'_>, Reason> {
        self.admit_cost(priority, 1)
    }

    pub(crate) fn admit_cost(&self, priority: i32, cost: u32) -> Result<Permit<'_>, Reason> {
        self.pool.try_admit(&Request::new(self.pool.band(priority).unwrap()).cost(cost))
    }

    /// Everybody the gate of band 20 lets through now.
    pub(crate) fn burst(&self, cost: u32) -> Vec<Permit<'_>> {
        core::iter::from_fn(|| self.admit_cost(20, cost).ok()).take(200).collect()
    }

    pub(crate) fn submit(&self, priority: i32, tag: u64) {
        let request = Request::new(self.pool.band(priority).unwrap());
        let submitted = self.pool.submit(&request, &self.queue, tag).unwrap();
        assert!(matches!(submitted, bandgate_core::Submitted::Queued(_)), "{tag}");
    }

    /// Tags granted until now, their permits kept in `held`.
    pub(crate) fn granted<'q>(&'q self, held: &mut Vec<Permit<'q>>) -> Vec<u64> {
        let mut tags = Vec::new();
        while let Some(completion) = self.queue.poll() {
            tags.push(completion.tag);
            held.extend(completion.outcome.ok());
        }
        tags
    }

    pub(crate) fn after_ms(&self, ms: u64) {
        self.clock.set(self.clock.now_ns() + ms * MS);
    }

    pub(crate) fn saturation(&self) -> f64 {
        self.pool.saturation().unwrap()
    }
}

/// A backend with this many waiting inside.
pub(crate) fn waiting(waiting: u32, age_ms: u64) -> BackendSample {
    BackendSample { waiting, age_ns: Some(age_ms * MS), ..BackendSample::default() }
}

pub(crate) fn in_flight(requests: u32, tokens: u64) -> BackendSample {
    BackendSample { requests, tokens, ..BackendSample::default() }
}

pub(crate) fn close(a: f64, b: f64) -> bool {
    (a - b).abs() < 1e-9
}
