//! The key table and all that is made of it.

use std::collections::HashSet;
use std::path::Path;

use serde_json::Value;

use crate::types::settings::{DriverKind, Settings};

use super::super::env::segment;
use super::super::keys::{Key, Kind, POLICY, ROOT};
use super::super::plugins::{self, Role, Status};
use super::super::{reference_markdown, schema};
use super::load;

/// One place of the table where keys stand: how a document gets there, and its path.
struct Place {
    keys: &'static [Key],
    open: String,
    close: String,
    path: String,
}

fn places() -> Vec<Place> {
    let mut all =
        vec![Place { keys: ROOT, open: "{".into(), close: "}".into(), path: String::new() }];
    let mut next = 0;
    while next < all.len() {
        let (keys, open, close, path) = (
            all[next].keys,
            all[next].open.clone(),
            all[next].close.clone(),
            all[next].path.clone(),
        );
        next += 1;
        for key in keys.iter().filter(|key| !key.later) {
            let below =
                if path.is_empty() { key.name.into() } else { format!("{path}.{}", key.name) };
            let mut add = |keys, head: &str, tail: &str, path: String| {
                let (open, close) =
                    (format!("{open}{}: {head}", key.name), format!("{tail}{close}"));
                all.push(Place { keys, open, close, path });
            };
            match key.kind {
                Kind::Object(keys) => add(keys, "{", "}", below),
                Kind::List(keys) => add(keys, "[{", "}]", format!("{below}[0]")),
                Kind::Named(keys) => add(keys, "{n: {", "}}", format!("{below}.n")),
                Kind::Policy(_) => add(POLICY, "{", "}", below),
                Kind::Parameters => {
                    for plugin in plugins::available() {
                        if let Status::Now(keys) = plugin.status {
                            add(keys, "{", &format!("}}, type: {}", plugin.name), below.clone());
                        }
                    }
                }
                _ => {}
            }
        }
    }
    all
}

/// A key with one letter dropped, changed, doubled, or swapped with the next.
fn mutations(name: &str) -> Vec<String> {
    let letters: Vec<char> = name.chars().collect();
    let mut out = Vec::new();
    for i in 0..letters.len() {
        let mut dropped = letters.clone();
        dropped.remove(i);
        let mut changed = letters.clone();
        changed[i] = 'q';
        let mut doubled = letters.clone();
        doubled.insert(i, letters[i]);
        let mut swapped = letters.clone();
        swapped.swap(i, (i + 1) % letters.len());
        out.extend(
            [dropped, changed, doubled, swapped].map(|all| all.into_iter().collect::<String>()),
        );
    }
    out
}

#[test]
fn every_key_mistyped_by_one_letter_is_refused_with_its_path_and_the_key() {
    let mut tried = 0;
    for Place { keys, open, close, path } in places() {
        for key in keys.iter().filter(|key| !key.later) {
            for word in mutations(key.name) {
                if keys.iter().any(|key| key.name == word) {
                    continue;
                }
                let text = format!("{open}{word}: 1{close}");
                let wanted = if path.is_empty() { word.clone() } else { format!("{path}.{word}") };
                let error = load(&text).expect_err(&text);
                let fault = error.faults.iter().find(|fault| fault.path == wanted);
                let fault =
                    fault.unwrap_or_else(|| panic!("{text}: no fault at {wanted}: {error}"));
                assert_eq!(
                    (fault.message.as_str(), fault.line),
                    ("unknown key", Some(1)),
                    "{text}"
                );
                // `eactivationThreshold` is as near to one key as to another: then either will do.
                let near = fault.suggestion.as_deref().unwrap_or_default();
                let distance = |name| strsim::damerau_levenshtein(&word, name);
                assert!(near == key.name || distance(near) == distance(key.name), "{text}: {near}");
                tried += 1;
            }
        }
    }
    assert!(tried > 2_000, "{tried}");
}

#[test]
fn every_key_that_comes_later_is_refused_as_known() {
    let mut tried = 0;
    for Place { keys, open, close, path } in places() {
        for key in keys.iter().filter(|key| key.later) {
            let name = key.name;
            let error = load(&format!("{open}{name}: 1{close}")).unwrap_err();
            let wanted = if path.is_empty() { name.into() } else { format!("{path}.{name}") };
            let message = format!("`{name}` is known but not available in this version");
            assert!(
                error.faults.iter().any(|f| f.path == wanted && f.message == message),
                "{error}"
            );
            tried += 1;
        }
    }
    // Falls as keys are built; only that the walk finds them at all is meant.
    assert!(tried > 10, "{tried}");
}

/// The least whole number above the end of an interval.
fn whole_above(end: f64) -> i64 {
    (0..=1_000_000).find(|&n| f64::from(n) > end).unwrap().into()
}

#[test]
fn every_number_is_refused_just_outside_its_range_and_taken_at_its_ends() {
    let mut tried = 0;
    for Place { keys, open, close, path } in places() {
        for key in keys.iter().filter(|key| !key.later) {
            let (inside, outside) = match key.kind {
                Kind::Int { min, max, .. } => (vec![min, max], vec![min - 1, max + 1]),
                Kind::Float(interval) => (Vec::new(), vec![-1, whole_above(interval.max)]),
                _ => continue,
            };
            let wanted =
                if path.is_empty() { key.name.into() } else { format!("{path}.{}", key.name) };
            let ranged = |value: i64| {
                let result = load(&format!("{open}{}: {value}{close}", key.name));
                let start = format!("{value} is out of range: use {}", key.kind.range());
                let faults = result.err().map_or_else(Vec::new, |error| error.faults);
                faults.iter().any(|f| f.path == wanted && f.message == start)
            };
            assert!(inside.into_iter().all(|v| !ranged(v)), "{wanted}");
            assert!(outside.into_iter().all(ranged), "{wanted}");
            tried += 1;
        }
    }
    assert!(tried > 15, "{tried}");
}

