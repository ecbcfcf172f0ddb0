//! From settings to a running engine: every fault at once, then everything allocated.

use alloc::boxed::Box;
use alloc::collections::BTreeSet;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use alloc::{format, vec};
use core::fmt;

use super::{EngineCore, PoolMeta, Request};
use crate::clock::Clock;
use crate::config::current::Current;
use crate::config::flows::Flows;
use crate::config::live::Live;
use crate::notify::doorbell::Doorbell;
use crate::notify::fork;
use crate::notify::parker::{Choice, Parker};
use crate::shard::ceiling::Ceiling;
use crate::shard::completions::Queues;
use crate::shard::limits::Reserve;
use crate::shard::pool::PoolCore;
use crate::shard::{Decider, Shard, Sleeper};
use crate::sync::{Arc, AtomicBool, AtomicU64, Numbers};
use crate::types::MAX_BANDS;
use crate::types::policy::{Adaptive, BandSelection, Holdback, Signal};
use crate::types::saturation::SaturationSource;
use crate::types::settings::{DriverKind, PoolSettings, Settings};

/// Why an engine was not started; nothing was left behind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StartError {
    faults: Vec<String>,
}

impl StartError {
    /// One line per fault: `field: value: what is expected`.
    pub fn faults(&self) -> &[String] {
        &self.faults
    }

    pub(super) fn thread(error: &std::io::Error) -> Self {
        Self { faults: vec![format!("a thread of the engine could not be made: {error}")] }
    }
}

impl fmt::Display for StartError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.faults.join("; "))
    }
}

impl core::error::Error for StartError {}

/// Most requests that may wait in one shard: their indices are packed into 22 bits of the band heaps' keys.
const MAX_WAITING: u32 = 1 << 22;

/// Collects what is out of range.
struct Faults(Vec<String>);

impl Faults {
    fn range(&mut self, field: &str, value: u64, low: u64, high: u64) {
        if !(low..=high).contains(&value) {
            self.0.push(format!("{field}: {value}: must be {low} to {high}"));
        }
    }

    fn pool(&mut self, pool: &PoolSettings) {
        let at = |field: &str| format!("pools.{}.{field}", pool.name);
        self.range(&at("slots"), pool.slots.into(), 1, PoolSettings::MAX_SLOTS.into());
        self.range(&at("maxCost"), pool.max_cost.into(), 1, PoolSettings::MAX_COST.into());
        self.range(&at("maxFlows"), pool.max_flows.into(), 1, PoolSettings::MAX_FLOWS.into());
        self.range(&at("ringCapacity"), pool.ring_capacity.into(), 1, 1 << 16);
        if !pool.ring_capacity.is_power_of_two() {
            self.0.push(format!("{}: must be a power of two", at("ringCapacity")));
        }
        self.range(&at("bands"), pool.bands.len() as u64, 1, MAX_BANDS as u64);
        let mut seen = BTreeSet::new();
        for band in &pool.bands {
            if !seen.insert(band.priority) {
                self.0.push(format!("{}: priority {} stands twice", at("bands"), band.priority));
            }
        }
        for band in &pool.bands {
            if band.tenant_share.is_some_and(|share| !(0.0..=1.0).contains(&share)) {
                let field = at(&format!("bands.{}.tenantQueueShare", band.priority));
                self.0.push(format!("{field}: {:?}: must be 0 to 1", band.tenant_share));
            }
        }
        self.policies(pool);
        self.detectors(pool);
    }

    fn policies(&mut self, pool: &PoolSettings) {
        let at = |field: &str| format!("pools.{}.{field}", pool.name);
        if let BandSelection::Wfq(wfq) = &pool.selection {
            if !(0.0..1.0).contains(&wfq.activation) {
                let field = at("bandSelection.activationThreshold");
                self.0.push(format!("{field}: {}: must be 0 or more and below 1", wfq.activation));
            }
            if !(0.0..=wfq.activation).contains(&wfq.deactivation) {
                let field = at("bandSelection.deactivationThreshold");
                self.0.push(format!("{field}: {}: must be 0 to the activation", wfq.deactivation));
            }
        }
        let holdback = crate::admit::ceiling::faults(&pool.holdback);
        let place = |(field, fault)| format!("{}: {fault}", at(&format!("holdback.{field}")));
        self.0.extend(holdback.into_iter().map(place));
        let is_wfq = matches!(pool.selection, BandSelection::Wfq(_));
        if pool.holdback == Holdback::SoftReflective && is_wfq {
            self.0.push(format!("{}: {}", at("holdback"), Holdback::REFLECTIVE_BESIDE_WFQ));
        }
    }

    /// The detectors of a pool.
    fn detectors(&mut self, pool: &PoolSettings) {
        let at = |field: &str| format!("pools.{}.{field}", pool.name);
        let signal_at = at("holdback.adaptive.signal");
        if let Holdback::Adaptive(Adaptive { signal: Signal::Detector(name), .. }) = &pool.holdback
            && !pool.signal.as_ref().is_some_and(SaturationSource::is_detector)
        {
            let fix = "the pool's settings do not say what it reads: set `signal` to a detector";
            self.0.push(format!("{signal_at}: {name}: {fix}"));
        }
        let of_source = crate::admit::detect::faults(&pool.saturation).into_iter();
        let field = |field: &str| at(&format!("saturation.{field}"));
        self.0.extend(of_source.map(|(name, fault)| format!("{}: {fault}", field(name))));
        let of_signal = pool.signal.iter().flat_map(crate::admit::detect::faults);
        self.0.extend(of_signal.map(|(name, fault)| format!("{signal_at}.{name}: {fault}")));
    }

