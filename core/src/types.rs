//! Plain types every stage shares: limits, indices, the description of a pool.

#![forbid(unsafe_code)]

pub mod chunked;
pub mod counters;
pub mod custom;
pub mod extend;
pub mod holdback;
pub mod limits;
pub mod outcome;
pub mod patience;
pub mod policy;
pub mod rank;
pub mod saturation;
pub mod settings;
pub mod template;

/// Bands a pool may have; one bit each in a `u64` mask.
pub const MAX_BANDS: usize = 64;

/// Commands and grants one turn may do before it hands the pool on.
///
/// Two in the loom models, so that a model meets a spent budget.
pub const TURN_BUDGET: u32 = if cfg!(loom) { 2 } else { 64 };

/// "No index": the end of a list, the absent flow.
pub const NONE: u32 = u32::MAX;

/// In place of a flow: the request is tracked, its entry knows the flow.
pub const HELD: u32 = u32::MAX - 1;

/// In place of an entry: the request is let through without one. No slab is so large, and a permit adds flags above.
pub const NO_ENTRY: u32 = (1 << 30) - 1;

/// A set of bands: bit `i` is the band at index `i`, 0 the most urgent.
pub type BandMask = u64;

/// A mask with the lowest `n` bits set (`n` up to 64).
#[inline]
pub const fn first_bands(n: usize) -> BandMask {
    if n >= 64 { u64::MAX } else { (1 << n) - 1 }
}
