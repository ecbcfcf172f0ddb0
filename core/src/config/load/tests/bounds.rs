//! Hostile and broken documents: bounded, reported, never a panic.

use proptest::prelude::*;

use super::super::{Config, MAX_DOCUMENT};
use super::{faults, refused};

#[test]
fn what_is_not_yaml_is_one_fault_with_its_place() {
    refused(&[
        (
            "engine:\n\tshards: 1",
            &[
                "t.yaml:2: not readable as YAML: tabs disallowed within this context (block indentation)",
            ],
        ),
        ("a: [", &["t.yaml:1: not readable as YAML: unclosed bracket '['"]),
        (
            "version: 1\n---\nversion: 1",
            &["t.yaml:3: a second document begins here: a configuration is one document"],
        ),
        ("? [a]\n: b", &["t.yaml:1: not readable as YAML: expected string scalar"]),
    ]);
}

#[test]
fn bytes_that_are_not_utf8_are_one_fault_with_their_line() {
    let error = Config::load_bytes(b"version: 1\nkind: \xff", [], "t.yaml").unwrap_err();
    assert_eq!(error.to_string(), "t.yaml:2: not UTF-8: save the file as UTF-8");
    assert_eq!((error.faults[0].line, error.faults[0].column), (Some(2), Some(7)));
    assert_eq!(Config::load_bytes(b"version: 1", [], "t.yaml"), Config::load("", [], "t.yaml"));
}

#[test]
fn a_document_over_the_bound_is_refused_and_one_at_it_is_read() {
    let long = format!("#{}", "x".repeat(MAX_DOCUMENT));
    refused(&[(
        &long,
        &["t.yaml: 1048577 bytes are out of range: a document has at most 1048576"],
    )]);
    assert!(super::load(&long[..MAX_DOCUMENT]).is_ok());
}

#[test]
fn deep_nesting_and_alias_bombs_are_refused() {
    let deep = "[".repeat(100_000);
    assert_eq!(faults(&deep), ["t.yaml:1: not readable as YAML: recursion limit exceeded"]);
    let deep = format!("metadata: {}{}", "{a: ".repeat(40), "}".repeat(40));
    assert_eq!(faults(&deep).len(), 1);
    let mut bomb = String::from("metadata:\n  a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n");
    for i in 1..10 {
        let refs = vec![format!("*a{}", i - 1); 10].join(", ");
        bomb.extend(["  a".into(), i.to_string(), format!(": &a{i} [{refs}]\n")]);
    }
    let shown = faults(&bomb);
    assert!(shown.len() == 1 && shown[0].contains("not readable as YAML"), "{shown:?}");
}

#[test]
fn a_document_full_of_faults_lists_a_thousand_and_counts_the_rest() {
    let entries: Vec<String> = (0..1_500).map(|i| format!("  k{i}: {{tenant: t{i}}}\n")).collect();
    let shown = faults(&format!("keys:\n{}", entries.concat()));
    assert_eq!(shown.len(), 1_001);
    assert_eq!(shown[1_000], "t.yaml: 500 more faults are not listed: correct these first");
}

/// Fragments from which documents arise that get past the parser.
fn fragment() -> impl Strategy<Value = String> {
    prop_oneof![
        proptest::sample::select(vec![
            "engine",
            "pools",
            "bands",
            "priority",
            "plugins",
            "type",
            "parameters",
            "ratios",
            "keys",
            "tenant",
            "cross-band-fairness-policy",
            "priority-holdback-policy",
            "explicit",
            "domain",
            "ceilings",
            "flowControl",
            ": ",
            ": ",
            ": ",
            "\n",
            "\n",
            "\n  ",
            "\n    ",
            "- ",
            "{",
            "}",
            "[",
            "]",
            ", ",
            "1",
            "-1",
            "0.5",
            ".nan",
            "1e999",
            "~",
            "true",
            "30s",
            "1Ki",
            "&a ",
            "*a",
            "<<: ",
            "\"",
            "'",
            "#",
            "|",
            "!!int ",
            "\t",
            "\u{feff}",
        ])
        .prop_map(String::from),
        any::<char>().prop_map(String::from),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn arbitrary_bytes_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..512)) {
        let _ = Config::load_bytes(&bytes, [], "t.yaml");
    }

    #[test]
    fn arbitrary_fragments_never_panic(parts in proptest::collection::vec(fragment(), 0..64)) {
        let text: String = parts.concat();
        if let Err(error) = Config::load(&text, [], "t.yaml") {
            prop_assert!(!error.faults.is_empty());
        }
    }

    #[test]
    fn a_good_document_with_a_piece_replaced_never_panics(
        at in 0_usize..700, length in 0_usize..20, piece in fragment(),
    ) {
        let mut text = String::from(include_str!("../../../../tests/configs/wfq-interleaved-linear.yaml"));
        let start = at.min(text.len());
        let end = (start + length).min(text.len());
        text.replace_range(start..end, &piece);
        let _ = Config::load(&text, [], "t.yaml");
    }

    #[test]
    fn arbitrary_variables_never_panic(
        name in "BANDGATE__(ENGINE|POOLS|PLUGINS|BANDS|KEYS)(__[A-Z0-9_]{0,12}){0,4}", value in ".{0,12}",
    ) {
        let text = include_str!("../../../../tests/configs/wfq-explicit.yaml");
        let _ = Config::load(text, [(name, value)], "t.yaml");
    }
}
