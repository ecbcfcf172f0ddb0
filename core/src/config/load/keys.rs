//! The key table: every key there is, once. Unknown keys, suggestions, ranges, variables, the JSON Schema and
//! `CONFIG.md` all come from here.

use crate::types::settings::PoolSettings;

use super::plugins::Role;
use super::{flows, templates};

mod ceilings;
mod ops;
mod saturation;

pub(crate) use ceilings::{HOLDBACK, STATIC_LIMIT};
pub(crate) use saturation::{CONCURRENCY, DETECTOR, UTILIZATION};

/// How an integer may be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// Digits only.
    Plain,
    /// Also with a suffix: `5k`, `1Ki`.
    Quantity,
    /// Also the word `unlimited`.
    Limit,
}

/// An interval of numbers; an open end does not belong to it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Interval {
    pub(crate) min: f64,
    pub(crate) max: f64,
    pub(crate) min_open: bool,
    pub(crate) max_open: bool,
}

/// What may stand under a key.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Kind {
    Int {
        min: i64,
        max: i64,
        form: Form,
    },
    Float(Interval),
    /// `250ms`, `30s`, `5m`, `1h`, and sums of them; with `unlimited` that word too.
    Duration {
        unlimited: bool,
    },
    /// A text of 1 to 256 characters.
    Text,
    /// `true` or `false`.
    Flag,
    /// One word of a list; `later` words are known but not built yet.
    Choice {
        now: &'static [&'static str],
        later: &'static [&'static str],
    },
    /// A list of texts.
    Texts,
    /// Anything at all; not read.
    Anything,
    Object(&'static [Key]),
    List(&'static [Key]),
    /// Name -> object.
    Named(&'static [Key]),
    /// Priority -> number.
    ByPriority(Interval),
    /// A plugin's name, a plugin type, or `{type, parameters}`.
    Policy(Role),
    /// The name of a plugin or plugin type of this role.
    Reference(Role),
    /// A plugin type.
    PluginType,
    /// The object whose keys the `type` beside it decides.
    Parameters,
}

/// One key of an object.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Key {
    pub(crate) name: &'static str,
    pub(crate) kind: Kind,
    pub(crate) unit: &'static str,
    /// What holds when the key is absent; empty: nothing to say.
    pub(crate) default: &'static str,
    pub(crate) required: bool,
    /// May change in a running engine.
    pub(crate) live: bool,
    /// Part of the design, not built yet.
    pub(crate) later: bool,
    pub(crate) about: &'static str,
}

impl Key {
    pub(crate) const fn new(name: &'static str, kind: Kind, about: &'static str) -> Self {
        let (unit, default) = ("", "");
        Self { name, kind, unit, default, required: false, live: false, later: false, about }
    }

    pub(crate) const fn later(name: &'static str) -> Self {
        let mut key = Self::new(name, Kind::Anything, "");
        key.later = true;
        key
    }

    pub(crate) const fn unit(mut self, unit: &'static str) -> Self {
        self.unit = unit;
        self
    }

    pub(crate) const fn default(mut self, default: &'static str) -> Self {
        self.default = default;
        self
    }

    const fn required(mut self) -> Self {
        self.required = true;
        self
    }

    pub(crate) const fn live(mut self) -> Self {
        self.live = true;
        self
    }
}

const fn int(min: i64, max: i64, form: Form) -> Kind {
    Kind::Int { min, max, form }
}

const fn choice(now: &'static [&'static str]) -> Kind {
    Kind::Choice { now, later: &[] }
}

/// 0 to 1, both included.
const UNIT: Interval = Interval { min: 0.0, max: 1.0, min_open: false, max_open: false };
/// 0 included to 1 excluded.
const BELOW_ONE: Interval = Interval { min: 0.0, max: 1.0, min_open: false, max_open: true };
/// 0 excluded to 1 included.
const ABOVE_ZERO: Interval = Interval { min: 0.0, max: 1.0, min_open: true, max_open: false };

const MAX_SLOTS: i64 = PoolSettings::MAX_SLOTS as i64;
const MAX_RUNNING: i64 = 1 << 30;
pub(crate) const PRIORITY: Kind = int(i32::MIN as i64, i32::MAX as i64, Form::Plain);
const WEIGHT: Kind = int(1, 1_000_000, Form::Plain);
const MAX_IN_FLIGHT: Kind = int(0, MAX_SLOTS, Form::Limit);

