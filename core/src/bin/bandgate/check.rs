//! `bandgate check`: is it valid, and what does the engine make of it, in numbers and as a picture.
#![forbid(unsafe_code)]

mod levels;
mod picture;
mod tables;

use core::fmt::Write;
use std::path::PathBuf;

use bandgate_core::types::settings::Settings;
use clap::Args as ClapArgs;

use crate::{Failure, load, outputs::Output, print};

/// What is checked, and where the picture goes.
#[derive(Debug, ClapArgs)]
pub(crate) struct Args {
    /// The YAML file.
    config: PathBuf,
    /// Also draw the gates of every pool over the saturation into this file.
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
}

/// Runs the command.
pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    let svg = args.svg.as_deref().map(Output::new).transpose()?;
    let loaded = load::file(&args.config)?;
    let mut out = String::new();
    // Writing to a string cannot fail.
    let _ = describe(&mut out, &loaded.source, loaded.warnings, &loaded.settings);
    if let Some(svg) = svg {
        let picture = picture::svg(&loaded.name, &loaded.settings).map_err(Failure::Internal)?;
        svg.write(&picture)?;
    }
    print(&out)
}

fn describe(
    out: &mut String,
    source: &str,
    warnings: usize,
    settings: &Settings,
) -> core::fmt::Result {
    writeln!(out, "{source}: valid, {}", counted(warnings, "warning"))?;
    writeln!(
        out,
        "{}, {}, {}, {}",
        counted(settings.pools.len(), "pool"),
        counted(settings.groups.len(), "group"),
        counted(settings.tenants.len(), "tenant"),
        counted(settings.keys.len(), "key")
    )?;
    for pool in &settings.pools {
        tables::pool(out, pool)?;
    }
    Ok(())
}

fn counted(n: usize, what: &str) -> String {
    format!("{n} {what}{}", if n == 1 { "" } else { "s" })
}

#[cfg(test)]
mod tests {
    use super::counted;

    #[test]
    fn one_is_singular() {
        assert_eq!([counted(1, "slot"), counted(0, "slot")], ["1 slot", "0 slots"]);
    }
}
