//! Fields of a line: split by commas, read as integers. No float is ever parsed.
#![forbid(unsafe_code)]

use arrayvec::ArrayVec;

use super::TraceError;

/// Most columns a format has.
const MAX_FIELDS: usize = 8;

/// The fields of one line.
pub(super) type Fields<'a> = ArrayVec<&'a str, MAX_FIELDS>;

/// Splits `text` into exactly the columns of `header`.
pub(super) fn split<'a>(line: u64, header: &str, text: &'a str) -> Result<Fields<'a>, TraceError> {
    let columns = header.split(',').count();
    let found = text.split(',').count();
    if found != columns {
        let expected = format!("{columns} fields ({header})");
        let got = TraceError::new(line, "", text).got;
        return Err(TraceError::plain(line, expected, format!("{found}: {got}")));
    }
    if text.contains('"') {
        return Err(TraceError::new(line, "plain fields without quotes", text));
    }
    Ok(text.split(',').take(MAX_FIELDS).collect())
}

/// Decimal digits only, so neither a sign nor `1e3` nor `NaN` passes.
fn digits(text: &str) -> Option<u64> {
    if text.is_empty() || !text.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    text.parse().ok()
}

/// A number of tokens.
pub(super) fn tokens(line: u64, column: &str, text: &str) -> Result<u32, TraceError> {
    digits(text).and_then(|n| u32::try_from(n).ok()).ok_or_else(|| {
        TraceError::new(line, format!("{column} as a whole number 0..=4294967295"), text)
    })
}

/// Milliseconds with up to six decimals, as nanoseconds.
pub(super) fn millis(line: u64, column: &str, text: &str) -> Result<u64, TraceError> {
    let parse = || {
        let (whole, fraction) = text.split_once('.').unwrap_or((text, "0"));
        if fraction.len() > 6 {
            return None;
        }
        let padding = 10u64.pow(6 - u32::try_from(fraction.len()).ok()?);
        let fraction_ns = digits(fraction)? * padding;
        digits(whole)?.checked_mul(1_000_000)?.checked_add(fraction_ns)
    };
    parse().ok_or_else(|| {
        let expected =
            format!("{column} in milliseconds, 0..=18446744073709, with at most 6 decimals");
        TraceError::new(line, expected, text)
    })
}

/// `part` of `text` as a number in `range`; for the pieces of a date.
pub(super) fn piece(text: &str, part: core::ops::Range<usize>, max: u64) -> Option<u64> {
    digits(text.get(part)?).filter(|&n| n <= max)
}
