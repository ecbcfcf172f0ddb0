//! Answers about whole orders: a state put in place, one ranking.

use bandgate_core::select::band::{BandPolicy, Order, Running};
use bandgate_core::types::policy::Reading;
use serde_json::{Value, json};

use crate::compare;
use crate::input::{self, Result};

/// One value for each band out of a map by priority; `default` where it names none.
fn per_band<T>(
    priorities: &[i32],
    map: &Value,
    default: impl Fn(usize) -> T,
    read: impl Fn(&Value) -> Result<T>,
) -> Result<Vec<T>> {
    let values = input::by_priority(map)?;
    let of = |(i, p): (usize, &i32)| match values.iter().find(|(band, _)| band == p) {
        Some((_, value)) => read(value),
        None => Ok(default(i)),
    };
    priorities.iter().enumerate().map(of).collect()
}

fn fraction(value: &Value) -> Result<(u64, u64)> {
    let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    compare::fraction(&text)
        .and_then(|(n, d)| Some((u64::try_from(n).ok()?, u64::try_from(d).ok()?)))
        .ok_or_else(|| format!("not a fraction: {value}"))
}

fn restore(policy: &mut BandPolicy, priorities: &[i32], state: &Value) -> Result<()> {
    let quota = policy.quota().map(<[u64]>::to_vec).unwrap_or_default();
    let Some(wfq) = policy.wfq_mut() else { return Ok(()) };
    match wfq.running_mut() {
        Running::Credits(credits) => {
            let full = |i: usize| quota.get(i).copied().unwrap_or(0);
            let credit = per_band(priorities, &state["credit"], full, input::unsigned)?;
            let carry = per_band(priorities, &state["carry"], |_| 0, input::unsigned)?;
            credits.restore(&credit, &carry);
        }
        Running::VirtualTime(vt) => {
            let times = per_band(priorities, &state["vt"], |_| (0, 1), fraction)?;
            let before = match state["eligibleBefore"].as_array() {
                None => u64::MAX,
                Some(bands) => {
                    let was = |p: &i32| bands.iter().any(|b| input::integer(b) == Ok(*p));
                    priorities.iter().enumerate().map(|(i, p)| u64::from(was(p)) << i).sum()
                }
            };
            vt.restore(&times, before);
        }
    }
    Ok(())
}

/// The order of one case.
fn order(input: &Value, case: &Value) -> Result<Value> {
    let priorities = input::priorities(input)?;
    let schedule = input["schedule"].as_str().unwrap_or("priority-first");
    let mut policy = BandPolicy::new(&input::selection(input, schedule)?, &priorities);
    if case["state"].is_object() {
        restore(&mut policy, &priorities, &case["state"])?;
    }
    let gates = input::list(case, "gates").iter().enumerate();
    let gated: u64 = gates.map(|(i, gate)| u64::from(*gate == true) << i).sum();
    let all = priorities.iter().enumerate().fold(0_u64, |mask, (i, _)| mask | 1 << i);
    policy.begin(Reading { activates: true, stays_active: true }, all & !gated, || 0);
    let mut order = Order::new();
    policy.rank(all & !gated, &mut order);
    Ok(json!(order.to_vec()))
}

/// `order` of the row itself.
pub(crate) fn one(input: &Value) -> Result<Value> {
    order(input, input)
}

/// `orders` of its cases.
pub(crate) fn many(input: &Value) -> Result<Value> {
    input::list(input, "cases").iter().map(|case| order(input, case)).collect()
}
