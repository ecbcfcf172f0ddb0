//! Stage `admit`: may it run? The pool word, caps and charges, ceilings; release is the inverse of admit
//! and lives beside it.
//!
//! - [`word`]: the pool word and its lock-free steps, [`word::PoolGate`];
//! - [`caps`]: rows of flows and tenants, under LOCK;
//! - [`ceiling`]: holdback shapes and the monotone sweep;
//! - [`saturation`]: a saturation or ceiling as a slot count;
//! - [`gates`]: which bands are open now;
//! - [`detect`]: samples of the backends as one saturation.

pub mod caps;
pub mod ceiling;
pub mod detect;
pub mod gates;
pub mod saturation;
pub mod word;
