//! What the reference says of a change is what a running engine does.

use crate::Engine;

use super::super::keys::{Key, Kind, ROOT};
use super::good;

/// Two different values that are in range.
fn values(kind: &Kind) -> Option<(String, String)> {
    match kind {
        Kind::Int { min, max, .. } if min < max => {
            let small = (*min).max(2).min(max - 1);
            Some((small.to_string(), (small + 1).to_string()))
        }
        Kind::Duration { .. } => Some(("5s".into(), "6s".into())),
        Kind::Flag => Some(("true".into(), "false".into())),
        Kind::Choice { now: [a, b, ..], .. } => Some(((*a).into(), (*b).into())),
        _ => None,
    }
}

fn keys(section: &str) -> &'static [Key] {
    match ROOT.iter().find(|key| key.name == section).unwrap().kind {
        Kind::Object(keys) | Kind::Named(keys) => keys,
        _ => panic!("{section} has no keys"),
    }
}

#[test]
fn a_reload_takes_what_the_table_calls_live_and_refuses_the_rest_by_name() {
    let mut tried = 0;
    for (section, open, close) in [
        ("engine", "engine: {", "}"),
        ("pools", "pools: {p: {", "}}"),
        ("tenants", "tenants: {t: {", "}}"),
        ("keys", "tenants: {t: {}}\nkeys: {k: {tenant: t, ", "}}"),
    ] {
        for key in keys(section).iter().filter(|key| !key.later) {
            let Some((one, other)) = values(&key.kind) else { continue };
            let document = |value: &str| format!("{open}{}: {value}{close}", key.name);
            let engine = Engine::start(&good(&document(&one)).settings).unwrap();
            let answer = engine.reload_text(&document(&other), [], "t.yaml");
            assert_eq!(answer.is_ok(), key.live, "{section}.{}: {answer:?}", key.name);
            if let Err(error) = answer {
                assert!(error.to_string().contains(key.name), "{section}.{}: {error}", key.name);
            }
            tried += 1;
        }
    }
    assert!(tried >= 20, "{tried}");
}
