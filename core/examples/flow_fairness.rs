//! A fairness among flows of your own: least tokens served first.
use bandgate_core::types::extend::{FlowFairness, FlowHead};
use bandgate_core::{Engine, Request};

/// Tokens each flow was given; the flow with the least is next.
#[derive(Debug)]
struct LeastServed {
    /// By index of the flow; made whole at start, since nothing may allocate in a decision.
    served: Box<[u64]>,
}

impl LeastServed {
    fn of(&mut self, head: &FlowHead) -> &mut u64 {
        // Requests without a flow (and flows past the table) share the last place.
        let at = (head.flow as usize).min(self.served.len() - 1);
        &mut self.served[at]
    }
}

impl FlowFairness for LeastServed {
    fn key(&mut self, head: &FlowHead) -> u64 {
        *self.of(head)
    }

    fn record_dispatch(&mut self, head: &FlowHead) {
        let served = self.of(head);
        *served = served.saturating_add(head.head_cost.into());
    }
}

const CONFIG: &str = "
pools:
  default:
    slots: 1
    fairness: least-served
";

fn main() -> Result<(), Box<dyn core::error::Error>> {
    // No parameters: `()`.
    let builder = Engine::builder().register_flow_fairness("least-served", |(): &()| {
        LeastServed { served: vec![0; 1025].into() }
    })?;
    let engine = builder.start(&builder.load(CONFIG, [], "example.yaml")?.settings)?;
    let pool = engine.pool("default")?;
    let queue = engine.completion_queue(8)?;
    let (big, small) = (pool.flow("", "big", "")?, pool.flow("", "small", "")?);

    let running = pool.try_admit(&Request::new(pool.band(0)?))?;
    let requests =
        [(0, big, 500), (1, big, 500), (2, small, 100), (3, small, 100), (4, small, 100)];
    for (tag, flow, cost) in requests {
        let _ticket =
            pool.submit(&Request::new(pool.band(0)?).flow(flow).cost(cost), &queue, tag)?;
    }
    drop(running);
    let mut order = Vec::new();
    while let Some(done) = queue.poll() {
        order.push(done.tag);
        drop(done.outcome);
    }
    assert_eq!(order, [0, 2, 3, 4, 1]); // 500 for one, then 300 for the other
    Ok(())
}
