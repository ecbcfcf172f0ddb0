//! One pool: the word everybody races on, the two ways in, and the plain state behind the lock.

use alloc::boxed::Box;
use alloc::vec::Vec;
use std::sync::OnceLock;

use crossbeam_utils::CachePadded;

use crate::admit::caps::Caps;
use crate::admit::detect::Watch;
use crate::admit::gates::BandGates;
use crate::admit::word::{PoolGate, PoolWord};
use crate::queue::BandQueues;
use crate::queue::wheel::Wheel;
use crate::ring::command::CommandRing;
use crate::ring::urgent::{Chain, OwedNode, UrgentList, UrgentNode};
use crate::select::band::BandPolicy;
use crate::slab::FreeCache;
use crate::sync::{AtomicBool, AtomicU32, AtomicU64, Ordering, UnsafeCell, planted};
use crate::types::policy::BandSelection;
use crate::types::settings::{PoolMode, PoolSettings, nanoseconds};
use crate::types::{MAX_BANDS, patience};

use super::backends::Backends;
use super::bands::{BandRanks, BandTable};
use super::completions::{MAX_QUEUES, OpenQueue};
use super::limits::QueueLimits;
use super::orders::{BandOrders, NewOrders};
use super::outcomes::Outcomes;
use super::refusals::Refusals;
use super::reports::Reports;
use super::tracking::Tracking;

/// Flows whose urgent nodes stand in one allocation; few in the loom models.
const NODE_CHUNK: usize = if cfg!(loom) { 4 } else { 1024 };

/// A pool's node bits: what changed outside the lock, its value in an atomic of its own (last one wins).
#[derive(Clone, Copy, Debug)]
pub struct Marks;

impl Marks {
    /// A new size stands in `resize_to`.
    pub const RESIZE: u64 = 1;
    /// A new saturation stands in `gauge`.
    pub const GATE: u64 = 1 << 1;
    /// Admits end; who waits may still be granted.
    pub const DRAIN: u64 = 1 << 2;
    /// Admits end and who waits is evicted.
    pub const SHUTDOWN: u64 = 1 << 3;
    /// Another pool asks for units of the engine ceiling.
    pub const RECALL: u64 = 1 << 4;
    /// Units of the engine ceiling have arrived.
    pub const MAIL: u64 = 1 << 5;
}

/// Counters of one pool, plain memory under LOCK.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PoolStats {
    /// Commands applied from ring and urgent list.
    pub commands: u64,
    /// Granted to waiters.
    pub granted: u64,
    /// Granted under LOCK without waiting.
    pub direct: u64,
    /// Evicted, any reason.
    pub evicted: u64,
    /// Turns that spent their budget.
    pub budget_spent: u64,
    /// An observing pool: would have been queued.
    pub would_queue: u64,
    /// An observing pool: would have been rejected.
    pub would_reject: u64,
    /// Requests of exempt flows that were let through; in none of the numbers above.
    pub exempt: u64,
    /// Answers of the host's policies that were none: ceilings outside 0..=1, orders that are no permutation.
    pub faulty_answers: u64,
}

impl PoolStats {
    /// Nothing has happened.
    pub(crate) const NONE: Self = Self {
        commands: 0,
        granted: 0,
        direct: 0,
        evicted: 0,
        budget_spent: 0,
        would_queue: 0,
        would_reject: 0,
        exempt: 0,
        faulty_answers: 0,
    };
}

