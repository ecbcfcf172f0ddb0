//! Policies by name: the plugin types there are, the `plugins:` list, and the references into it.

use crate::types::policy::{Adaptive, BandSelection, Fairness, Holdback, Order, Signal};
use crate::types::saturation::SaturationSource;

use super::check::nearest;
use super::fault::Faults;
use super::holdback::{holdback, static_limit};
use super::host::HostType;
use super::keys::{CONCURRENCY, CROSS_BAND, HOLDBACK, Key, STATIC_LIMIT, UTILIZATION};
use super::node::{At, Node, Value};
use super::policies;
use super::read::View;
use super::saturation;
use super::value::{not_yet, quoted};

/// What a policy decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    BandSelection,
    UsageLimit,
    Fairness,
    Ordering,
    Saturation,
}

impl Role {
    pub(crate) const fn noun(self) -> &'static str {
        match self {
            Self::BandSelection => "band selection policy",
            Self::UsageLimit => "usage limit policy",
            Self::Fairness => "fairness policy",
            Self::Ordering => "ordering policy",
            Self::Saturation => "source of saturation",
        }
    }

    const fn article(self) -> &'static str {
        if matches!(self, Self::Ordering) { "an" } else { "a" }
    }
}

/// Whether a type can be used, and then its parameters.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Status {
    Now(&'static [Key]),
    Later,
}

/// A plugin type.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PluginType {
    pub(crate) name: &'static str,
    pub(crate) role: Role,
    pub(crate) status: Status,
}

impl PluginType {
    /// Whether it reads backends: what a signal may name. `slots` and `gauge` are the pool's own saturation.
    fn is_detector(&self) -> bool {
        self.role == Role::Saturation && ![SLOTS, GAUGE].contains(&self.name)
    }

    /// The short word of a fairness or ordering policy: its name without what all of them have.
    fn word(&self) -> Option<&'static str> {
        match self.role {
            Role::Fairness => self.name.strip_suffix("-fairness-policy"),
            Role::Ordering => self.name.strip_suffix("-ordering-policy"),
            _ => None,
        }
    }
}

const fn now(name: &'static str, role: Role) -> PluginType {
    PluginType { name, role, status: Status::Now(&[]) }
}

const fn later(name: &'static str, role: Role) -> PluginType {
    PluginType { name, role, status: Status::Later }
}

const STRICT: &str = "strict-band-selection-policy";
const WFQ: &str = "cross-band-fairness-policy";
const PRIORITY_HOLDBACK: &str = "priority-holdback-policy";
const GLOBAL_STRICT: &str = "global-strict-fairness-policy";
const ROUND_ROBIN: &str = "round-robin-fairness-policy";
const FCFS: &str = "fcfs-ordering-policy";
const EDF: &str = "edf-ordering-policy";
const SLO_DEADLINE: &str = "slo-deadline-ordering-policy";
const SLOTS: &str = "slots";
const GAUGE: &str = "gauge";
const UTILIZATION_DETECTOR: &str = "utilization-detector";
const CONCURRENCY_DETECTOR: &str = "concurrency-detector";
const STATIC: &str = "static-usage-limit-policy";
const SOFT_REFLECTIVE: &str = "soft-reflective-ceiling-policy";

/// Every plugin type there is.
pub(crate) static TYPES: &[PluginType] = &[
    PluginType { name: STRICT, role: Role::BandSelection, status: Status::Now(&[]) },
    PluginType { name: WFQ, role: Role::BandSelection, status: Status::Now(CROSS_BAND) },
    PluginType { name: PRIORITY_HOLDBACK, role: Role::UsageLimit, status: Status::Now(HOLDBACK) },
    PluginType { name: STATIC, role: Role::UsageLimit, status: Status::Now(STATIC_LIMIT) },
    PluginType { name: SOFT_REFLECTIVE, role: Role::UsageLimit, status: Status::Now(&[]) },
    now(GLOBAL_STRICT, Role::Fairness),
    now(ROUND_ROBIN, Role::Fairness),
    later("program-aware-fairness", Role::Fairness),
    now(FCFS, Role::Ordering),
    now(EDF, Role::Ordering),
    now(SLO_DEADLINE, Role::Ordering),
    now(SLOTS, Role::Saturation),
    now(GAUGE, Role::Saturation),
    PluginType {
        name: UTILIZATION_DETECTOR,
        role: Role::Saturation,
        status: Status::Now(UTILIZATION),
    },
    PluginType {
        name: CONCURRENCY_DETECTOR,
        role: Role::Saturation,
        status: Status::Now(CONCURRENCY),
    },
];

