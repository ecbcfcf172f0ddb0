//! The JSON Schema of what this version accepts, out of the key table.

use serde_json::{Map, Value, json};

use super::keys::{Form, Interval, Key, Kind, POLICY, ROOT};
use super::plugins::{self, Role, Status};
use super::value::MAX_TEXT;

/// How a priority is spelt as a key.
const PRIORITY_PATTERN: &str = "^(0|-?[1-9][0-9]*)$";
const DURATION_PATTERN: &str =
    "^(?=.)([0-9]+h)?([0-9]+m)?([0-9]+s)?([0-9]+ms)?([0-9]+us)?([0-9]+ns)?$";

/// The JSON Schema (draft 2020-12) of a configuration document.
///
/// It covers keys, types and ranges; what spans several keys (references, sums, falling ceilings) only
/// [`Config::load`](super::Config::load) checks. Keys that this version knows but refuses are not in it.
pub fn schema() -> Value {
    let mut root = object(ROOT);
    root["$schema"] = "https://json-schema.org/draft/2020-12/schema".into();
    root["title"] = "bandgate configuration".into();
    root
}

fn object(keys: &'static [Key]) -> Value {
    let mut properties = Map::new();
    for key in keys.iter().filter(|key| !key.later) {
        let mut one = kind(&key.kind);
        one["description"] = key.about.into();
        if let Some(default) = default(key) {
            one["default"] = default;
        }
        properties.insert(key.name.into(), one);
    }
    let required: Vec<&str> = keys.iter().filter(|k| k.required).map(|k| k.name).collect();
    // An object that requires nothing may be left empty, as `flowControl:` often is.
    let types = if required.is_empty() { json!(["object", "null"]) } else { json!("object") };
    let mut out = json!({ "type": types, "properties": properties, "additionalProperties": false });
    if !required.is_empty() {
        out["required"] = json!(required);
    }
    if keys.iter().any(|key| matches!(key.kind, Kind::Parameters)) {
        let types = plugins::available().filter_map(|plugin| match plugin.status {
            Status::Now(keys) => Some((plugin.name, keys)),
            Status::Later => None,
        });
        let condition = |(name, keys): (&str, &'static [Key])| {
            let mut then = json!({ "properties": { "parameters": object(keys) } });
            if keys.iter().any(|key| key.required) {
                then["required"] = json!(["parameters"]);
            }
            let this_type =
                json!({ "properties": { "type": { "const": name } }, "required": ["type"] });
            json!({ "if": this_type, "then": then })
        };
        out["allOf"] = types.map(condition).collect();
    }
    out
}

fn default(key: &Key) -> Option<Value> {
    match key.kind {
        Kind::Int { .. } => key.default.parse::<i64>().ok().map(Into::into),
        Kind::Float(_) => key.default.parse::<f64>().ok().map(Into::into),
        Kind::Flag => key.default.parse::<bool>().ok().map(Into::into),
        Kind::Choice { .. } | Kind::Duration { .. } if !key.default.is_empty() => {
            Some(key.default.into())
        }
        _ => None,
    }
}

fn kind(kind: &Kind) -> Value {
    match kind {
        Kind::Int { min, max, form } => integer(*min, *max, *form),
        Kind::Float(interval) => number(interval),
        Kind::Duration { unlimited } => {
            let duration = json!({ "type": "string", "pattern": DURATION_PATTERN });
            if *unlimited {
                json!({ "anyOf": [duration, { "const": "unlimited" }] })
            } else {
                duration
            }
        }
        Kind::Text | Kind::Reference(_) => text(),
        Kind::Flag => json!({ "type": "boolean" }),
        Kind::Choice { now, .. } => json!({ "enum": now }),
        Kind::Texts => json!({ "type": ["array", "null"], "items": text() }),
        Kind::Anything => json!({}),
        Kind::Object(keys) => object(keys),
        Kind::List(keys) => json!({ "type": ["array", "null"], "items": object(keys) }),
        Kind::Named(keys) => json!({
            "type": ["object", "null"],
            "propertyNames": { "minLength": 1, "maxLength": MAX_TEXT },
            "additionalProperties": object(keys),
        }),
        Kind::ByPriority(interval) => json!({
            "type": ["object", "null"],
            "patternProperties": { PRIORITY_PATTERN: number(interval) },
            "additionalProperties": false,
        }),
        Kind::Policy(role) => json!({ "anyOf": [text(), policy(*role)] }),
        Kind::PluginType => {
            json!({ "enum": plugins::available().map(|t| t.name).collect::<Vec<_>>() })
        }
        Kind::Parameters => json!({ "type": ["object", "null"] }),
    }
}

/// `{type, parameters}` with the types of one role.
fn policy(role: Role) -> Value {
    let mut out = object(POLICY);
    let names: Vec<&str> =
        plugins::available().filter(|t| t.role == role).map(|t| t.name).collect();
    out["properties"]["type"]["enum"] = json!(names);
    out
}

/// A text; a number is read as its digits.
fn text() -> Value {
    json!({ "type": ["string", "integer"], "minLength": 1, "maxLength": MAX_TEXT })
}

fn integer(min: i64, max: i64, form: Form) -> Value {
    let integer = json!({ "type": "integer", "minimum": min, "maximum": max });
    match form {
        Form::Plain => integer,
        Form::Quantity => {
            let quantity = json!({ "type": "string", "pattern": "^[0-9]+(k|M|G|T|Ki|Mi|Gi|Ti)?$" });
            json!({ "anyOf": [integer, quantity] })
        }
        Form::Limit => json!({ "anyOf": [integer, { "const": "unlimited" }] }),
    }
}

fn number(interval: &Interval) -> Value {
    let Interval { min, max, min_open, max_open } = interval;
    let mut out = json!({ "type": "number" });
    out[if *min_open { "exclusiveMinimum" } else { "minimum" }] = json!(min);
    out[if *max_open { "exclusiveMaximum" } else { "maximum" }] = json!(max);
    out
}
