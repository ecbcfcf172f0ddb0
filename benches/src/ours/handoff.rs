//! P3: one slot that is always taken, so many requests that always wait. One step: the request that ran is
//! submitted anew and queued, its slot is released, the policy decides, the grant is seen.

use core::{fmt, time::Duration};

use bandgate_core::{
    engine::{CompletionQueue, Engine, Permit, Pool, Request, Submitted},
    types::settings::DriverKind,
};

use super::{PRIORITIES, flow_of, must, settings, wfq};

/// Tenants of the waiting requests.
const TENANTS: u32 = 64;

/// The engine of a hand-off: start it first, then [`Saturated::begin`].
#[derive(Debug)]
pub struct Saturated {
    pool: Pool,
    queue: CompletionQueue,
    requests: Vec<Request>,
    _engine: Engine,
}

impl Saturated {
    /// One slot, eight bands by weight, 64 tenants, `waiting` requests; each may wait so long, if anything.
    pub fn new(waiting: u32, timeout: Option<Duration>) -> Self {
        let engine = must(Engine::start(&settings(DriverKind::Inline, 1, wfq())));
        let pool = must(engine.pool("bench"));
        let queue = must(engine.completion_queue(2 * waiting));
        // Keys in steps of eight: one for each tenant.
        let flows: Vec<_> = (0..TENANTS).map(|tenant| flow_of(&pool, 8 * tenant)).collect();
        let requests = (0..=waiting).map(|number| {
            let band = must(pool.band(PRIORITIES[number as usize % PRIORITIES.len()]));
            // Over all bands first, then on to the next tenant, so that each tenant stands in every band.
            let flow = flows[(number / 8 % TENANTS) as usize];
            let request = Request::new(band).flow(flow).cost(100);
            timeout.map_or(request, |timeout| request.timeout(timeout))
        });
        Self { requests: requests.collect(), pool, queue, _engine: engine }
    }

    /// Takes the slot and queues everybody else.
    pub fn begin(&self) -> Handoff<'_> {
        let running = must(self.pool.try_admit(&self.requests[0]));
        for (tag, request) in (0u64..).zip(&self.requests).skip(1) {
            let submitted = must(self.pool.submit(request, &self.queue, tag));
            assert!(matches!(submitted, Submitted::Queued(_)), "the slot is taken");
        }
        Handoff { of: self, running: Some(running), tag: 0 }
    }
}

/// A hand-off under way.
pub struct Handoff<'a> {
    of: &'a Saturated,
    running: Option<Permit<'a>>,
    tag: u64,
}

impl fmt::Debug for Handoff<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Handoff").field("tag", &self.tag).finish_non_exhaustive()
    }
}

impl Handoff<'_> {
    /// One hand-off: the tag of the request that has the slot now.
    #[inline(always)]
    pub fn step(&mut self) -> u64 {
        #[allow(clippy::cast_possible_truncation, reason = "tags are indices into `requests`")]
        let again = &self.of.requests[self.tag as usize];
        let submitted = self.of.pool.submit(again, &self.of.queue, self.tag);
        assert!(matches!(submitted, Ok(Submitted::Queued(_))), "the slot is taken");
        drop(self.running.take());
        let Some(granted) = self.of.queue.poll() else { panic!("a release grants the next") };
        self.tag = granted.tag;
        self.running = granted.outcome.ok();
        self.tag
    }
}

#[cfg(test)]
mod tests {
    use super::Saturated;

    #[test]
    fn every_waiting_request_gets_its_turns() {
        let saturated = Saturated::new(64, None);
        let mut handoff = saturated.begin();
        let mut seen = [0; 65];
        for _ in 0..2_000 {
            seen[usize::try_from(handoff.step()).unwrap_or(0)] += 1;
        }
        assert!(seen.iter().all(|count| *count > 0), "{seen:?}");
        // Band 0 has eight times the weight of band 7.
        assert!(seen[8] > 4 * seen[7], "{seen:?}");
    }
}