/// The plain state. Only the holder of LOCK touches it.
#[derive(Debug)]
#[allow(
    clippy::struct_excessive_bools,
    reason = "each is a fact of its own, read alone on the path"
)]
pub struct PoolState {
    /// Effective size: what `free` counts down from; `slots` or the leased units of the ceiling.
    pub size: u32,
    /// Slots as last asked for.
    pub slots: u32,
    /// Who waits.
    pub queues: BandQueues,
    /// Flow and tenant rows.
    pub caps: Caps,
    /// Order of the requests within the flows of each band.
    pub orders: BandOrders,
    /// Where each band stands.
    pub ranks: BandRanks,
    /// Order over the bands.
    pub policy: BandPolicy,
    /// Ceilings, as slot counts.
    pub gates: BandGates,
    /// Deadlines of those who wait.
    pub wheel: Wheel,
    /// Free slab indices at hand.
    pub free: FreeCache,
    /// Rest of an urgent chain that a budget cut off, if any.
    pub chain: Chain,
    /// The completion queue that is open in each slot.
    pub open_queues: [OpenQueue; MAX_QUEUES],
    /// The deadline last published.
    pub published_ns: u64,
    /// Admits have ended.
    pub closed: bool,
    /// Admits end before the command at this position of the ring; `u64::MAX`: no drain is under way.
    pub closing_at: u64,
    /// Shut down: who waits is evicted.
    pub shut: bool,
    /// The load a turn whose budget ran out had seen: whoever goes on with it decides in its mode.
    pub peak: u32,
    /// Whether anybody has waited in that turn.
    pub awaited: bool,
    /// Every call takes the general turn: something is on that the fast path and the quick turn do not know.
    pub is_general: bool,
    /// Decides and counts, but admits everything at once.
    pub observes: bool,
    /// Reading of the detector the holdback names; absent: nothing read.
    pub detector: Option<f64>,
    /// What the backends were reported to do; absent: nothing here reads them.
    pub reports: Option<Box<Reports>>,
    /// When gates may have moved by themselves and somebody waits for that; `u64::MAX`: never.
    pub look_again_ns: u64,
    /// Who runs, where that is kept.
    pub tracking: Tracking,
    /// Whether backends exist, and the budget of waiters for when none does.
    pub backends: Backends,
    /// How much may wait, and how much does.
    pub limits: QueueLimits,
    /// What became of those who did not run.
    pub outcomes: Outcomes,
    /// The last refusals, and what observing would have done.
    pub refusals: Refusals,
    /// Nothing of the above asks for more than a call's own command: no chain, not shut, no turn cut
    /// off while somebody waited, no engine ceiling. Settled by every general hold.
    pub is_calm: bool,
    /// Counters.
    pub stats: PoolStats,
}

/// One pool.
#[derive(Debug)]
pub struct PoolCore {
    /// The word and the reserves.
    pub gate: PoolGate,
    /// Commands of those who lost the race for LOCK.
    pub ring: CommandRing,
    urgent: CachePadded<UrgentList>,
    /// Marks of the pool, on the urgent list.
    marks: UrgentNode,
    /// Releases of flowless permits that found the ring full.
    owed: OwedNode,
    /// The same, per flow.
    flow_owed: Box<[OnceLock<Box<[OwedNode]>>]>,
    resize_to: AtomicU32,
    gauge_bits: AtomicU64,
    queued: AtomicBool,
    next_deadline_ns: AtomicU64,
    /// What requests of each band may wait, by index.
    patience: [AtomicU64; MAX_BANDS],
    index: u32,
    engine_index: usize,
    max_cost: u32,
    table: BandTable,
    most_bands: usize,
    max_waiting: u32,
    state: UnsafeCell<PoolState>,
}

// SAFETY: `state` is only touched by the holder of LOCK in `gate`; everything else is atomic or fixed.
unsafe impl Send for PoolCore {}
// SAFETY: as above.
unsafe impl Sync for PoolCore {}

/// Whether the settings ask of every admit what only the general turn does.
fn is_slow(settings: &PoolSettings, gates: &BandGates) -> bool {
    settings.is_tracked()
        || settings.no_backend_ttl.is_some()
        || settings.mode == PoolMode::Observe
        || matches!(settings.selection, BandSelection::Custom(_))
        || gates.is_dynamic()
}

/// The gates of a new pool, and what its backends report if it follows them.
fn gates(settings: &PoolSettings, bands: &[i32]) -> (BandGates, Option<Box<Reports>>) {
    let gates = BandGates::new(&settings.holdback, &settings.selection, bands, settings.slots);
    match Watch::new(settings).map(Reports::new) {
        Some(reports) => (gates.expecting_counts(), Some(reports)),
        None => (gates, None),
    }
}

impl PoolCore {
    /// No saturation was set: running / capacity rules.
    const NO_GAUGE: u64 = u64::MAX;

    /// The pool at `index` of its shard and `engine_index` of its engine. Settings are validated.
    pub fn new(index: u32, engine_index: usize, settings: &PoolSettings, max_waiting: u32) -> Self {
        Self::with_units(index, engine_index, settings, max_waiting, settings.slots)
    }

