//! The five policies a host may write itself, and what each is shown.
//!
//! An implementation is registered by type name at the engine's builder and named in the configuration like a
//! policy of ours. All but [`SaturationDetector`] run under the pool's lock bit, inside the decision: they must be
//! short, allocate nothing, call nothing that waits, and never call back into the engine. One that panics leaves
//! its pool [`Reason::Poisoned`](crate::Reason::Poisoned). Each pool has an instance of its own.
//!
//! What they answer is checked, never trusted: an order that is no permutation, a ceiling that is no number, are
//! replaced by the neutral answer and counted.
//!
//! # Writing a policy of your own
//!
//! 1. Choose the trait by what it decides:
//!
//!    | trait | decides | built in | example |
//!    | --- | --- | --- | --- |
//!    | [`BandSelection`] | which band is asked first | strict, weighted | `examples/band_selection.rs` |
//!    | [`UsageLimit`] | from which saturation on a band is gated | curves, lists, adaptive | `examples/usage_limit.rs` |
//!    | [`FlowFairness`] | which flow of a band is next | global strict, round robin | `examples/flow_fairness.rs` |
//!    | [`RequestOrder`] | which request of a flow is next | fcfs, edf, slo-deadline | `examples/request_order.rs` |
//!    | [`SaturationDetector`] | how full the backends are | utilisation, concurrency | `examples/saturation_detector.rs` |
//!
//! 2. Give it a type of parameters that serde can read, or `()`. Keys it does not have are refused, whether it says
//!    `deny_unknown_fields` or not; ranges are checked by `#[serde(try_from = "...")]`.
//! 3. Register it: `Engine::builder().register_band_selection("my-type", |parameters: &P| ...)`. The closure makes
//!    one instance a pool (a band for fairness and order), outside of every decision. A name that is taken is
//!    an error.
//! 4. Read the document with `EngineBuilder::load`. There `my-type` stands wherever a built-in type may: as
//!    `bandSelection: {type: my-type, parameters: {...}}`, `holdback:`, `fairness:`, `order:`, `saturation:`, or in
//!    `plugins:` with a reference to it.
//!
//! On a reload a band selection whose parameters did not change keeps its instance and is told of other bands; a
//! usage limit begins anew; fairness and order are fixed when their band is made, and other parameters are refused.
//!
//! Costs: a pool with a band selection or usage limit of the host decides every admit under its lock bit, with one
//! call of the policy for each decision. Fairness and order are asked only for requests that wait.
//!
//! | what it answers | what happens |
//! | --- | --- |
//! | an order with a band missing or twice | strict order; `faulty_answers` of the pool's stats, logged once |
//! | a ceiling that is NaN or outside 0..=1 | 1.0; counted and logged likewise |
//! | a saturation or step that is NaN or negative | 1.0 |
//! | a panic | unwinds to the caller whose call decided; the pool is poisoned |

use core::fmt;

use super::BandMask;

/// A saturation in millionths: how policies that must not compute in floats see it. 1,000,000 is full; it may be
/// more.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Millionths(pub u32);

impl Millionths {
    /// Of a saturation: rounded down, saturating; NaN is 0.
    #[allow(
        clippy::float_arithmetic,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a cast saturates; what it gives is compared in integers only"
    )]
    pub fn of(saturation: f64) -> Self {
        Self((saturation * 1e6) as u32)
    }
}

/// One decision about the order of the bands.
#[derive(Clone, Copy, Debug)]
pub struct BandCycle<'a> {
    /// Provisioned priorities, most urgent first.
    pub priorities: &'a [i32],
    /// Bands that may run now; bit `i` is `priorities[i]`.
    pub eligible: BandMask,
    /// Saturation as the mode reads it (the request about to run included).
    pub saturation: Millionths,
    /// The engine's clock.
    pub now_ns: u64,
}

