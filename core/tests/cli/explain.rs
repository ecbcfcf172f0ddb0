//! `bandgate explain` from outside, and its answers beside what a real engine does.

use core::future::Future;
use core::pin::Pin;
use core::task::{Context, Poll, Waker};
use std::fs;

use bandgate_core::config::Config;
use bandgate_core::{Engine, Request};
use serde_json::Value;

use super::{bandgate, refused, scratch, stderr, stdout, write};

const BANDS: &str = "bands: [{priority: 20, name: interactive}, {priority: 10, name: batch, ceiling: 0.7}, \
    {priority: 0, ceiling: 0.3}]";
const WFQ: &str = "bandSelection: {type: cross-band-fairness-policy, parameters: {activationThreshold: 0.5, \
    schedule: interleaved, distribution: explicit, ratios: {20: 0.5, 10: 0.3, 0: 0.2}}}";

fn config(test: &str, pool: &str) -> String {
    let text = format!(
        "engine: {{maxRequests: 100}}\n{BANDS}\npools:\n  chat: {{{pool}}}\n\
         tenants: {{acme: {{maxInFlight: 4}}, none: {{maxInFlight: 0}}}}\nkeys: {{k-1: {{tenant: acme, maxInFlight: 2}}}}\n"
    );
    write(&scratch(test), "conf.yaml", &text)
}

fn explain(config: &str, args: &[&str]) -> (Value, String) {
    let mut all = vec!["explain", config];
    all.extend(args);
    let text = bandgate(&all);
    all.push("--json");
    let json = bandgate(&all);
    assert!(text.status.success() && json.status.success(), "{args:?}: {}", stderr(&json));
    (serde_json::from_str(&stdout(&json)).unwrap(), stdout(&text))
}

/// Verdict, reason and rule.
fn verdict(answer: &Value) -> [&str; 3] {
    let outcome = &answer["outcome"];
    ["verdict", "reason", "rule"].map(|key| outcome[key].as_str().unwrap_or("-"))
}

#[test]
fn each_rule_decides_in_its_turn_and_says_so() {
    let config = config("explain-rules", &format!("slots: 10, maxCost: 500, {WFQ}"));
    let cases: [(&[&str], [&str; 3]); 14] = [
        (&["--band", "7", "--saturation", "0"], ["rejected", "unknown_band", "band"]),
        (&["--band", "7", "--saturation", "0", "--closed"], ["rejected", "unknown_band", "band"]),
        (&["--band", "0", "--saturation", "0", "--cost", "0"], ["rejected", "too_large", "cost"]),
        (&["--band", "0", "--saturation", "0", "--cost", "501"], ["rejected", "too_large", "cost"]),
        (
            &["--band", "0", "--saturation", "0", "--closed"],
            ["rejected", "shutting_down", "closed"],
        ),
        (
            &["--band", "0", "--saturation", "0", "--tenant", "none"],
            ["rejected", "tenant_queue_full", "caps"],
        ),
        (
            &["--band", "20", "--saturation", "0", "--tenant", "acme", "--in-flight", "4"],
            ["waits", "-", "caps"],
        ),
        (
            &[
                "--band",
                "20",
                "--saturation",
                "0",
                "--tenant",
                "acme",
                "--key",
                "k-1",
                "--in-flight",
                "2",
            ],
            ["waits", "-", "caps"],
        ),
        (
            &[
                "--band",
                "20",
                "--saturation",
                "0",
                "--tenant",
                "acme",
                "--in-flight",
                "3",
                "--cost",
                "500",
            ],
            ["runs", "-", "slots"],
        ),
        (&["--band", "batch", "--saturation", "0.69"], ["waits", "-", "gate"]),
        (&["--band", "batch", "--saturation", "0.6"], ["runs", "-", "slots"]),
        (&["--band", "interactive", "--saturation", "1"], ["waits", "-", "slots"]),
        (&["--band", "0", "--saturation", "0.2", "--waiting", "0=9"], ["waits", "-", "gate"]),
        (
            &["--band", "0", "--saturation", "1", "--waiting", "0=100"],
            ["rejected", "queue_full", "queue_room"],
        ),
    ];
    for (args, expected) in cases {
        let (answer, text) = explain(&config, args);
        assert_eq!(verdict(&answer), expected, "{args:?}");
        let deciding: Vec<&Value> =
            answer["steps"].as_array().unwrap().iter().filter(|s| s["decides"] == true).collect();
        assert_eq!(deciding.len(), 1, "{args:?}: {answer}");
        assert_eq!(deciding[0]["rule"], expected[2], "{args:?}");
        assert_eq!(text.lines().filter(|line| line.starts_with("=>")).count(), 1, "{text}");
        if expected[1] != "-" {
            assert!(text.contains(&format!("\nrejected: {}\n", expected[1])), "{text}");
        }
    }
}

