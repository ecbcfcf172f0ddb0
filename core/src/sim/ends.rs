//! The running requests by the time they end, earliest first, equal times in row order.
//!
//! A 4-ary heap: half as deep as a binary one, and the least of four children is found without a branch that a processor
//! would guess wrong. Mostly one request ends and the next one starts in the same step, so what a pop leaves is a hole at
//! the top that the next push fills: one way down instead of two.
#![forbid(unsafe_code)]

/// End and row in one number: `end_ns 64 | row 32`.
type Key = u128;

const CHILDREN: usize = 4;

/// The heap. Every call is O(log n); only a push beyond the capacity allocates.
#[derive(Clone, Debug)]
pub struct Ends {
    keys: Vec<Key>,
    /// The top was popped and stands for nothing.
    has_hole: bool,
}

impl Ends {
    /// Room for `capacity` requests without growing.
    pub fn with_capacity(capacity: usize) -> Self {
        Self { keys: Vec::with_capacity(capacity), has_hole: false }
    }

    /// Requests in it.
    #[inline]
    pub fn len(&self) -> usize {
        self.keys.len() - usize::from(self.has_hole)
    }

    /// Whether there is none.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// When the first one ends.
    #[inline]
    pub fn first_ns(&mut self) -> Option<u64> {
        self.close();
        self.keys.first().map(|&key| split(key).0)
    }

    /// Takes the first one out: its end in nanoseconds and its row.
    #[inline]
    pub fn pop(&mut self) -> Option<(u64, u32)> {
        self.close();
        let first = *self.keys.first()?;
        self.has_hole = true;
        Some(split(first))
    }

    /// A request of this row ends then.
    #[inline]
    pub fn push(&mut self, end_ns: u64, row: u32) {
        let key = Key::from(end_ns) << 32 | Key::from(row);
        if self.has_hole {
            self.has_hole = false;
            self.sink(key);
        } else {
            self.keys.push(key);
            self.rise(key);
        }
    }

    /// Fills the hole with the last one, if nobody else has.
    #[inline]
    fn close(&mut self) {
        if self.has_hole {
            self.has_hole = false;
            if let Some(last) = self.keys.pop()
                && !self.keys.is_empty()
            {
                self.sink(last);
            }
        }
    }

    /// Puts a key in at the top.
    #[inline]
    fn sink(&mut self, key: Key) {
        let keys = &mut self.keys[..];
        let mut at = 0;
        loop {
            let first = CHILDREN * at + 1;
            let Some(children) = keys.get(first..) else { break };
            let least = first + least_of(children);
            let Some(&child) = keys.get(least).filter(|&&child| child < key) else { break };
            keys[at] = child;
            at = least;
        }
        keys[at] = key;
    }

    /// Moves the last key, which this is, to its place.
    #[inline]
    fn rise(&mut self, key: Key) {
        let keys = &mut self.keys[..];
        let mut at = keys.len() - 1;
        while at > 0 {
            let parent = (at - 1) / CHILDREN;
            if keys[parent] <= key {
                break;
            }
            keys[at] = keys[parent];
            at = parent;
        }
        keys[at] = key;
    }
}

/// Where the least of the first four stands; 0 for none.
#[inline]
fn least_of(children: &[Key]) -> usize {
    if let Some(four) = children.first_chunk::<CHILDREN>() {
        let left = usize::from(four[1] < four[0]);
        let right = 2 + usize::from(four[3] < four[2]);
        return if four[right] < four[left] { right } else { left };
    }
    let mut least = 0;
    for at in 1..children.len() {
        if children[at] < children[least] {
            least = at;
        }
    }
    least
}

#[inline]
#[allow(clippy::cast_possible_truncation, reason = "the two parts of a key")]
const fn split(key: Key) -> (u64, u32) {
    ((key >> 32) as u64, key as u32)
}

#[cfg(test)]
mod tests {
    use super::Ends;
    use crate::sim::assign::mix64;
    use core::cmp::Reverse;
    use std::collections::BinaryHeap;

    #[test]
    fn ends_come_out_in_the_order_of_a_plain_heap_whatever_stands_between() {
        for seed in 0..40 {
            let (mut ends, mut plain) = (Ends::with_capacity(4), BinaryHeap::new());
            for step in 0..2_000u64 {
                let bits = mix64(seed << 32 | step);
                // Few different ends, so that equal ones are common; phases that grow and that shrink.
                let grows = bits % 8 < if step / 100 % 2 == 0 { 5 } else { 3 };
                if grows {
                    let (end, row) = (bits >> 8 & 31, u32::try_from(bits >> 40).unwrap_or(0));
                    ends.push(end, row);
                    plain.push(Reverse((end, row)));
                } else {
                    assert_eq!(ends.pop(), plain.pop().map(|Reverse(first)| first));
                }
                if bits.is_multiple_of(3) {
                    let first = plain.peek().map(|&Reverse((end, _))| end);
                    assert_eq!(ends.first_ns(), first, "seed {seed} step {step}");
                }
                assert_eq!((ends.len(), ends.is_empty()), (plain.len(), plain.is_empty()));
            }
        }
    }

    #[test]
    fn the_whole_range_of_time_and_rows_is_kept() {
        let mut ends = Ends::with_capacity(0);
        for key in [(u64::MAX, 0), (0, u32::MAX), (u64::MAX, u32::MAX), (0, 0)] {
            ends.push(key.0, key.1);
        }
        let all: Vec<_> = core::iter::from_fn(|| ends.pop()).collect();
        assert_eq!(all, [(0, 0), (0, u32::MAX), (u64::MAX, 0), (u64::MAX, u32::MAX)]);
    }
}
