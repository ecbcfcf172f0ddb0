//! A 4-ary min-heap of 64-bit integers, each a key and the index it belongs to.
//!
//! Key and index in one word compare in one step without a branch, which is worth more than the arity
//! (`benches` has the comparison). Four children share a cache line or two.
#![forbid(unsafe_code)]

use alloc::vec::Vec;

/// Bits of the index.
pub const INDEX_BITS: u32 = 24;
/// Most distinct indices.
pub const MAX_INDICES: u32 = 1 << INDEX_BITS;
/// The largest key: 40 bits.
pub const MAX_KEY: u64 = u64::MAX >> INDEX_BITS;

const ARITY: usize = 4;

/// Told where each index stands, so that it can be removed or given a new key without a search.
pub trait Positions {
    /// `index` now stands at `position`.
    fn set_position(&mut self, index: u32, position: u32);
}

/// The heap. Equal keys are ordered by index.
#[derive(Debug)]
pub struct PackedHeap {
    items: Vec<u64>,
}

#[inline]
const fn pack(key: u64, index: u32) -> u64 {
    debug_assert!(key <= MAX_KEY && index < MAX_INDICES);
    key << INDEX_BITS | index as u64
}

#[inline]
#[allow(clippy::cast_possible_truncation, reason = "masked to 24 bits")]
const fn index_of(item: u64) -> u32 {
    (item & (MAX_INDICES as u64 - 1)) as u32
}

/// Room for `capacity` items in all, and up to `most` an eighth on top so that growing by one stays cheap.
///
/// No more than that: the memory of an idle flow counts, and doubling would waste up to as much again.
pub(super) fn grow<T>(items: &mut Vec<T>, capacity: usize, most: usize) {
    if capacity > items.capacity() {
        let roomy = (capacity + capacity / 8).min(most).max(capacity);
        items.reserve_exact(roomy - items.len());
    }
}

impl Default for PackedHeap {
    fn default() -> Self {
        Self::new()
    }
}

impl PackedHeap {
    /// An empty heap without room.
    pub const fn new() -> Self {
        Self { items: Vec::new() }
    }

    /// Makes room for `capacity` indices in all, never needed beyond `most`: it does not allocate while it holds no
    /// more. Allocates itself.
    pub fn reserve(&mut self, capacity: u32, most: u32) {
        grow(&mut self.items, capacity as usize, most as usize);
    }

    /// Empties the heap and keeps its room.
    pub fn clear(&mut self) {
        self.items.clear();
    }

    /// How many indices it holds.
    #[inline]
    pub fn len(&self) -> usize {
        self.items.len()
    }

    /// Whether it holds none.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    /// The index with the least key.
    #[inline]
    pub fn top(&self) -> Option<u32> {
        self.items.first().copied().map(index_of)
    }

    /// The least key.
    #[inline]
    pub fn top_key(&self) -> Option<u64> {
        self.items.first().map(|item| item >> INDEX_BITS)
    }

    /// Adds an index that it does not hold. O(log n), O(1) if the key is the largest.
    #[inline]
    pub fn push(&mut self, key: u64, index: u32, at: &mut impl Positions) {
        let item = pack(key, index);
        self.items.push(item);
        self.sift_up(self.items.len() - 1, item, at);
    }

    /// Gives the top a new key, larger or not. O(log n), O(1) alone.
    #[inline]
    pub fn replace_top(&mut self, key: u64, at: &mut impl Positions) {
        if let Some(&top) = self.items.first() {
            self.sift_down(0, pack(key, index_of(top)), at);
        }
    }

    /// Removes the top. O(log n), O(1) alone.
    #[inline]
    pub fn pop(&mut self, at: &mut impl Positions) {
        if let Some(last) = self.items.pop()
            && !self.items.is_empty()
        {
            self.sift_down(0, last, at);
        }
    }

    /// Removes what stands at `position`. O(log n).
    pub fn remove(&mut self, position: u32, at: &mut impl Positions) {
        let position = position as usize;
        if let Some(last) = self.items.pop()
            && position < self.items.len()
        {
            self.settle(position, last, at);
        }
    }

    /// Gives what stands at `position` a new key. O(log n).
    pub fn update(&mut self, position: u32, key: u64, at: &mut impl Positions) {
        let position = position as usize;
        let index = index_of(self.items[position]);
        self.settle(position, pack(key, index), at);
    }

    /// Gives every index a new key. O(n).
    pub fn rekey<P: Positions>(&mut self, at: &mut P, key: impl Fn(&P, u32) -> u64) {
        for position in 0..self.items.len() {
            let index = index_of(self.items[position]);
            self.place(position, pack(key(at, index), index), at);
        }
        for position in (0..self.items.len().div_ceil(ARITY)).rev() {
            self.sift_down(position, self.items[position], at);
        }
    }

    #[inline]
    fn settle(&mut self, position: usize, item: u64, at: &mut impl Positions) {
        if position > 0 && item < self.items[(position - 1) / ARITY] {
            self.sift_up(position, item, at);
        } else {
            self.sift_down(position, item, at);
        }
    }

    #[inline]
    #[allow(clippy::cast_possible_truncation, reason = "at most 2^24 indices")]
    fn place(&mut self, position: usize, item: u64, at: &mut impl Positions) {
        self.items[position] = item;
        at.set_position(index_of(item), position as u32);
    }

    #[inline]
    fn sift_up(&mut self, mut hole: usize, item: u64, at: &mut impl Positions) {
        while hole > 0 {
            let parent = (hole - 1) / ARITY;
            let above = self.items[parent];
            if above <= item {
                break;
            }
            self.place(hole, above, at);
            hole = parent;
        }
        self.place(hole, item, at);
    }

    #[inline]
    fn sift_down(&mut self, mut hole: usize, item: u64, at: &mut impl Positions) {
        while let Some((child, least)) = self.least_child(hole) {
            if item <= least {
                break;
            }
            self.place(hole, least, at);
            hole = child;
        }
        self.place(hole, item, at);
    }

    /// Position and value of the least child.
    #[inline]
    fn least_child(&self, parent: usize) -> Option<(usize, u64)> {
        let first = parent * ARITY + 1;
        if let Some(&[a, b, c, d]) = self.items.get(first..first + ARITY) {
            // A tournament: two independent comparisons, then one.
            let left = if b < a { (1, b) } else { (0, a) };
            let right = if d < c { (3, d) } else { (2, c) };
            let (child, least) = if right.1 < left.1 { right } else { left };
            return Some((first + child, least));
        }
        let rest = self.items.get(first..)?;
        let (child, &least) = rest.iter().enumerate().min_by_key(|&(_, &item)| item)?;
        Some((first + child, least))
    }
}
