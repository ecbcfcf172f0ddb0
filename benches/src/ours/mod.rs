//! Our side of every comparison, through the public surface only.
//!
//! - this file: engines as a host would configure them, and one admit + release;
//! - [`handoff`]: a saturated pool whose slot goes from request to request;
//! - [`cross`]: a request that crosses to a spinning shard;
//! - [`beside`]: admits beside waiters that may not run;
//! - [`tasks`]: async tasks over one slot;
//! - [`decision`], [`timers`]: the queues, the policies and the wheel alone;
//! - [`replay`]: a recorded trace in virtual time;
//! - [`scale`]: decisions over many bands and flows, expiry and drain of many.
#![forbid(unsafe_code)]

pub mod beside;
pub mod cross;
pub mod decision;
pub mod handoff;
pub mod replay;
pub mod scale;
pub mod tasks;
pub mod timers;

use core::fmt::Debug;

use bandgate_core::{
    engine::{Engine, Flow, Pool, Request},
    error::Reason,
    types::{
        policy::{
            BandSelection, Curve, Distribution, Holdback, HoldbackDomain, Schedule, WfqParams,
        },
        settings::{DriverKind, KeySettings, PoolSettings, Settings, TenantSettings},
    },
};

/// Priorities of the eight bands, most urgent first.
pub const PRIORITIES: [i32; 8] = [70, 60, 50, 40, 30, 20, 10, 0];

/// Keys of one tenant where there are many flows.
const KEYS: u32 = 8;

/// The value, or a panic that says why there is none: a bench has nobody to hand an error to.
#[track_caller]
pub fn must<T, E: Debug>(result: Result<T, E>) -> T {
    result.unwrap_or_else(|error| panic!("the engine refused: {error:?}"))
}

/// Weighted fair queuing in virtual time over eight bands, in force at any saturation.
pub fn wfq() -> BandSelection {
    BandSelection::Wfq(WfqParams {
        activation: 0.0,
        deactivation: 0.0,
        retention_ns: 0,
        schedule: Schedule::Interleaved,
        distribution: Distribution::Linear,
    })
}

/// Settings of one pool `bench` of eight bands; no admission timeout, as no peer has one.
pub fn settings(driver: DriverKind, slots: u32, selection: BandSelection) -> Settings {
    let mut pool = PoolSettings::new("bench", slots).with_bands(&PRIORITIES);
    pool.selection = selection;
    Settings { driver, admission_timeout: None, pools: vec![pool], ..Settings::default() }
}

/// An engine and its pool.
#[derive(Debug)]
pub struct Ours {
    /// The pool `bench`.
    pub pool: Pool,
    /// Requests to choose among.
    pub requests: Vec<Request>,
    /// Kept for its threads; dropped last.
    pub engine: Engine,
}

impl Ours {
    /// P1: a pool limit and nothing else; one request without a flow.
    pub fn pool_only(slots: u32) -> Self {
        let engine =
            must(Engine::start(&settings(DriverKind::Inline, slots, BandSelection::Strict)));
        let pool = must(engine.pool("bench"));
        let requests = vec![Request::new(must(pool.band(PRIORITIES[0])))];
        Self { pool, requests, engine }
    }

    /// P2: pool, tenant and key limits, charge, and a holdback that gates the lower bands; a request for each
    /// of so many flows, in the top band, of cost 100.
    pub fn all_limits(slots: u32, flows: u32) -> Self {
        let tenants = flows.div_ceil(KEYS);
        let mut settings = settings(DriverKind::Inline, slots, wfq());
        let holdback = Holdback::Curve(Curve::linear(HoldbackDomain::Rank, 0.5, 1.0));
        settings.pools[0].holdback = holdback;
        settings.tenants =
            (0..tenants).map(|tenant| capped_tenant(&tenant_name(tenant), 6)).collect();
        settings.keys = (0..flows).map(|flow| capped_key(flow, 4)).collect();
        let engine = must(Engine::start(&settings));
        let pool = must(engine.pool("bench"));
        let band = must(pool.band(PRIORITIES[0]));
        let requests =
            (0..flows).map(|flow| Request::new(band).flow(flow_of(&pool, flow)).cost(100));
        Self { requests: requests.collect(), pool, engine }
    }

