//! Drives a band policy cycle by cycle. Keeps queue lengths; the policy and the gate are the crate's.

use std::collections::BTreeMap;

use bandgate_core::admit::ceiling;
use bandgate_core::admit::saturation::Thresholds;
use bandgate_core::select::band::BandPolicy;
use bandgate_core::types::first_bands;
use bandgate_core::types::policy::{BandSelection, Reading};
use serde_json::{Value, json};

use crate::input::{self, Result};

/// What one cycle showed.
#[derive(Clone, Default)]
pub(crate) struct Cycle {
    pub(crate) number: u64,
    pub(crate) priorities: Vec<i32>,
    pub(crate) eligible: u64,
    pub(crate) mode: &'static str,
    /// After the ranking, before the dispatch.
    pub(crate) before: Snapshot,
    pub(crate) selected: Option<i32>,
    /// After the dispatch.
    pub(crate) after: Snapshot,
}

/// The policy's state as reports show it.
#[derive(Clone, Default)]
pub(crate) struct Snapshot {
    pub(crate) credits: Value,
    pub(crate) carry: Value,
    pub(crate) vt: Vec<(u64, u64)>,
}

impl Snapshot {
    fn of(policy: &BandPolicy) -> Self {
        let (times, unit) = policy.virtual_times().unwrap_or_default();
        Self {
            credits: json!(policy.credits()),
            carry: json!(policy.carry()),
            vt: times.iter().map(|time| (*time, unit)).collect(),
        }
    }

    pub(crate) fn vt(&self) -> Value {
        self.vt.iter().map(|(n, d)| format!("{n}/{d}")).collect()
    }
}

/// A run under one schedule.
pub(crate) struct Trace {
    pub(crate) cycles: Vec<Cycle>,
    /// After one more ranking.
    pub(crate) next: Snapshot,
    /// Cycle of the first change of the band set.
    pub(crate) event_at: Option<u64>,
}

impl Trace {
    pub(crate) fn selected(&self) -> Value {
        self.cycles.iter().map(|c| json!(c.selected)).collect()
    }

    /// Dispatches per band from a cycle on; a band never served counts 0.
    pub(crate) fn counts(&self, from: u64) -> Value {
        let mut counts = BTreeMap::<String, u64>::new();
        for cycle in &self.cycles {
            for priority in &cycle.priorities {
                let served = cycle.number >= from && cycle.selected == Some(*priority);
                *counts.entry(priority.to_string()).or_default() += u64::from(served);
            }
        }
        json!(counts)
    }

    /// The cycle that first serves a band.
    pub(crate) fn first(&self, band: i32) -> Option<u64> {
        self.cycles.iter().find(|c| c.selected == Some(band)).map(|c| c.number)
    }

    /// Most dispatches of others before the first or between two of the lowest band.
    pub(crate) fn lowest_band_max_wait(&self) -> u64 {
        let (mut most, mut wait) = (0, 0);
        for cycle in &self.cycles {
            if cycle.selected.is_some() && cycle.selected == cycle.priorities.last().copied() {
                wait = 0;
            } else if cycle.selected.is_some() {
                wait += 1;
                most = most.max(wait);
            }
        }
        most
    }
}

struct Driver<'a> {
    input: &'a Value,
    policy: BandPolicy,
    thresholds: Option<Thresholds>,
    priorities: Vec<i32>,
    ceilings: BTreeMap<i32, f64>,
    /// Items waiting; -1 = always full.
    queues: BTreeMap<i32, i64>,
}

impl<'a> Driver<'a> {
    fn new(input: &'a Value, schedule: &str) -> Result<Self> {
        let priorities = input::priorities(input)?;
        let selection = input::selection(input, schedule)?;
        let thresholds = match &selection {
            BandSelection::Strict | BandSelection::Custom(_) => None,
            BandSelection::Wfq(params) => Some(Thresholds::of(params)),
        };
        let ceilings = input::list(input, "ceilings").iter().filter_map(Value::as_f64);
        Ok(Self {
            input,
            policy: BandPolicy::new(&selection, &priorities),
            thresholds,
            ceilings: priorities.iter().copied().zip(ceilings).collect(),
            priorities,
            queues: BTreeMap::new(),
        })
    }

