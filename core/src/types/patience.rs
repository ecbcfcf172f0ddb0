//! How long a request may wait, in one word, and when what waits is due while backends come and go.
#![forbid(unsafe_code)]

/// For ever.
pub const FOREVER: u64 = u64::MAX;
/// As the band, else the engine, says.
pub const DEFAULT: u64 = u64::MAX - 1;

/// Times from here on (146 years) are for ever.
const LIMIT: u64 = 1 << 62;
/// Words from here on are a time to live: what the configuration or a client's hint allows.
const TO_LIVE: u64 = LIMIT;
/// Words from here on are an absolute time.
const AT: u64 = 1 << 63;

/// The word for a timeout of the host's own.
#[inline]
pub const fn timeout(ns: u64) -> u64 {
    if ns < LIMIT { ns } else { FOREVER }
}

/// The word for a client's hint, which may only shorten; 0 says nothing.
#[inline]
pub const fn hint(ns: u64) -> u64 {
    if ns == 0 || ns >= LIMIT { DEFAULT } else { TO_LIVE | ns }
}

/// The word for an absolute deadline.
#[inline]
pub const fn at(ns: u64) -> u64 {
    if ns < LIMIT { AT | ns } else { FOREVER }
}

/// The absolute deadline, if the word is one.
#[inline]
pub const fn absolute(word: u64) -> Option<u64> {
    if word >= AT && word < DEFAULT { Some(word & !AT) } else { None }
}

/// What a request that says nothing may wait where `to_live` (nanoseconds, or [`FOREVER`]) is the band's time to live:
/// a time to live or [`FOREVER`]; 0: it does not wait.
pub const fn standing(to_live: u64) -> u64 {
    match to_live {
        0 => 0,
        LIMIT.. => FOREVER,
        ns => TO_LIVE | ns,
    }
}

/// What remains of a request's word where the band says [`standing`]: a timeout, an absolute deadline, a time to live
/// or [`FOREVER`]; 0: it does not wait.
#[inline(always)]
pub fn resolve(word: u64, standing: impl FnOnce() -> u64) -> u64 {
    match word {
        FOREVER => FOREVER,
        DEFAULT => standing(),
        _ if !(LIMIT..AT).contains(&word) => word,
        _ => shorter(word, standing()),
    }
}

/// A hint or what stands, whichever is less. As a time to live [`FOREVER`] is beyond all others, and 0 below.
#[cold]
const fn shorter(hint: u64, standing: u64) -> u64 {
    if hint < standing { hint } else { standing }
}

/// The time a [resolved](resolve) word means; the clock is asked only if that depends on it.
#[inline(always)]
pub fn deadline(word: u64, now_ns: impl FnOnce() -> u64) -> u64 {
    match word {
        FOREVER => FOREVER,
        _ if word < AT => now_ns().saturating_add(word & !TO_LIVE),
        _ => word & !AT,
    }
}

/// The parts of a resolved word: the time to live, and the time after which nobody waits for the answer.
#[inline]
pub fn parts(word: u64, now_ns: impl FnOnce() -> u64) -> (u64, u64) {
    match word {
        TO_LIVE..AT => (word & !TO_LIVE, FOREVER),
        _ => (FOREVER, deadline(word, now_ns)),
    }
}

/// Whether a pool has backends, and since when that holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Regime {
    /// No backend exists.
    pub is_empty: bool,
    /// Since when, in nanoseconds of the engine's clock; 0: from the start.
    pub since_ns: u64,
}

/// The budgets of one request that waits, in nanoseconds; `u64::MAX`: no such bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Budgets {
    /// When it was queued.
    pub queued_ns: u64,
    /// While backends exist: its time to live.
    pub to_live_ns: u64,
    /// While none exists.
    pub without_backend_ns: u64,
    /// Absolute end in both regimes.
    pub limit_ns: u64,
}

