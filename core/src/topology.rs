//! Cores and pinning. Linux only behind a portable no-op; nothing here is on the path.

#[cfg(all(target_os = "linux", not(bandgate_portable)))]
mod imp {
    /// Logical cores this process may run on, in ascending order.
    pub(super) fn allowed_cores() -> alloc::vec::Vec<usize> {
        // SAFETY: an all-zero cpu_set_t is a valid empty set.
        let mut set: libc::cpu_set_t = unsafe { core::mem::zeroed() };
        let size = core::mem::size_of::<libc::cpu_set_t>();
        // SAFETY: `set` is a live cpu_set_t of `size` bytes; pid 0 is the calling thread.
        if unsafe { libc::sched_getaffinity(0, size, &raw mut set) } != 0 {
            return alloc::vec::Vec::new();
        }
        let max = usize::try_from(libc::CPU_SETSIZE).unwrap_or(0);
        // SAFETY: `cpu` is below CPU_SETSIZE, the size of the set.
        (0..max).filter(|&cpu| unsafe { libc::CPU_ISSET(cpu, &set) }).collect()
    }

    /// Pins the calling thread; `false` if the system refuses.
    pub(super) fn pin(core: usize) -> bool {
        // SAFETY: an all-zero cpu_set_t is a valid empty set.
        let mut set: libc::cpu_set_t = unsafe { core::mem::zeroed() };
        if core >= usize::try_from(libc::CPU_SETSIZE).unwrap_or(0) {
            return false;
        }
        // SAFETY: `core` is below CPU_SETSIZE, checked above.
        unsafe { libc::CPU_SET(core, &mut set) };
        // SAFETY: `set` is a live cpu_set_t of that size; pid 0 is the calling thread.
        unsafe { libc::sched_setaffinity(0, core::mem::size_of_val(&set), &raw const set) == 0 }
    }
}

#[cfg(not(all(target_os = "linux", not(bandgate_portable))))]
mod imp {
    pub(super) fn allowed_cores() -> alloc::vec::Vec<usize> {
        let n = std::thread::available_parallelism().map_or(1, core::num::NonZero::get);
        (0..n).collect()
    }

    pub(super) fn pin(_core: usize) -> bool {
        false
    }
}

/// Logical cores this process may run on, ascending; empty if the system does not say.
pub fn allowed_cores() -> alloc::vec::Vec<usize> {
    imp::allowed_cores()
}

/// Pins the calling thread to a core; `false` where that is refused or not supported.
pub fn pin_to_core(core: usize) -> bool {
    imp::pin(core)
}

#[cfg(all(test, not(loom)))]
mod tests {
    #[test]
    fn a_thread_can_be_pinned_to_a_core_it_is_allowed_on() {
        let cores = super::allowed_cores();
        let Some(&first) = cores.first() else { return };
        let pinned = std::thread::spawn(move || super::pin_to_core(first)).join();
        assert_eq!(pinned.ok(), Some(cfg!(all(target_os = "linux", not(bandgate_portable)))));
        assert!(!super::pin_to_core(1 << 20));
    }
}
