//! The tables of `check`: bands in numbers, and which of them are open over the saturation.
#![forbid(unsafe_code)]

use core::fmt::Write;

use bandgate_core::{
    admit::ceiling::{limit, reflective},
    sim::{
        regions::{Mode, Region, regions},
        scheme::Scheme,
    },
    types::{
        first_bands,
        policy::{BandSelection, Holdback},
        settings::PoolSettings,
    },
};

use super::counted;
use super::levels::{Levels, Moved, signal};
use crate::load;

/// Saturations at which the share of open decisions is told.
const TOLD: [f64; 6] = [0.6, 0.7, 0.8, 0.9, 0.95, 0.99];

/// Everything about one pool.
pub(super) fn pool(out: &mut String, pool: &PoolSettings) -> core::fmt::Result {
    let bands = load::bands(pool);
    let priorities: Vec<i32> = bands.iter().map(|&(priority, _)| priority).collect();
    let scheme = Scheme::of(&pool.selection, &priorities);
    let levels = Levels::of(pool, &priorities);
    heading(out, pool, &scheme)?;
    let pressed = levels.pressed();
    let mut columns = String::new();
    if pressed.is_some() {
        write!(columns, " {:>9} {:>6}", "pressed", "slots")?;
    }
    writeln!(
        out,
        "{:>12} {:<20} {:>8} {:>7} {:>8} {:>8} {:>6}{columns} {:>12}",
        "band", "name", "weight", "share", "credits", "ceiling", "slots", "wfq"
    )?;
    let total: u64 = scheme.weights.values().sum();
    for (i, (priority, name)) in bands.iter().enumerate() {
        let level = levels.calm[i];
        // One that opens for some decisions only has no number to name.
        let stays = i == 0 || !matches!(levels.moved, Moved::ByDecisions);
        let weight = scheme.weights.get(priority).copied();
        let or_dash = |value: Option<String>| value.unwrap_or_else(|| "-".into());
        let mut columns = String::new();
        if let Some(pressed) = &pressed {
            write!(columns, " {:>9.3} {:>6}", pressed[i], limit(pressed[i], pool.slots))?;
        }
        writeln!(
            out,
            "{priority:>12} {:<20} {:>8} {:>7} {:>8} {:>8} {:>6}{columns} {:>12}",
            name.as_deref().unwrap_or("-"),
            or_dash(weight.map(|w| w.to_string())),
            or_dash(weight.map(|w| percent(w, total))),
            or_dash(scheme.credits.get(priority).map(u64::to_string)),
            or_dash(stays.then(|| format!("{level:.3}"))),
            or_dash(stays.then(|| limit(level, pool.slots).to_string())),
            or_dash(weighted(&pool.selection, levels.high[i]))
        )?;
    }
    over_saturation(out, pool, &priorities, &levels)
}

fn heading(out: &mut String, pool: &PoolSettings, scheme: &Scheme) -> core::fmt::Result {
    let slots = counted(pool.slots as usize, "slot");
    write!(out, "\npool {}: {slots}, {}", pool.name, scheme.schedule)?;
    if let BandSelection::Wfq(wfq) = &pool.selection {
        let round = scheme.round;
        writeln!(out, " from saturation {} on, round {round}", wfq.activation)?;
        let others = round.saturating_sub(1);
        writeln!(
            out,
            "between two dispatches of a waiting band with weight: at most {others} others"
        )
    } else {
        writeln!(out)
    }
}

/// The saturations at which a band with this ceiling is open and weighted.
fn weighted(selection: &BandSelection, ceiling: f64) -> Option<String> {
    let BandSelection::Wfq(wfq) = selection else { return None };
    (wfq.activation < ceiling).then(|| format!("{:.3}..{ceiling:.3}", wfq.activation))
}

