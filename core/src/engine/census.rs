//! Who holds slots, who waits, who was refused: for operators. Cold: every call waits for the pool's lock bit.
#![forbid(unsafe_code)]

use alloc::string::String;
use alloc::vec::Vec;
use core::time::Duration;

use super::{Engine, Pool};
use crate::error::Reason;
use crate::shard::census::Counted;
use crate::types::NONE;
use crate::types::counters::BandCounters;
use crate::types::settings::PoolMode;

/// Group, tenant and key of a flow.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct FlowName {
    /// Its group.
    pub group: String,
    /// Its tenant.
    pub tenant: String,
    /// Its key.
    pub key: String,
}

/// A request that holds a slot.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Holder {
    /// Whose it is; absent for a request without a flow.
    pub flow: Option<FlowName>,
    /// Its priority.
    pub priority: i32,
    /// Cost charged, in tokens.
    pub cost: u32,
    /// How long it has had the slot.
    pub age: Duration,
    /// Its future has not taken the permit yet.
    pub uncollected: bool,
    /// Of an exempt flow: it runs beside the slots.
    pub exempt: bool,
}

/// A request that waits.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Waiting {
    /// Whose it is; absent for a request without a flow.
    pub flow: Option<FlowName>,
    /// Its priority.
    pub priority: i32,
    /// Its cost, in tokens.
    pub cost: u32,
    /// How long it has waited; absent where the pool does not keep track.
    pub age: Option<Duration>,
}

/// A request that was refused.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Refused {
    /// Whose it was; absent for a request without a flow.
    pub flow: Option<FlowName>,
    /// Its priority.
    pub priority: i32,
    /// Why.
    pub reason: Reason,
    /// How long ago.
    pub age: Duration,
    /// The pool only observed: the request was admitted all the same.
    pub observed: bool,
}

/// What became of the requests of one band that did not run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct BandOutcomes {
    /// The priority; absent for requests that named no band of the pool.
    pub priority: Option<i32>,
    /// Counted since the start. Not in here: refusals by callers that found the lock bit taken and the ring or the
    /// slab full, and those of `try_admit` that only say that nothing is free now.
    pub counters: BandCounters,
}

impl Pool {
    /// The counters of each band by reason, in no order. Waits for the pool's lock bit, allocates. Empty in a child of
    /// `fork`, and of a poisoned pool.
    pub fn outcomes(&self) -> Vec<BandOutcomes> {
        if self.is_forked() {
            return Vec::new();
        }
        let all = self.shard().outcomes(self.core());
        let is_used = |(priority, counters): &(Option<i32>, BandCounters)| {
            priority.is_some() || *counters != BandCounters::default()
        };
        let named = |(priority, counters)| BandOutcomes { priority, counters };
        all.into_iter().filter(is_used).map(named).collect()
    }
}

impl Pool {
    /// Up to `most` (at most 1,024) of those who hold a slot, longest first. Only requests of exempt flows unless
    /// the pool keeps track (`holders` or `maxHold`). Waits for the pool's lock bit; allocates.
    pub fn holders(&self, most: usize) -> Vec<Holder> {
        self.named(
            |pool| pool.shard().holders(pool.core(), most),
            |pool, at, now_ns| Holder {
                flow: pool.flow_name(at.flow),
                priority: pool.priority_of(at.band),
                cost: at.cost,
                age: age(now_ns, at.since_ns),
                uncollected: at.uncollected,
                exempt: at.exempt,
            },
        )
    }

    /// Up to `most` (at most 1,024) of those who wait, longest first where the pool keeps track; when more
    /// wait, some of them. Waits for the pool's lock bit; allocates.
    pub fn waiters(&self, most: usize) -> Vec<Waiting> {
        let census = |pool: &Self| {
            let mut found = pool.shard().waiters(pool.core(), most);
            found.sort_by_key(|at: &Counted| at.since_ns);
            found
        };
        self.named(census, |pool, at, now_ns| Waiting {
            flow: pool.flow_name(at.flow),
            priority: pool.priority_of(at.band),
            cost: at.cost,
            age: (at.since_ns != 0).then(|| age(now_ns, at.since_ns)),
        })
    }

    /// The last 64 refusals this pool decided, newest first; those a call refuses before it reaches the pool
    /// (`too_large`, `unknown_band`, `busy`) are not among them. Waits for the pool's lock bit; allocates.
    pub fn refusals(&self) -> Vec<Refused> {
        self.named(
            |pool| pool.shard().refusals(pool.core()),
            |pool, at, now_ns| Refused {
                flow: pool.flow_name(at.flow),
                priority: pool.priority_of(at.band),
                reason: at.reason,
                age: age(now_ns, at.at_ns),
                observed: at.observed,
            },
        )
    }

    /// Lets decisions hold, or only counts them and admits everything at once; those who wait are admitted too.
    /// In force at the next decision. Waits for the pool's lock bit. Returning to enforcing revokes nobody: nothing
    /// is admitted until fewer run than there are slots.
    ///
    /// # Errors
    ///
    /// [`Reason::Forked`], [`Reason::Poisoned`].
    pub fn set_mode(&self, mode: PoolMode) -> Result<(), Reason> {
        if self.is_forked() {
            return Err(Reason::Forked);
        }
        let observes = mode == PoolMode::Observe;
        // What changes bands later puts these settings in force again.
        let mut live = self.meta().live.lock();
        self.shard().reconfigure(self.core(), |st| st.observes = observes)?;
        live.mode = mode;
        Ok(())
    }

    fn named<T, R>(
        &self,
        census: impl FnOnce(&Self) -> Vec<T>,
        name: impl Fn(&Self, &T, u64) -> R,
    ) -> Vec<R> {
        if self.is_forked() {
            return Vec::new();
        }
        let found = census(self);
        let now_ns = self.now_ns();
        found.iter().map(|at| name(self, at, now_ns)).collect()
    }

    fn flow_name(&self, flow: u32) -> Option<FlowName> {
        if flow == NONE { None } else { self.name_of(flow) }
    }
}

fn age(now_ns: u64, since_ns: u64) -> Duration {
    Duration::from_nanos(now_ns.saturating_sub(since_ns))
}

impl Engine {
    /// [`Pool::holders`] of the pool of this name.
    ///
    /// # Errors
    ///
    /// [`Reason::UnknownPool`].
    pub fn holders(&self, pool: &str, most: usize) -> Result<Vec<Holder>, Reason> {
        Ok(self.pool(pool)?.holders(most))
    }

    /// [`Pool::waiters`] of the pool of this name.
    ///
    /// # Errors
    ///
    /// [`Reason::UnknownPool`].
    pub fn waiters(&self, pool: &str, most: usize) -> Result<Vec<Waiting>, Reason> {
        Ok(self.pool(pool)?.waiters(most))
    }
}
