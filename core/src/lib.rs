//! An admission and dispatch engine for LLM serving that lives in its host's process.
//!
//! A host starts an [`Engine`] from [`Settings`], takes a [`Pool`] (the slots of one model) and asks it for a
//! [`Permit`] per request: at once ([`Pool::try_admit`]), as a future ([`Pool::admit`]), blocking
//! ([`Pool::admit_blocking`]), or by [`Ticket`] and [`CompletionQueue`] ([`Pool::submit`]). Dropping the permit gives
//! the slot to whom the policy names. `examples/quickstart.rs` has all four.
//!
//! # The path
//!
//! ```text
//! submit ─► ring ─► queue ─► select ─► admit ─► notify ─► … the host runs it … ─► release
//! ```
//!
//! The modules are the path: [`engine`] is the front door, [`ring`] takes a call to the thread that holds the pool's
//! lock bit, [`queue`] keeps who waits, [`select`] says which band is next, [`admit`] whether it may run, [`notify`] wakes
//! who sleeps; [`shard`] puts them together. [`design`] has the map, file by file, and where to change what.
//!
//! # Guarantees
//!
//! - No slot is lost or granted twice; slots, caps of tenants and keys and the engine ceiling are never exceeded.
//! - No free slot stands beside a request that may run, once the calls in progress have returned.
//! - Within a flow of a band nobody is overtaken; a newcomer never passes a waiting request that could run.
//! - [`Pool::submit`], [`Pool::cancel`] and the release of a permit never wait for another thread. A submit may be
//!   refused, with a [`Reason`]; a release or a cancel never is.
//! - Order is decided in integers, and time is an argument: equal inputs give equal decisions.
//!
//! # Limits
//!
//! 64 bands, 1,048,576 slots and flows a pool; 4,194,304 waiting requests a shard (65,536 unless configured), allocated at
//! start; 64 shards; 64 completion queues. A full table refuses; a table of flows more than half
//! full forgets those nobody uses. Within a band the order is first come, first served unless it is configured to take
//! turns among flows or to go by deadlines: weights of groups, tenants and keys have no effect yet. Calls that say so (interning, views, opening and closing
//! completion queues) wait for the pool's lock bit. A panic while it is held leaves that pool [`Reason::Poisoned`].
//!
//! # Features
//!
//! `config` (default) reads YAML; `uring` (default) sleeps by io_uring where the kernel allows it; `sim` replays traces in
//! virtual time; `cli` builds the command `bandgate`.
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

#[cfg(feature = "config")]
pub use engine::EngineBuilder;
pub use engine::{
    Admit, Admitted, Band, BandError, BandOutcomes, CancelAnswer, Completion, CompletionQueue,
    ConfigInfo, Engine, Flow, FlowName, Holder, Info, OwnedPermit, Permit, Pool, PoolView, Refused,
    ReloadError, Request, StartError, Submitted, Ticket, Waiting,
};
pub use error::Reason;
pub use shard::Progress;
pub use types::settings::{DriverKind, Settings};
