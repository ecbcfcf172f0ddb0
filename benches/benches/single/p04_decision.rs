//! P4: one decision: queue one request, choose and remove the next, with so many waiting.
//!
//! Where the new request goes decides what is measured. *Backlogged*: into the band served last, so that each band keeps
//! its depth and the request taken is the oldest of a long queue, cold in the cache at 1M. *Random*: into any band;
//! under strict priority the upper bands then run empty and most requests are taken the moment they come.

use core::hint::black_box;

use bandgate_benches::{
    ours::decision::Decision,
    peers::bands::{Bitmap, FinishTags},
    rng::Rng,
};
use criterion::{BenchmarkId, Criterion};

/// Waiting requests, and how the table calls them.
const DEPTHS: [(u32, &str); 3] = [(1_000, "1k"), (100_000, "100k"), (1_000_000, "1M")];

pub(crate) fn run(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("P4");
    for (depth, name) in DEPTHS {
        // Made on first use: a filtered run must not build what it does not measure.
        let mut made = None;
        group.bench_function(BenchmarkId::new("bandgate_strict", name), |b| {
            let decision = made.get_or_insert_with(|| Decision::strict(depth));
            b.iter(|| decision.step_backlogged());
        });
        let mut made = None;
        group.bench_function(BenchmarkId::new("bandgate_strict_random", name), |b| {
            let decision = made.get_or_insert_with(|| Decision::strict(depth));
            b.iter(|| decision.step());
        });
        let mut made = None;
        group.bench_function(BenchmarkId::new("bandgate_wfq", name), |b| {
            let decision = made.get_or_insert_with(|| Decision::weighted(depth));
            b.iter(|| decision.step_backlogged());
        });
        let mut made = None;
        group.bench_function(BenchmarkId::new("bitmap_vecdeque", name), |b| {
            let (bands, rng) = made.get_or_insert_with(|| bitmap(depth));
            b.iter(|| {
                bands.push(rng.below(8), depth);
                black_box(bands.pop())
            });
        });
        let mut made = None;
        group.bench_function(BenchmarkId::new("bitmap_backlogged", name), |b| {
            let (bands, served) = made.get_or_insert_with(|| (bitmap(depth).0, (0, depth)));
            b.iter(|| {
                bands.push(served.0, served.1);
                *served = bands.pop().unwrap_or_default();
            });
        });
        let mut made = None;
        group.bench_function(BenchmarkId::new("finish_tag_heap", name), |b| {
            let (tags, rng) = made.get_or_insert_with(|| finish_tags(depth));
            b.iter(|| {
                push_tagged(tags, rng);
                black_box(tags.pop())
            });
        });
    }
    group.finish();
}

fn bitmap(depth: u32) -> (Bitmap, Rng) {
    let (mut bands, mut rng) = (Bitmap::default(), Rng::new(1));
    for id in rng.shuffled(depth) {
        bands.push(rng.below(8), id);
    }
    (bands, rng)
}

fn finish_tags(depth: u32) -> (FinishTags, Rng) {
    let (mut tags, mut rng) = (FinishTags::default(), Rng::new(1));
    for _ in 0..depth {
        push_tagged(&mut tags, &mut rng);
    }
    (tags, rng)
}

#[inline(always)]
fn push_tagged(tags: &mut FinishTags, rng: &mut Rng) {
    let bits = rng.bits();
    let tenant = u32::try_from(bits & 63).unwrap_or(0);
    tags.push(tenant, 1 + (bits >> 8) % 100);
}
