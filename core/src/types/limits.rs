//! How much may wait: requests, bytes and tokens of a band, of a pool, of the engine.

#![forbid(unsafe_code)]

/// Most that may wait. Absent: no such limit; 0: nothing may wait, so what cannot run at once is refused.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Limits {
    /// Requests.
    pub requests: Option<u64>,
    /// Bytes, as the requests state them.
    pub bytes: Option<u64>,
    /// Cost, in tokens, as the requests estimate it.
    pub tokens: Option<u64>,
}

impl Limits {
    /// No limit.
    pub const NONE: Self = Self { requests: None, bytes: None, tokens: None };

    /// Requests of a band under the seeds' spelling that names none, or 0.
    pub const SEED_REQUESTS: u64 = 5_000;
    /// Bytes of such a band.
    pub const SEED_BYTES: u64 = 1_000_000_000;

    /// Whether anything is limited.
    pub const fn is_any(&self) -> bool {
        self.requests.is_some() || self.bytes.is_some() || self.tokens.is_some()
    }

    /// The bounds as numbers; absent: a number no sum reaches.
    pub(crate) fn most(&self) -> Load {
        let at = |limit: Option<u64>| limit.unwrap_or(u64::MAX);
        Load { requests: at(self.requests), bytes: at(self.bytes), tokens: at(self.tokens) }
    }
}

/// What waits somewhere, or one request of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Load {
    /// Requests.
    pub requests: u64,
    /// Bytes.
    pub bytes: u64,
    /// Tokens.
    pub tokens: u64,
}

/// Which of the three is exceeded, in the order in which they are looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exceeded {
    Bytes,
    Requests,
    Tokens,
}

impl Load {
    /// One request of this size.
    pub(crate) const fn one(bytes: u32, cost: u32) -> Self {
        Self { requests: 1, bytes: bytes as u64, tokens: cost as u64 }
    }

    /// Books a load.
    pub(crate) const fn add(&mut self, other: &Self) {
        self.requests = self.requests.wrapping_add(other.requests);
        self.bytes = self.bytes.wrapping_add(other.bytes);
        self.tokens = self.tokens.wrapping_add(other.tokens);
    }

    /// Takes back what was booked.
    pub(crate) const fn remove(&mut self, other: &Self) {
        self.requests = self.requests.wrapping_sub(other.requests);
        self.bytes = self.bytes.wrapping_sub(other.bytes);
        self.tokens = self.tokens.wrapping_sub(other.tokens);
    }

    /// What `one` more would exceed of `most`; to reach it is no fault.
    pub(crate) const fn exceeds(&self, one: &Self, most: &Self) -> Option<Exceeded> {
        if self.bytes.saturating_add(one.bytes) > most.bytes {
            Some(Exceeded::Bytes)
        } else if self.requests.saturating_add(one.requests) > most.requests {
            Some(Exceeded::Requests)
        } else if self.tokens.saturating_add(one.tokens) > most.tokens {
            Some(Exceeded::Tokens)
        } else {
            None
        }
    }

    /// This share of each bound, rounded down, but room for one request at least unless the share is 0; what is not
    /// limited stays so.
    #[allow(
        clippy::float_arithmetic,
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "cold: settings become bounds once; the share is 0 to 1"
    )]
    pub(crate) fn share(&self, share: f64) -> Self {
        let of = |most: u64, least: u64| match most {
            u64::MAX => u64::MAX,
            _ => ((most as f64 * share) as u64).max(least.min(most)),
        };
        let least = u64::from(share > 0.0);
        Self {
            requests: of(self.requests, least),
            bytes: of(self.bytes, 0),
            tokens: of(self.tokens, 0),
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn to_reach_a_bound_is_no_fault_and_one_more_is() {
        let limits = Limits { requests: Some(2), bytes: Some(10), tokens: Some(5) };
        let load = Load { requests: 1, bytes: 6, tokens: 3 };
        let exceeds = |bytes, cost| load.exceeds(&Load::one(bytes, cost), &limits.most());
        assert_eq!(exceeds(4, 2), None);
        assert_eq!(exceeds(5, 2), Some(Exceeded::Bytes));
        assert_eq!(exceeds(4, 3), Some(Exceeded::Tokens));
        let full = Load { requests: 2, ..load };
        assert_eq!(full.exceeds(&Load::one(0, 1), &limits.most()), Some(Exceeded::Requests));
        let all = Load { requests: u64::MAX - 1, bytes: u64::MAX - 9, tokens: 7 };
        assert_eq!(all.exceeds(&Load::one(9, 9), &Limits::NONE.most()), None);
    }

    #[test]
    fn a_share_rounds_down_but_leaves_room_for_one() {
        let most = Limits { requests: Some(10), bytes: Some(100), tokens: None }.most();
        let share = |share| most.share(share);
        assert_eq!(share(0.25), Load { requests: 2, bytes: 25, tokens: u64::MAX });
        assert_eq!(share(0.01), Load { requests: 1, bytes: 1, tokens: u64::MAX });
        assert_eq!(share(0.0), Load { requests: 0, bytes: 0, tokens: u64::MAX });
        assert_eq!(share(1.0), most);
    }
}
