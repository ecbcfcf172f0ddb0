//! Decisions without threads: what the choice of the next request costs as data structure.

use core::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, VecDeque};

/// Eight bands, strict: a bit mask over rings of ids.
#[derive(Debug, Default)]
pub struct Bitmap {
    waiting: [VecDeque<u32>; 8],
    occupied: u32,
}

impl Bitmap {
    /// Queues an id in a band of 0..8.
    #[inline(always)]
    pub fn push(&mut self, band: u32, id: u32) {
        let band = band & 7;
        self.waiting[band as usize].push_back(id);
        self.occupied |= 1 << band;
    }

    /// Takes the oldest id of the lowest band that has one: the band and the id.
    #[inline(always)]
    pub fn pop(&mut self) -> Option<(u32, u32)> {
        let band = self.occupied.trailing_zeros() & 7;
        let queue = &mut self.waiting[band as usize];
        let id = queue.pop_front();
        if queue.is_empty() {
            self.occupied &= !(1 << band);
        }
        id.map(|id| (band, id))
    }
}

/// Weighted fair queuing the textbook way: a heap on finish tags, the last tag of each tenant in a map.
#[derive(Debug, Default)]
pub struct FinishTags {
    heap: BinaryHeap<Reverse<(u64, u64, u32)>>,
    last: HashMap<u32, u64>,
    now: u64,
    arrivals: u64,
}

impl FinishTags {
    /// Queues a request of this tenant and cost; weights are 1 to 4 by tenant.
    #[inline(always)]
    pub fn push(&mut self, tenant: u32, cost: u64) {
        let last = self.last.entry(tenant).or_insert(0);
        *last = self.now.max(*last) + cost * 16 / u64::from(1 + tenant % 4);
        self.arrivals += 1;
        self.heap.push(Reverse((*last, self.arrivals, tenant)));
    }

    /// Takes the request with the smallest tag: its tenant.
    #[inline(always)]
    pub fn pop(&mut self) -> Option<u32> {
        let Reverse((tag, _, tenant)) = self.heap.pop()?;
        self.now = tag;
        Some(tenant)
    }
}

#[cfg(test)]
mod tests {
    use super::{Bitmap, FinishTags};

    #[test]
    fn the_bit_mask_serves_bands_in_order_and_ids_in_arrival_order() {
        let mut bands = Bitmap::default();
        for (band, id) in [(5, 1), (2, 2), (2, 3)] {
            bands.push(band, id);
        }
        assert_eq!(
            [bands.pop(), bands.pop(), bands.pop(), bands.pop()],
            [Some((2, 2)), Some((2, 3)), Some((5, 1)), None]
        );
    }

    #[test]
    fn finish_tags_share_by_weight() {
        let mut tags = FinishTags::default();
        for _ in 0..40 {
            tags.push(0, 10);
            tags.push(3, 10);
        }
        let heavy = (0..40).filter(|_| tags.pop() == Some(3)).count();
        assert_eq!(heavy, 32, "tenant 3 has four times the weight of tenant 0");
    }
}
