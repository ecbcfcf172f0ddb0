//! Stage `queue`: who waits in one pool, in which order, and until when.
//!
//! Everything here is plain memory that only the holder of the pool's lock touches: no atomics, no clock,
//! no floats, no allocation after construction and interning.
//!
//! - [`bands`]: the queues of a pool, [`BandQueues`]: one first-come order per band, caps skipped in bounded time;
//! - `aside`: lanes set aside because of a cap;
//! - [`lanes`]: the first-in-first-out list of one flow in one band, and the arena these live in;
//! - [`parked`]: lanes of a tenant at its cap, a leftist heap for each (tenant, band);
//! - [`leftist`]: the heap these and ranked bands are made of;
//! - [`ranked`]: bands in another order than arrival;
//! - [`heap`]: the 4-ary heap of packed integers that orders the lanes of a band;
//! - [`order`]: the ordering key, the only place that knows it is first come, first served;
//! - [`links`]: where the list links are kept;
//! - [`walk`]: who waits, for views;
//! - [`wheel`]: the timers, [`Wheel`].
#![forbid(unsafe_code)]

mod aside;
mod band;
pub mod bands;
mod caps;
pub mod heap;
pub mod lanes;
pub mod leftist;
pub mod links;
pub mod order;
pub mod parked;
pub mod ranked;
mod rows;
pub mod walk;
pub mod wheel;

#[cfg(test)]
mod tests;

pub use bands::{BandQueues, Front, Waiter};
pub use caps::{Caps, NoCaps, Room};
pub use links::{Link, Links, VecLinks};
pub use wheel::{Advanced, TimerLink, TimerLinks, VecTimers, Wheel};
