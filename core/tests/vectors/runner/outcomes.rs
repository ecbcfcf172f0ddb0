//! What became of a request, as the crate's table tells it.

use bandgate_core::Reason;
use bandgate_core::types::outcome::{Outcome, Profile};
use serde_json::{Value, json};

use crate::input::Result;

/// Status and dropped reason of one row; none of ours for a request that ran.
pub(crate) fn answer(input: &Value, key: &str) -> Result<Value> {
    let (name, cause) = (&input["outcome"], input["cause"].as_str());
    if name == "Dispatched" {
        return Ok(Value::Null);
    }
    let outcome = match (name.as_str().ok_or("no outcome")?, cause) {
        ("RejectedCapacity", None) => Outcome::rejected(Reason::QueueFull),
        ("RejectedNoEndpoints", None) => Outcome::rejected(Reason::NoBackend),
        ("RejectedOther", Some("NotRunning")) => Outcome::rejected(Reason::ShuttingDown),
        ("RejectedOther", Some("TTLExpired")) => Outcome::rejected(Reason::Deadline),
        ("RejectedOther", Some("ContextCancelled")) => Outcome::rejected(Reason::Cancelled),
        ("RejectedOther", None) => Outcome::rejected(Reason::Poisoned),
        ("EvictedTTL", None) => Outcome::evicted(Reason::Deadline),
        ("EvictedNoEndpoints", None) => Outcome::evicted(Reason::NoBackend),
        ("EvictedContextCancelled", None) => Outcome::evicted(Reason::Cancelled),
        _ => return Err("unknown outcome".into()),
    };
    if outcome.llm_d_name() != name {
        return Err(format!("named {}", outcome.llm_d_name()));
    }
    let is_empty = input["poolEmpty"] == true;
    Ok(match key {
        "status" => json!(outcome.status(Profile::LlmD, is_empty)),
        "droppedReason" => json!(outcome.header(Profile::LlmD, is_empty).map(|(_, value)| value)),
        _ => return Err("unknown key".into()),
    })
}
