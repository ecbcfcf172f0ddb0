//! The `bandgate` command from outside: exit codes, messages, tables, JSON and picture.
#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

#[path = "cli/explain.rs"]
mod explain;
#[path = "cli/regions.rs"]
mod regions;

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Output},
};

use serde_json::Value;

const PACKAGE: &str = env!("CARGO_MANIFEST_DIR");
const HEADER: &str = "t_ms,band,tenant,key,input_tokens,output_tokens\n";

fn bandgate(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_bandgate")).args(args).output().unwrap()
}

fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

fn example(name: &str) -> String {
    format!("{PACKAGE}/examples/replay-{name}.yaml")
}

/// A directory of this test, empty.
fn scratch(test: &str) -> PathBuf {
    let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join(test);
    // It is there only if the test ran before.
    let _ = fs::remove_dir_all(&dir);
    fs::create_dir_all(&dir).unwrap();
    dir
}

fn write(dir: &Path, name: &str, text: &str) -> String {
    let path = dir.join(name);
    fs::write(&path, text).unwrap();
    path.to_str().unwrap().to_owned()
}

/// Bad input: exit code 2, `error:` on standard error with this text, nothing on standard output.
fn refused(args: &[&str], expected: &str) {
    let output = bandgate(args);
    let message = stderr(&output);
    assert_eq!(output.status.code(), Some(2), "{args:?}: {message}");
    assert!(message.starts_with("error: "), "{message}");
    assert!(message.contains(expected), "{message}");
    assert_eq!(stdout(&output), "", "{args:?} left half an answer");
}

#[test]
fn check_prints_weights_credits_round_and_ceilings() {
    let output = bandgate(&["check", &example("wfq-priority-first")]);
    assert!(output.status.success(), "{}", stderr(&output));
    let text = stdout(&output);
    assert!(text.contains("valid, 0 warnings"), "{text}");
    assert!(
        text.contains("8 slots, wfq priority-first from saturation 0.5 on, round 10"),
        "{text}"
    );
    assert!(text.contains("at most 9 others"), "{text}");
    let row: Vec<&str> =
        text.lines().find(|l| l.contains("interactive")).unwrap().split_whitespace().collect();
    assert_eq!(row, ["20", "interactive", "6", "60.0%", "6", "1.000", "8", "0.500..1.000"]);
}

/// A pool of ten slots with three bands and these keys more.
fn pool(more: &str) -> String {
    format!("bands: [{{priority: 20}}, {{priority: 10}}]\npools: {{p: {{slots: 10, {more}}}}}\n")
}

fn holdback(parameters: &str) -> String {
    format!("holdback: {{type: priority-holdback-policy, parameters: {{{parameters}}}}}")
}

/// What `check` prints of a pool from the line with `title` on, word by word.
fn checked(test: &str, more: &str, title: &str) -> Vec<String> {
    let path = write(&scratch(test), "c.yaml", &pool(more));
    let output = bandgate(&["check", &path]);
    assert!(output.status.success(), "{}", stderr(&output));
    let text = stdout(&output);
    let (_, rows) = text.split_once(title).unwrap_or_else(|| panic!("no {title:?} in {text}"));
    let squeezed = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
    rows.lines().skip(1).map(squeezed).collect()
}

#[test]
fn check_prints_the_three_regions_of_the_gates_with_their_counts_and_mode() {
    let wfq = "bandSelection: {type: cross-band-fairness-policy, parameters: {activationThreshold: 0.5, deactivationThreshold: 0.4}}";
    let listed = holdback("domain: explicit, ceilings: {20: 1, 10: 0.7, 0: 0.3}");
    let rows = checked("regions", &format!("{wfq}, {listed}"), "gates over saturation");
    assert_eq!(
        rows,
        [
            "saturation running mode open bands",
            "0.000 to 0.300 0..2 strict all",
            "0.300 to 0.400 3 strict 10 and higher",
            "0.400 to 0.500 4 as before 10 and higher",
            "0.500 to 0.700 5..6 wfq 10 and higher",
            "0.700 to 1.000 7..9 wfq 20 and higher",
            "1.000 and up 10 - none",
        ]
    );
}

