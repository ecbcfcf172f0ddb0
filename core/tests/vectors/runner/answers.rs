//! One answer for each key a vector may expect.

use bandgate_core::select::band::BandPolicy;
use bandgate_core::select::band::weights::Rescale;
use serde_json::{Map, Value, json};

use crate::input::{self, Result};
use crate::sequence::{self, Cycle, Snapshot, Trace};
use crate::{ceilings, flows, outcomes, ranks, saturation, waiting};

/// What the crate answers for `key`. `expected` tells only which form is asked for (a list, a map, some cycles).
pub(crate) fn answer(input: &Value, topic: &str, key: &str, expected: &Value) -> Result<Value> {
    match key {
        "outcome" if topic == "ttl" => waiting::outcome(input),
        _ if topic == "saturation" => saturation::answer(input, key),
        _ if topic == "outcome" => outcomes::answer(input, key),
        "strict" | "priority-first" | "interleaved" => {
            let trace = sequence::run(input, key)?;
            Ok(if topic == "comparison" {
                json!(trace.first(input::integer(&input["band"])?))
            } else {
                trace.counts(1)
            })
        }
        "weights" | "credits" | "round" | "normalised" | "normalised2dp" | "floors"
        | "leftOver" | "scaled2dp" => weights(input, topic, key),
        "ceilings" | "tickAfter" if topic == "soft-reflective" => ceilings::reflective(input, key),
        "ceilings" => ceilings::effective(input),
        "error" => ceilings::error(input),
        "picked" => flows::picked(input),
        "order" if topic == "ordering" => flows::order(input),
        "order" => ranks::one(input),
        "orders" => ranks::many(input),
        "lowestBandMaxWait" => agreed(&busy(input)?, key, expected),
        _ => agreed(input, key, expected),
    }
}

/// The answer of the trace; under several schedules they must agree.
fn agreed(input: &Value, key: &str, expected: &Value) -> Result<Value> {
    let mut answer = None;
    for schedule in input::schedules(input) {
        let got = from_trace(input, &sequence::run(input, schedule)?, key, expected)?;
        if answer.as_ref().is_some_and(|earlier| *earlier != got) {
            return Err("the schedules disagree".into());
        }
        answer = Some(got);
    }
    answer.ok_or_else(|| "no schedule".into())
}

fn from_trace(input: &Value, trace: &Trace, key: &str, expected: &Value) -> Result<Value> {
    let last = trace.cycles.last().ok_or("no cycle")?;
    let first = trace.cycles.first().ok_or("no cycle")?;
    Ok(match key {
        "selected" => trace.selected(),
        "skipGated" => json!(first.selected),
        "counts" => trace.counts(1),
        "countsAfterReturn" => trace.counts(input["countFromCycle"].as_u64().unwrap_or(1)),
        "mode" if expected.is_string() => json!(first.mode),
        "mode" => trace.cycles.iter().map(|c| c.mode).collect(),
        "eligible" => eligible(first),
        "rows" => rows(trace, expected),
        "creditsAfterReset" => trace.next.credits.clone(),
        "vtAfter" => trace.cycles.iter().map(|c| shaped(c, &c.after, first_of(expected))).collect(),
        "vt" => shaped(last, &last.after, expected),
        "lowestBandMaxWait" => json!(trace.lowest_band_max_wait()),
        "creditsBefore" | "creditsAfter" => {
            let at = trace.event_at.ok_or("no event")?;
            let of = |number: u64| trace.cycles.iter().find(|c| c.number == number);
            match (key, of(at), of(at.saturating_sub(1))) {
                ("creditsAfter", Some(cycle), _) => cycle.before.credits.clone(),
                ("creditsBefore", _, Some(cycle)) => cycle.after.credits.clone(),
                _ => return Err("the event is outside the cycles".into()),
            }
        }
        _ => return Err("unknown key".into()),
    })
}

fn eligible(cycle: &Cycle) -> Value {
    (0..cycle.priorities.len()).map(|i| json!(cycle.eligible >> i & 1 == 1)).collect()
}

/// The rows the vector names, by their cycle (in order where it names none).
fn rows(trace: &Trace, expected: &Value) -> Value {
    let row = |cycle: &Cycle| {
        json!({
            "cycle": cycle.number,
            "credits": cycle.before.credits,
            "carry": cycle.before.carry,
            "vt": cycle.before.vt(),
            "vt2dp": cycle.before.vt.iter().map(|(n, d)| hundredths(*n, *d)).collect::<Value>(),
            "mode": cycle.mode,
            "eligible": eligible(cycle),
            "selected": cycle.selected,
        })
    };
    let named = expected.as_array().into_iter().flatten().enumerate();
    named
        .map(|(i, row_expected)| {
            let number = row_expected["cycle"].as_u64().unwrap_or(i as u64 + 1);
            trace.cycles.iter().find(|c| c.number == number).map_or(Value::Null, row)
        })
        .collect()
}

fn first_of(list: &Value) -> &Value {
    list.get(0).unwrap_or(&Value::Null)
}

/// Virtual times as a list, or as a map by priority where the vector has one.
fn shaped(cycle: &Cycle, snapshot: &Snapshot, like: &Value) -> Value {
    let Value::Array(times) = snapshot.vt() else { return Value::Null };
    if !like.is_object() {
        return Value::Array(times);
    }
    let keyed = cycle.priorities.iter().zip(times).map(|(p, vt)| (p.to_string(), vt));
    Value::Object(keyed.collect::<Map<_, _>>())
}

/// A fraction to two places, half up.
#[allow(clippy::float_arithmetic, clippy::cast_precision_loss, reason = "a report to two places")]
fn hundredths(numerator: u64, denominator: u64) -> Value {
    let (n, d) = (u128::from(numerator), u128::from(denominator).max(1));
    json!(((n * 200 + d) / (2 * d)) as f64 / 100.0)
}

/// Weights, quotas and the steps between them.
fn weights(input: &Value, topic: &str, key: &str) -> Result<Value> {
    let given = input::weights(input)?;
    let steps = Rescale::new(&given, input::window(input)?);
    if topic == "rescale" && !given.is_empty() {
        let places = (0..given.len()).map(|i| hundredths(steps.scaled_hundredths(i), 100));
        let answer = match key {
            "credits" => json!(steps.quota()),
            "round" => json!(steps.round()),
            "floors" => json!(steps.floors()),
            "leftOver" => json!(steps.left_over()),
            "scaled2dp" => places.collect(),
            _ => json!(given),
        };
        return Ok(answer);
    }
    let policy =
        BandPolicy::new(&input::selection(input, "priority-first")?, &input::priorities(input)?);
    let all = policy.weights();
    let sum: u64 = all.iter().sum();
    Ok(match key {
        "weights" => json!(all),
        "credits" => json!(policy.quota()),
        "round" => json!(policy.round()),
        "normalised" => all.iter().map(|w| format!("{w}/{sum}")).collect(),
        "normalised2dp" => all.iter().map(|w| hundredths(*w, sum)).collect(),
        _ => return Err("no weights to rescale".into()),
    })
}

/// The row with what it leaves out: every band always full, three rounds.
fn busy(input: &Value) -> Result<Value> {
    let mut input = input.clone();
    if input["backlog"].is_null() {
        let full =
            input::priorities(&input)?.into_iter().map(|p| (p.to_string(), json!([[1, -1]])));
        input["backlog"] = Value::Object(full.collect());
    }
    if input["cycles"].is_null() {
        let round = weights(&input, "round", "round")?;
        input["cycles"] = json!(round.as_u64().unwrap_or(1) * 3);
    }
    Ok(input)
}
