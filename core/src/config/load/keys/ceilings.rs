//! The keys of the usage limit policies.

use super::{ABOVE_ZERO, BELOW_ONE, Interval, Key, Kind, UNIT, choice};
use crate::types::policy::{Adaptive, Shape};

/// How steep a sigmoid may be.
const STEEPNESS: Interval =
    Interval { min: 0.0, max: Shape::MAX_STEEPNESS, min_open: true, max_open: false };
/// What a signal may be: a detector may read far more than 1.
const SIGNAL: Interval =
    Interval { min: 0.0, max: Adaptive::MAX_FULL, min_open: false, max_open: true };
const FULL_SIGNAL: Interval =
    Interval { min: 0.0, max: Adaptive::MAX_FULL, min_open: true, max_open: false };
const RATE: Interval =
    Interval { min: Adaptive::MIN_RATE, max: Adaptive::MAX_RATE, min_open: false, max_open: false };

/// Parameters of `static-usage-limit-policy`.
pub(crate) static STATIC_LIMIT: &[Key] =
    &[Key::new("threshold", Kind::Float(ABOVE_ZERO), "Ceiling of every band.")
        .unit("saturation")
        .default("1.0")
        .live()];

/// Parameters of `priority-holdback-policy`.
pub(crate) static HOLDBACK: &[Key] = &[
    Key::new(
        "shape",
        choice(&["linear", "sigmoid", "explicit", "static"]),
        "Shape of the curve; `explicit` and `static`: a list, as with domain explicit.",
    )
    .default("linear")
    .live(),
    Key::new("domain", choice(&["rank", "value", "explicit"]), "Scale of the curve, or a list.")
        .default("rank")
        .live(),
    Key::new(
        "strategy",
        choice(&["static", "stepwise-spread", "linear-proportional", "sigmoid-smoothed"]),
        "Other spelling: `static` = domain explicit, `stepwise-spread` = linear by rank, `linear-proportional` = linear by value, `sigmoid-smoothed` = shape sigmoid.",
    )
    .live(),
    Key::new(
        "minCeiling",
        Kind::Float(BELOW_ONE),
        "Ceiling of the lowest band, below `maxCeiling`; required unless the domain is explicit.",
    )
    .unit("saturation")
    .live(),
    Key::new(
        "maxCeiling",
        Kind::Float(ABOVE_ZERO),
        "Ceiling of the top band, and of a lone one.",
    )
    .unit("saturation")
    .default("1.0")
    .live(),
    Key::new(
        "sigmoidSteepness",
        Kind::Float(STEEPNESS),
        "`sigmoid` only: `k` of `1 / (1 + e^(-k (x - x0)))`; the bands stand at x = 0 (lowest) to 1 (top), and the curve is stretched to `minCeiling` and `maxCeiling`.",
    )
    .default("8.0")
    .live(),
    Key::new("sigmoidMidpoint", Kind::Float(UNIT), "`sigmoid` only: `x0`, where its middle lies.")
        .default("0.5")
        .live(),
    Key::new(
        "sigmoidDomain",
        choice(&["rank", "value"]),
        "`sigmoid` only: other spelling of `domain`.",
    )
    .live(),
    Key::new(
        "ceilings",
        Kind::ByPriority(UNIT),
        "`explicit` only: ceiling of each priority; must not rise as the priority falls.",
    )
    .unit("saturation")
    .live(),
    Key::new(
        "defaultStaticCeiling",
        Kind::Float(UNIT),
        "`explicit` only: ceiling of a band that is not listed.",
    )
    .unit("saturation")
    .default("that of the nearest listed priority below, else the lowest listed")
    .live(),
    Key::new(
        "activeBands",
        choice(&["provisioned", "busy"]),
        "The bands the curve is spread over; `busy`: those with a waiting or running request, read anew for every decision, so that a lone band has `maxCeiling`.",
    )
    .default("provisioned")
    .live(),
    Key::new(
        "adaptive",
        Kind::Object(ADAPTIVE),
        "Ceilings follow a signal: at rest up to `target`, at those of the shape from `full` on. With the pressure `p = max((signal - target) / (full - target) cut to 0..1, p0 - recoveryRate x seconds since)` a ceiling is `rest + (shape - rest) x p`.",
    ),
];

static ADAPTIVE: &[Key] = &[
    Key::new(
        "signal",
        Kind::Text,
        "What presses: `saturation` (the pool's, as its gates see it), `queueDepth` (waiting over the most that may wait), or the name of a saturation detector, a plugin or a type, which then reads what the host reports, whatever the pool's own `saturation` is.",
    )
    .default("saturation")
    .live(),
    Key::new("target", Kind::Float(SIGNAL), "Signal up to which nothing presses; below `full`.")
        .required()
        .live(),
    Key::new("full", Kind::Float(FULL_SIGNAL), "Signal from which the pressure is full.")
        .default("1.0")
        .live(),
    Key::new(
        "recoveryRate",
        Kind::Float(RATE),
        "Share of the full pressure given back per second once the signal falls; it rises at once.",
    )
    .unit("1/s")
    .default("0.1")
    .live(),
    Key::new(
        "restCeiling",
        Kind::Float(ABOVE_ZERO),
        "Ceiling of every band without pressure, `minCeiling` to `maxCeiling`; below `maxCeiling` the top band rises under pressure.",
    )
    .unit("saturation")
    .default("`maxCeiling`, 1.0 for a list")
    .live(),
    Key::new(
        "restCeilings",
        Kind::ByPriority(UNIT),
        "In place of `restCeiling`: ceiling of each priority without pressure; must not rise as the priority falls; others as with `ceilings`.",
    )
    .unit("saturation")
    .live(),
];
