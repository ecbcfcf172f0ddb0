//! One value against one kind: what it must look like, and the words when it does not.

use core::fmt::Write;
use core::time::Duration;

use super::keys::{Form, Interval, Kind};
use super::node::Value;

/// Longest text a name or reference may have, in bytes.
pub(crate) const MAX_TEXT: usize = 256;
/// Longest duration: a year of 365 days.
pub(crate) const MAX_DURATION: Duration = Duration::from_secs(8_760 * 3_600);

/// A value that fits its kind.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Scalar {
    Int(i64),
    Float(f64),
    Duration(Duration),
    Text(String),
    Flag(bool),
    Unlimited,
}

impl Interval {
    pub(crate) fn contains(&self, v: f64) -> bool {
        let above = if self.min_open { v > self.min } else { v >= self.min };
        let below = if self.max_open { v < self.max } else { v <= self.max };
        above && below
    }

    pub(crate) fn text(&self) -> String {
        let Self { min, max, .. } = self;
        match (self.min_open, self.max_open) {
            (false, false) => format!("{min} to {max}"),
            (false, true) => format!("at least {min} and below {max}"),
            (true, false) => format!("above {min} and at most {max}"),
            (true, true) => format!("above {min} and below {max}"),
        }
    }
}

impl Kind {
    /// What is expected, as in "expected an integer".
    pub(crate) fn expects(&self) -> String {
        match self {
            Self::Int { form: Form::Plain, .. } => "an integer".into(),
            Self::Int { form: Form::Quantity, .. } => "an integer like 8, 5k or 1Ki".into(),
            Self::Int { form: Form::Limit, .. } => "an integer or `unlimited`".into(),
            Self::Float(_) => "a number".into(),
            Self::Duration { unlimited: false } => "a duration like 250ms, 30s, 5m or 1h".into(),
            Self::Duration { unlimited: true } => {
                "a duration like 250ms, 30s, 5m or 1h, or `unlimited`".into()
            }
            Self::Text => "a text".into(),
            Self::Flag => "`true` or `false`".into(),
            Self::Choice { now, .. } => one_of(now),
            Self::Texts | Self::List(_) => "a list".into(),
            Self::Anything => "anything".into(),
            Self::Object(_) | Self::Named(_) | Self::Parameters => "a mapping".into(),
            Self::ByPriority(_) => "a mapping of priorities to numbers".into(),
            Self::Policy(_) => "a plugin name, a plugin type or a mapping".into(),
            Self::Reference(_) => "a plugin name or a plugin type".into(),
            Self::PluginType => "a plugin type".into(),
        }
    }

    /// The range, for messages and for the reference; empty when every value of the type is good.
    pub(crate) fn range(&self) -> String {
        match self {
            Self::Int { min, max, .. } if min == max => min.to_string(),
            Self::Int { min, max, .. } => format!("{min} to {max}"),
            Self::Float(interval) | Self::ByPriority(interval) => interval.text(),
            Self::Duration { .. } => "0s to 8760h".into(),
            Self::Choice { now, .. } => now.join(", "),
            Self::Flag => "true, false".into(),
            Self::Text => format!("1 to {MAX_TEXT} bytes"),
            _ => String::new(),
        }
    }

    /// Reads a scalar of this kind; the error is the message of the fault.
    pub(crate) fn read(&self, value: &Value) -> Result<Scalar, String> {
        let wrong = || Err(format!("expected {}, got {}", self.expects(), describe(value)));
        match (self, value) {
            (
                Self::Int { form: Form::Limit, .. } | Self::Duration { unlimited: true },
                Value::Str(s),
            ) if s == "unlimited" => Ok(Scalar::Unlimited),
            (Self::Int { min, max, .. }, Value::Int(v)) => {
                match i64::try_from(*v).ok().filter(|v| (min..=max).contains(&v)) {
                    Some(v) => Ok(Scalar::Int(v)),
                    None => Err(self.outside(&v.to_string())),
                }
            }
            (Self::Int { min, max, form: Form::Quantity }, Value::Str(s)) => match quantity(s) {
                Some(v) if (min..=max).contains(&&v) => Ok(Scalar::Int(v)),
                Some(_) => Err(self.outside(s)),
                None => wrong(),
            },
            (Self::Float(interval), Value::Int(_) | Value::Float(_)) => {
                number(interval, value).map(Scalar::Float)
            }
            (Self::Duration { .. }, Value::Int(v)) => Err(format!(
                "expected {}, got the integer {v}: add the unit, as in {v}s",
                self.expects()
            )),
            (Self::Duration { .. }, Value::Str(s)) => match duration(s) {
                Some(v) if v <= MAX_DURATION => Ok(Scalar::Duration(v)),
                Some(_) => Err(self.outside(s)),
                None => wrong(),
            },
            (Self::Flag, Value::Bool(v)) => Ok(Scalar::Flag(*v)),
            (Self::Choice { now, later }, Value::Str(s)) => choice(s, now, later),
            (Self::Text | Self::Policy(_) | Self::Reference(_) | Self::PluginType, _) => {
                text(value).map_or_else(wrong, |read| read.map(Scalar::Text))
            }
            _ => wrong(),
        }
    }

