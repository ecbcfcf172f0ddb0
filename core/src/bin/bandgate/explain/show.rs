//! The account as text.
#![forbid(unsafe_code)]

use core::fmt::{self, Write};

use super::account::{Account, Rule, Verdict};

/// `band 10 (batch)`.
pub(crate) fn band((priority, name): &(i32, Option<String>)) -> String {
    name.as_ref()
        .map_or_else(|| format!("band {priority}"), |name| format!("band {priority} ({name})"))
}

/// `20 (interactive), 10, 0`: what there is.
pub(crate) fn bands(all: &[(i32, Option<String>)]) -> String {
    let one = |(priority, name): &(i32, Option<String>)| {
        name.as_ref().map_or_else(|| priority.to_string(), |name| format!("{priority} ({name})"))
    };
    all.iter().map(one).collect::<Vec<_>>().join(", ")
}

/// The whole account.
pub(crate) fn text(account: &Account) -> String {
    let mut out = String::new();
    // Writing to a string cannot fail.
    let _ = write(&mut out, account);
    out
}

fn write(out: &mut String, account: &Account) -> fmt::Result {
    let request = &account.request;
    write!(out, "{}, pool {}: a request", account.config, account.pool)?;
    if let Some(priority) = request.band {
        write!(out, " of {}", band(&(priority, request.band_name.clone())))?;
    }
    if let (Some(tenant), Some(key)) = (&request.tenant, &request.key) {
        write!(out, ", tenant {tenant}, key {key}")?;
    }
    writeln!(out, ", cost {}, at saturation {}\n", request.cost, request.saturation)?;
    for (i, step) in account.steps.iter().enumerate() {
        let mark = if step.decides { "=>" } else { "  " };
        writeln!(out, "{mark} {:>2}. {:<11} {}", i + 1, step.rule.as_str(), step.says)?;
        if step.rule == Rule::Gate {
            gates(out, account, i)?;
        }
    }
    outcome(out, account)?;
    for remark in &account.remarks {
        writeln!(out, "note: {remark}")?;
    }
    Ok(())
}

fn gates(out: &mut String, account: &Account, step: usize) -> fmt::Result {
    writeln!(
        out,
        "{:>20} {:<20} {:>7} {:>6} {:>9} {:>9} {:>8}",
        "band", "name", "gate", "rank", "ceiling", "slots", "waiting"
    )?;
    for band in &account.steps[step].bands {
        let slots = band.ceiling_slots.map_or_else(|| "-".to_owned(), |n| n.to_string());
        writeln!(
            out,
            "{:>20} {:<20} {:>7} {:>6} {:>9.3} {slots:>9} {:>8}",
            band.priority,
            band.name.as_deref().unwrap_or("-"),
            if band.gated { "gated" } else { "open" },
            band.rank,
            band.ceiling,
            band.waiting
        )?;
    }
    Ok(())
}

fn outcome(out: &mut String, account: &Account) -> fmt::Result {
    let it = &account.outcome;
    write!(out, "\n{}", it.verdict.as_str())?;
    if let Some(reason) = it.reason {
        write!(out, ": {reason}")?;
    }
    writeln!(out, "\nby {}: {}", it.rule.as_str(), it.says)?;
    if it.verdict != Verdict::Waits || it.rule == Rule::Caps {
        return Ok(());
    }
    let Some(releases) = it.releases else {
        return writeln!(out, "its turn does not come while all stays as it is");
    };
    let before = it.before.iter().map(|b| format!("{} of band {}", b.dispatches, b.band));
    let before: Vec<String> = before.collect();
    let first = if before.is_empty() {
        "nobody goes first".to_owned()
    } else {
        before.join(", ") + " go first"
    };
    let ends = if releases == 1 { "1 request ends" } else { &format!("{releases} requests end") };
    writeln!(out, "{first}; its turn comes when {ends}, if nobody else arrives")
}
