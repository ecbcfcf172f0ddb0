//! Command ring, free list, completion ring.
#![cfg(loom)]
#![allow(clippy::unwrap_used, reason = "a joined actor that panicked fails the model")]

use std::sync::Arc as StdArc;

use bandgate_core::ring::command::{Command, CommandRing};
use bandgate_core::ring::completion::CompletionRing;
use bandgate_core::ring::free_list::FreeList;
use bandgate_core::sync::{Arc, UnsafeCell};
use bandgate_loom_tests::{Bound, Ghost, GhostFlag, check};
use loom::thread::{JoinHandle, spawn, yield_now};

/// Number `n` of pusher `who`; the argument can be told from any other and from a fresh cell.
fn command(who: u32, n: u32) -> Command {
    Command { code: who * 16 + n, arg: u64::from(who * 16 + n) * 7 + 1000 }
}

/// Checks what comes out: each pusher's commands in its order, whole, and once.
#[derive(Default)]
struct Taken([u32; 2]);

impl Taken {
    /// Takes all that is ready; whether there was any.
    fn poll(&mut self, ring: &CommandRing, ghost: &Ghost) -> bool {
        let mut drain = ring.drain();
        let mut any = false;
        while let Some(c) = drain.next() {
            let n = &mut self.0[(c.code / 16) as usize];
            *n += 1;
            assert_eq!(c, command(c.code / 16, *n), "lost, torn or out of order");
            any = true;
        }
        drop(drain);
        if !ring.is_drained() && !ring.has_stamped() {
            ghost.saw("hole");
        }
        any
    }
}

/// The consumer: two polls beside the pushers. The rest is taken when they have returned.
fn consume(ring: &Arc<CommandRing>, ghost: &StdArc<Ghost>) -> JoinHandle<Taken> {
    let (ring, ghost) = (Arc::clone(ring), StdArc::clone(ghost));
    spawn(move || {
        let mut taken = Taken::default();
        for _ in 0..2 {
            if !taken.poll(&ring, &ghost) {
                yield_now();
            }
        }
        taken
    })
}

/// Two pushers, one consumer, two cells, three commands: the ring may wrap.
#[test]
fn m01_a_stamp_publishes_its_argument() {
    check("m01", 500, Bound::new(2, 3), &["hole", "full", "wrapped"], |ghost| {
        let ring = Arc::new(CommandRing::new(2));
        let pushers = [(0, 2), (1, 1)].map(|(who, last)| {
            let ring = Arc::clone(&ring);
            spawn(move || (1..=last).take_while(|n| ring.push(command(who, *n)).is_ok()).count())
        });
        let consumer = consume(&ring, ghost);
        let pushed: usize = pushers.map(|p| p.join().unwrap()).iter().sum();
        ghost.saw(if pushed == 3 { "wrapped" } else { "full" });
        let mut taken = consumer.join().unwrap();
        taken.poll(&ring, ghost);
        assert!(ring.is_empty());
        assert_eq!(taken.0.iter().sum::<u32>() as usize, pushed);
    });
}

/// A burst larger than the ring beside a single push: refused until a cell is really free.
#[test]
fn m02_a_full_ring_refuses_until_the_cell_was_read() {
    let witnesses = ["full", "part of a burst", "the rest of it"];
    check("m02", 500, Bound::new(2, 3), &witnesses, |ghost| {
        let ring = Arc::new(CommandRing::new(2));
        let (r, g) = (Arc::clone(&ring), StdArc::clone(ghost));
        let burst = spawn(move || {
            let burst = [command(0, 1), command(0, 2), command(0, 3)];
            let first = r.push_batch(&burst);
            assert!(first <= 2, "more than there are cells");
            let rest = r.push_batch(&burst[first..]);
            g.saw(match (first, rest) {
                (0, _) | (_, 0) => "full",
                (1, _) => "part of a burst",
                (_, _) => "the rest of it",
            });
            first + rest
        });
        let r = Arc::clone(&ring);
        let single = spawn(move || usize::from(r.push(command(1, 1)).is_ok()));
        let consumer = consume(&ring, ghost);
        let pushed = burst.join().unwrap() + single.join().unwrap();
        let mut taken = consumer.join().unwrap();
        taken.poll(&ring, ghost);
        assert!(ring.is_empty());
        assert_eq!(taken.0.iter().sum::<u32>() as usize, pushed);
    });
}

