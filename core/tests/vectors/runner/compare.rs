//! When an answer equals what a vector expects.

use serde_json::Value;

/// Absolute tolerance of floats.
const TOLERANCE: f64 = 1e-6;

/// The first place where `got` differs from `expected`, with both values; `None` if nowhere.
///
/// Only the keys `expected` has count, at every depth; lists are in order; integers and fractions are exact.
pub(crate) fn difference(expected: &Value, got: &Value) -> Option<String> {
    match (expected, got) {
        (Value::Object(e), Value::Object(g)) => e.iter().find_map(|(key, value)| {
            let inner = difference(value, g.get(key).unwrap_or(&Value::Null))?;
            Some(format!(".{key}{inner}"))
        }),
        (Value::Array(e), Value::Array(g)) if e.len() == g.len() => {
            e.iter().zip(g).enumerate().find_map(|(i, (e, g))| {
                let inner = difference(e, g)?;
                Some(format!("[{i}]{inner}"))
            })
        }
        _ if equal(expected, got) => None,
        _ => Some(format!(" expected {expected} got {got}")),
    }
}

fn equal(expected: &Value, got: &Value) -> bool {
    match (expected, got) {
        (Value::Number(e), Value::Number(g)) => match (e.as_i64(), g.as_i64()) {
            (Some(e), Some(g)) => e == g,
            _ => e.as_f64().zip(g.as_f64()).is_some_and(|(e, g)| close(e, g)),
        },
        (Value::String(e), Value::String(g)) => {
            e == g || fraction(e).zip(fraction(g)).is_some_and(|(e, g)| e.0 * g.1 == g.0 * e.1)
        }
        _ => expected == got,
    }
}

#[allow(clippy::float_arithmetic, reason = "the tolerance of the vectors")]
fn close(a: f64, b: f64) -> bool {
    (a - b).abs() <= TOLERANCE
}

/// `n/d` or `n`, exact.
pub(crate) fn fraction(text: &str) -> Option<(u128, u128)> {
    let (numerator, denominator) = text.split_once('/').unwrap_or((text, "1"));
    let parsed = (numerator.trim().parse().ok()?, denominator.trim().parse().ok()?);
    (parsed.1 > 0).then_some(parsed)
}
