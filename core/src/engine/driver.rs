//! Who runs the turns that no caller runs: the keeper, or one pinned thread per shard.

use alloc::boxed::Box;
use alloc::format;
use alloc::vec::Vec;
use core::time::Duration;
use std::io;
use std::thread::{Builder, JoinHandle, current};

use super::EngineCore;
use crate::notify::wait::block_on_until;
use crate::shard::{Shard, Sleeper};
use crate::sync::{Arc, Ordering, spin_loop, yield_now};
use crate::topology;
use crate::types::settings::DriverKind;

/// The keeper looks at least this often while anybody waits: a backstop, not a mechanism.
const KEEPER_TICK_NS: u64 = 50_000_000;

/// Ticks the keeper goes on with after the last waiter is gone, so that the next one with a far deadline
/// need not wake it.
const KEEPER_LINGER: u32 = 20;

/// Looks a shard thread makes after its last work before it yields, and yields before it parks: together
/// some tens of microseconds.
const SPINS: u32 = 2_000;
const YIELDS: u32 = 16;

/// The engine's threads.
#[derive(Debug, Default)]
pub(super) struct Threads(Vec<JoinHandle<()>>);

impl Threads {
    /// Starts what the driver needs.
    pub(super) fn start(core: &Arc<EngineCore>) -> io::Result<Self> {
        let mut threads = Self::default();
        match core.driver {
            DriverKind::Host => {}
            DriverKind::Inline => {
                let mine = Arc::clone(core);
                let keeper = Builder::new().name("bandgate-keeper".into());
                threads.0.push(keeper.spawn(move || keep(&mine))?);
            }
            DriverKind::Threads => {
                let cores = topology::allowed_cores();
                for n in 0..core.shards.len() {
                    let mine = Arc::clone(core);
                    // Core 0 is where hosts and interrupts crowd: the last cores are taken first.
                    let cpu =
                        cores.len().checked_sub(1 + n % cores.len().max(1)).map(|at| cores[at]);
                    let thread = Builder::new().name(format!("bandgate-shard-{n}"));
                    let spawned = thread.spawn(move || run_shard(&mine, n, cpu));
                    match spawned {
                        Ok(thread) => threads.0.push(thread),
                        Err(error) => {
                            stop(core);
                            threads.join(core);
                            return Err(error);
                        }
                    }
                }
            }
        }
        Ok(threads)
    }

    /// Wakes and joins them all; they have been told to stop.
    pub(super) fn join(&mut self, core: &EngineCore) {
        for sleeper in &core.sleepers {
            sleeper.bell.ring();
        }
        let here = current().id();
        // The engine may be dropped by a waker on one of these threads; that one ends by itself.
        for thread in self.0.drain(..).filter(|thread| thread.thread().id() != here) {
            // A panicked thread is a poisoned pool already; there is nothing to add.
            let _panicked = thread.join();
        }
    }

    /// In a child of fork: the handles name threads that are not there.
    pub(super) fn forget(&mut self) {
        core::mem::forget(core::mem::take(&mut self.0));
    }
}

fn stop(core: &EngineCore) {
    // ORDERING: Release pairs with `must_stop`; the bells are rung after it.
    core.stop.store(true, Ordering::Release);
}

fn must_stop(core: &EngineCore) -> bool {
    // ORDERING: Acquire pairs with the store in `stop` and in `Engine::drop`.
    core.stop.load(Ordering::Acquire)
}

/// Sleeps until a bell rings, the earliest deadline, or `cap_ns`.
fn sleep(core: &EngineCore, shards: &[Shard], sleeper: &Sleeper, now_ns: u64, cap_ns: u64) {
    let deadline = || shards.iter().filter_map(Shard::next_deadline_ns).min().unwrap_or(u64::MAX);
    let until = cap_ns.min(deadline());
    sleeper.announce(until);
    let look = || must_stop(core) || shards.iter().any(Shard::has_work) || deadline() < until;
    let timeout = (until != u64::MAX).then(|| until.saturating_sub(now_ns));
    sleeper.bell.park(look, timeout);
    sleeper.announce(0);
}

/// The keeper of the inline driver: left work and deadlines of all shards.
fn keep(core: &EngineCore) {
    let mut idle = 0;
    while !must_stop(core) {
        let now = core.clock.now_ns();
        let more = core.shards.iter().fold(false, |more, shard| shard.poll(now).more | more);
        if more {
            yield_now();
            continue;
        }
        idle = if core.shards.iter().any(Shard::has_waiters) { 0 } else { idle + 1 };
        let cap = if idle > KEEPER_LINGER { u64::MAX } else { now.saturating_add(KEEPER_TICK_NS) };
        sleep(core, &core.shards, &core.sleepers[0], now, cap);
    }
}

/// The thread of one shard: spins over its pools, yields, parks.
fn run_shard(core: &EngineCore, n: usize, cpu: Option<usize>) {
    if let Some(cpu) = cpu {
        topology::pin_to_core(cpu);
    }
    let shard = &core.shards[n];
    let mut idle = 0;
    while !must_stop(core) {
        let progress = shard.poll(core.clock.now_ns());
        if progress.more || progress.commands + progress.grants + progress.expired > 0 {
            idle = 0;
            continue;
        }
        // Spins once after the last work, not again after every yield.
        if idle == 0 && spin(shard) {
            continue;
        }
        if idle < YIELDS {
            idle += 1;
            yield_now();
            continue;
        }
        idle = 0;
        let now = core.clock.now_ns();
        sleep(core, core::slice::from_ref(shard), &core.sleepers[n], now, u64::MAX);
    }
}

/// Looks for commands in the pools' own rings, which are stamped before the scheduler ring hears of them.
fn spin(shard: &Shard) -> bool {
    for _ in 0..SPINS {
        if shard.run_ready_pools() {
            return true;
        }
        spin_loop();
    }
    false
}

/// Polls every millisecond until no pool has anybody running or waiting. `false`: the time is over.
pub(super) fn wait_until_empty(core: &Arc<EngineCore>, timeout: Duration) -> bool {
    let clock = &core.clock;
    let limit = u64::try_from(timeout.as_nanos()).unwrap_or(u64::MAX);
    let deadline = clock.now_ns().saturating_add(limit);
    loop {
        let is_empty = core.shards.iter().all(|shard| {
            shard.pools().iter().all(|pool| {
                // The ring first: what leaves it later is counted in the view.
                let nothing_on_its_way = pool.ring.is_empty() || pool.gate.is_dead();
                let view = shard.view(pool);
                nothing_on_its_way && view.closed && view.running == 0 && view.waiting == 0
            })
        });
        if is_empty {
            return true;
        }
        if clock.now_ns() >= deadline {
            return false;
        }
        // The host driver has no thread of its own that would expire and continue.
        for shard in &core.shards {
            shard.poll(clock.now_ns());
        }
        pause(clock);
    }
}

fn pause(clock: &crate::clock::Clock) {
    let until = clock.now_ns().saturating_add(1_000_000);
    block_on_until(Box::pin(core::future::pending::<()>()), Some(until), || clock.now_ns());
}