pub(crate) fn find(name: &str) -> Option<&'static PluginType> {
    TYPES.iter().find(|t| t.name == name)
}

/// The type of a role by its name or its short word.
fn find_for(role: Role, name: &str) -> Option<&'static PluginType> {
    find(name).or_else(|| TYPES.iter().find(|t| t.role == role && t.word() == Some(name)))
}

/// Whether a type or a short word of ours has this name.
pub(crate) fn is_built_in(name: &str) -> bool {
    TYPES.iter().any(|t| t.name == name || t.word() == Some(name))
}

/// A type of ours or of the host.
#[derive(Clone, Debug)]
enum Kind {
    Ours(&'static PluginType),
    Host(HostType),
}

impl Kind {
    fn of(name: &str, faults: &Faults) -> Option<Self> {
        let host = || faults.types.find(name).cloned().map(Self::Host);
        find(name).map(Self::Ours).or_else(host)
    }

    fn name(&self) -> &str {
        match self {
            Self::Ours(kind) => kind.name,
            Self::Host(kind) => &kind.name,
        }
    }

    fn role(&self) -> Role {
        match self {
            Self::Ours(kind) => kind.role,
            Self::Host(kind) => kind.role,
        }
    }

    /// Whether it reads backends.
    fn is_detector(&self) -> bool {
        match self {
            Self::Ours(kind) => kind.is_detector(),
            Self::Host(kind) => kind.role == Role::Saturation,
        }
    }
}

/// The types that can be used.
pub(crate) fn available() -> impl Iterator<Item = &'static PluginType> {
    TYPES.iter().filter(|t| matches!(t.status, Status::Now(_)))
}

/// Notes a plugin type that does not exist or cannot be used yet.
pub(crate) fn check_type(faults: &mut Faults, path: &str, node: &Node, name: &str) {
    match find(name) {
        None if faults.types.find(name).is_some() => {}
        Some(PluginType { status: Status::Now(_), .. }) => {}
        Some(known) => faults.add(path, &node.at, not_yet(known.name)),
        None => {
            let types = faults.types.clone();
            let names = available().map(|t| t.name).chain(types.all().map(|t| &*t.name));
            let names: Vec<&str> = names.collect();
            let message =
                format!("no plugin type {}; there are {}", quoted(name), names.join(", "));
            faults.suggest(path, &node.at, message, nearest(name, names.iter().copied()));
        }
    }
}

/// A policy as the engine computes with it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Policy {
    Selection(BandSelection),
    Holdback(Holdback),
    Fairness(Fairness),
    Order(Order),
    Saturation(SaturationSource),
}

impl Policy {
    /// Reads the parameters of a type; `None` when they are at fault (which is noted then).
    fn read(kind: &PluginType, parameters: &View<'_>, faults: &mut Faults) -> Option<Self> {
        match kind.name {
            STRICT => Some(Self::Selection(BandSelection::Strict)),
            WFQ => policies::wfq(parameters, faults).map(BandSelection::Wfq).map(Self::Selection),
            PRIORITY_HOLDBACK => holdback(parameters, faults).map(Self::Holdback),
            STATIC => static_limit(parameters).map(Self::Holdback),
            SOFT_REFLECTIVE => Some(Self::Holdback(Holdback::SoftReflective)),
            GLOBAL_STRICT => Some(Self::Fairness(Fairness::GlobalStrict)),
            ROUND_ROBIN => Some(Self::Fairness(Fairness::RoundRobin)),
            FCFS => Some(Self::Order(Order::Fcfs)),
            EDF => Some(Self::Order(Order::Edf)),
            SLO_DEADLINE => Some(Self::Order(Order::SloDeadline)),
            SLOTS => Some(Self::Saturation(SaturationSource::Slots)),
            GAUGE => Some(Self::Saturation(SaturationSource::Gauge)),
            UTILIZATION_DETECTOR => saturation::utilization(parameters, faults)
                .map(SaturationSource::Utilization)
                .map(Self::Saturation),
            CONCURRENCY_DETECTOR => Some(Self::Saturation(SaturationSource::Concurrency(
                saturation::concurrency(parameters, faults),
            ))),
            _ => None,
        }
    }
}

