//! A blocking call waits for its future on the calling thread, with a deadline.

use alloc::sync::Arc;
use alloc::task::Wake;
use core::cell::Cell;
use core::future::Future;
use core::pin::pin;
use core::task::{Context, Poll, Waker};
use core::time::Duration;
use std::thread::{self, Thread};

use crate::sync::{AtomicBool, Ordering};

/// Wakes one thread out of `thread::park`.
#[derive(Debug)]
struct Alarm {
    thread: Thread,
    rung: AtomicBool,
}

impl Wake for Alarm {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        // ORDERING: AcqRel; Release pairs with the swap in `Alarm::wait`: what was done before the wake is
        // seen by the next poll.
        if !self.rung.swap(true, Ordering::AcqRel) {
            self.thread.unpark();
        }
    }
}

impl Alarm {
    /// Sleeps until the alarm was rung (`true`) or `now` has reached the deadline (`false`).
    fn wait(&self, deadline_ns: Option<u64>, now: &mut impl FnMut() -> u64) -> bool {
        loop {
            // ORDERING: AcqRel; Acquire pairs with the swap in `wake_by_ref`.
            if self.rung.swap(false, Ordering::AcqRel) {
                return true;
            }
            // A wake between the swap and the park leaves a token: the park returns at once.
            match deadline_ns {
                None => thread::park(),
                Some(deadline) => match deadline.saturating_sub(now()) {
                    0 => return false,
                    left => thread::park_timeout(Duration::from_nanos(left)),
                },
            }
        }
    }
}

/// This thread's alarm and its waker: made at the first use, taken out while in use, so that a call
/// inside a future's poll has one of its own.
struct Lent(Option<(Arc<Alarm>, Waker)>);

thread_local! {
    static CACHED: Cell<Option<(Arc<Alarm>, Waker)>> = const { Cell::new(None) };
}

impl Lent {
    fn take() -> (Arc<Alarm>, Waker) {
        let cached = CACHED.try_with(Cell::take).ok().flatten();
        cached.unwrap_or_else(|| {
            let rung = AtomicBool::new(false);
            let alarm = Arc::new(Alarm { thread: thread::current(), rung });
            let waker = Waker::from(Arc::clone(&alarm));
            (alarm, waker)
        })
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        let pair = self.0.take();
        // Fails only while the thread ends; then the pair is dropped instead.
        let _kept = CACHED.try_with(|cell| cell.set(pair));
    }
}

/// Polls `future` on this thread until it is ready or `now()` reaches `deadline_ns` (both nanoseconds of
/// the caller's clock): `None`, and the future is dropped. Polled at least once. Blocks; allocates at a
/// thread's first call, or when called from inside a poll.
pub fn block_on_until<F: Future>(
    future: F,
    deadline_ns: Option<u64>,
    mut now: impl FnMut() -> u64,
) -> Option<F::Output> {
    let mut future = pin!(future);
    let lent = Lent(Some(Lent::take()));
    let (alarm, waker) = lent.0.as_ref()?;
    let mut context = Context::from_waker(waker);
    loop {
        if let Poll::Ready(output) = future.as_mut().poll(&mut context) {
            return Some(output);
        }
        if !alarm.wait(deadline_ns, &mut now) {
            return None;
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::block_on_until;
    use alloc::sync::Arc;
    use core::future::{pending, poll_fn, ready};
    use core::task::{Poll, Waker};
    use std::sync::Mutex;

    /// Advances by 1 ms a look, so that a deadline passes without a clock.
    fn ticks() -> impl FnMut() -> u64 {
        let mut now = 0;
        move || {
            now += 1_000_000;
            now
        }
    }

    #[test]
    fn a_ready_future_is_answered_even_after_its_deadline() {
        assert_eq!(block_on_until(ready(7), Some(0), ticks()), Some(7));
        assert_eq!(block_on_until(ready(8), None, || 0), Some(8));
    }

    #[test]
    fn a_future_that_stays_pending_times_out() {
        assert_eq!(block_on_until(pending::<()>(), Some(5_000_000), ticks()), None);
        assert_eq!(block_on_until(pending::<()>(), Some(0), || u64::MAX), None);
    }

    #[test]
    fn a_wake_from_another_thread_is_never_lost() {
        for _ in 0..if cfg!(miri) { 10 } else { 500 } {
            let shared: Arc<Mutex<(bool, Option<Waker>)>> = Arc::default();
            let other = Arc::clone(&shared);
            let future = poll_fn(move |cx| {
                let Ok(mut s) = shared.lock() else { return Poll::Pending };
                s.1 = Some(cx.waker().clone());
                if s.0 { Poll::Ready(()) } else { Poll::Pending }
            });
            let thread = std::thread::spawn(move || {
                let waker = other.lock().ok().and_then(|mut s| {
                    s.0 = true;
                    s.1.take()
                });
                waker.into_iter().for_each(Waker::wake);
            });
            assert_eq!(block_on_until(future, None, || 0), Some(()));
            assert!(thread.join().is_ok());
        }
    }

    #[test]
    fn one_waker_serves_a_thread_and_a_nested_call_gets_its_own() {
        let waker = || block_on_until(poll_fn(|cx| Poll::Ready(cx.waker().clone())), None, || 0);
        let (Some(first), Some(second)) = (waker(), waker()) else {
            unreachable!("both are ready at once");
        };
        assert!(first.will_wake(&second));
        let nested = poll_fn(|cx| Poll::Ready((cx.waker().clone(), waker())));
        let Some((outer, Some(inner))) = block_on_until(nested, None, || 0) else {
            unreachable!("both are ready at once");
        };
        assert!(outer.will_wake(&first) && !outer.will_wake(&inner));
    }
}
