//! Finds the vectors, decides which can be answered, counts.

use std::path::Path;

use serde_json::Value;

use crate::{answers, compare};

/// Topics of `flow.json` answered here.
const FLOW: [&str; 22] = [
    "outcome",
    "gate",
    "priority-first",
    "interleaved",
    "comparison",
    "strict",
    "distribution",
    "round",
    "rescale",
    "work-conservation",
    "holdback",
    "holdback-validation",
    "soft-reflective",
    "saturation",
    "ratio-stability",
    "missing-band",
    "dynamic-bands",
    "toggling",
    "rank",
    "fairness",
    "ordering",
    "ttl",
];

/// Topics of `flow.json` whose policies do not exist yet.
const FLOW_LATER: [&str; 2] = ["capacity", "reclamation"];

/// Areas of `fairshare.json`, none of which exists yet.
const FAIRSHARE_LATER: [&str; 15] = [
    "split", "weight", "cost", "capacity", "replicas", "pick", "borrow", "caps", "key", "catchup",
    "ceiling", "shared", "mode", "affinity", "live",
];

/// Sections of `routing.json`, none of which exists yet.
const ROUTING_LATER: [&str; 11] = [
    "hash",
    "ranking",
    "ring",
    "estimate",
    "decision",
    "sequence",
    "admission",
    "proxy_wait",
    "config",
    "expression",
    "override",
];

/// What became of the vectors.
#[derive(Default)]
pub(crate) struct Tally {
    pub(crate) passed: usize,
    pub(crate) failed: usize,
    not_yet: usize,
    failures: Vec<String>,
    differences: Vec<String>,
    optional: Vec<String>,
}

impl Tally {
    fn fail(&mut self, id: &str, what: &str) {
        self.failed += 1;
        self.failures.push(format!("{id}: {what}"));
    }

    pub(crate) fn print(&self) {
        for line in &self.failures {
            println!("FAILED {line}");
        }
        for line in &self.differences {
            println!("deliberate difference, not run: {line}");
        }
        for line in &self.optional {
            println!("optional, not run: {line}");
        }
        let (passed, failed) = (self.passed, self.failed);
        println!("{passed} passed, {failed} failed, {} not yet", self.not_yet);
        println!(
            "{} deliberate differences, {} optional (listed above, in none of these counts)",
            self.differences.len(),
            self.optional.len()
        );
        let verdict = if failed == 0 && passed > 0 { "ok" } else { "FAILED" };
        let ignored = self.not_yet + self.differences.len() + self.optional.len();
        println!(
            "test result: {verdict}. {passed} passed; {failed} failed; {ignored} ignored; \
             0 measured; 0 filtered out"
        );
    }
}

/// Runs every `*.json` of a folder, in order of name.
pub(crate) fn run(dir: &Path) -> Tally {
    let mut tally = Tally::default();
    let mut files: Vec<_> = std::fs::read_dir(dir)
        .into_iter()
        .flatten()
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.extension().is_some_and(|ext| ext == "json"))
        .collect();
    files.sort();
    if files.is_empty() {
        tally.fail(&dir.display().to_string(), "no vector file here");
    }
    for path in files {
        let parsed = std::fs::read_to_string(&path)
            .map_err(|e| e.to_string())
            .and_then(|text| serde_json::from_str::<Value>(&text).map_err(|e| e.to_string()));
        match parsed {
            Ok(Value::Object(file)) => run_file(&file, &mut tally),
            Ok(_) => tally.fail(&path.display().to_string(), "not an object"),
            Err(error) => tally.fail(&path.display().to_string(), &error),
        }
    }
    tally
}

fn run_file(file: &serde_json::Map<String, Value>, tally: &mut Tally) {
    for (section, rows) in file {
        // Whatever else a file holds (version, conventions) is no list.
        let Value::Array(rows) = rows else { continue };
        for row in rows {
            if let Some(topic) = row["topic"].as_str() {
                run_row(row, topic, &FLOW, &FLOW_LATER, tally);
            } else if let Some(area) = row["area"].as_str() {
                run_row(row, area, &[], &FAIRSHARE_LATER, tally);
            } else {
                run_row(row, section, &[], &ROUTING_LATER, tally);
            }
        }
    }
}

fn run_row(row: &Value, kind: &str, known: &[&str], later: &[&str], tally: &mut Tally) {
    let id = row["id"].as_str().unwrap_or("(no id)");
    let why = || format!("{id} ({})", row["why"].as_str().unwrap_or("no reason given"));
    let is_known = known.contains(&kind);
    if !is_known && !later.contains(&kind) {
        tally.fail(id, &format!("a kind of vector nobody knows: {kind}"));
    } else if row["deliberate_difference"] == true {
        tally.differences.push(why());
    } else if row["optional"] == true {
        tally.optional.push(why());
    } else if !is_known {
        tally.not_yet += 1;
    } else {
        match check(row, kind) {
            Ok(()) => tally.passed += 1,
            Err(what) => tally.fail(id, &what),
        }
    }
}

/// Compares the keys of what is expected of us with our answers.
fn check(row: &Value, topic: &str) -> Result<(), String> {
    let expected = row.get("expect_default").unwrap_or(&row["expected"]);
    let Value::Object(expected) = expected else { return Err("nothing expected".into()) };
    let mut wrong = Vec::new();
    for (key, expected) in expected {
        // Rules of other systems, named for contrast.
        if key == "stopAtFirstGated" {
            continue;
        }
        match answers::answer(&row["input"], topic, key, expected) {
            Ok(got) => {
                wrong.extend(compare::difference(expected, &got).map(|d| format!("{key}{d}")));
            }
            Err(error) => wrong.push(format!("{key} expected {expected}, no answer: {error}")),
        }
    }
    if wrong.is_empty() { Ok(()) } else { Err(wrong.join("; ")) }
}