/// One element of `plugins:`.
#[derive(Debug)]
struct Plugin {
    name: String,
    kind: Option<Kind>,
    policy: Option<Policy>,
}

/// The plugins of the document.
#[derive(Debug, Default)]
pub(crate) struct Registry {
    plugins: Vec<Plugin>,
}

impl Registry {
    pub(crate) fn read(root: &View<'_>, faults: &mut Faults) -> Self {
        let mut registry = Self::default();
        for view in root.list("plugins") {
            let kind_name = view.text("type");
            let kind = kind_name.as_deref().and_then(|name| Kind::of(name, faults));
            let policy = kind.as_ref().and_then(|kind| parameters(&view, kind, faults));
            let Some(name) = view.text("name").or(kind_name) else { continue };
            if registry.plugins.iter().any(|p| p.name == name) {
                let at = if view.has("name") { view.at_of("name") } else { view.at_of("type") };
                let message =
                    format!("a plugin named {} exists already: names are unique", quoted(&name));
                faults.add(&view.path_of("name"), at, message);
            } else {
                registry.plugins.push(Plugin { name, kind, policy });
            }
        }
        // A signal may name a detector that is listed further down.
        for view in root.list("plugins") {
            let name = view.text("name").or_else(|| view.text("type"));
            if let Some(plugin) = registry.plugins.iter().find(|p| Some(&p.name) == name.as_ref()) {
                registry.check_signal(plugin.policy.as_ref(), &view, faults);
            }
        }
        registry
    }

    /// Notes a signal of an adaptive holdback that is neither a word nor a detector.
    fn check_signal(&self, policy: Option<&Policy>, view: &View<'_>, faults: &mut Faults) {
        let Some(Policy::Holdback(Holdback::Adaptive(Adaptive {
            signal: Signal::Detector(name),
            ..
        }))) = policy
        else {
            return;
        };
        let listed = self.plugins.iter().filter(|p| p.kind.as_ref().is_some_and(Kind::is_detector));
        let mut names = vec!["saturation", "queueDepth"];
        names.extend(listed.map(|p| p.name.as_str()));
        names.extend(available().filter(|kind| kind.is_detector()).map(|kind| kind.name));
        if names.contains(&name.as_str()) {
            return;
        }
        let adaptive = view.below("parameters", HOLDBACK).object("adaptive");
        let message =
            format!("no signal is named {}; there are {}", quoted(name), names.join(", "));
        let near = nearest(name, names.iter().copied());
        faults.suggest(&adaptive.path_of("signal"), adaptive.at_of("signal"), message, near);
    }

    /// The policy that a reference of the `flowControl:` spelling names.
    pub(crate) fn reference(
        &self,
        view: &View<'_>,
        key: &str,
        faults: &mut Faults,
    ) -> Option<Policy> {
        let (name, role) = (view.text(key)?, view.role(key)?);
        self.resolve(role, &name, &view.path_of(key), view.at_of(key), faults)
    }

    /// The policy under a key: a name, or in our own spelling `{type, parameters}`.
    pub(crate) fn policy(&self, view: &View<'_>, key: &str, faults: &mut Faults) -> Option<Policy> {
        if !matches!(view.node_of(key)?.value, Value::Map(_)) {
            return self.reference(view, key, faults);
        }
        let role = view.role(key)?;
        let inline = view.below(key, super::keys::POLICY);
        let kind = Kind::of(&inline.text("type")?, faults)?;
        if kind.role() != role {
            let (path, at) = (inline.path_of("type"), inline.at_of("type"));
            wrong_role(&path, at, kind.name(), &kind, role, faults);
            return None;
        }
        let policy = parameters(&inline, &kind, faults);
        self.check_signal(policy.as_ref(), &inline, faults);
        policy
    }