    /// What happens at the start of a cycle: bands come and go, queues are set.
    fn arrive(&mut self, cycle: u64) -> Result<()> {
        for event in input::list(self.input, "events") {
            if event["at"].as_u64() != Some(cycle) {
                continue;
            }
            if let Ok(band) = input::integer(&event["removeBand"]) {
                self.priorities.retain(|p| *p != band);
                self.queues.remove(&band);
            } else {
                let band = input::integer(&event["addBand"])?;
                self.priorities.push(band);
                self.priorities.sort_unstable_by(|a, b| b.cmp(a));
                self.priorities.dedup();
            }
            self.policy.set_bands(&self.priorities);
        }
        for (band, settings) in input::by_priority(&self.input["backlog"])? {
            for setting in settings.as_array().into_iter().flatten() {
                if setting[0].as_u64() == Some(cycle) {
                    self.queues.insert(band, i64::from(input::integer(&setting[1])?));
                }
            }
            // A band that comes later brings the queue it would have.
            let added = input::list(self.input, "events").iter().any(|event| {
                event["at"].as_u64() == Some(cycle)
                    && event["addBand"].as_i64() == Some(band.into())
            });
            let mut latest = settings.as_array().into_iter().flatten();
            let latest = latest.rfind(|s| s[0].as_u64().is_some_and(|from| from <= cycle));
            if let (true, Some(setting)) = (added, latest) {
                self.queues.insert(band, i64::from(input::integer(&setting[1])?));
            }
        }
        Ok(())
    }

    fn saturation(&self, cycle: u64) -> f64 {
        let list = input::list(self.input, "saturation");
        let latest = list.iter().rfind(|s| s[0].as_u64().is_some_and(|from| from <= cycle));
        latest
            .and_then(|setting| setting[1].as_f64())
            .or_else(|| self.input["saturation"].as_f64())
            .unwrap_or(0.0)
    }

    fn eligible(&self, cycle: u64, saturation: f64) -> Result<u64> {
        let gates = input::by_priority(&self.input["gated"])?;
        let gated_by_list = |band: i32| {
            let ranges = gates.iter().filter(|(p, _)| *p == band);
            let mut ranges = ranges.flat_map(|(_, ranges)| ranges.as_array().into_iter().flatten());
            ranges.any(|range| {
                range[0].as_u64().is_some_and(|from| from <= cycle)
                    && range[1].as_u64().is_some_and(|to| cycle <= to)
            })
        };
        let ceilings: Vec<f64> = self
            .priorities
            .iter()
            .map(|p| match self.ceilings.get(p) {
                _ if gated_by_list(*p) => 0.0,
                Some(ceiling) => *ceiling,
                // No ceiling is given: nothing gates.
                None => f64::INFINITY,
            })
            .collect();
        Ok(ceiling::eligible(saturation, &ceilings))
    }

    /// Opens the decision of a cycle; the eligible bands.
    fn rank(&mut self, cycle: u64) -> Result<u64> {
        let saturation = self.saturation(cycle);
        let eligible = self.eligible(cycle, saturation)?;
        let reading = self.thresholds.map_or(Reading::default(), |t| t.reading(saturation));
        let period_ms = match &self.input["cyclePeriodMs"] {
            Value::Null => 0,
            value => input::unsigned(value)?,
        };
        self.policy.begin(reading, eligible, || (cycle - 1) * period_ms * 1_000_000);
        Ok(eligible)
    }

    fn cycle(&mut self, number: u64) -> Result<Cycle> {
        self.arrive(number)?;
        let eligible = self.rank(number)?;
        let waiting = |p: &i32| self.queues.get(p).is_some_and(|n| *n != 0);
        let waiters = self.priorities.iter().enumerate();
        let waiters: u64 = waiters.map(|(i, p)| u64::from(waiting(p)) << i).sum();
        let before = Snapshot::of(&self.policy);
        let mut selected = None;
        if let Some(band) = self.policy.best(waiters & eligible) {
            self.policy.record(eligible, band);
            let priority = self.priorities[band as usize];
            self.queues.entry(priority).and_modify(|n| *n -= i64::from(*n > 0));
            selected = Some(priority);
        }
        let open = eligible & first_bands(self.priorities.len()) != 0;
        Ok(Cycle {
            number,
            priorities: self.priorities.clone(),
            eligible,
            mode: if open { self.policy.mode().as_str() } else { "none" },
            before,
            selected,
            after: Snapshot::of(&self.policy),
        })
    }
}

/// Runs a sequence from the start under one schedule.
pub(crate) fn run(input: &Value, schedule: &str) -> Result<Trace> {
    let mut driver = Driver::new(input, schedule)?;
    let count = input["cycles"].as_u64().unwrap_or(1);
    let cycles = (1..=count).map(|number| driver.cycle(number)).collect::<Result<Vec<_>>>()?;
    driver.rank(count + 1)?;
    let event_at = input::list(input, "events").iter().filter_map(|e| e["at"].as_u64()).min();
    Ok(Trace { cycles, next: Snapshot::of(&driver.policy), event_at })
}
