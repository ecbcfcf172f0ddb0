//! What the engine is measured against, written as one would write it by hand or with tokio.
//!
//! `std::counting_semaphore` (C++) is not here: a second compiler in the loop would measure that; its figure
//! on the reference machine (10.5 ns, 24.5 contended) is within 3 % of [`floor`], which is.
#![forbid(unsafe_code)]

pub mod bands;
pub mod floor;
pub mod handoff;
pub mod heap4;
pub mod scheduler;
pub mod tasks;
