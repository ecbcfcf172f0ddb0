//! The concurrency detector: what is in flight over what fills a backend.
//!
//! With n backends, L the limit of requests, T that of tokens, and a request of cost c:
//!
//! | mode | saturation, mean | one dispatch adds, mean | with `max` |
//! | --- | --- | --- | --- |
//! | requests | sum(requests) / (n L) | 1 / (n L) | max(requests) / L; 1 / L |
//! | tokens | sum(tokens) / (n T) | c / (n T) | max(tokens) / T; c / T |
//! | hybrid | mean of max(requests / L, tokens / T) | max(1 / L, c / T) / n | the highest; max(1 / L, c / T) |
//!
//! The sums are exact: a request raises one backend's count by 1 and its tokens by c, so `max(a + x, b + y) <=
//! max(a, b) + max(x, y)` bounds the hybrid ratio of that backend, and the aggregate by `spread`.
//!
//! There is no notion of age: the host counts what it has in flight itself. No backend at all is full (1.0); one that
//! is not known yet is a sample of zeros, capacity without load.

use super::{Ratios, spread};
use crate::types::extend::{BackendSample, Sampled, SaturationDetector};
use crate::types::saturation::{Aggregate, ConcurrencyMode, ConcurrencyParams};

/// See the [module](self).
#[derive(Clone, Debug)]
pub struct Concurrency {
    params: ConcurrencyParams,
}

impl Concurrency {
    /// With these limits; one of 0 counts as 1.
    pub fn new(params: ConcurrencyParams) -> Self {
        Self { params }
    }

    fn max_requests(&self) -> f64 {
        f64::from(self.params.max_requests.max(1))
    }

    fn max_tokens(&self) -> f64 {
        as_f64(self.params.max_tokens.max(1))
    }

    fn ratio(&self, sample: &BackendSample) -> f64 {
        let requests = || f64::from(sample.requests) / self.max_requests();
        let tokens = || as_f64(sample.tokens) / self.max_tokens();
        match self.params.mode {
            ConcurrencyMode::Requests => requests(),
            ConcurrencyMode::Tokens => tokens(),
            ConcurrencyMode::Hybrid => requests().max(tokens()),
        }
    }

    /// A mean of counts is one division, so that 30 of 200 is the 0.15 somebody wrote as a ceiling.
    fn saturation(&self, samples: &[BackendSample], count: u32) -> f64 {
        let sum = |load: fn(&BackendSample) -> u64| {
            as_f64(samples.iter().map(load).fold(0, u64::saturating_add))
        };
        match (self.params.aggregate, self.params.mode) {
            (Aggregate::Mean, ConcurrencyMode::Requests) => {
                sum(|s| s.requests.into()) / (f64::from(count) * self.max_requests())
            }
            (Aggregate::Mean, ConcurrencyMode::Tokens) => {
                sum(|s| s.tokens) / (f64::from(count) * self.max_tokens())
            }
            (aggregate, _) => {
                let mut ratios = Ratios::default();
                for sample in samples {
                    ratios.add(self.ratio(sample));
                }
                ratios.read(aggregate)
            }
        }
    }

    /// Whether the backend may still be chosen: below its limit with the headroom, cut to a whole number.
    pub fn has_room(&self, sample: &BackendSample) -> bool {
        let below = |load: f64, limit: f64| load < (limit * (1.0 + self.params.headroom)).trunc();
        let requests = || below(f64::from(sample.requests), self.max_requests());
        let tokens = || below(as_f64(sample.tokens), self.max_tokens());
        match self.params.mode {
            ConcurrencyMode::Requests => requests(),
            ConcurrencyMode::Tokens => tokens(),
            ConcurrencyMode::Hybrid => requests() && tokens(),
        }
    }
}

impl SaturationDetector for Concurrency {
    fn read(&self, samples: &[BackendSample]) -> Sampled {
        if samples.is_empty() {
            return Sampled { saturation: 1.0, ..Sampled::default() };
        }
        let (mode, aggregate) = (self.params.mode, self.params.aggregate);
        let count = u32::try_from(samples.len()).unwrap_or(u32::MAX);
        let step = |limit: f64| spread(1.0 / limit, count, aggregate);
        Sampled {
            saturation: self.saturation(samples, count),
            per_dispatch: if mode == ConcurrencyMode::Tokens {
                0.0
            } else {
                step(self.max_requests())
            },
            per_token: if mode == ConcurrencyMode::Requests {
                0.0
            } else {
                step(self.max_tokens())
            },
            ..Sampled::default()
        }
    }
}

#[allow(
    clippy::cast_precision_loss,
    reason = "token counts below 2^53 are exact, larger ones a ratio"
)]
fn as_f64(n: u64) -> f64 {
    n as f64
}
