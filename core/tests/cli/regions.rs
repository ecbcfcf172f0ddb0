//! What a replay tells of ceilings: the regions of saturation, and that no gated band was ever dispatched.

use serde_json::Value;

use super::{PACKAGE, list, number, report, scratch, write};

const BANDS: &str = "bands: [{priority: 20, ceiling: 1.0}, {priority: 10, ceiling: 0.7}, {priority: 0, ceiling: 0.3}]";

fn replayed(test: &str, selection: &str, more: &str) -> Value {
    let text = format!("{BANDS}\npools: {{chat: {{slots: 10, {selection}}}}}\n{more}");
    let config = write(&scratch(&format!("{test}-config")), "conf.yaml", &text);
    let trace = format!("{PACKAGE}/../benches/traces/AzureLLMInferenceTrace_conv.csv");
    let (report, _) = report(test, &[&trace, "--config", &config, "--speedup", "2"]);
    list(&report["configs"])[0].clone()
}

/// Ceilings 1.0, 0.7 and 0.3 with weights from 0.5 on, on the committed conversation trace.
#[test]
fn the_conversation_trace_runs_through_three_regions_and_no_gated_band_is_dispatched() {
    for schedule in ["priority-first", "interleaved"] {
        let wfq = format!(
            "bandSelection: {{type: cross-band-fairness-policy, parameters: {{activationThreshold: 0.5, schedule: {schedule}}}}}"
        );
        let config = replayed(&format!("regions-{schedule}"), &wfq, "");
        assert_eq!(number(&config["gated_dispatches"]), 0, "{schedule}");
        let regions = list(&config["regions"]);
        let told: Vec<_> = regions
            .iter()
            .map(|it| {
                (it["from"].as_f64(), it["to"].as_f64(), &it["running"], &it["open"], &it["modes"])
            })
            .map(|(from, to, running, open, modes)| {
                (from, to, running.to_string(), open.to_string(), modes.to_string())
            })
            .collect();
        let row = |from, to, running: &str, open: &str, modes: &str| {
            (Some(from), Some(to), running.to_owned(), open.to_owned(), modes.to_owned())
        };
        assert_eq!(
            told,
            [
                row(0.0, 0.3, "[0,2]", "[20,10,0]", "[\"strict\"]"),
                row(0.3, 0.7, "[3,6]", "[20,10]", "[\"strict\",\"wfq\"]"),
                row(0.7, 1.0, "[7,9]", "[20]", "[\"wfq\"]"),
            ]
        );
        let mut all = 0;
        for region in regions {
            let open: Vec<i64> = list(&region["open"]).iter().filter_map(Value::as_i64).collect();
            for priority in [20, 10, 0] {
                let count = number(&region["dispatches"][priority.to_string()]);
                all += count;
                assert_eq!(count > 0, open.contains(&priority), "{schedule}: {region}");
            }
        }
        assert_eq!(all, number(&config["dispatches"]), "every dispatch is in a region");
    }
}

#[test]
fn a_pool_whose_ceilings_move_has_no_regions_to_tell() {
    let text = "pools: {chat: {slots: 10, holdback: soft-reflective-ceiling-policy}}";
    let config = write(&scratch("regions-none-config"), "conf.yaml", text);
    let (report, _) = report("regions-none", &["--config", &config, "--speedup", "20"]);
    let config = &list(&report["configs"])[0];
    assert_eq!((&config["regions"], &config["gated_dispatches"]), (&Value::Null, &Value::Null));
}
