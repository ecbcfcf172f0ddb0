//! An order of requests of your own: the cheapest first, but none is passed for ever.
use bandgate_core::types::extend::{RequestOrder, RequestView};
use bandgate_core::{Engine, Request};
use serde::Deserialize;

/// A token is worth so many nanoseconds of waiting: `parameters:` of the type, checked as it is read.
#[derive(Clone, Debug, Deserialize)]
#[serde(try_from = "Raw")]
struct Cheapest {
    ns_per_token: u64,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Raw {
    ns_per_token: u64,
}

impl TryFrom<Raw> for Cheapest {
    type Error = &'static str;

    fn try_from(raw: Raw) -> Result<Self, Self::Error> {
        let ns_per_token = raw.ns_per_token;
        if ns_per_token == 0 {
            Err("nsPerToken: 0: use 1 or more")
        } else {
            Ok(Self { ns_per_token })
        }
    }
}

impl RequestOrder for Cheapest {
    fn key(&mut self, request: &RequestView) -> u64 {
        // Asked once, when the request is queued. The least key is next; equal ones go by arrival.
        let worth = self.ns_per_token.saturating_mul(request.cost.into());
        request.submitted_ns.saturating_add(worth)
    }
}

const CONFIG: &str = "
pools:
  default:
    slots: 1
    bands: [{priority: 0, order: {type: cheapest, parameters: {nsPerToken: 1000000000}}}]
";

fn main() -> Result<(), Box<dyn core::error::Error>> {
    let builder = Engine::builder().register_request_order("cheapest", Cheapest::clone)?;
    let engine = builder.start(&builder.load(CONFIG, [], "example.yaml")?.settings)?;
    let pool = engine.pool("default")?;
    let queue = engine.completion_queue(8)?;

    let running = pool.try_admit(&Request::new(pool.band(0)?))?;
    for (tag, cost) in [(0, 4_000), (1, 20), (2, 300)] {
        let _ticket = pool.submit(&Request::new(pool.band(0)?).cost(cost), &queue, tag)?;
    }
    drop(running);
    let mut order = Vec::new();
    while let Some(done) = queue.poll() {
        order.push(done.tag);
        drop(done.outcome);
    }
    assert_eq!(order, [1, 2, 0]);

    let wrong = builder.load(&CONFIG.replace("1000000000", "0"), [], "example.yaml");
    let message = wrong.err().map(|error| error.to_string()).unwrap_or_default();
    assert!(message.contains("parameters: nsPerToken: 0: use 1 or more"), "{message}");
    Ok(())
}
