//! What a replay counts, event by event, in constant time each.
//!
//! Words: a band is *backlogged* while at least one of its requests waits. A *run* is the number of dispatches of other
//! bands since a band became backlogged or was last dispatched, whichever is later, while it stayed backlogged; a *gap* is
//! a run between two dispatches of the band. Whether all bands were backlogged at a dispatch is looked at just before it,
//! so the request dispatched still counts as waiting.
#![forbid(unsafe_code)]

use hdrhistogram::Histogram;

use super::gating::Gating;
use crate::{
    error::Reason,
    types::{BandMask, first_bands},
};

/// Buckets of a band's waits over virtual time.
const BUCKETS: usize = 256;

/// Significant decimal digits of the wait percentiles.
const DIGITS: u8 = 3;

/// Waits up to this long (73 minutes) need no growth of the histogram.
const USUAL_WAIT_NS: u64 = 1 << 42;

/// Counts of one band.
#[derive(Clone, Debug)]
pub struct BandStats {
    /// Requests that arrived.
    pub arrived: u64,
    /// Requests that got a slot.
    pub dispatched: u64,
    /// Of these, at how many every band was backlogged.
    pub dispatched_all_backlogged: u64,
    /// Refused at arrival, by reason.
    pub rejected: ReasonCounts,
    /// Removed while waiting, by reason.
    pub evicted: ReasonCounts,
    /// Requests waiting now.
    pub waiting: u64,
    /// Waits of the dispatched requests in nanoseconds, to three digits.
    pub waits: Histogram<u64>,
    /// Longest of them, exact.
    pub wait_ns_max: u64,
    /// Longest run of other bands' dispatches while this one was backlogged.
    pub longest_run: u64,
    /// Longest gap between two of its dispatches while it stayed backlogged.
    pub longest_gap: u64,
    /// Longest full gap.
    pub longest_full_gap: u64,
    /// Longest waits over virtual time.
    pub series: Series,
    /// All dispatches when the current run began.
    run_began: u64,
    /// The current run began at a dispatch of this band.
    after_own: bool,
}

/// A count per reason.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReasonCounts([u64; Reason::ALL.len()]);

impl ReasonCounts {
    fn add(&mut self, reason: Reason) {
        if let Some(count) = self.0.get_mut(reason as usize - 1) {
            *count += 1;
        }
    }

    /// All reasons together.
    pub fn total(&self) -> u64 {
        self.0.iter().sum()
    }

    /// The reasons that occurred.
    pub fn iter(&self) -> impl Iterator<Item = (Reason, u64)> + '_ {
        Reason::ALL.into_iter().zip(self.0).filter(|&(_, count)| count > 0)
    }
}

/// The longest wait per stretch of virtual time, in a fixed number of buckets that double their width when time runs past
/// the last one.
#[derive(Clone, Debug)]
pub struct Series {
    /// Buckets are `1 << shift` nanoseconds wide.
    shift: u32,
    /// Longest wait of a dispatch within the bucket, plus one; 0: no dispatch.
    longest: Box<[u64; BUCKETS]>,
}

impl Series {
    fn new() -> Self {
        Self { shift: 16, longest: Box::new([0; BUCKETS]) }
    }

    #[inline]
    fn record(&mut self, t_ns: u64, wait_ns: u64) {
        while t_ns >> self.shift >= BUCKETS as u64 {
            self.fold();
        }
        let Ok(bucket) = usize::try_from(t_ns >> self.shift) else { return };
        if let Some(longest) = self.longest.get_mut(bucket) {
            *longest = (*longest).max(wait_ns.saturating_add(1));
        }
    }

    /// Makes every bucket twice as wide.
    fn fold(&mut self) {
        for i in 0..BUCKETS {
            self.longest[i] = match self.longest.get(2 * i..2 * i + 2) {
                Some(pair) => pair[0].max(pair[1]),
                None => 0,
            };
        }
        self.shift += 1;
    }

    /// (start of the bucket, longest wait) in nanoseconds, of every bucket with a dispatch.
    pub fn points(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        let at = |(bucket, &longest): (usize, &u64)| {
            longest.checked_sub(1).map(|wait| ((bucket as u64) << self.shift, wait))
        };
        self.longest.iter().enumerate().filter_map(at)
    }

    /// Width of a bucket in nanoseconds.
    pub fn bucket_ns(&self) -> u64 {
        1 << self.shift
    }
}

impl BandStats {
    fn new() -> Result<Self, hdrhistogram::CreationError> {
        let mut waits = Histogram::new_with_bounds(1, USUAL_WAIT_NS, DIGITS)?;
        waits.auto(true);
        Ok(Self {
            arrived: 0,
            dispatched: 0,
            dispatched_all_backlogged: 0,
            rejected: ReasonCounts::default(),
            evicted: ReasonCounts::default(),
            waiting: 0,
            waits,
            wait_ns_max: 0,
            longest_run: 0,
            longest_gap: 0,
            longest_full_gap: 0,
            series: Series::new(),
            run_began: 0,
            after_own: false,
        })
    }

    /// Ends the current run after `dispatches` of all bands.
    #[inline]
    fn end_run(&mut self, dispatches: u64) -> u64 {
        let run = dispatches - self.run_began;
        self.longest_run = self.longest_run.max(run);
        run
    }

