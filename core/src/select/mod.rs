//! Stage `select`: which [`band`] is served next, which [`flow`] of it, and which [`request`] of that flow.
//!
//! A policy ranks; it never sees a queue. The queue asks for a rank when it needs one and keeps the order.

pub mod band;
pub mod flow;
pub mod request;
