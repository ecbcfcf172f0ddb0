//! Adaptive ceilings: lower bands give way while a signal is high, and get back slowly what they gave.
//!
//! ```text
//! demand    d    = (signal - target) / (full - target), cut to 0..=1
//! pressure  p(t) = max(d, p0 - rate (t - t0))          p0, t0: the last look at which d was not below p
//! ceiling   c_i  = rest_i + (pressed_i - rest_i) p
//! ```
//!
//! `pressed` is any curve or list, `rest` one ceiling or a list. So a band whose ceiling under pressure is below its
//! rest moves down, and the top, where `rest` is below its `pressed`, moves up, as high as `maxCeiling`.
//!
//! What follows from the formula, and is tested beside it:
//!
//! - *bounded*: `c_i` lies between `rest_i` and `pressed_i`;
//! - *monotone*: both never rise as priority falls, so neither does a mixture of them (and the sweep runs);
//! - *no oscillation*: under a constant signal the pressure never rises again once it fell; it reaches d and stays;
//! - *recovery*: from full pressure to none in `1 / rate` seconds after the signal came back to the target, and in
//!   proportion from less;
//! - *deterministic*: pressure is an integer, in 1e-9, and a function of the signals and times of the looks. Looking
//!   more often at an unchanged signal changes nothing: what fades is computed from t0, never summed up.
#![forbid(unsafe_code)]

use super::shapes::{explicit, spread};
use super::{Ceilings, repair, sweep};
use crate::types::BandMask;
use crate::types::policy::{ActiveBands, Adaptive, Pressed, Rest, Signal};

/// Full pressure, in the parts it is counted in.
pub const FULL: u64 = 1_000_000_000;
const NS_PER_SECOND: u128 = 1_000_000_000;
/// How often a pressure that fades is worth a look, in nanoseconds.
const SOONEST_LOOK: u64 = 1_000_000;
const LATEST_LOOK: u64 = 50_000_000;

/// How hard a signal presses.
#[derive(Clone, Copy, Debug)]
pub struct Pressure {
    target: f64,
    full: f64,
    /// Parts given back per second.
    rate: u64,
    /// Pressure at `since_ns`, in parts of [`FULL`].
    anchor: u64,
    since_ns: u64,
}

impl Pressure {
    /// None yet. The parameters are validated: `target < full`, a rate in its range.
    #[allow(
        clippy::float_arithmetic,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "configuration: 0.001 to 1000, rounded once"
    )]
    pub fn new(target: f64, full: f64, recovery_rate: f64) -> Self {
        let rate = (recovery_rate * 1e9).round() as u64;
        Self { target, full, rate: rate.max(1), anchor: 0, since_ns: 0 }
    }

    /// What the signal asks for, in parts of [`FULL`]. NaN counts as 1.0, as everywhere.
    #[allow(
        clippy::float_arithmetic,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "cut to 0..=1 before it is rounded to parts"
    )]
    pub fn demand(&self, signal: f64) -> u64 {
        let signal = if signal.is_nan() { 1.0 } else { signal };
        // The ends are given, not computed: rounding must not keep a last part of pressure.
        if signal <= self.target {
            return 0;
        }
        if signal >= self.full {
            return FULL;
        }
        let share = (signal - self.target) / (self.full - self.target);
        ((share.clamp(0.0, 1.0) * 1e9).round() as u64).min(FULL)
    }

    /// What is left of the last pressure at this time, if nothing presses anew.
    fn faded(&self, now_ns: u64) -> u64 {
        let elapsed = u128::from(now_ns.saturating_sub(self.since_ns));
        let given_back = elapsed * u128::from(self.rate) / NS_PER_SECOND;
        u128::from(self.anchor).saturating_sub(given_back).try_into().unwrap_or(0)
    }

    /// The pressure now.
    pub fn look(&mut self, signal: f64, now_ns: u64) -> u64 {
        let (demand, faded) = (self.demand(signal), self.faded(now_ns));
        if demand >= faded {
            (self.anchor, self.since_ns) = (demand, now_ns);
        }
        demand.max(faded)
    }

    /// As if it had been at `level` then.
    #[cfg(all(test, not(loom)))]
    pub(super) fn inherit_for_test(&mut self, level: u64, at_ns: u64) {
        (self.anchor, self.since_ns) = (level, at_ns);
    }

    /// When a look is worth while although nothing happened, in nanoseconds from now: about a thousandth of the
    /// way further. `None`: at rest where it is.
    pub fn look_again_ns(&self, signal: f64, now_ns: u64) -> Option<u64> {
        let step = FULL / 1_000 * 1_000_000_000 / self.rate;
        (self.faded(now_ns) > self.demand(signal)).then(|| step.clamp(SOONEST_LOOK, LATEST_LOOK))
    }
}

