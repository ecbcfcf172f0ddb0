//! Stage `sim`.
