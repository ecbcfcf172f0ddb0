//! The vacuity guard around `loom::model`.

use core::cell::RefCell;
use core::sync::atomic::{AtomicU64, Ordering};
use std::collections::BTreeMap;
use std::panic;
use std::sync::{Arc, Mutex, Once, PoisonError};
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
    report_failures();
    CURRENT.replace(Some((name.to_string(), Arc::clone(&ghost))));
    let inner = Arc::clone(&ghost);
    let start = Instant::now();
    builder.check(move || {
        // ORDERING: Relaxed; loom runs a model's threads on one.
        inner.executions.fetch_add(1, Ordering::Relaxed);
        model(&inner);
    });
    CURRENT.replace(None);
    let executions = ghost.execution();
    let bound = bound.chosen().map_or_else(|| "none".to_string(), |b| b.to_string());
    let seconds = start.elapsed().as_secs_f64();
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

thread_local! {
    /// The model that this thread explores.
    static CURRENT: RefCell<Option<(String, Arc<Ghost>)>> = const { RefCell::new(None) };
}

/// Makes the first panic of a model say at which execution it came. In the hook and not around the
/// model, because loom aborts the process when it unwinds out of a deadlock.
#[allow(clippy::print_stdout, reason = "a test's report")]
fn report_failures() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let next = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            if let Ok(Some((name, ghost))) = CURRENT.try_with(RefCell::take) {
                println!("{name}: FAILED at execution {}", ghost.execution());
            }
            next(info);
        }));
    });
}
