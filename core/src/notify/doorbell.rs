//! The doorbell of a shard: work is published, then the bell is rung; the one who sleeps looks again
//! after saying so.
//!
//! | word | written by | ordering | read by | ordering |
//! | --- | --- | --- | --- | --- |
//! | `parked` | sleeper and ringers, swap | AcqRel | ringers, first look | Relaxed, behind `fence(SeqCst)` |
//!
//! Ringer: publish the work, `fence(SeqCst)`, look at `parked`. Sleeper: set `parked`, `fence(SeqCst)`,
//! look for work. The two fences are ordered one way or the other, so at least one of the two sees what
//! the other did: the work is found, or the sleeper is woken. Both sides change `parked` by swap only, so
//! of many ringers one makes the system call.

use crossbeam_utils::CachePadded;

use super::parker::{Parker, Slept};
use crate::sync::{AtomicBool, Ordering, fence, planted};

/// Why [`Doorbell::park`] returned. In every case the caller looks for work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Woke {
    /// The second look found work; there was no sleep.
    Work,
    /// Somebody rang.
    Rung,
    /// The time was over.
    TimedOut,
    /// A signal, or the ring of an earlier park that came late.
    Early,
}

/// One sleeper, any number of ringers.
#[derive(Debug)]
pub struct Doorbell {
    parked: CachePadded<AtomicBool>,
    parker: Parker,
}

impl Doorbell {
    /// A bell with this parker.
    pub fn new(parker: Parker) -> Self {
        Self { parked: CachePadded::new(AtomicBool::new(false)), parker }
    }

    /// The parker, for its kind, counters and file descriptor.
    pub fn parker(&self) -> &Parker {
        &self.parker
    }

    /// Wakes the sleeper, if there is one. The work was published before. `true`: this call made the
    /// wake. Lock-free, one fence; a system call only if somebody sleeps; any thread.
    #[inline]
    pub fn ring(&self) -> bool {
        if !planted!("m04") {
            // ORDERING: SeqCst fence between the caller's publication and our look at `parked`; pairs with
            // the fence in `announce`.
            fence(Ordering::SeqCst);
        }
        self.ring_fenced()
    }

    /// As [`ring`](Self::ring), for a caller that put a `fence(SeqCst)` between publishing and this.
    #[inline]
    pub fn ring_fenced(&self) -> bool {
        // ORDERING: Relaxed; the fence before it decides what must be seen.
        if !self.parked.load(Ordering::Relaxed) {
            return false;
        }
        // ORDERING: AcqRel; Release pairs with the swap in `retract`, so a sleeper that finds itself woken
        // sees the work; one of several ringers wins.
        if !self.parked.swap(false, Ordering::AcqRel) {
            return false;
        }
        self.parker.wake();
        true
    }

    /// Sleeps until somebody rings, the time is over, or `look` finds work at the second look. One
    /// sleeper at a time. `timeout_ns` as in [`Parker::sleep`].
    pub fn park(&self, look: impl FnMut() -> bool, timeout_ns: Option<u64>) -> Woke {
        if !self.announce(look) {
            return Woke::Work;
        }
        if planted!("m05") {
            self.parker.drain();
        }
        let slept = self.parker.sleep(timeout_ns);
        if self.retract() {
            return Woke::Rung;
        }
        match slept {
            Slept::TimedOut => Woke::TimedOut,
            Slept::Woken | Slept::Interrupted => Woke::Early,
        }
    }

    /// For hosts that sleep in a loop of their own on [`Parker::fileno`]: says "asleep", looks again.
    /// `true`: sleep, then [`retract`](Self::retract) and [`Parker::drain`]. `false`: there is work.
    pub fn announce(&self, mut look: impl FnMut() -> bool) -> bool {
        if planted!("m03") && look() {
            return false;
        }
        // ORDERING: AcqRel; a swap because ringers change it too. The fence orders it, not this.
        self.parked.swap(true, Ordering::AcqRel);
        if !planted!("k1") {
            // ORDERING: SeqCst fence between saying "asleep" and looking; pairs with the fence in `ring`.
            fence(Ordering::SeqCst);
        }
        if !planted!("m03") && look() {
            self.retract();
            return false;
        }
        true
    }

    /// Takes "asleep" back. `true`: somebody rang meanwhile, and what he published is visible. Its wake
    /// may still be on the way: it ends a later sleep early, once.
    pub fn retract(&self) -> bool {
        // ORDERING: AcqRel; Acquire pairs with the ringer's swap.
        !self.parked.swap(false, Ordering::AcqRel)
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::{Doorbell, Woke};
    use crate::notify::parker::{Choice, Parker};
    use crate::sync::{AtomicU64, Ordering};

    const SECOND: u64 = 1_000_000_000;

    fn bells() -> [Doorbell; 3] {
        [Choice::Best, Choice::EventFd, Choice::Portable].map(|c| Doorbell::new(Parker::new(c)))
    }

    #[test]
    fn work_found_by_the_second_look_prevents_the_sleep() {
        for bell in bells() {
            assert_eq!(bell.park(|| true, None), Woke::Work);
            assert_eq!(bell.parker().stats().parks, 0);
            assert!(!bell.ring(), "nobody sleeps any more");
        }
    }

    #[test]
    fn a_bell_rung_with_nobody_asleep_costs_no_wake() {
        for bell in bells() {
            assert!(!bell.ring());
            assert_eq!(bell.parker().stats().wakes, 0);
            assert_eq!(bell.park(|| false, Some(1_000)), Woke::TimedOut);
        }
    }

    #[test]
    fn every_item_sent_is_received_without_a_timeout() {
        const ITEMS: u64 = 2_000;
        for bell in bells() {
            let sent = AtomicU64::new(0);
            std::thread::scope(|s| {
                s.spawn(|| {
                    for n in 0..ITEMS {
                        sent.fetch_add(1, Ordering::Release);
                        bell.ring();
                        if n % 8 == 0 {
                            std::thread::yield_now();
                        }
                    }
                });
                let mut seen = 0;
                while seen < ITEMS {
                    let woke =
                        bell.park(|| sent.load(Ordering::Acquire) != seen, Some(20 * SECOND));
                    assert_ne!(woke, Woke::TimedOut, "a lost wake-up");
                    seen = sent.load(Ordering::Acquire);
                }
            });
            let stats = bell.parker().stats();
            assert!(stats.wakes <= ITEMS && stats.parks <= ITEMS + stats.wakes);
        }
    }
}
