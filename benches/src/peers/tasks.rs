//! Many async tasks over few slots, on one thread.

use core::time::Duration;
use std::{sync::Arc, time::Instant};

use tokio::{
    runtime::{Builder, Runtime},
    sync::{Semaphore, mpsc},
    task::yield_now,
};

use super::scheduler;

/// A runtime on the calling thread; `None` if the system refuses one.
pub fn runtime() -> Option<Runtime> {
    Builder::new_current_thread().build().ok()
}

/// Runs `tasks` copies of a task side by side and returns the time from the first to the last.
pub fn side_by_side<F: Future<Output = ()> + Send + 'static>(
    runtime: &Runtime,
    tasks: usize,
    mut task: impl FnMut(usize) -> F,
) -> Duration {
    runtime.block_on(async {
        let start = Instant::now();
        let running: Vec<_> = (0..tasks).map(|number| tokio::spawn(task(number))).collect();
        for one in running {
            assert!(one.await.is_ok(), "a task failed: the figure would mean nothing");
        }
        start.elapsed()
    })
}

/// Tasks over tokio's semaphore, each `rounds` times: acquire, yield while holding, give back.
pub fn tokio_semaphore(runtime: &Runtime, tasks: usize, slots: usize, rounds: u64) -> Duration {
    let semaphore = Arc::new(Semaphore::new(slots));
    side_by_side(runtime, tasks, |_| {
        let semaphore = Arc::clone(&semaphore);
        async move {
            for _ in 0..rounds {
                let permit = semaphore.acquire().await;
                yield_now().await;
                drop(permit);
            }
        }
    })
}

/// The same over the scheduler task.
pub fn scheduler_task(runtime: &Runtime, tasks: usize, slots: usize, rounds: u64) -> Duration {
    let (commands, inbox) = mpsc::channel(1024);
    let owner = runtime.spawn(scheduler::task(inbox, slots));
    let elapsed = side_by_side(runtime, tasks, |number| {
        let commands = commands.clone();
        let priority = if number.is_multiple_of(2) { 1 } else { 2 };
        async move {
            for _ in 0..rounds {
                assert!(scheduler::admit(&commands, priority).await);
                yield_now().await;
                assert!(scheduler::release(&commands).await);
            }
        }
    });
    drop(commands);
    assert!(runtime.block_on(owner).is_ok());
    elapsed
}

/// One caller and the scheduler task, slots free: `rounds` admits and releases end to end.
pub fn scheduler_alone(runtime: &Runtime, rounds: u64) -> Duration {
    let (commands, inbox) = mpsc::channel(1024);
    runtime.block_on(async {
        let owner = tokio::spawn(scheduler::task(inbox, 8));
        let start = Instant::now();
        for _ in 0..rounds {
            assert!(scheduler::admit(&commands, 1).await);
            assert!(scheduler::release(&commands).await);
        }
        let elapsed = start.elapsed();
        drop(commands);
        assert!(owner.await.is_ok());
        elapsed
    })
}

#[cfg(test)]
mod tests {
    use super::{runtime, scheduler_alone, scheduler_task, tokio_semaphore};

    #[test]
    fn every_task_of_both_peers_gets_its_turns() {
        let runtime = runtime().unwrap_or_else(|| panic!("no runtime"));
        assert!(tokio_semaphore(&runtime, 64, 1, 10).as_nanos() > 0);
        assert!(scheduler_task(&runtime, 64, 1, 10).as_nanos() > 0);
        assert!(scheduler_alone(&runtime, 100).as_nanos() > 0);
    }
}
