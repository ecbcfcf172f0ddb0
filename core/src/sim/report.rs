//! The report of a replay: what the table prints, the JSON holds and the picture shows.
#![forbid(unsafe_code)]
#![allow(
    clippy::float_arithmetic,
    clippy::cast_precision_loss,
    reason = "shares and milliseconds for people; nothing is decided here"
)]

use std::collections::BTreeMap;

use serde::Serialize;

use super::{
    gating::RegionReport,
    scheme::Scheme,
    stats::{BandStats, Collector, ReasonCounts},
};

/// What [`BandReport::starved`] means.
pub const STARVED_RULE: &str = "starved: while the band had a waiter without a break, more than max(100, 4 x round) \
                                dispatches of other bands passed without one of its own (round 0 under strict)";

/// The longest run a band may see without being starved, by [`STARVED_RULE`].
pub const fn starved_after(round: u64) -> u64 {
    let rounds = round.saturating_mul(4);
    if rounds > 100 { rounds } else { 100 }
}

/// All configurations on one trace.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// Name of the trace.
    pub trace: String,
    /// Its format.
    pub format: &'static str,
    /// Its rows.
    pub rows: usize,
    /// Seed of the assignment.
    pub seed: u64,
    /// Slots of every configuration; `null` if they differ.
    pub slots: Option<u32>,
    /// Factor on the arrival rate.
    pub speedup: f64,
    /// How band, tenant and key were assigned.
    pub assignment_rule: String,
    /// How the service time was made.
    pub service_rule: &'static str,
    /// What `starved` means.
    pub starved_rule: &'static str,
    /// One report per configuration.
    pub configs: Vec<ConfigReport>,
}

/// One configuration.
#[derive(Clone, Debug, Serialize)]
pub struct ConfigReport {
    /// Name of the configuration.
    pub name: String,
    /// The order over the bands.
    pub schedule: String,
    /// Slots of the pool.
    pub slots: u32,
    /// Weight per priority; empty under strict.
    pub weights: BTreeMap<i32, u64>,
    /// Dispatches of one round; 0 under strict.
    pub round: u64,
    /// Requests that got a slot.
    pub dispatches: u64,
    /// Of these, at how many every band had a waiter.
    pub all_backlogged_dispatches: u64,
    /// Virtual seconds until the last slot came back.
    pub virtual_seconds: f64,
    /// Ranges of saturation with the same bands open, and what was dispatched in each; `null` where ceilings move or
    /// the saturation is no count of running requests.
    pub regions: Option<Vec<RegionReport>>,
    /// Dispatches of a band while its gate was closed, by the ceilings alone; `null` as above.
    pub gated_dispatches: Option<u64>,
    /// The bands, highest priority first.
    pub bands: Vec<BandReport>,
}

/// One band under one configuration.
#[derive(Clone, Debug, Serialize)]
pub struct BandReport {
    /// Its priority.
    pub priority: i32,
    /// Its name, if it has one.
    pub name: Option<String>,
    /// Requests that arrived.
    pub arrived: u64,
    /// Requests that got a slot.
    pub dispatched: u64,
    /// Part of all dispatches; `null` if there were none.
    pub share: Option<f64>,
    /// Dispatches while every band had a waiter.
    pub dispatched_all_backlogged: u64,
    /// Their part; `null` if there were none.
    pub share_all_backlogged: Option<f64>,
    /// Wait until the slot; `null` without a dispatch.
    pub wait_ms: Option<WaitReport>,
    /// Most dispatches of other bands in a row while this one had a waiter.
    pub longest_run_of_others: u64,
    /// The same between two dispatches of this band.
    pub longest_gap_while_backlogged: u64,
    /// The same while every band had a waiter: what the weights alone bound, by a round less one.
    pub longest_gap_all_backlogged: u64,
    /// Refused at arrival.
    pub rejected: u64,
    /// Removed while waiting.
    pub evicted: u64,
    /// Refused, by reason.
    pub rejected_by_reason: BTreeMap<&'static str, u64>,
    /// Removed, by reason.
    pub evicted_by_reason: BTreeMap<&'static str, u64>,
    /// Still waiting when nothing more could happen.
    pub left_waiting: u64,
    /// See [`STARVED_RULE`].
    pub starved: bool,
    /// (virtual seconds, longest wait in seconds), for the picture.
    #[serde(skip)]
    pub series: Vec<(f64, f64)>,
}