#[test]
fn gate_mode_and_order_are_told_with_their_numbers() {
    let config = config("explain-steps", &format!("slots: 10, {WFQ}"));
    let (answer, text) = explain(&config, &["--band", "10", "--saturation", "0.7"]);
    for line in [
        "5. saturation  0.7: 7 of 10 slots run (0.700), the least that reach it",
        "6. gate        band 10 (batch) is gated: saturation 0.700 >= ceiling 0.700 (7 of 10 slots)",
        "7. mode        wfq interleaved: 8 of 10 slots, this dispatch included, reaches activationThreshold 0.5",
        "waits\nby gate: band 10 (batch) is gated: until the saturation is below 0.700\n",
        "nobody goes first; its turn comes when 1 request ends, if nobody else arrives",
    ] {
        assert!(text.contains(line), "{line}\n{text}");
    }
    let gate = &answer["steps"][5];
    let states: Vec<(i64, bool, u64, u64)> = gate["bands"]
        .as_array()
        .unwrap()
        .iter()
        .map(|band| {
            let count = |key: &str| band[key].as_u64().unwrap();
            (
                band["priority"].as_i64().unwrap(),
                band["gated"] == true,
                count("ceiling_slots"),
                count("weight"),
            )
        })
        .collect();
    assert_eq!(states, [(20, false, 10, 5), (10, true, 7, 3), (0, true, 3, 2)]);
    let (_, low) = explain(&config, &["--band", "10", "--saturation", "0.3"]);
    assert!(low.contains("strict: 4 of 10 slots, this dispatch included, is below"), "{low}");
}

#[test]
fn a_gauge_or_detector_is_taken_as_read_and_one_slot_as_free() {
    for (source, who) in
        [("gauge", "the host set it"), ("utilization-detector", "reads the backends")]
    {
        let config =
            config(&format!("explain-{source}"), &format!("slots: 4, saturation: {source}"));
        let (gated, text) = explain(&config, &["--band", "0", "--saturation", "0.3"]);
        assert_eq!(verdict(&gated), ["waits", "-", "gate"]);
        assert!(text.contains(who) && text.contains("does not come while all stays"), "{text}");
        let (open, text) = explain(&config, &["--band", "0", "--saturation", "0.29"]);
        assert_eq!(verdict(&open), ["runs", "-", "slots"]);
        assert!(text.contains("note: this saturation says nothing of slots: 3 of 4"), "{text}");
        let (beyond, _) = explain(&config, &["--band", "20", "--saturation", "2.5"]);
        assert_eq!(verdict(&beyond), ["waits", "-", "gate"]);
    }
}

#[test]
fn bad_input_names_the_option_what_was_given_and_what_is_expected() {
    let config = config("explain-bad", "slots: 4");
    let ask = |rest: &[&str], expected: &str| {
        let mut all = vec!["explain", config.as_str()];
        all.extend(rest);
        refused(&all, expected);
    };
    ask(
        &["--band", "bulk", "--saturation", "0"],
        "--band: expected a provisioned band (20 (interactive), 10 (batch), 0), got bulk",
    );
    ask(
        &["--band", "0", "--saturation", "0", "--waiting", "7=1"],
        "--waiting: expected a provisioned band (20 (interactive), 10 (batch), 0), got 7",
    );
    ask(&["--band", "0", "--saturation", "0", "--waiting", "10"], "expected BAND=N, as 20=3");
    ask(
        &["--band", "0", "--saturation", "0", "--waiting", "10=1", "--waiting", "batch=2"],
        "--waiting: band batch is named twice",
    );
    for wrong in ["-1", "NaN", "inf", "full"] {
        ask(
            &["--band", "0", "--saturation", wrong],
            "expected a number, 0 (idle) and up; 1 is full",
        );
    }
    ask(&["--band", "0"], "--saturation <S>");
    ask(&["--saturation", "0"], "--band <PRIORITY|NAME>");
    ask(&["--band", "0", "--saturation", "0", "--pool", "code"], "got code");
    ask(&["--band", "0", "--saturation", "0", "--key", "k-1"], "--tenant <NAME>");
    ask(&["--band", "0", "--saturation", "0", "--tenant", ""], "expected a name of 1 to 256 bytes");
    refused(
        &["explain", "no/such.yaml", "--band", "0", "--saturation", "0"],
        "cannot read no/such.yaml",
    );
    let help = stdout(&bandgate(&["explain", "--help"]));
    assert!(help.contains("Examples:") && help.contains("--waiting 20=3 --waiting 0=50"), "{help}");
}

