//! The pools: which bands each has, in which order, under which ceilings.

use core::time::Duration;
use std::collections::BTreeMap;

use crate::types::MAX_BANDS;
use crate::types::policy::{BandSelection, Fairness, Holdback};
use crate::types::saturation::SaturationSource;
use crate::types::settings::{BandSettings, PoolMode, PoolSettings};

use super::fault::Faults;
use super::flows::{self, Flows};
use super::holdback::not_rising;
use super::limits::{self, BandLimits};
use super::node::At;
use super::ops;
use super::plugins::{Policy, Registry};
use super::policies::named_by;
use super::read::View;
use super::saturation;
use super::templates;
use super::time;
use super::value::quoted;

/// One element of a list of bands.
#[derive(Clone, Debug)]
struct Band {
    priority: i32,
    name: Option<String>,
    ceiling: Option<f64>,
    ttl: Option<Duration>,
    flows: Flows,
    limits: BandLimits,
    path: String,
    at: At,
    ceiling_at: At,
}

/// What holds for every pool that does not say otherwise.
#[derive(Debug)]
struct Shared {
    bands: Vec<Band>,
    selection: BandSelection,
    holdback: Option<Holdback>,
    saturation: SaturationSource,
    no_backend_ttl: Option<Duration>,
    mode: PoolMode,
    templates: templates::Stated,
}

/// Makes the pools; without any, one named `default`.
pub(crate) fn read(
    root: &View<'_>,
    registry: &Registry,
    default_slots: u32,
    faults: &mut Faults,
) -> Vec<PoolSettings> {
    let shared = shared(root, registry, faults);
    let mut pools = Vec::new();
    for (name, view) in root.named("pools") {
        pools.push(pool(name, &view, &shared, registry, default_slots, faults));
    }
    if pools.is_empty() {
        let mut only = PoolSettings::new("default", default_slots);
        only.selection = shared.selection.clone();
        only.saturation = shared.saturation.clone();
        only.mode = shared.mode;
        only.templates = shared.templates.settle(&Fairness::default());
        let holdback = holdback(None, &shared.bands, &shared);
        finish(&mut only, &shared.bands, holdback, "bands", root.at_of("bands"), faults);
        only.no_backend_ttl = shared.no_backend_ttl;
        settle_flows(&mut only, &shared.bands, &Fairness::default());
        pools.push(only);
    }
    pools
}

fn shared(root: &View<'_>, registry: &Registry, faults: &mut Faults) -> Shared {
    let flow = root.object("flowControl");
    let mut bands = bands(root, "bands", true, registry, faults);
    let seeds = self::bands(&flow, "priorityBands", false, registry, faults);
    merge(&mut bands, seeds, faults);
    let selection = flow_selection(&flow, registry, faults);
    let usage = registry.reference(&flow, "usageLimitPolicyPluginRef", faults);
    let holdback = match usage {
        Some(Policy::Holdback(holdback)) => Some(holdback),
        _ => None,
    };
    let key = "usageLimitPolicyPluginRef";
    if flow.has(key) {
        both(&bands, &flow.path_of(key), flow.at_of(key), faults);
    }
    if holdback.as_ref().is_some_and(|holdback| alternate_twice(holdback, &selection)) {
        faults.add(&flow.path_of(key), flow.at_of(key), Holdback::REFLECTIVE_BESIDE_WFQ);
    }
    let saturation = saturation::shared(root, registry, faults);
    let no_backend_ttl = time::no_endpoint(&flow);
    let mode = ops::mode(&root.object("engine")).unwrap_or_default();
    let templates = templates::shared(&flow, registry, faults);
    Shared { bands, selection, holdback, saturation, no_backend_ttl, mode, templates }
}

fn flow_selection(flow: &View<'_>, registry: &Registry, faults: &mut Faults) -> BandSelection {
    let (key, older) = ("bandSelectionPolicyPluginRef", "dispatchPolicyPluginRef");
    if let (Some(a), Some(b)) = (flow.text(key), flow.text(older))
        && a != b
    {
        let message = format!(
            "{} differs from {key} {}: they are one key, keep one of them",
            quoted(&b),
            quoted(&a)
        );
        faults.add(&flow.path_of(older), flow.at_of(older), message);
    }
    let key = if flow.has(key) { key } else { older };
    match registry.reference(flow, key, faults) {
        Some(Policy::Selection(selection)) => selection,
        _ => BandSelection::Strict,
    }
}

