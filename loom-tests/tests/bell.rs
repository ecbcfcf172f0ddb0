//! Doorbell and scheduler ring: nobody sleeps beside work. A lost wake is a deadlock, which loom reports.
#![cfg(loom)]
#![allow(clippy::unwrap_used, reason = "a joined actor that panicked fails the model")]

use std::sync::Arc as StdArc;

use bandgate_core::notify::doorbell::{Doorbell, Woke};
use bandgate_core::notify::parker::{Choice, Parker};
use bandgate_core::ring::command::{Command, CommandRing};
use bandgate_core::ring::scheduler::SchedulerRing;
use bandgate_core::sync::{Arc, is_planted};
use bandgate_loom_tests::{Bound, Flag, Ghost, GhostCount, Work, check};
use loom::thread::{spawn, yield_now};

struct Core {
    ring: CommandRing,
    bell: Doorbell,
    closed: Flag,
}

impl Core {
    fn new() -> Arc<Self> {
        Arc::new(Self { ring: CommandRing::new(2), bell: bell(), closed: Flag::new() })
    }

    fn send(&self, code: u32) -> bool {
        assert!(self.ring.push(Command { code, arg: 0 }).is_ok(), "never full here");
        self.bell.ring()
    }

    /// What was sent: the sum of the codes.
    fn drain(&self) -> u32 {
        let mut drain = self.ring.drain();
        core::iter::from_fn(|| drain.next()).map(|c| c.code).sum()
    }
}

fn bell() -> Doorbell {
    Doorbell::new(Parker::new(Choice::Best))
}

fn note(ghost: &Ghost, woke: Woke) {
    ghost.saw(match woke {
        Woke::Work => "second look",
        Woke::Rung => "rung",
        Woke::TimedOut => "timed out",
        Woke::Early => "early",
    });
}

/// One core, two senders.
#[test]
fn m03_a_send_is_seen_or_wakes() {
    check("m03", 200, Bound::new(2, 3), &["second look", "rung", "one wake for two"], |ghost| {
        let core = Core::new();
        let wakes = StdArc::new(GhostCount::default());
        let senders = [1, 2].map(|code| {
            let (core, wakes) = (Arc::clone(&core), StdArc::clone(&wakes));
            spawn(move || {
                wakes.add(u64::from(core.send(code)));
            })
        });
        let g = StdArc::clone(ghost);
        let sleeper = spawn(move || {
            let mut got = core.drain();
            while got != 3 {
                note(&g, core.bell.park(|| core.ring.has_stamped(), None));
                got += core.drain();
            }
        });
        for sender in senders {
            sender.join().unwrap();
        }
        sleeper.join().unwrap();
        if wakes.get() == 1 {
            ghost.saw("one wake for two");
        }
    });
}

/// A sender, and one who sends and then shuts down: the core leaves, and not before it has read what was
/// sent before the shutdown. (`m04b` reads the ring before the flag and leaves.)
#[test]
fn m04_shutdown_comes_after_what_was_sent_before() {
    check("m04", 200, Bound::new(2, 3), &["rung", "second look", "late send", "hole"], |ghost| {
        let core = Core::new();
        let c = Arc::clone(&core);
        let sender = spawn(move || {
            c.send(1);
        });
        let c = Arc::clone(&core);
        let closer = spawn(move || {
            c.send(2);
            c.closed.raise();
            c.bell.ring();
        });
        let g = StdArc::clone(ghost);
        let sleeper = spawn(move || {
            let mut got = 0;
            loop {
                if is_planted("m04b") {
                    got += core.drain();
                }
                let closed = core.closed.is_raised();
                if !is_planted("m04b") {
                    got += core.drain();
                    // A sender that sleeps between claim and stamp hides what was sent behind it.
                    while closed && !core.ring.is_drained() {
                        g.saw("hole");
                        yield_now();
                        got += core.drain();
                    }
                }
                if closed {
                    break;
                }
                note(
                    &g,
                    core.bell.park(|| core.ring.has_stamped() || core.closed.is_raised(), None),
                );
            }
            assert!(got & 2 != 0, "left before what was sent before the shutdown");
            if got == 2 {
                g.saw("late send");
            }
        });
        for thread in [sender, closer, sleeper] {
            thread.join().unwrap();
        }
    });
}