#[test]
fn check_says_what_moves_the_ceilings_and_between_what() {
    let adaptive =
        "minCeiling: 0.3, adaptive: {signal: queueDepth, target: 0.25, restCeiling: 0.8}";
    let rows = checked("adaptive", &holdback(adaptive), "pool p");
    assert_eq!(rows[1], "20 - - - - 0.800 8 1.000 10 -");
    assert_eq!(rows[3], "0 - - - - 0.800 8 0.300 3 -");
    let follows = "ceilings follow queue depth: at rest up to 0.25, pressed from 1 on, given back at 0.1 per second";
    assert_eq!(rows[4], follows);
    let titles: Vec<&String> = rows.iter().filter(|row| row.starts_with("gates")).collect();
    assert_eq!(
        titles,
        ["gates over saturation, at rest", "gates over saturation, under full pressure"]
    );

    let busy = holdback("minCeiling: 0.3, activeBands: busy");
    let rows = checked("busy", &busy, "ceilings follow the busy bands");
    assert_eq!(rows[0], "gates over saturation, every band busy");
    assert_eq!(rows[2], "0.000 to 0.300 0..2 strict all");

    let rows = checked("soft", "holdback: soft-reflective-ceiling-policy", "always below");
    assert_eq!(rows[..3], ["20 1.000", "10 0.667", "0 0.500"]);
    assert!(rows.contains(&"0.90 1 in 9".to_owned()), "{rows:?}");
}

#[test]
fn check_draws_the_gates_of_every_pool() {
    let dir = scratch("gates");
    let adaptive = holdback("minCeiling: 0.3, adaptive: {target: 0.25, full: 2}");
    let mut document = pool(&adaptive);
    document = document.replace("}}\n", "}, soft: {holdback: soft-reflective-ceiling-policy}}\n");
    let (config, svg) = (write(&dir, "c.yaml", &document), dir.join("gates.svg"));
    let output = bandgate(&["check", &config, "--svg", svg.to_str().unwrap()]);
    assert!(output.status.success(), "{}", stderr(&output));
    let picture = fs::read_to_string(&svg).unwrap();
    assert!(picture.starts_with("<svg"), "{picture}");
    for text in ["Gates of c", "p (10 slots)", "soft (32 slots)", "p: ceilings over saturation"] {
        assert!(picture.contains(text), "{text}");
    }
    // Three curves of the family, each with its corners at the target and at full pressure.
    assert!(picture.matches("<polyline").count() >= 3, "{picture}");
    let bad = write(&dir, "bad.yaml", "pools: {p: {slots: 0}}");
    let out = dir.join("none.svg");
    refused(&["check", &bad, "--svg", out.to_str().unwrap()], "pools.p.slots");
    assert!(!out.exists(), "a picture of nothing");
    refused(&["check", &config, "--svg", "no/such/dir/x.svg"], "its directory does not exist");
}

#[test]
fn check_shows_64_bands_and_the_committed_documents() {
    let bands: Vec<String> = (1..64).map(|p| format!("{{priority: {p}}}")).collect();
    let bands = bands.join(", ");
    let text =
        format!("bands: [{bands}]\npools: {{p: {{slots: 100, {}}}}}", holdback("minCeiling: 0.1"));
    let dir = scratch("many");
    let (config, svg) = (write(&dir, "c.yaml", &text), dir.join("c.svg"));
    let output = bandgate(&["check", &config, "--svg", svg.to_str().unwrap()]);
    assert!(output.status.success(), "{}", stderr(&output));
    assert!(stdout(&output).contains("63 and higher"));
    for entry in fs::read_dir(format!("{PACKAGE}/tests/configs")).unwrap() {
        let path = entry.unwrap().path();
        let output = bandgate(&["check", path.to_str().unwrap(), "--svg", svg.to_str().unwrap()]);
        assert!(output.status.success(), "{}: {}", path.display(), stderr(&output));
    }
}

#[test]
fn check_takes_variables_and_refuses_what_is_wrong_with_its_place() {
    let output = Command::new(env!("CARGO_BIN_EXE_bandgate"))
        .args(["check", &example("strict")])
        .env("BANDGATE__POOLS__DEMO__SLOTS", "5")
        .output()
        .unwrap();
    assert!(stdout(&output).contains("pool demo: 5 slots, strict"), "{}", stdout(&output));

    let dir = scratch("check");
    let bad = write(&dir, "bad.yaml", "pools:\n  chat:\n    slots: 0\n    slotz: 1\n");
    refused(&["check", &bad], "bad.yaml:3: pools.chat.slots");
    refused(&["check", &bad], "slotz");
    refused(&["check", "no/such.yaml"], "cannot read no/such.yaml");
    refused(&["check", dir.to_str().unwrap()], "cannot read");
}

#[test]
fn schema_is_json() {
    let schema: Value = serde_json::from_str(&stdout(&bandgate(&["schema"]))).unwrap();
    assert!(schema["properties"]["pools"].is_object());
}

