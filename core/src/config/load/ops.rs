//! How a pool is operated, out of the checked tree.

use core::time::Duration;

use crate::types::settings::{PoolMode, PoolSettings};

use super::fault::Faults;
use super::read::View;

/// The mode an object names.
pub(crate) fn mode(view: &View<'_>) -> Option<PoolMode> {
    match view.text("mode")?.as_str() {
        "observe" => Some(PoolMode::Observe),
        _ => Some(PoolMode::Enforce),
    }
}

/// Reads the keys of a pool whose bands are known.
pub(crate) fn of_pool(view: &View<'_>, pool: &mut PoolSettings, faults: &mut Faults) {
    pool.mode = mode(view).unwrap_or(pool.mode);
    pool.holders = view.flag("holders").unwrap_or(pool.holders);
    if let Some(hold) = view.duration("maxHold") {
        pool.max_hold = hold.limit();
    }
    if pool.max_hold == Some(Duration::ZERO) {
        let message = "0s would take every permit back at once: use a longer time, or `unlimited`";
        faults.add(&view.path_of("maxHold"), view.at_of("maxHold"), message);
    }
    let Some(most) = view.u32("maxBands") else { return };
    let has = pool.bands.len();
    if (most as usize) < has {
        let message = format!("{most} is below the {has} bands it starts with: use {has} to 64");
        faults.add(&view.path_of("maxBands"), view.at_of("maxBands"), message);
    }
    pool.max_bands = most;
}
