//! Whichever policy gives a pool its ceilings: ours by enum, one of the host's by trait object.
#![forbid(unsafe_code)]

use alloc::boxed::Box;

use super::adaptive::AdaptiveCeilings;
use super::reflective::SoftReflective;
use super::shapes::{explicit, spread};
use super::{Ceilings, repair, sweep};
use crate::types::BandMask;
use crate::types::extend::UsageLimit;
use crate::types::policy::{ActiveBands, Curve, Holdback, Signal};

/// How often a policy that answers differently by itself is worth a look while somebody is held back by it.
const PERIOD_NS: u64 = 1_000_000;

/// What a policy whose ceilings move is shown.
#[derive(Clone, Copy, Debug, Default)]
pub struct Moment {
    /// Saturation as the gate compares it.
    pub saturation: f64,
    /// Bands with a waiting or running request.
    pub busy: BandMask,
    /// Waiting over the most that may wait.
    pub queue_depth: f64,
    /// Reading of the detector the policy names; `None`: nothing read yet, which presses on nothing.
    pub detector: Option<f64>,
    /// The engine's clock.
    pub now_ns: u64,
}

/// The policy behind a pool's ceilings.
#[derive(Debug)]
pub enum CeilingPolicy {
    /// They change with the configuration only.
    Fixed(Holdback),
    /// A curve over the busy bands, as last seen.
    Busy(Curve, BandMask),
    /// They follow a signal.
    Adaptive(Box<AdaptiveCeilings>),
    /// They open for one decision in several.
    Reflective(SoftReflective),
    /// The host's own.
    Custom(Box<dyn UsageLimit>),
}

impl CeilingPolicy {
    /// The policy a description asks for. `bands` most urgent first, at most 64.
    pub fn new(holdback: &Holdback, bands: &[i32]) -> Self {
        match holdback {
            Holdback::Curve(curve) if curve.active == ActiveBands::Busy => {
                Self::Busy(*curve, BandMask::MAX)
            }
            Holdback::Adaptive(params) => {
                Self::Adaptive(Box::new(AdaptiveCeilings::new(params, bands)))
            }
            Holdback::SoftReflective => Self::Reflective(SoftReflective::default()),
            Holdback::Custom(custom) => Self::Custom(custom.make()),
            other => Self::Fixed(other.clone()),
        }
    }

    /// Whether the ceilings move without a change of the configuration.
    #[inline]
    pub fn is_dynamic(&self) -> bool {
        !matches!(self, Self::Fixed(_))
    }

    /// The ceilings of a calm pool: every band busy, nothing that presses, nothing running. Returns how many were
    /// faulty.
    pub fn calm(&mut self, bands: &[i32], out: &mut Ceilings) -> u32 {
        out.clear();
        match self {
            Self::Fixed(holdback) => match holdback {
                Holdback::Static { threshold } => out.extend(bands.iter().map(|_| *threshold)),
                Holdback::Curve(curve) => spread(curve, bands, BandMask::MAX, out),
                Holdback::Explicit { ceilings, default } => {
                    out.extend(bands.iter().map(|p| explicit(ceilings, *default, *p)));
                }
                _ => out.extend(bands.iter().map(|_| 1.0)),
            },
            Self::Busy(curve, busy) => {
                *busy = BandMask::MAX;
                spread(curve, bands, BandMask::MAX, out);
            }
            Self::Adaptive(adaptive) => adaptive.at(0, out),
            Self::Reflective(_) => out.extend(bands.iter().map(|_| 1.0)),
            Self::Custom(policy) => ask(&mut **policy, 0.0, bands, out),
        }
        finish(out)
    }

    /// Asks for the ceilings at a moment, once per decision. `Some`: `out` was filled anew, so many were faulty;
    /// `None`: it still holds what is right.
    pub fn refresh(&mut self, bands: &[i32], moment: &Moment, out: &mut Ceilings) -> Option<u32> {
        match self {
            Self::Fixed(_) => return None,
            Self::Busy(curve, busy) => {
                if *busy == moment.busy {
                    return None;
                }
                *busy = moment.busy;
                out.clear();
                spread(curve, bands, *busy, out);
            }
            Self::Adaptive(adaptive) => {
                let signal = signal_of(adaptive.signal(), moment);
                if !adaptive.refresh(bands, moment.busy, signal, moment.now_ns, out) {
                    return None;
                }
            }
            Self::Reflective(policy) => ask(policy, moment.saturation, bands, out),
            Self::Custom(policy) => ask(&mut **policy, moment.saturation, bands, out),
        }
        Some(finish(out))
    }

    /// Goes on with pressure or tick of a policy of the same kind.
    pub fn inherit(&mut self, old: &Self) {
        match (self, old) {
            (Self::Adaptive(new), Self::Adaptive(old)) => new.inherit(old),
            (Self::Reflective(new), Self::Reflective(old)) => *new = *old,
            _ => {}
        }
    }

    /// After which time the ceilings may be others although nothing happened, as of the moment last shown.
    pub fn look_again_ns(&self, moment: &Moment) -> Option<u64> {
        match self {
            Self::Fixed(_) | Self::Busy(..) => None,
            Self::Adaptive(adaptive) => {
                let signal = signal_of(adaptive.signal(), moment);
                adaptive.pressure().look_again_ns(signal, moment.now_ns)
            }
            Self::Reflective(_) => {
                SoftReflective::alternates(moment.saturation).then_some(PERIOD_NS)
            }
            Self::Custom(_) => Some(PERIOD_NS),
        }
    }
}

fn signal_of(signal: &Signal, moment: &Moment) -> f64 {
    match signal {
        Signal::Saturation => moment.saturation,
        Signal::QueueDepth => moment.queue_depth,
        Signal::Detector(_) => moment.detector.unwrap_or(0.0),
    }
}

/// One answer of a policy behind the trait.
fn ask(policy: &mut dyn UsageLimit, saturation: f64, bands: &[i32], out: &mut Ceilings) {
    out.clear();
    out.extend(bands.iter().map(|_| 1.0));
    policy.ceilings(saturation, bands, out);
}

/// What every buffer goes through. Returns how many ceilings were faulty.
fn finish(out: &mut Ceilings) -> u32 {
    let faulty = repair(out);
    sweep(out);
    faulty
}
