//! P16: admit + release of a request that may run, while 32 requests of a gated band and 32 of a tenant at its cap
//! wait. No peer has either; it stands beside P2 and P3.

use bandgate_benches::ours::beside::Blocked;
use criterion::Criterion;

pub(crate) fn run(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("P16");
    let blocked = Blocked::new();
    let beside = blocked.begin();
    group.bench_function("bandgate", |b| b.iter(|| beside.admit_release()));
    assert_eq!(beside.waiting(), 64, "nobody was granted meanwhile");
    group.finish();
}
