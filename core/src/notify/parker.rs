//! The sleep behind a doorbell, in the form this machine allows.
//!
//! A wake is latched: one that comes before the sleep ends it at once, many count as one. A sleep may end
//! early; whoever sleeps looks again.

#[cfg(all(feature = "uring", target_os = "linux", not(any(loom, bandgate_portable))))]
use alloc::boxed::Box;
use alloc::string::String;
#[cfg(all(target_os = "linux", not(any(loom, bandgate_portable))))]
use std::os::fd::AsRawFd as _;

use super::Tally;

#[cfg(not(loom))]
mod condvar;
#[cfg(all(target_os = "linux", not(any(loom, bandgate_portable))))]
mod eventfd;
#[cfg(loom)]
mod model;
#[cfg(all(feature = "uring", target_os = "linux", not(any(loom, bandgate_portable))))]
mod uring;

/// The longest sleep, 146 years: a longer one is cut to it, because the kernel adds it to its clock.
pub const MAX_SLEEP_NS: u64 = 1 << 62;

/// Which parker is asked for; a refused one is replaced by the next in this order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Choice {
    /// io_uring (with the feature `uring`), where the kernel lets us.
    #[default]
    Best,
    /// eventfd and ppoll (Linux).
    EventFd,
    /// A mutex and a condition variable: everywhere, no file descriptor.
    Portable,
}

/// Why a sleep ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Slept {
    /// By a wake, this one or one that was latched before.
    Woken,
    /// The time was over.
    TimedOut,
    /// By a signal or for no reason.
    Interrupted,
}

/// Counters since construction, each read on its own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Sleeps begun.
    pub parks: u64,
    /// Wakes made.
    pub wakes: u64,
    /// System calls of both (of the portable parker: 0, it cannot tell).
    pub system_calls: u64,
}

#[derive(Debug)]
enum Kind {
    #[cfg(all(feature = "uring", target_os = "linux", not(any(loom, bandgate_portable))))]
    Uring(Box<uring::Uring>),
    #[cfg(all(target_os = "linux", not(any(loom, bandgate_portable))))]
    EventFd(eventfd::EventFd),
    #[cfg(not(loom))]
    Condvar(condvar::Condvar),
    #[cfg(loom)]
    Model(model::Model),
}

/// One sleeper at a time, woken by any thread. Its descriptors are closed when it is dropped.
#[derive(Debug)]
pub struct Parker {
    kind: Kind,
    refusal: Option<String>,
    parks: Tally,
    wakes: Tally,
    calls: Tally,
}

impl Parker {
    /// The parker asked for, or the best that is not refused; [`kind`](Self::kind) and
    /// [`refusal`](Self::refusal) say which and why. Probes the kernel; never fails.
    pub fn new(choice: Choice) -> Self {
        let mut refusal = None;
        let kind = Kind::make(choice, &mut refusal);
        Self { kind, refusal, parks: Tally::new(), wakes: Tally::new(), calls: Tally::new() }
    }

