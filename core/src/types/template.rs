//! What becomes of a priority that no configuration lists.

use core::time::Duration;

use super::policy::{Fairness, Order};

/// What a request of an unknown priority gets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum UnknownPriority {
    /// A refusal, `unknown_band`.
    #[default]
    Error,
    /// A band of its own, made like the template.
    Template,
}

/// What a band is made like. Its ceiling and weight are those the pool's holdback and band selection give an unlisted
/// priority.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BandTemplate {
    /// Which flow is next.
    pub fairness: Fairness,
    /// Which request of a flow is next.
    pub order: Order,
}

/// The bands a pool makes by itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Templates {
    /// Whether it makes any.
    pub unknown: UnknownPriority,
    /// Bands of priority 0 and up.
    pub positive: BandTemplate,
    /// Bands below 0; absent: as the others.
    pub negative: Option<BandTemplate>,
    /// A band made so that had no request for so long may be removed; absent: never.
    pub idle: Option<Duration>,
}

impl Templates {
    /// How long a band of a pool that says nothing is idle before it may be removed.
    pub const IDLE: Duration = Duration::from_secs(600);
    /// Room for priorities in a pool that makes bands and names no `maxBands`.
    pub const DEFAULT_ROOM: usize = 16;

    /// None is made.
    pub const NONE: Self = Self {
        unknown: UnknownPriority::Error,
        positive: BandTemplate { fairness: Fairness::GlobalStrict, order: Order::Fcfs },
        negative: None,
        idle: Some(Self::IDLE),
    };

    /// The template of a priority.
    pub fn of(&self, priority: i32) -> &BandTemplate {
        let below = self.negative.as_ref().filter(|_| priority < 0);
        below.unwrap_or(&self.positive)
    }
}
