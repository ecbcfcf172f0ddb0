//! A detector of your own: the share of backends that have anything waiting.
#![allow(
    clippy::float_arithmetic,
    reason = "a saturation is a float; no order is decided by it here"
)]

use bandgate_core::types::extend::{BackendSample, Sampled, SaturationDetector};
use bandgate_core::types::saturation::SaturationSource;
use bandgate_core::{Engine, Request};
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

    // And what a pool does: one backend more may fill up before the next report, then another, but not a fifth.
    let engine = builder.start(&settings)?;
    let pool = engine.pool("default")?;
    pool.report_backends(&samples)?;
    let request = Request::new(pool.band(0)?);
    let running: Vec<_> = (0..8).map_while(|_| pool.try_admit(&request).ok()).collect();
    assert_eq!(running.len(), 3);
    Ok(())
}
