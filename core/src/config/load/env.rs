//! Variables over the document: `BANDGATE__POOLS__CHAT__SLOTS=8` sets `pools.chat.slots`.
//!
//! The segments between double underscores are the keys of the path in upper case, words of a key parted by `_`
//! (`DEFAULT_POOL_SLOTS`), every other character of a name as `_`, elements of a list by their index. A variable
//! sets a scalar of the engine, of the pool `default` where none is listed, or of an entry that the document has; it
//! never adds an entry, because a mistyped name would then add a pool that nobody sees.

use super::check::{nearest, parameters_of};
use super::fault::Faults;
use super::keys::{Key, Kind, POLICY, ROOT};
use super::node::{self, At, Entry, Node, Value};
use super::value::not_yet;

/// What the variables of this engine begin with.
pub(crate) const PREFIX: &str = "BANDGATE__";

/// Why a variable was not applied, and the variable that was probably meant.
type Refusal = (String, Option<String>);

/// Puts the variables into the tree, in the order of their names.
pub(crate) fn apply(
    root: &mut Node,
    variables: impl IntoIterator<Item = (String, String)>,
    faults: &mut Faults,
) {
    let mut ours: Vec<(String, String)> =
        variables.into_iter().filter(|(name, _)| name.starts_with(PREFIX)).collect();
    ours.sort();
    if ours.iter().any(|(name, _)| name.starts_with(DEFAULT_POOL)) {
        name_default_pool(root);
    }
    for (name, text) in ours {
        let at = At::from_variable(&name);
        let segments: Vec<&str> = name[PREFIX.len()..].split("__").collect();
        let setting = Setting { at: &at, text: &text };
        if let Err((message, near)) = setting.object(root, ROOT, "BANDGATE", &segments) {
            faults.suggest("", &at, message, near.as_deref());
        }
    }
}

/// Variables of the pool that exists without being listed.
const DEFAULT_POOL: &str = "BANDGATE__POOLS__DEFAULT__";

/// Without pools there is one called `default`: it is written down, so that its variables find it.
fn name_default_pool(root: &mut Node) {
    let empty = root.get("pools").is_none_or(|pools| {
        matches!(&pools.value, Value::Null) || pools.value == Value::Map(Vec::new())
    });
    if !empty {
        return;
    }
    if root.value == Value::Null {
        root.value = Value::Map(Vec::new());
    }
    let Value::Map(entries) = &mut root.value else { return };
    let entry = |key: &str, value| {
        let node = Node { at: At::default(), value };
        Entry { key: key.into(), key_at: At::default(), node }
    };
    entries.retain(|entry| entry.key != "pools");
    entries.push(entry("pools", Value::Map(vec![entry("default", Value::Null)])));
}

/// The variable segment of a key or name.
pub(crate) fn segment(name: &str) -> String {
    let mut out = String::new();
    let mut lower_before = false;
    for c in name.chars() {
        if c.is_ascii_uppercase() && lower_before {
            out.push('_');
        }
        lower_before = c.is_ascii_lowercase() || c.is_ascii_digit();
        out.push(if c.is_ascii_alphanumeric() { c.to_ascii_uppercase() } else { '_' });
    }
    out
}

struct Setting<'a> {
    at: &'a At,
    text: &'a str,
}