#[test]
fn a_pool_that_only_observes_runs_what_it_would_hold_back() {
    let path = config("explain-observe", "slots: 4, mode: observe");
    let (answer, text) = explain(&path, &["--band", "0", "--saturation", "1"]);
    assert_eq!(verdict(&answer), ["runs", "-", "observe"]);
    assert!(text.contains("under enforce it would wait"), "{text}");
    let (answer, text) = explain(&path, &["--band", "20", "--saturation", "0", "--tenant", "none"]);
    assert_eq!(verdict(&answer), ["runs", "-", "observe"]);
    assert!(text.contains("be rejected (tenant_queue_full)"), "{text}");
    // What holds in every mode is said as under enforce.
    let (answer, _) = explain(&path, &["--band", "7", "--saturation", "0"]);
    assert_eq!(verdict(&answer), ["rejected", "unknown_band", "band"]);
    let (answer, _) = explain(&path, &["--band", "20", "--saturation", "0"]);
    assert_eq!(verdict(&answer), ["runs", "-", "slots"]);
}

#[test]
fn an_exempt_flow_runs_beside_the_slots_unless_the_request_itself_is_wrong() {
    for mode in ["enforce", "observe"] {
        let pool = format!("slots: 4, maxCost: 10, mode: {mode}");
        let path = config(&format!("explain-exempt-{mode}"), &pool);
        let text = fs::read_to_string(&path).unwrap();
        let text = text
            .replace("none: {", "none: {exempt: true, ")
            .replace("k-1: {", "k-1: {exempt: true, ");
        fs::write(&path, text).unwrap();
        for (tenant, key, whose) in [("none", "none", "tenant"), ("acme", "k-1", "key")] {
            let args = ["--band", "0", "--saturation", "1", "--tenant", tenant, "--key", key];
            let (answer, text) = explain(&path, &args);
            assert_eq!(verdict(&answer), ["runs", "-", "exempt"], "{mode}");
            assert!(text.contains(&format!("its {whose} is exempt")), "{text}");
            let (answer, _) = explain(&path, &[&args[..], &["--closed"]].concat());
            assert_eq!(verdict(&answer), ["rejected", "shutting_down", "closed"]);
            let (answer, _) = explain(&path, &[&args[..], &["--cost", "11"]].concat());
            assert_eq!(verdict(&answer), ["rejected", "too_large", "cost"]);
        }
    }
}

#[test]
fn an_unknown_priority_is_explained_as_the_band_that_would_be_made_of_it() {
    let pool = "slots: 10, unknownPriority: template, maxBands: 4, negativeBandTemplate: {fairness: round-robin}";
    let path = config("explain-template", pool);
    let (answer, text) = explain(&path, &["--band", "-3", "--saturation", "0.2"]);
    assert_eq!(verdict(&answer), ["runs", "-", "slots"]);
    assert!(
        text.contains("-3 is made by unknownPriority: template (RoundRobin among flows"),
        "{text}"
    );
    // Its ceiling is that of the nearest band below it, else of the lowest.
    let (answer, _) = explain(&path, &["--band", "-3", "--saturation", "0.3"]);
    assert_eq!(verdict(&answer), ["waits", "-", "gate"]);
    let (answer, _) = explain(&path, &["--band", "15", "--saturation", "0.7"]);
    assert_eq!(verdict(&answer), ["waits", "-", "gate"]);
    let (answer, _) = explain(&path, &["--band", "15", "--saturation", "0.6"]);
    assert_eq!(verdict(&answer), ["runs", "-", "slots"]);
    let full = config("explain-no-room", &pool.replace("maxBands: 4", "maxBands: 3"));
    let (answer, text) = explain(&full, &["--band", "15", "--saturation", "0"]);
    assert_eq!(verdict(&answer), ["rejected", "unknown_band", "band"]);
    assert!(text.contains("maxBands has room for 3"), "{text}");
}

