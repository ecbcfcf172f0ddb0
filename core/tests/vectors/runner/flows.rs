//! Answers about fairness among flows and the order within them: requests go through the band queues of the crate.

use std::collections::BTreeMap;

use bandgate_core::queue::{BandQueues, Front, NoCaps, VecLinks};
use bandgate_core::select::flow::{FlowPolicy, GlobalStrict};
use bandgate_core::select::request::{RequestPolicy, edf, slo_deadline};
use bandgate_core::types::NONE;
use bandgate_core::types::extend::RequestView;
use bandgate_core::types::policy::{Fairness, Order};
use bandgate_core::types::rank::Rank;
use serde_json::{Value, json};

use crate::input::{self, Result};

const MS: u64 = 1_000_000;

fn take(queues: &mut BandQueues, links: &VecLinks) -> Option<u32> {
    match queues.front(links, 0, &NoCaps, &mut 1) {
        Front::Ready(_) => queues.take_front(links, 0, &NoCaps),
        _ => None,
    }
}

/// Which flow each call picks, on one policy object; the lengths of the queues are given anew for each.
pub(crate) fn picked(input: &Value) -> Result<Value> {
    if input["policy"] != "round-robin" {
        return Err(format!("unknown policy {}", input["policy"]));
    }
    let calls = input::list(input, "calls");
    let names: BTreeMap<&str, u32> = calls
        .iter()
        .flat_map(|call| call.as_object().into_iter().flat_map(|call| call.keys()))
        .map(|name| (name.as_str(), 0))
        .collect();
    let names: Vec<&str> = names.into_keys().collect();
    let links = VecLinks::new(256);
    let order = Box::new(FlowPolicy::new(&Fairness::RoundRobin));
    let mut queues = BandQueues::new(1, 256, 16).with_order(0, order, false);
    let flows = u32::try_from(names.len()).map_err(|e| e.to_string())?;
    (0..flows).for_each(|flow| queues.add_flow(flow, NONE));
    let (mut waiting, mut next) = (vec![Vec::new(); names.len()], 0);
    let mut picked = Vec::new();
    for call in calls {
        // Those who come before those who go, so that the band is not empty in between.
        for (flow, name) in (0..).zip(&names) {
            let wanted = call[*name].as_u64().unwrap_or(0);
            while (waiting[flow as usize].len() as u64) < wanted {
                queues.enqueue_ranked(&links, next, 0, flow, Rank::default());
                waiting[flow as usize].push(next);
                next += 1;
            }
        }
        for (flow, name) in names.iter().enumerate() {
            while waiting[flow].len() as u64 > call[*name].as_u64().unwrap_or(0) {
                queues.remove(&links, waiting[flow].pop().unwrap_or(NONE));
            }
        }
        let idx = take(&mut queues, &links);
        let flow = waiting.iter().position(|flow| idx.is_some_and(|idx| flow.contains(&idx)));
        for flow in &mut waiting {
            flow.retain(|one| Some(*one) != idx);
        }
        picked.push(flow.map_or(Value::Null, |flow| json!(names[flow])));
    }
    Ok(Value::Array(picked))
}

fn view(policy: &str, item: &Value) -> Result<RequestView> {
    let at = input::unsigned(&item[if policy == "edf" { "enq" } else { "recv" }])? * MS;
    let promise = item["ttft"].as_str().and_then(slo_deadline::promise);
    let ttl_ns = item["ttl"].as_i64().unwrap_or(0) * 1_000_000;
    Ok(RequestView {
        submitted_ns: at,
        received_ns: at,
        deadline_ns: edf::deadline(at, ttl_ns),
        slo_ns: promise.map_or(u64::MAX, |it| u64::try_from(it.as_nanos()).unwrap_or(u64::MAX)),
        cost: 1,
        bytes: 0,
        tag: 0,
    })
}

/// The order in which the requests of one flow leave.
pub(crate) fn order(input: &Value) -> Result<Value> {
    let policy = input["policy"].as_str().ok_or("no policy")?;
    let mut order = RequestPolicy::new(&match policy {
        "fcfs" => Order::Fcfs,
        "edf" => Order::Edf,
        "slo-deadline" => Order::SloDeadline,
        other => return Err(format!("unknown policy {other}")),
    });
    let items = input::list(input, "items");
    let links = VecLinks::new(256);
    let lanes = Box::new(FlowPolicy::GlobalStrict(GlobalStrict));
    let mut queues = BandQueues::new(1, 256, 1).with_order(0, lanes, true);
    for (idx, item) in (0..).zip(items) {
        queues.enqueue_ranked(&links, idx, 0, NONE, order.rank(&view(policy, item)?));
    }
    let gone = core::iter::from_fn(|| take(&mut queues, &links));
    Ok(gone.map(|idx| items[idx as usize]["id"].clone()).collect())
}
