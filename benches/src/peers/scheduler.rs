//! The usual scheduler: one task or thread owns a heap by (priority, arrival), requests come over a
//! channel, answers go over a oneshot each.

use core::{
    cmp::{Ordering, Reverse},
    hint::spin_loop,
};
use std::collections::BinaryHeap;

use tokio::sync::{
    mpsc::{self, error::TryRecvError},
    oneshot,
};

/// What callers send.
#[derive(Debug)]
pub enum Command {
    /// A request of this priority (smaller first) and where its answer goes.
    Submit(u8, oneshot::Sender<()>),
    /// A slot is free again.
    Release,
}

/// A waiting request.
#[derive(Debug)]
pub struct Waiting {
    order: Reverse<(u8, u64)>,
    answer: oneshot::Sender<()>,
}

impl PartialEq for Waiting {
    fn eq(&self, other: &Self) -> bool {
        self.order == other.order
    }
}

impl Eq for Waiting {}

impl PartialOrd for Waiting {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Waiting {
    fn cmp(&self, other: &Self) -> Ordering {
        self.order.cmp(&other.order)
    }
}

/// The heap, the free slots and the arrival count.
#[derive(Debug, Default)]
pub struct Scheduler {
    free: usize,
    arrivals: u64,
    waiting: BinaryHeap<Waiting>,
}

impl Scheduler {
    /// A scheduler over so many slots.
    pub fn new(slots: usize) -> Self {
        Self { free: slots, ..Self::default() }
    }

    /// Queues a request.
    #[inline(always)]
    pub fn submit(&mut self, priority: u8, answer: oneshot::Sender<()>) {
        self.arrivals += 1;
        self.waiting.push(Waiting { order: Reverse((priority, self.arrivals)), answer });
    }

    /// Gives a slot to the next request; false if nobody waits.
    #[inline(always)]
    pub fn grant_next(&mut self) -> bool {
        while let Some(next) = self.waiting.pop() {
            // An error means that the caller has gone: the slot goes to the one behind.
            if next.answer.send(()).is_ok() {
                return true;
            }
        }
        false
    }

    fn apply(&mut self, command: Command) {
        match command {
            Command::Submit(priority, answer) => self.submit(priority, answer),
            Command::Release => self.free += 1,
        }
        while self.free > 0 && self.grant_next() {
            self.free -= 1;
        }
    }
}

/// The scheduler as a task; ends when all senders are gone.
pub async fn task(mut commands: mpsc::Receiver<Command>, slots: usize) {
    let mut scheduler = Scheduler::new(slots);
    while let Some(command) = commands.recv().await {
        scheduler.apply(command);
    }
}

/// The scheduler as a thread that spins on its channel; ends when all senders are gone.
pub fn spin(mut commands: mpsc::Receiver<Command>, slots: usize) {
    let mut scheduler = Scheduler::new(slots);
    loop {
        match commands.try_recv() {
            Ok(command) => scheduler.apply(command),
            Err(TryRecvError::Empty) => spin_loop(),
            Err(TryRecvError::Disconnected) => return,
        }
    }
}

/// Asks the task for a slot and waits for it; false if the task has gone.
pub async fn admit(scheduler: &mpsc::Sender<Command>, priority: u8) -> bool {
    let (answer, granted) = oneshot::channel();
    scheduler.send(Command::Submit(priority, answer)).await.is_ok() && granted.await.is_ok()
}

/// Gives the slot back to the task; false if it has gone.
pub async fn release(scheduler: &mpsc::Sender<Command>) -> bool {
    scheduler.send(Command::Release).await.is_ok()
}

/// From a thread: asks the spinning scheduler and spins until the slot is there; false if it has gone.
#[inline(always)]
pub fn admit_spinning(scheduler: &mpsc::Sender<Command>, priority: u8) -> bool {
    let (answer, mut granted) = oneshot::channel();
    if scheduler.try_send(Command::Submit(priority, answer)).is_err() {
        return false;
    }
    loop {
        match granted.try_recv() {
            Ok(()) => return true,
            Err(oneshot::error::TryRecvError::Empty) => spin_loop(),
            Err(oneshot::error::TryRecvError::Closed) => return false,
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::sync::oneshot;

    use super::{Command, Scheduler};

    #[test]
    fn the_urgent_request_is_granted_first_and_equals_in_order() {
        let mut scheduler = Scheduler::new(0);
        let mut answers = Vec::new();
        for priority in [3, 1, 1] {
            let (answer, granted) = oneshot::channel();
            scheduler.apply(Command::Submit(priority, answer));
            answers.push(granted);
        }
        for winner in [1, 2, 0] {
            scheduler.apply(Command::Release);
            assert!(answers[winner].try_recv().is_ok());
        }
    }
}
