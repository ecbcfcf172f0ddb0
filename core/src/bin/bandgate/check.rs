//! `bandgate check`: is it valid, and what does the engine make of it, in numbers.
#![forbid(unsafe_code)]

use core::fmt::Write;
use std::path::Path;

use bandgate_core::{
    admit::ceiling::{Ceilings, ceilings, limit},
    sim::scheme::Scheme,
    types::{
        policy::BandSelection,
        settings::{PoolSettings, Settings},
    },
};

use crate::{Failure, load, print};

/// Runs the command.
pub(crate) fn run(path: &Path) -> Result<(), Failure> {
    let loaded = load::file(path)?;
    let mut out = String::new();
    // Writing to a string cannot fail.
    let _ = describe(&mut out, &loaded.source, loaded.warnings, &loaded.settings);
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
        describe_pool(out, pool)?;
    }
    Ok(())
}

fn describe_pool(out: &mut String, pool: &PoolSettings) -> core::fmt::Result {
    let bands = load::bands(pool);
    let priorities: Vec<i32> = bands.iter().map(|&(priority, _)| priority).collect();
    let scheme = Scheme::of(&pool.selection, &priorities);
    let mut levels = Ceilings::new();
    ceilings(&pool.holdback, &priorities, &mut levels);

    write!(
        out,
        "\npool {}: {}, {}",
        pool.name,
        counted(pool.slots as usize, "slot"),
        scheme.schedule
    )?;
    if let BandSelection::Wfq(wfq) = &pool.selection {
        let round = scheme.round;
        writeln!(out, " from saturation {} on, round {round}", wfq.activation)?;
        let others = round.saturating_sub(1);
        writeln!(
            out,
            "between two dispatches of a waiting band with weight: at most {others} others"
        )?;
    } else {
        writeln!(out)?;
    }
    writeln!(
        out,
        "{:>12} {:<20} {:>10} {:>8} {:>10} {:>9} {:>9}",
        "band", "name", "weight", "share", "credits", "ceiling", "slots"
    )?;
    let total: u64 = scheme.weights.values().sum();
    for ((priority, name), level) in bands.iter().zip(&levels) {
        let weight = scheme.weights.get(priority).copied();
        let or_dash = |value: Option<String>| value.unwrap_or_else(|| "-".into());
        writeln!(
            out,
            "{priority:>12} {:<20} {:>10} {:>8} {:>10} {level:>9.3} {:>9}",
            name.as_deref().unwrap_or("-"),
            or_dash(weight.map(|w| w.to_string())),
            or_dash(weight.map(|w| percent(w, total))),
            or_dash(scheme.credits.get(priority).map(u64::to_string)),
            limit(*level, pool.slots)
        )?;
    }
    Ok(())
}

/// `part` of `whole` in percent with one decimal, rounded to nearest.
fn percent(part: u64, whole: u64) -> String {
    if whole == 0 {
        return "-".into();
    }
    let tenths = (u128::from(part) * 2000 / u128::from(whole)).div_ceil(2);
    format!("{}.{}%", tenths / 10, tenths % 10)
}

fn counted(n: usize, what: &str) -> String {
    format!("{n} {what}{}", if n == 1 { "" } else { "s" })
}

#[cfg(test)]
mod tests {
    use super::{counted, percent};

    #[test]
    fn percentages_are_rounded_to_the_nearest_tenth() {
        assert_eq!(percent(6, 10), "60.0%");
        assert_eq!(percent(21, 33), "63.6%");
        assert_eq!(percent(2, 3), "66.7%");
        assert_eq!(percent(1, 33), "3.0%");
        assert_eq!(percent(0, 0), "-");
        assert_eq!(counted(1, "slot"), "1 slot");
    }
}
