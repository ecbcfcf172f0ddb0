//! `slab`.
