//! The keys that say how a pool is operated: mode, who is tracked, how many bands, who is exempt.

use super::{Form, Key, Kind, choice, int};
use crate::types::MAX_BANDS;

const MODES: Kind = choice(&["enforce", "observe"]);

/// `engine.mode`.
pub(super) const ENGINE_MODE: Key = Key::new(
    "mode",
    MODES,
    "Mode of the pools that name none: `enforce` the decisions, or `observe`: count them and admit everything at once.",
)
.default("enforce")
.live();

/// `mode` of a pool.
pub(super) const MODE: Key =
    Key::new("mode", MODES, "Whether its decisions hold or are only counted.")
        .default("that of `engine.mode`")
        .live();

/// `holders` of a pool.
pub(super) const HOLDERS: Key = Key::new(
    "holders",
    Kind::Flag,
    "Keep track of who runs: each running request then takes a place of `engine.maxRequests`, and every call the pool's lock.",
)
.default("false")
.live();

/// `maxHold` of a pool.
pub(super) const MAX_HOLD: Key = Key::new(
    "maxHold",
    Kind::Duration { unlimited: true },
    "A permit out longer than this, above 0s, is taken back; implies `holders`.",
)
.unit("time")
.default("unlimited")
.live();

#[allow(clippy::cast_possible_wrap, reason = "64")]
const MOST_BANDS: Kind = int(1, MAX_BANDS as i64, Form::Plain);

/// `maxBands` of a pool.
pub(super) const MAX_BANDS_KEY: Key = Key::new(
    "maxBands",
    MOST_BANDS,
    "Different priorities the pool may have in its life, those it starts with included; each costs 8 bytes a flow.",
)
.unit("bands")
.default("as many as it starts with; with `unknownPriority: template` at least 16");
