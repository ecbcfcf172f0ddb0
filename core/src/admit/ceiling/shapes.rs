//! Shapes of ceilings: a curve over the bands, or a list.
//!
//! A band's place on a curve is `x`, 1 at the top and 0 at the bottom: by rank `1 - i / (N - 1)`, by value
//! `(p - bottom) / (top - bottom)`. A line is `min + x (max - min)`; a sigmoid puts `y(x)` for `x`, where
//! `y = (s(x) - s(0)) / (s(1) - s(0))` and `s(x) = 1 / (1 + e^(-k (x - x0)))`. A lone band has `max`.
//!
//! With `activeBands: busy` the set is the busy bands, for an idle band together with itself. Such ceilings never
//! rise as priority falls either: by rank an idle band that `k` of `N` busy ones are above has `1 - k / N`, which
//! lies between its busy neighbours' `1 - (k - 1) / (N - 1)` and `1 - k / (N - 1)`.
#![forbid(unsafe_code)]

use super::Ceilings;
use crate::types::policy::{ActiveBands, Curve, HoldbackDomain, Shape};
use crate::types::{BandMask, first_bands};

/// Below this height a sigmoid is a line that rounding would tear.
const FLAT: f64 = 1e-12;

/// Where a band stands among those a curve is spread over.
#[derive(Clone, Copy, Debug)]
struct Place {
    /// Position from the top.
    index: u32,
    /// Bands the curve is spread over, 1 and up.
    count: u32,
    priority: i32,
    top: i32,
    bottom: i32,
}

/// Appends the ceilings of `bands` (most urgent first) on a curve; `busy` is looked at only by
/// [`ActiveBands::Busy`].
pub fn spread(curve: &Curve, bands: &[i32], busy: BandMask, out: &mut Ceilings) {
    let provisioned = first_bands(bands.len());
    out.extend((0..bands.len()).map(|i| {
        let set = match curve.active {
            ActiveBands::Provisioned => provisioned,
            // As if an idle band became busy now: the fast path asks for its ceiling too.
            ActiveBands::Busy => (busy & provisioned) | 1 << i,
        };
        at(curve, place(bands, set, i))
    }));
}

/// The place of band `i` in a set it belongs to.
fn place(bands: &[i32], set: BandMask, i: usize) -> Place {
    let top = set.trailing_zeros() as usize;
    let bottom = 63 - set.leading_zeros() as usize;
    Place {
        index: (set & first_bands(i)).count_ones(),
        count: set.count_ones(),
        priority: bands[i],
        top: bands[top],
        bottom: bands[bottom],
    }
}

/// The ceiling at a place. The ends are given, not computed: rounding must not move them.
#[allow(clippy::float_arithmetic, reason = "a ceiling is a saturation")]
fn at(curve: &Curve, place: Place) -> f64 {
    let Curve { min, max, .. } = *curve;
    let (is_top, is_bottom) = match curve.domain {
        HoldbackDomain::Rank => (place.index == 0, place.index + 1 == place.count),
        HoldbackDomain::Value => (place.priority == place.top, place.priority == place.bottom),
    };
    if is_top {
        return max;
    }
    if is_bottom {
        return min;
    }
    match curve.shape {
        Shape::Linear => line(curve, place),
        Shape::Sigmoid { steepness, midpoint } => {
            let s = |x: f64| 1.0 / (1.0 + (-steepness * (x - midpoint)).exp());
            let (low, high) = (s(0.0), s(1.0));
            if (high - low).abs() < FLAT {
                return line(curve, place);
            }
            min + (s(share(curve.domain, place)) - low) / (high - low) * (max - min)
        }
    }
}

#[allow(clippy::float_arithmetic, reason = "a ceiling is a saturation")]
fn line(curve: &Curve, place: Place) -> f64 {
    let Curve { min, max, .. } = *curve;
    match curve.domain {
        // The order of these steps is the one of the tables, to the last bit.
        HoldbackDomain::Rank => {
            max - f64::from(place.index) * (max - min) / f64::from(place.count - 1)
        }
        HoldbackDomain::Value => min + share(curve.domain, place) * (max - min),
    }
}

/// `x` of a place that is neither end.
#[allow(clippy::float_arithmetic, reason = "33-bit spans are exact in a double")]
fn share(domain: HoldbackDomain, place: Place) -> f64 {
    match domain {
        HoldbackDomain::Rank => 1.0 - f64::from(place.index) / f64::from(place.count - 1),
        HoldbackDomain::Value => {
            let bottom = f64::from(place.bottom);
            (f64::from(place.priority) - bottom) / (f64::from(place.top) - bottom)
        }
    }
}

/// As listed, else the default, else the nearest listed at or below, else the lowest listed.
pub fn explicit(listed: &[(i32, f64)], default: Option<f64>, priority: i32) -> f64 {
    if let Some((_, ceiling)) = listed.iter().find(|(p, _)| *p == priority) {
        return *ceiling;
    }
    let below = || listed.iter().filter(|(p, _)| *p <= priority).max_by_key(|(p, _)| *p);
    let lowest = || listed.iter().min_by_key(|(p, _)| *p);
    default.unwrap_or_else(|| below().or_else(lowest).map_or(1.0, |(_, ceiling)| *ceiling))
}
