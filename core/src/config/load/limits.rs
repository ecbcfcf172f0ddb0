//! How much may wait, in both spellings. Ours: 0 refuses, absent is no limit, and so is `unlimited`. The seeds' spelling
//! keeps its zeros: no limit of the engine, the default of a band.

use crate::types::limits::Limits;

use super::fault::Faults;
use super::keys::{Form, Key, Kind};
use super::node::At;
use super::read::{Bound, View};

/// Most any limit may be.
const MOST: i64 = 1 << 50;
const OURS: Kind = Kind::Int { min: 0, max: MOST, form: Form::QuantityOrUnlimited };
const SEEDS: Kind = Kind::Int { min: 0, max: MOST, form: Form::Quantity };

const fn ours(name: &'static str, unit: &'static str, about: &'static str) -> Key {
    Key::new(name, OURS, about).unit(unit).default("unlimited").live()
}

/// Of a band, and of a pool for all its bands.
pub(crate) const REQUESTS: Key =
    ours("maxRequests", "requests", "Most requests waiting here; 0: what cannot run is refused.");
pub(crate) const BYTES: Key = ours("maxBytes", "bytes", "Most bytes waiting here.");
pub(crate) const TOKENS: Key = ours("maxTokens", "tokens", "Most estimated tokens waiting here.");

/// Of the engine, whose `maxRequests` is the memory of a shard.
pub(crate) const ENGINE_REQUESTS: Key =
    ours("maxWaiting", "requests", "Most requests waiting in all pools together.");
pub(crate) const ENGINE_BYTES: Key =
    ours("maxBytes", "bytes", "Most bytes waiting in all pools together.");
pub(crate) const ENGINE_TOKENS: Key =
    ours("maxTokens", "tokens", "Most estimated tokens waiting in all pools together.");

/// Of the seeds' engine.
pub(crate) const SEED_REQUESTS: Key =
    Key::new("maxRequests", SEEDS, "Most requests waiting in all pools together; 0: no limit.")
        .unit("requests")
        .default("0")
        .live();
pub(crate) const SEED_BYTES: Key =
    Key::new("maxBytes", SEEDS, "Most bytes waiting in all pools together; 0: no limit.")
        .unit("bytes")
        .default("0")
        .live();

/// Of the seeds' bands.
pub(crate) const SEED_BAND_REQUESTS: Key =
    Key::new("maxRequests", SEEDS, "Most requests waiting in the band; 0: the default.")
        .unit("requests")
        .default("5000")
        .live();
pub(crate) const SEED_BAND_BYTES: Key =
    Key::new("maxBytes", SEEDS, "Most bytes waiting in the band; 0: the default.")
        .unit("bytes")
        .default("1000000000")
        .live();

/// One limit, and where it stands.
#[derive(Clone, Debug)]
struct Stated {
    at_most: Option<u64>,
    path: String,
    at: At,
}

fn stated(view: &View<'_>, key: &str) -> Option<Stated> {
    let at_most = view.bound(key)?.limit();
    Some(Stated { at_most, path: view.path_of(key), at: view.at_of(key).clone() })
}

/// What a band says.
#[derive(Clone, Debug, Default)]
pub(crate) struct BandLimits {
    requests: Option<Stated>,
    bytes: Option<Stated>,
    tokens: Option<Stated>,
    /// How much of it one tenant may take.
    pub(crate) share: Option<f64>,
    /// Listed under the seeds' spelling: what is not said has the default there.
    is_seeds: bool,
}

impl BandLimits {
    /// Reads the keys of one band.
    pub(crate) fn read(band: &View<'_>, ours: bool) -> Self {
        // In the seeds' spelling 0 says nothing.
        let of = |key| stated(band, key).filter(|it| ours || it.at_most != Some(0));
        Self {
            requests: of("maxRequests"),
            bytes: of("maxBytes"),
            tokens: if ours { of("maxTokens") } else { None },
            share: if ours { band.f64("tenantQueueShare") } else { None },
            is_seeds: !ours,
        }
    }

    /// Adds what the seeds' spelling says of the same band; where both speak they must agree.
    pub(crate) fn merge(&mut self, seeds: Self, faults: &mut Faults) {
        agree(&mut self.requests, seeds.requests, faults);
        agree(&mut self.bytes, seeds.bytes, faults);
        self.is_seeds |= seeds.is_seeds;
    }

    /// The limits of the band.
    pub(crate) fn settle(&self) -> Limits {
        let of = |stated: &Option<Stated>, default: u64| match stated {
            Some(it) => it.at_most,
            None => self.is_seeds.then_some(default),
        };
        Limits {
            requests: of(&self.requests, Limits::SEED_REQUESTS),
            bytes: of(&self.bytes, Limits::SEED_BYTES),
            tokens: self.tokens.as_ref().and_then(|it| it.at_most),
        }
    }
}

/// Those of a pool.
pub(crate) fn of_pool(pool: &View<'_>) -> Limits {
    let of = |key| pool.bound(key).and_then(Bound::limit);
    Limits { requests: of("maxRequests"), bytes: of("maxBytes"), tokens: of("maxTokens") }
}

/// Those of the engine, in either spelling.
pub(crate) fn of_engine(engine: &View<'_>, flow: &View<'_>, faults: &mut Faults) -> Limits {
    let both = |ours: &str, seeds: &str, faults: &mut Faults| {
        let mut known = stated(engine, ours);
        let seeds = stated(flow, seeds)
            .map(|it| Stated { at_most: it.at_most.filter(|&most| most != 0), ..it });
        agree(&mut known, seeds, faults);
        known.and_then(|it| it.at_most)
    };
    Limits {
        requests: both("maxWaiting", "maxRequests", faults),
        bytes: both("maxBytes", "maxBytes", faults),
        tokens: engine.bound("maxTokens").and_then(Bound::limit),
    }
}

fn agree(known: &mut Option<Stated>, other: Option<Stated>, faults: &mut Faults) {
    match (known.as_ref(), other) {
        (Some(known), Some(other)) if known.at_most != other.at_most => {
            let message = format!("differs from {}: keep one of them", known.path);
            faults.add(&other.path, &other.at, message);
        }
        (None, other) => *known = other,
        _ => {}
    }
}
