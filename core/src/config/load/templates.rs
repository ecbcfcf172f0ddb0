//! What becomes of priorities that no list names, in both spellings.

use core::time::Duration;

use crate::types::policy::Fairness;
use crate::types::settings::PoolSettings;
use crate::types::template::{BandTemplate, Templates, UnknownPriority};

use super::fault::Faults;
use super::flows::{self, Flows};
use super::keys::{Key, Kind};
use super::plugins::Registry;
use super::read::{Bound, View};

/// `unknownPriority` of a pool.
pub(crate) const UNKNOWN: Key = Key::new(
    "unknownPriority",
    Kind::Choice { now: &["error", "template"], later: &[] },
    "A priority that is no band: `error` refuses it as `unknown_band`; `template` makes a band of it, while `maxBands` has room (16 unless given).",
)
.default("error")
.live();

/// `bandIdle` of a pool.
pub(crate) const IDLE: Key = Key::new(
    "bandIdle",
    Kind::Duration { unlimited: true },
    "A band made of a template, without waiters, that had no request for so long may be removed.",
)
.unit("time")
.default("10m")
.live();

/// `bandTemplate` of a pool.
pub(crate) const POSITIVE: Key =
    Key::new("bandTemplate", Kind::Object(OURS), "What a band of priority 0 and up is made like.");

/// `negativeBandTemplate` of a pool.
pub(crate) const NEGATIVE: Key = Key::new(
    "negativeBandTemplate",
    Kind::Object(OURS),
    "What a band below 0 is made like; absent: as `bandTemplate`.",
);

static OURS: &[Key] = &[flows::FAIRNESS_OF_BAND.live(), flows::ORDER_OF_BAND.live()];

/// `flowControl.defaultPriorityBand`.
pub(crate) const SEEDS_POSITIVE: Key = Key::new(
    "defaultPriorityBand",
    Kind::Object(SEEDS),
    "`bandTemplate` of every pool that has none.",
);

/// `flowControl.defaultNegativePriorityBand`.
pub(crate) const SEEDS_NEGATIVE: Key = Key::new(
    "defaultNegativePriorityBand",
    Kind::Object(SEEDS),
    "`negativeBandTemplate` of every pool that has neither template.",
);

static SEEDS: &[Key] = &[
    Key::new("priority", super::keys::PRIORITY, "Not used."),
    Key::later("maxBytes"),
    Key::later("maxRequests"),
    flows::FAIRNESS_REF.live(),
    flows::ORDERING_REF.live(),
];

/// The two templates as far as they are stated.
#[derive(Clone, Debug, Default)]
pub(crate) struct Stated {
    positive: Option<Flows>,
    negative: Option<Flows>,
}

/// Those of `flowControl`.
pub(crate) fn shared(flow: &View<'_>, registry: &Registry, faults: &mut Faults) -> Stated {
    let names = ["defaultPriorityBand", "defaultNegativePriorityBand"];
    stated(flow, names, flows::SEEDS, registry, faults)
}

fn stated(
    view: &View<'_>,
    [positive, negative]: [&str; 2],
    keys: flows::Keys,
    registry: &Registry,
    faults: &mut Faults,
) -> Stated {
    let mut read = |name: &str| {
        let is_there = view.has(name);
        is_there.then(|| Flows::read(&view.object(name), keys, registry, faults))
    };
    Stated { positive: read(positive), negative: read(negative) }
}

impl Stated {
    /// The templates of a pool whose bands have this fairness unless they say otherwise.
    pub(crate) fn settle(&self, fairness: &Fairness) -> Templates {
        let template = |flows: &Flows| {
            let (fairness, order) = flows.settle(fairness);
            BandTemplate { fairness, order }
        };
        Templates {
            positive: template(self.positive.as_ref().unwrap_or(&Flows::default())),
            negative: self.negative.as_ref().map(template),
            ..Templates::NONE
        }
    }
}

/// Those of a pool; `shared` where it states none.
pub(crate) fn of_pool(
    view: &View<'_>,
    pool: &mut PoolSettings,
    shared: &Stated,
    fairness: &Fairness,
    registry: &Registry,
    faults: &mut Faults,
) {
    let own = stated(view, ["bandTemplate", "negativeBandTemplate"], flows::OURS, registry, faults);
    let is_silent = own.positive.is_none() && own.negative.is_none();
    pool.templates = if is_silent { shared } else { &own }.settle(fairness);
    pool.templates.idle = view.duration("bandIdle").map_or(Some(Templates::IDLE), Bound::limit);
    if pool.templates.idle == Some(Duration::ZERO) {
        let message =
            "0s would remove every band between two requests: use a longer time, or `unlimited`";
        faults.add(&view.path_of("bandIdle"), view.at_of("bandIdle"), message);
    }
    if view.text("unknownPriority").as_deref() == Some("template") {
        pool.templates.unknown = UnknownPriority::Template;
    }
}
