//! Whether a waiter is due: answered by the crate's budgets.

use bandgate_core::types::patience::{Budgets, FOREVER, Regime};
use serde_json::{Value, json};

use crate::input::{self, Result};

const MS: u64 = 1_000_000;

/// What becomes of the waiter at `nowMs`.
pub(crate) fn outcome(input: &Value) -> Result<Value> {
    let time = |key: &str| Ok::<u64, String>(input::unsigned(&input[key])? * MS);
    // Zero is "never" in the seeds' spelling.
    let budget = |key: &str| Ok::<u64, String>(if time(key)? == 0 { FOREVER } else { time(key)? });
    let is_empty =
        input["poolEmpty"].as_bool().ok_or_else(|| String::from("poolEmpty is no truth value"))?;
    let since_ns = if input["regimeSinceMs"].is_null() { 0 } else { time("regimeSinceMs")? };
    let budgets = Budgets {
        queued_ns: time("enqueueMs")?,
        to_live_ns: budget("effectiveTtlMs")?,
        without_backend_ns: budget("noEndpointTtlMs")?,
        limit_ns: FOREVER,
    };
    let is_due = budgets.due_ns(Regime { is_empty, since_ns }) <= time("nowMs")?;
    let evicted = if is_empty { "EvictedNoEndpoints" } else { "EvictedTTL" };
    Ok(if is_due { json!(evicted) } else { Value::Null })
}
