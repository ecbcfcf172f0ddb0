//! P11: bytes per queued request and per idle tenant, by an allocator that counts what is asked for.
//!
//! Everything is sized when the engine starts, so both figures are differences between engines of two sizes; for
//! tenants the names and rows that interning adds come on top. Reserved memory counts in full, touched or not.
#![allow(missing_docs, reason = "a program, not a library")]
#![allow(
    clippy::float_arithmetic,
    clippy::cast_precision_loss,
    reason = "a measuring program: it computes bytes per item"
)]

use bandgate_benches::{
    counting::Counting,
    ours::{flow_of, must, settings, wfq},
    report::{self, Args},
};
use bandgate_core::{
    engine::Engine,
    types::settings::{DriverKind, Settings},
};

#[global_allocator]
static ALLOCATOR: Counting = Counting::new();

const REQUESTS: u32 = 65_536;
const TENANTS: u32 = 16_384;

fn main() {
    let args = Args::from_env();
    report::exact(&args, "P11/queued_request", "bytes", queued_request);
    report::exact(&args, "P11/idle_tenant", "bytes", idle_tenant);
}

/// Eight bands, room for so many requests of so many flows.
fn sized(requests: u32, flows: u32) -> Settings {
    let mut settings = settings(DriverKind::Host, 32, wfq());
    settings.max_requests = requests;
    settings.pools[0].max_flows = flows;
    settings
}

/// Live bytes a started engine adds.
fn bytes_of(settings: &Settings) -> f64 {
    let before = ALLOCATOR.live_bytes();
    let engine = must(Engine::start(settings));
    let after = ALLOCATOR.live_bytes();
    drop(engine);
    (after - before) as f64
}

fn queued_request() -> f64 {
    let more = bytes_of(&sized(2 * REQUESTS, 64)) - bytes_of(&sized(REQUESTS, 64));
    more / f64::from(REQUESTS)
}

/// One key each, nothing waiting, nothing running.
fn idle_tenant() -> f64 {
    let reserved = bytes_of(&sized(1024, 2 * TENANTS)) - bytes_of(&sized(1024, TENANTS));
    let engine = must(Engine::start(&sized(1024, TENANTS)));
    let pool = must(engine.pool("bench"));
    let before = ALLOCATOR.live_bytes();
    for tenant in 0..TENANTS {
        // Eight numbers to a tenant: every eighth is the first key of the next.
        flow_of(&pool, 8 * tenant);
    }
    let interned = (ALLOCATOR.live_bytes() - before) as f64;
    (reserved + interned) / f64::from(TENANTS)
}