    /// `"io_uring"`, `"eventfd"`, `"condvar"`, or `"model"` under loom.
    pub fn kind(&self) -> &'static str {
        match &self.kind {
            #[cfg(all(feature = "uring", target_os = "linux", not(any(loom, bandgate_portable))))]
            Kind::Uring(_) => "io_uring",
            #[cfg(all(target_os = "linux", not(any(loom, bandgate_portable))))]
            Kind::EventFd(_) => "eventfd",
            #[cfg(not(loom))]
            Kind::Condvar(_) => "condvar",
            #[cfg(loom)]
            Kind::Model(_) => "model",
        }
    }

    /// What was refused and why, if the parker is not the one asked for.
    pub fn refusal(&self) -> Option<&str> {
        self.refusal.as_deref()
    }

    /// The descriptor that is readable after a wake, for hosts with a loop of their own; they call
    /// [`drain`](Self::drain) after it. `None`: the portable parker has none.
    pub fn fileno(&self) -> Option<i32> {
        match &self.kind {
            #[cfg(all(feature = "uring", target_os = "linux", not(any(loom, bandgate_portable))))]
            Kind::Uring(u) => Some(u.bell().as_raw_fd()),
            #[cfg(all(target_os = "linux", not(any(loom, bandgate_portable))))]
            Kind::EventFd(e) => Some(e.as_raw_fd()),
            #[cfg(not(loom))]
            Kind::Condvar(_) => None,
            #[cfg(loom)]
            Kind::Model(_) => None,
        }
    }

    /// Ends the sleep, or the next one. One system call (portable: one short mutex); any thread.
    pub fn wake(&self) {
        self.wakes.add(1);
        match &self.kind {
            #[cfg(all(feature = "uring", target_os = "linux", not(any(loom, bandgate_portable))))]
            Kind::Uring(u) => u.bell().wake(&self.calls),
            #[cfg(all(target_os = "linux", not(any(loom, bandgate_portable))))]
            Kind::EventFd(e) => e.wake(&self.calls),
            #[cfg(not(loom))]
            Kind::Condvar(c) => c.wake(),
            #[cfg(loom)]
            Kind::Model(m) => m.wake(),
        }
    }

    /// Sleeps until a wake, or at most `timeout_ns` nanoseconds (0: only takes a latched wake; above
    /// [`MAX_SLEEP_NS`]: that). May end early. One sleeper at a time.
    pub fn sleep(&self, timeout_ns: Option<u64>) -> Slept {
        self.parks.add(1);
        let timeout_ns = timeout_ns.map(|ns| ns.min(MAX_SLEEP_NS));
        match &self.kind {
            #[cfg(all(feature = "uring", target_os = "linux", not(any(loom, bandgate_portable))))]
            Kind::Uring(u) => u.sleep(timeout_ns, &self.calls),
            #[cfg(all(target_os = "linux", not(any(loom, bandgate_portable))))]
            Kind::EventFd(e) => e.sleep(timeout_ns, &self.calls),
            #[cfg(not(loom))]
            Kind::Condvar(c) => c.sleep(timeout_ns),
            #[cfg(loom)]
            Kind::Model(m) => m.sleep(timeout_ns),
        }
    }

    /// Forgets a latched wake. Only after [`Doorbell::retract`](super::doorbell::Doorbell::retract), and
    /// by the sleeper: between its second look and its sleep this would lose a wake.
    pub fn drain(&self) {
        match &self.kind {
            #[cfg(all(feature = "uring", target_os = "linux", not(any(loom, bandgate_portable))))]
            Kind::Uring(u) => u.drain(&self.calls),
            #[cfg(all(target_os = "linux", not(any(loom, bandgate_portable))))]
            Kind::EventFd(e) => {
                e.drain(&self.calls);
            }
            #[cfg(not(loom))]
            Kind::Condvar(c) => c.drain(),
            #[cfg(loom)]
            Kind::Model(m) => m.drain(),
        }
    }

    /// The counters.
    pub fn stats(&self) -> Stats {
        Stats { parks: self.parks.get(), wakes: self.wakes.get(), system_calls: self.calls.get() }
    }
}

impl Kind {
    #[cfg(loom)]
    fn make(_: Choice, _: &mut Option<String>) -> Self {
        Self::Model(model::Model::new())
    }

    #[cfg(all(target_os = "linux", not(any(loom, bandgate_portable))))]
    fn make(choice: Choice, refusal: &mut Option<String>) -> Self {
        if choice == Choice::Portable {
            return Self::Condvar(condvar::Condvar::new());
        }
        let bell = match eventfd::EventFd::new() {
            Ok(bell) => bell,
            Err(e) => {
                *refusal = Some(alloc::format!("eventfd: {e}"));
                return Self::Condvar(condvar::Condvar::new());
            }
        };
        #[cfg(feature = "uring")]
        if choice == Choice::Best {
            return match uring::Uring::new(bell) {
                Ok(uring) => Self::Uring(Box::new(uring)),
                Err((bell, why)) => {
                    *refusal = Some(why);
                    Self::EventFd(bell)
                }
            };
        }
        Self::EventFd(bell)
    }