/// In which order the bands are asked for a request. The walk skips gated and empty bands by itself.
pub trait BandSelection: fmt::Debug + Send {
    /// Orders the bands. `order` comes as 0, 1, 2, ... and must stay a permutation; the first is asked first.
    fn rank(&mut self, cycle: &BandCycle<'_>, order: &mut [u8]);

    /// A request of `priorities[band]` was dispatched. At most once per [`rank`](Self::rank).
    fn record_dispatch(&mut self, band: usize) {
        let _ = band;
    }

    /// The set of bands changed; what was kept per band has to follow.
    fn bands_changed(&mut self, priorities: &[i32]) {
        let _ = priorities;
    }
}

/// The ceiling of each band: the saturation from which on it is gated.
pub trait UsageLimit: fmt::Debug + Send {
    /// Fills `out` (as long as `priorities`, all 1.0) with ceilings in 0..=1. They are made non-increasing
    /// afterwards; NaN and values outside count as 1.0.
    fn ceilings(&mut self, saturation: f64, priorities: &[i32], out: &mut [f64]);
}

/// A flow with something waiting in a band.
#[derive(Clone, Copy, Debug)]
pub struct FlowHead {
    /// Index of the flow in its pool; [`NONE`](super::NONE) for requests without a flow.
    pub flow: u32,
    /// Index of its tenant in its pool, or [`NONE`](super::NONE).
    pub tenant: u32,
    /// Key of its first request under the band's [`RequestOrder`].
    pub head_key: u64,
    /// Arrival number of its first request: never equal for two.
    pub head_arrival: u64,
    /// Cost of its first request in tokens.
    pub head_cost: u32,
}

/// Which flow of a band is next.
pub trait FlowFairness: fmt::Debug + Send {
    /// The key of a flow whose first request changed: when it begins to wait, and after each of its dispatches
    /// while more wait. The least key is next; equal keys go by arrival.
    fn key(&mut self, head: &FlowHead) -> u64;

    /// A request of this flow was dispatched.
    fn record_dispatch(&mut self, head: &FlowHead) {
        let _ = head;
    }
}

/// What a [`RequestOrder`] sees of a request.
#[derive(Clone, Copy, Debug)]
pub struct RequestView {
    /// When it was submitted, in nanoseconds of the engine's clock.
    pub submitted_ns: u64,
    /// When the host received it; the submission's time unless given.
    pub received_ns: u64,
    /// When it will be evicted; `u64::MAX`: never.
    pub deadline_ns: u64,
    /// How long after the time received its first token is due; `u64::MAX`: nothing was promised.
    pub slo_ns: u64,
    /// Estimated tokens.
    pub cost: u32,
    /// Size in bytes.
    pub bytes: u32,
    /// As given with the request.
    pub tag: u64,
}

/// Which request of a flow is next.
pub trait RequestOrder: fmt::Debug + Send {
    /// The key of a request, asked once, when it is queued. The least is next; equal keys go by arrival.
    fn key(&mut self, request: &RequestView) -> u64;
}

/// What a backend serves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Role {
    /// Tokens; also what has no role.
    #[default]
    Decode,
    /// Prompts.
    Prefill,
    /// Both.
    Both,
    /// Neither: it counts for no stage.
    Other,
}

/// What a host knows about one backend at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct BackendSample {
    /// What it serves.
    pub role: Role,
    /// Requests waiting inside it.
    pub waiting: u32,
    /// Share of its KV cache in use, 0..=1 (more is kept).
    pub kv: f64,
    /// Requests in flight on it.
    pub requests: u32,
    /// Tokens in flight on it.
    pub tokens: u64,
    /// Age of the metrics in nanoseconds; `None`: it has none.
    pub age_ns: Option<u64>,
}

/// A saturation, and how much what is dispatched after the sample adds to it at most.
///
/// A request of `cost` tokens adds at most `max(per_dispatch, cost * per_token)`, wherever it is placed. So a burst
/// between two samples is stopped by its own count and cannot overshoot.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Sampled {
    /// At the time of the sample; 1.0 is full, more is possible.
    pub saturation: f64,
    /// Most that one dispatched request adds whatever its cost, 0 or more.
    pub per_dispatch: f64,
    /// Most that each token of a dispatched request adds, 0 or more.
    pub per_token: f64,
    /// Backends whose metrics were too old or absent; one that serves both stages counts in each.
    pub stale: u32,
    /// Nothing is known of the backends that decide, and the pool asks: as long as it reads so, an idle pool may
    /// run one request (of a band whose ceiling is above 0), and a pool that is not idle none.
    pub probe: bool,
}

/// Turns samples of the backends into one saturation. Runs on the thread that reports the samples, not under the
/// lock bit, possibly on several at once.
pub trait SaturationDetector: fmt::Debug + Send + Sync {
    /// The saturation of these backends. What is no number, or below 0, counts as 1.0, each field of it.
    fn read(&self, samples: &[BackendSample]) -> Sampled;
}
