//! Runs the conformance vectors against the shipped policies.
//!
//! `BANDGATE_VECTORS=DIR cargo test -p bandgate-core --test vectors` runs every `*.json` of DIR instead of the
//! committed ones. How a vector reads is in `vectors/README.md`. The drivers here keep queue lengths and nothing
//! else: every decision, weight and ceiling comes from the crate.
#![allow(clippy::print_stdout, reason = "a test binary with its own main: stdout is its report")]

#[path = "vectors/runner/answers.rs"]
mod answers;
#[path = "vectors/runner/ceilings.rs"]
mod ceilings;
#[path = "vectors/runner/compare.rs"]
mod compare;
#[path = "vectors/runner/files.rs"]
mod files;
#[path = "vectors/runner/flows.rs"]
mod flows;
#[path = "vectors/runner/input.rs"]
mod input;
#[path = "vectors/runner/outcomes.rs"]
mod outcomes;
#[path = "vectors/runner/ranks.rs"]
mod ranks;
#[path = "vectors/runner/saturation.rs"]
mod saturation;
#[path = "vectors/runner/sequence.rs"]
mod sequence;
#[path = "vectors/runner/waiting.rs"]
mod waiting;

use std::path::PathBuf;
use std::process::ExitCode;

fn main() -> ExitCode {
    // What test runners ask before they run anything.
    if std::env::args().any(|arg| arg == "--list") {
        if !std::env::args().any(|arg| arg == "--ignored") {
            println!("vectors: test");
        }
        return ExitCode::SUCCESS;
    }
    if std::env::args().any(|arg| arg == "--ignored") {
        println!("test result: ok. 0 passed; 0 failed; 0 ignored; 0 measured; 1 filtered out");
        return ExitCode::SUCCESS;
    }
    let dir = std::env::var_os("BANDGATE_VECTORS").map_or_else(
        || PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/vectors"),
        PathBuf::from,
    );
    let tally = files::run(&dir);
    tally.print();
    if tally.failed == 0 && tally.passed > 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
