//! Azure LLM inference trace: `YYYY-MM-DD HH:MM:SS[.fffffffff]`, prompt tokens, generated tokens.
#![forbid(unsafe_code)]

use super::{
    TraceError, TraceRow,
    field::{Fields, piece, tokens},
};

pub(super) const HEADER: &str = "TIMESTAMP,ContextTokens,GeneratedTokens";

pub(super) fn row(line: u64, fields: &Fields<'_>) -> Result<TraceRow, TraceError> {
    let time = fields[0];
    let t_ns = timestamp(time).ok_or_else(|| {
        let expected =
            "TIMESTAMP as YYYY-MM-DD HH:MM:SS with at most 9 decimals, years 1970..=2261";
        TraceError::new(line, expected, time)
    })?;
    Ok(TraceRow {
        t_ns,
        band_priority: None,
        tenant: None,
        key: None,
        session: None,
        input_tokens: tokens(line, "ContextTokens", fields[1])?,
        output_tokens: tokens(line, "GeneratedTokens", fields[2])?,
    })
}

/// Nanoseconds since 1970, without leap seconds.
fn timestamp(text: &str) -> Option<u64> {
    let separators = [(4, b'-'), (7, b'-'), (10, b' '), (13, b':'), (16, b':')];
    if separators.iter().any(|&(at, byte)| text.as_bytes().get(at) != Some(&byte)) {
        return None;
    }
    let year = piece(text, 0..4, 2261).filter(|&y| y >= 1970)?;
    let month = piece(text, 5..7, 12).filter(|&m| m >= 1)?;
    let day = piece(text, 8..10, days_in(year, month)).filter(|&d| d >= 1)?;
    let hour = piece(text, 11..13, 23)?;
    let minute = piece(text, 14..16, 59)?;
    let second = piece(text, 17..19, 59)?;
    let days = days_before_year(year)
        + (1..month).map(|earlier| days_in(year, earlier)).sum::<u64>()
        + (day - 1);
    let seconds = ((days * 24 + hour) * 60 + minute) * 60 + second;
    Some(seconds * 1_000_000_000 + fraction_ns(text)?)
}

/// The decimals after the seconds, in nanoseconds; 0 if there are none.
fn fraction_ns(text: &str) -> Option<u64> {
    if text.len() == 19 {
        return Some(0);
    }
    let decimals = text.get(19..)?.strip_prefix('.')?;
    let scale = 10u64.checked_pow(9u32.checked_sub(u32::try_from(decimals.len()).ok()?)?)?;
    Some(piece(decimals, 0..decimals.len(), u64::MAX)? * scale)
}

fn is_leap(year: u64) -> bool {
    year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400))
}

fn days_in(year: u64, month: u64) -> u64 {
    match month {
        2 if is_leap(year) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// Days from 1970-01-01 to the first of `year`.
fn days_before_year(year: u64) -> u64 {
    let leaps_until = |y: u64| y / 4 - y / 100 + y / 400;
    (year - 1970) * 365 + leaps_until(year - 1) - leaps_until(1969)
}

#[cfg(test)]
mod tests {
    use super::timestamp;

    #[test]
    fn timestamps_count_days_leap_years_and_decimals() {
        assert_eq!(timestamp("1970-01-01 00:00:00"), Some(0));
        assert_eq!(timestamp("1970-01-01 00:00:01.0000001"), Some(1_000_000_100));
        assert_eq!(timestamp("2000-03-01 00:00:00"), Some(951_868_800_000_000_000));
        assert_eq!(timestamp("2023-11-16 18:17:03.9799600"), Some(1_700_158_623_979_960_000));
        assert_eq!(timestamp("2024-02-29 23:59:59"), Some(1_709_251_199_000_000_000));
    }

    #[test]
    fn impossible_dates_are_not_timestamps() {
        for text in [
            "2023-02-29 00:00:00",
            "2100-02-29 00:00:00",
            "2023-13-01 00:00:00",
            "2023-00-01 00:00:00",
            "2023-01-00 00:00:00",
            "2023-01-01 24:00:00",
            "2023-01-01 00:60:00",
            "2023-01-01 00:00:60",
            "2023-01-01T00:00:00",
            "2023-01-01 00:00:00.",
            "2023-01-01 00:00:00.1234567890",
            "2023-01-01 00:00:00.-5",
            "1969-12-31 23:59:59",
            "9999-12-31 23:59:59",
            "2023-01-01 00:00:0é",
            "2023-01-01",
            "",
        ] {
            assert_eq!(timestamp(text), None, "{text}");
        }
    }
}
