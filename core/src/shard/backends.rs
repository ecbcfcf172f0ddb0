//! Pools whose backends come and go: nothing is dispatched while none exists, and who waits has another budget then.

use super::Shard;
use super::hold::Hold;
use super::pool::{PoolCore, PoolState};
use super::view::SlabView;
use crate::error::Reason;
use crate::queue::wheel::TICK_NS;
use crate::slab::Body;
use crate::types::patience::{Budgets, Regime};
use crate::types::settings::{PoolSettings, nanoseconds};

/// Whether a pool has backends. Plain memory under LOCK.
#[derive(Clone, Copy, Debug)]
pub struct Backends {
    regime: Regime,
    /// How long a request may wait while none exists; `None`: that time counts like any other.
    budget_ns: Option<u64>,
}

impl Backends {
    /// They exist until the host says otherwise.
    pub fn new(settings: &PoolSettings) -> Self {
        // At least a tick of the wheel, so that who is looked at again is so later.
        let budget_ns = settings.no_backend_ttl.map(|it| nanoseconds(it).max(TICK_NS));
        Self { regime: Regime::default(), budget_ns }
    }

    /// No backend exists: every band is gated.
    #[inline(always)]
    pub const fn none_exists(&self) -> bool {
        self.regime.is_empty
    }

    /// Whether quick turns do not know enough.
    pub const fn need_general_turns(&self) -> bool {
        self.regime.is_empty || self.budget_ns.is_some()
    }

    /// Whether waiters have budgets of their own for the time with and without backends.
    #[inline(always)]
    pub const fn has_budget(&self) -> bool {
        self.budget_ns.is_some()
    }

    /// Why somebody who waited too long is evicted, or who will not wait is refused.
    pub const fn overdue(&self) -> Reason {
        if self.regime.is_empty { Reason::NoBackend } else { Reason::Deadline }
    }

    fn budgets(&self, body: &Body) -> Budgets {
        Budgets {
            queued_ns: body.since_ns,
            to_live_ns: body.to_live_ns,
            without_backend_ns: self.budget_ns.unwrap_or(u64::MAX),
            limit_ns: body.limit_ns,
        }
    }
}

impl Hold<'_, '_> {
    /// A waiter of a pool with a budget of its own for the time without backends, about to be queued: when it is to be
    /// looked at.
    #[cold]
    pub(super) fn budgeted(&mut self, idx: u32) -> u64 {
        let (now_ns, backends) = (self.session.now.ns(), self.st.backends);
        // SAFETY: this holder owns the entry.
        unsafe {
            self.shard.slab().with_body(idx, |body| {
                body.since_ns = now_ns;
                body.deadline_ns = backends.budgets(body).look_again_ns(backends.regime, now_ns);
                body.deadline_ns
            })
        }
    }

    /// Whether a waiter whose timer fired, or who is to be granted, has waited too long.
    #[inline(always)]
    pub(super) fn is_overdue(&self, body: &Body, now_ns: u64) -> bool {
        body.deadline_ns <= now_ns && (!self.st.backends.has_budget() || self.is_due(body, now_ns))
    }

    #[cold]
    fn is_due(&self, body: &Body, now_ns: u64) -> bool {
        let backends = &self.st.backends;
        backends.budgets(body).due_ns(backends.regime) <= now_ns
    }

    /// The timer of a waiter fired who is not overdue: it is set again.
    #[cold]
    pub(super) fn look_again_at(&mut self, idx: u32, body: &Body, now_ns: u64) {
        let backends = self.st.backends;
        let again_ns = backends.budgets(body).look_again_ns(backends.regime, now_ns);
        // SAFETY: the request waits in this pool, so its entry belongs to the holder of LOCK.
        unsafe { self.shard.slab().with_body(idx, |body| body.deadline_ns = again_ns) };
        if again_ns != u64::MAX {
            self.st.wheel.insert(&SlabView::new(self.shard), idx, again_ns);
        }
    }
}

impl PoolState {
    fn set_backends(&mut self, exist: bool, now_ns: u64) {
        if exist == self.backends.regime.is_empty {
            self.backends.regime = Regime { is_empty: !exist, since_ns: now_ns };
        }
    }
}

impl Shard {
    /// Says whether backends exist; the next decision, in the same hold, follows it. Waits for LOCK.
    ///
    /// # Errors
    ///
    /// [`Reason::Poisoned`].
    pub(crate) fn set_backends(&self, pool: &PoolCore, exist: bool) -> Result<(), Reason> {
        let clock = self.clock().clone();
        self.reconfigure(pool, |st| st.set_backends(exist, clock.now_ns()))
    }
}
