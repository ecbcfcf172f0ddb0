//! One measured path after the other for callgrind: `paths NAME` runs it `ROUNDS` times inside
//! `collected`, `paths --list` names them. `instructions.sh` drives it.
#![forbid(unsafe_code)]
#![allow(clippy::print_stdout, reason = "the list is for the script")]

use std::process::ExitCode;

use bandgate_benches::paths;

fn main() -> ExitCode {
    let wanted = std::env::args().nth(1);
    let mut found = wanted.as_deref() == Some("--list");
    if found {
        println!("rounds {}", paths::ROUNDS);
    }
    for (name, run) in paths::PATHS {
        match wanted.as_deref() {
            Some("--list") => println!("{name}"),
            Some(path) if path == *name => {
                found = true;
                run();
            }
            _ => {}
        }
    }
    if found { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
