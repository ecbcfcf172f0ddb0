//! A host's order over the bands: asked once a decision, checked, and obeyed as an order of ours.
#![forbid(unsafe_code)]

use alloc::boxed::Box;

use arrayvec::ArrayVec;

use super::{Order, at, identity};
use crate::types::custom::CustomBandSelection;
use crate::types::extend::{BandCycle, BandSelection, Millionths};
use crate::types::{BandMask, MAX_BANDS};

/// The host's policy of one pool, and its last answer. No call but the first allocates.
#[derive(Debug)]
pub struct CustomBands {
    named: CustomBandSelection,
    policy: Box<dyn BandSelection>,
    priorities: ArrayVec<i32, MAX_BANDS>,
    /// A permutation, whatever was answered.
    order: Order,
    faults: u64,
    is_fault_told: bool,
}

impl CustomBands {
    /// A new instance over these priorities (most urgent first, at most 64 count).
    pub fn new(named: &CustomBandSelection, priorities_desc: &[i32]) -> Box<Self> {
        let mut own = Box::new(Self {
            policy: named.make(),
            named: named.clone(),
            priorities: ArrayVec::new(),
            order: Order::new(),
            faults: 0,
            is_fault_told: false,
        });
        own.set_bands(priorities_desc);
        own
    }

    pub(super) fn set_bands(&mut self, priorities_desc: &[i32]) {
        let bands = &priorities_desc[..priorities_desc.len().min(MAX_BANDS)];
        if self.priorities[..] != *bands {
            self.priorities = bands.iter().copied().collect();
            self.policy.bands_changed(bands);
        }
        self.neutral();
    }

    fn neutral(&mut self) {
        self.order.clear();
        identity(self.priorities.len(), &mut self.order);
    }

    /// Asks for the order of one decision.
    pub fn begin(&mut self, eligible: BandMask, saturation: Millionths, now_ns: u64) {
        self.neutral();
        let cycle = BandCycle { priorities: &self.priorities, eligible, saturation, now_ns };
        self.policy.rank(&cycle, &mut self.order);
        let in_range = self.order.iter().filter(|&&band| usize::from(band) < MAX_BANDS);
        let named = in_range.fold(0, |mask: BandMask, band| mask | 1 << band);
        if named != super::all(self.order.len()) {
            self.faults = self.faults.saturating_add(1);
            self.neutral();
        }
    }

    pub(super) fn best(&self, candidates: BandMask) -> Option<u32> {
        let mut bands = self.order.iter().map(|&band| u32::from(band));
        bands.find(|&band| super::has(candidates, band))
    }

    /// A request of this band was dispatched.
    pub fn record(&mut self, band: u32) {
        self.policy.record_dispatch(at(band));
    }

    pub(super) fn rank(&self, order: &mut Order) {
        order.extend(self.order.iter().copied());
    }

    /// Goes on with the instance of `old`, if that is the same policy with the same parameters. Afterwards `old`
    /// holds the instance that is not needed.
    pub(super) fn keep(&mut self, old: &mut Self) {
        self.faults = self.faults.saturating_add(old.faults);
        self.is_fault_told |= old.is_fault_told;
        if self.named == old.named {
            core::mem::swap(&mut self.policy, &mut old.policy);
            if self.priorities != old.priorities {
                self.policy.bands_changed(&self.priorities);
            }
        }
    }

    /// Answers since the start that were no permutation; each was replaced by strict order.
    pub const fn faults(&self) -> u64 {
        self.faults
    }

    /// The same, once: at the first call after the first fault. For the log, after the unlock.
    pub fn untold_faults(&mut self) -> Option<u64> {
        let is_news = self.faults > 0 && !self.is_fault_told;
        self.is_fault_told |= is_news;
        is_news.then_some(self.faults)
    }
}
