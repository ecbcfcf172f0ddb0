//! The worst case that the structure is made for: one tenant at its cap with very many keys.

use alloc::vec;

use super::model::Pool;

const KEYS: u32 = 10_000;
const BANDS: u32 = 8;
const LOG: u64 = 14; // log2 of KEYS, rounded up

/// 10,000 keys of one tenant that may run one at a time, each waiting in one of 8 bands, all looked at once.
fn crowded() -> Pool {
    let mut pool = Pool::new(BANDS, KEYS, vec![0; KEYS as usize], 1);
    for flow in 0..KEYS {
        pool.enqueue(0, flow.wrapping_mul(2_654_435_761) >> 7, flow);
    }
    assert!(pool.grant(0));
    for band in 0..BANDS {
        assert_eq!(pool.front(band), None);
    }
    assert_eq!(pool.queues.capped(), KEYS - 1);
    pool
}

#[test]
fn a_release_of_a_capped_tenant_touches_few_of_its_ten_thousand_keys() {
    let mut pool = crowded();
    for round in 0..100_u32 {
        let before = pool.queues.lanes.steps;
        pool.release(0);
        let released = pool.queues.lanes.steps - before;
        assert!(released <= u64::from(BANDS) * 6 * LOG, "{released} steps to release");
        assert!(pool.queues.ready().count_ones() <= BANDS);
        assert!(
            pool.queues.waiting() - pool.queues.capped() <= BANDS,
            "one lane per band came back"
        );
        assert!(pool.grant(round));
        for band in 0..BANDS {
            assert_eq!(pool.front(band), None);
        }
        let all = pool.queues.lanes.steps - before;
        assert!(
            all <= u64::from(BANDS) * 12 * LOG,
            "{all} steps for release, grant and looking at every band"
        );
    }
}

#[test]
fn cancelling_keys_of_a_capped_tenant_takes_logarithmic_steps() {
    let mut pool = crowded();
    for pick in 0..500_usize {
        let before = pool.queues.lanes.steps;
        pool.cancel(pick * 17);
        let steps = pool.queues.lanes.steps - before;
        assert!(steps <= 6 * LOG, "{steps} steps to cancel");
    }
    pool.check_counts();
}
