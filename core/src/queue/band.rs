//! One band: its lanes in the order of their heads.
#![forbid(unsafe_code)]

use super::{heap::PackedHeap, lanes::Lanes, links::Links, order::Order};
use crate::types::NONE;

/// The lanes of one band that are not set aside.
///
/// A single lane, the usual case with anonymous requests, stands in `top` alone and has no key: the heap is used
/// only while there are two or more, and then all of them are in it with the keys of their heads.
#[derive(Debug)]
pub(super) struct Band {
    heap: PackedHeap,
    /// The lane whose head came first, `NONE` without lanes.
    top: u32,
    /// Requests that came and that went, modulo 2^32. Two counters, since one that goes up and down in the same
    /// decision makes the next decision wait for both stores.
    came: u32,
    went: u32,
}

impl Band {
    pub(super) const fn new() -> Self {
        Self { heap: PackedHeap::new(), top: NONE, came: 0, went: 0 }
    }

    /// Makes room for `lanes` lanes, never needed beyond `most`. May allocate.
    pub(super) fn reserve(&mut self, lanes: u32, most: u32) {
        self.heap.reserve(lanes, most);
    }

    /// Requests that wait, set aside or not.
    #[inline]
    pub(super) fn waiting(&self) -> u32 {
        self.came.wrapping_sub(self.went)
    }

    /// A request came.
    #[inline(always)]
    pub(super) fn count_in(&mut self) {
        self.came = self.came.wrapping_add(1);
    }

    /// A request went.
    #[inline(always)]
    pub(super) fn count_out(&mut self) {
        self.went = self.went.wrapping_add(1);
    }

    /// The lane whose head came first, `NONE` without lanes.
    #[inline(always)]
    pub(super) fn top(&self) -> u32 {
        self.top
    }

    /// Whether there is at most one lane.
    #[inline(always)]
    pub(super) fn has_one(&self) -> bool {
        self.heap.is_empty()
    }

    /// Adds a lane with waiters.
    #[inline]
    pub(super) fn push<L: Links>(
        &mut self,
        links: &L,
        order: &Order,
        lanes: &mut Lanes,
        lane: u32,
    ) {
        if self.top == NONE {
            self.top = lane;
        } else {
            self.push_beside(links, order, lanes, lane);
        }
    }

    fn push_beside<L: Links>(&mut self, links: &L, order: &Order, lanes: &mut Lanes, lane: u32) {
        if self.has_one() {
            // The only lane had no key while it was alone.
            self.heap.push(key(links, order, lanes, self.top), self.top, lanes);
        }
        self.heap.push(key(links, order, lanes, lane), lane, lanes);
        self.set_top();
    }

    /// The head of the top lane was taken out, the lane has others: with two lanes or more only.
    #[inline]
    pub(super) fn replace_top(&mut self, key: u64, lanes: &mut Lanes) {
        self.heap.replace_top(key, lanes);
        self.set_top();
    }

    /// A lane has another head.
    pub(super) fn update<L: Links>(
        &mut self,
        links: &L,
        order: &Order,
        lanes: &mut Lanes,
        lane: u32,
    ) {
        if !self.has_one() {
            self.heap.update(lanes.get(lane).at, key(links, order, lanes, lane), lanes);
            self.set_top();
        }
    }

    /// Takes a lane out.
    #[inline]
    pub(super) fn remove(&mut self, lanes: &mut Lanes, lane: u32) {
        if self.has_one() {
            self.top = NONE;
        } else {
            self.remove_beside(lanes, lane);
        }
    }

    fn remove_beside(&mut self, lanes: &mut Lanes, lane: u32) {
        self.heap.remove(lanes.get(lane).at, lanes);
        self.set_top();
        if self.heap.len() == 1 {
            self.heap.clear();
        }
    }

    /// The keys have a new base.
    pub(super) fn rekey<L: Links>(&mut self, links: &L, order: &Order, lanes: &mut Lanes) {
        self.heap.rekey(lanes, |lanes, lane| key(links, order, lanes, lane));
        if !self.has_one() {
            self.set_top();
        }
    }

    #[inline]
    fn set_top(&mut self) {
        self.top = self.heap.top().unwrap_or(NONE);
    }
}

#[inline]
fn key<L: Links>(links: &L, order: &Order, lanes: &Lanes, lane: u32) -> u64 {
    order.key(links.read(lanes.get(lane).head).seq())
}
