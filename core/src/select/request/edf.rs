//! `edf-ordering-policy`: the nearest deadline first, then the earlier submission.
#![forbid(unsafe_code)]

use crate::types::extend::RequestView;
use crate::types::rank::Rank;

/// By deadline; who has none comes last.
pub const fn rank(request: &RequestView) -> Rank {
    Rank { key: request.deadline_ns, tie: request.submitted_ns }
}

/// The deadline of a request submitted at `submitted_ns` that may wait `ttl_ns`: 0 and less mean for ever.
#[allow(clippy::cast_sign_loss, reason = "seen to be positive")]
pub const fn deadline(submitted_ns: u64, ttl_ns: i64) -> u64 {
    if ttl_ns <= 0 { u64::MAX } else { submitted_ns.saturating_add(ttl_ns as u64) }
}