/// Notes that a holdback policy and explicit ceilings of bands stand side by side.
fn both(bands: &[Band], path: &str, at: &At, faults: &mut Faults) {
    if let Some(band) = bands.iter().find(|band| band.ceiling.is_some()) {
        let message =
            format!("{path} and {}.ceiling both set the ceilings: keep one of them", band.path);
        faults.add(path, at, message);
    }
}

/// Reads a list of bands; repeated priorities and names are noted and left out.
///
/// `ours`: they are of our own spelling, and may have ceilings.
fn bands(
    view: &View<'_>,
    key: &str,
    ours: bool,
    registry: &Registry,
    faults: &mut Faults,
) -> Vec<Band> {
    let mut bands = BTreeMap::new();
    let mut names = BTreeMap::new();
    for item in view.list(key) {
        let Some(priority) = item.i32("priority") else { continue };
        let name = item.text("name");
        if let Some(name) = &name
            && let Some(first) = names.insert(name.clone(), item.path.clone())
        {
            let message =
                format!("the name {} is that of {first} already: names are unique", quoted(name));
            faults.add(&item.path_of("name"), item.at_of("name"), message);
        }
        let band = Band {
            priority,
            name,
            ceiling: ours.then(|| item.f64("ceiling")).flatten(),
            ttl: if ours { time::of_band(&item) } else { None },
            flows: Flows::read(
                &item,
                if ours { flows::OURS } else { flows::SEEDS },
                registry,
                faults,
            ),
            limits: BandLimits::read(&item, ours),
            path: item.path.clone(),
            at: item.at_of("priority").clone(),
            ceiling_at: if ours { item.at_of("ceiling") } else { item.at() }.clone(),
        };
        match bands.get(&priority) {
            Some(Band { path: first, .. }) => {
                let message = format!(
                    "priority {priority} is that of {first} already: priorities are unique"
                );
                faults.add(&item.path_of("priority"), item.at_of("priority"), message);
            }
            None => _ = bands.insert(priority, band),
        }
    }
    let bands: Vec<Band> = bands.into_values().rev().collect();
    let listed: Vec<(i32, f64, &At)> =
        bands.iter().filter_map(|b| Some((b.priority, b.ceiling?, &b.ceiling_at))).collect();
    let path = |priority| {
        let band = bands.iter().find(|b| b.priority == priority);
        band.map_or_else(String::new, |b| format!("{}.ceiling", b.path))
    };
    not_rising(&listed, path, faults);
    bands
}

/// Adds the bands of the `flowControl:` spelling to the engine-wide ones.
fn merge(bands: &mut Vec<Band>, more: Vec<Band>, faults: &mut Faults) {
    for band in more {
        let Some(known) = bands.iter_mut().find(|b| b.priority == band.priority) else {
            bands.push(band);
            continue;
        };
        known.flows.merge(band.flows.clone(), faults);
        known.limits.merge(band.limits.clone(), faults);
        match (&known.name, &band.name) {
            (Some(a), Some(b)) if a != b => {
                let message = format!(
                    "priority {} is named {} here and {} in {}: keep one name",
                    band.priority,
                    quoted(b),
                    quoted(a),
                    known.path
                );
                faults.add(&format!("{}.name", band.path), &band.at, message);
            }
            (None, Some(_)) => known.name = band.name,
            _ => {}
        }
    }
}