#[test]
fn bad_arguments_and_inputs_are_refused_whole() {
    let dir = scratch("refused");
    let json = dir.join("out.json");
    let json = json.to_str().unwrap();
    refused(&["replay", "--slots", "0"], "0 is not in 1..");
    refused(&["replay", "--speedup", "NaN"], "expected a number");
    refused(&["replay", "--mix", "20"], "expected BAND=PARTS");
    for (mix, why) in [
        ("7=1", "the mix names band 7, which is not provisioned"),
        ("20=0", "the mix gives no band a part"),
    ] {
        refused(&["replay", "--mix", mix], &format!("error: --mix under strict: {why}\n"));
    }
    refused(&["replay", "missing.csv"], "cannot read missing.csv");
    refused(&["replay", "--config", "missing.yaml", "--json", json], "cannot read missing.yaml");
    refused(&["replay", "--json", "no/such/dir/out.json"], "its directory does not exist");
    refused(&["replay", "--pool", "chat"], "strict: expected --pool with one of demo, got chat");

    let broken = write(&dir, "broken.csv", &format!("{HEADER}0,0,a,k,1,1\n1,0,a,k,many,1\n"));
    refused(
        &["replay", &broken, "--json", json],
        "broken.csv: line 3: expected input_tokens as a whole number 0..=4294967295, got \"many\"",
    );
    let other = write(&dir, "broken.csv", "t_ms;band\n0;20\n");
    let header = "broken.csv: line 1: expected one of the header lines \"TIMESTAMP,";
    refused(&["replay", &other, "--json", json], header);
    let free = write(&dir, "free.csv", &format!("{HEADER}0,0,a,k,0,0\n"));
    let cost = "line 2: expected input and output tokens that sum to 1..=4294967295 (the cost), got cost 0";
    refused(&["replay", &free, "--json", json], cost);
    let unknown = write(&dir, "unknown.csv", &format!("{HEADER}0,0,a,k,1,1\n1,7,a,k,1,1\n"));
    let band = "line 3: expected a provisioned band (20, 10, 0), got 7";
    refused(&["replay", &unknown, "--json", json], band);
    assert_eq!(fs::read_dir(&dir).unwrap().count(), 3, "only the three traces are there");
}

/// The trace of the demonstration may lie in the tree the program was built in; no message says where that is.
#[test]
fn no_message_names_the_tree_the_program_was_built_in() {
    let elsewhere = scratch("elsewhere");
    for args in [["replay", "--mix", "7=1"], ["replay", "--pool", "chat"]] {
        let output = Command::new(env!("CARGO_BIN_EXE_bandgate"))
            .args(args)
            .current_dir(&elsewhere)
            .output()
            .unwrap();
        let message = stderr(&output);
        assert_eq!(output.status.code(), Some(2), "{args:?}: {message}");
        assert!(!message.contains(PACKAGE), "{message}");
    }
}

/// The report of a replay and its table.
fn report(test: &str, args: &[&str]) -> (Value, String) {
    let dir = scratch(test);
    let json = dir.join("out.json");
    let mut all = vec!["replay", "--json", json.to_str().unwrap()];
    all.extend(args);
    let output = bandgate(&all);
    assert!(output.status.success(), "{}", stderr(&output));
    assert_eq!(stderr(&output), "", "no progress bar away from a terminal");
    (serde_json::from_str(&fs::read_to_string(&json).unwrap()).unwrap(), stdout(&output))
}

fn number(value: &Value) -> u64 {
    value.as_u64().unwrap_or_else(|| panic!("{value} is no whole number"))
}

fn list(value: &Value) -> &[Value] {
    value.as_array().unwrap()
}

/// Shares are 60/30/10 within one round while every band waits, the lowest band is served every round, and only
/// strict starves it.
fn check_shares(report: &Value) {
    for config in list(&report["configs"]) {
        let (name, bands) = (&config["name"], list(&config["bands"]));
        let all = number(&config["all_backlogged_dispatches"]);
        assert!(all >= 2000, "{name}: {all}");
        let strict = config["schedule"] == "strict";
        assert_eq!(bands[2]["starved"], strict, "{name}");
        if strict {
            continue;
        }
        let round = number(&config["round"]);
        assert_eq!(round, 10);
        for (band, weight) in bands.iter().zip([6, 3, 1]) {
            let got = number(&band["dispatched_all_backlogged"]);
            assert!((got * 10).abs_diff(all * weight) <= round * 10, "{name}: {got} of {all}");
        }
        assert!(number(&bands[2]["longest_gap_all_backlogged"]) < round, "{name}");
    }
}

