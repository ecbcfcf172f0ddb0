//! Answers about ceilings: shapes, the sweep, the checks of a start.

use bandgate_core::admit::ceiling::reflective::SoftReflective;
use bandgate_core::admit::ceiling::{self, Ceilings};
use bandgate_core::types::extend::UsageLimit;
use bandgate_core::types::policy::{ActiveBands, Curve, Holdback, HoldbackDomain, Shape};
use serde_json::{Value, json};

use crate::input::{self, Result};

fn listed(input: &Value) -> Result<Vec<(i32, f64)>> {
    let ceilings = input::by_priority(&input["ceilings"])?.into_iter();
    ceilings
        .map(|(p, c)| Ok((p, c.as_f64().ok_or_else(|| format!("not a ceiling: {c}"))?)))
        .collect()
}

fn curve(input: &Value, shape: Shape) -> Result<Holdback> {
    let domain = match input["domain"].as_str() {
        None | Some("rank") => HoldbackDomain::Rank,
        Some("value") => HoldbackDomain::Value,
        Some(other) => return Err(format!("unknown domain {other}")),
    };
    let min = input::number(input, "minCeiling").ok_or("minCeiling is missing")?;
    let max = input::number(input, "maxCeiling").unwrap_or(1.0);
    let active = ActiveBands::Provisioned;
    Ok(Holdback::Curve(Curve { shape, domain, min, max, active }))
}

/// The answers of the soft-reflective policy to that many calls, and where its tick is then.
pub(crate) fn reflective(input: &Value, key: &str) -> Result<Value> {
    let saturation = input::number(input, "saturation").ok_or("saturation is missing")?;
    let bands = i32::try_from(input::unsigned(&input["bands"])?).map_err(|e| e.to_string())?;
    let priorities: Vec<i32> = (0..bands).rev().collect();
    let mut policy = SoftReflective::default();
    let mut call = || {
        let mut out = vec![1.0; priorities.len()];
        policy.ceilings(saturation, &priorities, &mut out);
        json!(out)
    };
    let answers: Value = (0..input::unsigned(&input["calls"])?).map(|_| call()).collect();
    Ok(if key == "tickAfter" { json!(policy.tick()) } else { answers })
}

/// The effective ceilings of a shape, or of a list as it stands.
pub(crate) fn effective(input: &Value) -> Result<Value> {
    let mut out = Ceilings::new();
    let holdback = match input["shape"].as_str() {
        Some("linear") => curve(input, Shape::Linear)?,
        Some("sigmoid") => curve(
            input,
            Shape::Sigmoid {
                steepness: input::number(input, "sigmoidSteepness").unwrap_or(8.0),
                midpoint: input::number(input, "sigmoidMidpoint").unwrap_or(0.5),
            },
        )?,
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
