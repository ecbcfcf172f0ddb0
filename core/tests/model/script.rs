//! Random pools and random scripts.

use bandgate_core::types::policy::{BandSelection, Schedule};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;

use super::common::{CREDITS, explicit, wfq};

/// Flow 0 is none; the others are keys of four tenants.
pub(crate) const FLOWS: usize = 6;
pub(crate) const TENANTS: usize = 4;
pub(crate) const TENANT_OF: [usize; FLOWS] = [usize::MAX, 0, 0, 1, 2, 3];
pub(crate) const MAX_COST: u32 = 100;

/// The priorities of every pool here, most urgent first.
pub(crate) const PRIORITIES: [i32; 3] = [20, 10, 0];

/// One pool.
#[derive(Clone, Debug)]
pub(crate) struct Shape {
    pub(crate) slots: u32,
    pub(crate) ceilings: Vec<f64>,
    pub(crate) selection: BandSelection,
    pub(crate) key_caps: Vec<Option<u32>>,
    pub(crate) tenant_caps: Vec<Option<u32>>,
    /// Places of the completion queue.
    pub(crate) places: usize,
    /// Slab entries.
    pub(crate) entries: u32,
    pub(crate) default_timeout_us: Option<u64>,
}

impl Shape {
    pub(crate) fn priorities(&self) -> Vec<i32> {
        PRIORITIES[..self.ceilings.len()].to_vec()
    }
}

/// One request.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ask {
    pub(crate) band: usize,
    pub(crate) flow: usize,
    pub(crate) cost: u32,
    pub(crate) timeout_us: Option<u64>,
}

/// One step. Numbers that choose among what lives are taken modulo its count.
#[derive(Clone, Debug)]
pub(crate) enum Op {
    Submit(Ask),
    Try(Ask),
    /// A future is made, and polled if the flag is set.
    Admit(Ask, bool),
    Release(usize),
    Cancel(usize),
    PollFuture(usize),
    DropFuture(usize),
    Resize(u32),
    Saturation(Option<f64>),
    Advance(u64),
    Poll,
    Drain,
    ShutDown,
}

fn ask() -> impl Strategy<Value = Ask> {
    let cost = prop_oneof![20 => 1..=MAX_COST, 1 => select(vec![0, MAX_COST + 1])];
    let timeout = option::weighted(0.5, select(vec![0, 400, 1_000, 1_500, 3_000, 90_000]));
    (0..3_usize, prop_oneof![3 => Just(0), 4 => 1..FLOWS], cost, timeout)
        .prop_map(|(band, flow, cost, timeout_us)| Ask { band, flow, cost, timeout_us })
}

fn op() -> impl Strategy<Value = Op> {
    let gauge = option::of(select(vec![0.0, 0.2, 0.5, 0.7, 0.9, 1.0, 1.5]));
    prop_oneof![
        24 => ask().prop_map(Op::Submit),
        8 => ask().prop_map(Op::Try),
        8 => (ask(), any::<bool>()).prop_map(|(ask, polled)| Op::Admit(ask, polled)),
        24 => any::<usize>().prop_map(Op::Release),
        8 => any::<usize>().prop_map(Op::Cancel),
        6 => any::<usize>().prop_map(Op::PollFuture),
        4 => any::<usize>().prop_map(Op::DropFuture),
        3 => (1..=6_u32).prop_map(Op::Resize),
        3 => gauge.prop_map(Op::Saturation),
        8 => select(vec![1, 400, 600, 1_000, 2_500, 70_000]).prop_map(Op::Advance),
        6 => Just(Op::Poll),
        1 => prop_oneof![3 => Just(Op::Drain), 1 => Just(Op::ShutDown)],
    ]
}

pub(crate) fn script() -> impl Strategy<Value = Vec<Op>> {
    vec(op(), 40..80)
}

/// `policies`: the band selections to choose from.
pub(crate) fn shape(policies: Vec<BandSelection>) -> impl Strategy<Value = Shape> {
    let ceilings = prop_oneof![
        Just(vec![1.0, 1.0, 1.0]),
        Just(vec![1.0, 0.7, 0.3]),
        Just(vec![0.9, 0.5, 0.5]),
        Just(vec![1.0, 1.0, 0.0]),
    ];
    let cap = || prop_oneof![3 => Just(None), 1 => Just(Some(1)), 2 => Just(Some(2))];
    let last = prop_oneof![Just(None), Just(Some(0))];
    let tenants = (vec(cap(), TENANTS - 1), last).prop_map(|(mut caps, last)| {
        caps.push(last);
        caps
    });
    let timeout = option::weighted(0.3, select(vec![2_000, 5_500]));
    (1..=5_u32, ceilings, select(policies), vec(cap(), FLOWS), tenants, 2..=24_u32, timeout)
        .prop_map(|(slots, ceilings, selection, key_caps, tenant_caps, entries, timeout)| Shape {
            slots,
            ceilings,
            selection,
            key_caps,
            tenant_caps,
            places: 16,
            entries,
            default_timeout_us: timeout,
        })
}

/// Weighted selections: always on, on at half load, both schedules.
pub(crate) fn weighted() -> Vec<BandSelection> {
    let ratios = [(20, 6_000), (10, 3_000), (0, 1_000)];
    let with_zero = [(20, 6_000), (10, 4_000), (0, 0)];
    let mut policies = Vec::new();
    for schedule in [CREDITS, Schedule::Interleaved] {
        for activation in [0.0, 0.5] {
            policies.push(wfq(schedule, explicit(&ratios), activation));
            policies.push(wfq(schedule, explicit(&with_zero), activation));
        }
    }
    policies
}
