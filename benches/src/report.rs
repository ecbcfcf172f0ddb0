//! Arguments and result lines of the measurements that criterion cannot hold: percentiles, gated runs, bytes.
//!
//! A line is one JSON object in `target/bench-own.jsonl`: `key` (`P5/bandgate/p50`), `value` (nanoseconds, or
//! bytes where the row says so; null if not measured), `counted` and `tried` runs, `round_trip_ns`, `all`.
#![forbid(unsafe_code)]

use std::{
    fs::OpenOptions,
    io::Write,
    path::{Path, PathBuf},
};

use serde_json::{Value, json};

use crate::{
    gate::{self, Gated},
    machine, stats,
};

/// What the command line asks for, in the words criterion understands too.
#[derive(Clone, Debug, Default)]
pub struct Args {
    /// Run everything once, quickly, and keep no figure (`--test`).
    pub test: bool,
    /// Only measurements whose id contains this.
    pub filter: Option<String>,
}

impl Args {
    /// The process's arguments; flags meant for criterion are passed over.
    pub fn from_env() -> Self {
        let mut args = Self::default();
        for word in std::env::args().skip(1) {
            match word.as_str() {
                "--test" => args.test = true,
                flag if flag.starts_with('-') => {}
                filter => args.filter = Some(filter.to_owned()),
            }
        }
        args
    }

    /// Whether this id is wanted.
    pub fn wants(&self, id: &str) -> bool {
        self.filter.as_ref().is_none_or(|part| id.contains(part.as_str()))
    }

    /// `full` operations, or a handful when only testing.
    pub fn effort(&self, full: usize) -> usize {
        if self.test { full.min(200) } else { full }
    }
}

/// Forgets the lines of earlier runs, unless only a part is run anew: a table never mixes two whole runs.
pub fn begin(args: &Args) {
    if !args.test && args.filter.is_none() {
        // Absent is as good as removed; a file that cannot be removed cannot be appended to and is named there.
        let _absent = std::fs::remove_file(own_lines());
    }
}

/// The figures of one run: name of each (`p50`, `per_op`) and nanoseconds.
pub type Figures = Vec<(&'static str, f64)>;

/// The build directory: `CARGO_TARGET_DIR`, else `target` beside this package.
pub fn target_dir() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR")
        .map_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../target"), PathBuf::from)
}

/// Where the lines go.
pub fn own_lines() -> PathBuf {
    target_dir().join("bench-own.jsonl")
}

/// Measures something that crosses cores: gated runs, printed with the round trip around them.
pub fn cross_core(args: &Args, id: &str, mut run: impl FnMut() -> Figures) {
    if !args.wants(id) {
        return;
    }
    if !machine::two_cores() {
        println!("{id}: not measured, it needs two cores");
        return;
    }
    if args.test {
        run();
        println!("Testing {id}: ok");
        return;
    }
    run();
    publish_gated(id, &gate::gated(run));
}

fn publish_gated(id: &str, gated: &Gated<Figures>) {
    let (counted, tried) = (gated.counted.len(), gated.tried);
    let round_trip = gated.round_trip_ns();
    let trips = &gated.near_ns;
    let low = trips.iter().copied().fold(f64::INFINITY, f64::min);
    let high = trips.iter().copied().fold(0.0, f64::max);
    if counted < gate::ENOUGH {
        let far = stats::median(&gated.far_ns).unwrap_or(0.0);
        println!(
            "{id}: not measured: {counted} of {tried} runs counted; refused at a round trip of {far:.0} ns"
        );
    }
    let names: Vec<&str> = gated
        .counted
        .first()
        .map_or_else(Vec::new, |run| run.iter().map(|(name, _)| *name).collect());
    for (place, name) in names.iter().enumerate() {
        let all: Vec<f64> =
            gated.counted.iter().filter_map(|run| run.get(place)).map(|f| f.1).collect();
        let value = stats::median(&all).filter(|_| counted >= gate::ENOUGH);
        if let Some(value) = value {
            println!(
                "{id}/{name}: {value:.1} ns ({counted} of {tried} runs; round trip {:.0}, {low:.0}..{high:.0})",
                round_trip.unwrap_or(0.0)
            );
            println!("    medians of the runs: {}", joined(&all));
        }
        append(
            &json!({"key": format!("{id}/{name}"), "value": value, "counted": counted, "tried": tried,
            "round_trip_ns": round_trip, "all": all}),
        );
    }
}

/// Measures something on one thread by stamps: the median of nine runs.
pub fn one_thread(args: &Args, id: &str, mut run: impl FnMut() -> Figures) {
    if !args.wants(id) {
        return;
    }
    if args.test {
        run();
        println!("Testing {id}: ok");
        return;
    }
    run();
    let runs: Vec<Figures> = (0..gate::WANTED).map(|_| run()).collect();
    for (place, (name, _)) in runs[0].iter().enumerate() {
        let all: Vec<f64> = runs.iter().filter_map(|run| run.get(place)).map(|f| f.1).collect();
        let value = stats::median(&all);
        println!("{id}/{name}: {:.1} ns", value.unwrap_or(0.0));
        println!("    all runs: {}", joined(&all));
        append(&json!({"key": format!("{id}/{name}"), "value": value, "counted": all.len(),
            "tried": all.len(), "all": all}));
    }
}

/// Keeps one figure that needs no repetition (bytes).
pub fn exact(args: &Args, id: &str, unit: &str, measure: impl FnOnce() -> f64) {
    if !args.wants(id) {
        return;
    }
    let value = measure();
    println!("{id}: {value:.1} {unit}");
    if !args.test {
        append(&json!({"key": id, "value": value}));
    }
}

/// p50 and p99 of latencies in ticks, as figures in nanoseconds.
pub fn p50_p99(mut ticks: Vec<u64>) -> Figures {
    let p50 = machine::ns(stats::percentile(&mut ticks, 500));
    let p99 = machine::ns(stats::percentile(&mut ticks, 990));
    vec![("p50", p50), ("p99", p99)]
}

fn joined(values: &[f64]) -> String {
    values.iter().map(|value| format!("{value:.1}")).collect::<Vec<_>>().join(" ")
}

fn append(line: &Value) {
    let path = own_lines();
    let written = OpenOptions::new()
        .create(true)
        .append(true)
        .open(&path)
        .and_then(|mut file| writeln!(file, "{line}"));
    if let Err(error) = written {
        println!("{}: not kept: {error}", path.display());
    }
}