fn over_saturation(
    out: &mut String,
    pool: &PoolSettings,
    priorities: &[i32],
    levels: &Levels,
) -> core::fmt::Result {
    let of = |ceilings: &[f64]| regions(ceilings, &pool.selection, pool.slots);
    let table = |out: &mut String, title: &str, ceilings: &[f64]| {
        writeln!(out, "gates over saturation{title}")?;
        rows(out, priorities, &of(ceilings))
    };
    match (&levels.moved, &pool.holdback) {
        (Moved::BySignal(_), Holdback::Adaptive(params)) => {
            let (name, rate) = (signal(params), params.recovery_rate);
            writeln!(
                out,
                "ceilings follow {name}: at rest up to {}, pressed from {} on, given back at {rate} per second",
                params.target, params.full
            )?;
            table(out, ", at rest", &levels.calm)?;
            let pressed = levels.pressed().unwrap_or_default();
            table(out, ", under full pressure", &pressed)
        }
        (Moved::ByBusyBands, _) => {
            let (low, high) = (levels.low.last(), levels.high.last());
            let (low, high) = (low.copied().unwrap_or(1.0), high.copied().unwrap_or(1.0));
            writeln!(
                out,
                "ceilings follow the busy bands: {high:.3} for a lone one, {low:.3} for the lowest of several"
            )?;
            table(out, ", every band busy", &levels.calm)
        }
        (Moved::ByDecisions, _) => reflected(out, priorities),
        _ => table(out, "", &levels.calm),
    }
}

fn rows(out: &mut String, priorities: &[i32], regions: &[Region]) -> core::fmt::Result {
    writeln!(out, "{:>17} {:>15}  {:<9}  open bands", "saturation", "running", "mode")?;
    for Region { from, to, running, open, mode } in regions {
        let range = match to {
            Some(to) => format!("{from:.3} to {to:.3}"),
            None => format!("{from:.3} and up"),
        };
        let running = match running {
            Some((first, last)) if first == last => first.to_string(),
            Some((first, last)) => format!("{first}..{last}"),
            None => "-".into(),
        };
        let open = match (*open, priorities.get((open.count_ones() as usize).wrapping_sub(1))) {
            (0, _) | (_, None) => "none".into(),
            (all, _) if all == first_bands(priorities.len()) => "all".into(),
            (_, Some(lowest)) => format!("{lowest} and higher"),
        };
        let mode = if open == "none" { "-" } else { Mode::as_str(*mode) };
        writeln!(out, "{range:>17} {running:>15}  {mode:<9}  {open}")?;
    }
    Ok(())
}

/// Where each band begins to be closed, and for which share of the decisions it opens then.
fn reflected(out: &mut String, priorities: &[i32]) -> core::fmt::Result {
    writeln!(
        out,
        "bands open for one decision in several, from a saturation on that falls by rank"
    )?;
    writeln!(out, "{:>12} {:>12}", "band", "always below")?;
    for (index, priority) in (0..).zip(priorities) {
        writeln!(
            out,
            "{priority:>12} {:>12}",
            format!("{:.3}", free_below(index, priorities.len()))
        )?;
    }
    writeln!(out, "{:>12} {:>12}", "saturation", "then open")?;
    for saturation in TOLD {
        let period = reflective::period(saturation);
        writeln!(out, "{saturation:>12.2} {:>12}", format!("1 in {period}"))?;
    }
    Ok(())
}

/// The saturation below which the band at `index` of `count` is always open: where `S = 1 - i S / (N - 1)`.
#[allow(
    clippy::float_arithmetic,
    clippy::cast_precision_loss,
    reason = "a figure of a report; at most 64 bands"
)]
pub(super) fn free_below(index: u32, count: usize) -> f64 {
    if index == 0 || count < 2 {
        return 1.0;
    }
    let last = (count - 1) as f64;
    last / (last + f64::from(index))
}

/// `part` of `whole` in percent with one decimal, rounded to nearest.
fn percent(part: u64, whole: u64) -> String {
    if whole == 0 {
        return "-".into();
    }
    let tenths = (u128::from(part) * 2000 / u128::from(whole)).div_ceil(2);
    format!("{}.{}%", tenths / 10, tenths % 10)
}

#[cfg(test)]
mod tests {
    use super::{free_below, percent};
    use bandgate_core::admit::ceiling::reflective::reflection;

    #[test]
    fn percentages_are_rounded_to_the_nearest_tenth() {
        assert_eq!(percent(6, 10), "60.0%");
        assert_eq!(percent(21, 33), "63.6%");
        assert_eq!(percent(2, 3), "66.7%");
        assert_eq!(percent(1, 33), "3.0%");
        assert_eq!(percent(0, 0), "-");
    }

    #[test]
    #[allow(clippy::float_arithmetic, reason = "points beside an edge")]
    fn a_band_is_free_below_the_saturation_that_is_told() {
        for (index, count) in [(1, 2), (1, 4), (3, 4)] {
            let edge = free_below(index, usize::try_from(count).unwrap_or_default());
            let is_free = |saturation| saturation < reflection(saturation, index, count);
            assert!(is_free(edge - 1e-9) && !is_free(edge + 1e-9), "{index} of {count}");
        }
    }
}