struct Slab {
    free: FreeList,
    /// Written by the owner: loom reports two owners that are not ordered.
    entries: [UnsafeCell<u32>; 2],
    owned: [GhostFlag; 2],
}

// SAFETY: an entry is touched by the owner of its index; that there is one is what the model checks.
unsafe impl Sync for Slab {}
// SAFETY: plain data.
unsafe impl Send for Slab {}

impl Slab {
    fn pop(&self) -> Option<u32> {
        let index = self.free.pop()?;
        assert!(!self.owned[index as usize].swap(true), "two owners of one index");
        self.entries[index as usize].with_mut(|entry| {
            // SAFETY: ours by the pop.
            unsafe { *entry += 1 };
        });
        Some(index)
    }

    fn push(&self, index: u32) {
        assert!(self.owned[index as usize].swap(false));
        self.free.push(index);
    }
}

/// One thread pops twice and pushes the first back, the other pops twice: the head comes back with
/// another link below it (ABA).
#[test]
fn m16_an_index_has_one_owner() {
    check("m16", 100, Bound::new(4, 6), &["one for each", "none left"], |ghost| {
        let slab = Arc::new(Slab {
            free: FreeList::new(2),
            entries: [UnsafeCell::new(0), UnsafeCell::new(0)],
            owned: Default::default(),
        });
        let s = Arc::clone(&slab);
        let a = spawn(move || {
            let (first, _second) = (s.pop(), s.pop());
            if let Some(index) = first {
                s.push(index);
            }
        });
        let (s, g) = (Arc::clone(&slab), StdArc::clone(ghost));
        let b = spawn(move || match (s.pop(), s.pop()) {
            (None, _) => g.saw("none left"),
            (Some(_), None) => g.saw("one for each"),
            _ => {}
        });
        a.join().unwrap();
        b.join().unwrap();
        assert!(core::iter::from_fn(|| slab.pop()).count() <= 2);
        assert!(slab.owned.iter().all(GhostFlag::get), "an index was lost");
    });
}

/// One place: it is reserved again only after its answer was read; a third thread reserves and gives up.
#[test]
fn completion_a_place_is_free_after_its_answer_was_read() {
    check("completion", 100, Bound::new(2, 3), &["no place", "used again"], |ghost| {
        let ring = Arc::new(CompletionRing::<u64>::new(1));
        let (r, g) = (Arc::clone(&ring), StdArc::clone(ghost));
        let producer = spawn(move || {
            let mut pushed = 0;
            for _ in 0..3 {
                if r.reserve() {
                    pushed += 1;
                    // SAFETY: the only producer, with a reservation.
                    unsafe { r.push(pushed) };
                } else {
                    g.saw("no place");
                    yield_now();
                }
            }
            pushed
        });
        let r = Arc::clone(&ring);
        let other = spawn(move || {
            if r.reserve() {
                r.unreserve(1);
            }
        });
        let r = Arc::clone(&ring);
        let consumer = spawn(move || {
            let mut taken = 0;
            for _ in 0..2 {
                // SAFETY: the only consumer while this thread runs.
                if let Some(n) = unsafe { r.pop() } {
                    taken += 1;
                    assert_eq!(n, taken, "lost or out of order");
                } else {
                    yield_now();
                }
            }
            taken
        });
        let pushed = producer.join().unwrap();
        other.join().unwrap();
        let taken = consumer.join().unwrap();
        // SAFETY: the only consumer now.
        let left = unsafe { ring.pop() };
        assert_eq!(taken + u64::from(left.is_some()), pushed, "an answer was lost");
        if pushed > 1 {
            ghost.saw("used again");
        }
    });
}