/// The ceilings of an adaptive holdback, and what they follow.
#[derive(Clone, Debug)]
pub struct AdaptiveCeilings {
    pressure: Pressure,
    params: Adaptive,
    rest: Ceilings,
    /// Under full pressure, for the busy bands as last seen.
    pressed: Ceilings,
    busy: BandMask,
    /// Pressure the last ceilings were made with; none yet.
    level: Option<u64>,
}

impl AdaptiveCeilings {
    /// At rest. `bands` most urgent first, at most 64.
    pub fn new(params: &Adaptive, bands: &[i32]) -> Self {
        let mut rest = Ceilings::new();
        match &params.rest {
            Rest::All(ceiling) => rest.extend(bands.iter().map(|_| *ceiling)),
            Rest::Each(listed) => rest.extend(bands.iter().map(|p| explicit(listed, None, *p))),
        }
        repair(&mut rest);
        sweep(&mut rest);
        let pressure = Pressure::new(params.target, params.full, params.recovery_rate);
        let (params, busy) = (params.clone(), BandMask::MAX);
        let mut all = Self { pressure, params, rest, pressed: Ceilings::new(), busy, level: None };
        all.press(bands);
        all
    }

    /// What it follows.
    pub fn signal(&self) -> &Signal {
        &self.params.signal
    }

    /// The pressure, to be shown or asked when to look again.
    pub fn pressure(&self) -> &Pressure {
        &self.pressure
    }

    /// Goes on with the pressure of earlier ceilings; it fades at the rate of these.
    pub fn inherit(&mut self, old: &Self) {
        (self.pressure.anchor, self.pressure.since_ns) =
            (old.pressure.anchor, old.pressure.since_ns);
        self.level = None;
    }

    fn press(&mut self, bands: &[i32]) {
        self.pressed.clear();
        match &self.params.pressed {
            Pressed::Curve(curve) => spread(curve, bands, self.busy, &mut self.pressed),
            Pressed::Explicit { ceilings, default } => {
                self.pressed.extend(bands.iter().map(|p| explicit(ceilings, *default, *p)));
            }
        }
        repair(&mut self.pressed);
        sweep(&mut self.pressed);
    }

    /// Whether the busy bands matter.
    fn follows_busy(&self) -> bool {
        matches!(&self.params.pressed, Pressed::Curve(curve) if curve.active == ActiveBands::Busy)
    }

    /// Looks at the signal and fills `out` if the ceilings may have changed; whether they may.
    pub fn refresh(
        &mut self,
        bands: &[i32],
        busy: BandMask,
        signal: f64,
        now_ns: u64,
        out: &mut Ceilings,
    ) -> bool {
        let level = self.pressure.look(signal, now_ns);
        let is_moved = self.follows_busy() && busy != self.busy;
        if is_moved {
            self.busy = busy;
            self.press(bands);
        }
        if self.level == Some(level) && !is_moved {
            return false;
        }
        self.level = Some(level);
        self.at(level, out);
        true
    }

    /// Fills `out` with the ceilings under a pressure of `level` parts of [`FULL`].
    #[allow(
        clippy::float_arithmetic,
        clippy::cast_precision_loss,
        reason = "a ceiling is a saturation; parts are far below 2^53"
    )]
    pub fn at(&self, level: u64, out: &mut Ceilings) {
        out.clear();
        let share = level as f64 / FULL as f64;
        out.extend(self.rest.iter().zip(&self.pressed).map(|(&rest, &pressed)| {
            if level >= FULL {
                return pressed;
            }
            (rest + (pressed - rest) * share).clamp(rest.min(pressed), rest.max(pressed))
        }));
        sweep(out);
    }
}
