//! A detector of your own: the share of backends that have anything waiting.
#![allow(
    clippy::float_arithmetic,
    reason = "a saturation is a float; no order is decided by it here"
)]

use bandgate_core::Engine;
use bandgate_core::types::extend::{BackendSample, Sampled, SaturationDetector};
use bandgate_core::types::saturation::SaturationSource;
use serde::Deserialize;

/// `parameters:` of the type, and the detector as well.
#[derive(Clone, Debug, Deserialize)]
struct Waiting {
    /// Requests a backend may have waiting without counting as full.
    spare: u32,
}

impl SaturationDetector for Waiting {
    fn read(&self, samples: &[BackendSample]) -> Sampled {
        let count = |samples: usize| f64::from(u32::try_from(samples).unwrap_or(u32::MAX));
        let full = samples.iter().filter(|sample| sample.waiting > self.spare).count();
        let all = count(samples.len().max(1));
        // At most one more backend fills up with each request dispatched after the sample.
        Sampled { saturation: count(full) / all, per_dispatch: 1.0 / all, ..Sampled::default() }
    }
}

const CONFIG: &str = "
pools:
  default:
    slots: 8
    saturation: {type: waiting, parameters: {spare: 2}}
";

fn main() -> Result<(), Box<dyn core::error::Error>> {
    let builder = Engine::builder().register_saturation_detector("waiting", Waiting::clone)?;
    let settings = builder.load(CONFIG, [], "example.yaml")?.settings;

    // What the engine does with it, for one report of four backends.
    let SaturationSource::Custom(custom) = &settings.pools[0].saturation else {
        return Err("the document names the detector".into());
    };
    let samples = [0, 1, 2, 3].map(|waiting| BackendSample { waiting, ..BackendSample::default() });
    let sampled = custom.make().read(&samples);
    assert!((sampled.saturation - 0.25).abs() < 1e-9);

    let _engine = builder.start(&settings)?;
    Ok(())
}
