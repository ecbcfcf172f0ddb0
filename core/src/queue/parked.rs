//! Leftist heaps of lanes: the lanes of one tenant at its cap in one band, by the arrival of their heads.
//!
//! Crane's leftist tree (1972): the right spine of n lanes is at most log2(n + 1) long, so melding, taking the
//! root and removing any lane take O(log n) steps in the worst case, not amortised. The links are in the lanes.
#![forbid(unsafe_code)]

use super::lanes::Lanes;
use crate::types::NONE;

/// Melds two heaps (`NONE`: empty) and returns the root.
pub fn meld(lanes: &mut Lanes, a: u32, b: u32) -> u32 {
    if a == NONE {
        return b;
    }
    if b == NONE {
        return a;
    }
    let (root, mut other) = in_order(lanes, a, b);
    let mut last = root;
    loop {
        lanes.count_step();
        let right = lanes.get(last).right;
        if right == NONE {
            set_right(lanes, last, other);
            break;
        }
        let (first, second) = in_order(lanes, right, other);
        set_right(lanes, last, first);
        last = first;
        other = second;
    }
    // Every lane on the merged spine has another right child now: all are put straight.
    while last != NONE {
        straighten(lanes, last);
        last = lanes.get(last).at;
    }
    root
}

/// Adds a lane, whose `seq` is set, to a heap and returns the root.
pub fn insert(lanes: &mut Lanes, root: u32, lane: u32) -> u32 {
    let it = lanes.get_mut(lane);
    it.left = NONE;
    it.right = NONE;
    it.at = NONE;
    it.rank = 1;
    meld(lanes, root, lane)
}

/// Removes a lane from the heap with this root and returns the new root.
pub fn remove(lanes: &mut Lanes, root: u32, lane: u32) -> u32 {
    let it = *lanes.get(lane);
    for child in [it.left, it.right] {
        if child != NONE {
            lanes.get_mut(child).at = NONE;
        }
    }
    let melded = meld(lanes, it.left, it.right);
    if it.at == NONE {
        debug_assert_eq!(root, lane, "only the root has no parent");
        return melded;
    }
    let parent = lanes.get_mut(it.at);
    if parent.left == lane {
        parent.left = melded;
    } else {
        parent.right = melded;
    }
    if melded != NONE {
        lanes.get_mut(melded).at = it.at;
    }
    // Upwards the ranks that change grow by one a step, so there are at most log2(n) of them.
    let mut above = it.at;
    while above != NONE && straighten(lanes, above) {
        above = lanes.get(above).at;
    }
    root
}

#[inline]
fn in_order(lanes: &Lanes, a: u32, b: u32) -> (u32, u32) {
    if lanes.get(a).seq <= lanes.get(b).seq { (a, b) } else { (b, a) }
}

#[inline]
fn set_right(lanes: &mut Lanes, parent: u32, child: u32) {
    lanes.get_mut(parent).right = child;
    lanes.get_mut(child).at = parent;
}

#[inline]
fn rank(lanes: &Lanes, lane: u32) -> u8 {
    if lane == NONE { 0 } else { lanes.get(lane).rank }
}

/// Puts the deeper child on the left and the rank right; whether anything changed.
#[inline]
fn straighten(lanes: &mut Lanes, lane: u32) -> bool {
    lanes.count_step();
    let (left, right) = (lanes.get(lane).left, lanes.get(lane).right);
    let (deep, shallow) = (rank(lanes, left), rank(lanes, right));
    let it = lanes.get_mut(lane);
    if deep < shallow {
        it.left = right;
        it.right = left;
    }
    let rank = deep.min(shallow) + 1;
    let changed = it.rank != rank;
    it.rank = rank;
    changed
}
