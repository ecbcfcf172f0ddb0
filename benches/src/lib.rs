//! What the benchmarks share: the machine (pinning, stamps, the cache-line probe), the rule by which a
//! cross-core run counts, the peers, and the rows of the table.
//!
//! Nothing here is shipped. Figures are floats and go to standard output, which the library never does.
#![allow(
    clippy::float_arithmetic,
    clippy::cast_precision_loss,
    clippy::print_stdout,
    reason = "a measuring program: it computes ratios and prints them"
)]

pub mod counting;
pub mod figures;
pub mod gate;
pub mod halves;
pub mod machine;
pub mod ours;
pub mod paths;
pub mod peers;
pub mod report;
pub mod rng;
pub mod rows;
pub mod stats;
