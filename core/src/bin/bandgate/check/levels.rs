//! The ceilings of a pool as `check` shows them: one number a band, or how far it moves.
#![forbid(unsafe_code)]
#![allow(clippy::float_arithmetic, reason = "figures of a report, no decision")]

use bandgate_core::{
    admit::ceiling::{Ceilings, adaptive::AdaptiveCeilings, adaptive::FULL, ceilings},
    types::{
        policy::{ActiveBands, Adaptive, Curve, Holdback, Signal},
        settings::PoolSettings,
    },
};

/// What moves the ceilings.
#[derive(Debug)]
pub(super) enum Moved {
    Never,
    /// Other bands becoming busy or idle.
    ByBusyBands,
    /// A signal.
    BySignal(Box<AdaptiveCeilings>),
    /// The number of decisions.
    ByDecisions,
}

/// The ceilings of one pool, most urgent band first.
#[derive(Debug)]
pub(super) struct Levels {
    /// Every band busy, nothing that presses.
    pub(super) calm: Ceilings,
    /// The lowest and the highest each band can have.
    pub(super) low: Ceilings,
    pub(super) high: Ceilings,
    pub(super) moved: Moved,
}

impl Levels {
    pub(super) fn of(pool: &PoolSettings, priorities: &[i32]) -> Self {
        let mut calm = Ceilings::new();
        ceilings(&pool.holdback, priorities, &mut calm);
        let (mut low, mut high) = (calm.clone(), calm.clone());
        let moved = match &pool.holdback {
            Holdback::Curve(Curve { active: ActiveBands::Busy, min, max, .. }) => {
                // Alone each has the most; the lowest of several busy ones has the least, and the top never has less.
                high.iter_mut().for_each(|level| *level = *max);
                low.iter_mut().skip(1).for_each(|level| *level = *min);
                Moved::ByBusyBands
            }
            Holdback::Adaptive(params) => {
                let adaptive = AdaptiveCeilings::new(params, priorities);
                let mut pressed = Ceilings::new();
                adaptive.at(FULL, &mut pressed);
                for (i, &pressed) in pressed.iter().enumerate() {
                    low[i] = calm[i].min(pressed);
                    high[i] = calm[i].max(pressed);
                }
                Moved::BySignal(Box::new(adaptive))
            }
            Holdback::SoftReflective => {
                low.iter_mut().skip(1).for_each(|level| *level = 0.0);
                Moved::ByDecisions
            }
            _ => Moved::Never,
        };
        Self { calm, low, high, moved }
    }

    /// The ceilings under full pressure, of a pool whose ceilings follow a signal.
    pub(super) fn pressed(&self) -> Option<Ceilings> {
        let Moved::BySignal(adaptive) = &self.moved else { return None };
        let mut out = Ceilings::new();
        adaptive.at(FULL, &mut out);
        Some(out)
    }
}

/// The ceilings that a signal at rest at this height leads to.
pub(super) fn under(adaptive: &AdaptiveCeilings, signal: f64) -> Ceilings {
    let mut out = Ceilings::new();
    adaptive.at(adaptive.pressure().demand(signal), &mut out);
    out
}

/// The signal in words.
pub(super) fn signal(params: &Adaptive) -> String {
    match &params.signal {
        Signal::Saturation => "saturation".into(),
        Signal::QueueDepth => "queue depth".into(),
        Signal::Detector(name) => format!("detector {name}"),
    }
}
