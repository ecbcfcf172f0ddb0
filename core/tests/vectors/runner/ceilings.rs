//! Answers about ceilings: shapes, the sweep, the checks of a start.

use bandgate_core::admit::ceiling::{self, Ceilings};
use bandgate_core::types::policy::{Holdback, HoldbackDomain};
use serde_json::{Value, json};

use crate::input::{self, Result};

fn listed(input: &Value) -> Result<Vec<(i32, f64)>> {
    let ceilings = input::by_priority(&input["ceilings"])?.into_iter();
    ceilings
        .map(|(p, c)| Ok((p, c.as_f64().ok_or_else(|| format!("not a ceiling: {c}"))?)))
        .collect()
}

/// The effective ceilings of a shape, or of a list as it stands.
pub(crate) fn effective(input: &Value) -> Result<Value> {
    let mut out = Ceilings::new();
    let holdback = match input["shape"].as_str() {
        Some("linear") => Holdback::Linear {
            domain: match input["domain"].as_str() {
                None | Some("rank") => HoldbackDomain::Rank,
                Some("value") => HoldbackDomain::Value,
                Some(other) => return Err(format!("unknown domain {other}")),
            },
            min: input::number(input, "minCeiling").ok_or("minCeiling is missing")?,
            max: input::number(input, "maxCeiling").unwrap_or(1.0),
        },
        Some("static" | "explicit") => Holdback::Explicit {
            ceilings: listed(input)?,
            default: input::number(input, "defaultStaticCeiling"),
        },
        Some(other) => return Err(format!("unknown shape {other}")),
        None => {
            out.extend(input::list(input, "ceilings").iter().filter_map(Value::as_f64));
            ceiling::repair(&mut out);
            ceiling::sweep(&mut out);
            return Ok(json!(out.to_vec()));
        }
    };
    ceiling::ceilings(&holdback, &input::priorities(input)?, &mut out);
    Ok(json!(out.to_vec()))
}

/// The class of fault of explicit ceilings, or null.
pub(crate) fn error(input: &Value) -> Result<Value> {
    let verdict = ceiling::validate(&listed(input)?, input::number(input, "defaultStaticCeiling"));
    Ok(json!(verdict.err().map(ceiling::CeilingError::as_str)))
}
