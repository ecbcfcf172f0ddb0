//! The `bandgate` command.
fn main() {}
