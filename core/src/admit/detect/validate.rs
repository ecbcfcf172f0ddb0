//! What a start refuses about a source of saturation that a host filled in itself.
#![forbid(unsafe_code)]

use alloc::{format, string::String, vec::Vec};

use crate::types::saturation::SaturationSource;

/// Everything that is wrong with a source, by field, in the words of the configuration.
pub fn faults(source: &SaturationSource) -> Vec<(&'static str, String)> {
    let mut faults = Vec::new();
    let mut must = |field, value: String, is_good: bool, expected: &str| {
        if !is_good {
            faults.push((field, format!("{value}: must be {expected}")));
        }
    };
    let (requests, headroom) = (1..=1_000_000, 0.0..=100.0);
    match source {
        SaturationSource::Slots | SaturationSource::Gauge | SaturationSource::Custom(_) => {}
        SaturationSource::Concurrency(it) => {
            let (n, tokens) = (it.max_requests, it.max_tokens);
            must("maxConcurrency", format!("{n}"), requests.contains(&n), "1 to 1000000");
            let is_good = (1..=1_000_000_000_000).contains(&tokens);
            must("maxTokenConcurrency", format!("{tokens}"), is_good, "1 to 1000000000000");
            let it = it.headroom;
            must("headroom", format!("{it}"), headroom.contains(&it), "0 to 100");
        }
        SaturationSource::Utilization(it) => {
            let (n, kv) = (it.queue_depth, it.kv);
            must("queueDepthThreshold", format!("{n}"), requests.contains(&n), "1 to 1000000");
            let is_good = kv > 0.0 && kv <= 1.0;
            must("kvCacheUtilThreshold", format!("{kv}"), is_good, "above 0 and at most 1");
            let stale = it.stale_after;
            must("metricsStalenessThreshold", format!("{stale:?}"), !stale.is_zero(), "above 0s");
            let it = it.headroom;
            must("headroom", format!("{it}"), headroom.contains(&it), "0 to 100");
        }
    }
    faults
}