    fn names<'a>(&mut self, field: &str, names: impl Iterator<Item = &'a str>) {
        let mut seen = BTreeSet::new();
        for name in names {
            if name.is_empty() || !seen.insert(name) {
                self.0.push(format!("{field}: \"{name}\": names must be unique and not empty"));
            }
        }
    }
}

/// One line per fault of one pool.
pub(super) fn check_pool(pool: &PoolSettings) -> Result<(), Vec<String>> {
    let mut faults = Faults(Vec::new());
    faults.pool(pool);
    if faults.0.is_empty() { Ok(()) } else { Err(faults.0) }
}

pub(super) fn check(settings: &Settings) -> Result<(), StartError> {
    let mut faults = Faults(Vec::new());
    faults.range("engine.shards", settings.shards.into(), 1, 64);
    faults.range("engine.maxRequests", settings.max_requests.into(), 1, MAX_WAITING.into());
    if settings.ceiling == Some(0) {
        faults
            .0
            .push("engine.ceiling: 0: must be at least 1, or absent for no ceiling".to_string());
    }
    if settings.pools.is_empty() {
        faults.0.push("pools: empty: at least one is needed".to_string());
    }
    faults.names("pools", settings.pools.iter().map(|pool| pool.name.as_str()));
    faults.names("tenants", settings.tenants.iter().map(|tenant| tenant.name.as_str()));
    for pool in &settings.pools {
        faults.pool(pool);
    }
    if faults.0.is_empty() { Ok(()) } else { Err(StartError { faults: faults.0 }) }
}

/// A wait as the path counts it; absent: for ever.
pub(super) fn nanoseconds(wait: Option<core::time::Duration>) -> u64 {
    wait.map_or(u64::MAX, |wait| u64::try_from(wait.as_nanos()).unwrap_or(u64::MAX))
}

fn sleeper() -> Arc<Sleeper> {
    Arc::new(Sleeper::new(Doorbell::new(Parker::new(Choice::Best))))
}

/// The numbers of an engine's pools: no two engines of a process share any. A band, flow, ticket or queue
/// of another engine would else name somebody's entry here. They come again after 2^31 pools: the upper half marks requests with a deadline.
fn first_number(pools: usize) -> u32 {
    static NEXT: Numbers = Numbers::new();
    let count = u32::try_from(pools).unwrap_or(u32::MAX);
    let most = !Request::TIMED;
    loop {
        let first = NEXT.take(count) & most;
        // Not across the end, so that a pool's number less the first is its index.
        if most - first >= count.min(most) {
            return first;
        }
    }
}

/// Checks the settings and allocates the engine. Pools go to the shards in turn.
pub(super) fn core(settings: &Settings, clock: Clock) -> Result<EngineCore, StartError> {
    check(settings)?;
    let count = usize::from(settings.shards).min(settings.pools.len());
    let is_threads = settings.driver == DriverKind::Threads;
    // One sleeper per shard thread; the keeper and the host sleep for all shards at once.
    let sleepers: Box<[_]> = (0..if is_threads { count } else { 1 }).map(|_| sleeper()).collect();
    let queues = Arc::new(Queues::new());
    let slots: Vec<u32> = settings.pools.iter().map(|pool| pool.slots).collect();
    let split = settings.ceiling.map(|ceiling| Ceiling::split(ceiling, &slots));
    let (ceiling, units) = match split {
        Some((ceiling, units)) => (Some(Arc::new(ceiling)), units),
        None => (None, slots.into_boxed_slice()),
    };
    let mut members: Vec<Vec<PoolCore>> = (0..count).map(|_| Vec::new()).collect();
    let mut metas = Vec::new();
    let max_waiting = settings.max_requests;
    for (id, pool) in settings.pools.iter().enumerate() {
        let shard = id % count;
        let index = members[shard].len();
        let number = u32::try_from(index).unwrap_or(u32::MAX);
        let member = PoolCore::with_units(number, id, pool, max_waiting, units[id]);
        member.set_times_to_live(nanoseconds(settings.admission_timeout), pool);
        members[shard].push(member);
        let flows = Flows::new(settings, pool.max_flows);
        let live = Live::new(pool.clone());
        metas.push(PoolMeta { name: pool.name.clone(), shard, index, flows, live });
    }
    let reserve = settings.limits.is_any().then(|| Arc::new(Reserve::new(&settings.limits)));
    let decider = if is_threads { Decider::Thread } else { Decider::Caller };
    let shards = members.into_iter().enumerate().map(|(n, pools)| {
        let sleeper = Arc::clone(&sleepers[n % sleepers.len()]);
        let queues = Arc::clone(&queues);
        let pools = pools.into_boxed_slice();
        let shard = Shard::new(pools, max_waiting, sleeper, queues, clock.clone(), decider);
        shard.under(ceiling.clone()).within(reserve.clone())
    });
    let shards: Box<[Shard]> = shards.collect();
    Ok(EngineCore {
        shards,
        sleepers,
        first: first_number(metas.len()),
        pools: metas.into_boxed_slice(),
        queues,
        driver: settings.driver,
        admission_timeout_ns: AtomicU64::new(nanoseconds(settings.admission_timeout)),
        current: Current::new(settings.clone()),
        fork_generation: fork::register().unwrap_or(0),
        stop: AtomicBool::new(false),
        clock,
    })
}
