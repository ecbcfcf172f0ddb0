//! `slo-deadline-ordering-policy`: the nearest promised first token first, then the earlier receipt.
#![forbid(unsafe_code)]

use core::time::Duration;

use crate::types::extend::RequestView;
use crate::types::rank::Rank;

/// The most milliseconds a promise may have: more do not fit in a signed 64-bit count of nanoseconds.
const MAX_MS: u64 = 9_223_372_036_854;

/// By the time the first token is due; who was promised nothing comes last.
pub const fn rank(request: &RequestView) -> Rank {
    Rank { key: request.received_ns.saturating_add(request.slo_ns), tie: request.received_ns }
}

/// The promise in a header `x-llm-d-slo-ttft-ms` (or `x-slo-ttft-ms`): whole milliseconds, blanks around them
/// allowed. `None`, nothing was promised: empty, negative, no whole number, or above 9,223,372,036,854.
pub fn promise(header: &str) -> Option<Duration> {
    let ms: i64 = header.trim().parse().ok()?;
    let ms = u64::try_from(ms).ok().filter(|ms| *ms <= MAX_MS)?;
    Some(Duration::from_millis(ms))
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn only_whole_milliseconds_in_range_are_a_promise() {
        let ms = |text| promise(text).map(|promised| promised.as_millis());
        assert_eq!(ms(" 100\t"), Some(100));
        assert_eq!(ms("0"), Some(0));
        assert_eq!(ms("9223372036854"), Some(u128::from(MAX_MS)));
        for nothing in ["", " ", "-5", "9223372036855", "1.5", "1e3", "ten", "1 0"] {
            assert_eq!(ms(nothing), None, "{nothing:?}");
        }
    }
}