    fn outside(&self, value: &str) -> String {
        format!("{value} is out of range: use {}", self.range())
    }
}

/// A number of an interval, from an integer or a float.
pub(crate) fn number(interval: &Interval, value: &Value) -> Result<f64, String> {
    let v = match value {
        Value::Float(v) => *v,
        // The intervals are small; an integer too long for an i32 is outside each of them.
        Value::Int(v) => i32::try_from(*v).map_or(f64::MAX, f64::from),
        _ => return Err(format!("expected a number, got {}", describe(value))),
    };
    if !v.is_finite() {
        return Err(format!("{v} is not a finite number: use {}", interval.text()));
    }
    if interval.contains(v) {
        return Ok(v);
    }
    let shown = if let Value::Int(v) = value { v.to_string() } else { v.to_string() };
    Err(format!("{shown} is out of range: use {}", interval.text()))
}

/// A name; a number is one too, as its digits.
fn text(value: &Value) -> Option<Result<String, String>> {
    let s = match value {
        Value::Str(s) => s.clone(),
        Value::Int(v) => v.to_string(),
        _ => return None,
    };
    Some(check_name(&s).map(|()| s))
}

/// Refuses names that are empty, too long, or would break a line of output.
pub(crate) fn check_name(name: &str) -> Result<(), String> {
    if name.is_empty() || name.len() > MAX_TEXT {
        let n = name.len();
        return Err(format!("a name of {n} bytes is out of range: use 1 to {MAX_TEXT} bytes"));
    }
    if name.chars().any(char::is_control) {
        return Err("a name must not hold control characters".into());
    }
    Ok(())
}

fn choice(word: &str, now: &[&str], later: &[&str]) -> Result<Scalar, String> {
    if now.contains(&word) {
        return Ok(Scalar::Text(word.into()));
    }
    if later.contains(&word) {
        return Err(not_yet(word));
    }
    Err(format!("{} is not one of the choices: use {}", quoted(word), one_of(now)))
}

/// The message for what the design knows and this version does not have.
pub(crate) fn not_yet(what: &str) -> String {
    format!("`{what}` is known but not available in this version")
}

fn one_of(words: &[&str]) -> String {
    match words {
        [] => "nothing".into(),
        [one] => format!("`{one}`"),
        [most @ .., last] => format!("`{}` or `{last}`", most.join("`, `")),
    }
}

/// A value in words, short enough for a line.
pub(crate) fn describe(value: &Value) -> String {
    match value {
        Value::Null => "nothing".into(),
        Value::Bool(v) => format!("the boolean {v}"),
        Value::Int(v) => format!("the integer {v}"),
        Value::Float(v) => format!("the number {v:?}"),
        Value::Str(s) => format!("the text {}", quoted(s)),
        Value::List(_) => "a list".into(),
        Value::Map(_) => "a mapping".into(),
    }
}

/// A text in quotes, escaped and cut after 40 characters.
pub(crate) fn quoted(s: &str) -> String {
    let mut out = String::from("\"");
    for c in s.chars().take(40) {
        let _ = write!(out, "{}", c.escape_debug());
    }
    out.push_str(if s.chars().count() > 40 { "...\"" } else { "\"" });
    out
}

/// `5`, `5k`, `1Ki`: decimal and binary multiples.
fn quantity(s: &str) -> Option<i64> {
    let split = s.find(|c: char| !c.is_ascii_digit()).unwrap_or(s.len());
    let (digits, suffix) = s.split_at(split);
    let factor: i64 = match suffix {
        "" => 1,
        "k" => 1_000,
        "M" => 1_000_000,
        "G" => 1_000_000_000,
        "T" => 1_000_000_000_000,
        "Ki" => 1 << 10,
        "Mi" => 1 << 20,
        "Gi" => 1 << 30,
        "Ti" => 1 << 40,
        _ => return None,
    };
    // Too many digits saturate: the number is out of every range, and the text is what gets reported.
    if digits.is_empty() {
        return None;
    }
    Some(digits.parse::<i64>().unwrap_or(i64::MAX).saturating_mul(factor))
}

/// `90s`, `1h30m`: whole numbers with a unit, largest unit first, each unit once.
fn duration(s: &str) -> Option<Duration> {
    const UNITS: [(&str, u64); 6] = [
        ("h", 3_600_000_000_000),
        ("m", 60_000_000_000),
        ("s", 1_000_000_000),
        ("ms", 1_000_000),
        ("us", 1_000),
        ("ns", 1),
    ];
    let (mut rest, mut next, mut total) = (s, 0, Duration::ZERO);
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit())?;
        let (number, tail) = rest.split_at(digits);
        let end = tail.find(|c: char| c.is_ascii_digit()).unwrap_or(tail.len());
        let (unit, after) = tail.split_at(end);
        let index = UNITS.iter().position(|(name, _)| *name == unit)?;
        if number.is_empty() || index < next {
            return None;
        }
        let nanos = number.parse::<u64>().unwrap_or(u64::MAX).saturating_mul(UNITS[index].1);
        total = total.saturating_add(Duration::from_nanos(nanos));
        (rest, next) = (after, index + 1);
    }
    (next > 0).then_some(total)
}
