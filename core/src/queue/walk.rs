//! Who waits, one after the other: for views, never for a decision.
#![forbid(unsafe_code)]

use super::bands::BandQueues;
use super::links::Links;
use crate::types::NONE;

/// Lanes one walk looks at: it runs under LOCK.
pub const MOST_LANES: usize = 4096;

impl BandQueues {
    /// Calls `visit` with the index of each request that waits, lane by lane, until it answers `false` or
    /// [`MOST_LANES`] were looked at.
    pub fn walk<L: Links>(&self, links: &L, visit: impl FnMut(u32) -> bool) {
        self.walk_lanes(links, MOST_LANES, visit);
    }

    /// The same over all of them, for a change of settings: O(lanes and waiting requests).
    pub fn walk_all<L: Links>(&self, links: &L, mut visit: impl FnMut(u32)) {
        self.walk_lanes(links, usize::MAX, |idx| {
            visit(idx);
            true
        });
    }

    fn walk_lanes<L: Links>(&self, links: &L, most: usize, mut visit: impl FnMut(u32) -> bool) {
        if self.waiting() == 0 {
            return;
        }
        for lane in self.lanes.in_use().take(most) {
            if self.is_keyed(lane.band.into()) {
                if !self.walk_heap(lane.head, &mut visit) {
                    return;
                }
                continue;
            }
            let mut idx = lane.head;
            while idx != NONE {
                if !visit(idx) {
                    return;
                }
                idx = links.read(idx).next;
            }
        }
    }
}
