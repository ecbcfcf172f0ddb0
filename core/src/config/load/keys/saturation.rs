//! The keys of the saturation detectors.

use super::{ABOVE_ZERO, Form, Interval, Key, Kind, choice, int};
use crate::config::load::plugins::Role;

/// Above 1 it is accepted with a warning.
const HEADROOM: Interval = Interval { min: 0.0, max: 100.0, min_open: false, max_open: false };
/// Requests that fill a backend.
const REQUESTS: Kind = int(1, 1_000_000, Form::Quantity);
const TOKENS: Kind = int(1, 1_000_000_000_000, Form::Quantity);

const fn aggregate() -> Key {
    Key::new(
        "aggregate",
        choice(&["mean", "max"]),
        "How the ratios of the backends become one: their `mean`, or the highest (`max`), so that one full backend is not averaged away.",
    )
    .default("mean")
    .live()
}

const fn headroom() -> Key {
    Key::new(
        "headroom",
        Kind::Float(HEADROOM),
        "How far above its limit, as a share of it, a backend may still be chosen; does not move the saturation. Above 1 gives a warning.",
    )
    .default("0")
    .live()
}

/// What stands under `saturationDetector` in the seeds' spelling.
pub(crate) static DETECTOR: &[Key] =
    &[Key::new("pluginRef", Kind::Reference(Role::Saturation), "Where the saturation comes from.")
        .default("`slots`: running requests over slots")
        .live()];

/// Parameters of `utilization-detector`.
pub(crate) static UTILIZATION: &[Key] = &[
    Key::new("queueDepthThreshold", REQUESTS, "Waiting requests that fill a backend.")
        .unit("requests")
        .default("5")
        .live(),
    Key::new(
        "kvCacheUtilThreshold",
        Kind::Float(ABOVE_ZERO),
        "Share of its KV cache in use that fills a backend.",
    )
    .unit("share")
    .default("0.8")
    .live(),
    Key::new(
        "metricsStalenessThreshold",
        Kind::Duration { unlimited: false },
        "Above 0s: metrics older than this are stale. Keep it well above the interval at which the host refreshes them: that interval is the host's and not known here, so it cannot be checked, and every sample would be stale for a part of it.",
    )
    .unit("time")
    .default("200ms")
    .live(),
    Key::new(
        "stalenessPolicy",
        choice(&["saturated", "ignore", "probe"]),
        "What a stale backend counts as: full (`saturated`); nothing, and 0.0 if all are stale (`ignore`); nothing, and if all are stale 1.0 with one request let through at a time (`probe`).",
    )
    .default("saturated")
    .live(),
    aggregate(),
    headroom(),
];

/// Parameters of `concurrency-detector`.
pub(crate) static CONCURRENCY: &[Key] = &[
    Key::new(
        "concurrencyMode",
        choice(&["requests", "tokens", "hybrid"]),
        "What is counted in flight; `hybrid`: of each backend the higher of both ratios.",
    )
    .default("requests")
    .live(),
    Key::new("maxConcurrency", REQUESTS, "Requests in flight that fill a backend.")
        .unit("requests")
        .default("100")
        .live(),
    Key::new("maxTokenConcurrency", TOKENS, "Tokens in flight that fill a backend.")
        .unit("tokens")
        .default("1000000")
        .live(),
    aggregate(),
    headroom(),
    Key::new(
        "inFlightLoadProducerName",
        Kind::Text,
        "Ignored, with a warning: the host reports what is in flight.",
    ),
];
