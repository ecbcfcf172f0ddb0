//! P11: bytes per queued request and per idle tenant, by an allocator that counts.
#![allow(missing_docs, reason = "a program, not a library")]

use bandgate_benches::{counting::Counting, report::Args};

#[global_allocator]
static ALLOCATOR: Counting = Counting::new();

fn main() {
    let _args = Args::from_env();
    let _live = ALLOCATOR.live_bytes();
}
