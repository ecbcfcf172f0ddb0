//! Configuration.

pub mod flows;