/// What a real engine does in the state a question describes: whether the request runs at once, else who is served
/// before it and after how many releases it is.
fn engine(
    path: &str,
    running: usize,
    band: i32,
    waiting: &[(i32, usize)],
) -> Option<(Vec<u64>, u64)> {
    let config = Config::load(&fs::read_to_string(path).unwrap(), [], "conf").unwrap();
    let engine = Engine::start(&config.settings).unwrap();
    let pool = engine.pool("chat").unwrap();
    let request = |priority| Request::new(pool.band(priority).unwrap()).no_timeout();
    let mut permits: Vec<_> = (0..running).map(|_| pool.try_admit(&request(20)).unwrap()).collect();
    let mut futures: Vec<(i32, bool, _)> = waiting
        .iter()
        .flat_map(|&(priority, count)| (0..count).map(move |_| priority))
        .map(|priority| (priority, false, Box::pin(pool.admit(request(priority)))))
        .collect();
    futures.push((band, true, Box::pin(pool.admit(request(band)))));
    let mut before = vec![0; waiting.len()];
    let mut context = Context::from_waker(Waker::noop());
    for releases in 0..=200 {
        // The grants of one release are looked at together: the order among them does not show, their number does.
        let mut left = Vec::new();
        let mut is_served = false;
        for (priority, is_asked, mut future) in futures {
            match Pin::new(&mut future).poll(&mut context) {
                Poll::Ready(permit) => {
                    permits.push(permit.unwrap());
                    is_served |= is_asked;
                    let at = waiting.iter().position(|(p, _)| *p == priority && !is_asked);
                    if let Some(at) = at {
                        before[at] += 1;
                    }
                }
                Poll::Pending => left.push((priority, is_asked, future)),
            }
        }
        if is_served {
            return (releases > 0).then_some((before, releases));
        }
        futures = left;
        drop(permits.remove(0));
    }
    panic!("never served");
}

#[test]
fn the_answers_are_what_a_real_engine_does() {
    for (name, selection) in [("strict", ""), ("wfq", WFQ)] {
        let config = config(&format!("explain-engine-{name}"), &format!("slots: 10, {selection}"));
        for running in 0..=10_usize {
            for band in [20, 10, 0] {
                let saturation = format!("{}.{}", running / 10, running % 10);
                let band_text = band.to_string();
                let args = ["--band", &band_text, "--saturation", &saturation];
                let (answer, _) = explain(&config, &args);
                let expected = engine(&config, running, band, &[]).is_none();
                let runs = answer["outcome"]["verdict"] == "runs";
                assert_eq!(runs, expected, "{name}, band {band}, {running} running");
            }
        }
        for (band, waiting) in [(20, [3, 2, 2]), (10, [6, 3, 1]), (10, [0, 0, 4]), (0, [2, 2, 1])] {
            let states = [(20, waiting[0]), (10, waiting[1]), (0, waiting[2])];
            let counts: Vec<String> =
                states.iter().map(|(priority, count)| format!("{priority}={count}")).collect();
            let band_text = band.to_string();
            let mut args = vec!["--band", band_text.as_str(), "--saturation", "1"];
            args.extend(counts.iter().flat_map(|count| ["--waiting", count.as_str()]));
            let (answer, _) = explain(&config, &args);
            let (before, releases) = engine(&config, 10, band, &states).unwrap();
            let told = |priority: i32| {
                let all = answer["outcome"]["before"].as_array().unwrap();
                let of = all.iter().find(|b| b["band"] == priority);
                of.map_or(0, |b| b["dispatches"].as_u64().unwrap())
            };
            let told: Vec<u64> = states.iter().map(|(priority, _)| told(*priority)).collect();
            assert_eq!(told, before, "{name}: {args:?}");
            assert_eq!(answer["outcome"]["releases"], releases, "{name}: {args:?}");
        }
    }
}
