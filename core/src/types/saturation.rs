//! Where the saturation of a pool comes from, and what the detectors compute with.

use core::time::Duration;

use super::custom::CustomDetector;

/// Where the saturation comes from that gates bands and switches the weighted mode.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum SaturationSource {
    /// Running requests over slots.
    #[default]
    Slots,
    /// The host sets it; until it does, and after it takes it back, as [`Slots`](Self::Slots).
    Gauge,
    /// In-flight requests or tokens of the backends, as the host reports them; until its first report as
    /// [`Slots`](Self::Slots).
    Concurrency(ConcurrencyParams),
    /// Queues and KV caches of the backends, as the host reports them; until its first report as
    /// [`Slots`](Self::Slots).
    Utilization(UtilizationParams),
    /// The host's own detector over the backends it reports.
    Custom(CustomDetector),
}

/// How the ratios of several backends become one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Aggregate {
    /// Their mean: one full backend of four is 0.25.
    #[default]
    Mean,
    /// The highest: one full backend is 1.0.
    Max,
}

/// What a backend counts as whose metrics are absent or too old.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum StalenessPolicy {
    /// As full.
    #[default]
    Saturated,
    /// Not at all; if all are stale the pool reads 0.0.
    Ignore,
    /// Not at all while another is fresh; if all are stale the pool reads 1.0 and lets one request through at a
    /// time, so that a backend that has recovered is noticed.
    Probe,
}

/// What the concurrency detector counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum ConcurrencyMode {
    /// Requests in flight.
    #[default]
    Requests,
    /// Tokens in flight.
    Tokens,
    /// Of each backend the higher of both ratios.
    Hybrid,
}

/// Everything `concurrency-detector` computes with.
#[derive(Clone, Debug, PartialEq)]
pub struct ConcurrencyParams {
    /// What is counted.
    pub mode: ConcurrencyMode,
    /// Requests that fill a backend, 1..=1,000,000.
    pub max_requests: u32,
    /// Tokens that fill a backend, 1..=1,000,000,000,000.
    pub max_tokens: u64,
    /// How backends are put together.
    pub aggregate: Aggregate,
    /// Share above its limit up to which a backend may still be chosen, 0..=100. Does not move the saturation.
    pub headroom: f64,
}

impl Default for ConcurrencyParams {
    fn default() -> Self {
        Self {
            mode: ConcurrencyMode::Requests,
            max_requests: 100,
            max_tokens: 1_000_000,
            aggregate: Aggregate::Mean,
            headroom: 0.0,
        }
    }
}

/// Everything `utilization-detector` computes with.
#[derive(Clone, Debug, PartialEq)]
pub struct UtilizationParams {
    /// Waiting requests that fill a backend, 1..=1,000,000.
    pub queue_depth: u32,
    /// Share of the KV cache in use that fills a backend, 0 < x <= 1.
    pub kv: f64,
    /// Age above which metrics count as absent; above 0.
    pub stale_after: Duration,
    /// What a stale backend counts as.
    pub staleness: StalenessPolicy,
    /// How backends are put together.
    pub aggregate: Aggregate,
    /// Share above its thresholds up to which a backend may still be chosen, 0..=100. Does not move the saturation.
    pub headroom: f64,
}

impl Default for UtilizationParams {
    fn default() -> Self {
        Self {
            queue_depth: 5,
            kv: 0.8,
            stale_after: Duration::from_millis(200),
            staleness: StalenessPolicy::Saturated,
            aggregate: Aggregate::Mean,
            headroom: 0.0,
        }
    }
}