impl Budgets {
    /// When it is due if the regime stays: a change of the regime grants the other budget afresh. Reached means due.
    pub const fn due_ns(&self, regime: Regime) -> u64 {
        let budget = if regime.is_empty { self.without_backend_ns } else { self.to_live_ns };
        let start = max(self.queued_ns, regime.since_ns);
        min(start.saturating_add(budget), self.limit_ns)
    }

    /// When it is to be looked at again: never after it is due, whatever the regime does from `now_ns` on. A change at
    /// a later `t` makes it due no earlier than `t` and the other budget, so a change needs no walk over who waits.
    pub const fn look_again_ns(&self, regime: Regime, now_ns: u64) -> u64 {
        let other = if regime.is_empty { self.to_live_ns } else { self.without_backend_ns };
        min(self.due_ns(regime), now_ns.saturating_add(other))
    }
}

const fn min(a: u64, b: u64) -> u64 {
    if a < b { a } else { b }
}

const fn max(a: u64, b: u64) -> u64 {
    if a < b { b } else { a }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_hint_only_shortens_and_a_hosts_own_timeout_stands() {
        let resolve = |word, to_live| resolve(word, || standing(to_live));
        let means = |word, to_live| deadline(resolve(word, to_live), || 1_000);
        assert_eq!(means(DEFAULT, 60), 1_060);
        assert_eq!((means(hint(20), 60), means(hint(100), 60)), (1_020, 1_060));
        assert_eq!((means(hint(0), 60), means(hint(7), FOREVER)), (1_060, 1_007));
        assert_eq!((means(timeout(100), 60), means(FOREVER, 60)), (1_100, FOREVER));
        assert_eq!((means(at(40), 60), absolute(at(40)), absolute(DEFAULT)), (40, Some(40), None));
        // Nobody waits in a band whose time to live is 0; a timeout of 0 is now or never.
        assert_eq!((resolve(DEFAULT, 0), resolve(hint(5), 0), resolve(timeout(0), 60)), (0, 0, 0));
        assert_eq!(means(timeout(u64::MAX / 2), 60), FOREVER);
    }

    /// The time at which somebody looking at every nanosecond would first find it due.
    fn found_due(budgets: Budgets, flips: &[u64]) -> Option<u64> {
        (budgets.queued_ns..2_000).find(|&now| budgets.due_ns(regime_at(flips, now)) <= now)
    }

    fn regime_at(flips: &[u64], now_ns: u64) -> Regime {
        let past = flips.iter().filter(|&&at| at <= now_ns).count();
        Regime { is_empty: past % 2 == 1, since_ns: flips[..past].last().copied().unwrap_or(0) }
    }

    proptest! {
        #[test]
        fn who_looks_when_told_finds_it_due_to_the_nanosecond(
            queued_ns in 0..100_u64,
            to_live_ns in prop_oneof![1..200_u64, Just(FOREVER)],
            without_backend_ns in prop_oneof![1..200_u64, Just(FOREVER)],
            limit_ns in prop_oneof![100..900_u64, Just(FOREVER)],
            mut flips in prop::collection::btree_set(0..800_u64, 0..12),
        ) {
            let flips: Vec<u64> = core::mem::take(&mut flips).into_iter().collect();
            let budgets = Budgets { queued_ns, to_live_ns, without_backend_ns, limit_ns };
            let mut now = queued_ns;
            let mut looks = 0;
            let found = loop {
                let regime = regime_at(&flips, now);
                if budgets.due_ns(regime) <= now {
                    break Some(now);
                }
                let next = budgets.look_again_ns(regime, now);
                if next >= 2_000 {
                    break None;
                }
                prop_assert!(next > now);
                (now, looks) = (next, looks + 1);
            };
            prop_assert_eq!(found, found_due(budgets, &flips));
            prop_assert!(looks <= 2_000 / to_live_ns.min(without_backend_ns) + 14);
        }
    }
}
