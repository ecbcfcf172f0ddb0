//! A real pool in a real shard, and the books a model keeps about it.
//!
//! The calls are those of [`Shard`]; beside each stands what it means, in plain memory under a std mutex
//! that loom does not see. [`World::settle`] holds the two against each other when all actors have
//! returned; [`World::finish`] then ends everything and looks once more.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bandgate_core::Reason;
use bandgate_core::admit::word::{PoolWord, TryLock};
use bandgate_core::clock::{Clock, Now};
use bandgate_core::config::flows::{NewFlow, RowSpec};
use bandgate_core::notify::doorbell::Doorbell;
use bandgate_core::notify::parker::{Choice, Parker};
use bandgate_core::shard::completions::Queues;
use bandgate_core::shard::hold::{Answer, Submission};
use bandgate_core::shard::pool::PoolCore;
use bandgate_core::shard::{Decider, Shard, Sleeper};
use bandgate_core::slab::Phase;
use bandgate_core::sync::{AtomicU32, Ordering, fence};
use bandgate_core::types::policy::Holdback;
use bandgate_core::types::settings::PoolSettings;
use bandgate_core::types::{NONE, TURN_BUDGET};
use loom::thread::{Builder, JoinHandle};

use crate::{Bound, Ghost, check};

mod settle;

/// The urgent band of a world with two; the only one of a world with one.
pub const HIGH: u8 = 0;
/// The other band: with [`Spec::GATED`] it may use half of the slots.
pub const LOW: u8 = 1;

/// What a world is made of.
#[derive(Clone, Copy, Debug)]
pub struct Spec {
    /// Slots of the pool.
    pub slots: u32,
    /// Whether there are two bands, the lower one with a ceiling of one half.
    pub gated: bool,
    /// Places of the command ring.
    pub ring: u32,
    /// Requests that may wait.
    pub slab: u32,
    /// Cap of each flow; all are keys of one tenant.
    pub flows: &'static [u32],
    /// Cap of that tenant.
    pub tenant: u32,
}

impl Spec {
    /// One band, one slot.
    pub const ONE: Self =
        Self { slots: 1, gated: false, ring: 2, slab: 4, flows: &[], tenant: u32::MAX };
    /// One band, two slots.
    pub const TWO: Self = Self { slots: 2, ..Self::ONE };
    /// Two bands and two slots, of which the lower band may use one.
    pub const GATED: Self = Self { gated: true, ..Self::TWO };
}

/// A request that waits, or waited.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ticket {
    idx: u32,
    generation: u32,
    band: u8,
    flow: u32,
}

impl Ticket {
    /// Slab index and generation.
    pub fn name(self) -> (u32, u32) {
        (self.idx, self.generation)
    }

    /// Its name in 64 bits, to tell another actor.
    pub fn pack(self) -> u64 {
        u64::from(self.generation) << 32 | u64::from(self.idx)
    }
}

/// What a call for a slot gave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Got {
    /// A slot.
    Slot,
    /// A place in the queue.
    Waits(Ticket),
    /// Nothing.
    Refused(Reason),
}

/// What the model knows, exact at every step.
#[derive(Debug, Default)]
struct Books {
    /// Slots in the hands of actors, by flow; the anonymous ones last.
    running: Vec<u32>,
    /// Most that may run at once, over the whole model.
    most: u32,
    /// Tickets whose outcome nobody has taken.
    open: Vec<Ticket>,
    /// From now on the pool-only path must refuse.
    closed: bool,
    /// Must not be evicted in the end.
    unharmed: Vec<Ticket>,
    /// Must be evicted in the end.
    refused: Vec<Ticket>,
}

/// A note of the model's own, which loom does not see.
#[derive(Debug, Default)]
pub struct Flag(Mutex<bool>);

