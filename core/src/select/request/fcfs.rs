//! `fcfs-ordering-policy`: arrival alone decides.
#![forbid(unsafe_code)]

use crate::types::extend::RequestView;
use crate::types::rank::Rank;

/// Every request has the same rank.
pub const fn rank(_request: &RequestView) -> Rank {
    Rank { key: 0, tie: 0 }
}
