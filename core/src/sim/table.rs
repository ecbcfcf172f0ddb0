//! The report as text, at most 100 columns wide.
#![forbid(unsafe_code)]
#![allow(clippy::float_arithmetic, reason = "formats shares and times for people")]

use core::fmt::{self, Write};

use super::report::{BandReport, ConfigReport, Report};

/// Column heads and widths; the first column is left-aligned.
const COLUMNS: [(&str, usize); 13] = [
    ("band", 15),
    ("disp", 7),
    ("share", 7),
    ("busy", 7),
    ("p50", 8),
    ("p90", 8),
    ("p99", 8),
    ("max", 8),
    ("run", 7),
    ("gap", 6),
    ("rej", 6),
    ("evict", 6),
    ("starv", 6),
];

/// Longest line of running text.
const WIDTH: usize = 98;

const LEGEND: &str = "\
disp: dispatched; share: of all dispatches; busy: share while every band had a waiter;
p50 to max: wait until dispatch; run: longest run of other bands' dispatches while the band waited;
gap: the same between two of its own dispatches while every band had a waiter;
rej, evict: refused, removed while waiting.";

/// The tables of all configurations.
pub fn render(report: &Report) -> String {
    let mut out = String::new();
    // Writing to a string cannot fail.
    let _ = write_report(&mut out, report);
    out
}

fn write_report(out: &mut String, report: &Report) -> fmt::Result {
    writeln!(
        out,
        "trace {} ({}, {} rows), speed-up {}",
        report.trace, report.format, report.rows, report.speedup
    )?;
    writeln!(out, "{}", wrap(report.service_rule, WIDTH))?;
    writeln!(out, "{}", wrap(&report.assignment_rule, WIDTH))?;
    for config in &report.configs {
        writeln!(out)?;
        write_config(out, config)?;
    }
    writeln!(out, "\n{LEGEND}\n{}", wrap(report.starved_rule, WIDTH))
}

fn write_config(out: &mut String, config: &ConfigReport) -> fmt::Result {
    write!(out, "{}: {}, {} slots", config.name, config.schedule, config.slots)?;
    if config.round > 0 {
        let weights: Vec<String> =
            config.weights.iter().rev().map(|(p, w)| format!("{p}:{w}")).collect();
        write!(out, ", weights {}, round {}", weights.join(" "), config.round)?;
    }
    writeln!(
        out,
        "\n{} dispatches in {} of virtual time, {} while every band had a waiter",
        config.dispatches,
        human_ms(config.virtual_seconds * 1e3),
        config.all_backlogged_dispatches
    )?;
    row(out, &COLUMNS.map(|(head, _)| head.to_owned()))?;
    for band in &config.bands {
        row(out, &cells(band))?;
    }
    let left: u64 = config.bands.iter().map(|b| b.left_waiting).sum();
    if left > 0 {
        writeln!(out, "{left} requests still wait and can never run under this configuration")?;
    }
    Ok(())
}

fn cells(band: &BandReport) -> [String; 13] {
    let percent = |share: Option<f64>| share.map_or("-".into(), |s| format!("{:.1}%", s * 100.0));
    let waits = band.wait_ms.map(|w| [w.p50, w.p90, w.p99, w.max].map(human_ms));
    let [p50, p90, p99, max] = waits.unwrap_or_else(|| ["-", "-", "-", "-"].map(Into::into));
    [
        shorten(&band.label(), 15),
        band.dispatched.to_string(),
        percent(band.share),
        percent(band.share_all_backlogged),
        p50,
        p90,
        p99,
        max,
        band.longest_run_of_others.to_string(),
        band.longest_gap_all_backlogged.to_string(),
        band.rejected.to_string(),
        band.evicted.to_string(),
        if band.starved { "yes" } else { "no" }.into(),
    ]
}

fn row(out: &mut String, cells: &[String; 13]) -> fmt::Result {
    for (i, (cell, (_, width))) in cells.iter().zip(COLUMNS).enumerate() {
        if i == 0 { write!(out, "{cell:<width$}")? } else { write!(out, "{cell:>width$}")? }
    }
    writeln!(out)
}

fn shorten(text: &str, width: usize) -> String {
    if text.chars().count() <= width {
        return text.to_owned();
    }
    text.chars().take(width - 2).chain("..".chars()).collect()
}

/// A time with its unit in at most 7 characters.
fn human_ms(ms: f64) -> String {
    match ms {
        _ if ms < 0.0005 => "0".into(),
        _ if ms < 1.0 => format!("{:.0}us", ms * 1e3),
        _ if ms < 100.0 => format!("{ms:.1}ms"),
        _ if ms < 1_000.0 => format!("{ms:.0}ms"),
        _ if ms < 100_000.0 => format!("{:.1}s", ms / 1e3),
        _ if ms < 10_000_000.0 => format!("{:.0}s", ms / 1e3),
        _ if ms < 360_000_000.0 => format!("{:.1}h", ms / 3_600_000.0),
        _ => format!("{:.0}d", ms / 86_400_000.0),
    }
}

/// Breaks `text` at spaces into lines of at most `width` characters.
fn wrap(text: &str, width: usize) -> String {
    let mut out = String::new();
    let mut column = 0;
    for word in text.split(' ') {
        let length = word.chars().count();
        if column > 0 && column + 1 + length > width {
            out.push('\n');
            column = 0;
        } else if column > 0 {
            out.push(' ');
            column += 1;
        }
        out.push_str(word);
        column += length;
    }
    out
}

#[cfg(test)]
mod tests {
    use super::{COLUMNS, human_ms, shorten, wrap};

    #[test]
    fn rows_fit_into_100_columns_and_cells_into_theirs() {
        assert!(COLUMNS.iter().map(|(_, width)| width).sum::<usize>() <= 100);
        for (ms, text) in [
            (0.0, "0"),
            (0.25, "250us"),
            (99.94, "99.9ms"),
            (999.0, "999ms"),
            (99_900.0, "99.9s"),
            (9_999_000.0, "9999s"),
            (36_000_000.0, "10.0h"),
        ] {
            assert_eq!(human_ms(ms), text);
        }
        assert!(human_ms(1.85e13).len() < 8, "the end of virtual time");
    }

    #[test]
    fn text_is_wrapped_and_names_are_shortened() {
        assert_eq!(wrap("one two three", 7), "one two\nthree");
        assert_eq!(wrap("unbreakable", 3), "unbreakable");
        assert_eq!(shorten("20 interactive", 15), "20 interactive");
        assert_eq!(shorten("20 interactive chat", 15), "20 interactiv..");
    }
}
