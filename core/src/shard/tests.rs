//! A shard alone, without engine or threads: states that no single caller of the front door can bring about.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on may panic")]

mod twins;

use super::codes;
use super::completions::Queues;
use super::hold::{Answer, Submission};
use super::pool::{PoolCore, PoolState};
use super::{Decider, Shard, Sleeper};
use crate::admit::caps::{TenantRow, Usage};
use crate::admit::word::TryLock;
use crate::clock::{Clock, Now};
use crate::error::Reason;
use crate::notify::doorbell::Doorbell;
use crate::notify::parker::{Choice, Parker};
use crate::slab::Phase;
use crate::sync::Arc;
use crate::types::settings::PoolSettings;
use crate::types::{NONE, TURN_BUDGET};

/// One pool and room for 64 who wait.
fn shard(slots: u32, ring: u32) -> Shard {
    let mut settings = PoolSettings::new("p", slots);
    settings.ring_capacity = ring;
    settings.max_flows = 4;
    let sleeper = Arc::new(Sleeper::new(Doorbell::new(Parker::new(Choice::Portable))));
    let pools = core::iter::once(PoolCore::new(0, 0, &settings, 64)).collect();
    Shard::new(pools, 64, sleeper, Arc::new(Queues::new()), Clock::manual(), Decider::Caller)
}

fn submission(flow: u32, cost: u32) -> Submission {
    Submission { cost, ..Submission::new(0, flow, u64::MAX) }
}

fn state<R>(pool: &PoolCore, look: impl FnOnce(&mut PoolState) -> R) -> R {
    let TryLock::Ours(word) = pool.gate.try_lock() else { panic!("nobody else runs") };
    // SAFETY: LOCK was taken above.
    let seen = unsafe { pool.with_state(look) };
    pool.gate.unlock(word.without_lock());
    seen
}

/// The one slot is taken and somebody stands behind a hole in the ring when the drain comes: the hole, and his entry.
fn drained_behind_a_hole(shard: &Shard) -> (u64, u32) {
    let pool = &shard.pools()[0];
    let ask = submission(NONE, 1);
    assert_eq!(shard.submit(pool, &ask), Answer::Granted);
    let hole = pool.ring.leave_hole().unwrap();
    let Answer::Queued { idx, .. } = shard.submit(pool, &ask) else { panic!("behind the hole") };
    shard.drain(pool);
    (hole, idx)
}

#[test]
fn a_submit_behind_a_hole_keeps_its_place_in_a_drain() {
    let shard = shard(1, 8);
    let pool = &shard.pools()[0];
    let (hole, idx) = drained_behind_a_hole(&shard);
    let late = shard.submit(pool, &submission(NONE, 1));
    assert_eq!(late, Answer::Rejected(Reason::ShuttingDown), "the drain is in force for newcomers");
    pool.ring.fill_hole(hole, codes::cancel(63, 99));
    shard.try_turn(pool, &Now::lazy(shard.clock()), TURN_BUDGET);
    assert_eq!(
        shard.slab().state(idx).unwrap().phase(),
        Phase::Queued,
        "accepted before the drain"
    );
    assert!(shard.view(pool).closed);
    shard.release(pool, NONE, 1, 1);
    assert_eq!(shard.slab().state(idx).unwrap().phase(), Phase::Granted);
}

#[test]
fn a_shutdown_does_not_wait_for_the_drain_before_it() {
    let shard = shard(1, 8);
    let pool = &shard.pools()[0];
    let (hole, idx) = drained_behind_a_hole(&shard);
    shard.shut_down(pool);
    assert!(shard.view(pool).closed);
    pool.ring.fill_hole(hole, codes::cancel(63, 99));
    shard.try_turn(pool, &Now::lazy(shard.clock()), TURN_BUDGET);
    assert_eq!(shard.slab().state(idx).unwrap().reason(), Some(Reason::ShuttingDown));
}

/// Releases that found the ring full are owed, with what they used above or below their estimates.
#[test]
fn what_owed_releases_really_used_is_settled_to_the_token() {
    for (charged, actual) in [(100, 40), (40, 100), (100, 100), (1, u32::MAX), (1 << 20, 0)] {
        const PERMITS: u32 = 300;
        let shard = shard(PERMITS, 1);
        let pool = &shard.pools()[0];
        let flow = state(pool, |st| {
            let tenant = TenantRow { usage: Usage::up_to(PERMITS), weight: 1, group: 0 };
            st.caps.add_tenant(tenant, PERMITS, 1).0
        });
        pool.add_flow_node(flow);
        for _ in 0..PERMITS {
            assert_eq!(shard.submit(pool, &submission(flow, charged)), Answer::Granted);
        }
        let TryLock::Ours(word) = pool.gate.try_lock() else { panic!("nobody else runs") };
        for _ in 0..PERMITS {
            shard.release(pool, flow, charged, actual);
        }
        pool.gate.unlock(word.without_lock());
        shard.try_turn(pool, &Now::lazy(shard.clock()), TURN_BUDGET);
        let (key, tenant) = state(pool, |st| {
            let (key, tenant) =
                (st.caps.flow(flow).unwrap().usage, st.caps.tenant(flow).unwrap().usage);
            ((key.running, key.served), (tenant.running, tenant.served))
        });
        let used = u64::from(actual) * u64::from(PERMITS);
        assert_eq!((key, tenant), ((0, used), (0, used)), "charged {charged}, used {actual}");
        assert_eq!(shard.view(pool).free, 300);
    }
}
