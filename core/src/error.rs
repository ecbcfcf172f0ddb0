//! Why a request did not get, or lost, its place: one reason, one string, on every surface.

use core::fmt;

/// The reason of a refusal. [`as_str`](Self::as_str) is the same on every surface. Reasons marked "reserved" keep their
/// number and name for limits of later versions; nothing gives them yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
#[repr(u8)]
pub enum Reason {
    /// The pool's ring is full, or its lock is taken: try again. Only `submit` and `try_admit` say so.
    Busy = 1,
    /// `try_admit` only: nothing is free now, and nothing was queued.
    WouldQueue,
    /// No room to wait: a limit of the band, the pool or the engine is reached, or the shard holds as many waiting
    /// requests as it may.
    QueueFull,
    /// The tenant's share of the band's queue is full, or the tenant or key has a cap of 0, so it could never run.
    TenantQueueFull,
    /// Reserved: the token bucket is empty.
    TokenBudget,
    /// Reserved: the term budget is spent.
    TermBudget,
    /// The cost is 0 or above the pool's `maxCost`.
    TooLarge,
    /// No pool of that name; or the flow belongs to another pool, or the completion queue to another engine.
    UnknownPool,
    /// The pool has no band of that priority, or the band belongs to another pool.
    UnknownBand,
    /// The flow table is full; or the flow was forgotten because it was idle.
    FlowTableFull,
    /// Reserved: no backend exists.
    NoBackend,
    /// The deadline passed before the request was granted.
    Deadline,
    /// Reserved: made room for a request of a higher band.
    Displaced,
    /// The caller cancelled, or dropped its future.
    Cancelled,
    /// The pool or the engine drains or is shut down.
    ShuttingDown,
    /// The engine was made before a `fork` and this is the child.
    Forked,
    /// A holder panicked inside the critical section: the pool decides nothing any more.
    Poisoned,
}

impl Reason {
    /// Every reason, for tables and tests.
    pub const ALL: [Self; 17] = [
        Self::Busy,
        Self::WouldQueue,
        Self::QueueFull,
        Self::TenantQueueFull,
        Self::TokenBudget,
        Self::TermBudget,
        Self::TooLarge,
        Self::UnknownPool,
        Self::UnknownBand,
        Self::FlowTableFull,
        Self::NoBackend,
        Self::Deadline,
        Self::Displaced,
        Self::Cancelled,
        Self::ShuttingDown,
        Self::Forked,
        Self::Poisoned,
    ];

    /// The stable name, for logs, metrics and status texts.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Busy => "busy",
            Self::WouldQueue => "would_queue",
            Self::QueueFull => "queue_full",
            Self::TenantQueueFull => "tenant_queue_full",
            Self::TokenBudget => "token_budget",
            Self::TermBudget => "term_budget",
            Self::TooLarge => "too_large",
            Self::UnknownPool => "unknown_pool",
            Self::UnknownBand => "unknown_band",
            Self::FlowTableFull => "flow_table_full",
            Self::NoBackend => "no_backend",
            Self::Deadline => "deadline",
            Self::Displaced => "displaced",
            Self::Cancelled => "cancelled",
            Self::ShuttingDown => "shutting_down",
            Self::Forked => "forked",
            Self::Poisoned => "poisoned",
        }
    }

    /// The HTTP status of the default profile; the other one is in [`outcome`](crate::types::outcome).
    pub(crate) const fn status(self) -> u16 {
        match self {
            Self::TooLarge | Self::UnknownBand => 400,
            Self::TermBudget => 403,
            Self::UnknownPool => 404,
            Self::Busy
            | Self::WouldQueue
            | Self::QueueFull
            | Self::TenantQueueFull
            | Self::TokenBudget
            | Self::FlowTableFull
            | Self::Displaced => 429,
            Self::Cancelled => 499,
            Self::Poisoned => 500,
            Self::NoBackend | Self::Deadline | Self::ShuttingDown | Self::Forked => 503,
        }
    }

    /// Its place in [`ALL`](Self::ALL).
    pub(crate) const fn index(self) -> usize {
        self as usize - 1
    }

    /// The reason with this number, as stored in one byte of an entry's state.
    pub(crate) fn from_u8(n: u8) -> Option<Self> {
        Self::ALL.get(usize::from(n).checked_sub(1)?).copied()
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl core::error::Error for Reason {}

#[cfg(test)]
mod tests {
    use super::Reason;

    #[test]
    fn every_reason_survives_its_byte() {
        for reason in Reason::ALL {
            assert_eq!(Reason::from_u8(reason as u8), Some(reason));
            assert_eq!(Reason::ALL[reason.index()], reason);
        }
        assert_eq!(Reason::from_u8(0), None);
        assert_eq!(Reason::from_u8(200), None);
    }
}
