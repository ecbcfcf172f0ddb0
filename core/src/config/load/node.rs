//! The document as a tree in which every value knows its line: serde reports one error and stops, so the typed
//! reading happens on this tree instead.

use core::fmt;
use std::collections::HashMap;
use std::rc::Rc;

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_saphyr::options::{DuplicateKeyPolicy, NonFiniteFloatPolicy};
use serde_saphyr::{Location, Spanned};

/// Where a value was written: a line of the document, an environment variable, or nowhere (a default).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct At {
    line: u32,
    column: u32,
    variable: Option<Rc<str>>,
}

impl At {
    pub(crate) fn from_variable(name: &str) -> Self {
        Self { line: 0, column: 0, variable: Some(name.into()) }
    }

    /// The place right behind these bytes.
    pub(crate) fn end_of(bytes: &[u8]) -> Self {
        let lines = bytes.split(|b| *b == b'\n');
        let clamp = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
        let last = lines.clone().next_back().unwrap_or_default();
        let column = String::from_utf8_lossy(last).chars().count() + 1;
        Self { line: clamp(lines.count()), column: clamp(column), variable: None }
    }

    pub(crate) fn line(&self) -> Option<u32> {
        (self.line > 0).then_some(self.line)
    }

    pub(crate) fn column(&self) -> Option<u32> {
        (self.column > 0).then_some(self.column)
    }

    pub(crate) fn variable(&self) -> Option<&str> {
        self.variable.as_deref()
    }
}

impl From<Location> for At {
    fn from(location: Location) -> Self {
        let clamp = |n: u64| u32::try_from(n).unwrap_or(u32::MAX);
        Self { line: clamp(location.line()), column: clamp(location.column()), variable: None }
    }
}

/// A value of the document.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) enum Value {
    #[default]
    Null,
    Bool(bool),
    Int(i128),
    Float(f64),
    Str(String),
    List(Vec<Node>),
    Map(Vec<Entry>),
}

/// A value and where it stands.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Node {
    pub(crate) at: At,
    pub(crate) value: Value,
}

/// One key of a mapping; repeated keys stay, so that each can be reported.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Entry {
    pub(crate) key: String,
    pub(crate) key_at: At,
    pub(crate) node: Node,
}

impl Node {
    /// The entries of a mapping; none for anything else.
    pub(crate) fn entries(&self) -> &[Entry] {
        if let Value::Map(entries) = &self.value { entries } else { &[] }
    }

    /// The first entry of this name.
    pub(crate) fn get(&self, key: &str) -> Option<&Self> {
        self.entries().iter().find(|e| e.key == key).map(|e| &e.node)
    }

    /// The elements of a list; none for anything else.
    pub(crate) fn items(&self) -> &[Self] {
        if let Value::List(items) = &self.value { items } else { &[] }
    }
}

/// Each entry with the earlier one of the same key, if it repeats one.
pub(crate) fn with_earlier(entries: &[Entry]) -> impl Iterator<Item = (&Entry, Option<&Entry>)> {
    let mut first: HashMap<&str, &Entry> = HashMap::new();
    entries.iter().map(move |entry| {
        let earlier = first.get(entry.key.as_str()).copied();
        first.entry(&entry.key).or_insert(entry);
        (entry, earlier)
    })
}

impl From<Spanned<Value>> for Node {
    fn from(spanned: Spanned<Value>) -> Self {
        Self { at: spanned.referenced.into(), value: spanned.value }
    }
}

impl<'de> Deserialize<'de> for Value {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ValueVisitor)
    }
}

struct ValueVisitor;

impl<'de> Visitor<'de> for ValueVisitor {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_none<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, v: bool) -> Result<Value, E> {
        Ok(Value::Bool(v))
    }

    fn visit_i64<E>(self, v: i64) -> Result<Value, E> {
        Ok(Value::Int(v.into()))
    }

    fn visit_u64<E>(self, v: u64) -> Result<Value, E> {
        Ok(Value::Int(v.into()))
    }

    fn visit_i128<E>(self, v: i128) -> Result<Value, E> {
        Ok(Value::Int(v))
    }

    fn visit_f64<E>(self, v: f64) -> Result<Value, E> {
        Ok(Value::Float(v))
    }

    fn visit_str<E>(self, v: &str) -> Result<Value, E> {
        Ok(Value::Str(v.into()))
    }

    fn visit_string<E>(self, v: String) -> Result<Value, E> {
        Ok(Value::Str(v))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Value, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = seq.next_element::<Spanned<Value>>()? {
            items.push(item.into());
        }
        Ok(Value::List(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Value, A::Error> {
        let mut entries = Vec::new();
        while let Some((key, value)) = map.next_entry::<Spanned<String>, Spanned<Value>>()? {
            let (key_at, key) = (key.referenced.into(), key.value);
            entries.push(Entry { key, key_at, node: value.into() });
        }
        Ok(Value::Map(entries))
    }
}

/// Deepest nesting a document may have; the configuration itself needs seven levels.
const MAX_DEPTH: usize = 32;
/// Most values and keys a document may have.
const MAX_NODES: usize = 200_000;
/// Most of them that aliases may add.
const MAX_REPLAYED: usize = 20_000;

fn options() -> serde_saphyr::Options {
    serde_saphyr::options! {
        budget: serde_saphyr::budget! {
            max_depth: MAX_DEPTH,
            flow_nesting_limit: MAX_DEPTH,
            max_nodes: MAX_NODES,
            max_aliases: 1_000,
            max_anchors: 1_000,
        },
        alias_limits: serde_saphyr::alias_limits! {
            max_total_replayed_events: MAX_REPLAYED,
            max_replay_stack_depth: MAX_DEPTH,
        },
        duplicate_keys: DuplicateKeyPolicy::PassThrough,
        non_finite_float_policy: NonFiniteFloatPolicy::PassThrough,
        // A name such as 007 keeps its spelling, and `on` or `no` stay words.
        leading_zero_numbers_as_strings: true,
        underscored_numbers_as_strings: true,
        strict_booleans: true,
        null_as_string: true,
        with_snippet: false,
    }
}

/// Reads a document into a tree; an empty one is `Null`.
///
/// The error is the first syntax error or exceeded bound, with its place: beyond it there is no tree to look at.
pub(crate) fn parse(text: &str) -> Result<Node, (At, String)> {
    let read: Result<Spanned<Value>, _> = serde_saphyr::from_str_with_options(text, options());
    match read {
        Ok(spanned) => Ok(spanned.into()),
        Err(error) => {
            let at = error.location().map(At::from).unwrap_or_default();
            Err((at, syntax_message(&error)))
        }
    }
}

fn syntax_message(error: &serde_saphyr::Error) -> String {
    if matches!(error, serde_saphyr::Error::MultipleDocuments { .. }) {
        return "a second document begins here: a configuration is one document".into();
    }
    let text = error.to_string();
    let first = text.lines().next().unwrap_or_default();
    // The place is reported apart from the text.
    let message = first.rsplit_once(" at line ").map_or(first, |(message, _)| message);
    format!("not readable as YAML: {message}")
}
