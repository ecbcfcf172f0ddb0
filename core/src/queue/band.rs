//! One band: its lanes in the order of their heads.
#![forbid(unsafe_code)]

use super::{
    heap::PackedHeap,
    lanes::{Lane, Lanes, Place},
    links::Links,
    order::Order,
};
use crate::types::NONE;

/// The lanes of one band that are not set aside.
///
/// A lane that just got its first request has the latest head of all, so it goes to the end of a *list*, which is
/// in order by itself; its key is not looked at. A lane whose head changes while others stand in the list goes to
/// the *heap*, by the key of its head. The first of all is the first of the list or the top of the heap. So flows
/// with one request at a time cost no heap at all, and one lane alone never needs a key: it stands in the list.
#[derive(Debug)]
pub(super) struct Band {
    heap: PackedHeap,
    /// The ends of the list, `NONE` if it is empty.
    first: u32,
    last: u32,
    /// The lane whose head came first, `NONE` without lanes.
    top: u32,
    /// Requests that came and that went, modulo 2^32. Two counters, since one that goes up and down in the same
    /// decision makes the next decision wait for both stores.
    came: u32,
    went: u32,
}

impl Band {
    pub(super) const fn new() -> Self {
        Self { heap: PackedHeap::new(), first: NONE, last: NONE, top: NONE, came: 0, went: 0 }
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

    /// Another root of the heap that holds the lanes of a [ranked](super::ranked) band.
    pub(super) fn set_root(&mut self, lane: u32) {
        self.top = lane;
    }

    /// Whether no lane has another beside it: whatever its head, it stands right.
    #[inline(always)]
    pub(super) fn has_one(&self) -> bool {
        self.first == self.last && self.heap.is_empty()
    }

    /// Adds a lane whose head is the latest arrival, once `fill` has made it so.
    #[inline(always)]
    pub(super) fn append(&mut self, lanes: &mut Lanes, lane: u32, fill: impl FnOnce(&mut Lane)) {
        let last = self.last;
        let it = lanes.get_mut(lane);
        fill(it);
        it.place = Place::List;
        it.left = last;
        it.right = NONE;
        self.last = lane;
        match lanes.find_mut(last) {
            Some(last) => last.right = lane,
            None => self.first = lane,
        }
        if self.top == NONE {
            self.top = lane;
        }
    }

    /// Adds a lane that comes back with the head it had.
    pub(super) fn put_back<L: Links>(
        &mut self,
        links: &L,
        order: &Order,
        lanes: &mut Lanes,
        lane: u32,
    ) {
        if self.top == NONE {
            self.append(lanes, lane, |_| {});
        } else {
            self.push(links, order, lanes, lane);
            self.set_top(links, order, lanes);
        }
    }

    /// The head of the top lane was taken out and the lane has others; not if it is [alone](Self::has_one).
    #[inline]
    pub(super) fn top_changed<L: Links>(&mut self, links: &L, order: &Order, lanes: &mut Lanes) {
        if self.top == self.first {
            self.update(links, order, lanes, self.top);
        } else {
            self.heap.replace_top(key(links, order, lanes, self.top), lanes);
            self.set_top(links, order, lanes);
        }
    }

    /// A lane has a later head.
    pub(super) fn update<L: Links>(
        &mut self,
        links: &L,
        order: &Order,
        lanes: &mut Lanes,
        lane: u32,
    ) {
        if lanes.get(lane).place == Place::Heap {
            self.heap.update(lanes.get(lane).at, key(links, order, lanes, lane), lanes);
        } else if self.first != self.last {
            self.unlink(lanes, lane);
            self.push(links, order, lanes, lane);
        }
        self.set_top(links, order, lanes);
    }

    /// Takes the top lane out.
    #[inline(always)]
    pub(super) fn pop<L: Links>(&mut self, links: &L, order: &Order, lanes: &mut Lanes) {
        if self.heap.is_empty() {
            // The first of the list, then.
            let next = lanes.get(self.top).right;
            self.first = next;
            self.top = next;
            match lanes.find_mut(next) {
                Some(next) => next.left = NONE,
                None => self.last = NONE,
            }
        } else {
            self.remove(links, order, lanes, self.top);
        }
    }

    /// Takes a lane out.
    pub(super) fn remove<L: Links>(
        &mut self,
        links: &L,
        order: &Order,
        lanes: &mut Lanes,
        lane: u32,
    ) {
        if lanes.get(lane).place == Place::Heap {
            self.heap.remove(lanes.get(lane).at, lanes);
        } else {
            self.unlink(lanes, lane);
        }
        self.set_top(links, order, lanes);
    }

    /// The keys have a new base.
    pub(super) fn rekey<L: Links>(&mut self, links: &L, order: &Order, lanes: &mut Lanes) {
        self.heap.rekey(lanes, |lanes, lane| key(links, order, lanes, lane));
        self.set_top(links, order, lanes);
    }

    fn push<L: Links>(&mut self, links: &L, order: &Order, lanes: &mut Lanes, lane: u32) {
        lanes.get_mut(lane).place = Place::Heap;
        self.heap.push(key(links, order, lanes, lane), lane, lanes);
    }

    fn unlink(&mut self, lanes: &mut Lanes, lane: u32) {
        let (left, right) = (lanes.get(lane).left, lanes.get(lane).right);
        match lanes.find_mut(left) {
            Some(left) => left.right = right,
            None => self.first = right,
        }
        match lanes.find_mut(right) {
            Some(right) => right.left = left,
            None => self.last = left,
        }
    }

    fn set_top<L: Links>(&mut self, links: &L, order: &Order, lanes: &mut Lanes) {
        let Some(top) = self.heap.top() else {
            self.top = self.first;
            return;
        };
        self.top = if self.first == NONE {
            if self.heap.len() == 1 {
                // Alone: to where it needs no key.
                self.heap.clear();
                self.append(lanes, top, |_| {});
            }
            top
        } else if self.heap.top_key() < Some(key(links, order, lanes, self.first)) {
            top
        } else {
            self.first
        };
    }
}

#[inline]
fn key<L: Links>(links: &L, order: &Order, lanes: &Lanes, lane: u32) -> u64 {
    order.key(links.read(lanes.get(lane).head).seq())
}
