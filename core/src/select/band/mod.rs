//! Which band is served next: strict priority, or weighted fair queuing above a saturation.
//!
//! A policy is a rank over the bands; it never sees a queue. The turn calls, for each decision,
//! [`begin`](BandPolicy::begin) with the bands that are not gated, [`best`](BandPolicy::best) with those of
//! them that have waiters (again without a band that turned out to have nothing to run), and
//! [`record`](BandPolicy::record) after a real dispatch. Integers only: equal inputs give equal decisions on
//! every machine. Where the rules come from: `core/tests/vectors/README.md`; worked
//! tables (regions, credits, virtual times, weights, rescaling): `TABLES.md` beside this file.
#![forbid(unsafe_code)]

use alloc::boxed::Box;

use arrayvec::ArrayVec;

use crate::types::policy::{BandSelection, Reading};
use crate::types::{BandMask, MAX_BANDS};

pub mod credits;
pub mod custom;
pub mod virtual_time;
pub mod weights;
pub mod wfq;

pub use credits::Credits;
pub use custom::CustomBands;
pub use virtual_time::VirtualTime;
pub use wfq::{Running, Wfq};

/// An order over the bands, by index.
pub type Order = ArrayVec<u8, MAX_BANDS>;

/// The highest band index, all ones.
const LAST: u32 = 63;
const _: () = assert!(MAX_BANDS == LAST as usize + 1, "masks and arrays agree");

/// Which rule orders the bands at the moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Highest priority first.
    Strict,
    /// By weight.
    Wfq,
}

impl Mode {
    /// The label of reports and metrics.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Strict => "strict",
            Self::Wfq => "wfq",
        }
    }
}

/// The band selection of one pool. Single owner (the holder of the pool's lock); no call allocates.
#[derive(Debug)]
#[allow(
    clippy::large_enum_variant,
    reason = "one a pool, inline in its line of work: a box would cost a cache line per decision"
)]
pub enum BandPolicy {
    /// Highest priority first, always; the number of bands.
    Strict(u8),
    /// Weighted above the activation threshold, strict below it.
    Wfq(Wfq),
    /// The host's own. Known to general turns alone, by [`host`](BandPolicy::host); to all others it is strict.
    Custom(Box<CustomBands>),
}

impl BandPolicy {
    /// The policy `selection` describes, over `priorities_desc`: unique, most urgent first, at most 64 (more are left out).
    pub fn new(selection: &BandSelection, priorities_desc: &[i32]) -> Self {
        match selection {
            BandSelection::Strict => Self::Strict(band_count(priorities_desc)),
            BandSelection::Wfq(params) => Self::Wfq(Wfq::new(params, priorities_desc)),
            BandSelection::Custom(named) => Self::Custom(CustomBands::new(named, priorities_desc)),
        }
    }

    /// Whether no schedule of ours is configured: neither `begin` nor `record` does anything.
    #[inline]
    pub const fn is_strict(&self) -> bool {
        !matches!(self, Self::Wfq(_))
    }

    /// Opens a decision: `eligible` are the bands that are not gated, with waiters or not.
    ///
    /// Switches the mode by `reading`, turns a used-up round, lets bands rejoin. `now` (nanoseconds, monotonic) is
    /// asked for only if the mode changes. Calling it again without a dispatch in between changes nothing.
    #[inline(always)]
    pub fn begin(&mut self, reading: Reading, eligible: BandMask, now: impl FnOnce() -> u64) {
        if let Self::Wfq(wfq) = self {
            wfq.begin(reading, eligible, now);
        }
    }

    /// The first band in rank order among `candidates`, a subset of the eligible; `None` iff there is none.
    #[inline(always)]
    pub fn best(&self, candidates: BandMask) -> Option<u32> {
        if let Self::Wfq(wfq) = self { wfq.best(candidates) } else { first(candidates) }
    }

    /// The same where a host's policy may be in force.
    #[inline]
    pub fn best_of_any(&self, candidates: BandMask) -> Option<u32> {
        if let Self::Custom(own) = self { own.best(candidates) } else { self.best(candidates) }
    }

    /// The host's policy: to be asked by [`CustomBands::begin`] before a decision, and told of a dispatch.
    #[inline]
    pub fn host(&mut self) -> Option<&mut CustomBands> {
        if let Self::Custom(own) = self { Some(own) } else { None }
    }

    /// Settles a dispatch of `band`, one of `eligible`. Nothing is charged while the mode is strict.
    #[inline(always)]
    pub fn record(&mut self, eligible: BandMask, band: u32) {
        if let Self::Wfq(wfq) = self {
            wfq.record(eligible, band);
        }
    }