/// The document.
pub(crate) static ROOT: &[Key] = &[
    Key::new("version", int(1, 1, Form::Plain), "Version of this schema.").default("1"),
    Key::new("apiVersion", Kind::Text, "Envelope of an `EndpointPickerConfig`; not used."),
    Key::new("kind", choice(&["EndpointPickerConfig"]), "Envelope; not used."),
    Key::new("metadata", Kind::Anything, "Envelope; not used."),
    Key::new(
        "featureGates",
        Kind::Texts,
        "Envelope. Flow control is always on here; a list without `flowControl` gives a warning.",
    ),
    Key::new("engine", Kind::Object(ENGINE), "The engine as a whole."),
    Key::new("bands", Kind::List(BAND), "Bands of every pool that lists none of its own."),
    Key::new("pools", Kind::Named(POOL), "The pools by name; absent or empty: one pool `default`."),
    Key::new("groups", Kind::Named(GROUP), "Groups of tenants by name."),
    Key::new("tenants", Kind::Named(TENANT), "Tenants by name."),
    Key::new("keys", Kind::Named(KEY), "Keys of tenants by name."),
    Key::new(
        "plugins",
        Kind::List(PLUGIN),
        "Policies that `flowControl` and pools refer to by name.",
    ),
    Key::new(
        "flowControl",
        Kind::Object(FLOW_CONTROL),
        "Policies and bands of every pool that does not say otherwise.",
    ),
    Key::later("replicas"),
    Key::later("routing"),
    Key::later("metrics"),
    Key::new(
        "saturationDetector",
        Kind::Object(DETECTOR),
        "Older place of `flowControl.saturationDetector`; gives a warning.",
    ),
];

static ENGINE: &[Key] = &[
    Key::new("driver", choice(&["inline", "host", "threads"]), "Who runs the turns.")
        .default("inline"),
    Key::new("shards", int(1, 64, Form::Plain), "Cores the pools are spread over.")
        .unit("cores")
        .default("1"),
    Key::new(
        "ceiling",
        int(1, MAX_RUNNING, Form::Limit),
        "Most requests running in all pools together.",
    )
    .unit("requests")
    .default("unlimited"),
    Key::new(
        "defaultPoolSlots",
        int(1, MAX_SLOTS, Form::Plain),
        "Slots of a pool that names none.",
    )
    .unit("slots")
    .default("32"),
    Key::new(
        "admissionTimeout",
        Kind::Duration { unlimited: true },
        "Longest wait of a request that names no deadline; `0s`: none waits.",
    )
    .unit("time")
    .default("60s")
    .live(),
    Key::new(
        "maxRequests",
        int(1, 1 << 22, Form::Quantity),
        "Most requests waiting in one shard; its memory is taken at start.",
    )
    .unit("requests")
    .default("65536"),
    ops::ENGINE_MODE,
];

static BAND: &[Key] = &[
    Key::new("priority", PRIORITY, "Higher is more urgent; unique in its list.").required().live(),
    Key::new("name", Kind::Text, "Name in reports; unique in its list.").live(),
    Key::new(
        "ceiling",
        Kind::Float(UNIT),
        "Saturation from which the band is gated; must not rise as the priority falls.",
    )
    .unit("saturation")
    .default("that of the next band above, 1.0 at the top")
    .live(),
    Key::later("ttl"),
    Key::later("maxRequests"),
    Key::later("maxBytes"),
    Key::later("maxTokens"),
    flows::FAIRNESS_OF_BAND,
    flows::ORDER_OF_BAND,
];

static POOL: &[Key] = &[
    Key::new("slots", int(1, MAX_SLOTS, Form::Plain), "Requests that may run at once.")
        .unit("slots")
        .default("`engine.defaultPoolSlots`")
        .live(),
    Key::new("bands", Kind::List(BAND), "Bands of this pool, in place of the engine-wide ones."),
    Key::new("bandSelection", Kind::Policy(Role::BandSelection), "Order over the bands.")
        .default("that of `flowControl`, else strict")
        .live(),
    Key::new("holdback", Kind::Policy(Role::UsageLimit), "Ceilings of the bands.")
        .default("that of `flowControl`, else none")
        .live(),
    Key::new(
        "maxCost",
        int(1, PoolSettings::MAX_COST as i64, Form::Quantity),
        "Most cost one request may have.",
    )
    .unit("tokens")
    .default("16777216"),
    Key::new(
        "maxFlows",
        int(1, PoolSettings::MAX_FLOWS as i64, Form::Quantity),
        "Flows (group, tenant, key) this pool may intern.",
    )
    .unit("flows")
    .default("262144"),
    flows::FLOW_IDLE,
    flows::FAIRNESS_OF_POOL,
    ops::MODE,
    ops::HOLDERS,
    ops::MAX_HOLD,
    ops::MAX_BANDS_KEY,
    templates::UNKNOWN,
    templates::POSITIVE,
    templates::NEGATIVE,
    templates::IDLE,
    Key::new(
        "saturation",
        Kind::Policy(Role::Saturation),
        "Where the saturation comes from: `slots` (running over slots), `gauge` (the host sets it), or a detector over the backends the host reports.",
    )
    .default("that of `flowControl`, else `slots`")
    .live(),
    Key::later("slotIdentity"),
    Key::later("sessionAffinity"),
    Key::later("routing"),
];

static GROUP: &[Key] =
    &[Key::new("weight", WEIGHT, "Weight in fair share; no effect yet.").default("100").live()];

