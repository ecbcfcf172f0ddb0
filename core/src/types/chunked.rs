//! A table that grows without moving what it holds.
#![forbid(unsafe_code)]

use alloc::{boxed::Box, vec, vec::Vec};

/// Rows in one chunk; few in the loom models, which build everything anew for each execution.
pub const CHUNK_ROWS: u32 = if cfg!(loom) { 4 } else { 1024 };

/// Rows of `width` cells each, made in chunks of [`CHUNK_ROWS`].
///
/// The table of chunks is sized at construction, so that growing (off the hot path, when a flow is interned)
/// allocates one chunk at most and copies nothing.
#[derive(Debug)]
pub struct Chunked<T> {
    chunks: Vec<Box<[T]>>,
    width: usize,
    fill: T,
}

impl<T: Copy> Chunked<T> {
    /// An empty table for up to `max_rows` rows of `width` cells; new cells hold `fill`.
    pub fn new(max_rows: u32, width: u32, fill: T) -> Self {
        let chunks = Vec::with_capacity(max_rows.div_ceil(CHUNK_ROWS) as usize);
        Self { chunks, width: width as usize, fill }
    }

    /// Makes every row up to and including `row` exist.
    pub fn ensure(&mut self, row: u32) {
        while self.chunks.len() <= (row / CHUNK_ROWS) as usize {
            self.chunks.push(vec![self.fill; CHUNK_ROWS as usize * self.width].into_boxed_slice());
        }
    }

    /// Whether the row exists.
    #[inline(always)]
    pub fn contains(&self, row: u32) -> bool {
        ((row / CHUNK_ROWS) as usize) < self.chunks.len()
    }

    /// A cell of a row that exists.
    #[inline(always)]
    pub fn get(&self, row: u32, column: u32) -> &T {
        &self.chunks[(row / CHUNK_ROWS) as usize][self.offset(row, column)]
    }

    /// A cell of a row that exists, to change.
    #[inline(always)]
    pub fn get_mut(&mut self, row: u32, column: u32) -> &mut T {
        let offset = self.offset(row, column);
        &mut self.chunks[(row / CHUNK_ROWS) as usize][offset]
    }

    /// The cells of a row that exists, and those behind it, to change.
    #[inline(always)]
    pub fn row_mut(&mut self, row: u32) -> &mut [T] {
        let offset = self.offset(row, 0);
        &mut self.chunks[(row / CHUNK_ROWS) as usize][offset..]
    }

    #[inline(always)]
    fn offset(&self, row: u32, column: u32) -> usize {
        (row % CHUNK_ROWS) as usize * self.width + column as usize
    }
}