/// A first sleep that times out leaves a wake on its way; it ends a later sleep early and is not counted
/// twice: at most one wake for each time somebody said "asleep".
#[test]
fn m05_wakes_coalesce_and_none_is_lost() {
    check("m05", 200, Bound::new(2, 3), &["rung", "timed out", "early"], |ghost| {
        let bell = Arc::new(bell());
        let work = Arc::new(Work::new());
        let wakes = StdArc::new(GhostCount::default());
        let ringers = [(); 2].map(|()| {
            let (bell, work) = (Arc::clone(&bell), Arc::clone(&work));
            let wakes = StdArc::clone(&wakes);
            spawn(move || {
                work.add();
                wakes.add(u64::from(bell.ring()));
            })
        });
        let g = StdArc::clone(ghost);
        let sleeper = spawn(move || {
            let (mut seen, mut asleep) = (0, 0);
            let mut timeout = Some(0);
            while seen < 2 {
                let woke = bell.park(|| work.get() != seen, timeout);
                note(&g, woke);
                asleep += 1;
                timeout = None;
                seen = work.get();
            }
            asleep
        });
        for ringer in ringers {
            ringer.join().unwrap();
        }
        let asleep = sleeper.join().unwrap();
        assert!(wakes.get() <= asleep, "more wakes than sleeps");
    });
}

/// A holder hands a pool over while the keeper goes to sleep.
#[test]
fn k1_the_keeper_does_not_sleep_beside_a_scheduled_pool() {
    check("k1", 20, Bound::NONE, &["second look", "rung"], |ghost| {
        let shard = Arc::new((SchedulerRing::new(1), bell(), Flag::new()));
        let s = Arc::clone(&shard);
        let holder = spawn(move || {
            if s.0.schedule(0, s.2.word()) {
                s.1.ring();
            }
        });
        let g = StdArc::clone(ghost);
        let keeper = spawn(move || {
            while shard.0.poll(|_| shard.2.word()).is_none() {
                note(&g, shard.1.park(|| !shard.0.is_empty(), None));
            }
        });
        holder.join().unwrap();
        keeper.join().unwrap();
    });
}

struct Handed {
    ring: SchedulerRing,
    queued: Flag,
    work: Work,
}

impl Handed {
    /// One turn: the work it saw, if the pool was in the ring.
    fn turn(&self) -> Option<u64> {
        self.ring.poll(|_| self.queued.word()).map(|_| self.work.get())
    }
}

/// Two holders hand the same pool over beside the popper: it is in the ring at most once, and a turn
/// follows the last hand-over.
#[test]
fn s2_a_pool_is_scheduled_at_most_once_and_its_work_is_seen() {
    check("s2", 200, Bound::new(3, 4), &["already there", "popped between"], |ghost| {
        let (queued, work) = (Flag::new(), Work::new());
        let pool = Arc::new(Handed { ring: SchedulerRing::new(1), queued, work });
        let holders = [(); 2].map(|()| {
            let (p, g) = (Arc::clone(&pool), StdArc::clone(ghost));
            spawn(move || {
                p.work.add();
                if !p.ring.schedule(0, p.queued.word()) {
                    g.saw("already there");
                }
            })
        });
        let (p, g) = (Arc::clone(&pool), StdArc::clone(ghost));
        let popper = spawn(move || {
            let mut done = 0;
            for _ in 0..2 {
                if let Some(seen) = p.turn() {
                    g.saw("popped between");
                    done = seen;
                } else {
                    yield_now();
                }
            }
            done
        });
        for holder in holders {
            holder.join().unwrap();
        }
        let done = popper.join().unwrap();
        let done = pool.turn().unwrap_or(done);
        assert!(pool.ring.is_empty(), "twice in the scheduler ring");
        assert!(!pool.queued.is_raised(), "flag left, or twice in the ring");
        assert_eq!(done, 2, "work left and nobody told");
    });
}
