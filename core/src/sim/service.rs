//! How long a request holds its slot, and how fast it arrives: integer functions of the trace.
//!
//! Service time = [`BASE_NS`] + input tokens x [`INPUT_NS`] + output tokens x [`OUTPUT_NS`]: reading the prompt is quick and
//! grows with it, generating is slow and sequential. The figures stand for a mid-size model on one accelerator; they
//! are a yardstick that is the same for every configuration, not a prediction of a machine.
//!
//! A speed-up divides arrival times. Service times stay, so a speed-up of 10 is ten times the load.
#![forbid(unsafe_code)]

use core::{fmt, str::FromStr};

/// Fixed part of the service time in nanoseconds.
pub const BASE_NS: u64 = 5_000_000;
/// Service time per input token in nanoseconds.
pub const INPUT_NS: u64 = 100_000;
/// Service time per output token in nanoseconds.
pub const OUTPUT_NS: u64 = 12_000_000;

/// The rule in one line, for reports.
pub const RULE: &str = "service time = 5 ms + 0.1 ms x input tokens + 12 ms x output tokens; \
                        the speed-up divides arrival times only";

/// Nanoseconds a request of so many tokens holds its slot; at most 2^56.
pub const fn service_ns(input_tokens: u32, output_tokens: u32) -> u64 {
    BASE_NS + input_tokens as u64 * INPUT_NS + output_tokens as u64 * OUTPUT_NS
}

/// A factor on the arrival rate, in thousandths, at least one of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Speedup {
    thousandths: u64,
}

impl Speedup {
    /// As recorded.
    pub const ONE: Self = Self { thousandths: 1000 };

    /// The factor `n`; 0 counts as 1.
    pub const fn whole(n: u32) -> Self {
        Self { thousandths: if n == 0 { 1000 } else { n as u64 * 1000 } }
    }

    /// The arrival time `t_ns` under this factor, rounded down; `None` beyond 64 bits.
    pub fn scale(self, t_ns: u64) -> Option<u64> {
        u64::try_from(u128::from(t_ns) * 1000 / u128::from(self.thousandths)).ok()
    }

    /// The factor as a float, for reports only.
    #[allow(
        clippy::float_arithmetic,
        clippy::cast_precision_loss,
        reason = "report; at most 10^9 thousandths, which a float holds exactly"
    )]
    pub fn factor(self) -> f64 {
        self.thousandths as f64 / 1000.0
    }
}

impl fmt::Display for Speedup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (whole, rest) = (self.thousandths / 1000, self.thousandths % 1000);
        if rest == 0 { write!(f, "{whole}") } else { write!(f, "{whole}.{rest:03}") }
    }
}

/// What a speed-up may be; the error of reading one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BadSpeedup;

impl fmt::Display for BadSpeedup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("expected a number 0.001..=1000000 with at most 3 decimals")
    }
}

impl core::error::Error for BadSpeedup {}

impl FromStr for Speedup {
    type Err = BadSpeedup;

    fn from_str(text: &str) -> Result<Self, BadSpeedup> {
        let (whole, fraction) = text.split_once('.').unwrap_or((text, "0"));
        let number = |digits: &str| -> Result<u64, BadSpeedup> {
            if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) {
                return Err(BadSpeedup);
            }
            digits.parse().map_err(|_| BadSpeedup)
        };
        let scale = [1000, 100, 10, 1].get(fraction.len()).ok_or(BadSpeedup)?;
        let whole = number(whole)?.checked_mul(1000).ok_or(BadSpeedup)?;
        let thousandths = whole.checked_add(number(fraction)? * scale).ok_or(BadSpeedup)?;
        if !(1..=1_000_000_000).contains(&thousandths) {
            return Err(BadSpeedup);
        }
        Ok(Self { thousandths })
    }
}

#[cfg(test)]
mod tests {
    use super::{BadSpeedup, Speedup, service_ns};

    #[test]
    fn service_time_is_the_stated_sum_and_never_overflows() {
        assert_eq!(service_ns(1, 0), 5_100_000);
        assert_eq!(service_ns(2048, 28), 5_000_000 + 204_800_000 + 336_000_000);
        assert!(service_ns(u32::MAX, u32::MAX) < 1 << 56);
    }

    #[test]
    fn a_speedup_divides_time_exactly() {
        let x = |text: &str| text.parse::<Speedup>();
        assert_eq!(x("1"), Ok(Speedup::ONE));
        assert_eq!(x("20").map(|s| s.scale(1_000)), Ok(Some(50)));
        assert_eq!(x("0.5").map(|s| s.scale(1_000)), Ok(Some(2_000)));
        assert_eq!(x("1.25").map(|s| s.to_string()), Ok("1.250".into()));
        assert_eq!(x("0.001").map(|s| s.scale(u64::MAX)), Ok(None));
        assert_eq!(Speedup::whole(40).to_string(), "40");
    }

    #[test]
    fn what_is_no_speedup_is_refused() {
        for text in
            ["", "0", "0.0", "-1", "NaN", "inf", "1e3", "1.2345", ".5", "1.", "1000001", "x"]
        {
            assert_eq!(text.parse::<Speedup>(), Err(BadSpeedup), "{text}");
        }
    }
}
