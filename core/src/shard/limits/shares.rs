//! What each tenant has waiting in each band: a table of fixed size, for as many pairs as requests may wait.
#![forbid(unsafe_code)]

use alloc::boxed::Box;

use crate::types::limits::Load;

#[derive(Clone, Copy, Debug)]
struct Cell {
    key: u64,
    load: Load,
}

/// A pair of band and tenant that no request has.
const EMPTY: u64 = u64::MAX;

/// Open addressing with linear probing, half full at most; a pair without requests has no cell.
#[derive(Debug)]
pub(super) struct Shares(Box<[Cell]>);

impl Shares {
    /// For pools without shares: keeps nothing.
    pub(super) fn none() -> Self {
        Self(Box::default())
    }

    /// For so many requests. Allocates 64 bytes each.
    pub(super) fn new(max_waiting: u32) -> Self {
        let cells = (max_waiting as usize * 2).next_power_of_two();
        let cell = Cell { key: EMPTY, load: Load { requests: 0, bytes: 0, tokens: 0 } };
        Self((0..cells).map(|_| cell).collect())
    }

    const fn key(band: u8, tenant: u32) -> u64 {
        (band as u64) << 32 | tenant as u64
    }

    /// Where the search for a key begins. Tenants are numbered in turn, so a product with an odd number spreads them.
    #[allow(clippy::cast_possible_truncation, reason = "masked to the table's length")]
    const fn home(&self, key: u64) -> usize {
        (key.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as usize & (self.0.len() - 1)
    }

    const fn next(&self, at: usize) -> usize {
        (at + 1) & (self.0.len() - 1)
    }

    /// Its cell, or the empty one where it would stand; not of an empty table.
    fn find(&self, key: u64) -> usize {
        let mut at = self.home(key);
        while self.0[at].key != key && self.0[at].key != EMPTY {
            at = self.next(at);
        }
        at
    }

    /// What the tenant has waiting in the band.
    pub(super) fn of(&self, band: u8, tenant: u32) -> Load {
        if self.0.is_empty() {
            return Load::default();
        }
        let cell = &self.0[self.find(Self::key(band, tenant))];
        if cell.key == EMPTY { Load::default() } else { cell.load }
    }

    /// Books a request.
    pub(super) fn add(&mut self, band: u8, tenant: u32, one: &Load) {
        if self.0.is_empty() {
            return;
        }
        let key = Self::key(band, tenant);
        let at = self.find(key);
        let cell = &mut self.0[at];
        if cell.key == EMPTY {
            *cell = Cell { key, load: Load::default() };
        }
        cell.load.add(one);
    }

    /// Takes a booked request off.
    pub(super) fn remove(&mut self, band: u8, tenant: u32, one: &Load) {
        if self.0.is_empty() {
            return;
        }
        let at = self.find(Self::key(band, tenant));
        let cell = &mut self.0[at];
        cell.load.remove(one);
        if cell.load.requests == 0 {
            self.close_gap(at);
        }
    }

    /// Empties a cell; those behind it that this would cut off from their home move up.
    fn close_gap(&mut self, mut gap: usize) {
        let mut at = gap;
        loop {
            at = self.next(at);
            let key = self.0[at].key;
            if key == EMPTY {
                break;
            }
            let mask = self.0.len() - 1;
            let from_home = at.wrapping_sub(self.home(key)) & mask;
            if from_home >= at.wrapping_sub(gap) & mask {
                self.0[gap] = self.0[at];
                gap = at;
            }
        }
        self.0[gap].key = EMPTY;
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use alloc::collections::BTreeMap;

    use super::*;

    /// A table of eight against a map, through every way of coming and going a small random source finds.
    #[test]
    fn every_pair_keeps_its_own_load_however_they_come_and_go() {
        let (mut shares, mut model) = (Shares::new(16), BTreeMap::<(u8, u32), Load>::new());
        let mut waiting: alloc::vec::Vec<(u8, u32, Load)> = alloc::vec::Vec::new();
        let mut random = 7_u64;
        for step in 0..20_000_u64 {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(step | 1);
            let bits = random >> 33;
            if waiting.len() < 16 && bits & 1 == 0 {
                let (band, tenant) = ((bits >> 1 & 1) as u8, (bits >> 2 & 15) as u32);
                let one = Load::one((bits >> 6 & 7) as u32, 1);
                shares.add(band, tenant, &one);
                model.entry((band, tenant)).or_default().add(&one);
                waiting.push((band, tenant, one));
            } else if !waiting.is_empty() {
                let at = (bits >> 1) as usize % waiting.len();
                let (band, tenant, one) = waiting.swap_remove(at);
                shares.remove(band, tenant, &one);
                model.entry((band, tenant)).or_default().remove(&one);
            }
            for (band, tenant) in (0..2).flat_map(|band| (0..16).map(move |t| (band, t))) {
                let expected = model.get(&(band, tenant)).copied().unwrap_or_default();
                assert_eq!(shares.of(band, tenant), expected, "step {step}: {band} {tenant}");
            }
        }
    }
}
