//! Twins: the same calls on two shards, of which the second runs general turns wherever the first may run
//! quick ones. Whatever they answer and whatever they remember must be the same.
//!
//! The second stands under an engine ceiling that never binds: then a pool in which somebody waits takes no
//! quick turn, for it might have to ask for units.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::mem::take;

use proptest::prelude::*;
use proptest::sample::select;

use super::super::ceiling::Ceiling;
use super::super::completions::{QueueName, Queues};
use super::super::hold::{Answer, Submission};
use super::super::pool::PoolCore;
use super::super::{Decider, Shard, Sleeper, codes};
use crate::admit::caps::{TenantRow, Usage};
use crate::admit::word::{PoolWord, TryLock};
use crate::clock::{Clock, Now};
use crate::notify::doorbell::Doorbell;
use crate::notify::parker::{Choice, Parker};
use crate::slab::Phase;
use crate::sync::Arc;
use crate::types::NONE;
use crate::types::policy::{BandSelection, Distribution, Holdback, Ratio, Schedule, WfqParams};
use crate::types::settings::PoolSettings;

const ENTRIES: u32 = 24;
const PLACES: u32 = 16;

#[derive(Clone, Debug)]
struct Shape {
    slots: u32,
    ceilings: [f64; 3],
    selection: BandSelection,
    /// Of the tenant, then of each key.
    caps: [u32; 4],
}

#[derive(Clone, Copy, Debug)]
struct Ask {
    band: u8,
    flow: usize,
    cost: u32,
    timeout_us: u64,
    /// The outcome goes to the completion queue, else into the entry.
    by_queue: bool,
}

#[derive(Clone, Debug)]
enum Op {
    Submit(Ask),
    Try(Ask),
    Release(usize, u32),
    Cancel(usize),
    Abandon(usize),
    /// By so many slots. Shrinking under a ceiling is another rule: units go back as they become idle.
    Grow(u32),
    Gauge(Option<f64>),
    Advance(u64),
    Poll,
    /// A turn of a budget that leaves work.
    Short(u32),
    /// While somebody else has LOCK, and does not look afterwards.
    Behind(Vec<Op>),
    Hole,
    CloseQueue,
    Drain,
    ShutDown,
}

/// A permit, or a request that waits.
#[derive(Clone, Copy, Debug)]
struct Held {
    idx: u32,
    generation: u32,
    flow: u32,
    cost: u32,
    by_queue: bool,
}

struct Twin {
    shard: Shard,
    clock: Clock,
    queue: u32,
    flows: Vec<u32>,
    running: Vec<Held>,
    waiting: Vec<Held>,
    hole: Option<u64>,
    slots: u32,
}

impl Twin {
    fn new(shape: &Shape, ceiling: Option<u32>) -> Self {
        let mut settings = PoolSettings::new("p", shape.slots).with_bands(&[20, 10]);
        settings.ring_capacity = 8;
        settings.max_flows = 4;
        settings.selection = shape.selection.clone();
        let ceilings = [20, 10, 0].into_iter().zip(shape.ceilings).collect();
        settings.holdback = Holdback::Explicit { ceilings, default: None };
        let clock = Clock::manual();
        let sleeper = Arc::new(Sleeper::new(Doorbell::new(Parker::new(Choice::Portable))));
        let queues = Arc::new(Queues::new());
        let bell = || Doorbell::new(Parker::new(Choice::Portable));
        let queue = queues.claim(1, PLACES, bell).unwrap();
        let pools = core::iter::once(PoolCore::new(0, 0, &settings, ENTRIES)).collect();
        let shard = Shard::new(pools, ENTRIES, sleeper, queues, clock.clone(), Decider::Caller);
        let ceiling = ceiling.map(|units| Arc::new(Ceiling::split(units, &[shape.slots]).0));
        let shard = shard.under(ceiling);
        let pool = &shard.pools()[0];
        shard.open_queue(pool, queue);
        let mut flows = Vec::from([NONE]);
        let home = super::state(pool, |st| {
            let tenant = TenantRow { usage: Usage::up_to(shape.caps[0]), weight: 1, group: 0 };
            let (home, _) = st.caps.add_tenant(tenant, shape.caps[1], 1);
            st.queues.add_flow(home, home);
            home
        });
        flows.push(home);
        for cap in &shape.caps[2..] {
            flows.push(super::state(pool, |st| {
                let (flow, _) = st.caps.add_flow(home, *cap, 1);
                st.queues.add_flow(flow, home);
                flow
            }));
        }
        flows.iter().skip(1).for_each(|flow| pool.add_flow_node(*flow));
        let (running, waiting) = (Vec::new(), Vec::new());
        Self { shard, clock, queue, flows, running, waiting, hole: None, slots: shape.slots }
    }

    fn pool(&self) -> &PoolCore {
        &self.shard.pools()[0]
    }

    fn submission(&self, ask: &Ask) -> Submission {
        let timeout_ns = ask.timeout_us.saturating_mul(1_000);
        Submission {
            cost: ask.cost,
            queue: if ask.by_queue { self.queue } else { NONE },
            tag: 7,
            ..Submission::new(ask.band, self.flows[ask.flow], timeout_ns)
        }
    }

