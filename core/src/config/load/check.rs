//! The whole tree against the key table: unknown, repeated, missing and unavailable keys, types and ranges.

use super::fault::Faults;
use super::keys::{Key, Kind, POLICY};
use super::node::{Entry, Node, Value, with_earlier};
use super::plugins::{self, Status};
use super::value::{MAX_TEXT, check_name, describe, not_yet, number};

/// `parent.key`, with names that would read wrong in brackets.
pub(crate) fn join(parent: &str, key: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    if key.is_empty() || key.len() > MAX_TEXT || !key.chars().all(plain) {
        return format!("{parent}[{}]", super::value::quoted(key));
    }
    if parent.is_empty() { key.into() } else { format!("{parent}.{key}") }
}

/// Longest word and most names a suggestion is looked up for: a hostile document must not buy much work.
const SUGGEST_BYTES: usize = 64;
const SUGGEST_NAMES: usize = 256;

/// The nearest name, if it is near enough to be what was meant.
pub(crate) fn nearest<'a>(word: &str, names: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    if word.len() > SUGGEST_BYTES {
        return None;
    }
    // A third of the word may be wrong, at least two letters.
    let limit = (word.chars().count() / 3).max(2);
    names
        .filter(|name| name.len() <= SUGGEST_BYTES)
        .take(SUGGEST_NAMES)
        .map(|name| (strsim::damerau_levenshtein(word, name), name))
        .filter(|(distance, name)| *distance <= limit && *distance < name.chars().count())
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, name)| name)
}

/// The key this name stands for: available ones are suggested before those that come later.
pub(crate) fn nearest_key(word: &str, keys: &'static [Key]) -> Option<&'static str> {
    let available = keys.iter().filter(|k| !k.later).map(|k| k.name);
    nearest(word, available)
        .or_else(|| nearest(word, keys.iter().filter(|k| k.later).map(|k| k.name)))
}

/// The keys `parameters` has beside this `type`; none while the type is not known.
pub(crate) fn parameters_of(object: &Node) -> Option<&'static [Key]> {
    let Value::Str(name) = &object.get("type")?.value else { return None };
    match plugins::find(name)?.status {
        Status::Now(keys) => Some(keys),
        Status::Later => None,
    }
}

/// Notes every fault of an object and of everything below it.
pub(crate) fn object(faults: &mut Faults, path: &str, node: &Node, keys: &'static [Key]) {
    match &node.value {
        Value::Map(_) | Value::Null => {}
        other => {
            let message = format!("expected a mapping, got {}", describe(other));
            return faults.add(path, &node.at, message);
        }
    }
    for (entry, earlier) in with_earlier(node.entries()) {
        let child = join(path, &entry.key);
        if repeated(faults, &child, earlier, entry) {
            continue;
        }
        match keys.iter().find(|key| key.name == entry.key) {
            None => {
                let near = nearest_key(&entry.key, keys);
                faults.suggest(&child, &entry.key_at, "unknown key", near);
            }
            Some(key) if key.later => faults.add(&child, &entry.key_at, not_yet(key.name)),
            Some(Key { kind: Kind::Parameters, .. }) => {
                if let Some(keys) = parameters_of(node) {
                    object(faults, &child, &entry.node, keys);
                }
            }
            Some(key) => value(faults, &child, &entry.node, &key.kind),
        }
    }
    for key in keys.iter().filter(|key| key.required && node.get(key.name).is_none()) {
        let message = format!("missing: {} is required", key.kind.expects());
        faults.add(&join(path, key.name), &node.at, message);
    }
}

fn repeated(faults: &mut Faults, path: &str, first: Option<&Entry>, entry: &Entry) -> bool {
    let Some(first) = first else { return false };
    let line = first.key_at.line().unwrap_or_default();
    faults.add(path, &entry.key_at, format!("duplicate key, first on line {line}: remove one"));
    true
}

fn value(faults: &mut Faults, path: &str, node: &Node, kind: &Kind) {
    match kind {
        Kind::Anything | Kind::Parameters => {}
        Kind::Object(keys) => object(faults, path, node, keys),
        Kind::List(keys) => each(faults, path, node, |faults, path, item| {
            object(faults, path, item, keys);
        }),
        Kind::Texts => each(faults, path, node, |faults, path, item| {
            value(faults, path, item, &Kind::Text);
        }),
        Kind::Named(keys) => mapping(faults, path, node, kind, |faults, path, entry| {
            if let Err(message) = check_name(&entry.key) {
                faults.add(path, &entry.key_at, message);
            }
            object(faults, path, &entry.node, keys);
        }),
        Kind::ByPriority(interval) => mapping(faults, path, node, kind, |faults, path, entry| {
            // One spelling for each priority, so that a repeated one cannot hide: no `+20`, no `020`.
            if entry.key.parse().map(|p: i32| p.to_string()).as_ref() != Ok(&entry.key) {
                let message = "expected a priority, an integer from -2147483648 to 2147483647";
                faults.add(path, &entry.key_at, message);
            }
            if let Err(message) = number(interval, &entry.node.value) {
                faults.add(path, &entry.node.at, message);
            }
        }),
        Kind::Policy(_) if matches!(node.value, Value::Map(_)) => {
            object(faults, path, node, POLICY);
        }
        _ => match (kind.read(&node.value), kind, &node.value) {
            (Err(message), Kind::Choice { now, .. }, Value::Str(word)) => {
                faults.suggest(path, &node.at, message, nearest(word, now.iter().copied()));
            }
            (Err(message), ..) => faults.add(path, &node.at, message),
            (Ok(_), Kind::PluginType, Value::Str(name)) => {
                plugins::check_type(faults, path, node, name);
            }
            (Ok(_), ..) => {}
        },
    }
}

fn each(
    faults: &mut Faults,
    path: &str,
    node: &Node,
    mut check: impl FnMut(&mut Faults, &str, &Node),
) {
    if !matches!(node.value, Value::List(_) | Value::Null) {
        let message = format!("expected a list, got {}", describe(&node.value));
        faults.add(path, &node.at, message);
    }
    for (i, item) in node.items().iter().enumerate() {
        check(faults, &format!("{path}[{i}]"), item);
    }
}

fn mapping(
    faults: &mut Faults,
    path: &str,
    node: &Node,
    kind: &Kind,
    mut check: impl FnMut(&mut Faults, &str, &Entry),
) {
    if !matches!(node.value, Value::Map(_) | Value::Null) {
        let message = format!("expected {}, got {}", kind.expects(), describe(&node.value));
        faults.add(path, &node.at, message);
    }
    for (entry, earlier) in with_earlier(node.entries()) {
        let child = join(path, &entry.key);
        if !repeated(faults, &child, earlier, entry) {
            check(faults, &child, entry);
        }
    }
}
