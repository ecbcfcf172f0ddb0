//! A whole engine, described: what `config/` makes out of YAML and what a Rust host may fill in itself.

use alloc::{string::String, vec::Vec};
use core::time::Duration;

use super::limits::Limits;
use super::policy::{BandSelection, Fairness, Holdback, Order};
use super::saturation::SaturationSource;
use super::template::{Templates, UnknownPriority};

/// Who runs the turns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DriverKind {
    /// The caller that takes the pool's lock decides; one keeper thread for timers and left work.
    #[default]
    Inline,
    /// The host calls `poll`; no thread of ours.
    Host,
    /// One pinned thread per shard decides.
    Threads,
}

/// An engine and all its pools.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// Who runs the turns.
    pub driver: DriverKind,
    /// Cores the pools are spread over, 1..=64.
    pub shards: u16,
    /// Most requests running in all pools together; absent: no such limit.
    pub ceiling: Option<u32>,
    /// Longest wait of a request that names no deadline of its own; absent: for ever.
    pub admission_timeout: Option<Duration>,
    /// Most requests waiting in one shard (the slab's size), 1..=4,194,304.
    pub max_requests: u32,
    /// Most that may wait in all pools together. With any of them each wait of the engine takes three atomics.
    pub limits: Limits,
    /// The pools, by unique name.
    pub pools: Vec<PoolSettings>,
    /// Known tenants; the caps of others are absent.
    pub tenants: Vec<TenantSettings>,
    /// Known keys.
    pub keys: Vec<KeySettings>,
    /// Known groups.
    pub groups: Vec<GroupSettings>,
}

/// One pool: the slots of one model.
#[derive(Clone, Debug, PartialEq)]
pub struct PoolSettings {
    /// Name, unique in the engine.
    pub name: String,
    /// Requests that may run at once, 1..=1,048,576.
    pub slots: u32,
    /// Provisioned bands, any order, unique priorities, at most 64.
    pub bands: Vec<BandSettings>,
    /// Order over the bands.
    pub selection: BandSelection,
    /// Ceilings of the bands.
    pub holdback: Holdback,
    /// Where its saturation comes from.
    pub saturation: SaturationSource,
    /// Most cost (tokens) one request may have, 1..=16,777,216.
    pub max_cost: u32,
    /// Flows this pool may intern, 1..=1,048,576.
    pub max_flows: u32,
    /// Commands the pool's ring holds, a power of two, 1..=65,536. Full: a submit answers `Busy`.
    pub ring_capacity: u32,
    /// A flow without requests for so long may be forgotten once the table is more than half full; absent: never.
    pub flow_idle: Option<Duration>,
    /// Most that may wait in all bands of the pool together; live. Its limits and those of its bands close the quick
    /// turn of the pool.
    pub limits: Limits,
    /// Different priorities the pool may have in its life, those of `bands` included, at most 64; fewer than `bands`
    /// has counts as that many, 0 in a pool that makes bands as 16. Each costs 8 bytes a flow.
    pub max_bands: u32,
    /// What becomes of priorities that are no bands; live.
    pub templates: Templates,
    /// Whether decisions hold or are only counted; live.
    pub mode: PoolMode,
    /// Keep track of who runs, for [`Pool::holders`](crate::Pool::holders): each running request then takes a place
    /// of the slab, and every call the pool's lock bit.
    pub holders: bool,
    /// How long a request may wait while [no backend exists](crate::Pool::set_backends), counted anew whenever backends
    /// go or come; `Duration::MAX`: for ever; absent: that time counts like any other. At least a millisecond.
    pub no_backend_ttl: Option<Duration>,
    /// A permit out longer than this is taken back; absent: never. Implies `holders`.
    pub max_hold: Option<Duration>,
}

/// What a pool does with its decisions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum PoolMode {
    /// They hold.
    #[default]
    Enforce,
    /// They are counted, and every request is admitted at once: to see what limits would do before they do it.
    Observe,
}

/// One priority level of a pool.
#[derive(Clone, Debug, PartialEq)]
pub struct BandSettings {
    /// Higher is more urgent.
    pub priority: i32,
    /// Name in reports.
    pub name: Option<String>,
    /// Which flow is next.
    pub fairness: Fairness,
    /// Which request of a flow is next.
    pub order: Order,
    /// Longest wait of its requests that name none; `Duration::MAX`: for ever; absent: the engine's
    /// [`admission_timeout`](Settings::admission_timeout). Live.
    pub ttl: Option<Duration>,
    /// Most that may wait in the band; live.
    pub limits: Limits,
    /// How much of each limit of the band one tenant may take, 0 to 1, of the shard's requests where the band names
    /// none; absent: no such limit. Live.
    pub tenant_share: Option<f64>,
}