    /// One admit and release of the given request; there is room.
    #[inline(always)]
    pub fn admit_release(&self, request: &Request) {
        let permit = self.pool.try_admit(request);
        assert!(permit.is_ok(), "there is room");
    }

    /// The same beside another thread: `Busy` means that the other one decides just now, so try again.
    #[inline(always)]
    pub fn admit_release_contended(&self, request: &Request) {
        loop {
            match self.pool.try_admit(request) {
                Ok(permit) => return drop(permit),
                Err(Reason::Busy) => core::hint::spin_loop(),
                Err(reason) => panic!("there is room: {reason:?}"),
            }
        }
    }
}

/// P15: two pools on two shards, all limits in each, no engine ceiling.
#[derive(Debug)]
pub struct TwoPools {
    pools: [(Pool, Request); 2],
    _engine: Engine,
}

impl TwoPools {
    /// Pools of eight slots each.
    pub fn start() -> Self {
        let mut settings = settings(DriverKind::Inline, 8, BandSelection::Strict);
        let mut second = settings.pools[0].clone();
        second.name.push_str("-2");
        settings.pools.push(second);
        settings.shards = 2;
        settings.tenants = vec![capped_tenant(&tenant_name(0), 4)];
        let engine = must(Engine::start(&settings));
        let with_request = |name| {
            let pool = must(engine.pool(name));
            let band = must(pool.band(PRIORITIES[0]));
            let request = Request::new(band).flow(flow_of(&pool, 0)).cost(100);
            (pool, request)
        };
        Self { pools: [with_request("bench"), with_request("bench-2")], _engine: engine }
    }

    /// One admit and release in the pool of this thread.
    #[inline(always)]
    pub fn admit_release(&self, thread: usize) {
        let (pool, request) = &self.pools[thread];
        assert!(pool.try_admit(request).is_ok(), "there is room, and nobody else");
    }
}

/// Walks all requests in an order no cache line predictor likes: a full-period linear congruence.
#[derive(Clone, Copy, Debug)]
pub struct Walk {
    next: u32,
    mask: u32,
}

impl Walk {
    /// Over `count` requests, a power of two of at least 4.
    pub fn over(count: usize) -> Self {
        assert!(count.is_power_of_two() && count >= 4, "the period is full for powers of two");
        Self { next: 0, mask: u32::try_from(count - 1).unwrap_or(u32::MAX) }
    }

    /// The next index.
    #[inline(always)]
    #[allow(clippy::should_implement_trait, reason = "it never ends: an iterator would say Option")]
    pub fn next(&mut self) -> usize {
        // Multiplier 1 mod 4 and an odd increment: every value once in a period (Hull and Dobell, 1962).
        self.next = self.next.wrapping_mul(0x2C9_2775).wrapping_add(0x3_C6EF) & self.mask;
        self.next as usize
    }
}

/// The name of a tenant.
pub fn tenant_name(tenant: u32) -> String {
    format!("tenant-{tenant}")
}

/// A tenant with a cap.
pub fn capped_tenant(name: &str, most: u32) -> TenantSettings {
    TenantSettings {
        name: name.to_owned(),
        group: None,
        weight: 100,
        max_in_flight: Some(most),
        exempt: false,
    }
}

fn capped_key(flow: u32, most: u32) -> KeySettings {
    KeySettings {
        name: format!("key-{flow}"),
        tenant: tenant_name(flow / KEYS),
        weight: 100,
        max_in_flight: Some(most),
        exempt: false,
    }
}

/// The flow of this number, `KEYS` of them to a tenant.
pub fn flow_of(pool: &Pool, flow: u32) -> Flow {
    must(pool.flow("default", &tenant_name(flow / KEYS), &format!("key-{flow}")))
}

#[cfg(test)]
mod tests {
    use super::{Ours, Walk};

    #[test]
    fn a_walk_visits_every_request_once_in_a_period() {
        let mut walk = Walk::over(64);
        let mut seen = [0; 64];
        for _ in 0..64 {
            seen[walk.next()] += 1;
        }
        assert_eq!(seen, [1; 64]);
    }

    #[test]
    fn what_is_admitted_is_given_back() {
        for ours in [Ours::pool_only(1), Ours::all_limits(1, 64)] {
            for request in ours.requests.iter().cycle().take(100) {
                ours.admit_release(request);
            }
            assert_eq!(ours.pool.view().running, 0);
        }
    }
}
