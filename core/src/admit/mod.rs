//! Stage `admit`.
