//! The engine ceiling: two pools of one slot, one unit. Rows E1 to E4.
//!
//! In each model the forbidden end is an idle unit beside a pool that has somebody to run.
#![cfg(loom)]

use bandgate_core::admit::word::PoolWord;
use bandgate_core::clock::Clock;
use bandgate_core::notify::doorbell::Doorbell;
use bandgate_core::notify::parker::{Choice, Parker};
use bandgate_core::shard::ceiling::{Ceiling, Given};
use bandgate_core::shard::completions::Queues;
use bandgate_core::shard::hold::{Answer, Submission};
use bandgate_core::shard::pool::PoolCore;
use bandgate_core::shard::{Decider, Shard, Sleeper};
use bandgate_core::slab::{Phase, State};
use bandgate_core::sync::Arc;
use bandgate_core::types::NONE;
use bandgate_core::types::settings::PoolSettings;
use bandgate_loom_tests::world::check_world;
use bandgate_loom_tests::{Bound, check};
use loom::thread::{Builder, JoinHandle};

/// Two pools under a ceiling of one unit, which is spare.
fn shard() -> Arc<Shard> {
    let (ceiling, units) = Ceiling::split(1, &[1, 1]);
    let mut settings = PoolSettings::new("p", 1);
    settings.ring_capacity = 2;
    settings.max_flows = 1;
    let pool = |n: u32| PoolCore::with_units(n, n as usize, &settings, 2, units[n as usize]);
    let pools: Box<[PoolCore]> = [0, 1].into_iter().map(pool).collect();
    let sleeper = Arc::new(Sleeper::new(Doorbell::new(Parker::new(Choice::Best))));
    let queues = Arc::new(Queues::new());
    let clock = Clock::manual();
    let shard = Shard::new(pools, 2, sleeper, queues, clock, Decider::Caller);
    Arc::new(shard.under(Some(Arc::new(ceiling))))
}

fn submit(shard: &Shard, pool: usize) -> Answer {
    let timeout_ns = u64::MAX;
    let request = Submission::new(0, NONE, timeout_ns);
    shard.submit(&shard.pools()[pool], &request)
}

fn release(shard: &Shard, pool: usize) {
    shard.release(&shard.pools()[pool], NONE, 1, 1);
}

/// A thread of 512 KiB of stack, as a turn wants.
fn actor<T: Send + 'static>(f: impl FnOnce() -> T + Send + 'static) -> JoinHandle<T> {
    Builder::new().stack_size(0x1_0000).spawn(f).expect("loom's limit of threads")
}

/// What a keeper does: runs the pools whose turns ran out of budget, which is tiny here.
fn keep(shard: &Shard) {
    for _ in 0..20 {
        if !shard.has_work() {
            return;
        }
        shard.poll(0);
    }
    panic!("the pools are scheduled again and again");
}

/// The request has its slot: at once, or by now. It gives it back.
fn must_have_slot(shard: &Shard, pool: usize, answer: Answer) {
    if let Answer::Queued { idx, .. } = answer {
        keep(shard);
        let phase = shard.slab().state(idx).map(State::phase);
        assert_eq!(phase, Some(Phase::Granted), "idle unit beside a waiter of pool {pool}");
        shard.slab().give(idx);
    } else {
        assert_eq!(answer, Answer::Granted);
    }
    release(shard, pool);
}

/// Nothing runs, nothing waits, and the one unit is somewhere.
fn settle(shard: &Shard) {
    keep(shard);
    for pool in shard.pools() {
        assert!(pool.ring.is_empty() && !pool.has_mail(), "stranded command");
        let word = pool.gate.peek();
        assert!(!word.has(PoolWord::LOCK), "LOCK left");
        let view = shard.view(pool);
        assert_eq!((view.running, view.waiting), (0, 0));
        assert!(view.free <= 1);
    }
    // Whoever asks now gets it, wherever it lies.
    must_have_slot(shard, 0, submit(shard, 0));
    must_have_slot(shard, 1, submit(shard, 1));
}

/// E1, E3, E4: the unit is in use when the other pool asks, and its release passes it on.
#[test]
fn e1_a_release_passes_the_unit_to_the_pool_that_asks() {
    check_world("e1", 50, Bound::new(2, 4), &["queued"], |ghost| {
        let shard = shard();
        assert_eq!(submit(&shard, 0), Answer::Granted);
        let (releases, asks) = (Arc::clone(&shard), Arc::clone(&shard));
        let holder = actor(move || release(&releases, 0));
        let asker = actor(move || submit(&asks, 1));
        holder.join().expect("the holder returns");
        let answer = asker.join().expect("the asker returns");
        if matches!(answer, Answer::Queued { .. }) {
            ghost.saw("queued");
        }
        must_have_slot(&shard, 1, answer);
        settle(&shard);
    });
}

/// E2, the ceiling alone: one pool gives its idle unit back while the other asks. Either the giver finds the
/// asker or the asker finds the unit; whatever drives pools afterwards is not there to help.
#[test]
fn e2_an_idle_unit_and_its_asker_find_each_other() {
    check("e2 alone", 50, Bound::NONE, &["by mail", "by the second look"], |ghost| {
        let (ceiling, units) = Ceiling::split(1, &[1, 0]);
        assert_eq!(units[..], [1, 0]);
        let ceiling = Arc::new(ceiling);
        let giver = Arc::clone(&ceiling);
        let giver = actor(move || giver.give(0));
        let (_is_new, found) = ceiling.ask(1);
        let given = giver.join().expect("the giver returns");
        let mail = ceiling.open_mail(1);
        ghost.saw(if mail == 1 { "by mail" } else { "by the second look" });
        assert_eq!(mail, u32::from(given == Given::To(1)));
        // `SpareAsked` has every pool look again, so it is no idle unit.
        let is_idle = ceiling.spare() == 1 && given != Given::SpareAsked;
        assert!(!is_idle, "idle unit beside a pool that asks");
        assert_eq!(found + mail + ceiling.spare(), 1, "the unit is in one place");
    });
}

/// E2: both pools use and want the unit; one that becomes idle meanwhile is found.
#[test]
fn e2_a_unit_that_becomes_idle_is_found_by_who_asks() {
    check_world("e2", 50, Bound::new(2, 4), &["queued"], |ghost| {
        let shard = shard();
        let actors: Vec<_> = [0, 1]
            .into_iter()
            .map(|pool| {
                let shard = Arc::clone(&shard);
                actor(move || {
                    let answer = submit(&shard, pool);
                    if answer == Answer::Granted {
                        release(&shard, pool);
                    }
                    answer
                })
            })
            .collect();
        let answers: Vec<_> = actors.into_iter().map(|a| a.join().expect("it returns")).collect();
        // At most one waits on: whoever was granted at once has given back.
        for (pool, answer) in answers.into_iter().enumerate() {
            if matches!(answer, Answer::Queued { .. }) {
                ghost.saw("queued");
                must_have_slot(&shard, pool, answer);
            }
        }
        settle(&shard);
    });
}
