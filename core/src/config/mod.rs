//! Stage `config`.
