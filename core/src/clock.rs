//! `clock`.
