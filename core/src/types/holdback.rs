//! Where the ceilings of the bands come from, as the configuration says it.

use alloc::string::String;
use alloc::vec::Vec;

use super::custom::CustomUsageLimit;

/// The scale a curve of ceilings is spread over.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum HoldbackDomain {
    /// Evenly by position.
    #[default]
    Rank,
    /// By priority value.
    Value,
}

/// How ceilings fall from the top band to the lowest.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Shape {
    /// A straight line.
    #[default]
    Linear,
    /// An S: bands near the top keep most of their ceiling, those near the bottom lose most of it.
    Sigmoid {
        /// How sharp the S is: above 0, at most [`MAX_STEEPNESS`](Self::MAX_STEEPNESS).
        steepness: f64,
        /// Where on the domain, 0 (lowest band) to 1 (top band), its middle lies.
        midpoint: f64,
    },
}

impl Shape {
    /// The steepest sigmoid: `e` to that power is still a number.
    pub const MAX_STEEPNESS: f64 = 700.0;
}

/// Which bands a curve is spread over.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ActiveBands {
    /// All the pool has.
    #[default]
    Provisioned,
    /// Those with a waiting or running request, read anew for every decision: a lone busy band has the top's
    /// ceiling whatever else is provisioned. An idle band has the ceiling it would have if it became busy now.
    Busy,
}

/// Ceilings on a curve: `max` at the top, `min` at the bottom, `max` for a lone band.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Curve {
    /// Line or S.
    pub shape: Shape,
    /// Scale the curve is spread over.
    pub domain: HoldbackDomain,
    /// Ceiling of the lowest band, 0 <= min < max.
    pub min: f64,
    /// Ceiling of the top band, at most 1.
    pub max: f64,
    /// Bands it is spread over.
    pub active: ActiveBands,
}

impl Curve {
    /// A straight line over the provisioned bands.
    pub const fn linear(domain: HoldbackDomain, min: f64, max: f64) -> Self {
        Self { shape: Shape::Linear, domain, min, max, active: ActiveBands::Provisioned }
    }
}

/// What presses on the ceilings of an adaptive holdback.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Signal {
    /// The pool's saturation, as its gates see it.
    #[default]
    Saturation,
    /// Requests waiting over the most that may wait.
    QueueDepth,
    /// What the detector of this name reads.
    Detector(String),
}

/// Ceilings under full pressure.
#[derive(Clone, Debug, PartialEq)]
pub enum Pressed {
    /// On a curve.
    Curve(Curve),
    /// Listed, as [`Holdback::Explicit`].
    Explicit {
        /// Ceiling of each listed priority.
        ceilings: Vec<(i32, f64)>,
        /// Ceiling of a priority that is not listed.
        default: Option<f64>,
    },
}

/// Ceilings without pressure.
#[derive(Clone, Debug, PartialEq)]
pub enum Rest {
    /// The same for every band, 0 < x <= 1.
    All(f64),
    /// Listed per priority, never rising as priority falls; others as with [`Holdback::Explicit`].
    Each(Vec<(i32, f64)>),
}

/// Ceilings that follow a signal: pressed down at once as it rises, given back slowly as it falls.
#[derive(Clone, Debug, PartialEq)]
pub struct Adaptive {
    /// Ceilings under full pressure.
    pub pressed: Pressed,
    /// Ceilings without pressure.
    pub rest: Rest,
    /// What presses.
    pub signal: Signal,
    /// Up to here there is no pressure, 0 <= target < full.
    pub target: f64,
    /// From here on the pressure is full, at most [`MAX_FULL`](Self::MAX_FULL).
    pub full: f64,
    /// Share of the full pressure that is given back per second,
    /// [`MIN_RATE`](Self::MIN_RATE) to [`MAX_RATE`](Self::MAX_RATE).
    pub recovery_rate: f64,
}

impl Adaptive {
    /// The highest signal that may mean full pressure.
    pub const MAX_FULL: f64 = 100.0;
    /// Slowest recovery: 1,000 seconds from full pressure to none.
    pub const MIN_RATE: f64 = 0.001;
    /// Fastest recovery: a millisecond.
    pub const MAX_RATE: f64 = 1_000.0;
}

/// Where the ceilings of the bands come from. A ceiling is a saturation in 0..=1.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Holdback {
    /// Every ceiling is 1.0.
    #[default]
    None,
    /// The same ceiling for every band, 0 < threshold <= 1.
    Static {
        /// That ceiling.
        threshold: f64,
    },
    /// A curve from the top band to the lowest.
    Curve(Curve),
    /// Listed per priority; others take the default, else the nearest listed at or below, else the lowest.
    Explicit {
        /// Ceiling of each listed priority.
        ceilings: Vec<(i32, f64)>,
        /// Ceiling of a priority that is not listed.
        default: Option<f64>,
    },
    /// Ceilings that follow a signal.
    Adaptive(Adaptive),
    /// Lower bands open for one decision in several, the fewer the fuller the pool is; the top band is never
    /// held back.
    SoftReflective,
    /// The host's own.
    Custom(CustomUsageLimit),
}

impl Holdback {
    /// Why the soft-reflective policy and the weighted order are refused together, with both names.
    pub const REFLECTIVE_BESIDE_WFQ: &'static str = "soft-reflective-ceiling-policy beside \
        cross-band-fairness-policy: both share the pool among the bands, and the decisions one opens fall into the \
        rounds of the other; keep one of them";

    /// Whether it has to know which bands have running requests.
    pub fn looks_at_busy_bands(&self) -> bool {
        matches!(self, Self::Curve(curve) if curve.active == ActiveBands::Busy)
    }

    /// The priorities it lists: a pool provisions them.
    pub fn named(&self) -> impl Iterator<Item = i32> {
        type Listed<'a> = &'a [(i32, f64)];
        let (first, second): (Listed<'_>, Listed<'_>) = match self {
            Self::Explicit { ceilings, .. } => (ceilings, &[]),
            Self::Adaptive(Adaptive { pressed, rest, .. }) => (
                if let Pressed::Explicit { ceilings, .. } = pressed { ceilings } else { &[] },
                if let Rest::Each(rest) = rest { rest } else { &[] },
            ),
            _ => (&[], &[]),
        };
        first.iter().chain(second).map(|(priority, _)| *priority)
    }
}
