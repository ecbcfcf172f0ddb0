//! Cores and stamps: pinning by `sched_setaffinity`, time by the TSC where there is one.

use core::{hint::spin_loop, time::Duration};
use std::{sync::OnceLock, thread, time::Instant};

/// Whether a thread may be kept on core 0 and another on core 1 (tried once, on a thread of its own).
pub fn two_cores() -> bool {
    static BOTH: OnceLock<bool> = OnceLock::new();
    *BOTH.get_or_init(|| thread::spawn(|| pin(0) && pin(1)).join().unwrap_or(false))
}

/// Keeps the calling thread on one core; false if the system refuses.
#[cfg(target_os = "linux")]
pub fn pin(core: usize) -> bool {
    // SAFETY: all bits zero is the empty set.
    let mut set: libc::cpu_set_t = unsafe { core::mem::zeroed() };
    // SAFETY: the set is ours; a core beyond its size is ignored by the macro's bounds check.
    unsafe { libc::CPU_SET(core, &mut set) };
    // SAFETY: the pointer and the size describe the same live set; 0 is the calling thread.
    unsafe { libc::sched_setaffinity(0, size_of_val(&set), &raw const set) == 0 }
}

/// Keeps the calling thread on one core: not offered here.
#[cfg(not(target_os = "linux"))]
pub fn pin(_core: usize) -> bool {
    false
}

/// A stamp in ticks, taken before the measured work.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
pub fn stamp() -> u64 {
    // SAFETY: every x86-64 processor has `rdtsc`, and Linux lets user code read it.
    unsafe { core::arch::x86_64::_rdtsc() }
}

/// A stamp in ticks, taken after the measured work: waits for what stands before it.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
pub fn stamp_after() -> u64 {
    let mut core_id = 0;
    // SAFETY: `rdtscp` is on every processor this runs on (2008 and later); the reference is live.
    unsafe { core::arch::x86_64::__rdtscp(&raw mut core_id) }
}

/// A stamp in nanoseconds since the first call.
#[cfg(not(target_arch = "x86_64"))]
#[inline(always)]
pub fn stamp() -> u64 {
    static START: OnceLock<Instant> = OnceLock::new();
    let start = START.get_or_init(Instant::now);
    u64::try_from(start.elapsed().as_nanos()).unwrap_or(u64::MAX)
}

/// A stamp in nanoseconds since the first call.
#[cfg(not(target_arch = "x86_64"))]
#[inline(always)]
pub fn stamp_after() -> u64 {
    stamp()
}

/// Nanoseconds of one tick, measured once: the median of five spans of 20 ms.
pub fn ns_per_tick() -> f64 {
    static RATE: OnceLock<f64> = OnceLock::new();
    *RATE.get_or_init(|| {
        let spans: Vec<f64> = (0..5).map(|_| rate_over(Duration::from_millis(20))).collect();
        crate::stats::median(&spans).unwrap_or(1.0)
    })
}

fn rate_over(span: Duration) -> f64 {
    let (clock, ticks) = (Instant::now(), stamp());
    while clock.elapsed() < span {
        spin_loop();
    }
    let passed = stamp_after().saturating_sub(ticks);
    clock.elapsed().as_nanos() as f64 / passed.max(1) as f64
}

/// Ticks as nanoseconds.
pub fn ns(ticks: u64) -> f64 {
    ticks as f64 * ns_per_tick()
}

/// A pace: how many ticks to let pass between two operations.
#[derive(Clone, Copy, Debug)]
pub struct Pace(u64);

impl Pace {
    /// A pause of about this many nanoseconds.
    #[allow(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a pause of at most milliseconds"
    )]
    pub fn every_ns(ns: u32) -> Self {
        Self((f64::from(ns) / ns_per_tick()) as u64)
    }

    /// Spins for the pause.
    #[inline(always)]
    pub fn wait(self) {
        let start = stamp();
        while stamp().wrapping_sub(start) < self.0 {
            spin_loop();
        }
    }
}

/// `count` paced operations, each stamped before and after: their latencies in ticks.
#[inline(always)]
pub fn latencies(count: usize, pace: Option<Pace>, operation: impl FnMut()) -> Vec<u64> {
    latencies_with(count, pace, operation, || {})
}

/// The same, with work between two operations that is not stamped (giving back what was taken).
#[inline(always)]
pub fn latencies_with(
    count: usize,
    pace: Option<Pace>,
    mut operation: impl FnMut(),
    mut between: impl FnMut(),
) -> Vec<u64> {
    let mut ticks = Vec::with_capacity(count);
    for _ in 0..count {
        if let Some(pace) = pace {
            pace.wait();
        }
        let before = stamp();
        operation();
        ticks.push(stamp_after().saturating_sub(before));
        between();
    }
    ticks
}
