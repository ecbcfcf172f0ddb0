//! The engine and the groups, tenants and keys it knows, out of the checked tree.

use std::collections::HashSet;

use crate::types::settings::{
    DriverKind, GroupSettings, KeySettings, PoolSettings, Settings, TenantSettings,
};

use super::check::nearest;
use super::fault::Faults;
use super::limits;
use super::plugins::Registry;
use super::pools;
use super::read::{Bound, View};
use super::time;
use super::value::quoted;

/// Weight of a group, tenant or key that names none.
const DEFAULT_WEIGHT: u32 = 100;
/// The group of tenants that name none; it exists without being listed.
const DEFAULT_GROUP: &str = "default";

/// Makes the settings; they are only good if no fault was noted.
pub(crate) fn settings(root: &View<'_>, faults: &mut Faults) -> Settings {
    envelope(root, faults);
    let engine = root.object("engine");
    let registry = Registry::read(root, faults);
    let default_slots = engine.u32("defaultPoolSlots").unwrap_or(PoolSettings::DEFAULT_SLOTS);
    let defaults = Settings::default();
    let groups = groups(root);
    let tenants = tenants(root, &groups, faults);
    Settings {
        driver: match engine.text("driver").as_deref() {
            Some("host") => DriverKind::Host,
            Some("threads") => DriverKind::Threads,
            _ => DriverKind::Inline,
        },
        shards: engine.u32("shards").and_then(|v| u16::try_from(v).ok()).unwrap_or(defaults.shards),
        ceiling: engine.limit("ceiling").and_then(Bound::limit),
        admission_timeout: time::admission(root, defaults.admission_timeout, faults),
        max_requests: engine.u32("maxRequests").unwrap_or(defaults.max_requests),
        limits: limits::of_engine(&engine, &root.object("flowControl"), faults),
        pools: pools::read(root, &registry, default_slots, faults),
        keys: keys(root, &tenants, faults),
        tenants,
        groups,
    }
}

fn envelope(root: &View<'_>, faults: &mut Faults) {
    if !root.has("featureGates") {
        return;
    }
    let gates = root.texts("featureGates");
    let at = root.at_of("featureGates");
    if !gates.iter().any(|gate| gate == "flowControl") {
        let message = "flowControl is not listed: flow control is always on here, there is no path without it";
        faults.warn("featureGates", at, message);
    }
    for gate in gates.iter().filter(|gate| *gate != "flowControl") {
        faults.warn("featureGates", at, format!("the gate {} is ignored", quoted(gate)));
    }
}

fn groups(root: &View<'_>) -> Vec<GroupSettings> {
    let group = |(name, view): (&str, View<'_>)| GroupSettings {
        name: name.into(),
        weight: view.u32("weight").unwrap_or(DEFAULT_WEIGHT),
    };
    root.named("groups").into_iter().map(group).collect()
}

fn tenants(root: &View<'_>, groups: &[GroupSettings], faults: &mut Faults) -> Vec<TenantSettings> {
    let known: HashSet<&str> = groups.iter().map(|g| g.name.as_str()).collect();
    let mut tenants = Vec::new();
    for (name, view) in root.named("tenants") {
        let group = view.text("group");
        if let Some(group) = group.as_deref()
            && group != DEFAULT_GROUP
        {
            refer(&view, "group", group, "groups", &known, faults);
        }
        tenants.push(TenantSettings {
            name: name.into(),
            group,
            weight: view.u32("weight").unwrap_or(DEFAULT_WEIGHT),
            max_in_flight: view.limit("maxInFlight").and_then(Bound::limit),
            exempt: view.flag("exempt").unwrap_or(false),
        });
    }
    tenants
}

fn keys(root: &View<'_>, tenants: &[TenantSettings], faults: &mut Faults) -> Vec<KeySettings> {
    let known: HashSet<&str> = tenants.iter().map(|t| t.name.as_str()).collect();
    let mut keys = Vec::new();
    for (name, view) in root.named("keys") {
        let Some(tenant) = view.text("tenant") else { continue };
        refer(&view, "tenant", &tenant, "tenants", &known, faults);
        keys.push(KeySettings {
            name: name.into(),
            tenant,
            weight: view.u32("weight").unwrap_or(DEFAULT_WEIGHT),
            max_in_flight: view.limit("maxInFlight").and_then(Bound::limit),
            exempt: view.flag("exempt").unwrap_or(false),
        });
    }
    keys
}

/// Notes a reference to a name that is not listed.
fn refer(
    view: &View<'_>,
    key: &str,
    name: &str,
    section: &str,
    known: &HashSet<&str>,
    faults: &mut Faults,
) {
    if known.contains(name) {
        return;
    }
    let near = if faults.full() {
        None
    } else {
        let mut names: Vec<&str> = known.iter().copied().collect();
        names.sort_unstable();
        nearest(name, names.into_iter())
    };
    let message = format!("no {key} {}: list it under `{section}`", quoted(name));
    faults.suggest(&view.path_of(key), view.at_of(key), message, near);
}