/// Wait percentiles in milliseconds, to three digits; the maximum is exact.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct WaitReport {
    /// Half waited at most this long.
    pub p50: f64,
    /// Nine of ten.
    pub p90: f64,
    /// 99 of 100.
    pub p99: f64,
    /// The longest wait.
    pub max: f64,
}

impl ConfigReport {
    /// Sums up what `collector` counted. `bands`: priority and name, highest priority first.
    pub fn new(
        name: &str,
        slots: u32,
        scheme: Scheme,
        bands: &[(i32, Option<String>)],
        collector: &Collector,
    ) -> Self {
        let limit = starved_after(scheme.round);
        let priorities: Vec<i32> = bands.iter().map(|(priority, _)| *priority).collect();
        let gating = collector.gating().map(|gating| gating.report(&priorities));
        let (regions, gated_dispatches) = gating.unzip();
        Self {
            name: name.to_owned(),
            slots,
            dispatches: collector.dispatches(),
            all_backlogged_dispatches: collector.dispatches_all_backlogged(),
            virtual_seconds: seconds(collector.end_ns()),
            regions,
            gated_dispatches,
            bands: bands
                .iter()
                .zip(collector.bands())
                .map(|((priority, name), stats)| {
                    BandReport::new(*priority, name.clone(), limit, stats, collector)
                })
                .collect(),
            schedule: scheme.schedule,
            weights: scheme.weights,
            round: scheme.round,
        }
    }
}

impl BandReport {
    fn new(
        priority: i32,
        name: Option<String>,
        limit: u64,
        stats: &BandStats,
        all: &Collector,
    ) -> Self {
        Self {
            priority,
            name,
            arrived: stats.arrived,
            dispatched: stats.dispatched,
            share: part(stats.dispatched, all.dispatches()),
            dispatched_all_backlogged: stats.dispatched_all_backlogged,
            share_all_backlogged: part(
                stats.dispatched_all_backlogged,
                all.dispatches_all_backlogged(),
            ),
            wait_ms: WaitReport::new(stats),
            longest_run_of_others: stats.longest_run,
            longest_gap_while_backlogged: stats.longest_gap,
            longest_gap_all_backlogged: stats.longest_full_gap,
            rejected: stats.rejected.total(),
            evicted: stats.evicted.total(),
            rejected_by_reason: by_name(&stats.rejected),
            evicted_by_reason: by_name(&stats.evicted),
            left_waiting: stats.waiting,
            starved: stats.longest_run > limit,
            series: stats.series.points().map(|(t, wait)| (seconds(t), seconds(wait))).collect(),
        }
    }

    /// "20 interactive", or the bare priority.
    pub fn label(&self) -> String {
        match &self.name {
            Some(name) => format!("{} {name}", self.priority),
            None => self.priority.to_string(),
        }
    }
}

impl WaitReport {
    fn new(stats: &BandStats) -> Option<Self> {
        let quantile = |q| millis(stats.waits.value_at_quantile(q).min(stats.wait_ns_max));
        (stats.dispatched > 0).then(|| Self {
            p50: quantile(0.5),
            p90: quantile(0.9),
            p99: quantile(0.99),
            max: millis(stats.wait_ns_max),
        })
    }
}

fn by_name(counts: &ReasonCounts) -> BTreeMap<&'static str, u64> {
    counts.iter().map(|(reason, count)| (reason.as_str(), count)).collect()
}

fn part(of: u64, all: u64) -> Option<f64> {
    (all > 0).then(|| of as f64 / all as f64)
}

fn seconds(ns: u64) -> f64 {
    ns as f64 / 1e9
}

fn millis(ns: u64) -> f64 {
    ns as f64 / 1e6
}
