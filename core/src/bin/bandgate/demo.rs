//! What `replay` does when it is told nothing: the committed trace and the three committed configurations.
#![forbid(unsafe_code)]

use std::path::PathBuf;

use bandgate_core::sim::service::Speedup;

use crate::{
    Failure,
    load::{Loaded, embedded},
};

/// The trace, from the root of the repository: how messages name it, wherever it lies.
pub(crate) const TRACE: &str = "benches/traces/AzureLLMInferenceTrace_code.csv";

/// The load saturates: at this factor three to four times what 8 slots can carry arrives.
pub(crate) const SPEEDUP: Speedup = Speedup::whole(20);

/// Strict and both weighted schedules with shares of 60, 30 and 10 %, 8 slots each.
const CONFIGS: [(&str, &str); 3] = [
    ("strict", include_str!("../../../examples/replay-strict.yaml")),
    ("wfq-priority-first", include_str!("../../../examples/replay-wfq-priority-first.yaml")),
    ("wfq-interleaved", include_str!("../../../examples/replay-wfq-interleaved.yaml")),
];

/// Below this directory of the source tree the package was built in.
const PACKAGE: &str = env!("CARGO_MANIFEST_DIR");

/// Where the trace lies: below the working directory, else in the source tree. It is read when asked for, because a
/// packaged crate does not carry it.
pub(crate) fn trace() -> Result<PathBuf, Failure> {
    let here = PathBuf::from(TRACE);
    let there = PathBuf::from(PACKAGE).join("..").join(TRACE);
    [here, there].into_iter().find(|path| path.is_file()).ok_or_else(|| {
        Failure::Input(format!(
            "the trace {TRACE} is not here: run this in a checkout of the repository, \
             or name a trace: bandgate replay TRACE"
        ))
    })
}

/// The three configurations.
pub(crate) fn configs() -> Result<Vec<Loaded>, Failure> {
    CONFIGS.iter().map(|(name, text)| embedded(name, text)).collect()
}
