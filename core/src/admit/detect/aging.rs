//! One report over time: what the same samples read as they grow old without another.
//!
//! A sample comes with its age, and goes on ageing. So a report is read on the host's thread once for now and once for
//! each later time at which some sample becomes stale; under LOCK a pool only moves on to the step that its clock has
//! reached. Nothing there computes, and a clock turned by hand gives the same answers every time.

use alloc::boxed::Box;
use alloc::vec::Vec;

use super::{Detector, Stages};
use crate::types::extend::{BackendSample, Sampled, SaturationDetector};
use crate::types::saturation::SaturationSource;
use crate::types::settings::PoolSettings;

/// Most steps of a report after its first. Where more samples become stale at times of their own, neighbours do so
/// together, at the time of the first of them: nothing stale is ever taken for known.
pub const MAX_STEPS: usize = 32;

/// What a report reads from some time on.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Step {
    /// Nanoseconds of the engine's clock.
    pub from_ns: u64,
    /// What the gates follow.
    pub sampled: Sampled,
    /// What the holdback follows, where it names a detector.
    pub signal: Option<f64>,
}

/// What a pool wants to know of its backends.
#[derive(Debug)]
pub struct Watch {
    source: SaturationSource,
    signal: Option<SaturationSource>,
    own: Option<Detector>,
    pressing: Option<Detector>,
}

impl PartialEq for Watch {
    fn eq(&self, other: &Self) -> bool {
        self.source == other.source && self.signal == other.signal
    }
}

impl Watch {
    /// For a pool; `None`: nothing there reads backends.
    pub fn new(settings: &PoolSettings) -> Option<Self> {
        let (source, signal) = (settings.saturation.clone(), settings.signal.clone());
        let own = Detector::new(&source);
        let pressing = signal.as_ref().and_then(Detector::new);
        (own.is_some() || pressing.is_some()).then_some(Self { source, signal, own, pressing })
    }

    /// Whether the gates follow the readings, or only the holdback does.
    pub fn is_source(&self) -> bool {
        self.own.is_some()
    }

    /// Reads a report of `at_ns`: the steps, never none, and the first of them stage by stage. Calls each detector at
    /// most [`MAX_STEPS`] + 1 times, for each stage. Allocates.
    pub fn read(&self, samples: &[BackendSample], at_ns: u64) -> (Box<[Step]>, Stages) {
        let times = self.stale_times(samples, at_ns);
        let (first, stages) = self.step(samples, at_ns);
        let mut steps = Vec::from([first]);
        let mut aged = samples.to_vec();
        for together in times.chunks(times.len().div_ceil(MAX_STEPS).max(1)) {
            let (Some(&from_ns), Some(last)) = (together.first(), together.last()) else {
                continue;
            };
            let elapsed = last.saturating_sub(at_ns);
            for (aged, sample) in aged.iter_mut().zip(samples) {
                aged.age_ns = sample.age_ns.map(|age| age.saturating_add(elapsed));
            }
            steps.push(self.step(&aged, from_ns).0);
        }
        (steps.into_boxed_slice(), stages)
    }

    fn step(&self, samples: &[BackendSample], from_ns: u64) -> (Step, Stages) {
        let read = |detector: &Detector| Stages::read(detector, samples);
        let signal = self.pressing.as_ref().map(&read);
        let own = self.own.as_ref().map(read);
        let step = Step {
            from_ns,
            sampled: own.unwrap_or_default().effective,
            signal: signal.map(|stages| stages.effective.saturation),
        };
        (step, own.or(signal).unwrap_or_default())
    }

    /// When samples become stale that are not yet, in order, each time once.
    fn stale_times(&self, samples: &[BackendSample], at_ns: u64) -> Vec<u64> {
        let limits = [&self.own, &self.pressing].into_iter().flatten();
        let limits = limits.filter_map(SaturationDetector::stale_after);
        let mut times = Vec::new();
        for limit in limits {
            let limit = u64::try_from(limit.as_nanos()).unwrap_or(u64::MAX);
            let left = samples.iter().filter_map(|sample| limit.checked_sub(sample.age_ns?));
            // Strictly older is stale.
            times.extend(left.map(|left| at_ns.saturating_add(left).saturating_add(1)));
        }
        times.sort_unstable();
        times.dedup();
        times
    }
}

#[cfg(all(test, not(loom)))]
#[allow(clippy::unwrap_used, reason = "a test that cannot go on may panic")]
mod tests {
    use super::{MAX_STEPS, Watch};
    use crate::types::extend::BackendSample;
    use crate::types::saturation::{SaturationSource, StalenessPolicy, UtilizationParams};
    use crate::types::settings::PoolSettings;
    use alloc::vec::Vec;

    const LIMIT: u64 = 200_000_000;

    fn watch(staleness: StalenessPolicy) -> Watch {
        let params = UtilizationParams { staleness, ..UtilizationParams::default() };
        let saturation = SaturationSource::Utilization(params);
        Watch::new(&PoolSettings { saturation, ..PoolSettings::new("p", 1) }).unwrap()
    }

    fn aged(age_ns: u64) -> BackendSample {
        BackendSample { age_ns: Some(age_ns), ..BackendSample::default() }
    }

    #[test]
    fn a_step_for_each_time_at_which_a_sample_passes_its_age() {
        let samples = [aged(0), aged(LIMIT), aged(0), aged(LIMIT + 1), BackendSample::default()];
        let (steps, stages) = watch(StalenessPolicy::Saturated).read(&samples, 1_000);
        let seen: Vec<_> = steps.iter().map(|step| (step.from_ns, step.sampled.stale)).collect();
        assert_eq!(seen, [(1_000, 2), (1_001, 3), (1_001 + LIMIT, 5)]);
        assert_eq!(stages.effective, steps[0].sampled);
    }

    #[test]
    fn many_ages_become_stale_in_groups_and_never_later_than_they_are() {
        let samples: Vec<_> = (0..1_000).map(|i| aged(LIMIT - i)).collect();
        let (steps, _) = watch(StalenessPolicy::Ignore).read(&samples, 0);
        assert_eq!(steps.len(), MAX_STEPS + 1);
        for pair in steps.windows(2) {
            // Those that are younger than the limit at the end of the step before.
            let stale =
                samples.iter().filter(|it| it.age_ns.unwrap() + pair[1].from_ns - 1 > LIMIT);
            assert!(stale.count() <= pair[0].sampled.stale as usize);
        }
        assert_eq!(steps[MAX_STEPS].sampled.stale, 1_000);
    }

    #[test]
    fn without_an_age_there_is_one_step() {
        let saturation =
            SaturationSource::Concurrency(crate::types::saturation::ConcurrencyParams::default());
        let settings = PoolSettings { saturation, ..PoolSettings::new("p", 1) };
        assert_eq!(Watch::new(&settings).unwrap().read(&[aged(0); 3], 7).0.len(), 1);
        assert!(Watch::new(&PoolSettings::new("p", 1)).is_none());
    }
}