#[test]
fn the_defaults_of_the_table_are_those_of_the_settings() {
    let stated = |keys: &[Key], name: &str| {
        keys.iter().find(|key| key.name == name).unwrap().default.to_string()
    };
    let all = places();
    let of = |path: &str| all.iter().find(|place| place.path == path).unwrap().keys;
    let (engine, pool) = (of("engine"), of("pools.n"));
    let settings = Settings::default();
    assert_eq!(stated(engine, "shards"), settings.shards.to_string());
    assert_eq!(stated(engine, "maxRequests"), settings.max_requests.to_string());
    assert_eq!(stated(engine, "defaultPoolSlots"), settings.pools[0].slots.to_string());
    let seeds = stated(of("flowControl"), "defaultRequestTTL");
    assert_eq!(seeds, format!("{:?}", settings.admission_timeout.unwrap()));
    let ours = stated(engine, "admissionTimeout");
    assert_eq!(ours, format!("that of `flowControl.defaultRequestTTL`, else {seeds}"));
    assert_eq!(stated(pool, "maxCost"), settings.pools[0].max_cost.to_string());
    assert_eq!(stated(pool, "maxFlows"), settings.pools[0].max_flows.to_string());
    assert_eq!((settings.ceiling, settings.driver), (None, DriverKind::Inline));
}

#[test]
fn no_two_keys_of_an_object_share_a_variable() {
    for Place { keys, path, .. } in places() {
        let segments: HashSet<String> = keys.iter().map(|key| segment(key.name)).collect();
        assert_eq!(segments.len(), keys.len(), "{path}");
    }
}

#[test]
fn names_are_unique_in_every_object_and_among_the_plugin_types() {
    for Place { keys, path, .. } in places() {
        let names: HashSet<&str> = keys.iter().map(|key| key.name).collect();
        assert_eq!(names.len(), keys.len(), "{path}");
        for key in keys.iter().filter(|key| !key.later) {
            assert!(key.about.ends_with('.'), "{path}.{}", key.name);
        }
    }
    let names: HashSet<&str> = plugins::TYPES.iter().map(|t| t.name).collect();
    assert_eq!(names.len(), plugins::TYPES.len());
}

#[test]
fn the_committed_reference_is_the_generated_one() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("CONFIG.md");
    let generated = reference_markdown();
    if std::env::var_os("BANDGATE_BLESS").is_some_and(|value| value == "1") {
        std::fs::write(&path, &generated).unwrap();
    }
    let committed = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        committed == generated,
        "core/CONFIG.md is not what the key table gives; write it anew with\n\
         BANDGATE_BLESS=1 cargo test -p bandgate-core --lib config"
    );
}

/// The object schemas of a schema, with those of `allOf` branches.
fn objects<'a>(schema: &'a Value, out: &mut Vec<&'a Value>) {
    match schema {
        Value::Object(map) => {
            if map.contains_key("properties") && !map.contains_key("const") {
                out.push(schema);
            }
            map.values().for_each(|value| objects(value, out));
        }
        Value::Array(items) => items.iter().for_each(|value| objects(value, out)),
        _ => {}
    }
}

#[test]
fn the_schema_has_every_key_of_this_version_and_refuses_others() {
    let schema = schema();
    let mut all = Vec::new();
    objects(&schema, &mut all);
    // `if` and `then` narrow an object that is closed already.
    let closed: Vec<&&Value> = all.iter().filter(|o| o.get("type").is_some()).collect();
    assert!(closed.iter().all(|object| object["additionalProperties"] == false));
    for Place { keys, path, .. } in places() {
        let names: HashSet<&str> = keys.iter().filter(|k| !k.later).map(|k| k.name).collect();
        let found = closed.iter().any(|object| {
            let properties = object["properties"].as_object().unwrap();
            properties.keys().map(String::as_str).collect::<HashSet<_>>() == names
        });
        assert!(found, "{path}: {names:?}");
    }
    let slots = &schema["properties"]["pools"]["additionalProperties"]["properties"]["slots"];
    assert_eq!((&slots["minimum"], &slots["maximum"]), (&1.into(), &(1 << 20).into()));
}

#[test]
fn a_policy_key_offers_only_types_of_its_role() {
    let schema = schema();
    let pool = &schema["properties"]["pools"]["additionalProperties"]["properties"];
    for (key, role) in [
        ("bandSelection", Role::BandSelection),
        ("holdback", Role::UsageLimit),
        ("saturation", Role::Saturation),
    ] {
        let offered = &pool[key]["anyOf"][1]["properties"]["type"]["enum"];
        for name in offered.as_array().unwrap() {
            assert_eq!(plugins::find(name.as_str().unwrap()).unwrap().role, role);
        }
        assert!(!offered.as_array().unwrap().is_empty());
    }
}
