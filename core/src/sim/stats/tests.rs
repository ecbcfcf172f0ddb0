#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use proptest::prelude::*;

use super::{BUCKETS, Collector, Series};
use crate::error::Reason;

/// What happened, for the naive recount.
#[derive(Clone, Copy, Debug)]
enum Event {
    Queued(u8),
    Granted { band: u8, t: u64, wait: u64, queued: bool },
    Evicted(u8),
}

const BANDS: u8 = 3;

/// Turns arbitrary draws into a history that could have happened: grants and evictions only of waiters.
fn history(draws: &[(u8, u8, u32)]) -> Vec<Event> {
    let mut waiting = [0u32; BANDS as usize];
    let mut t = 0;
    // Everybody waits at the start, so that full gaps occur.
    let mut events: Vec<Event> = (0..3 * BANDS).map(|n| Event::Queued(n % BANDS)).collect();
    waiting.fill(3);
    for &(what, band, value) in draws {
        let band = band % BANDS;
        let count = &mut waiting[usize::from(band)];
        t += u64::from(value) * 1000;
        let wait = u64::from(value) * 77;
        match what % 8 {
            0..=3 => {
                *count += 1;
                events.push(Event::Queued(band));
            }
            4 if *count > 0 => {
                *count -= 1;
                events.push(Event::Evicted(band));
            }
            5 if *count == 0 => events.push(Event::Granted { band, t, wait, queued: false }),
            _ if *count > 0 => {
                *count -= 1;
                events.push(Event::Granted { band, t, wait, queued: true });
            }
            _ => {}
        }
    }
    events
}

fn collect(events: &[Event]) -> Collector {
    let mut collector = Collector::new(usize::from(BANDS)).unwrap();
    for &event in events {
        match event {
            Event::Queued(band) => collector.queued(band),
            Event::Granted { band, t, wait, queued } => collector.granted(band, t, wait, queued),
            Event::Evicted(band) => collector.evicted(band, Reason::Deadline),
        }
    }
    collector.finish();
    collector
}

/// Per band (dispatched, dispatched while all were backlogged, longest run, longest gap, longest full gap): recounted from the
/// whole history at every step.
fn recount(events: &[Event], band: u8) -> (u64, u64, u64, u64, u64) {
    let waiting_before = |i: usize, of: u8| {
        events[..i].iter().fold(0i64, |n, e| match *e {
            Event::Queued(b) if b == of => n + 1,
            Event::Evicted(b) if b == of => n - 1,
            Event::Granted { band: b, queued: true, .. } if b == of => n - 1,
            _ => n,
        })
    };
    let (mut dispatched, mut all, mut longest_run, mut longest_gap, mut longest_full) =
        (0, 0, 0, 0, 0);
    // The run in progress, whether a dispatch of the band began it, and whether all were backlogged since.
    let (mut run, mut after_own, mut full) = (0, false, false);
    for (i, event) in events.iter().enumerate() {
        let before = waiting_before(i, band);
        let Event::Granted { band: b, .. } = *event else {
            if before == 0 {
                (run, after_own, full) = (0, false, false);
            }
            continue;
        };
        let all_wait = (0..BANDS).all(|other| waiting_before(i, other) > 0);
        full &= all_wait;
        if b != band {
            if before > 0 {
                run += 1;
                longest_run = longest_run.max(run);
            }
            continue;
        }
        dispatched += 1;
        all += u64::from(all_wait);
        if before > 0 && after_own {
            longest_gap = longest_gap.max(run);
            if full {
                longest_full = longest_full.max(run);
            }
        }
        (run, after_own, full) = (0, waiting_before(i + 1, band) > 0, all_wait);
    }
    (dispatched, all, longest_run, longest_gap, longest_full)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn incremental_counts_equal_a_naive_recount(
        draws in proptest::collection::vec((any::<u8>(), any::<u8>(), any::<u32>()), 0..120),
    ) {
        let events = history(&draws);
        let collector = collect(&events);
        let mut sums = (0, 0);
        for band in 0..BANDS {
            let stats = &collector.bands()[usize::from(band)];
            let counted = (
                stats.dispatched,
                stats.dispatched_all_backlogged,
                stats.longest_run,
                stats.longest_gap,
                stats.longest_full_gap,
            );
            prop_assert_eq!(counted, recount(&events, band), "band {}", band);
            let waits: Vec<u64> = events
                .iter()
                .filter_map(|e| match *e {
                    Event::Granted { band: b, wait, .. } if b == band => Some(wait),
                    _ => None,
                })
                .collect();
            prop_assert_eq!(stats.wait_ns_max, waits.iter().copied().max().unwrap_or(0));
            prop_assert_eq!(stats.waits.len(), waits.len() as u64);
            let longest = stats.series.points().map(|(_, wait)| wait).max();
            prop_assert_eq!(longest, waits.iter().copied().max());
            sums = (sums.0 + counted.0, sums.1 + counted.1);
        }
        prop_assert_eq!(sums, (collector.dispatches(), collector.dispatches_all_backlogged()));
    }

    #[test]
    fn percentiles_are_those_of_the_sorted_waits_to_three_digits(
        mut waits in proptest::collection::vec(0u64..1 << 45, 1..200),
    ) {
        let mut collector = Collector::new(1).unwrap();
        for &wait in &waits {
            collector.granted(0, 0, wait, false);
        }
        waits.sort_unstable();
        for (percent, quantile) in [(50, 0.5), (90, 0.9), (99, 0.99)] {
            let exact = waits[(waits.len() * percent).div_ceil(100) - 1];
            let got = collector.bands()[0].waits.value_at_quantile(quantile);
            prop_assert!(got.abs_diff(exact) <= exact / 1000 + 1, "p{percent}: {got} for {exact}");
        }
    }
}

#[test]
fn a_series_keeps_the_longest_wait_of_each_stretch_however_far_time_runs() {
    let mut series = Series::new();
    series.record(0, 5);
    series.record(1, 9);
    series.record(1 << 17, 0);
    assert_eq!(series.points().collect::<Vec<_>>(), [(0, 9), (1 << 17, 0)]);
    series.record(u64::MAX, 7);
    let points: Vec<(u64, u64)> = series.points().collect();
    assert_eq!(points, [(0, 9), (u64::MAX - series.bucket_ns() + 1, 7)]);
    assert!(points.len() <= BUCKETS);
}

#[test]
fn a_band_that_waits_to_the_end_counts_its_last_run() {
    let mut collector = Collector::new(2).unwrap();
    collector.queued(1);
    for t in 0..500 {
        collector.granted(0, t, 0, false);
    }
    collector.finish();
    let low = &collector.bands()[1];
    assert_eq!((low.longest_run, low.longest_gap, low.waiting), (500, 0, 1));
}
