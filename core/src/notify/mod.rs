//! Stage `notify`.