    #[cfg(all(not(loom), any(not(target_os = "linux"), bandgate_portable)))]
    fn make(choice: Choice, refusal: &mut Option<String>) -> Self {
        if choice != Choice::Portable {
            *refusal = Some("eventfd, io_uring: not on this platform".into());
        }
        Self::Condvar(condvar::Condvar::new())
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::{Choice, Parker, Slept};
    use crate::sync::Arc;
    use core::time::Duration;

    const MS: u64 = 1_000_000;
    const CHOICES: [Choice; 3] = [Choice::Best, Choice::EventFd, Choice::Portable];

    #[test]
    fn a_parker_that_is_not_the_one_asked_for_says_why() {
        let best = cfg!(all(feature = "uring", target_os = "linux", not(bandgate_portable)));
        let best = if best { "io_uring" } else { "eventfd" };
        for (choice, asked) in CHOICES.into_iter().zip([best, "eventfd", "condvar"]) {
            let parker = Parker::new(choice);
            assert_eq!(parker.refusal().is_some(), parker.kind() != asked);
            assert_eq!(parker.fileno().is_none(), parker.kind() == "condvar");
        }
    }

    #[test]
    fn wakes_before_the_sleep_are_latched_and_count_as_one() {
        for choice in CHOICES {
            let parker = Parker::new(choice);
            for _ in 0..5 {
                parker.wake();
                parker.wake();
                assert_eq!(parker.sleep(None), Slept::Woken);
                assert_eq!(parker.sleep(Some(0)), Slept::TimedOut, "{}", parker.kind());
            }
            assert_eq!(parker.stats().wakes, 10);
            assert_eq!(parker.stats().parks, 10);
        }
    }

    #[test]
    fn a_drained_wake_is_forgotten() {
        for choice in CHOICES {
            let parker = Parker::new(choice);
            parker.drain();
            assert_eq!(parker.sleep(Some(0)), Slept::TimedOut);
            parker.wake();
            parker.drain();
            assert_eq!(parker.sleep(Some(MS)), Slept::TimedOut, "{}", parker.kind());
            parker.wake();
            assert_eq!(parker.sleep(None), Slept::Woken);
        }
    }

    #[test]
    fn a_wake_ends_a_sleep_without_end_and_the_longest_one() {
        for choice in CHOICES {
            for timeout in [None, Some(u64::MAX)] {
                let parker = Arc::new(Parker::new(choice));
                let waker = Arc::clone(&parker);
                let thread = std::thread::spawn(move || {
                    std::thread::sleep(Duration::from_millis(20));
                    waker.wake();
                });
                while parker.sleep(timeout) != Slept::Woken {}
                assert!(thread.join().is_ok());
            }
        }
    }

    #[test]
    fn the_sleeper_may_change_thread_and_the_first_may_be_gone() {
        for choice in CHOICES {
            let parker = Parker::new(choice);
            for _ in 0..3 {
                std::thread::scope(|s| {
                    s.spawn(|| assert_ne!(parker.sleep(Some(MS)), Slept::Woken));
                });
                std::thread::scope(|s| {
                    s.spawn(|| while parker.sleep(None) != Slept::Woken {});
                    s.spawn(|| parker.wake());
                });
            }
        }
    }

    #[cfg(all(target_os = "linux", not(bandgate_portable)))]
    #[test]
    fn a_dropped_parker_closes_its_descriptors() {
        let open = || std::fs::read_dir("/proc/self/fd").map_or(0, Iterator::count);
        for choice in CHOICES {
            let before = open();
            for _ in 0..50 {
                let parker = Parker::new(choice);
                parker.wake();
                assert_eq!(parker.sleep(None), Slept::Woken);
            }
            assert!(open() < before + 40, "descriptors pile up");
        }
    }
}
