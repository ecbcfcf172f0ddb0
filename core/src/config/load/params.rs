//! The parameters of a host's policy, out of the tree into the host's own type.
//!
//! Every error knows the path and the place of the value it is about; a key that the type does not have is refused,
//! whether the type asks for that or not.

use core::fmt::{self, Write};

use serde::de::value::{MapAccessDeserializer, StrDeserializer, StringDeserializer};
use serde::de::{self, DeserializeOwned, DeserializeSeed, Deserializer, IntoDeserializer, Visitor};
use serde::forward_to_deserialize_any;

use super::check::{join, nearest};
use super::node::{At, Entry, Node, Value, with_earlier};
use super::value::quoted;

/// What is wrong with a parameter.
#[derive(Debug)]
pub(crate) struct Wrong {
    pub(crate) path: String,
    pub(crate) at: At,
    pub(crate) message: String,
    pub(crate) near: Option<String>,
    is_placed: bool,
}

impl Wrong {
    fn new(message: String) -> Self {
        Self { path: String::new(), at: At::default(), message, near: None, is_placed: false }
    }

    /// The innermost place counts.
    fn placed(mut self, path: &str, at: &At) -> Self {
        if !self.is_placed {
            self.path = if self.path.is_empty() { path.into() } else { join(path, &self.path) };
            (self.at, self.is_placed) = (at.clone(), true);
        }
        self
    }
}

impl fmt::Display for Wrong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl core::error::Error for Wrong {}

impl de::Error for Wrong {
    fn custom<T: fmt::Display>(message: T) -> Self {
        Self::new(message.to_string())
    }

    fn missing_field(field: &'static str) -> Self {
        Self { path: field.into(), ..Self::new("missing: it is required".into()) }
    }
}

/// Reads parameters that stand at `path`; absent ones as an empty mapping.
pub(crate) fn read<P: DeserializeOwned>(node: Option<&Node>, path: &str) -> Result<P, Wrong> {
    let empty = Node { value: Value::Map(Vec::new()), ..Node::default() };
    let node = match node {
        None | Some(Node { value: Value::Null, .. }) => &empty,
        Some(node) => node,
    };
    P::deserialize(Here { node, path }).map_err(|wrong| wrong.placed(path, &node.at))
}

/// The parameters in one line, keys sorted: equal iff they mean the same.
pub(crate) fn canonical(node: Option<&Node>) -> String {
    let mut out = String::new();
    match node.map(|node| &node.value) {
        None | Some(Value::Null) => out.push_str("{}"),
        Some(value) => put(value, &mut out),
    }
    out
}

fn put(value: &Value, out: &mut String) {
    match value {
        Value::Null => out.push_str("null"),
        Value::Bool(v) => out.push_str(&v.to_string()),
        Value::Int(v) => out.push_str(&v.to_string()),
        Value::Float(v) => _ = write!(out, "{v:?}"),
        Value::Str(v) => _ = write!(out, "{v:?}"),
        Value::List(items) => {
            out.push('[');
            for (i, item) in items.iter().enumerate() {
                out.push_str(if i == 0 { "" } else { ", " });
                put(&item.value, out);
            }
            out.push(']');
        }
        Value::Map(entries) => {
            let mut sorted: Vec<&Entry> = entries.iter().collect();
            sorted.sort_by(|a, b| a.key.cmp(&b.key));
            out.push('{');
            for (i, entry) in sorted.into_iter().enumerate() {
                out.push_str(if i == 0 { "" } else { ", " });
                _ = write!(out, "{:?}: ", entry.key);
                put(&entry.node.value, out);
            }
            out.push('}');
        }
    }
}

/// A value of the tree and the path to it.
#[derive(Clone, Copy)]
struct Here<'a> {
    node: &'a Node,
    path: &'a str,
}

impl<'a> Here<'a> {
    fn entries(self) -> Result<Entries<'a>, Wrong> {
        for (entry, earlier) in with_earlier(self.node.entries()) {
            if earlier.is_some() {
                let wrong = Wrong::new("duplicate key: remove one".into());
                return Err(wrong.placed(&join(self.path, &entry.key), &entry.key_at));
            }
        }
        Ok(Entries { rest: self.node.entries().iter(), value: None, path: self.path })
    }

    fn unknown(self, fields: &[&'static str]) -> Option<Wrong> {
        let entry = self.node.entries().iter().find(|e| !fields.contains(&e.key.as_str()))?;
        let near = nearest(&entry.key, fields.iter().copied()).map(Into::into);
        let known = if fields.is_empty() { "there are none".into() } else { fields.join(", ") };
        let wrong = Wrong::new(format!("unknown parameter; this type knows: {known}"));
        Some(Wrong { near, ..wrong.placed(&join(self.path, &entry.key), &entry.key_at) })
    }
}