    fn keep(&mut self, ask: &Ask, answer: Answer) {
        let (flow, cost, by_queue) = (self.flows[ask.flow], ask.cost, ask.by_queue);
        match answer {
            Answer::Granted => {
                self.running.push(Held { idx: NONE, generation: 0, flow, cost, by_queue });
            }
            Answer::Queued { idx, generation } => {
                self.waiting.push(Held { idx, generation, flow, cost, by_queue });
            }
            _ => {}
        }
    }

    /// One call; its answer.
    fn step(&mut self, op: &Op) -> String {
        let pick = |list: &[Held], n: usize| (!list.is_empty()).then(|| n % list.len());
        match op {
            Op::Submit(ask) => {
                let answer = self.shard.submit(self.pool(), &self.submission(ask));
                self.keep(ask, answer);
                return format!("{answer:?}");
            }
            Op::Try(ask) => {
                let answer = self.shard.try_admit(self.pool(), &self.submission(ask));
                self.keep(ask, answer);
                return format!("{answer:?}");
            }
            Op::Release(n, actual) => {
                if let Some(at) = pick(&self.running, *n) {
                    let Held { flow, cost, .. } = self.running.remove(at);
                    self.shard.release(self.pool(), flow, cost, *actual);
                }
            }
            Op::Cancel(n) => {
                if let Some(at) = pick(&self.waiting, *n) {
                    let Held { idx, generation, .. } = self.waiting[at];
                    let answer = self.shard.cancel(self.pool(), idx, generation);
                    if answer == Answer::Cancelled && self.waiting[at].by_queue {
                        self.waiting.remove(at);
                    }
                    return format!("{answer:?}");
                }
            }
            Op::Abandon(n) => {
                let futures: Vec<Held> =
                    self.waiting.iter().copied().filter(|held| !held.by_queue).collect();
                if let Some(at) = pick(&futures, *n) {
                    let Held { idx, generation, .. } = futures[at];
                    self.waiting.retain(|held| held.idx != idx || held.by_queue);
                    self.shard.abandon(self.pool(), idx, generation);
                }
            }
            Op::Grow(more) => {
                self.slots += more;
                self.shard.resize(self.pool(), self.slots);
            }
            Op::Gauge(gauge) => self.shard.set_saturation(self.pool(), *gauge),
            Op::Advance(us) => self.clock.set(self.clock.now_ns() + us * 1_000),
            Op::Poll => {
                let _progress = self.shard.poll(self.clock.now_ns());
            }
            Op::Short(budget) => {
                let now = Now::at(&self.clock, self.clock.now_ns());
                let _progress = self.shard.try_turn(self.pool(), &now, *budget);
            }
            Op::Behind(ops) => return self.behind(ops),
            Op::Hole => match take(&mut self.hole) {
                Some(at) => self.pool().ring.fill_hole(at, codes::cancel(NONE, 0)),
                None => self.hole = self.pool().ring.leave_hole(),
            },
            Op::CloseQueue => {
                self.shard.close_queue(self.pool(), self.queue);
                self.waiting.retain(|held| !held.by_queue);
            }
            Op::Drain => self.shard.drain(self.pool()),
            Op::ShutDown => self.shard.shut_down(self.pool()),
        }
        String::new()
    }

    fn behind(&mut self, ops: &[Op]) -> String {
        let TryLock::Ours(word) = self.pool().gate.try_lock() else { panic!("nobody else runs") };
        let answers: Vec<String> = ops.iter().map(|op| self.step(op)).collect();
        self.pool().gate.unlock(word.without_lock());
        answers.concat()
    }

    /// Outcomes since the last look, in order of the tickets, those of the queue in theirs.
    fn outcomes(&mut self) -> Vec<String> {
        let mut log = Vec::new();
        for held in take(&mut self.waiting) {
            let state = self.shard.slab().state(held.idx).unwrap();
            let is_final = matches!(state.phase(), Phase::Granted | Phase::Evicted);
            if held.by_queue || !is_final {
                self.waiting.push(held);
                continue;
            }
            log.push(format!("{}:{state:?}", held.idx));
            self.shard.slab().give(held.idx);
            if state.phase() == Phase::Granted {
                self.running.push(held);
            }
        }
        let queue = self.shard.queues.get(QueueName::slot(self.queue)).unwrap();
        // SAFETY: one thread, so one consumer.
        while let Some(record) = unsafe { queue.ring(0).pop() } {
            log.push(format!("{record:?}"));
            let is_his = |held: &Held| held.by_queue && held.idx == record.ticket().0;
            let Some(at) = self.waiting.iter().position(is_his) else { continue };
            let held = self.waiting.remove(at);
            if record.evicted.is_none() {
                self.running.push(held);
            }
        }
        log
    }

