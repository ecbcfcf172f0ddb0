//! Typed views of the checked tree. A value that is absent or already reported reads as `None`, so the semantic
//! checks above never report the same place twice.

use core::time::Duration;

use super::check::join;
use super::keys::{Key, Kind};
use super::node::{At, Entry, Node, Value, with_earlier};
use super::plugins::Role;
use super::value::{Scalar, number};

/// An object of the tree with its keys.
#[derive(Clone, Debug)]
pub(crate) struct View<'a> {
    pub(crate) path: String,
    node: Option<&'a Node>,
    keys: &'static [Key],
    at: At,
}

/// A value that may be bounded or spelt `unlimited`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Bound<T> {
    Unlimited,
    At(T),
}

impl<T> Bound<T> {
    /// The bound, `None` for unlimited.
    pub(crate) fn limit(self) -> Option<T> {
        match self {
            Self::Unlimited => None,
            Self::At(v) => Some(v),
        }
    }
}

impl<'a> View<'a> {
    pub(crate) fn new(path: &str, node: Option<&'a Node>, keys: &'static [Key], at: &At) -> Self {
        let at = node.map_or_else(|| at.clone(), |node| node.at.clone());
        Self { path: path.into(), node, keys, at }
    }

    /// The place of the object itself.
    pub(crate) fn at(&self) -> &At {
        &self.at
    }

    pub(crate) fn path_of(&self, name: &str) -> String {
        join(&self.path, name)
    }

    /// The place of a key's value; that of the object when the key is absent.
    pub(crate) fn at_of(&self, name: &str) -> &At {
        self.node_of(name).map_or(&self.at, |node| &node.at)
    }

    pub(crate) fn has(&self, name: &str) -> bool {
        self.node_of(name).is_some()
    }

    pub(crate) fn node_of(&self, name: &str) -> Option<&'a Node> {
        debug_assert!(self.key(name).is_some(), "no key {name} in the table of {}", self.path);
        self.node?.get(name)
    }

    fn key(&self, name: &str) -> Option<&'static Key> {
        self.keys.iter().find(|key| key.name == name)
    }

    /// What the policy under a key has to decide.
    pub(crate) fn role(&self, name: &str) -> Option<Role> {
        match self.key(name)?.kind {
            Kind::Policy(role) | Kind::Reference(role) => Some(role),
            _ => None,
        }
    }

    fn scalar(&self, name: &str) -> Option<Scalar> {
        let value = &self.node_of(name)?.value;
        self.key(name)?.kind.read(value).ok()
    }

    pub(crate) fn i32(&self, name: &str) -> Option<i32> {
        let Scalar::Int(v) = self.scalar(name)? else { return None };
        i32::try_from(v).ok()
    }

    pub(crate) fn u32(&self, name: &str) -> Option<u32> {
        let Scalar::Int(v) = self.scalar(name)? else { return None };
        u32::try_from(v).ok()
    }

    pub(crate) fn u64(&self, name: &str) -> Option<u64> {
        let Scalar::Int(v) = self.scalar(name)? else { return None };
        u64::try_from(v).ok()
    }

    pub(crate) fn limit(&self, name: &str) -> Option<Bound<u32>> {
        match self.scalar(name)? {
            Scalar::Unlimited => Some(Bound::Unlimited),
            Scalar::Int(v) => u32::try_from(v).ok().map(Bound::At),
            _ => None,
        }
    }

    pub(crate) fn f64(&self, name: &str) -> Option<f64> {
        let Scalar::Float(v) = self.scalar(name)? else { return None };
        Some(v)
    }

    pub(crate) fn duration(&self, name: &str) -> Option<Bound<Duration>> {
        match self.scalar(name)? {
            Scalar::Unlimited => Some(Bound::Unlimited),
            Scalar::Duration(v) => Some(Bound::At(v)),
            _ => None,
        }
    }

    pub(crate) fn flag(&self, name: &str) -> Option<bool> {
        let Scalar::Flag(v) = self.scalar(name)? else { return None };
        Some(v)
    }

    pub(crate) fn text(&self, name: &str) -> Option<String> {
        let Scalar::Text(v) = self.scalar(name)? else { return None };
        Some(v)
    }

    /// The texts of a list, as far as they are texts.
    pub(crate) fn texts(&self, name: &str) -> Vec<String> {
        let items = self.node_of(name).map_or(&[][..], Node::items);
        let read = |item: &Node| match Kind::Text.read(&item.value) {
            Ok(Scalar::Text(s)) => Some(s),
            _ => None,
        };
        items.iter().filter_map(read).collect()
    }

    /// The object under a key; an empty one when the key is absent.
    pub(crate) fn object(&self, name: &str) -> Self {
        let keys: &'static [Key] = match self.key(name) {
            Some(Key { kind: Kind::Object(keys), .. }) => keys,
            _ => &[],
        };
        self.below(name, keys)
    }

    /// What stands under a key, read as an object of these keys.
    pub(crate) fn below(&self, name: &str, keys: &'static [Key]) -> Self {
        Self::new(&self.path_of(name), self.node_of(name), keys, &self.at)
    }

    /// The objects of a list.
    pub(crate) fn list(&self, name: &str) -> Vec<Self> {
        let Some(Key { kind: Kind::List(keys), .. }) = self.key(name) else { return Vec::new() };
        let path = self.path_of(name);
        let items = self.node_of(name).map_or(&[][..], Node::items).iter().enumerate();
        items.map(|(i, n)| Self::new(&format!("{path}[{i}]"), Some(n), keys, &n.at)).collect()
    }

    /// The objects of a mapping of names; of a repeated name the first.
    pub(crate) fn named(&self, name: &str) -> Vec<(&'a str, Self)> {
        let Some(Key { kind: Kind::Named(keys), .. }) = self.key(name) else { return Vec::new() };
        let path = self.path_of(name);
        let entries = self.node_of(name).map_or(&[][..], Node::entries);
        let view = |entry: &'a Entry| {
            Self::new(&join(&path, &entry.key), Some(&entry.node), keys, &entry.key_at)
        };
        with_earlier(entries)
            .filter(|(_, earlier)| earlier.is_none())
            .map(|(entry, _)| (entry.key.as_str(), view(entry)))
            .collect()
    }

    /// A mapping of priorities to numbers with the place of each; `None` if absent or if any entry is at fault.
    pub(crate) fn by_priority(&self, name: &str) -> Option<Vec<(i32, f64, &'a At)>> {
        let Some(Key { kind: Kind::ByPriority(interval), .. }) = self.key(name) else {
            return None;
        };
        let node = self.node_of(name)?;
        if !matches!(node.value, Value::Map(_) | Value::Null) {
            return None;
        }
        let read = |entry: &'a Entry| {
            let ratio = number(interval, &entry.node.value).ok()?;
            Some((entry.key.parse().ok()?, ratio, &entry.key_at))
        };
        node.entries().iter().map(read).collect()
    }
}
