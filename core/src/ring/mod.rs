//! Stage `ring`.
