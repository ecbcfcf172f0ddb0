//! The answer: every step of the decision, and what comes out.
#![forbid(unsafe_code)]

use serde::Serialize;

/// What would happen to a request.
#[derive(Debug, Serialize)]
pub(crate) struct Account {
    pub(crate) config: String,
    pub(crate) pool: String,
    pub(crate) request: Request,
    /// In the order in which they are asked; the last one may be the one that decides.
    pub(crate) steps: Vec<Step>,
    pub(crate) outcome: Outcome,
    /// What was assumed, and what is not looked at.
    pub(crate) remarks: Vec<String>,
}

/// The request that is asked about.
#[derive(Debug, Serialize)]
pub(crate) struct Request {
    /// Priority; absent if it is not provisioned and no number.
    pub(crate) band: Option<i32>,
    pub(crate) band_name: Option<String>,
    pub(crate) tenant: Option<String>,
    pub(crate) key: Option<String>,
    pub(crate) cost: u32,
    pub(crate) saturation: f64,
}

/// One rule and what it says.
#[derive(Debug, Serialize)]
pub(crate) struct Step {
    pub(crate) rule: Rule,
    /// It decides the outcome.
    pub(crate) decides: bool,
    pub(crate) says: String,
    /// Each band as the gate or the order sees it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) bands: Vec<BandState>,
}

/// The rules in the order in which they are asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Rule {
    Band,
    Cost,
    Closed,
    Exempt,
    Caps,
    Saturation,
    Gate,
    Mode,
    Order,
    Slots,
    QueueRoom,
    Timeout,
    Observe,
}

impl Rule {
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Band => "band",
            Self::Cost => "cost",
            Self::Closed => "closed",
            Self::Exempt => "exempt",
            Self::Caps => "caps",
            Self::Saturation => "saturation",
            Self::Gate => "gate",
            Self::Mode => "mode",
            Self::Order => "order",
            Self::Slots => "slots",
            Self::QueueRoom => "queue room",
            Self::Timeout => "timeout",
            Self::Observe => "observe",
        }
    }
}

/// A band on arrival.
#[derive(Debug, Serialize)]
pub(crate) struct BandState {
    pub(crate) priority: i32,
    pub(crate) name: Option<String>,
    pub(crate) waiting: u32,
    pub(crate) ceiling: f64,
    /// Running requests from which on it is gated; absent if its gate is no slot count.
    pub(crate) ceiling_slots: Option<u32>,
    pub(crate) gated: bool,
    /// Weight without a common divisor; absent under strict.
    pub(crate) weight: Option<u64>,
    /// Its place in the order of this decision, from 1.
    pub(crate) rank: usize,
}

/// What comes out.
#[derive(Debug, Serialize)]
pub(crate) struct Outcome {
    pub(crate) verdict: Verdict,
    /// Why it is rejected, as every surface says it.
    pub(crate) reason: Option<&'static str>,
    pub(crate) rule: Rule,
    pub(crate) says: String,
    /// Who is served before it, by band, if it waits and its turn comes.
    pub(crate) before: Vec<Before>,
    /// How many requests have to end until its turn comes, if nobody else arrives; absent: not while all stays so.
    pub(crate) releases: Option<u32>,
}

/// What a request gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Verdict {
    Runs,
    Waits,
    Rejected,
}

impl Verdict {
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Runs => "runs now",
            Self::Waits => "waits",
            Self::Rejected => "rejected",
        }
    }
}

/// Dispatches of one band that come first.
#[derive(Debug, Serialize)]
pub(crate) struct Before {
    pub(crate) band: i32,
    pub(crate) dispatches: u32,
}
