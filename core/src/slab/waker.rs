//! The waker cell of an entry: an [`AtomicWaker`] that a panic of a waker does not break.
//!
//! `AtomicWaker::register` clones the new waker and drops the old one while the cell is claimed. If either
//! panics, the claim stays, and nobody who waits under that index later would ever be woken. Here both happen
//! outside: the clone is made before anything is touched, the old waker is handed to the caller, and what
//! `register` clones is a lender that only gives the clone out.
//!
//! Taking the old waker first loses no wake: the deliverer stores the outcome before it wakes, and the future
//! looks for it after it has registered; both pass through the cell's word in between.

use core::cell::Cell;
use core::mem::ManuallyDrop;
use core::ptr;
use core::task::{RawWaker, RawWakerVTable, Waker};

use atomic_waker::AtomicWaker;

/// Whom to wake when the state of an entry becomes final.
#[derive(Debug, Default)]
pub struct WakerCell(AtomicWaker);

impl WakerCell {
    /// Nobody is registered.
    pub const fn new() -> Self {
        Self(AtomicWaker::new())
    }

    /// Registers a clone of `waker` in the place of the last one, which is the caller's to drop. One caller
    /// at a time, any number of wakers beside it. Unwinds if the clone does, and then nothing has changed.
    #[must_use]
    pub fn register(&self, waker: &Waker) -> Option<Waker> {
        let new = waker.clone();
        let old = self.0.take();
        let same = old.as_ref().is_some_and(|old| old.will_wake(&new));
        let (kept, spare) = if same { (old, Some(new)) } else { (Some(new), old) };
        let lender = Lender(Cell::new(kept));
        // SAFETY: the functions of the table are right for a pointer to a `Lender`, which outlives this waker;
        // `register` neither keeps it nor hands it to another thread, it calls `clone` or `wake_by_ref` here.
        let lent =
            unsafe { Waker::from_raw(RawWaker::new(ptr::from_ref(&lender).cast(), &LENDER)) };
        self.0.register(&lent);
        // Not taken if somebody was just waking: then it was woken instead, and is dropped here or below.
        let unused = lender.0.take();
        spare.or(unused)
    }

    /// Wakes who is registered, once. The waker's panic is the caller's; the cell stays usable.
    pub fn wake(&self) {
        self.0.wake();
    }

    /// Takes the waker out without waking.
    #[must_use]
    pub fn take(&self) -> Option<Waker> {
        self.0.take()
    }
}

/// A waker on its way into the cell. Its "clone" is the waker itself.
struct Lender(Cell<Option<Waker>>);

static LENDER: RawWakerVTable = RawWakerVTable::new(lend, nothing, wake_lent, nothing);

/// # Safety
///
/// `data` points to a live [`Lender`].
unsafe fn lender<'l>(data: *const ()) -> &'l Lender {
    // SAFETY: as demanded.
    unsafe { &*data.cast::<Lender>() }
}

/// # Safety
///
/// As [`lender`].
unsafe fn lend(data: *const ()) -> RawWaker {
    // SAFETY: as demanded.
    let waker = unsafe { lender(data) }.0.take();
    // Once only: a second clone would have nobody to wake.
    let waker = ManuallyDrop::new(waker.unwrap_or_else(|| Waker::noop().clone()));
    RawWaker::new(waker.data(), waker.vtable())
}

/// # Safety
///
/// As [`lender`].
unsafe fn wake_lent(data: *const ()) {
    // SAFETY: as demanded.
    let lender = unsafe { lender(data) };
    let waker = lender.0.take();
    if let Some(waker) = &waker {
        waker.wake_by_ref();
    }
    lender.0.set(waker);
}

/// The lender is dropped where it stands; nobody consumes it.
const unsafe fn nothing(_: *const ()) {}

#[cfg(all(test, not(loom)))]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test that cannot go on may panic")]

    use super::*;
    use crate::sync::{AtomicU32, Ordering};
    use alloc::sync::Arc;
    use alloc::task::Wake;

    #[derive(Default)]
    struct Count(AtomicU32);

    impl Wake for Count {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }

    #[test]
    fn the_last_one_registered_is_woken_once_and_no_clone_is_lost() {
        let (cell, counts) = (WakerCell::new(), [(); 2].map(|()| Arc::new(Count::default())));
        let [first, second] = counts.clone().map(Waker::from);
        assert!(cell.register(&first).is_none());
        assert!(cell.register(&first).is_some_and(|spare| spare.will_wake(&first)));
        assert!(cell.register(&second).is_some_and(|old| old.will_wake(&first)));
        cell.wake();
        cell.wake();
        let woken = counts.each_ref().map(|count| count.0.load(Ordering::SeqCst));
        assert_eq!(woken, [0, 1]);
        assert!(cell.register(&first).is_none());
        assert!(cell.take().is_some_and(|taken| taken.will_wake(&first)));
        drop((first, second));
        assert!(counts.iter().all(|count| Arc::strong_count(count) == 1));
    }
}
