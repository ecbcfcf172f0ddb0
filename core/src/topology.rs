//! `topology`.
