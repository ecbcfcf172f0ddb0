//! What became of a request that did not run, and how every surface says so.
//!
//! One table: the reason string is the same in Rust, C, Python, metrics and HTTP. Only status and header depend on
//! the [`Profile`]. Everything here is a pure function of its arguments; no call allocates or fails.

#![forbid(unsafe_code)]

use core::fmt;

use crate::error::Reason;

/// Whether a request ever waited.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum Fate {
    /// Refused before it was queued.
    Rejected,
    /// Taken out of the queue.
    Evicted,
}

impl Fate {
    /// The stable name, for logs and metrics.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Rejected => "rejected",
            Self::Evicted => "evicted",
        }
    }
}

/// The bound that refused a request: what stands behind [`Reason::QueueFull`] and [`Reason::TenantQueueFull`].
///
/// In the order in which they are looked at; the first one exceeded is named.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
#[repr(u8)]
pub enum Bound {
    /// Bytes waiting in the engine.
    EngineBytes,
    /// Requests waiting in the engine.
    EngineRequests,
    /// Tokens waiting in the engine.
    EngineTokens,
    /// Bytes waiting in the pool.
    PoolBytes,
    /// Requests waiting in the pool.
    PoolRequests,
    /// Tokens waiting in the pool.
    PoolTokens,
    /// Bytes waiting in the band.
    BandBytes,
    /// Requests waiting in the band.
    BandRequests,
    /// Tokens waiting in the band.
    BandTokens,
    /// What one tenant has waiting in the band.
    TenantShare,
    /// Places for waiting requests in the shard: the memory taken at start.
    Places,
}

impl Bound {
    /// Every bound, for tables and tests.
    pub const ALL: [Self; 11] = [
        Self::EngineBytes,
        Self::EngineRequests,
        Self::EngineTokens,
        Self::PoolBytes,
        Self::PoolRequests,
        Self::PoolTokens,
        Self::BandBytes,
        Self::BandRequests,
        Self::BandTokens,
        Self::TenantShare,
        Self::Places,
    ];

    /// The stable name, for logs and details; it never replaces the reason.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::EngineBytes => "engine_bytes",
            Self::EngineRequests => "engine_requests",
            Self::EngineTokens => "engine_tokens",
            Self::PoolBytes => "pool_bytes",
            Self::PoolRequests => "pool_requests",
            Self::PoolTokens => "pool_tokens",
            Self::BandBytes => "band_bytes",
            Self::BandRequests => "band_requests",
            Self::BandTokens => "band_tokens",
            Self::TenantShare => "tenant_share",
            Self::Places => "places",
        }
    }

    /// The refusal this bound makes. While no backend exists a full queue is not the caller's doing: the reason
    /// is then that no backend exists.
    pub const fn refusal(self, has_backend: bool) -> Outcome {
        let reason = match (self, has_backend) {
            (Self::TenantShare, _) => Reason::TenantQueueFull,
            (_, true) => Reason::QueueFull,
            (_, false) => Reason::NoBackend,
        };
        Outcome { fate: Fate::Rejected, reason, cause: Some(self) }
    }
}

/// How status and header are spelt.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Profile {
    /// Ours: 429 for contention, 503 with Retry-After for a deadline, header `x-bandgate-reason`.
    #[default]
    Default,
    /// That of llm-d's router, with its header and reason names; it knows no Retry-After.
    LlmD,
}

impl Profile {
    /// As `engine.outcomeProfile` spells it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Default => "default",
            Self::LlmD => "llm-d",
        }
    }
}

/// How fast a queue drains: what Retry-After is computed from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Drain {
    /// Requests that would be ahead of a new one.
    pub waiting: u64,
    /// Requests granted in the last `over_ns`; 0: not known.
    pub granted: u64,
    /// The time looked back over, in nanoseconds.
    pub over_ns: u64,
}

/// Seconds before a retry where no rate is known.
const RETRY_UNKNOWN_S: u64 = 5;
/// Least seconds after an expired deadline and while no backend exists.
const RETRY_LEAST_S: u64 = 5;
/// Most seconds before jitter, which adds up to a half.
const RETRY_MOST_S: u64 = 200;

impl Drain {
    /// Whole seconds, rounded up, until what waits is granted: 1 to 200.
    fn seconds(&self) -> u64 {
        const SECOND_NS: u128 = 1_000_000_000;
        if self.granted == 0 {
            return RETRY_UNKNOWN_S;
        }
        let ns = u128::from(self.waiting) * u128::from(self.over_ns) / u128::from(self.granted);
        u64::try_from(ns.div_ceil(SECOND_NS)).unwrap_or(RETRY_MOST_S).clamp(1, RETRY_MOST_S)
    }
}

/// What became of a request that did not run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Outcome {
    /// Refused, or taken out of the queue.
    pub fate: Fate,
    /// Why; the same string everywhere.
    pub reason: Reason,
    /// The bound that was exceeded, if one was.
    pub cause: Option<Bound>,
}

impl Outcome {
    /// A refusal before the queue.
    pub const fn rejected(reason: Reason) -> Self {
        Self { fate: Fate::Rejected, reason, cause: None }
    }