    fn resolve(
        &self,
        role: Role,
        name: &str,
        path: &str,
        at: &At,
        faults: &mut Faults,
    ) -> Option<Policy> {
        if let Some(plugin) = self.plugins.iter().find(|p| p.name == name) {
            // A plugin of an unknown type has its fault already.
            let kind = plugin.kind.as_ref()?;
            if kind.role() != role {
                wrong_role(path, at, name, kind, role, faults);
                return None;
            }
            return plugin.policy.clone();
        }
        let ours = find_for(role, name).map(Kind::Ours);
        let Some(kind) = ours.or_else(|| Kind::of(name, faults)) else {
            self.missing(role, name, path, at, faults);
            return None;
        };
        if kind.role() != role {
            wrong_role(path, at, name, &kind, role, faults);
            return None;
        }
        let kind = match kind {
            Kind::Ours(kind) => kind,
            Kind::Host(kind) => return host(&kind, None, (path, at), faults),
        };
        match kind.status {
            Status::Later => faults.add(path, at, not_yet(name)),
            Status::Now(keys) => {
                let policy = without_parameters(kind, keys);
                if policy.is_none() {
                    let message = format!("`{name}` needs parameters: list it under `plugins`");
                    faults.add(path, at, message);
                }
                return policy;
            }
        }
        None
    }

    fn missing(&self, role: Role, name: &str, path: &str, at: &At, faults: &mut Faults) {
        if faults.full() {
            return faults.add(path, at, String::new());
        }
        let listed =
            self.plugins.iter().filter(|p| p.kind.as_ref().is_some_and(|k| k.role() == role));
        let mut names: Vec<&str> = listed.map(|p| p.name.as_str()).collect();
        for kind in available().filter(|t| t.role == role) {
            let shown = kind.word().unwrap_or(kind.name);
            if !names.contains(&shown) {
                names.push(shown);
            }
        }
        let types = faults.types.clone();
        for kind in types.all().filter(|t| t.role == role) {
            if !names.contains(&&*kind.name) {
                names.push(&kind.name);
            }
        }
        let noun = role.noun();
        let message =
            format!("no {noun} is named {}; there are {}", quoted(name), names.join(", "));
        faults.suggest(path, at, message, nearest(name, names.iter().copied()));
    }
}

/// The policy of a type that may stand without parameters.
fn without_parameters(kind: &PluginType, keys: &'static [Key]) -> Option<Policy> {
    let mut missing = Faults::new("");
    let policy = Policy::read(kind, &View::new("", None, keys, &At::default()), &mut missing);
    policy.filter(|_| missing.is_empty())
}

/// The policy of a type of the host, where its parameters stand or would stand.
fn host(
    kind: &HostType,
    node: Option<&Node>,
    (path, at): (&str, &At),
    faults: &mut Faults,
) -> Option<Policy> {
    match kind.policy(node, path) {
        Ok(policy) => Some(policy),
        Err(wrong) => {
            // Absent parameters have no place of their own.
            let at = if node.is_none() { at } else { &wrong.at };
            faults.suggest(&wrong.path, at, wrong.message, wrong.near.as_deref());
            None
        }
    }
}

fn parameters(view: &View<'_>, kind: &Kind, faults: &mut Faults) -> Option<Policy> {
    let kind = match kind {
        Kind::Ours(kind) => kind,
        Kind::Host(kind) => {
            let (node, path) = (view.node_of("parameters"), view.path_of("parameters"));
            return host(kind, node, (&path, view.at()), faults);
        }
    };
    let Status::Now(keys) = kind.status else { return None };
    let parameters = view.below("parameters", keys);
    if !view.has("parameters") {
        // An absent object is not walked, so what it must hold is asked for here.
        let missing = keys.iter().filter(|key| key.required);
        for key in missing {
            let message = format!("missing: {} is required", key.kind.expects());
            faults.add(&parameters.path_of(key.name), view.at(), message);
        }
    }
    Policy::read(kind, &parameters, faults)
}

fn wrong_role(path: &str, at: &At, name: &str, kind: &Kind, role: Role, faults: &mut Faults) {
    let (article, is, wanted) = (kind.role().article(), kind.role().noun(), role.noun());
    let message = format!("{} is {article} {is}, a {wanted} is needed here", quoted(name));
    faults.add(path, at, message);
}
