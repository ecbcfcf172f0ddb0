//! A naive dispatcher for tests: one list, scanned; nothing shared with the engine.
#![forbid(unsafe_code)]

use std::collections::HashSet;

use super::{
    replay::{Dispatcher, Outcome, SubmitResult},
    workload::SimRequest,
};
use crate::error::Reason;

/// Who is next among those who wait.
#[derive(Clone, Debug)]
pub(crate) enum Order {
    /// Arrival order, whatever the band.
    Fifo,
    /// Highest priority first.
    Strict,
    /// Credits of each band, renewed when every waiting band has used its own up.
    Credits { quota: Vec<u64>, left: Vec<u64> },
}

/// A pool of slots with one list of waiters.
#[derive(Clone, Debug)]
pub(crate) struct Model {
    pub(crate) order: Order,
    pub(crate) slots: usize,
    pub(crate) most_waiting: usize,
    waiting: Vec<SimRequest>,
    running: HashSet<u32>,
    outcomes: Vec<Outcome>,
    /// Rows in the order they got their slot.
    pub(crate) granted: Vec<u32>,
}

impl Model {
    pub(crate) fn new(order: Order, slots: usize) -> Self {
        Self {
            order,
            slots,
            most_waiting: usize::MAX,
            waiting: Vec::new(),
            running: HashSet::new(),
            outcomes: Vec::new(),
            granted: Vec::new(),
        }
    }

    pub(crate) fn credits(quota: &[u64], slots: usize) -> Self {
        Self::new(Order::Credits { quota: quota.to_vec(), left: quota.to_vec() }, slots)
    }

    fn start(&mut self, row: u32) {
        assert!(self.running.len() < self.slots, "the model over-admits");
        assert!(self.running.insert(row), "row {row} runs twice");
        self.granted.push(row);
    }

    /// A dispatch past the queue counts like any other: nobody else wanted the slot.
    fn charge_direct(&mut self, band: usize) {
        if let Order::Credits { quota, left } = &mut self.order {
            if left[band] == 0 {
                left.clone_from(quota);
            }
            left[band] -= 1;
        }
    }

    fn next(&mut self) -> Option<usize> {
        let first_of =
            |band: u8, waiting: &[SimRequest]| waiting.iter().position(|r| r.band == band);
        let top = self.waiting.iter().map(|r| r.band).min()?;
        match &mut self.order {
            Order::Fifo => Some(0),
            Order::Strict => first_of(top, &self.waiting),
            Order::Credits { quota, left } => {
                let mut busy: Vec<u8> = self.waiting.iter().map(|r| r.band).collect();
                busy.sort_unstable();
                busy.dedup();
                if busy.iter().all(|&b| left[usize::from(b)] == 0) {
                    left.clone_from(quota);
                }
                let band = busy.iter().copied().find(|&b| left[usize::from(b)] > 0)?;
                left[usize::from(band)] -= 1;
                first_of(band, &self.waiting)
            }
        }
    }
}

impl Dispatcher for Model {
    fn submit(&mut self, _now_ns: u64, request: &SimRequest) -> SubmitResult {
        if self.running.len() < self.slots && self.waiting.is_empty() {
            self.start(request.row);
            self.charge_direct(usize::from(request.band));
            return SubmitResult::Granted;
        }
        if self.waiting.len() >= self.most_waiting {
            return SubmitResult::Rejected(Reason::QueueFull);
        }
        self.waiting.push(*request);
        SubmitResult::Queued
    }

    fn release(&mut self, _now_ns: u64, row: u32) {
        assert!(self.running.remove(&row), "row {row} did not run");
        while self.running.len() < self.slots
            && let Some(at) = self.next()
        {
            let request = self.waiting.remove(at);
            self.start(request.row);
            self.outcomes.push(Outcome::Granted(request.row));
        }
    }

    fn poll(&mut self, now_ns: u64) {
        let outcomes = &mut self.outcomes;
        self.waiting.retain(|r| {
            let keep = r.deadline_ns > now_ns;
            if !keep {
                outcomes.push(Outcome::Evicted(r.row, Reason::Deadline));
            }
            keep
        });
    }

    fn drain(&mut self, out: &mut Vec<Outcome>) {
        out.append(&mut self.outcomes);
    }

    fn next_deadline(&self) -> Option<u64> {
        self.waiting.iter().map(|r| r.deadline_ns).filter(|&d| d != u64::MAX).min()
    }
}
