//! Leftist heaps whose links are in what they hold.
//!
//! Crane's leftist tree (1972): the right spine of n nodes is at most log2(n + 1) long, so melding, taking the
//! root and removing any node take O(log n) steps in the worst case, not amortised. Nothing is allocated.
#![forbid(unsafe_code)]

use crate::types::NONE;

/// The links of one node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spot {
    /// Parent, `NONE` for the root.
    pub up: u32,
    /// Left child.
    pub left: u32,
    /// Right child.
    pub right: u32,
    /// Length of the right spine.
    pub rank: u8,
}

impl Spot {
    /// Alone in its heap.
    pub const ALONE: Self = Self { up: NONE, left: NONE, right: NONE, rank: 1 };
}

/// The nodes and their order.
pub trait Nodes {
    /// The links of a node.
    fn spot(&self, node: u32) -> Spot;
    /// Replaces them.
    fn set_spot(&mut self, node: u32, spot: Spot);
    /// Whether `a` comes before `b`. A total order: never equal for two nodes.
    fn is_before(&self, a: u32, b: u32) -> bool;
    /// Counts one step, for the tests of the worst case.
    fn count_step(&mut self) {}
}

/// Melds two heaps (`NONE`: empty) and returns the root.
pub fn meld(nodes: &mut impl Nodes, a: u32, b: u32) -> u32 {
    if a == NONE {
        return b;
    }
    if b == NONE {
        return a;
    }
    let (root, mut other) = in_order(nodes, a, b);
    let mut last = root;
    loop {
        nodes.count_step();
        let right = nodes.spot(last).right;
        if right == NONE {
            set_right(nodes, last, other);
            break;
        }
        let (first, second) = in_order(nodes, right, other);
        set_right(nodes, last, first);
        last = first;
        other = second;
    }
    // Every node on the merged spine has another right child now: all are put straight.
    while last != NONE {
        straighten(nodes, last);
        last = nodes.spot(last).up;
    }
    root
}

/// Adds a node to a heap and returns the root.
pub fn insert(nodes: &mut impl Nodes, root: u32, node: u32) -> u32 {
    nodes.set_spot(node, Spot::ALONE);
    meld(nodes, root, node)
}

/// Removes a node from the heap with this root and returns the new root. Looks at the order of the others only, so
/// its own may have changed already.
pub fn remove(nodes: &mut impl Nodes, root: u32, node: u32) -> u32 {
    let it = nodes.spot(node);
    for child in [it.left, it.right] {
        if child != NONE {
            set_up(nodes, child, NONE);
        }
    }
    let melded = meld(nodes, it.left, it.right);
    if it.up == NONE {
        debug_assert_eq!(root, node, "only the root has no parent");
        return melded;
    }
    let mut parent = nodes.spot(it.up);
    if parent.left == node {
        parent.left = melded;
    } else {
        parent.right = melded;
    }
    nodes.set_spot(it.up, parent);
    if melded != NONE {
        set_up(nodes, melded, it.up);
    }
    // Upwards the ranks that change grow by one a step, so there are at most log2(n) of them.
    let mut above = it.up;
    while above != NONE && straighten(nodes, above) {
        above = nodes.spot(above).up;
    }
    root
}

#[inline]
fn in_order(nodes: &impl Nodes, a: u32, b: u32) -> (u32, u32) {
    if nodes.is_before(a, b) { (a, b) } else { (b, a) }
}

#[inline]
fn set_up(nodes: &mut impl Nodes, node: u32, up: u32) {
    let spot = nodes.spot(node);
    nodes.set_spot(node, Spot { up, ..spot });
}

#[inline]
fn set_right(nodes: &mut impl Nodes, parent: u32, child: u32) {
    let spot = nodes.spot(parent);
    nodes.set_spot(parent, Spot { right: child, ..spot });
    set_up(nodes, child, parent);
}

#[inline]
fn rank(nodes: &impl Nodes, node: u32) -> u8 {
    if node == NONE { 0 } else { nodes.spot(node).rank }
}

/// Puts the deeper child on the left and the rank right; whether anything changed.
#[inline]
fn straighten(nodes: &mut impl Nodes, node: u32) -> bool {
    nodes.count_step();
    let mut it = nodes.spot(node);
    let before = it.rank;
    let (deep, shallow) = (rank(nodes, it.left), rank(nodes, it.right));
    if deep < shallow {
        core::mem::swap(&mut it.left, &mut it.right);
    }
    it.rank = deep.min(shallow) + 1;
    nodes.set_spot(node, it);
    it.rank != before
}