    /// Fills `order` with every band in the order of this decision: what repeated [`best`](Self::best) would
    /// give for the eligible, then the gated. In strict mode it is the identity.
    pub fn rank(&self, eligible: BandMask, order: &mut Order) {
        order.clear();
        match self {
            Self::Strict(len) => order.extend(0..*len),
            Self::Wfq(wfq) => wfq.rank(eligible, order),
            Self::Custom(own) => own.rank(order),
        }
    }

    /// Takes another set of bands, matched by priority; cheap and without effect if it is the same.
    pub fn set_bands(&mut self, priorities_desc: &[i32]) {
        match self {
            Self::Strict(len) => *len = band_count(priorities_desc),
            Self::Wfq(wfq) => wfq.set_bands(priorities_desc),
            Self::Custom(own) => own.set_bands(priorities_desc),
        }
    }

    /// Goes on from where `old` is, as far as the rules are of the same kind: bands are matched by priority, credits
    /// are limited to the new quotas, virtual times go into the new units; a host's instance is kept if its
    /// parameters are the same.
    pub fn inherit(&mut self, old: &mut Self) {
        match (self, old) {
            (Self::Wfq(new), Self::Wfq(old)) => new.inherit(old),
            (Self::Custom(new), Self::Custom(old)) => new.keep(old),
            _ => {}
        }
    }

    /// Strict or weighted, as of the last [`begin`](Self::begin).
    pub fn mode(&self) -> Mode {
        match self {
            Self::Strict(_) | Self::Custom(_) => Mode::Strict,
            Self::Wfq(wfq) => wfq.mode(),
        }
    }

    /// The weighted policy, for reports, conformance tests and reload.
    pub fn wfq(&self) -> Option<&Wfq> {
        if let Self::Wfq(wfq) = self { Some(wfq) } else { None }
    }

    /// The weighted policy, to restore its state.
    pub fn wfq_mut(&mut self) -> Option<&mut Wfq> {
        if let Self::Wfq(wfq) = self { Some(wfq) } else { None }
    }

    /// Weights over all provisioned bands as distributed (explicit: 1/10,000); empty if strict.
    pub fn weights(&self) -> &[u64] {
        self.wfq().map_or(&[], |wfq| wfq.weights().distributed())
    }

    /// Credits left in this round; `None` unless the schedule is priority-first.
    pub fn credits(&self) -> Option<&[u64]> {
        self.wfq()?.credits().map(Credits::credit)
    }

    /// Credits owed; `None` unless the schedule is priority-first.
    pub fn carry(&self) -> Option<&[u64]> {
        self.wfq()?.credits().map(Credits::carry)
    }

    /// Credits a round; `None` unless the schedule is priority-first.
    pub fn quota(&self) -> Option<&[u64]> {
        self.wfq()?.credits().map(Credits::quota)
    }

    /// Dispatches in one round; `None` unless the schedule is priority-first.
    pub fn round(&self) -> Option<u64> {
        self.wfq()?.credits().map(Credits::round)
    }

    /// Virtual times as numerators, and the denominator they share; `None` unless the schedule is interleaved.
    pub fn virtual_times(&self) -> Option<(ArrayVec<u64, MAX_BANDS>, u64)> {
        self.wfq()?.virtual_time().map(|vt| (vt.times(), vt.unit()))
    }

    /// Weight changes that could not keep virtual times exact; 0 unless the schedule is interleaved.
    pub fn vt_rescaled(&self) -> u64 {
        self.wfq().and_then(Wfq::virtual_time).map_or(0, VirtualTime::vt_rescaled)
    }
}

fn band_count(priorities: &[i32]) -> u8 {
    priorities.iter().take(MAX_BANDS).fold(0, |count, _| count + 1)
}

/// The identity order over `len` bands.
fn identity(len: usize, order: &mut Order) {
    order.extend((0..len.min(MAX_BANDS)).map(narrow));
}

/// Where a band stands in a per-band array. The mask tells the compiler that no bounds check is needed.
#[inline]
const fn at(band: u32) -> usize {
    (band & LAST) as usize
}

/// An index as it stands in an [`Order`].
#[inline]
#[allow(clippy::cast_possible_truncation, reason = "a band index is below 64")]
const fn narrow(band: usize) -> u8 {
    (band % MAX_BANDS) as u8
}

/// The most urgent band of a set.
#[inline]
fn first(bands: BandMask) -> Option<u32> {
    (bands != 0).then(|| bands.trailing_zeros())
}

#[inline]
fn has(bands: BandMask, band: u32) -> bool {
    bands >> (band & LAST) & 1 == 1
}

/// The indices of a set, most urgent first.
#[inline]
fn bits(mut bands: BandMask) -> impl Iterator<Item = usize> {
    core::iter::from_fn(move || {
        let band = first(bands)?;
        bands &= bands - 1;
        Some(at(band))
    })
}

/// The bands a set of `len` has, as a mask.
const fn all(len: usize) -> BandMask {
    if len >= MAX_BANDS { BandMask::MAX } else { (1 << len) - 1 }
}
