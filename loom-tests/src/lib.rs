//! Loom models of the protocols in `bandgate-core`, on its own types.
