//! Ceilings of your own: everything below a priority shares one ceiling.
use bandgate_core::types::extend::UsageLimit;
use bandgate_core::{Engine, Reason, Request};
use serde::Deserialize;

/// `parameters:` of the type, and the policy as well.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Split {
    at_priority: i32,
    below: f64,
}

impl UsageLimit for Split {
    fn ceilings(&mut self, _saturation: f64, priorities: &[i32], out: &mut [f64]) {
        // `out` comes as 1.0 for every band; NaN and values outside 0..=1 would count as 1.0.
        for (ceiling, priority) in out.iter_mut().zip(priorities) {
            if *priority < self.at_priority {
                *ceiling = self.below;
            }
        }
    }
}

const CONFIG: &str = "
pools:
  default:
    slots: 4
    bands: [{priority: 10}]
    holdback: {type: split, parameters: {atPriority: 10, below: 0.5}}
";

fn main() -> Result<(), Box<dyn core::error::Error>> {
    let builder = Engine::builder().register_usage_limit("split", Split::clone)?;
    let engine = builder.start(&builder.load(CONFIG, [], "example.yaml")?.settings)?;
    let pool = engine.pool("default")?;
    let (urgent, batch) = (Request::new(pool.band(10)?), Request::new(pool.band(0)?));

    let _two = [pool.try_admit(&batch)?, pool.try_admit(&batch)?];
    // Half of the slots run: the lower band is gated, the upper is not.
    assert_eq!(pool.try_admit(&batch).err(), Some(Reason::WouldQueue));
    let _third = pool.try_admit(&urgent)?;

    // A mistake in the document is told with its path.
    let wrong = builder.load(&CONFIG.replace("below", "bellow"), [], "example.yaml");
    let message = wrong.err().map(|error| error.to_string()).unwrap_or_default();
    assert!(message.contains("pools.default.holdback.parameters.bellow"));
    assert!(message.contains("did you mean below"));
    Ok(())
}
