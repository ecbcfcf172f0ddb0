//! Flows made and forgotten while the pool runs. Cold: every call takes a mutex and waits for the pool's lock bit.
#![forbid(unsafe_code)]

use core::time::Duration;

use super::{Flow, Pool};
use crate::error::Reason;

/// A full table is swept at most this often: interning must not become a sweep for every new name.
const FULL_PAUSE_NS: u64 = 1_000_000_000;

fn ns(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

impl Pool {
    /// Interns a flow. Cold: takes a lock, allocates for a new one, waits for the pool's lock. Hot calls
    /// take the result.
    ///
    /// In a table more than half full (`maxFlows`) the flows idle for `flowIdle` are forgotten from time to time, in a call that
    /// makes a new one: see [`Pool::collect_idle_flows`].
    ///
    /// # Errors
    ///
    /// [`Reason::FlowTableFull`], [`Reason::Forked`], [`Reason::Poisoned`].
    pub fn flow(&self, group: &str, tenant: &str, key: &str) -> Result<Flow, Reason> {
        if self.is_forked() {
            return Err(Reason::Forked);
        }
        let (made, is_new) = self.intern(group, tenant, key);
        let idle = if is_new || made.is_err() { self.meta().live.lock().flow_idle } else { None };
        let Some(idle) = idle else { return made };
        let pause_ns = if made.is_ok() { ns(idle) / 2 } else { FULL_PAUSE_NS };
        if self.meta().flows.wants_sweep(self.now_ns(), pause_ns) {
            let forgotten = self.collect_idle_flows(idle);
            if forgotten > 0 && made == Err(Reason::FlowTableFull) {
                return self.intern(group, tenant, key).0;
            }
        }
        made
    }

    fn intern(&self, group: &str, tenant: &str, key: &str) -> (Result<Flow, Reason>, bool) {
        let mut is_new = false;
        let made = self.meta().flows.intern(group, tenant, key, self.now_ns(), |new| {
            is_new = true;
            self.shard().add_flow(self.core(), new)
        });
        if is_new {
            self.shard().look_after(self.core());
        }
        let flow = |it: crate::config::flows::Handle| Flow {
            pool: self.id(),
            index: it.index,
            generation: it.generation,
        };
        (made.map(flow), is_new)
    }

    /// Forgets the flows that had no request for `idle_for`; how many. Never one with waiters or permits. Requests
    /// that name a forgotten flow by a handle from before are refused as `flow_table_full`: intern it anew. What
    /// was counted for it (tokens served) is gone.
    ///
    /// Nothing is written down when a flow is used, so it counts as idle from the call that last found it changed:
    /// two calls, `idle_for` apart, forget what neither saw in use. Cold: looks at every flow, 64 in one hold of the
    /// pool's lock, and makes interning wait meanwhile. 0 in a child of `fork`, and for a poisoned pool.
    pub fn collect_idle_flows(&self, idle_for: Duration) -> usize {
        if self.is_forked() {
            return 0;
        }
        let look = |looks: &mut [_]| self.shard().look_at_flows(self.core(), looks);
        let forgotten = self.meta().flows.sweep(self.now_ns(), ns(idle_for), look);
        self.shard().look_after(self.core());
        forgotten.unwrap_or(0)
    }
}
