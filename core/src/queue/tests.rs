//! Tests of the stage.