#[test]
fn the_demo_shows_strict_starving_and_both_weighted_schedules_sharing() {
    let dir = scratch("demo-picture");
    let svg = dir.join("waits.svg");
    let (report, table) = report("demo", &["--svg", svg.to_str().unwrap()]);
    check_shares(&report);
    assert_eq!((number(&report["rows"]), number(&report["slots"])), (8819, 8));
    let names: Vec<&Value> = list(&report["configs"]).iter().map(|c| &c["name"]).collect();
    assert_eq!(names, ["strict", "wfq-priority-first", "wfq-interleaved"]);
    for config in list(&report["configs"]) {
        let dispatched: u64 = list(&config["bands"]).iter().map(|b| number(&b["dispatched"])).sum();
        assert_eq!(dispatched, 8819, "every request of {} ran", config["name"]);
    }
    assert!(table.lines().all(|line| line.chars().count() <= 100), "{table}");
    assert_eq!(table.matches("20 interactive").count(), 3);
    let picture = fs::read_to_string(&svg).unwrap();
    assert!(picture.starts_with("<svg") && picture.contains("wfq-interleaved (8 slots)"));
}

#[test]
fn shares_hold_for_1_2_8_and_64_slots() {
    for (slots, speedup) in [("1", "20"), ("2", "20"), ("8", "40"), ("64", "300")] {
        let args = ["--slots", slots, "--speedup", speedup];
        let (report, _) = report(&format!("slots-{slots}"), &args);
        check_shares(&report);
        assert_eq!(report["slots"].to_string(), slots);
    }
}

#[test]
fn the_other_committed_traces_replay_under_configurations_from_files() {
    let traces = [
        ("AzureLLMInferenceTrace_conv.csv", 19_366),
        ("servegen_mlarge_peakhour_sample.csv", 35_992),
    ];
    for (name, rows) in traces {
        let path = format!("{PACKAGE}/../benches/traces/{name}");
        let (strict, wfq) = (example("strict"), example("wfq-interleaved"));
        let args = [&path, "--config", &strict, "--config", &wfq, "--speedup", "2"];
        let (report, table) = report(name, &args);
        assert_eq!(number(&report["rows"]), rows);
        assert_eq!(list(&report["configs"]).len(), 2);
        assert!(table.contains("replay-strict: strict, 8 slots"), "{table}");
    }
}

#[test]
fn a_replay_gives_the_same_report_twice_and_another_one_for_another_seed() {
    let args = |seed: &'static str| ["--seed", seed, "--speedup", "5", "--slots", "4"];
    let first = report("seed-a", &args("1")).0;
    assert_eq!(first, report("seed-b", &args("1")).0);
    assert_ne!(first["configs"], report("seed-c", &args("2")).0["configs"]);
}

#[test]
fn configurations_of_the_same_name_are_told_apart() {
    let text = fs::read_to_string(example("strict")).unwrap();
    let a = write(&scratch("same-name-a"), "x.yaml", &text);
    let b = write(&scratch("same-name-b"), "x.yaml", &text);
    let two = format!("{HEADER}0,20,a,k,1,1\n1,0,a,k,1,1\n");
    let csv = write(&scratch("same-name-csv"), "two.csv", &two);
    let (report, _) = report("same-name", &[&csv, "--config", &a, "--config", &b]);
    assert_eq!(report["configs"][0]["name"], a.as_str());
    assert_eq!(report["configs"][1]["name"], b.as_str());
    assert_eq!(report["configs"][0]["bands"][1]["wait_ms"], Value::Null);
}

#[cfg(target_os = "linux")]
#[test]
fn a_device_is_written_to_and_a_link_followed_but_neither_is_replaced() {
    let dir = scratch("devices");
    let trace = write(&dir, "t.csv", &format!("{HEADER}0,,,,1,1\n"));
    let real = write(&dir, "real.json", "old");
    let (full, link) = (dir.join("full.json"), dir.join("link.json"));
    std::os::unix::fs::symlink("/dev/full", &full).unwrap();
    std::os::unix::fs::symlink(&real, &link).unwrap();
    let output = bandgate(&["replay", &trace, "--json", full.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(2), "a full device took a report");
    assert!(fs::symlink_metadata(&full).unwrap().is_symlink());
    let output = bandgate(&["replay", &trace, "--json", link.to_str().unwrap()]);
    assert!(output.status.success(), "{}", stderr(&output));
    assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
    assert!(fs::read_to_string(&real).unwrap().starts_with('{'));
}
