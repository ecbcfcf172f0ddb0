//! Band selection.
