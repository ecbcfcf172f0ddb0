//! The end of a model: the books and the pool say the same, and nothing is left over.

use bandgate_core::Reason;
use bandgate_core::admit::word::PoolWord;
use bandgate_core::shard::cold::PoolView;
use bandgate_core::slab::Phase;
use bandgate_core::sync::Ordering;
use bandgate_core::types::NONE;

use super::{Ticket, World};

impl World {
    fn settle_expected(&self) {
        let (unharmed, refused) = {
            let mut books = self.books();
            (core::mem::take(&mut books.unharmed), core::mem::take(&mut books.refused))
        };
        for ticket in unharmed {
            assert_eq!(self.evicted(ticket), None, "a stale command struck the next request");
        }
        for ticket in refused {
            let reason = self.evicted(ticket);
            assert_eq!(reason, Some(Reason::ShuttingDown), "admitted after the drain");
            self.saw("evicted");
        }
    }

    /// Scheduled pools, until none is: what a keeper does.
    fn poll_all(&self) {
        for _ in 0..20 {
            if !self.shard.has_work() {
                return;
            }
            self.saw("scheduled");
            self.shard.poll(self.shard.clock().now_ns());
        }
        panic!("the pool is scheduled again and again");
    }

    /// All have returned and nothing is scheduled: nothing is stranded, no slot is lost or made, and nobody
    /// who may run waits.
    pub fn settle(&self) -> PoolView {
        self.poll_all();
        let pool = self.pool();
        assert!(!pool.has_mail() && pool.ring.is_empty(), "stranded command");
        let open = self.books().open.clone();
        for ticket in &open {
            assert!(!self.shard.slab().node(ticket.idx).is_asked(), "stranded bits");
        }
        let is_queued = pool.queued().swap(false, Ordering::AcqRel);
        assert!(!is_queued, "flagged as scheduled, but not in the ring");
        let word = pool.gate.peek();
        let view = self.shard.view(pool);
        let mut running = self.books().running.clone();
        let mut waiting = Vec::new();
        for &ticket in &open {
            let state = self.shard.slab().state(ticket.idx).expect("an index of the slab");
            assert_eq!(state.generation(), ticket.generation, "ended before it was collected");
            match state.phase() {
                Phase::Granted => running[self.row(ticket.flow)] += 1,
                Phase::Queued => waiting.push(ticket),
                Phase::New => panic!("stranded command"),
                Phase::Evicted => {}
                Phase::Free => panic!("free with a ticket out"),
                Phase::Held | Phase::Running => panic!("no model keeps track of who runs"),
            }
        }
        let holding = i32::try_from(running.iter().sum::<u32>()).expect("few");
        let size = i32::try_from(view.slots).expect("few");
        assert_eq!(view.free, size - holding, "slot lost or made");
        assert_eq!(view.waiting as usize, waiting.len(), "waiters lost or made");
        for ticket in &waiting {
            assert!(!self.may_run(ticket, &running, view.free), "free slot beside a waiter");
        }
        let marked = word.waiters() != 0 || word.has(PoolWord::BLOCKED);
        assert_eq!(marked, !waiting.is_empty(), "the word says who waits");
        self.settle_expected();
        self.witness(&view);
        view
    }

    fn witness(&self, view: &PoolView) {
        if view.stats.commands > 0 {
            self.saw("command from ring or list");
        }
        if view.stats.granted > 0 {
            self.saw("waiter granted");
        }
        if view.stats.direct > 0 {
            self.saw("granted under LOCK");
        }
    }

    fn may_run(&self, ticket: &Ticket, running: &[u32], free: i32) -> bool {
        let row = self.row(ticket.flow);
        let keys: u32 = running[..self.spec.flows.len()].iter().sum();
        let has_room =
            ticket.flow == NONE || (running[row] < self.spec.flows[row] && keys < self.spec.tenant);
        free > self.pool().gate.reserve(usize::from(ticket.band)) && has_room
    }

    /// Whether the ticket waits. Exact when all have returned.
    pub fn waits(&self, ticket: Ticket) -> bool {
        self.shard.slab().state(ticket.idx).is_some_and(|state| {
            state.generation() == ticket.generation
                && matches!(state.phase(), Phase::New | Phase::Queued)
        })
    }

    /// Why the ticket lost its place. Exact when all have returned.
    pub fn evicted(&self, ticket: Ticket) -> Option<Reason> {
        let state = self.shard.slab().state(ticket.idx)?;
        (state.generation() == ticket.generation).then(|| state.reason())?
    }

    /// [`World::settle`], then every slot is given back and every outcome taken, until nobody is left; who
    /// still waits then, behind a gate, is abandoned.
    pub fn finish(&self) {
        self.settle();
        for _ in 0..8 {
            let open = self.books().open.clone();
            let taken = open.into_iter().filter_map(|ticket| self.collect(ticket)).count();
            if taken == 0 && self.books().running.iter().all(|&count| count == 0) {
                break;
            }
            self.release_all();
            self.settle();
        }
        let open = self.books().open.clone();
        for ticket in open {
            self.abandon(ticket);
        }
        let view = self.shard.view(self.pool());
        assert_eq!((view.waiting, view.running), (0, 0), "left behind");
    }

    fn release_all(&self) {
        let running = self.books().running.clone();
        for (row, count) in running.into_iter().enumerate() {
            let flow = u32::try_from(row).expect("few");
            for _ in 0..count {
                self.release_as(if row == self.spec.flows.len() { NONE } else { flow });
            }
        }
    }
}
