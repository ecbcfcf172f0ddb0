//! Stage `select`: which [`band`] is served next. Who is next within a band is the order of its queue (`queue`).

pub mod band;
