//! P16: a pool in which many wait and none of them may run: a gated band and a capped tenant.

use core::fmt;

use bandgate_core::{
    engine::{CompletionQueue, Engine, Permit, Pool, Request, Submitted},
    types::{
        policy::Holdback,
        settings::{DriverKind, PoolSettings},
    },
};

use super::{PRIORITIES, capped_tenant, flow_of, must, settings, tenant_name, wfq};

/// Waiting in the gated band, and as many of the capped tenant.
const WAITING: u32 = 32;
/// Slots of the pool; the lowest band is gated from half of them on.
const SLOTS: u32 = 8;

/// The engine: make it first, then [`Blocked::begin`].
#[derive(Debug)]
pub struct Blocked {
    pool: Pool,
    queue: CompletionQueue,
    admitted: Request,
    gated: Request,
    capped: Request,
    _engine: Engine,
}

/// The waiters and the permits that hold them up, for as long as this lives.
pub struct Beside<'a> {
    of: &'a Blocked,
    _running: Vec<Permit<'a>>,
}

impl fmt::Debug for Beside<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Beside").finish_non_exhaustive()
    }
}

impl Blocked {
    /// Eight slots, the lowest band's ceiling 0.5, tenant 0 with a cap of one.
    pub fn new() -> Self {
        let mut settings = settings(DriverKind::Inline, SLOTS, wfq());
        let PoolSettings { holdback, .. } = &mut settings.pools[0];
        *holdback = Holdback::Explicit { ceilings: vec![(0, 0.5)], default: Some(1.0) };
        settings.tenants = vec![capped_tenant(&tenant_name(0), 1)];
        let engine = must(Engine::start(&settings));
        let pool = must(engine.pool("bench"));
        let queue = must(engine.completion_queue(2 * WAITING));
        let top = must(pool.band(PRIORITIES[0]));
        let lowest = must(pool.band(0));
        // Flows 0 and 8 are of tenants 0 and 1.
        let (of_capped, of_other) = (flow_of(&pool, 0), flow_of(&pool, 8));
        Self {
            admitted: Request::new(top).flow(of_other).cost(100),
            gated: Request::new(lowest).flow(of_other).cost(100),
            capped: Request::new(top).flow(of_capped).cost(100),
            pool,
            queue,
            _engine: engine,
        }
    }

    /// Half of the slots taken, one of them by the capped tenant, then the waiters.
    pub fn begin(&self) -> Beside<'_> {
        let mut running = vec![must(self.pool.try_admit(&self.capped))];
        running.extend((1..SLOTS / 2).map(|_| must(self.pool.try_admit(&self.admitted))));
        for tag in 0..u64::from(WAITING) {
            for request in [&self.gated, &self.capped] {
                let submitted = must(self.pool.submit(request, &self.queue, tag));
                assert!(matches!(submitted, Submitted::Queued(_)), "gated or capped");
            }
        }
        Beside { of: self, _running: running }
    }
}

impl Default for Blocked {
    fn default() -> Self {
        Self::new()
    }
}

impl Beside<'_> {
    /// One admit and release of a request that may run.
    #[inline(always)]
    pub fn admit_release(&self) {
        let permit = self.of.pool.try_admit(&self.of.admitted);
        assert!(permit.is_ok(), "those who wait may not run, this one may");
    }

    /// Requests that wait, all of them still.
    pub fn waiting(&self) -> u64 {
        u64::from(self.of.pool.view().waiting)
    }
}

#[cfg(test)]
mod tests {
    use super::{Blocked, WAITING};

    #[test]
    fn nobody_who_waits_is_granted_by_the_admits_beside_them() {
        let blocked = Blocked::new();
        let beside = blocked.begin();
        for _ in 0..1_000 {
            beside.admit_release();
        }
        assert_eq!(beside.waiting(), 2 * u64::from(WAITING));
    }
}