/// Of a key and of a tenant alike.
const IN_FLIGHT: Key = Key::new(
    "maxInFlight",
    MAX_IN_FLIGHT,
    "Most requests running at once in each pool; 0: refuse.",
)
.unit("requests")
.default("unlimited")
.live();

static TENANT: &[Key] = &[
    Key::new("group", Kind::Text, "A group listed under `groups`.").default("`default`"),
    Key::new("weight", WEIGHT, "Weight within its group; no effect yet.").default("100").live(),
    IN_FLIGHT,
    Key::later("tokensPerMinute"),
    Key::later("termTokens"),
];

static KEY: &[Key] = &[
    Key::new("tenant", Kind::Text, "A tenant listed under `tenants`.").required(),
    Key::new("weight", WEIGHT, "Weight within its tenant; no effect yet.").default("100").live(),
    IN_FLIGHT,
    Key::later("tokensPerMinute"),
    Key::later("termTokens"),
];

static PLUGIN: &[Key] = &[
    Key::new("type", Kind::PluginType, "Which policy.").required(),
    Key::new("name", Kind::Text, "Name to refer to it by; unique.").default("its type"),
    Key::new("parameters", Kind::Parameters, "The keys of the type, listed below."),
];

/// What stands under a policy's key when it is not a name.
pub(crate) static POLICY: &[Key] = &[
    Key::new("type", Kind::PluginType, "Which policy.").required(),
    Key::new("parameters", Kind::Parameters, "The keys of the type, listed below."),
];

static FLOW_CONTROL: &[Key] = &[
    Key::new(
        "bandSelectionPolicyPluginRef",
        Kind::Reference(Role::BandSelection),
        "Order over the bands.",
    )
    .default("`strict-band-selection-policy`")
    .live(),
    Key::new(
        "dispatchPolicyPluginRef",
        Kind::Reference(Role::BandSelection),
        "Older name of `bandSelectionPolicyPluginRef`.",
    )
    .live(),
    Key::new(
        "usageLimitPolicyPluginRef",
        Kind::Reference(Role::UsageLimit),
        "Ceilings of the bands.",
    )
    .default("none: every ceiling is 1.0")
    .live(),
    Key::new("priorityBands", Kind::List(PRIORITY_BAND), "Bands to provision."),
    Key::later("maxBytes"),
    Key::later("maxRequests"),
    Key::later("defaultRequestTTL"),
    Key::later("noEndpointRequestTTL"),
    templates::SEEDS_POSITIVE,
    templates::SEEDS_NEGATIVE,
    Key::new(
        "saturationDetector",
        Kind::Object(DETECTOR),
        "Where the saturation of every pool comes from that does not say otherwise.",
    ),
    Key::later("enableEviction"),
];

static PRIORITY_BAND: &[Key] = &[
    Key::new("priority", PRIORITY, "Higher is more urgent; unique in its list.").required().live(),
    Key::new("name", Kind::Text, "Name in reports; unique in its list.").live(),
    Key::later("maxBytes"),
    Key::later("maxRequests"),
    flows::FAIRNESS_REF,
    flows::ORDERING_REF,
];

/// Parameters of `cross-band-fairness-policy`.
pub(crate) static CROSS_BAND: &[Key] = &[
    Key::new(
        "activationThreshold",
        Kind::Float(BELOW_ONE),
        "Saturation from which the weights rule; below it strict order.",
    )
    .unit("saturation")
    .required()
    .live(),
    Key::new(
        "deactivationThreshold",
        Kind::Float(BELOW_ONE),
        "Saturation below which strict order returns; at most `activationThreshold`.",
    )
    .unit("saturation")
    .default("`activationThreshold`")
    .live(),
    Key::new(
        "stateRetention",
        Kind::Duration { unlimited: false },
        "How long credits and virtual times survive a deactivation; `0s`: not at all.",
    )
    .unit("time")
    .default("5s")
    .live(),
    Key::new("schedule", choice(&["priority-first", "interleaved"]), "Which weighted schedule.")
        .default("priority-first")
        .live(),
    Key::new(
        "distribution",
        choice(&["proportional", "linear", "explicit"]),
        "Where the weights come from.",
    )
    .default("proportional")
    .live(),
    Key::new(
        "ratios",
        Kind::ByPriority(UNIT),
        "`explicit` only: ratio of each priority, summing to 1 within 0.000001; 0: leftovers only.",
    )
    .live(),
    Key::new(
        "defaultRatio",
        Kind::Float(ABOVE_ZERO),
        "`explicit` only: ratio of a band that is not listed.",
    )
    .default("the smallest positive ratio")
    .live(),
    Key::new(
        "anchorPriority",
        PRIORITY,
        "`proportional` only: the priority of weight 1, so that pair ratios stay when bands go.",
    )
    .default("the lowest ever provisioned")
    .live(),
    Key::new(
        "maxFairnessWindow",
        int(1, 1_000_000_000, Form::Plain),
        "`priority-first` only: longest round.",
    )
    .unit("dispatches")
    .default("the sum of the weights")
    .live(),
];
