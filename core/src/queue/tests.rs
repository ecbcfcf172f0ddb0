//! Tests of the stage, against naive models.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod bands;
mod heap;
mod model;
mod order;
mod parked;
mod wheel;
mod worst;
