//! P5 in one thread: the shard of a threads driver whose thread we are ourselves, so that what the submitter does and what
//! the shard's thread does can be counted apart.
//!
//! Below the front door, because an engine of that driver starts the thread. `Pool::submit` and `CompletionQueue::poll` add
//! their checks and a copy; those are in the profile of P3.

use std::sync::Arc;

use bandgate_core::{
    clock::Clock,
    config::flows::{NewFlow, RowSpec},
    notify::{
        doorbell::Doorbell,
        parker::{Choice, Parker},
    },
    shard::{
        Decider, Shard, Sleeper,
        completions::{QueueName, Queues},
        hold::{Answer, Submission},
        pool::PoolCore,
    },
    types::{policy::BandSelection, settings::DriverKind},
};

use crate::ours::{must, settings};

/// A shard nobody but us looks after.
#[derive(Debug)]
pub struct Halves {
    shard: Shard,
    queues: Arc<Queues>,
    /// Name of the completion queue.
    queue: u32,
    request: Submission,
}

impl Halves {
    /// Eight slots, one flow, as in P5.
    pub fn new() -> Self {
        let settings = settings(DriverKind::Threads, 8, BandSelection::Strict);
        let most = 1024;
        let pool = PoolCore::new(0, 0, &settings.pools[0], most);
        let queues = Arc::new(Queues::new());
        let sleeper = Arc::new(Sleeper::new(Doorbell::new(Parker::new(Choice::Best))));
        let pools = core::iter::once(pool).collect();
        let clock = Clock::monotonic();
        let shard = Shard::new(pools, most, sleeper, Arc::clone(&queues), clock, Decider::Thread);
        let bell = || Doorbell::new(Parker::new(Choice::EventFd));
        let Some(queue) = queues.claim(1, 64, bell) else { panic!("the first queue") };
        shard.open_queue(&shard.pools()[0], queue);
        let row = RowSpec { cap: u32::MAX, weight: 1, exempt: false };
        let new = NewFlow { tenant: Err(row), group: 0, flow: row };
        let made = must(shard.add_flow(&shard.pools()[0], &new));
        let request = Submission {
            cost: 100,
            queue,
            tag: 7,
            ..Submission::new(0, made.flow.index, u64::MAX)
        };
        let halves = Self { shard, queues, queue, request };
        halves.settle();
        halves
    }

    fn pool(&self) -> &PoolCore {
        &self.shard.pools()[0]
    }

    /// The submitter: hands the request over.
    #[inline(always)]
    pub fn submit(&self) {
        let answer = self.shard.submit(self.pool(), &self.request);
        assert!(matches!(answer, Answer::Queued { .. }), "the shard decides, not the caller");
    }

    /// The shard's thread: finds the command while it spins, decides, tells the outcome.
    #[inline(always)]
    pub fn turn(&self) {
        assert!(self.shard.run_ready_pools(), "a command was left");
    }

    /// The submitter: sees its permit.
    #[inline(always)]
    pub fn see(&self) {
        let Some(queue) = self.queues.get(QueueName::slot(self.queue)) else { return };
        // SAFETY: nobody else pops: the ring is ours, and this type is used by one thread at a time.
        let seen = unsafe { queue.ring(0).pop() };
        assert!(seen.is_some_and(|record| record.tag == self.request.tag), "it was granted");
    }

    /// The submitter: gives the slot back.
    #[inline(always)]
    pub fn release(&self) {
        self.shard.release(self.pool(), self.request.flow, self.request.cost, self.request.cost);
    }

    /// The shard's thread: what it does after a turn before it spins again.
    #[inline(always)]
    pub fn settle(&self) {
        self.shard.poll(self.shard.clock().now_ns());
    }
}

impl Default for Halves {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use bandgate_core::{
        shard::{Shard, pool::PoolCore},
        slab::Entry,
    };

    use super::Halves;

    /// What other pools and shards write stands on no line of this one (P15); 128 bytes, since processors fetch pairs.
    #[test]
    fn pools_shards_and_entries_begin_on_a_line_pair_of_their_own() {
        assert_eq!(align_of::<PoolCore>() % 128, 0);
        assert_eq!(align_of::<Shard>() % 128, 0);
        assert_eq!(align_of::<Entry>() % 128, 0);
    }

    #[test]
    fn a_request_goes_through_both_halves_and_comes_back() {
        let halves = Halves::new();
        for _ in 0..1_000 {
            halves.submit();
            halves.turn();
            halves.see();
            halves.settle();
            halves.release();
            halves.turn();
            halves.settle();
        }
        assert_eq!(halves.shard.view(halves.pool()).running, 0);
    }
}
