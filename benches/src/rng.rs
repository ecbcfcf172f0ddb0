//! A seeded xorshift generator: the same numbers in every run and for every peer.
#![forbid(unsafe_code)]

/// 64 bits of state, never zero.
#[derive(Clone, Debug)]
pub struct Rng(u64);

impl Rng {
    /// A generator with this seed (0 is replaced by 1).
    pub fn new(seed: u64) -> Self {
        Self(seed.max(1))
    }

    /// The next 64 bits.
    #[inline(always)]
    pub fn bits(&mut self) -> u64 {
        let mut x = self.0;
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        self.0 = x;
        x
    }

    /// A number below `bound`, which is at least 1.
    #[inline(always)]
    pub fn below(&mut self, bound: u32) -> u32 {
        // The high half of a 32 x 32 product: no division on a measured path.
        let product = (self.bits() >> 32) * u64::from(bound);
        u32::try_from(product >> 32).unwrap_or(0)
    }

    /// `0..count` in random order (Fisher and Yates).
    pub fn shuffled(&mut self, count: u32) -> Vec<u32> {
        let mut order: Vec<u32> = (0..count).collect();
        for last in (1..count).rev() {
            order.swap(last as usize, self.below(last + 1) as usize);
        }
        order
    }
}
