//! The worked tables of the band policies, beside their source: made by the policies themselves, compared byte for byte.
//!
//! To write them anew: `BANDGATE_BLESS=1 cargo test -p bandgate-core --test tables`. That the numbers are those of the
//! seeds is the vectors' to say (`vectors.rs`: gate, priority-first, interleaved, distribution, rescale).
#![allow(clippy::unwrap_used, reason = "a test stops at the first surprise")]

use core::fmt::Write;
use std::fs;

use bandgate_core::admit::ceiling::eligible;
use bandgate_core::admit::saturation::Thresholds;
use bandgate_core::select::band::BandPolicy;
use bandgate_core::types::policy::{
    BandSelection, Distribution, Ratio, Reading, Schedule, WfqParams,
};

const FILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/src/select/band/TABLES.md");
const BANDS: [i32; 3] = [20, 10, 0];
const HEAD: &str = "\
# Worked tables of the band policies

Made by the policies themselves and compared by `core/tests/tables.rs`, which says how to write this file anew. A
decision is one look, one dispatch; credits and virtual times are those after the look and before the dispatch.

";

fn params(schedule: Schedule, distribution: Distribution) -> WfqParams {
    WfqParams { activation: 0.5, deactivation: 0.5, retention_ns: 0, schedule, distribution }
}

fn by_ratio(weights: &[(i32, u32)]) -> Distribution {
    let ratios = weights.iter().map(|(priority, weight)| (*priority, Ratio(*weight))).collect();
    Distribution::Explicit { ratios, default_ratio: None }
}

fn policy(schedule: Schedule, distribution: Distribution, bands: &[i32]) -> BandPolicy {
    BandPolicy::new(&BandSelection::Wfq(params(schedule, distribution)), bands)
}

fn joined(numbers: impl IntoIterator<Item = impl ToString>) -> String {
    numbers.into_iter().map(|n| n.to_string()).collect::<Vec<_>>().join(", ")
}

fn table(
    out: &mut String,
    title: &str,
    header: &[&str],
    rows: impl IntoIterator<Item = Vec<String>>,
) {
    let line = |cells: &[&str]| format!("| {} |\n", cells.join(" | "));
    let _ = write!(out, "## {title}\n\n{}", line(header));
    out.push_str(&line(&vec!["---"; header.len()]));
    for row in rows {
        out.push_str(&line(&row.iter().map(String::as_str).collect::<Vec<_>>()));
    }
    out.push('\n');
}

fn regions(out: &mut String) {
    let selection = params(Schedule::Interleaved, Distribution::Linear);
    let rows = [0.0, 0.29, 0.3, 0.49, 0.5, 0.69, 0.7, 0.99, 1.0].map(|saturation| {
        let open = eligible(saturation, &[1.0, 0.7, 0.3]);
        let names = BANDS.iter().enumerate().filter(|(band, _)| open >> band & 1 == 1);
        let is_weighted = Thresholds::of(&selection).reading(saturation).activates;
        let open = joined(names.map(|(_, priority)| priority));
        let mode = if is_weighted { "weighted" } else { "strict" };
        vec![
            saturation.to_string(),
            if open.is_empty() { "none".into() } else { open },
            mode.into(),
        ]
    });
    let title = "Regions: ceilings 1.0, 0.7, 0.3 of bands 20, 10, 0; weights from 0.5 on";
    table(out, title, &["saturation", "open bands", "order"], rows);
}

/// Ten decisions with every band waiting.
fn decisions(schedule: Schedule, show: impl Fn(&BandPolicy) -> String) -> Vec<Vec<String>> {
    let mut policy = policy(schedule, by_ratio(&[(20, 6_000), (10, 3_000), (0, 1_000)]), &BANDS);
    let row = |decision: i32| {
        policy.begin(Reading { activates: true, stays_active: true }, 0b111, || 0);
        let (state, band) = (show(&policy), policy.best(0b111).unwrap());
        policy.record(0b111, band);
        vec![decision.to_string(), state, BANDS[band as usize].to_string()]
    };
    (1..=10).map(row).collect()
}

fn credits(policy: &BandPolicy) -> String {
    joined(policy.credits().unwrap())
}

fn times(policy: &BandPolicy) -> String {
    let (times, unit) = policy.virtual_times().unwrap();
    let fraction = |time: &u64| {
        let (mut a, mut b) = (*time, unit);
        while b != 0 {
            (a, b) = (b, a % b);
        }
        let (over, under) = (time / a, unit / a);
        if under == 1 { over.to_string() } else { format!("{over}/{under}") }
    };
    joined(times.iter().map(fraction))
}

fn weights(out: &mut String) {
    let mut rows = Vec::new();
    for bands in [[20, 10, 0], [20, 10, -1], [20, 18, 1], [100, 50, 1]] {
        for (name, distribution) in [
            ("proportional", Distribution::Proportional { anchor: None }),
            ("linear", Distribution::Linear),
        ] {
            let credits = Schedule::PriorityFirst { max_fairness_window: None };
            let policy = policy(credits, distribution, &bands);
            let (quota, round) = (policy.quota().unwrap(), policy.round().unwrap());
            rows.push(vec![joined(bands), name.into(), joined(quota), round.to_string()]);
        }
    }
    table(out, "Weights", &["bands", "distribution", "credits", "round"], rows);
}

fn rescaling(out: &mut String) {
    let rows = [
        ([100, 50, 1], None),
        ([100, 50, 1], Some(80)),
        ([100, 50, 1], Some(20)),
        ([18, 8, 1], Some(10)),
        ([3, 2, 1], Some(100)),
        ([9, 5, 1], Some(2)),
    ]
    .map(|(weights, window)| {
        let ratios = BANDS.into_iter().zip(weights).collect::<Vec<_>>();
        let schedule = Schedule::PriorityFirst { max_fairness_window: window };
        let policy = policy(schedule, by_ratio(&ratios), &BANDS);
        let window = window.map_or("none".into(), |window| window.to_string());
        let (quota, round) = (policy.quota().unwrap(), policy.round().unwrap());
        vec![joined(weights), window, joined(quota), round.to_string()]
    });
    let header = ["weights", "maxFairnessWindow", "credits", "round"];
    table(out, "Rescaling: credits in a window", &header, rows);
}

#[test]
fn the_tables_beside_the_source_are_what_the_policies_do() {
    let mut out = String::from(HEAD);
    regions(&mut out);
    let priority_first = Schedule::PriorityFirst { max_fairness_window: None };
    let title = "Credits: priority-first with weights 6, 3, 1 of bands 20, 10, 0";
    table(
        &mut out,
        title,
        &["decision", "credits", "dispatched"],
        decisions(priority_first, credits),
    );
    let title = "Virtual times: interleaved with weights 6, 3, 1 of bands 20, 10, 0";
    let rows = decisions(Schedule::Interleaved, times);
    table(&mut out, title, &["decision", "virtual times", "dispatched"], rows);
    weights(&mut out);
    rescaling(&mut out);
    let out = out.trim_end().to_owned() + "\n";
    if std::env::var_os("BANDGATE_BLESS").is_some() {
        fs::write(FILE, &out).unwrap();
    }
    assert_eq!(fs::read_to_string(FILE).unwrap_or_default(), out, "run with BANDGATE_BLESS=1");
}
