//! Lanes of one tenant at its cap in one band: a [leftist] heap by the arrival of their heads.
//!
//! Those of a [ranked](super::ranked) band stand in such a heap too, by their ranks.
#![forbid(unsafe_code)]

use super::lanes::{Lane, Lanes};
use super::leftist::{self, Nodes, Spot};

impl Nodes for Lanes {
    #[inline]
    fn spot(&self, lane: u32) -> Spot {
        let &Lane { at, left, right, rank, .. } = self.get(lane);
        Spot { up: at, left, right, rank }
    }

    #[inline]
    fn set_spot(&mut self, lane: u32, spot: Spot) {
        let it = self.get_mut(lane);
        (it.at, it.left, it.right, it.rank) = (spot.up, spot.left, spot.right, spot.rank);
    }

    #[inline]
    fn is_before(&self, a: u32, b: u32) -> bool {
        self.get(a).seq <= self.get(b).seq
    }

    #[inline]
    fn count_step(&mut self) {
        Self::count_step(self);
    }
}

/// Adds a lane, whose `seq` is set, to a heap and returns the root.
pub fn insert(lanes: &mut Lanes, root: u32, lane: u32) -> u32 {
    leftist::insert(lanes, root, lane)
}

/// Removes a lane from the heap with this root and returns the new root.
pub fn remove(lanes: &mut Lanes, root: u32, lane: u32) -> u32 {
    leftist::remove(lanes, root, lane)
}
