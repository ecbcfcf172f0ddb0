//! Band selection as properties: bounds on waiting and shares, whatever the bands, gates and queues do.
//!
//! Policy level: the tests play the turn, with sets of bands instead of queues.
#![allow(clippy::unwrap_used, reason = "a test stops at the first surprise")]

#[path = "fairness/band_bounds.rs"]
mod band_bounds;
#[path = "fairness/band_gates.rs"]
mod band_gates;
#[path = "fairness/bands.rs"]
mod bands;
#[path = "fairness/literal.rs"]
mod literal;
