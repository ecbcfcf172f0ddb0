//! Stage `select`.
pub mod band;
