//! An admission and dispatch engine for LLM serving that lives in its host's process.
//!
//! The tree is the path: a request enters through [`engine`](Engine), travels the rings into the band
//! queues, is selected, admitted and notified. Start with [`design`] for the map.
#![cfg_attr(docsrs, feature(doc_cfg))]

extern crate alloc;

pub mod admit;
pub mod clock;
pub mod config;
pub mod design;
pub mod engine;
pub mod error;
pub mod notify;
pub mod queue;
pub mod ring;
pub mod select;
pub mod shard;
#[cfg(feature = "sim")]
pub mod sim;
pub mod slab;
pub mod sync;
pub mod topology;
pub mod types;

pub use engine::{
    Admit, Admitted, Band, CancelAnswer, Completion, CompletionQueue, Engine, Flow, Info,
    OwnedPermit, Permit, Pool, PoolView, Request, StartError, Submitted, Ticket,
};
pub use error::Reason;
pub use shard::Progress;
pub use types::settings::{DriverKind, Settings};