impl Flag {
    /// Sets it.
    pub fn set(&self) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = true;
    }

    /// Whether it was set.
    pub fn is_set(&self) -> bool {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl std::task::Wake for Flag {
    fn wake(self: Arc<Self>) {
        self.set();
    }
}

/// LOCK, taken before the actors start; [`World::leave`] gives it back.
#[derive(Debug)]
pub struct Held(PoolWord);

/// A shard with one pool.
#[derive(Debug)]
pub struct World {
    /// The shard.
    pub shard: Shard,
    /// What it sleeps on.
    pub sleeper: bandgate_core::sync::Arc<Sleeper>,
    spec: Spec,
    books: Mutex<Books>,
    ghost: Arc<Ghost>,
    /// See [`World::begin`].
    order: AtomicU32,
}

/// What one thread does.
pub type Actor = Box<dyn FnOnce(&World) + Send>;

/// A model with a world in it: [`check`], on a stack that is deep enough to build one.
///
/// The model's own thread builds, runs the actors and settles; so there may be three of them.
pub fn check_world(
    name: &str,
    min_executions: u64,
    bound: Bound,
    witnesses: &[&'static str],
    model: impl Fn(&Arc<Ghost>) + Send + Sync + 'static,
) {
    let model = Arc::new(model);
    check(name, min_executions, bound, witnesses, move |ghost| {
        let (model, ghost) = (Arc::clone(&model), Arc::clone(ghost));
        deep(move || model(&ghost)).join().expect("a model failed");
    });
}

/// A thread of 512 KiB of stack, loom's 32 being too few for a pool by value.
///
/// Panics if the model has five threads already.
pub fn deep(f: impl FnOnce() + Send + 'static) -> JoinHandle<()> {
    Builder::new().stack_size(0x1_0000).spawn(f).expect("loom's limit of threads")
}

/// Boxes an actor.
pub fn act(f: impl FnOnce(&World) + Send + 'static) -> Actor {
    Box::new(f)
}

impl World {
    /// Builds it anew, as each execution does.
    pub fn new(spec: Spec, ghost: &Arc<Ghost>) -> Arc<Self> {
        let mut settings = PoolSettings::new("p", spec.slots);
        settings.ring_capacity = spec.ring;
        settings.max_flows = 4;
        if spec.gated {
            settings = settings.with_bands(&[1]);
            let ceilings = vec![(1, 1.0), (0, 0.5)];
            settings.holdback = Holdback::Explicit { ceilings, default: None };
        }
        let pool = PoolCore::new(0, 0, &settings, spec.slab);
        let bell = Doorbell::new(Parker::new(Choice::Best));
        let sleeper = bandgate_core::sync::Arc::new(Sleeper::new(bell));
        let shard = Shard::new(
            Box::new([pool]),
            spec.slab,
            bandgate_core::sync::Arc::clone(&sleeper),
            bandgate_core::sync::Arc::new(Queues::new()),
            Clock::manual(),
            Decider::Caller,
        );
        let books =
            Books { running: vec![0; spec.flows.len() + 1], most: spec.slots, ..Books::default() };
        let world = Self {
            shard,
            sleeper,
            spec,
            books: Mutex::new(books),
            ghost: Arc::clone(ghost),
            order: AtomicU32::new(0),
        };
        world.add_flows();
        Arc::new(world)
    }

    fn add_flows(&self) {
        let mut tenant = Err(RowSpec { cap: self.spec.tenant, weight: 1, exempt: false });
        for &cap in self.spec.flows {
            let new = NewFlow { tenant, group: 0, flow: RowSpec { cap, weight: 1, exempt: false } };
            let rows = self.shard.add_flow(self.pool(), &new);
            tenant = Ok(rows.expect("a live pool").tenant);
        }
    }

    /// The pool.
    pub fn pool(&self) -> &PoolCore {
        &self.shard.pools()[0]
    }

    fn books(&self) -> MutexGuard<'_, Books> {
        self.books.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Each call begins with this, so that loom explores every order of the calls.
    ///
    /// loom looks for races with the last access of an atomic only. Of two threads that load, and then
    /// change it, the second one's own load hides the first one's, and the order "second before first"
    /// goes unexplored. A step of one atomic that all calls share, which orders no memory, is always the
    /// last one.
    pub fn begin(&self) {
        // ORDERING: Relaxed; it must not order what the calls do.
        self.order.fetch_add(1, Ordering::Relaxed);
    }

    /// Notes an outcome that must be reachable.
    pub fn saw(&self, witness: &'static str) {
        self.ghost.saw(witness);
    }

    /// Runs the actors beside each other, each in its own thread, to their end.
    pub fn run(self: &Arc<Self>, actors: impl IntoIterator<Item = Actor>) {
        let threads: Vec<_> = actors
            .into_iter()
            .map(|actor| {
                let world = Arc::clone(self);
                deep(move || actor(&world))
            })
            .collect();
        for thread in threads {
            thread.join().expect("an actor failed");
        }
    }

    /// From now on at most so many may run at once: for models that grow the pool.
    pub fn allow(&self, slots: u32) {
        self.books().most = slots;
    }

    fn row(&self, flow: u32) -> usize {
        self.spec.flows.len().min(flow as usize)
    }

    fn granted(&self, flow: u32) {
        let row = self.row(flow);
        let mut books = self.books();
        books.running[row] += 1;
        let cap = self.spec.flows.get(row).copied().unwrap_or(u32::MAX);
        assert!(books.running[row] <= cap, "key cap exceeded");
        let keys: u32 = books.running[..self.spec.flows.len()].iter().sum();
        assert!(keys <= self.spec.tenant, "tenant cap exceeded");
        assert!(books.running.iter().sum::<u32>() <= books.most, "cap exceeded");
    }

    fn submission(flow: u32, band: u8, timeout_ns: u64) -> Submission {
        Submission::new(band, flow, timeout_ns)
    }

    fn got(&self, answer: Answer, flow: u32, band: u8) -> Got {
        match answer {
            Answer::Granted => {
                self.granted(flow);
                Got::Slot
            }
            Answer::Queued { idx, generation } => {
                let ticket = Ticket { idx, generation, band, flow };
                self.books().open.push(ticket);
                Got::Waits(ticket)
            }
            Answer::Rejected(reason) => Got::Refused(reason),
            other => panic!("no answer to a submit: {other:?}"),
        }
    }

    /// A submit of no flow.
    pub fn submit(&self, band: u8) -> Got {
        self.submit_as(NONE, band)
    }

    /// A submit of a flow: never without LOCK.
    pub fn submit_as(&self, flow: u32, band: u8) -> Got {
        self.begin();
        let answer = self.shard.submit(self.pool(), &Self::submission(flow, band, u64::MAX));
        self.got(answer, flow, band)
    }

    /// A submit that is evicted when the clock shows `timeout_ns`.
    pub fn submit_until(&self, timeout_ns: u64) -> Got {
        self.begin();
        let submission = Self::submission(NONE, HIGH, timeout_ns);
        let answer = self.shard.submit(self.pool(), &submission);
        self.got(answer, NONE, HIGH)
    }

    /// `try_admit` of no flow.
    pub fn try_admit(&self, band: u8) -> Got {
        self.begin();
        let answer = self.shard.try_admit(self.pool(), &Self::submission(NONE, band, u64::MAX));
        self.got(answer, NONE, band)
    }

    /// The pool-only path alone.
    pub fn admit_fast(&self, band: u8) -> bool {
        self.begin();
        let admitted = self.shard.admit_fast(self.pool(), band);
        if admitted {
            // No operation of loom lies between the CAS and this line, so the book is exact.
            assert!(!self.books().closed, "admitted behind a closed gate");
            self.granted(NONE);
        }
        admitted
    }

    /// Notes that from here on [`World::admit_fast`] must refuse.
    pub fn note_closed(&self) {
        self.books().closed = true;
    }

    /// Gives a slot of no flow back.
    pub fn release(&self) {
        self.release_as(NONE);
    }

    /// Gives a slot of a flow back.
    pub fn release_as(&self, flow: u32) {
        self.begin();
        self.books().running[self.row(flow)] -= 1;
        self.shard.release(self.pool(), flow, 1, 1);
    }

    /// Takes the outcome of a ticket if it is there; `Ok`: a slot.
    pub fn collect(&self, ticket: Ticket) -> Option<Result<(), Reason>> {
        let state = self.shard.slab().state(ticket.idx).expect("an index of the slab");
        assert_eq!(state.generation(), ticket.generation, "ended before it was collected");
        let outcome = match state.phase() {
            Phase::Granted => Ok(()),
            Phase::Evicted => Err(state.reason().expect("evicted for a reason")),
            Phase::New | Phase::Queued => return None,
            Phase::Free => panic!("free with a ticket out"),
            Phase::Held | Phase::Running => panic!("no model keeps track of who runs"),
        };
        self.close(ticket);
        self.shard.slab().give(ticket.idx);
        if outcome.is_ok() {
            self.granted(ticket.flow);
        }
        Some(outcome)
    }

    fn close(&self, ticket: Ticket) {
        let mut books = self.books();
        let before = books.open.len();
        books.open.retain(|&open| open != ticket);
        assert_eq!(books.open.len() + 1, before, "two outcomes");
    }

    /// Takes the slot if there is one, else looks once for the grant; releases what it got.
    pub fn use_once(&self, got: Got) {
        match got {
            Got::Slot => self.release(),
            Got::Waits(ticket) => {
                if self.collect(ticket) == Some(Ok(())) {
                    self.release_as(ticket.flow);
                }
            }
            Got::Refused(_) => {}
        }
    }

    /// Cancels; the outcome is still to be collected.
    pub fn cancel(&self, ticket: Ticket) -> Answer {
        self.begin();
        self.shard.cancel(self.pool(), ticket.idx, ticket.generation)
    }

    /// The owner is gone: nobody collects any more.
    pub fn abandon(&self, ticket: Ticket) {
        self.begin();
        self.close(ticket);
        self.shard.abandon(self.pool(), ticket.idx, ticket.generation);
    }

    /// The ticket that [`Ticket::pack`] named, if its outcome was not taken.
    pub fn unpack(&self, name: u64) -> Ticket {
        let found = self.books().open.iter().copied().find(|ticket| ticket.pack() == name);
        found.expect("nobody collects in this model")
    }

    /// At the end this ticket must not have been struck by a command that was not meant for it.
    pub fn expect_waiting(&self, ticket: Ticket) {
        self.books().unharmed.push(ticket);
    }

    /// At the end this ticket must have been refused, because the pool was closed before.
    pub fn expect_evicted(&self, ticket: Ticket) {
        self.books().refused.push(ticket);
    }

    /// For who submitted after `earlier` and has a slot: the earlier one has one too, or is over.
    pub fn not_overtaken(&self, earlier: Ticket) {
        let state = self.shard.slab().state(earlier.idx).expect("an index of the slab");
        let waits = matches!(state.phase(), Phase::New | Phase::Queued);
        assert!(state.generation() != earlier.generation || !waits, "overtaken");
    }

    /// Takes LOCK before the actors start. Calls made meanwhile fill ring and urgent list.
    pub fn hold(&self) -> Held {
        match self.pool().gate.try_lock() {
            TryLock::Ours(word) => Held(word),
            other => panic!("nobody else runs: {other:?}"),
        }
    }

    /// What every holder does who changed nothing: unlock, fence, look, turn.
    #[allow(clippy::needless_pass_by_value, reason = "LOCK is given back once")]
    pub fn leave(&self, held: Held) {
        self.begin();
        self.pool().gate.unlock(held.0.without_lock());
        // ORDERING: SeqCst fence, as after every unlock.
        fence(Ordering::SeqCst);
        self.look();
    }

    /// A turn, if ring or urgent list hold something.
    pub fn look(&self) {
        if self.pool().has_mail() {
            self.shard.try_turn(self.pool(), &Now::lazy(self.shard.clock()), TURN_BUDGET);
        }
    }
}