    /// The same with `units` of the engine ceiling leased, at most its slots.
    pub fn with_units(
        index: u32,
        engine_index: usize,
        settings: &PoolSettings,
        max_waiting: u32,
        units: u32,
    ) -> Self {
        let mut bands: Vec<i32> = settings.bands.iter().map(|band| band.priority).collect();
        bands.sort_unstable_by(|a, b| b.cmp(a));
        let (gates, reports) = gates(settings, &bands);
        let most_bands = settings.most_bands();
        let gate = PoolGate::new(units);
        let is_slow = reports.is_some() || is_slow(settings, &gates);
        // Limits concern who waits: admits that need not are as fast as ever.
        let is_general = is_slow || settings.is_limited();
        for band in 0..bands.len() {
            let reserve = gates.reserve(band, units);
            gate.set_reserve(band, if is_slow { PoolGate::GATED } else { reserve });
        }
        let chunks = (settings.max_flows as usize).div_ceil(NODE_CHUNK);
        let table = BandTable::new(&bands);
        let limits = QueueLimits::new(settings, &table, most_bands, max_waiting);
        let mut queues = BandQueues::new(most_bands, max_waiting, settings.max_flows);
        let mut orders = BandOrders::new();
        NewOrders::new(settings, max_waiting).swap(&mut orders, &table, &mut queues);
        Self {
            gate,
            ring: CommandRing::new(settings.ring_capacity),
            urgent: CachePadded::new(UrgentList::new()),
            marks: UrgentNode::new(),
            owed: OwedNode::new(),
            flow_owed: (0..chunks).map(|_| OnceLock::new()).collect(),
            resize_to: AtomicU32::new(settings.slots),
            gauge_bits: AtomicU64::new(Self::NO_GAUGE),
            queued: AtomicBool::new(false),
            next_deadline_ns: AtomicU64::new(u64::MAX),
            patience: core::array::from_fn(|_| AtomicU64::new(u64::MAX)),
            index,
            engine_index,
            max_cost: settings.max_cost,
            state: UnsafeCell::new(PoolState {
                size: units,
                slots: settings.slots,
                queues,
                orders,
                caps: Caps::new(settings.max_flows),
                ranks: BandRanks::new(bands.len()),
                policy: BandPolicy::new(&settings.selection, &bands),
                gates,
                wheel: Wheel::new(0),
                free: FreeCache::default(),
                chain: Chain::EMPTY,
                open_queues: [OpenQueue::NONE; MAX_QUEUES],
                published_ns: u64::MAX,
                closed: false,
                closing_at: u64::MAX,
                shut: false,
                peak: 0,
                is_general,
                observes: settings.mode == PoolMode::Observe,
                detector: None,
                reports,
                look_again_ns: u64::MAX,
                tracking: Tracking::new(settings.is_tracked(), settings.max_hold_ns()),
                backends: Backends::new(settings),
                limits,
                outcomes: Outcomes::new(most_bands),
                refusals: Refusals::new(),
                awaited: false,
                is_calm: !is_general,
                stats: PoolStats::NONE,
            }),
            table,
            most_bands,
            max_waiting,
        }
    }

    /// Sets how many free slab indices the pool may keep for itself. Before the pool is shared.
    pub(crate) fn limit_free_cache(&mut self, limit: usize) {
        // SAFETY: `&mut self`: nobody else has the pool.
        unsafe { self.with_state(|st| st.free.set_limit(limit)) };
    }

    /// The pool's slots stand under an engine ceiling. Before the pool is shared.
    pub(crate) fn expect_ceiling(&mut self) {
        // SAFETY: as above.
        unsafe { self.with_state(|st| st.is_calm = false) };
    }

    /// What waits in the pool counts for the whole engine too. Before the pool is shared.
    pub(crate) fn expect_limits(&mut self) {
        // SAFETY: as above.
        unsafe {
            self.with_state(|st| {
                st.limits.on = true;
                st.is_general = true;
                st.is_calm = false;
            });
        }
    }

    /// Index in the shard.
    pub fn index(&self) -> u32 {
        self.index
    }

    /// Index in the engine.
    pub fn engine_index(&self) -> usize {
        self.engine_index
    }

    /// Which priority each band index means.
    pub fn table(&self) -> &BandTable {
        &self.table
    }

    /// Different priorities the pool has room for.
    pub fn most_bands(&self) -> usize {
        self.most_bands
    }

    /// Requests that may wait.
    pub fn max_waiting(&self) -> u32 {
        self.max_waiting
    }

    /// How long a request of the band may wait that says nothing itself: a [word](patience::standing).
    #[inline(always)]
    pub fn patience(&self, band: u8) -> u64 {
        // ORDERING: Relaxed; a number by itself, read once per request.
        self.patience[usize::from(band) % MAX_BANDS].load(Ordering::Relaxed)
    }

    /// Sets the times to live: those of the bands by priority, `default_ns` for the others, bands to come included.
    pub(crate) fn set_times_to_live(&self, default_ns: u64, settings: &PoolSettings) {
        for (at, cell) in self.patience.iter().enumerate() {
            let priority = self.table.get(at).map(|(priority, _)| priority);
            let band = settings.bands.iter().find(|band| Some(band.priority) == priority);
            let own = band.and_then(|band| band.ttl).map(nanoseconds);
            // ORDERING: Relaxed, as above.
            cell.store(patience::standing(own.unwrap_or(default_ns)), Ordering::Relaxed);
        }
    }

