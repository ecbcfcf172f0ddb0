//! What was dispatched since the last sample, as saturation: a sample is old from the moment it is taken, and what a
//! pool has sent since is the part of the future it knows itself.
//!
//! Everything here is integers in units of 2^-48, steps rounded up: the sum is never below what the detector's bound
//! says, up to 65,535 times full, where it stays. With nothing dispatched the gate is exactly the comparison of the two doubles.

use crate::types::extend::Sampled;

/// Units of a whole.
const WHOLE: f64 = 281_474_976_710_656.0;
const _: () = assert!(WHOLE.to_bits() == (1023 + 48) << 52, "2^48");

/// What a pool had dispatched at one moment: taken when the host begins to ask its backends, and given back with
/// what they answered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Mark {
    dispatched: u64,
    cost: u64,
}

/// What runs in a pool.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Load {
    /// Requests.
    pub running: u32,
    /// Their cost in tokens; `None`: not known of each.
    pub tokens: Option<u64>,
}

impl From<u32> for Load {
    fn from(running: u32) -> Self {
        Self { running, tokens: None }
    }
}

/// The last sample of a pool and what was dispatched since. Plain memory under LOCK; no call allocates.
#[derive(Clone, Copy, Debug, Default)]
pub struct SinceSample {
    sampled: Sampled,
    /// Of one dispatch, and of one token of it.
    per_dispatch: u64,
    per_token: u64,
    /// Added since the sample.
    added: u64,
    /// Everything dispatched since the start.
    total: Mark,
}

impl SinceSample {
    /// What was dispatched until now.
    pub fn mark(&self) -> Mark {
        self.total
    }

    /// A new sample. `begun`: where the pool stood when the host began to take it; what was dispatched after
    /// that is not in it yet. `None`: it is of this moment.
    pub fn sample(&mut self, sampled: Sampled, begun: Option<Mark>) {
        let begun = begun.unwrap_or(self.total);
        self.per_dispatch = units(sampled.per_dispatch);
        self.per_token = units(sampled.per_token);
        self.sampled = sampled;
        // A mark of before the detector was taken away and came back is ahead: as if it were of this moment.
        let dispatched = self.total.dispatched.saturating_sub(begun.dispatched);
        let cost = self.total.cost.saturating_sub(begun.cost);
        // The larger of two sums is at most the sum of the larger ones, so this is the one place that adds both.
        self.added = dispatched
            .saturating_mul(self.per_dispatch)
            .saturating_add(cost.saturating_mul(self.per_token));
    }

    /// A request of this cost was dispatched.
    #[inline]
    pub fn dispatched(&mut self, cost: u32) {
        let cost = u64::from(cost);
        let step = cost.saturating_mul(self.per_token).max(self.per_dispatch);
        self.added = self.added.saturating_add(step);
        self.total.dispatched = self.total.dispatched.wrapping_add(1);
        self.total.cost = self.total.cost.wrapping_add(cost);
    }

    /// What may be added before a band with this ceiling is gated, or a threshold reached: 0 if it is now. While
    /// the pool [probes](Sampled::probe) any positive level has room for one request, and none while one runs.
    pub fn room(&self, level: f64) -> u64 {
        if self.sampled.probe {
            return u64::from(level > 0.0);
        }
        if self.sampled.saturation >= level {
            return 0;
        }
        // A level that is no number gates nobody, as in the comparison above.
        if level.is_nan() { u64::MAX } else { units(level - self.sampled.saturation).max(1) }
    }

    /// What was added, to compare with [`room`](Self::room): gated, or reached, iff `added >= room`.
    ///
    /// Of the requests dispatched since the sample at most those that run are still there, and one that has ended
    /// adds nothing. Where tokens count and nobody knows those of who runs, they count until the next sample.
    #[inline]
    pub fn added(&self, load: impl Into<Load>) -> u64 {
        let load = load.into();
        if self.sampled.probe { u64::from(load.running) } else { self.grown(load) }
    }

    #[inline]
    fn grown(&self, load: Load) -> u64 {
        let requests = u64::from(load.running).saturating_mul(self.per_dispatch);
        let most = match load.tokens {
            _ if self.per_token == 0 => requests,
            // Each adds the larger of two terms: at most both.
            Some(tokens) => requests.saturating_add(tokens.saturating_mul(self.per_token)),
            None => return self.added,
        };
        self.added.min(most)
    }

    /// The saturation now, for views and metrics.
    #[allow(
        clippy::cast_precision_loss,
        reason = "a view: 53 bits of it are more than anybody reads"
    )]
    pub fn saturation(&self, load: impl Into<Load>) -> f64 {
        self.sampled.saturation + self.grown(load.into()) as f64 / WHOLE
    }

    /// Goes on counting where another count of the same pool stops, so that its marks stay good.
    pub fn inherit(&mut self, old: &Self) {
        self.total = old.total;
    }

    /// The sample as it came.
    pub fn last(&self) -> Sampled {
        self.sampled
    }
}

/// A step in units, rounded up; more than fits is all that fits.
#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    clippy::cast_sign_loss,
    reason = "the cast saturates, and a step is checked to be 0 or more; whole numbers of a double go back into one"
)]
fn units(step: f64) -> u64 {
    // Scaling by a power of two is exact; the ceiling needs no library.
    let scaled = step * WHOLE;
    let whole = scaled as u64;
    if (whole as f64) < scaled { whole.saturating_add(1) } else { whole }
}