    /// Ends it by a dispatch of this band. `partial`: the last dispatch at which not every band was backlogged, counted
    /// from 1.
    #[inline]
    fn end_gap(&mut self, dispatches: u64, partial: u64) {
        let run = self.end_run(dispatches);
        if self.after_own {
            self.longest_gap = self.longest_gap.max(run);
            // The run began with dispatch number `run_began`, which was this band's.
            if partial < self.run_began {
                self.longest_full_gap = self.longest_full_gap.max(run);
            }
        }
    }
}

/// Collects the events of one replay. Events come in the order they happened.
#[derive(Clone, Debug)]
pub struct Collector {
    bands: Vec<BandStats>,
    /// Every band, and those backlogged now.
    all: BandMask,
    backlogged: BandMask,
    dispatches: u64,
    dispatches_all_backlogged: u64,
    /// The last dispatch at which not every band was backlogged, counted from 1.
    last_partial: u64,
    completed: u64,
    end_ns: u64,
    gating: Option<Gating>,
}

impl Collector {
    /// For `bands` bands, at most 64. Allocates everything it needs but the growth of the wait histograms.
    pub fn new(bands: usize) -> Result<Self, hdrhistogram::CreationError> {
        let count = u32::try_from(bands).unwrap_or(u32::MAX);
        Ok(Self {
            bands: (0..bands).map(|_| BandStats::new()).collect::<Result<_, _>>()?,
            all: first_bands(count as usize),
            backlogged: 0,
            dispatches: 0,
            dispatches_all_backlogged: 0,
            last_partial: 0,
            completed: 0,
            end_ns: 0,
            gating: None,
        })
    }

    /// Looks at the gates too.
    #[must_use]
    pub fn with_gating(mut self, gating: Option<Gating>) -> Self {
        self.gating = gating;
        self
    }

    /// What was counted of the gates.
    pub fn gating(&self) -> Option<&Gating> {
        self.gating.as_ref()
    }

    /// A request of `band` begins beside `running` others.
    #[inline]
    pub fn began(&mut self, band: u8, running: usize) {
        if let Some(gating) = &mut self.gating {
            gating.count(band, running);
        }
    }

    /// A request of `band` arrived.
    #[inline]
    pub fn arrived(&mut self, band: u8) {
        self.bands[usize::from(band)].arrived += 1;
    }

    /// It was refused.
    pub fn rejected(&mut self, band: u8, reason: Reason) {
        self.bands[usize::from(band)].rejected.add(reason);
    }

    /// It was queued.
    #[inline]
    pub fn queued(&mut self, band: u8) {
        let stats = &mut self.bands[usize::from(band)];
        if stats.waiting == 0 {
            self.backlogged |= 1 << band;
            stats.run_began = self.dispatches;
            stats.after_own = false;
        }
        stats.waiting += 1;
    }

    /// It got a slot at `t_ns` after `wait_ns`, out of the queue or at once.
    #[inline]
    pub fn granted(&mut self, band: u8, t_ns: u64, wait_ns: u64, was_queued: bool) {
        let all_backlogged = self.backlogged == self.all;
        let stats = &mut self.bands[usize::from(band)];
        if !all_backlogged {
            self.last_partial = self.dispatches + 1;
        }
        if stats.waiting > 0 {
            stats.end_gap(self.dispatches, self.last_partial);
        }
        self.dispatches += 1;
        stats.dispatched += 1;
        if all_backlogged {
            self.dispatches_all_backlogged += 1;
            stats.dispatched_all_backlogged += 1;
        }
        stats.run_began = self.dispatches;
        stats.after_own = true;
        if was_queued {
            stats.waiting -= 1;
            if stats.waiting == 0 {
                self.backlogged &= !(1 << band);
            }
        }
        // The histogram grows to the longest wait; beyond its own limit (2^63 ns) it keeps the highest bucket.
        if stats.waits.record(wait_ns).is_err() {
            stats.waits.saturating_record(wait_ns);
        }
        stats.wait_ns_max = stats.wait_ns_max.max(wait_ns);
        stats.series.record(t_ns, wait_ns);
    }

    /// It was removed from the queue.
    pub fn evicted(&mut self, band: u8, reason: Reason) {
        let stats = &mut self.bands[usize::from(band)];
        stats.evicted.add(reason);
        stats.waiting -= 1;
        if stats.waiting == 0 {
            stats.end_run(self.dispatches);
            self.backlogged &= !(1 << band);
        }
    }

    /// It gave its slot back at `t_ns`.
    #[inline]
    pub fn left(&mut self, t_ns: u64) {
        self.completed += 1;
        self.end_ns = t_ns;
    }

    /// Nothing will happen any more: runs of bands that still wait end here.
    pub fn finish(&mut self) {
        let dispatches = self.dispatches;
        for stats in &mut self.bands {
            if stats.waiting > 0 {
                stats.end_run(dispatches);
            }
        }
    }

    /// The counts per band, highest priority first.
    pub fn bands(&self) -> &[BandStats] {
        &self.bands
    }

    /// Requests that got a slot.
    pub fn dispatches(&self) -> u64 {
        self.dispatches
    }

    /// Of these, at how many every band was backlogged.
    pub fn dispatches_all_backlogged(&self) -> u64 {
        self.dispatches_all_backlogged
    }

    /// Requests that gave their slot back.
    pub fn completed(&self) -> u64 {
        self.completed
    }

    /// Virtual time of the last slot given back, in nanoseconds.
    pub fn end_ns(&self) -> u64 {
        self.end_ns
    }
}

#[cfg(test)]
mod tests;
