//! One measured path for callgrind: `paths NAME` runs it inside `collected`, `paths --list` names them with the
//! operations of each. `instructions.sh` drives it.
#![forbid(unsafe_code)]
#![allow(clippy::print_stdout, reason = "the list is for the script")]

use std::process::ExitCode;

use bandgate_benches::paths;

fn main() -> ExitCode {
    let wanted = std::env::args().nth(1);
    let mut found = wanted.as_deref() == Some("--list");
    for path in paths::PATHS {
        match wanted.as_deref() {
            Some("--list") => println!("{} {}", path.name, path.operations),
            Some(name) if name == path.name => {
                found = true;
                (path.run)();
            }
            _ => {}
        }
    }
    if found { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
