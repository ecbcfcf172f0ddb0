//! The urgent list: what is asked arrives once, whatever overlaps.
//!
//! In each model the holder walks the list a few times beside the posters, and the main closure walks
//! what is left when all have returned: together they must have found everything.
#![cfg(loom)]
#![allow(clippy::unwrap_used, reason = "a joined actor that panicked fails the model")]

use std::sync::Arc as StdArc;

use bandgate_core::ring::urgent::{Asked, Chain, OwedNode, UrgentList, UrgentNode, bits_of};
use bandgate_core::sync::Arc;
use bandgate_loom_tests::{Bound, check};
use loom::thread::{spawn, yield_now};

const CANCEL: u32 = 1;
const EXPIRE: u32 = 2;

struct Pool {
    list: UrgentList,
    nodes: [OwedNode; 2],
}

impl Pool {
    fn new() -> Arc<Self> {
        Arc::new(Self { list: UrgentList::new(), nodes: [OwedNode::new(), OwedNode::new()] })
    }

    fn ask(&self, id: u32, generation: u32, bits: u32) -> Asked {
        let node = self.nodes[id as usize].node();
        let asked = node.ask(generation, bits);
        if asked == Asked::Link {
            self.list.push(id, node);
        }
        asked
    }

    fn owe(&self, id: u32, cost: i64) {
        let node = &self.nodes[id as usize];
        if node.owe(cost) {
            self.list.push(id, node.node());
        }
    }

    fn mark(&self, id: u32, bits: u64) {
        let node = self.nodes[id as usize].node();
        if node.mark(bits) {
            self.list.push(id, node);
        }
    }

    fn lookup<'a>(&'a self) -> impl Fn(u32) -> &'a UrgentNode {
        |id| self.nodes[id as usize].node()
    }

    /// The holder's part of one turn.
    fn walk(&self, mut apply: impl FnMut(u32, u64)) {
        let mut chain = self.list.take_all();
        while let Some((id, word)) = chain.next(self.lookup()) {
            apply(id, word);
        }
    }

    /// Nothing may be left: neither on the list nor in a node that is not on it.
    fn assert_idle(&self) {
        assert!(self.list.is_empty());
        assert!(self.nodes.iter().all(|n| !n.node().is_asked()), "stranded command");
    }
}

/// Two posters on two nodes: the list's head publishes every link behind it. The holder leaves after one
/// node and goes on later, as if its budget were spent.
#[test]
fn u1_the_head_publishes_the_links() {
    check("u1", 50, Bound::new(3, 4), &["two in a chain"], |ghost| {
        let pool = Pool::new();
        let posters = [0, 1].map(|id| {
            let pool = Arc::clone(&pool);
            spawn(move || pool.mark(id, 1 + u64::from(id)))
        });
        let (p, g) = (Arc::clone(&pool), StdArc::clone(ghost));
        let holder = spawn(move || {
            let mut chain = Chain::EMPTY;
            let mut sum = 0;
            for _ in 0..2 {
                if chain.is_empty() {
                    chain = p.list.take_all();
                }
                if let Some((_, word)) = chain.next(p.lookup()) {
                    sum += word;
                }
                if !chain.is_empty() {
                    g.saw("two in a chain");
                }
                yield_now();
            }
            while let Some((_, word)) = chain.next(p.lookup()) {
                sum += word;
            }
            sum
        });
        for poster in posters {
            poster.join().unwrap();
        }
        let mut sum = holder.join().unwrap();
        pool.walk(|_, word| sum += word);
        pool.assert_idle();
        assert_eq!(sum, 3, "stranded command");
    });
}

/// The same entry twice: asked, taken and asked again while the holder is between its word and its link.
#[test]
fn u2_the_link_is_read_before_the_word_is_taken() {
    check("u2", 50, Bound::new(4, 6), &["linked anew", "joined"], |ghost| {
        let pool = Pool::new();
        let (p, g) = (Arc::clone(&pool), StdArc::clone(ghost));
        let poster = spawn(move || {
            let _ = p.ask(0, 1, CANCEL);
            let _ = p.ask(1, 1, CANCEL);
            match p.ask(1, 1, EXPIRE) {
                Asked::Link => g.saw("linked anew"),
                Asked::Joined => g.saw("joined"),
                Asked::Stale => unreachable!("one generation"),
            }
        });
        let p = Arc::clone(&pool);
        let holder = spawn(move || {
            let mut got = [0; 2];
            for _ in 0..2 {
                p.walk(|id, word| got[id as usize] |= bits_of(word, 1));
                yield_now();
            }
            got
        });
        poster.join().unwrap();
        let mut got = holder.join().unwrap();
        pool.walk(|id, word| got[id as usize] |= bits_of(word, 1));
        pool.assert_idle();
        assert_eq!(got, [CANCEL, CANCEL | EXPIRE], "stranded bits");
    });
}