    /// A removal from the queue.
    pub const fn evicted(reason: Reason) -> Self {
        Self { fate: Fate::Evicted, reason, cause: None }
    }

    /// The HTTP status. `pool_empty`: whether no backend exists while the answer is written.
    ///
    /// 499 (the caller is gone) is for logs: [`is_sent`](Self::is_sent) is false.
    pub const fn status(self, profile: Profile, pool_empty: bool) -> u16 {
        match (profile, self.reason) {
            (Profile::LlmD, Reason::Deadline) if !pool_empty => 429,
            (Profile::LlmD, Reason::Cancelled) => 503,
            _ => self.reason.status(),
        }
    }

    /// Whether there is anybody to send the status to.
    pub const fn is_sent(self, profile: Profile) -> bool {
        !matches!((profile, self.reason), (Profile::Default, Reason::Cancelled))
    }

    /// Name and value of the header that names the reason; llm-d has none for what it does not know.
    pub const fn header(
        self,
        profile: Profile,
        pool_empty: bool,
    ) -> Option<(&'static str, &'static str)> {
        match profile {
            Profile::Default => Some(("x-bandgate-reason", self.reason.as_str())),
            Profile::LlmD => match self.llm_d_reason(pool_empty) {
                Some(value) => Some(("x-llm-d-request-dropped-reason", value)),
                None => None,
            },
        }
    }

