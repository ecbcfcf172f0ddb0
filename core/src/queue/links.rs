//! Where the list links of waiting requests are kept: beside the slab's entries, 16 bytes each.
#![forbid(unsafe_code)]

use alloc::vec::Vec;
use core::cell::Cell;

pub use crate::slab::Link;

/// Access to the links by slab index.
///
/// A slab serves several pools at once, so there is no `&mut` to all of it: the caller only names entries that
/// wait in its own pool, whose lock it holds, and the implementation may rely on that.
pub trait Links {
    /// The link of an entry.
    fn read(&self, idx: u32) -> Link;
    /// Replaces the link of an entry.
    fn write(&self, idx: u32, link: Link);
    /// Replaces `next` alone.
    fn set_next(&self, idx: u32, next: u32);
    /// Replaces `prev` alone.
    fn set_prev(&self, idx: u32, prev: u32);
    /// Marks an entry as one that does not wait any more; returns its `next`.
    fn leave(&self, idx: u32) -> u32;
    /// The cost of the request, for the fairness policies of hosts.
    fn cost(&self, idx: u32) -> u32;
}

/// Links in a plain vector: for tests and benches of the queues alone.
#[derive(Debug)]
pub struct VecLinks {
    links: Vec<Cell<Link>>,
}

impl VecLinks {
    /// Room for `capacity` entries, none of which waits.
    pub fn new(capacity: u32) -> Self {
        Self { links: (0..capacity).map(|_| Cell::new(Link::IDLE)).collect() }
    }

    #[inline]
    fn edit(&self, idx: u32, change: impl FnOnce(&mut Link)) {
        let cell = &self.links[idx as usize];
        let mut link = cell.get();
        change(&mut link);
        cell.set(link);
    }
}

impl Links for VecLinks {
    #[inline]
    fn read(&self, idx: u32) -> Link {
        self.links[idx as usize].get()
    }

    #[inline]
    fn write(&self, idx: u32, link: Link) {
        self.links[idx as usize].set(link);
    }

    #[inline]
    fn set_next(&self, idx: u32, next: u32) {
        self.edit(idx, |link| link.next = next);
    }

    #[inline]
    fn set_prev(&self, idx: u32, prev: u32) {
        self.edit(idx, |link| link.prev = prev);
    }

    #[inline]
    fn leave(&self, idx: u32) -> u32 {
        self.edit(idx, Link::leave);
        self.read(idx).next
    }

    /// Every request costs 1.
    fn cost(&self, _idx: u32) -> u32 {
        1
    }
}
