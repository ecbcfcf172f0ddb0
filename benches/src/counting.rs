//! An allocator that counts live bytes, for the memory figures only.

use core::{
    alloc::{GlobalAlloc, Layout},
    sync::atomic::{AtomicUsize, Ordering::Relaxed},
};
use std::alloc::System;

/// The system's allocator with a count of what is live.
#[derive(Debug)]
pub struct Counting {
    live: AtomicUsize,
}

impl Counting {
    /// A counter at zero.
    #[allow(clippy::new_without_default, reason = "a static needs a const constructor")]
    pub const fn new() -> Self {
        Self { live: AtomicUsize::new(0) }
    }

    /// Bytes asked for and not given back, as the callers' layouts say: without the allocator's own rounding.
    pub fn live_bytes(&self) -> usize {
        // ORDERING: a statistic; the measuring thread reads what it allocated itself.
        self.live.load(Relaxed)
    }

    fn took(&self, bytes: usize) {
        // ORDERING: a statistic.
        self.live.fetch_add(bytes, Relaxed);
    }

    fn gave(&self, bytes: usize) {
        // ORDERING: a statistic.
        self.live.fetch_sub(bytes, Relaxed);
    }
}

// SAFETY: every call goes to `System` unchanged; the counter does not touch the memory.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        self.took(layout.size());
        // SAFETY: the caller's promise about the layout is passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        self.took(layout.size());
        // SAFETY: the caller's promise about the layout is passed on.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        self.gave(layout.size());
        // SAFETY: the block came from `System` with this layout, as the caller promises.
        unsafe { System.dealloc(block, layout) }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        self.took(size);
        self.gave(layout.size());
        // SAFETY: the block came from `System` with this layout, as the caller promises.
        unsafe { System.realloc(block, layout, size) }
    }
}
