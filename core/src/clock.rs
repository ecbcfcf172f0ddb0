//! Time: the only place that reads it. Everything else takes `now`, in nanoseconds from the engine's start.

use core::cell::Cell;
use std::time::Instant;

use crate::sync::{Arc, AtomicU64, Ordering};

/// Where `now` comes from. Monotonic; wall-clock steps have no effect.
#[derive(Clone, Debug)]
pub struct Clock(Source);

#[derive(Clone, Debug)]
enum Source {
    Monotonic(Instant),
    Manual(Arc<AtomicU64>),
}

impl Clock {
    /// The machine's monotonic clock, 0 at this call. Reading it costs about 22 ns.
    pub fn monotonic() -> Self {
        Self(Source::Monotonic(Instant::now()))
    }

    /// A clock turned by hand: simulations and tests. Starts at 0; clones share the time.
    pub fn manual() -> Self {
        Self(Source::Manual(Arc::new(AtomicU64::new(0))))
    }

    /// Sets a manual clock, never backwards. No effect on a monotonic one.
    pub fn set(&self, now_ns: u64) {
        if let Source::Manual(time) = &self.0 {
            // ORDERING: Relaxed; time carries no other data.
            time.fetch_max(now_ns, Ordering::Relaxed);
        }
    }

    /// [`Clock::set`] for a clock that only one thread sets, in plain loads and stores: a simulation sets it at each of its
    /// events. With two such threads it could go backwards.
    #[inline]
    pub fn set_alone(&self, now_ns: u64) {
        if let Source::Manual(time) = &self.0 {
            // ORDERING: Relaxed; time carries no other data, and nobody else writes it.
            if now_ns > time.load(Ordering::Relaxed) {
                // ORDERING: Relaxed, as above.
                time.store(now_ns, Ordering::Relaxed);
            }
        }
    }

    /// Nanoseconds since the clock was made; saturates after 584 years.
    #[inline]
    pub fn now_ns(&self) -> u64 {
        match &self.0 {
            Source::Monotonic(start) => {
                u64::try_from(start.elapsed().as_nanos()).unwrap_or(u64::MAX)
            }
            // ORDERING: Relaxed; time carries no other data.
            Source::Manual(time) => time.load(Ordering::Relaxed),
        }
    }
}

/// `now`, read at most once per turn and only if somebody asks.
#[derive(Debug)]
pub struct Now<'c> {
    clock: &'c Clock,
    read: Cell<Option<u64>>,
}

impl<'c> Now<'c> {
    /// Not read yet.
    #[inline(always)]
    pub fn lazy(clock: &'c Clock) -> Self {
        Self { clock, read: Cell::new(None) }
    }

    /// Already known.
    pub fn at(clock: &'c Clock, now_ns: u64) -> Self {
        Self { clock, read: Cell::new(Some(now_ns)) }
    }

    /// Known unless 0.
    #[inline(always)]
    pub fn known(clock: &'c Clock, now_ns: u64) -> Self {
        Self { clock, read: Cell::new((now_ns != 0).then_some(now_ns)) }
    }

    /// The time of this turn, in nanoseconds.
    #[inline]
    pub fn ns(&self) -> u64 {
        self.read.get().unwrap_or_else(|| {
            let now = self.clock.now_ns();
            self.read.set(Some(now));
            now
        })
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::{Clock, Now};

    #[test]
    fn a_hand_turned_clock_moves_only_forward_and_a_turn_reads_it_once() {
        let clock = Clock::manual();
        let now = Now::lazy(&clock);
        clock.set(5);
        assert_eq!(now.ns(), 5);
        clock.set(9);
        clock.set(3);
        assert_eq!((now.ns(), clock.now_ns(), clock.clone().now_ns()), (5, 9, 9));
        clock.set_alone(12);
        clock.set_alone(11);
        assert_eq!(clock.now_ns(), 12);
    }
}
