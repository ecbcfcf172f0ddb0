//! The bands of a pool over time: what stands where in the order, and which priority an index means.
//!
//! A band keeps its index for the life of the pool, so that a handle never comes to mean another priority; where it
//! stands among the others is its rank. Queues, reserves and requests name bands by index, gates and the band
//! policy by rank. As long as no band was added or removed the two are the same.

use arrayvec::ArrayVec;

use crate::sync::{AtomicU64, Ordering};
use crate::types::{BandMask, MAX_BANDS, first_bands};

/// Priorities, most urgent first.
pub type Priorities = ArrayVec<i32, MAX_BANDS>;

/// Which priority each index means. Written under LOCK, read by anybody.
#[derive(Debug)]
pub struct BandTable {
    cells: [AtomicU64; MAX_BANDS],
}

impl BandTable {
    /// The index is taken, now and for ever.
    const KNOWN: u64 = 1 << 32;
    /// Requests are accepted.
    const OPEN: u64 = 1 << 33;

    /// These priorities, most urgent first, at the first indices.
    pub fn new(priorities_desc: &[i32]) -> Self {
        let cell = |at: usize| match priorities_desc.get(at) {
            Some(&priority) => Self::cell(priority, true),
            None => 0,
        };
        Self { cells: core::array::from_fn(|at| AtomicU64::new(cell(at))) }
    }

    const fn cell(priority: i32, open: bool) -> u64 {
        priority.cast_unsigned() as u64 | Self::KNOWN | if open { Self::OPEN } else { 0 }
    }

    /// Priority of a taken index, and whether it is open.
    pub fn get(&self, index: usize) -> Option<(i32, bool)> {
        // ORDERING: Relaxed; a cell is one word, and what it names is checked again under LOCK.
        let cell = self.cells.get(index)?.load(Ordering::Relaxed);
        #[allow(clippy::cast_possible_truncation, reason = "the lower half is wanted")]
        let priority = (cell as u32).cast_signed();
        (cell & Self::KNOWN != 0).then_some((priority, cell & Self::OPEN != 0))
    }

    /// Holder of LOCK only.
    fn set(&self, index: usize, priority: i32, open: bool) {
        // ORDERING: Relaxed, as in `get`.
        self.cells[index].store(Self::cell(priority, open), Ordering::Relaxed);
    }

    /// The index of a priority, open or not.
    pub fn index_of(&self, priority: i32) -> Option<u8> {
        let found = (0..MAX_BANDS).find(|&at| self.get(at).is_some_and(|(p, _)| p == priority))?;
        u8::try_from(found).ok()
    }

    /// The index of an open band.
    pub fn find(&self, priority: i32) -> Option<u8> {
        let found = (0..MAX_BANDS).find(|&at| self.get(at) == Some((priority, true)))?;
        u8::try_from(found).ok()
    }

    /// The priorities that are open, most urgent first.
    pub fn open(&self) -> Priorities {
        let all = (0..MAX_BANDS).filter_map(|at| self.get(at));
        let mut open: Priorities = all.filter(|(_, open)| *open).map(|(p, _)| p).collect();
        open.sort_unstable_by(|a, b| b.cmp(a));
        open
    }
}

/// Where each band stands. Plain memory under LOCK.
#[derive(Clone, Debug)]
pub struct BandRanks {
    /// Indices by rank.
    index_of: ArrayVec<u8, MAX_BANDS>,
    /// Ranks by index.
    rank_of: [u8; MAX_BANDS],
    /// Bands (by index) that accept requests.
    open: BandMask,
    /// Whether rank and index are the same for all of them, all are open, and none is [made](Self::made).
    is_plain: bool,
    /// Bands (by index) made of a template: whoever names one takes LOCK, so that its use is seen.
    made: BandMask,
    /// Bands named by a request since the last look.
    used: BandMask,
}

/// More different priorities than the pool has room for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooManyBands;

impl BandRanks {
    /// The first `count` indices in their order.
    pub fn new(count: usize) -> Self {
        let mut ranks = Self {
            index_of: ArrayVec::new(),
            rank_of: [0; MAX_BANDS],
            open: first_bands(count),
            is_plain: true,
            made: 0,
            used: 0,
        };
        for at in 0..count.min(MAX_BANDS) {
            ranks.put(at);
        }
        ranks
    }

    #[allow(clippy::cast_possible_truncation, reason = "a band index is below 64")]
    fn put(&mut self, index: usize) {
        self.rank_of[index % MAX_BANDS] = self.index_of.len() as u8;
        self.index_of.push(index as u8);
    }

    /// Whether indices are ranks: no band was ever added or removed.
    #[inline(always)]
    pub const fn is_plain(&self) -> bool {
        self.is_plain
    }

    /// The rank of a band that has one.
    #[inline(always)]
    pub const fn rank(&self, index: u32) -> u32 {
        self.rank_of[index as usize % MAX_BANDS] as u32
    }

    /// The band at a rank.
    #[inline]
    pub fn index(&self, rank: u32) -> u32 {
        self.index_of.get(rank as usize).map_or(0, |&index| u32::from(index))
    }

