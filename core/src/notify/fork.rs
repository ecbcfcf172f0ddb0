//! A forked child has the parent's memory and none of its threads: an engine made before the fork must
//! say `Forked` and not wait for somebody who is not there.
//!
//! `fork` runs a handler in the child that adds one to a generation; an engine keeps the generation of
//! its making and compares. A raw `clone` system call runs no handlers and is not noticed.

/// The generation of this process: another number in a forked child. One relaxed load. Before
/// [`register`] it never changes. Always 0 where there is no `fork`.
#[inline]
pub fn fork_generation() -> u32 {
    imp::generation()
}

/// Makes this process's forks count, once; returns the generation. `None`: the system had no memory
/// for the handler, so a fork would go unnoticed.
pub fn register() -> Option<u32> {
    imp::register().then(fork_generation)
}

#[cfg(all(unix, not(any(loom, bandgate_portable))))]
mod imp {
    use std::sync::OnceLock;

    use crate::sync::{AtomicU32, Ordering};

    static GENERATION: AtomicU32 = AtomicU32::new(0);

    /// Runs in the child, where only async-signal-safe things are allowed: one atomic add is.
    extern "C" fn in_child() {
        // ORDERING: Relaxed; the child has one thread.
        GENERATION.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn generation() -> u32 {
        // ORDERING: Relaxed; it changes only where there is one thread.
        GENERATION.load(Ordering::Relaxed)
    }

    pub(super) fn register() -> bool {
        static REGISTERED: OnceLock<bool> = OnceLock::new();
        *REGISTERED.get_or_init(|| {
            // SAFETY: the handler is a function of this library with the right signature; it lives as
            // long as the library (glibc drops the handlers of an unloaded one).
            unsafe { libc::pthread_atfork(None, None, Some(in_child)) == 0 }
        })
    }
}

#[cfg(any(not(unix), loom, bandgate_portable))]
mod imp {
    pub(super) fn generation() -> u32 {
        0
    }

    pub(super) fn register() -> bool {
        true
    }
}

#[cfg(all(test, unix, not(any(loom, bandgate_portable))))]
mod tests {
    use super::{fork_generation, register};

    #[test]
    fn a_forked_child_sees_another_generation_and_its_parent_does_not() {
        let before = register();
        assert_eq!(before, Some(fork_generation()));
        assert_eq!(register(), before, "registered once");
        let before = fork_generation();
        // SAFETY: the child only reads an atomic and leaves by `_exit`.
        let child = unsafe { libc::fork() };
        assert!(child >= 0, "fork was refused");
        if child == 0 {
            let code = i32::from(fork_generation() != before.wrapping_add(1));
            // SAFETY: ends the child without running anything of the parent's.
            unsafe { libc::_exit(code) };
        }
        let mut status = -1;
        // SAFETY: `status` lives across the call; `child` is ours and not waited for elsewhere.
        let waited = unsafe { libc::waitpid(child, &raw mut status, 0) };
        assert_eq!((waited, status), (child, 0));
        assert_eq!(fork_generation(), before);
    }
}
