//! Stage `admit`.
pub mod ceiling;
pub mod saturation;