    /// Most cost a request may have.
    pub fn max_cost(&self) -> u32 {
        self.max_cost
    }

    /// The flag that keeps the pool on the scheduler ring at most once.
    pub fn queued(&self) -> &AtomicBool {
        &self.queued
    }

    /// The urgent list.
    pub(crate) fn urgent(&self) -> &UrgentList {
        &self.urgent
    }

    /// The pool's marks.
    pub(crate) fn marks(&self) -> &UrgentNode {
        &self.marks
    }

    /// Where releases of a flow (or of no flow) are owed when the ring is full.
    pub(crate) fn owed(&self, flow: u32) -> &OwedNode {
        let chunk = self.flow_owed.get(flow as usize / NODE_CHUNK).and_then(OnceLock::get);
        chunk.and_then(|nodes| nodes.get(flow as usize % NODE_CHUNK)).unwrap_or(&self.owed)
    }

    /// Allocates the urgent node of a flow. Interning only, before the flow is handed out.
    pub(crate) fn add_flow_node(&self, flow: u32) {
        if let Some(chunk) = self.flow_owed.get(flow as usize / NODE_CHUNK) {
            chunk.get_or_init(|| (0..NODE_CHUNK).map(|_| OwedNode::new()).collect());
        }
    }

    /// Stores the size a RESIZE mark announces.
    pub(crate) fn set_resize_to(&self, slots: u32) {
        // ORDERING: Release pairs with `resize_to`; the mark is posted after it.
        self.resize_to.store(slots, Ordering::Release);
    }

    /// The size last asked for.
    pub(crate) fn resize_to(&self) -> u32 {
        // ORDERING: Acquire pairs with `set_resize_to`; last one wins.
        self.resize_to.load(Ordering::Acquire)
    }

    /// Stores the saturation a GATE mark announces; `None`: back to running / capacity.
    pub(crate) fn set_gauge(&self, saturation: Option<f64>) {
        // ORDERING: Release pairs with `gauge`; the mark is posted after it.
        self.gauge_bits.store(saturation.map_or(Self::NO_GAUGE, f64::to_bits), Ordering::Release);
    }

    /// The saturation last set.
    pub(crate) fn gauge(&self) -> Option<f64> {
        // ORDERING: Acquire pairs with `set_gauge`; last one wins.
        let bits = self.gauge_bits.load(Ordering::Acquire);
        (bits != Self::NO_GAUGE).then(|| f64::from_bits(bits))
    }

    /// Publishes the earliest deadline. Holder of LOCK only.
    pub(crate) fn publish_deadline(&self, deadline_ns: u64) {
        // ORDERING: Relaxed; the sleeper reads it after its fence, which pairs with the one after unlock.
        self.next_deadline_ns.store(deadline_ns, Ordering::Relaxed);
    }

    /// The earliest deadline as last published.
    pub fn next_deadline_ns(&self) -> Option<u64> {
        // ORDERING: Relaxed; see `publish_deadline`.
        let deadline = self.next_deadline_ns.load(Ordering::Relaxed);
        // A dead pool decides nothing any more: its deadlines would keep a sleeper awake for ever.
        (deadline != u64::MAX && !self.gate.is_dead()).then_some(deadline)
    }

    /// Whether anybody waits, as far as the word tells.
    pub fn has_waiters(&self) -> bool {
        let word = self.gate.peek();
        word.waiters() != 0 || word.has(PoolWord::BLOCKED)
    }

    /// Whether a holder that looks now finds work: a stamped command or anything on the urgent list.
    ///
    /// The stamp and not `tail != head`: a pusher that sleeps between claim and stamp would keep the
    /// holder here.
    #[inline(always)]
    pub fn has_mail(&self) -> bool {
        self.ring.has_stamped() || (!planted!("u1-look") && !self.urgent.is_empty())
    }

    /// Whether the pool holds no command at all, a claimed cell that is not stamped included, and nothing
    /// urgent. Exact for the holder of LOCK; after an unlock and its fence a `true` still means that there is
    /// no mail, since who left a command claimed its cell before the fence of his own.
    #[inline(always)]
    pub(crate) fn is_mail_empty(&self) -> bool {
        self.ring.is_drained() && self.urgent.is_empty()
    }

    /// Runs `f` on the plain state.
    ///
    /// # Safety
    ///
    /// The caller holds LOCK.
    #[inline(always)]
    pub(crate) unsafe fn with_state<R>(&self, f: impl FnOnce(&mut PoolState) -> R) -> R {
        // SAFETY: LOCK makes the caller the only one with a reference to the state.
        self.state.with_mut(|state| f(unsafe { &mut *state }))
    }
}
