//! The vacuity guard around `loom::model`.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

/// How many preemptions a schedule may have: at most `usual`, or `deep` if `LOOM_DEEP` is set and not 0.
/// `None`: any number.
#[derive(Clone, Copy, Debug)]
pub struct Bound {
    /// In every run.
    pub usual: Option<usize>,
    /// In a nightly run.
    pub deep: Option<usize>,
}

impl Bound {
    /// Every schedule, always.
    pub const NONE: Self = Self { usual: None, deep: None };

    /// Two numbers of preemptions.
    pub const fn new(usual: usize, deep: usize) -> Self {
        Self { usual: Some(usual), deep: Some(deep) }
    }

    fn chosen(self) -> Option<usize> {
        let deep = std::env::var("LOOM_DEEP").is_ok_and(|v| v != "0");
        if deep { self.deep } else { self.usual }
    }
}

/// What a model saw, over all its executions; outside loom, so it neither costs schedules nor orders.
#[derive(Debug, Default)]
pub struct Ghost {
    executions: AtomicU64,
    seen: Mutex<BTreeMap<&'static str, u64>>,
}

impl Ghost {
    /// Notes that this outcome was reached.
    pub fn saw(&self, witness: &'static str) {
        *self.seen.lock().unwrap_or_else(PoisonError::into_inner).entry(witness).or_default() += 1;
    }

    /// The execution that is running, from 1.
    pub fn execution(&self) -> u64 {
        // ORDERING: Relaxed; loom runs a model's threads on one.
        self.executions.load(Ordering::Relaxed)
    }
}

/// Explores every schedule of `model` up to `bound` preemptions and prints what it took.
///
/// A model that is empty by mistake is green as well. So this also fails if there were fewer than
/// `min_executions`, or if one of `witnesses` (outcomes that must be reachable, noted by
/// [`Ghost::saw`]) was never seen. With `BANDGATE_PLANT` set, a bug is planted: the model is then
/// expected to fail, and says at which execution.
#[allow(clippy::print_stdout, reason = "a test's report")]
pub fn check(
    name: &str,
    min_executions: u64,
    bound: Bound,
    witnesses: &[&'static str],
    model: impl Fn(&Arc<Ghost>) + Send + Sync + 'static,
) {
    let ghost = Arc::new(Ghost::default());
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = bound.chosen();
    builder.max_branches = 20_000;
    let inner = Arc::clone(&ghost);
    let start = Instant::now();
    let result = catch_unwind(AssertUnwindSafe(|| {
        builder.check(move || {
            // ORDERING: Relaxed; loom runs a model's threads on one.
            inner.executions.fetch_add(1, Ordering::Relaxed);
            model(&inner);
        });
    }));
    let executions = ghost.execution();
    let bound = bound.chosen().map_or_else(|| "none".to_string(), |b| b.to_string());
    let seconds = start.elapsed().as_secs_f64();
    if let Err(panic) = result {
        println!("{name}: FAILED at execution {executions} (bound {bound}, {seconds:.2} s)");
        resume_unwind(panic);
    }
    let seen = ghost.seen.lock().unwrap_or_else(PoisonError::into_inner).clone();
    println!("{name}: {executions} executions, bound {bound}, {seconds:.2} s, witnesses {seen:?}");
    assert!(
        executions >= min_executions,
        "{name}: only {executions} of {min_executions} executions"
    );
    for witness in witnesses {
        assert!(seen.contains_key(witness), "{name}: never saw {witness:?}");
    }
}
