//! Where the list links of waiting requests are kept: beside the slab's entries, 16 bytes each.
#![forbid(unsafe_code)]

use alloc::vec::Vec;
use core::cell::Cell;

pub use crate::slab::Link;

/// Access to the links and arrival numbers by slab index.
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
    /// Replaces `lane` alone.
    fn set_lane(&self, idx: u32, lane: u32);
    /// The arrival number given by [`set_seq`](Self::set_seq).
    fn seq(&self, idx: u32) -> u64;
    /// Stores the arrival number.
    fn set_seq(&self, idx: u32, seq: u64);
}

/// Links in plain vectors: for tests and benches of the queues alone.
#[derive(Debug)]
pub struct VecLinks {
    links: Vec<Cell<Link>>,
    seqs: Vec<Cell<u64>>,
}

impl VecLinks {
    /// Room for `capacity` entries, none of which waits.
    pub fn new(capacity: u32) -> Self {
        Self {
            links: (0..capacity).map(|_| Cell::new(Link::IDLE)).collect(),
            seqs: (0..capacity).map(|_| Cell::new(0)).collect(),
        }
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
    fn set_lane(&self, idx: u32, lane: u32) {
        self.edit(idx, |link| link.lane = lane);
    }

    #[inline]
    fn seq(&self, idx: u32) -> u64 {
        self.seqs[idx as usize].get()
    }

    #[inline]
    fn set_seq(&self, idx: u32, seq: u64) {
        self.seqs[idx as usize].set(seq);
    }
}
