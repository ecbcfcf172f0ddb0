//! Queue a waiter, release, see the grant: all on one thread, nobody sleeps.

use core::{
    pin::pin,
    task::{Context, Poll, Waker},
};
use std::sync::{Mutex, PoisonError};

use tokio::sync::{Semaphore, oneshot};

use super::scheduler::Scheduler;

/// One hand-off through tokio's semaphore, which holds no permit: FIFO, no policy. False if it went wrong.
#[inline(always)]
pub fn tokio_semaphore(semaphore: &Semaphore) -> bool {
    let mut waiter = pin!(semaphore.acquire());
    let mut context = Context::from_waker(Waker::noop());
    if waiter.as_mut().poll(&mut context).is_ready() {
        return false;
    }
    semaphore.add_permits(1);
    match waiter.as_mut().poll(&mut context) {
        Poll::Ready(Ok(permit)) => {
            permit.forget();
            true
        }
        Poll::Ready(Err(_)) | Poll::Pending => false,
    }
}

/// One hand-off through a heap of oneshots behind a mutex.
#[inline(always)]
pub fn heap_oneshot(heap: &Mutex<Scheduler>, priority: u8) -> bool {
    let (answer, mut granted) = oneshot::channel();
    heap.lock().unwrap_or_else(PoisonError::into_inner).submit(priority, answer);
    heap.lock().unwrap_or_else(PoisonError::into_inner).grant_next();
    granted.try_recv().is_ok()
}

#[cfg(test)]
mod tests {
    use super::{Mutex, Scheduler, Semaphore, heap_oneshot, tokio_semaphore};

    #[test]
    fn both_hand_offs_grant_what_they_queued() {
        assert!(tokio_semaphore(&Semaphore::new(0)));
        assert!(!tokio_semaphore(&Semaphore::new(1)), "a free permit is no hand-off");
        assert!(heap_oneshot(&Mutex::new(Scheduler::new(0)), 1));
    }
}
