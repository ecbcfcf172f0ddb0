//! Trace replay in virtual time: the shipped turn, fed from a recorded workload.
//!
//! ```text
//! trace ──► assign + service ──► workload ──► replay ──► report ──► table, JSON, picture
//! (rows)    (band, tenant, key,              (Dispatcher:
//!            service time)                    the engine)
//! ```
//!
//! Nothing here reads a clock or a random source: a replay is a function of the trace, the configuration, the seed,
//! the number of slots and the speed-up, and gives the same report on every machine.
//!
//! The stated rules, all integers:
//! - what a trace does not say is assigned by [`assign`] (a counter-based hash of seed and row number);
//! - how long a request holds its slot follows from its tokens ([`service`]);
//! - a speed-up divides arrival times and nothing else ([`service::Speedup`]);
//! - what `starved` means is [`report::STARVED_RULE`].

pub mod assign;
pub mod ends;
pub mod engine;
pub mod gating;
pub mod regions;
pub mod replay;
pub mod report;
pub mod scheme;
pub mod service;
pub mod stats;
pub mod table;
pub mod trace;
pub mod workload;

#[cfg(test)]
pub(crate) mod model;
