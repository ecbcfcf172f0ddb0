//! Stage `queue`.