    const fn llm_d_reason(self, pool_empty: bool) -> Option<&'static str> {
        Some(match self.reason {
            Reason::Busy
            | Reason::WouldQueue
            | Reason::QueueFull
            | Reason::TenantQueueFull
            | Reason::TokenBudget
            | Reason::FlowTableFull
            | Reason::Displaced => "rejected-saturated",
            Reason::Deadline if !pool_empty => "rejected-ttl-expired",
            Reason::Deadline | Reason::NoBackend => "rejected-no-endpoints",
            Reason::Cancelled => "rejected-context-cancelled",
            Reason::ShuttingDown | Reason::Forked => "rejected-shutting-down",
            Reason::TermBudget
            | Reason::TooLarge
            | Reason::UnknownPool
            | Reason::UnknownBand
            | Reason::Poisoned => return None,
        })
    }

    /// The outcome's name in llm-d's metrics.
    pub const fn llm_d_name(self) -> &'static str {
        match (self.fate, self.reason) {
            (Fate::Rejected, Reason::NoBackend) => "RejectedNoEndpoints",
            (
                Fate::Rejected,
                Reason::Busy
                | Reason::WouldQueue
                | Reason::QueueFull
                | Reason::TenantQueueFull
                | Reason::TokenBudget
                | Reason::FlowTableFull,
            ) => "RejectedCapacity",
            (Fate::Rejected, _) => "RejectedOther",
            (Fate::Evicted, Reason::Deadline) => "EvictedTTL",
            (Fate::Evicted, Reason::NoBackend) => "EvictedNoEndpoints",
            (Fate::Evicted, Reason::Cancelled) => "EvictedContextCancelled",
            (Fate::Evicted, _) => "EvictedOther",
        }
    }

    /// Seconds for a Retry-After header, 1 to 300, or `None` where a retry is no use or the profile has no such
    /// header.
    ///
    /// The time in which what waits drains, at least 5 s after a deadline and while no backend exists, and up to a
    /// half more: `random` is any number, new for each answer, so that those refused together do not return together.
    pub fn retry_after(self, profile: Profile, drain: &Drain, random: u64) -> Option<u32> {
        let seconds = match (profile, self.reason) {
            (Profile::LlmD, _) => return None,
            (_, Reason::Busy) => 1,
            (_, Reason::Deadline | Reason::NoBackend) => drain.seconds().max(RETRY_LEAST_S),
            (
                _,
                Reason::WouldQueue
                | Reason::QueueFull
                | Reason::TenantQueueFull
                | Reason::TokenBudget
                | Reason::Displaced,
            ) => drain.seconds(),
            _ => return None,
        };
        // The high half of the product: 0 to `spread`, evenly, without a division.
        let spread = seconds.div_ceil(2);
        let jitter = (u128::from(random) * u128::from(spread + 1)) >> 64;
        u32::try_from(u128::from(seconds) + jitter).ok()
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.fate.as_str(), self.reason)?;
        match self.cause {
            Some(bound) => write!(f, " ({})", bound.as_str()),
            None => Ok(()),
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn the_default_table_is_the_documented_one() {
        use Reason::*;
        for (reason, status, retry) in [
            (Busy, 429, true),
            (WouldQueue, 429, true),
            (QueueFull, 429, true),
            (TenantQueueFull, 429, true),
            (TokenBudget, 429, true),
            (TermBudget, 403, false),
            (TooLarge, 400, false),
            (UnknownPool, 404, false),
            (UnknownBand, 400, false),
            (FlowTableFull, 429, false),
            (NoBackend, 503, true),
            (Deadline, 503, true),
            (Displaced, 429, true),
            (Cancelled, 499, false),
            (ShuttingDown, 503, false),
            (Forked, 503, false),
            (Poisoned, 500, false),
        ] {
            for outcome in [Outcome::rejected(reason), Outcome::evicted(reason)] {
                for empty in [false, true] {
                    assert_eq!(outcome.status(Profile::Default, empty), status, "{outcome}");
                    let header = Some(("x-bandgate-reason", reason.as_str()));
                    assert_eq!(outcome.header(Profile::Default, empty), header);
                }
                let after = outcome.retry_after(Profile::Default, &Drain::default(), 7);
                assert_eq!(after.is_some(), retry, "{outcome}");
                assert_eq!(outcome.is_sent(Profile::Default), reason != Cancelled);
            }
        }
    }

    #[test]
    fn the_llm_d_table_is_the_specs() {
        let row = |outcome: Outcome, empty| {
            let header = outcome.header(Profile::LlmD, empty).map(|(name, value)| {
                assert_eq!(name, "x-llm-d-request-dropped-reason");
                value
            });
            (outcome.llm_d_name(), outcome.status(Profile::LlmD, empty), header)
        };
        let no_endpoints = Some("rejected-no-endpoints");
        for (outcome, empty, expected) in [
            (
                Outcome::rejected(Reason::QueueFull),
                false,
                ("RejectedCapacity", 429, Some("rejected-saturated")),
            ),
            (
                Outcome::rejected(Reason::QueueFull),
                true,
                ("RejectedCapacity", 429, Some("rejected-saturated")),
            ),
            (
                Outcome::rejected(Reason::NoBackend),
                true,
                ("RejectedNoEndpoints", 503, no_endpoints),
            ),
            (
                Outcome::evicted(Reason::Deadline),
                false,
                ("EvictedTTL", 429, Some("rejected-ttl-expired")),
            ),
            (Outcome::evicted(Reason::Deadline), true, ("EvictedTTL", 503, no_endpoints)),
            (Outcome::evicted(Reason::NoBackend), false, ("EvictedNoEndpoints", 503, no_endpoints)),
            (
                Outcome::evicted(Reason::Cancelled),
                false,
                ("EvictedContextCancelled", 503, Some("rejected-context-cancelled")),
            ),
            (
                Outcome::evicted(Reason::ShuttingDown),
                false,
                ("EvictedOther", 503, Some("rejected-shutting-down")),
            ),
            (
                Outcome::rejected(Reason::ShuttingDown),
                true,
                ("RejectedOther", 503, Some("rejected-shutting-down")),
            ),
            (Outcome::rejected(Reason::Poisoned), false, ("RejectedOther", 500, None)),
        ] {
            assert_eq!(row(outcome, empty), expected, "{outcome} {empty}");
        }
        let never = Outcome::rejected(Reason::QueueFull);
        assert_eq!(never.retry_after(Profile::LlmD, &Drain::default(), 0), None);
    }

    #[test]
    fn every_bound_has_one_reason_and_an_empty_pool_is_named_instead() {
        for bound in Bound::ALL {
            let of_tenant = bound == Bound::TenantShare;
            let full = if of_tenant { Reason::TenantQueueFull } else { Reason::QueueFull };
            let empty = if of_tenant { Reason::TenantQueueFull } else { Reason::NoBackend };
            assert_eq!(bound.refusal(true).reason, full);
            assert_eq!(bound.refusal(false).reason, empty);
            assert_eq!(
                (bound.refusal(true).cause, bound.refusal(true).fate),
                (Some(bound), Fate::Rejected)
            );
        }
        let shown = Bound::BandBytes.refusal(true).to_string();
        assert_eq!(shown, "rejected: queue_full (band_bytes)");
    }

    #[test]
    fn retry_after_follows_the_drain_rate_and_is_jittered_upwards() {
        let full = Outcome::rejected(Reason::QueueFull);
        let after = |outcome: Outcome, waiting, granted, random| {
            let drain = Drain { waiting, granted, over_ns: 1_000_000_000 };
            outcome.retry_after(Profile::Default, &drain, random).unwrap_or_default()
        };
        assert_eq!((after(full, 100, 10, 0), after(full, 100, 10, u64::MAX)), (10, 15));
        assert_eq!((after(full, 0, 10, 0), after(full, 1, 1_000, u64::MAX)), (1, 2));
        assert_eq!(after(full, 11, 10, 0), 2, "rounded up");
        assert_eq!((after(full, u64::MAX, 1, 0), after(full, u64::MAX, 1, u64::MAX)), (200, 300));
        assert_eq!(after(full, 9, 0, 0), 5, "no rate is known");
        for reason in [Reason::Deadline, Reason::NoBackend] {
            let outcome = Outcome::evicted(reason);
            assert_eq!((after(outcome, 1, 1_000, 0), after(outcome, 1, 1_000, u64::MAX)), (5, 8));
            assert_eq!(after(outcome, 100, 10, 0), 10);
        }
        assert_eq!((after(Outcome::rejected(Reason::Busy), 1 << 40, 1, 0)), 1);
    }
}