impl BandSettings {
    /// An unnamed band of this priority: first come, first served over all flows.
    pub fn new(priority: i32) -> Self {
        Self {
            priority,
            name: None,
            fairness: Fairness::default(),
            order: Order::default(),
            ttl: None,
            limits: Limits::NONE,
            tenant_share: None,
        }
    }
}

/// A group of tenants.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupSettings {
    /// Name.
    pub name: String,
    /// Weight in fair share, 1..=1,000,000; no effect yet.
    pub weight: u32,
}

/// A tenant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TenantSettings {
    /// Name.
    pub name: String,
    /// Group it belongs to; absent: `default`.
    pub group: Option<String>,
    /// Weight in fair share, 1..=1,000,000; no effect yet.
    pub weight: u32,
    /// Most requests running at once in each pool; absent: no such limit; 0: refuse.
    pub max_in_flight: Option<u32>,
    /// Its requests, and those of all its keys, run at once: no queue, no cap, no slot. For health checks.
    pub exempt: bool,
}

/// A key of a tenant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeySettings {
    /// Name.
    pub name: String,
    /// Tenant it belongs to.
    pub tenant: String,
    /// Weight in fair share, 1..=1,000,000; no effect yet.
    pub weight: u32,
    /// Most requests running at once in each pool; absent: no such limit; 0: refuse.
    pub max_in_flight: Option<u32>,
    /// Its requests run at once: no queue, no cap, no slot. For health checks.
    pub exempt: bool,
}

impl Default for Settings {
    /// One pool `default` with one band of priority 0, inline driver, as an empty document gives.
    fn default() -> Self {
        Self {
            driver: DriverKind::Inline,
            shards: 1,
            ceiling: None,
            admission_timeout: Some(Duration::from_secs(60)),
            max_requests: 65_536,
            limits: Limits::NONE,
            pools: alloc::vec![PoolSettings::new("default", PoolSettings::DEFAULT_SLOTS)],
            tenants: Vec::new(),
            keys: Vec::new(),
            groups: Vec::new(),
        }
    }
}

impl PoolSettings {
    /// Slots of a pool that names none.
    pub const DEFAULT_SLOTS: u32 = 32;
    /// How long a flow of a pool that says nothing is idle before it may be forgotten.
    pub const FLOW_IDLE: Duration = Duration::from_secs(600);
    /// Commands the ring of a pool holds that names no capacity.
    pub const DEFAULT_RING: u32 = 1024;
    /// Most slots a pool may have.
    pub const MAX_SLOTS: u32 = 1 << 20;
    /// Most cost a request may name.
    pub const MAX_COST: u32 = 1 << 24;
    /// Most flows a pool may intern.
    pub const MAX_FLOWS: u32 = 1 << 20;

    /// A strict pool with one band of priority 0.
    pub fn new(name: &str, slots: u32) -> Self {
        Self {
            name: name.into(),
            slots,
            bands: alloc::vec![BandSettings::new(0)],
            selection: BandSelection::Strict,
            holdback: Holdback::None,
            saturation: SaturationSource::Slots,
            max_cost: Self::MAX_COST,
            max_flows: 1 << 18,
            ring_capacity: Self::DEFAULT_RING,
            flow_idle: Some(Self::FLOW_IDLE),
            limits: Limits::NONE,
            max_bands: 0,
            templates: Templates::NONE,
            mode: PoolMode::Enforce,
            holders: false,
            no_backend_ttl: None,
            max_hold: None,
        }
    }

    /// Different priorities there is room for.
    pub fn most_bands(&self) -> usize {
        let makes = self.max_bands == 0 && self.templates.unknown == UnknownPriority::Template;
        let most = if makes { Templates::DEFAULT_ROOM } else { self.max_bands as usize };
        most.max(self.bands.len()).min(super::MAX_BANDS)
    }

    /// Whether the pool keeps track of who runs.
    pub fn is_tracked(&self) -> bool {
        self.holders || self.max_hold.is_some() || self.holdback.looks_at_busy_bands()
    }

    /// Whether anything that waits in the pool is limited.
    pub fn is_limited(&self) -> bool {
        let of_band = |band: &BandSettings| band.limits.is_any() || band.tenant_share.is_some();
        self.limits.is_any() || self.bands.iter().any(of_band)
    }

    /// [`max_hold`](Self::max_hold) in nanoseconds; `u64::MAX`: never.
    pub fn max_hold_ns(&self) -> u64 {
        self.max_hold.map_or(u64::MAX, nanoseconds)
    }

    /// The same pool with these priorities provisioned (0 is always added).
    #[must_use]
    pub fn with_bands(mut self, priorities: &[i32]) -> Self {
        let mut all: Vec<i32> = priorities.to_vec();
        all.push(0);
        all.sort_unstable_by(|a, b| b.cmp(a));
        all.dedup();
        self.bands = all.into_iter().map(BandSettings::new).collect();
        self
    }
}

/// In nanoseconds; `u64::MAX` from 584 years on.
pub(crate) fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}
