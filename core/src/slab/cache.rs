//! Free slab indices that a pool keeps at hand.
#![forbid(unsafe_code)]

use super::CACHE;
use crate::types::NONE;

/// Free indices a pool keeps in plain memory, so that the path needs neither the shared list nor a
/// thread-local. A stack; a plain array, so that a push or a pop is two stores.
#[derive(Debug)]
pub struct FreeCache {
    pub(super) len: u32,
    pub(super) limit: u32,
    indices: [u32; CACHE],
}

impl FreeCache {
    /// Sets how many it may keep from others, at most [`CACHE`]: callers without LOCK and other pools take
    /// from the shared list alone, so what caches keep is missing there.
    #[allow(clippy::cast_possible_truncation, reason = "at most CACHE")]
    pub const fn set_limit(&mut self, limit: usize) {
        self.limit = if limit < CACHE { limit } else { CACHE } as u32;
    }

    /// Takes the index last given back.
    #[inline(always)]
    pub(super) fn pop(&mut self) -> Option<u32> {
        if self.len == 0 {
            return None;
        }
        self.len -= 1;
        Some(self.indices[self.len as usize % CACHE])
    }

    /// The caller saw that it is not full.
    #[inline(always)]
    pub(super) fn push(&mut self, idx: u32) {
        debug_assert!((self.len as usize) < CACHE, "spilt before it is full");
        self.indices[self.len as usize % CACHE] = idx;
        self.len += 1;
    }
}

impl Default for FreeCache {
    /// Empty, of the full size.
    fn default() -> Self {
        let mut empty = Self { len: 0, limit: 0, indices: [NONE; CACHE] };
        empty.set_limit(CACHE);
        empty
    }
}