impl Setting<'_> {
    fn object(
        &self,
        node: &mut Node,
        keys: &'static [Key],
        prefix: &str,
        segments: &[&str],
    ) -> Result<(), Refusal> {
        let Some((first, rest)) = segments.split_first() else {
            return Err(("names a section: name one of its keys".into(), None));
        };
        let Some(key) = keys.iter().find(|key| segment(key.name) == *first) else {
            let names: Vec<String> =
                keys.iter().filter(|k| !k.later).map(|k| segment(k.name)).collect();
            return Err(unmatched(prefix, first, rest, &names, "matches no key"));
        };
        if key.later {
            return Err((not_yet(key.name), None));
        }
        let parameters = parameters_of(node);
        if node.value == Value::Null {
            *node = Node { at: self.at.clone(), value: Value::Map(Vec::new()) };
        }
        let Value::Map(entries) = &mut node.value else {
            return Err((format!("{} stands where the document has no mapping", key.name), None));
        };
        let prefix = format!("{prefix}__{first}");
        if let Some(entry) = entries.iter_mut().find(|entry| entry.key == key.name) {
            return self.value(&mut entry.node, key, parameters, &prefix, rest);
        }
        let mut fresh = Node { at: self.at.clone(), value: Value::Null };
        self.value(&mut fresh, key, parameters, &prefix, rest)?;
        entries.push(Entry { key: key.name.into(), key_at: self.at.clone(), node: fresh });
        Ok(())
    }

    fn value(
        &self,
        node: &mut Node,
        key: &'static Key,
        parameters: Option<&'static [Key]>,
        prefix: &str,
        rest: &[&str],
    ) -> Result<(), Refusal> {
        match &key.kind {
            Kind::Object(keys) => self.object(node, keys, prefix, rest),
            Kind::Parameters => self.object(node, parameters.unwrap_or_default(), prefix, rest),
            Kind::Policy(_) if !rest.is_empty() => self.object(node, POLICY, prefix, rest),
            Kind::List(keys) => {
                let (item, prefix, rest) = element(node, key.name, prefix, rest)?;
                self.object(item, keys, &prefix, rest)
            }
            Kind::Named(keys) => {
                let (item, prefix, rest) = member(node, key.name, prefix, rest)?;
                self.object(item, keys, &prefix, rest)
            }
            Kind::ByPriority(_) => {
                let (item, _, rest) = member(node, key.name, prefix, rest)?;
                self.scalar(item, &key.kind, rest)
            }
            Kind::Texts | Kind::Anything => {
                Err((format!("{} is not a scalar: set it in the document", key.name), None))
            }
            kind => self.scalar(node, kind, rest),
        }
    }

    fn scalar(&self, node: &mut Node, kind: &Kind, rest: &[&str]) -> Result<(), Refusal> {
        if let Some(extra) = rest.first() {
            return Err((
                format!("matches no key: there is nothing below a scalar ({extra})"),
                None,
            ));
        }
        let textual = matches!(
            kind,
            Kind::Text
                | Kind::Choice { .. }
                | Kind::Policy(_)
                | Kind::Reference(_)
                | Kind::PluginType
        );
        let parsed = if textual { None } else { node::parse(self.text).ok() };
        let value = match parsed.map(|node| node.value) {
            Some(value @ (Value::Bool(_) | Value::Int(_) | Value::Float(_) | Value::Null)) => value,
            _ => Value::Str(self.text.into()),
        };
        *node = Node { at: self.at.clone(), value };
        Ok(())
    }
}

/// The next segment and those behind it; `missing` says what it should have named.
fn next<'s>(
    segments: &'s [&'s str],
    missing: impl FnOnce() -> String,
) -> Result<(&'s str, &'s [&'s str]), Refusal> {
    let (first, rest) = segments.split_first().ok_or_else(|| (missing(), None))?;
    Ok((*first, rest))
}

/// The element of a list that the next segment numbers.
fn element<'n, 's>(
    node: &'n mut Node,
    key: &str,
    prefix: &str,
    segments: &'s [&'s str],
) -> Result<(&'n mut Node, String, &'s [&'s str]), Refusal> {
    let (first, rest) =
        next(segments, || format!("{key} is a list: name an element by its index"))?;
    let items = if let Value::List(items) = &mut node.value { &mut items[..] } else { &mut [] };
    let count = items.len();
    match first.parse::<usize>().ok().and_then(|index| items.get_mut(index)) {
        Some(item) => Ok((item, format!("{prefix}__{first}"), rest)),
        None => Err((format!("matches no element of {key}: the document lists {count}"), None)),
    }
}

/// The entry of a mapping that the next segment names.
fn member<'n, 's>(
    node: &'n mut Node,
    key: &str,
    prefix: &str,
    segments: &'s [&'s str],
) -> Result<(&'n mut Node, String, &'s [&'s str]), Refusal> {
    let (first, rest) = next(segments, || format!("{key} is a mapping: name one of its entries"))?;
    let entries =
        if let Value::Map(entries) = &mut node.value { &mut entries[..] } else { &mut [] };
    let matching = entries.iter().filter(|entry| segment(&entry.key) == first).count();
    if matching > 1 {
        let message =
            format!("matches {matching} entries of {key}: rename one, or set it in the document");
        return Err((message, None));
    }
    let names: Vec<String> = entries.iter().map(|entry| segment(&entry.key)).collect();
    let what = format!("matches no entry of {key} in the document");
    match entries.iter_mut().find(|entry| segment(&entry.key) == first) {
        Some(entry) => Ok((&mut entry.node, format!("{prefix}__{first}"), rest)),
        None => Err(unmatched(prefix, first, rest, &names, &what)),
    }
}

fn unmatched(prefix: &str, word: &str, rest: &[&str], names: &[String], what: &str) -> Refusal {
    let near = nearest(word, names.iter().map(String::as_str)).map(|near| {
        let mut all = vec![prefix, near];
        all.extend(rest);
        all.join("__")
    });
    (what.into(), near)
}
