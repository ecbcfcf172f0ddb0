//! How long requests may wait: engine, band, and while no backend exists, in both spellings.

use core::time::Duration;

use super::fault::Faults;
use super::keys::{Key, Kind};
use super::read::{Bound, View};

const LIMIT: Kind = Kind::Duration { unlimited: true };
const PLAIN: Kind = Kind::Duration { unlimited: false };

/// `engine.admissionTimeout`.
pub(crate) const ADMISSION: Key = Key::new(
    "admissionTimeout",
    LIMIT,
    "Longest wait of a request that names no deadline, in a band without a `ttl`; `0s`: none waits.",
)
.unit("time")
.default("that of `flowControl.defaultRequestTTL`, else 60s")
.live();

/// `ttl` of a band.
pub(crate) const TTL: Key = Key::new(
    "ttl",
    LIMIT,
    "Longest wait of its requests that name no deadline; a client's hint only shortens it. `0s`: none waits.",
)
.unit("time")
.default("`engine.admissionTimeout`")
.live();

/// `noBackendTtl` of a pool.
pub(crate) const NO_BACKEND: Key = Key::new(
    "noBackendTtl",
    LIMIT,
    "How long a request may wait while no backend exists, counted anew whenever backends go or come; 1ms at least.",
)
.unit("time")
.default("that of `flowControl`, else that time counts like any other");

/// `flowControl.defaultRequestTTL`.
pub(crate) const SEEDS_DEFAULT: Key =
    Key::new("defaultRequestTTL", PLAIN, "`engine.admissionTimeout`; here `0s` means unlimited.")
        .unit("time")
        .default("60s")
        .live();

/// `flowControl.noEndpointRequestTTL`.
pub(crate) const SEEDS_NO_ENDPOINT: Key = Key::new(
    "noEndpointRequestTTL",
    PLAIN,
    "`noBackendTtl` of every pool that has none; here `0s` means unlimited.",
)
.unit("time")
.default("`defaultRequestTTL` if that is given");

/// The engine's longest wait; absent: for ever.
pub(crate) fn admission(
    root: &View<'_>,
    default: Option<Duration>,
    faults: &mut Faults,
) -> Option<Duration> {
    let (engine, flow) = (root.object("engine"), root.object("flowControl"));
    let ours = engine.duration("admissionTimeout").map(Bound::limit);
    let seeds = seeds(&flow, "defaultRequestTTL").map(|ttl| (ttl != Duration::MAX).then_some(ttl));
    if let (Some(ours), Some(seeds)) = (ours, seeds)
        && ours != seeds
    {
        let message = format!(
            "{} differs from engine.admissionTimeout {}: they are one key, keep one of them",
            shown(seeds),
            shown(ours)
        );
        let key = "defaultRequestTTL";
        faults.add(&flow.path_of(key), flow.at_of(key), message);
    }
    ours.or(seeds).unwrap_or(default)
}

fn shown(wait: Option<Duration>) -> String {
    wait.map_or_else(|| String::from("unlimited"), |wait| format!("{wait:?}"))
}

/// The budget of every pool for the time without backends, where the seeds' spelling states one.
pub(crate) fn no_endpoint(flow: &View<'_>) -> Option<Duration> {
    seeds(flow, "noEndpointRequestTTL").or_else(|| seeds(flow, "defaultRequestTTL"))
}

/// The same of a pool.
pub(crate) fn no_backend(pool: &View<'_>, shared: Option<Duration>) -> Option<Duration> {
    stated(pool, "noBackendTtl").or(shared)
}

/// The time to live of a band.
pub(crate) fn of_band(band: &View<'_>) -> Option<Duration> {
    stated(band, "ttl")
}

/// A time in our spelling; unlimited is `Duration::MAX`.
fn stated(view: &View<'_>, key: &str) -> Option<Duration> {
    view.duration(key).map(|time| time.limit().unwrap_or(Duration::MAX))
}

/// A time in the seeds' spelling, whose zero is unlimited.
fn seeds(flow: &View<'_>, key: &str) -> Option<Duration> {
    let time = flow.duration(key)?.limit()?;
    Some(if time.is_zero() { Duration::MAX } else { time })
}
