//! `design`.
