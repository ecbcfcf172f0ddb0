//! Prefill and decode apart: a pool is as saturated as the stage that is more so.

use alloc::vec::Vec;

use super::checked;
use crate::types::extend::{BackendSample, Role, Sampled, SaturationDetector};

/// What a backend serves, by its role label; `None`: it has no label or no metadata.
pub fn role_of(label: Option<&str>) -> Role {
    match label {
        None | Some("" | "decode") => Role::Decode,
        Some("prefill" | "encode-prefill") => Role::Prefill,
        Some("prefill-decode" | "both" | "encode-prefill-decode") => Role::Both,
        Some(_) => Role::Other,
    }
}

/// A pool's reading, stage by stage.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Stages {
    /// The backends that take prompts; `None`: there are none.
    pub prefill: Option<Sampled>,
    /// The backends that make tokens; `None`: there are none.
    pub decode: Option<Sampled>,
    /// What the pool goes by.
    pub effective: Sampled,
    /// The detector answered something that is no saturation; it was replaced.
    pub faulty: bool,
}

impl Stages {
    /// Reads each stage that has a backend, a backend of both roles in both; without any stage the whole list.
    ///
    /// Allocates only if some backend is not plainly of the decode stage.
    pub fn read(detector: &impl SaturationDetector, samples: &[BackendSample]) -> Self {
        let mut faulty = false;
        let mut ask = |samples: &[BackendSample]| {
            let (sampled, wrong) = checked(detector.read(samples));
            faulty |= wrong;
            sampled
        };
        let mut stage = |roles: [Role; 2]| {
            let is_in = |sample: &&BackendSample| roles.contains(&sample.role);
            let count = samples.iter().filter(is_in).count();
            match count {
                0 => None,
                n if n == samples.len() => Some(ask(samples)),
                _ => Some(ask(&samples.iter().filter(is_in).copied().collect::<Vec<_>>())),
            }
        };
        let prefill = stage([Role::Prefill, Role::Both]);
        let decode = stage([Role::Decode, Role::Both]);
        let effective = match (prefill, decode) {
            (Some(a), Some(b)) => higher(a, b),
            (Some(only), None) | (None, Some(only)) => only,
            (None, None) => ask(samples),
        };
        Self { prefill, decode, effective, faulty }
    }
}

/// Both stages as one. A request is wholly on one backend, or on one of each stage: it adds to each stage at most what
/// that stage says, so to the higher one at most the larger step. A stage of which nothing is known is asked only while the other one has room.
fn higher(a: Sampled, b: Sampled) -> Sampled {
    let has_room = |stage: Sampled| stage.probe || stage.saturation < 1.0;
    Sampled {
        saturation: a.saturation.max(b.saturation),
        per_dispatch: a.per_dispatch.max(b.per_dispatch),
        per_token: a.per_token.max(b.per_token),
        stale: a.stale.saturating_add(b.stale),
        probe: (a.probe || b.probe) && has_room(a) && has_room(b),
    }
}
