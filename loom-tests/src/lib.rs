//! Loom models of the protocols in `bandgate-core`, on its own types.
//!
//! A model is one property, at most three actors, and a **planted bug** that must make it fail; see
//! `check` and `planted.sh`. How to run:
//!
//! ```text
//! RUSTFLAGS="--cfg loom" CARGO_TARGET_DIR=target/loom cargo test --profile loom -p bandgate-loom-tests
//! loom-tests/planted.sh            # every planted bug is caught, and missed by the plain tests
//! LOOM_DEEP=1 ...                  # the deeper bound, for a nightly run
//! ```
//!
//! Rules for writing one:
//! - Each actor runs in its own spawned thread. The main closure spawns, joins, and then at most checks
//!   what is left over; an actor on the main thread would run before or after the others, not beside them.
//! - Who polls and finds nothing calls `loom::thread::yield_now`, or a bounded number of polls: else the
//!   model explores nothing but its spinning.
//! - What only the model needs to know (owners, counts, witnesses) is kept outside loom, in `Ghost`,
//!   `GhostCount` or `GhostFlag`: it costs no schedules, orders nothing, and is exact at every step.
//! - A bug is planted in the production file, at the line that matters: `if planted!("name") { .. }`.

#[cfg(loom)]
mod check;
#[cfg(loom)]
mod words;
#[cfg(loom)]
pub use check::{Bound, Ghost, check};
#[cfg(loom)]
pub use words::{Flag, GhostCount, GhostFlag, Work};
#[cfg(loom)]
pub mod world;
