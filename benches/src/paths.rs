//! The paths whose instructions are counted, by name: ours of every id that runs on one thread or can be cut into halves
//! that do, and the peers of P1 to P4 and P7.
//!
//! Counts are exact where times are not: the same program on the same input executes the same instructions, so a
//! growth of a few per cent is a change of the code and nothing else.

mod ours;
mod peers;

/// Operations of a path that repeats one call.
const ROUNDS: u32 = 10_000;

/// One path.
#[derive(Clone, Copy, Debug)]
pub struct Path {
    /// `P3/bandgate/64`, as in the table where the table has it.
    pub name: &'static str,
    /// Operations of one run.
    pub operations: u32,
    /// Prepares and runs it.
    pub run: fn(),
}

const fn path(name: &'static str, run: fn()) -> Path {
    Path { name, operations: ROUNDS, run }
}

/// All paths.
pub const PATHS: &[Path] = &[
    path("P1/bandgate", ours::pool_only),
    path("P2/bandgate/64", ours::all_limits),
    path("P2/bandgate/131k", ours::all_limits_131k),
    path("P3/bandgate/64", ours::handoff_64),
    path("P3/bandgate/1024", ours::handoff_1024),
    path("P3/bandgate_deadlines/64", ours::handoff_deadlines),
    path("P4/bandgate_strict/1k", ours::strict::<1_000>),
    path("P4/bandgate_strict/100k", ours::strict::<100_000>),
    path("P4/bandgate_strict/1M", ours::strict::<1_000_000>),
    path("P4/bandgate_strict_random/1k", ours::strict_random::<1_000>),
    path("P4/bandgate_strict_random/100k", ours::strict_random::<100_000>),
    path("P4/bandgate_strict_random/1M", ours::strict_random::<1_000_000>),
    path("P4/bandgate_wfq/1k", ours::weighted::<1_000>),
    path("P4/bandgate_wfq/100k", ours::weighted::<100_000>),
    path("P4/bandgate_wfq/1M", ours::weighted::<1_000_000>),
    path("P5/submitter", ours::submitter_half),
    path("P5/shard", ours::shard_half),
    path("P5/shard_after", ours::shard_after),
    Path { name: "P7/bandgate", operations: peers::ADMITS, run: ours::tasks },
    path("P8/bandgate_limits", ours::beside_nobody),
    path("P8/bandgate_busy", ours::try_of_a_taken_pool),
    path("P8/bandgate_left", ours::release_into_a_taken_pool),
    Path { name: "P14/bandgate", operations: ours::DISPATCHES, run: ours::replay },
    path("P15/bandgate/one", ours::one_of_two_pools),
    path("P15/bandgate/other", ours::other_of_two_pools),
    path("P16/bandgate", ours::beside_blocked),
    path("P17/bandgate", ours::timers_random),
    path("P17/bandgate_oldest", ours::timers_oldest),
    path("P1/floor_cas", peers::floor_cas),
    path("P1/tokio_semaphore", peers::tokio_semaphore),
    path("P3/tokio_semaphore", peers::tokio_handoff),
    path("P3/heap_oneshot", peers::heap_handoff),
    path("P4/bitmap_vecdeque/1k", peers::bitmap),
    path("P4/finish_tag_heap/1k", peers::finish_tags),
    Path { name: "P7/tokio_semaphore", operations: peers::ADMITS, run: peers::tokio_tasks },
    path("P17/heap4_random", peers::timers_in_a_heap),
];

/// Runs an operation [`ROUNDS`] times. Collection is switched on while a function of this name runs and nowhere else, so it
/// must not be inlined and must not be used for anything but the measured work.
#[inline(never)]
fn collected(mut operation: impl FnMut()) {
    for _ in 0..ROUNDS {
        operation();
    }
}

/// The same once: for work that counts its own operations, or has something between two of them.
#[inline(never)]
fn collected_once<R>(operation: impl FnOnce() -> R) -> R {
    operation()
}

#[cfg(test)]
mod tests {
    use super::PATHS;

    #[test]
    fn every_path_runs_and_has_a_name_of_its_own() {
        for (at, path) in PATHS.iter().enumerate() {
            assert!(PATHS[..at].iter().all(|earlier| earlier.name != path.name), "{}", path.name);
            // A million requests are slow to queue in a debug build, and the depth changes no code.
            if !path.name.ends_with("1M") && !path.name.ends_with("131k") {
                (path.run)();
            }
        }
    }
}