fn pool(
    name: &str,
    view: &View<'_>,
    shared: &Shared,
    registry: &Registry,
    default_slots: u32,
    faults: &mut Faults,
) -> PoolSettings {
    let mut pool = PoolSettings::new(name, view.u32("slots").unwrap_or(default_slots));
    pool.max_cost = view.u32("maxCost").unwrap_or(pool.max_cost);
    pool.max_flows = view.u32("maxFlows").unwrap_or(pool.max_flows);
    pool.flow_idle = flows::idle(view, pool.flow_idle);
    pool.mode = shared.mode;
    pool.limits = limits::of_pool(view);
    pool.selection = match registry.policy(view, "bandSelection", faults) {
        Some(Policy::Selection(selection)) => selection,
        _ => shared.selection.clone(),
    };
    pool.saturation =
        saturation::of_pool(view, registry, faults).unwrap_or_else(|| shared.saturation.clone());
    let own = match registry.policy(view, "holdback", faults) {
        Some(Policy::Holdback(holdback)) => Some(holdback),
        _ => None,
    };
    let mut bands = shared.bands.clone();
    if view.has("bands") {
        bands = self::bands(view, "bands", true, registry, faults);
        if view.has("holdback") {
            both(&bands, &view.path_of("holdback"), view.at_of("holdback"), faults);
        }
    }
    let holdback = holdback(own, &bands, shared);
    finish(&mut pool, &bands, holdback, &view.path_of("bands"), view.at_of("bands"), faults);
    ops::of_pool(view, &mut pool, faults);
    pool.no_backend_ttl = time::no_backend(view, shared.no_backend_ttl);
    // Inherited both, they are reported where they stand.
    let own = ["holdback", "bandSelection"].into_iter().find(|key| view.has(key));
    if let Some(key) = own.filter(|_| alternate_twice(&pool.holdback, &pool.selection)) {
        faults.add(&view.path_of(key), view.at_of(key), Holdback::REFLECTIVE_BESIDE_WFQ);
    }
    let fairness = flows::of_pool(view, registry, faults);
    settle_flows(&mut pool, &bands, &fairness);
    templates::of_pool(view, &mut pool, &shared.templates, &fairness, registry, faults);
    pool
}

/// Gives each band of the pool its fairness, order and limits.
fn settle_flows(pool: &mut PoolSettings, bands: &[Band], fairness: &Fairness) {
    for it in &mut pool.bands {
        let band = bands.iter().find(|band| band.priority == it.priority);
        let flows = band.map(|band| &band.flows);
        (it.fairness, it.order) = flows
            .map_or_else(|| (fairness.clone(), it.order.clone()), |flows| flows.settle(fairness));
        it.ttl = band.and_then(|band| band.ttl);
        if let Some(band) = band {
            (it.limits, it.tenant_share) = (band.limits.settle(), band.limits.share);
        }
    }
}

/// Both share the pool among the bands by turns of their own: together the turns of one fall into the other's.
fn alternate_twice(holdback: &Holdback, selection: &BandSelection) -> bool {
    *holdback == Holdback::SoftReflective && matches!(selection, BandSelection::Wfq(_))
}

/// The holdback of a pool: the nearest statement wins. Its own policy; ceilings of its bands (`None`); then what
/// holds for every pool.
fn holdback(own: Option<Holdback>, bands: &[Band], shared: &Shared) -> Option<Holdback> {
    if own.is_some() || bands.iter().any(|band| band.ceiling.is_some()) {
        return own;
    }
    Some(shared.holdback.clone().unwrap_or_default())
}

/// Sets bands and ceilings; without a holdback the ceilings are those of the bands, and a band without one has
/// that of the next band above it.
fn finish(
    pool: &mut PoolSettings,
    bands: &[Band],
    holdback: Option<Holdback>,
    path: &str,
    at: &At,
    faults: &mut Faults,
) {
    let from_bands = holdback.is_none();
    pool.holdback = holdback.unwrap_or_default();
    provision(pool, bands, path, at, faults);
    if !from_bands {
        return;
    }
    let mut current = 1.0;
    let mut ceilings = Vec::new();
    for BandSettings { priority, .. } in &pool.bands {
        let band = bands.iter().find(|band| band.priority == *priority);
        current = band.and_then(|band| band.ceiling).unwrap_or(current);
        ceilings.push((*priority, current));
    }
    pool.holdback = Holdback::Explicit { ceilings, default: None };
}

/// Gives the pool its bands: those listed, those its policies name, and 0.
fn provision(pool: &mut PoolSettings, bands: &[Band], path: &str, at: &At, faults: &mut Faults) {
    let mut all: BTreeMap<i32, Option<String>> = BTreeMap::from([(0, None)]);
    for priority in named_by(&pool.selection) {
        all.insert(priority, None);
    }
    all.extend(pool.holdback.named().map(|priority| (priority, None)));
    all.extend(bands.iter().map(|band| (band.priority, band.name.clone())));
    if all.len() > MAX_BANDS {
        let message = format!(
            "{} bands are out of range: list and name at most {MAX_BANDS} priorities, 0 included",
            all.len()
        );
        faults.add(path, at, message);
    }
    let band = |(priority, name)| BandSettings { name, ..BandSettings::new(priority) };
    pool.bands = all.into_iter().rev().map(band).collect();
}
