//! Names and what they stand for, in little memory: a process has very many tenants, and most are idle.

use alloc::{string::String, vec, vec::Vec};
use core::hash::BuildHasher;
use std::hash::RandomState;

use crate::types::NONE;

/// One name of one owner.
#[derive(Clone, Copy, Debug)]
struct Entry {
    owner: u32,
    /// Where it begins in the text; it ends where the next begins.
    start: u32,
    value: u32,
}

/// A map from (owner, name) to a number, for names that are never removed.
///
/// The names stand one behind the other in one string and the index is an array of entry numbers with linear
/// probing, at most three quarters full: 12 bytes, the name and 5 to 11 bytes of index for each, where a map of
/// strings takes about 70 and an allocation.
#[derive(Debug, Default)]
pub(super) struct Names {
    text: String,
    entries: Vec<Entry>,
    /// Numbers of entries; `NONE`: free. A power of two of them, or none.
    index: Vec<u32>,
    /// Keyed anew in each process: names come from outside.
    hasher: RandomState,
}

impl Names {
    /// How many there are.
    pub(super) const fn len(&self) -> usize {
        self.entries.len()
    }

    /// What the name stands for.
    pub(super) fn get(&self, owner: u32, name: &str) -> Option<u32> {
        let at = self.probe(owner, name)?;
        self.entries.get(self.index[at] as usize).map(|entry| entry.value)
    }

    /// Whether one more name of this length fits: 4 GiB of names, and as many entries as have a number.
    pub(super) fn has_room(&self, name: &str) -> bool {
        let most = NONE as usize;
        self.text.len().saturating_add(name.len()) < most && self.entries.len() < most
    }

    /// Adds a name that is not there and [fits](Self::has_room).
    pub(super) fn add(&mut self, owner: u32, name: &str, value: u32) {
        if self.entries.len() >= self.index.len() / 4 * 3 {
            self.grow();
        }
        let number = |n: usize| u32::try_from(n).unwrap_or(NONE);
        let (entry, start) = (number(self.entries.len()), number(self.text.len()));
        if let Some(at) = self.probe(owner, name) {
            self.index[at] = entry;
            self.entries.push(Entry { owner, start, value });
            self.text.push_str(name);
        }
    }

    /// Where the name stands in the index, or the free place where it would; `None`: there is no index yet.
    fn probe(&self, owner: u32, name: &str) -> Option<usize> {
        let mask = self.index.len().checked_sub(1)?;
        #[allow(clippy::cast_possible_truncation, reason = "masked")]
        let mut at = self.hasher.hash_one((owner, name)) as usize & mask;
        // Ends: a quarter is free.
        while self.index[at] != NONE && !self.is(self.index[at], owner, name) {
            at = (at + 1) & mask;
        }
        Some(at)
    }

    fn is(&self, entry: u32, owner: u32, name: &str) -> bool {
        self.entries[entry as usize].owner == owner && self.name(entry) == name
    }

    fn name(&self, entry: u32) -> &str {
        let start = self.entries[entry as usize].start as usize;
        let next = self.entries.get(entry as usize + 1);
        &self.text[start..next.map_or(self.text.len(), |next| next.start as usize)]
    }

    fn grow(&mut self) {
        let size = (2 * self.index.len()).max(8);
        self.index = vec![NONE; size];
        for (number, entry) in (0..).zip(&self.entries) {
            if let Some(at) = self.probe(entry.owner, self.name(number)) {
                self.index[at] = number;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Names;

    #[test]
    fn every_name_of_every_owner_is_found_and_no_other() {
        let mut names = Names::default();
        assert_eq!(names.get(0, ""), None);
        // Empty names, names that run into each other, the same name of several owners.
        for value in 0..3_000_u32 {
            let (owner, name) =
                (value % 3, "a".repeat(value as usize / 3 % 7) + &owner_less(value));
            assert_eq!(names.get(owner, &name), None, "{value}");
            assert!(names.has_room(&name));
            names.add(owner, &name, value);
        }
        for value in 0..3_000_u32 {
            let (owner, name) =
                (value % 3, "a".repeat(value as usize / 3 % 7) + &owner_less(value));
            assert_eq!(names.get(owner, &name), Some(value));
            assert_eq!(names.get(3, &name), None);
        }
        assert_eq!(names.len(), 3_000);
    }

    /// The same for the three owners; empty for the first.
    fn owner_less(value: u32) -> alloc::string::String {
        if value < 3 { alloc::string::String::new() } else { (value / 3).to_string() }
    }
}