    /// What it remembers. Not the state of the wheel, which a general turn advances and a quick one need not,
    /// and not the epoch, which units move.
    fn memory(&self) -> String {
        let word = self.pool().gate.peek();
        let flags = word.bits() & (PoolWord::CLOSED | PoolWord::BLOCKED);
        let word = (word.free(), word.waiters(), flags);
        let slot = QueueName::slot(self.queue);
        super::state(self.pool(), |st| {
            let caps: Vec<_> =
                self.flows.iter().filter_map(|f| st.caps.flow(*f).map(|row| row.usage)).collect();
            let tenant = st.caps.tenant(self.flows[1]).map(|row| row.usage);
            let waiting = (st.queues.waiting(), st.wheel.len(), st.chain.is_empty());
            let ends = (st.closed, st.closing_at, st.shut, st.peak, st.awaited);
            let (size, stats, places) = (st.size, st.stats, st.open_queues[slot].places);
            format!(
                "{word:?} {waiting:?} {ends:?} {size} {stats:?} {places} {caps:?} {tenant:?} {:?}",
                st.policy
            )
        })
    }
}

fn compare(shape: &Shape, script: &[Op]) {
    let mut twins = [Twin::new(shape, None), Twin::new(shape, Some(1_000))];
    for (at, op) in script.iter().enumerate() {
        let [quick, general] = twins.each_mut().map(|twin| (twin.step(op), twin.outcomes()));
        assert_eq!(quick, general, "step {at}: {op:?}");
        let [quick, general] = twins.each_ref().map(Twin::memory);
        assert_eq!(quick, general, "step {at}: {op:?}");
    }
}

fn ask() -> impl Strategy<Value = Ask> {
    let timeout =
        prop_oneof![3 => Just(u64::MAX), 3 => select(vec![0, 300, 900, 1_500, 4_000, 90_000])];
    let flow = prop_oneof![2 => Just(0), 3 => 1..4_usize];
    (0..3_u8, flow, 1..50_u32, timeout, any::<bool>()).prop_map(
        |(band, flow, cost, timeout_us, by_queue)| Ask { band, flow, cost, timeout_us, by_queue },
    )
}

fn call() -> impl Strategy<Value = Op> {
    prop_oneof![
        12 => ask().prop_map(Op::Submit),
        4 => ask().prop_map(Op::Try),
        12 => (any::<usize>(), 0..60_u32).prop_map(|(n, actual)| Op::Release(n, actual)),
        3 => any::<usize>().prop_map(Op::Cancel),
        2 => any::<usize>().prop_map(Op::Abandon),
        1 => (1..3_u32).prop_map(Op::Grow),
        1 => select(vec![None, Some(0.0), Some(0.4), Some(0.8), Some(1.0)]).prop_map(Op::Gauge),
    ]
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        40 => call(),
        5 => select(vec![1, 250, 700, 1_000, 2_600, 80_000]).prop_map(Op::Advance),
        2 => Just(Op::Poll),
        4 => (1..6_u32).prop_map(Op::Short),
        5 => proptest::collection::vec(call(), 1..12).prop_map(Op::Behind),
        1 => Just(Op::Hole),
        1 => select(vec![Op::CloseQueue, Op::Drain, Op::Drain, Op::ShutDown]),
    ]
}

fn shape() -> impl Strategy<Value = Shape> {
    let ratios = select(vec![[6_000, 3_000, 1_000], [0, 4_000, 6_000], [10_000, 0, 0]]);
    let schedule =
        select(vec![Schedule::Interleaved, Schedule::PriorityFirst { max_fairness_window: None }]);
    let weighted = (ratios, schedule, select(vec![(0.0, 0.0), (0.5, 0.3), (0.99, 0.6)])).prop_map(
        |(ratios, schedule, (activation, deactivation))| {
            let ratios = [20, 10, 0].into_iter().zip(ratios.map(Ratio)).collect();
            BandSelection::Wfq(WfqParams {
                activation,
                deactivation,
                retention_ns: 2_000_000,
                schedule,
                distribution: Distribution::Explicit { ratios, default_ratio: None },
            })
        },
    );
    let selection = prop_oneof![1 => Just(BandSelection::Strict), 4 => weighted];
    let ceilings = select(vec![[1.0, 1.0, 1.0], [1.0, 0.7, 0.3], [0.9, 0.5, 0.5], [1.0, 1.0, 0.0]]);
    let caps = select(vec![
        [u32::MAX, u32::MAX, u32::MAX, u32::MAX],
        [2, 1, u32::MAX, 2],
        [3, u32::MAX, 1, 0],
    ]);
    (1..6_u32, ceilings, selection, caps).prop_map(|(slots, ceilings, selection, caps)| Shape {
        slots,
        ceilings,
        selection,
        caps,
    })
}

proptest! {
    #![proptest_config(ProptestConfig {
        // A planted build looks every plant up by its name: slow.
        cases: if cfg!(planted) { 150 } else { 1_500 },
        rng_seed: proptest::test_runner::RngSeed::Fixed(0x7717),
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn a_quick_turn_does_what_the_general_one_would(
        shape in shape(),
        script in proptest::collection::vec(op(), 30..90),
    ) {
        compare(&shape, &script);
    }
}
