//! The `bandgate` command: check configurations and replay traces against them, offline.
//!
//! Results go to standard output, messages to standard error. Exit codes: 0 done, 1 a fault of this program, 2 bad input.
#![forbid(unsafe_code)]

mod check;
mod demo;
mod explain;
mod load;
mod outputs;
mod picture;
mod replay;

use std::{
    io::{self, Write},
    process::ExitCode,
};

use clap::{Parser, Subcommand};

/// Why a command did not do its work.
#[derive(Debug)]
enum Failure {
    /// What the user gave cannot be used: exit code 2.
    Input(String),
    /// Standard output was closed: somebody saw enough.
    Closed,
    /// This program is at fault: exit code 1.
    Internal(String),
}

/// Checks configurations and replays traces against them, offline and in virtual time.
#[derive(Debug, Parser)]
#[command(name = "bandgate", version, max_term_width = 100)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Check a configuration; print weights, credits, round, ceilings and gates of every band.
    ///
    /// BANDGATE__ variables are laid over the file, as in the engine.
    Check(check::Args),
    /// Say what would happen to one request at a saturation, step by step, and which rule decides.
    Explain(explain::Args),
    /// Print the JSON Schema of the configuration.
    Schema,
    /// Replay a trace against one or more configurations and compare them, band by band.
    Replay(replay::Args),
}

fn main() -> ExitCode {
    let result = match Cli::parse().command {
        Command::Check(args) => check::run(&args),
        Command::Explain(args) => explain::run(&args),
        Command::Schema => schema(),
        Command::Replay(args) => replay::run(&args),
    };
    match result {
        Ok(()) | Err(Failure::Closed) => ExitCode::SUCCESS,
        Err(Failure::Input(message)) => fail(&message, 2),
        Err(Failure::Internal(message)) => fail(&message, 1),
    }
}

fn fail(message: &str, code: u8) -> ExitCode {
    // Standard error may be closed; the exit code still says it.
    let _ = writeln!(io::stderr(), "error: {message}");
    ExitCode::from(code)
}

fn schema() -> Result<(), Failure> {
    let schema = bandgate_core::config::schema();
    let text =
        serde_json::to_string_pretty(&schema).map_err(|e| Failure::Internal(e.to_string()))?;
    print(&format!("{text}\n"))
}

/// Writes to standard output.
fn print(text: &str) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Ok(()) => Ok(()),
        Err(e) if e.kind() == io::ErrorKind::BrokenPipe => Err(Failure::Closed),
        Err(e) => Err(Failure::Input(format!("cannot write to standard output: {e}"))),
    }
}

/// Writes a remark to standard error.
fn remark(text: &str) {
    // A remark nobody can read is no reason to stop.
    let _ = writeln!(io::stderr(), "{text}");
}
