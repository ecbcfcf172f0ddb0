//! The slab as the queues and the wheel of one pool see it.

use super::Shard;
use crate::queue::{Links, TimerLinks};
use crate::slab::{Link, LinkTable, Slab, TimerLink};

/// Links and timers of the requests that wait in the pool whose LOCK the maker holds.
///
/// The queues and the wheel name only entries that wait in their own pool, and those belong to the
/// holder; that is what makes the accesses below exclusive.
#[derive(Clone, Copy, Debug)]
pub(super) struct SlabView<'s> {
    slab: &'s Slab,
    links: LinkTable<'s>,
}

impl<'s> SlabView<'s> {
    /// For the holder of a pool's LOCK only.
    #[inline(always)]
    pub(super) fn new(shard: &'s Shard) -> Self {
        Self { slab: &shard.slab, links: shard.slab.links() }
    }

    #[inline(always)]
    fn link<R>(self, idx: u32, f: impl FnOnce(&mut Link) -> R) -> R {
        // SAFETY: the entry waits in the pool whose LOCK our maker holds.
        unsafe { self.links.with(idx, f) }
    }

    #[inline(always)]
    fn edit_timer<R>(self, idx: u32, f: impl FnOnce(&mut TimerLink) -> R) -> R {
        // SAFETY: the entry waits in the pool whose LOCK our maker holds.
        unsafe { self.slab.timers().with(idx, f) }
    }
}

impl Links for SlabView<'_> {
    #[inline(always)]
    fn read(&self, idx: u32) -> Link {
        self.link(idx, |link| *link)
    }

    #[inline(always)]
    fn write(&self, idx: u32, new: Link) {
        self.link(idx, |link| *link = new);
    }

    #[inline(always)]
    fn set_next(&self, idx: u32, next: u32) {
        self.link(idx, |link| link.next = next);
    }

    #[inline(always)]
    fn set_prev(&self, idx: u32, prev: u32) {
        self.link(idx, |link| link.prev = prev);
    }

    #[inline(always)]
    fn leave(&self, idx: u32) -> u32 {
        self.link(idx, |link| {
            link.leave();
            link.next
        })
    }

    fn cost(&self, idx: u32) -> u32 {
        // SAFETY: the entry waits in the pool whose LOCK our maker holds.
        unsafe { self.slab.with_body(idx, |body| body.cost) }
    }
}

impl TimerLinks for SlabView<'_> {
    #[inline(always)]
    fn timer(&self, idx: u32) -> TimerLink {
        self.edit_timer(idx, |timer| *timer)
    }

    #[inline(always)]
    fn set_timer(&self, idx: u32, new: TimerLink) {
        self.edit_timer(idx, |timer| *timer = new);
    }

    #[inline(always)]
    fn set_next(&self, idx: u32, next: u32) {
        self.edit_timer(idx, |timer| timer.next = next);
    }

    #[inline(always)]
    fn set_prev(&self, idx: u32, prev: u32) {
        self.edit_timer(idx, |timer| timer.prev = prev);
    }

    fn deadline_ns(&self, idx: u32) -> u64 {
        // SAFETY: the entry waits in the pool whose LOCK our maker holds.
        unsafe { self.slab.with_body(idx, |body| body.deadline_ns) }
    }
}