impl<'de> Deserializer<'de> for Here<'_> {
    type Error = Wrong;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Wrong> {
        match &self.node.value {
            Value::Null => visitor.visit_unit(),
            Value::Bool(v) => visitor.visit_bool(*v),
            Value::Int(v) => match (i64::try_from(*v), u64::try_from(*v)) {
                (Ok(v), _) => visitor.visit_i64(v),
                (_, Ok(v)) => visitor.visit_u64(v),
                _ => visitor.visit_i128(*v),
            },
            Value::Float(v) => visitor.visit_f64(*v),
            Value::Str(v) => visitor.visit_str(v),
            Value::List(items) => {
                visitor.visit_seq(Items { items: items.iter().enumerate(), path: self.path })
            }
            Value::Map(_) => visitor.visit_map(self.entries()?),
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Wrong> {
        if self.node.value == Value::Null { visitor.visit_none() } else { visitor.visit_some(self) }
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Wrong> {
        match self.unknown(fields) {
            Some(wrong) => Err(wrong),
            None => self.deserialize_any(visitor),
        }
    }

    /// No parameters at all: an empty mapping is that too.
    fn deserialize_unit<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Wrong> {
        match (&self.node.value, self.unknown(&[])) {
            (_, Some(wrong)) => Err(wrong),
            (Value::Map(_), None) => visitor.visit_unit(),
            _ => self.deserialize_any(visitor),
        }
    }

    fn deserialize_unit_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        visitor: V,
    ) -> Result<V::Value, Wrong> {
        self.deserialize_unit(visitor)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        visitor: V,
    ) -> Result<V::Value, Wrong> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _name: &'static str,
        _variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Wrong> {
        match &self.node.value {
            Value::Str(word) => {
                let word: StrDeserializer<'_, Wrong> = word.as_str().into_deserializer();
                visitor.visit_enum(word)
            }
            Value::Map(_) => visitor.visit_enum(MapAccessDeserializer::new(self.entries()?)),
            other => Err(Wrong::new(format!(
                "expected a word or a mapping of one key, got {}",
                super::value::describe(other)
            ))),
        }
    }

    /// What nobody wants is a key nobody knows.
    fn deserialize_ignored_any<V: Visitor<'de>>(self, _visitor: V) -> Result<V::Value, Wrong> {
        Err(Wrong::new(format!("unknown parameter at {}", quoted(self.path))))
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf seq tuple tuple_struct
        map identifier
    }
}

struct Items<'a> {
    items: core::iter::Enumerate<core::slice::Iter<'a, Node>>,
    path: &'a str,
}

impl<'de> de::SeqAccess<'de> for Items<'_> {
    type Error = Wrong;

    fn next_element_seed<T: DeserializeSeed<'de>>(
        &mut self,
        seed: T,
    ) -> Result<Option<T::Value>, Wrong> {
        let Some((i, node)) = self.items.next() else { return Ok(None) };
        let path = format!("{}[{i}]", self.path);
        let read = seed.deserialize(Here { node, path: &path });
        read.map(Some).map_err(|wrong| wrong.placed(&path, &node.at))
    }
}

struct Entries<'a> {
    rest: core::slice::Iter<'a, Entry>,
    value: Option<&'a Entry>,
    path: &'a str,
}

impl<'de> de::MapAccess<'de> for Entries<'_> {
    type Error = Wrong;

    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, Wrong> {
        self.value = self.rest.next();
        let Some(entry) = self.value else { return Ok(None) };
        let place = |wrong: Wrong| wrong.placed(&join(self.path, &entry.key), &entry.key_at);
        // A key of digits may be the key of a map of numbers, as priorities are.
        if let Ok(number) = entry.key.parse::<i64>() {
            return seed.deserialize(Number { number, text: &entry.key }).map(Some).map_err(place);
        }
        let key: StringDeserializer<Wrong> = entry.key.clone().into_deserializer();
        seed.deserialize(key).map(Some).map_err(place)
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, Wrong> {
        let Some(entry) = self.value.take() else {
            return Err(Wrong::new("a value was asked for before its key".into()));
        };
        let path = join(self.path, &entry.key);
        let read = seed.deserialize(Here { node: &entry.node, path: &path });
        read.map_err(|wrong| wrong.placed(&path, &entry.node.at))
    }
}

/// A key that is a number, or a text of digits, as the type wants it.
struct Number<'a> {
    number: i64,
    text: &'a str,
}

impl<'de> Deserializer<'de> for Number<'_> {
    type Error = Wrong;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Wrong> {
        visitor.visit_str(self.text)
    }

    fn deserialize_i32<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Wrong> {
        visitor.visit_i64(self.number)
    }

    fn deserialize_i64<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Wrong> {
        visitor.visit_i64(self.number)
    }

    fn deserialize_u32<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Wrong> {
        visitor.visit_i64(self.number)
    }

    fn deserialize_u64<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Wrong> {
        visitor.visit_i64(self.number)
    }

    forward_to_deserialize_any! {
        bool i8 i16 i128 u8 u16 u128 f32 f64 char str string bytes byte_buf option unit unit_struct newtype_struct seq
        tuple tuple_struct map struct enum identifier ignored_any
    }
}