    /// The same bands, by rank.
    pub fn ranked(&self, bands: BandMask) -> BandMask {
        let bit = |(rank, index): (usize, &u8)| (bands >> (index % 64) & 1) << rank;
        self.index_of.iter().enumerate().map(bit).sum()
    }

    /// Whether the band accepts requests.
    #[inline]
    pub const fn is_open(&self, index: u8) -> bool {
        self.open >> (index % 64) & 1 == 1
    }

    /// Whether the band was made of a template.
    #[inline]
    pub const fn is_made(&self, index: usize) -> bool {
        self.made >> (index % 64) & 1 == 1
    }

    /// A request names the band.
    #[inline(always)]
    pub const fn touch(&mut self, index: u8) {
        self.used |= 1 << (index % 64);
    }

    /// Whether a request named the band since the last [`take_used`](Self::take_used).
    pub const fn is_used(&self, index: u8) -> bool {
        self.used >> (index % 64) & 1 == 1
    }

    /// The bands named since the last call.
    pub const fn take_used(&mut self) -> BandMask {
        core::mem::replace(&mut self.used, 0)
    }

    /// Says which bands are made of templates, by priority, after [`set`](Self::set).
    pub fn set_made(&mut self, table: &BandTable, made: &[i32]) {
        let index = |priority: &i32| table.index_of(*priority);
        self.made = made.iter().filter_map(index).fold(0, |mask, index| mask | 1 << index);
        self.is_plain &= self.made == 0;
    }

    /// Opens exactly the bands of `desired`. One that is not among them and has waiters is closed but keeps its
    /// place until they are gone. Answers the priorities by rank.
    ///
    /// # Errors
    ///
    /// [`TooManyBands`]: nothing changes. An index is never given to another priority.
    pub fn set(
        &mut self,
        table: &BandTable,
        desired: &[i32],
        most: usize,
        waits: impl Fn(u32) -> bool,
    ) -> Result<Priorities, TooManyBands> {
        let known = |p: i32| (0..MAX_BANDS).find(|&at| table.get(at).is_some_and(|(q, _)| q == p));
        let taken = (0..MAX_BANDS).filter(|&at| table.get(at).is_some()).count();
        let fresh = desired.iter().filter(|&&p| known(p).is_none()).count();
        if taken + fresh > most.min(MAX_BANDS) {
            return Err(TooManyBands);
        }
        let mut next = taken;
        let mut standing: ArrayVec<(i32, usize), MAX_BANDS> = ArrayVec::new();
        self.open = 0;
        for &priority in desired {
            let index = known(priority).unwrap_or_else(|| {
                next += 1;
                next - 1
            });
            table.set(index, priority, true);
            self.open |= 1 << index;
            standing.push((priority, index));
        }
        for index in 0..next {
            let Some((priority, _)) = table.get(index) else { continue };
            if self.open >> index & 1 == 0 {
                table.set(index, priority, false);
                #[allow(clippy::cast_possible_truncation, reason = "a band index is below 64")]
                if waits(index as u32) {
                    standing.push((priority, index));
                }
            }
        }
        standing.sort_unstable_by_key(|(priority, _)| core::cmp::Reverse(*priority));
        self.index_of.clear();
        standing.iter().for_each(|(_, index)| self.put(*index));
        let in_place = standing.iter().enumerate().all(|(rank, (_, index))| rank == *index);
        self.is_plain = in_place && self.open == first_bands(next);
        Ok(standing.iter().map(|(priority, _)| *priority).collect())
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::{BandRanks, BandTable, TooManyBands};

    #[test]
    fn an_index_means_one_priority_for_ever_and_ranks_follow_the_order() {
        let table = BandTable::new(&[20, 0]);
        let mut ranks = BandRanks::new(2);
        assert!(ranks.is_plain());
        let by_rank = ranks.set(&table, &[20, 10, 0], 4, |_| false).unwrap_or_default();
        assert_eq!(by_rank[..], [20, 10, 0]);
        assert_eq!(
            (table.find(10), ranks.rank(2), ranks.rank(1), ranks.index(1)),
            (Some(2), 1, 2, 2)
        );
        assert!(!ranks.is_plain());
        assert_eq!(ranks.ranked(0b110), 0b110);
        assert_eq!(ranks.ranked(0b010), 0b100);
        // Removed with waiters: closed, but still in its place.
        let by_rank = ranks.set(&table, &[10, 0], 4, |at| at == 0).unwrap_or_default();
        assert_eq!(by_rank[..], [20, 10, 0]);
        assert!(!ranks.is_open(0) && ranks.is_open(2));
        assert_eq!((table.find(20), table.open()[..].to_vec()), (None, [10, 0].to_vec()));
        // Back again: at its old index.
        assert!(ranks.set(&table, &[30, 20, 0], 4, |_| false).is_ok());
        assert_eq!((table.find(20), table.find(30)), (Some(0), Some(3)));
        assert_eq!(ranks.set(&table, &[5, 0], 4, |_| false), Err(TooManyBands));
        assert_eq!(table.find(30), Some(3), "nothing changed");
    }
}