/// A late cancel of generation 1 while the holder frees the entry and gives it to generation 2.
#[test]
fn n1_a_stale_command_does_not_strike_the_next_request() {
    check("n1", 10, Bound::NONE, &["stale command dropped", "cancelled in time"], |ghost| {
        let pool = Pool::new();
        let p = Arc::clone(&pool);
        let canceller = spawn(move || {
            let _ = p.ask(0, 1, CANCEL);
        });
        let (p, g) = (Arc::clone(&pool), StdArc::clone(ghost));
        let holder = spawn(move || {
            p.walk(|_, word| {
                if bits_of(word, 1) == CANCEL {
                    g.saw("cancelled in time");
                }
            });
            // The entry ends here; from now on it is generation 2, which nobody cancels.
            for _ in 0..2 {
                p.walk(|_, word| {
                    assert_eq!(bits_of(word, 2), 0, "stale command struck the next request");
                    g.saw("stale command dropped");
                });
                yield_now();
            }
        });
        canceller.join().unwrap();
        holder.join().unwrap();
        pool.walk(|_, word| assert_eq!(bits_of(word, 2), 0, "stale command struck"));
        pool.assert_idle();
    });
}

/// Two generations meet in one node: the newer one's command arrives, the older one's never passes for it.
#[test]
fn n2_the_newer_generation_wins() {
    check("n2", 50, Bound::new(3, 4), &["stale", "replaced"], |ghost| {
        let pool = Pool::new();
        let (p, g) = (Arc::clone(&pool), StdArc::clone(ghost));
        let older = spawn(move || {
            if p.ask(0, 1, CANCEL) == Asked::Stale {
                g.saw("stale");
            }
        });
        let (p, g) = (Arc::clone(&pool), StdArc::clone(ghost));
        let newer = spawn(move || match p.ask(0, 2, EXPIRE) {
            Asked::Joined => g.saw("replaced"),
            Asked::Link => {}
            Asked::Stale => panic!("a newer generation is never stale"),
        });
        let p = Arc::clone(&pool);
        let holder = spawn(move || {
            let mut got = 0;
            p.walk(|_, word| got |= bits_of(word, 2));
            got
        });
        older.join().unwrap();
        newer.join().unwrap();
        let mut got = holder.join().unwrap();
        pool.walk(|_, word| got |= bits_of(word, 2));
        pool.assert_idle();
        assert_eq!(got, EXPIRE, "the newer command was lost");
    });
}

/// Two releases of value permits of one flow beside the holder: each counts once, and whoever takes the count
/// has what those counted used.
#[test]
fn v1_every_release_of_a_value_permit_counts() {
    check("v1", 50, Bound::new(3, 4), &["both at once", "one by one"], |ghost| {
        let pool = Pool::new();
        let releasers = [-10, -20].map(|difference| {
            let pool = Arc::clone(&pool);
            spawn(move || pool.owe(0, difference))
        });
        let (p, g) = (Arc::clone(&pool), StdArc::clone(ghost));
        let holder = spawn(move || {
            let mut total = (0, 0);
            for _ in 0..2 {
                p.walk(|_, count| {
                    g.saw(if count == 2 { "both at once" } else { "one by one" });
                    total = (total.0 + count, total.1 + p.nodes[0].take_difference());
                });
                let least = [0, -10, -30];
                assert!(total.1 <= least[total.0 as usize], "counted without what it used");
                yield_now();
            }
            total
        });
        for releaser in releasers {
            releaser.join().unwrap();
        }
        let mut total = holder.join().unwrap();
        pool.walk(|_, count| {
            total = (total.0 + count, total.1 + pool.nodes[0].take_difference());
        });
        pool.assert_idle();
        assert_eq!(total, (2, -30), "release lost");
    });
}
