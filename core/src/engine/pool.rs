//! A pool's handle: requests in, permits out.

use alloc::vec::Vec;
use core::panic::AssertUnwindSafe;
use core::ptr::NonNull;
use std::panic::catch_unwind;

use super::permit::{Admitted, Ended, Permit, Slot};
use super::queue::QueueRef;
use super::request::{Band, Request, Ticket};
use super::{Admit, EngineCore, FlowName, PoolMeta};
use crate::admit::word::PoolWord;
use crate::error::Reason;
use crate::notify::fork::fork_generation;
use crate::notify::wait::block_on_until;
use crate::shard::Shard;
use crate::shard::cold::PoolView;
use crate::shard::completions::Record;
use crate::shard::hold::{Answer, Newcomer, Packed, Submission};
use crate::shard::pool::PoolCore;
use crate::sync::{Arc, planted};
use crate::types::patience;
use crate::types::settings::PoolSettings;
use crate::types::{HELD, NO_ENTRY, NONE};

/// The slots of one model. Cheap to clone; any thread may call any method.
#[derive(Clone, Debug)]
pub struct Pool {
    engine: Arc<EngineCore>,
    shard: NonNull<Shard>,
    core: NonNull<PoolCore>,
    /// Number in the process.
    id: u32,
    /// The engine's, beside the pointers: the check of every call then reads one line less.
    fork_generation: u32,
    /// What [`Request::pools`] must be.
    ids: u64,
}

// SAFETY: the pointers lead into `engine`, which the handle keeps alive and which is Sync.
unsafe impl Send for Pool {}
// SAFETY: as above.
unsafe impl Sync for Pool {}

/// What [`Pool::submit`] gave.
#[derive(Debug)]
#[must_use]
pub enum Submitted<'p> {
    /// Admitted at once; no completion follows.
    Granted(Permit<'p>),
    /// Waits; exactly one completion follows, unless a cancel says that none will.
    Queued(Ticket),
}

/// What a cancel found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum CancelAnswer {
    /// Out of the queue. No completion follows.
    Cancelled,
    /// Handed to the lock's holder: exactly one completion follows, `cancelled` or what was faster.
    Requested,
    /// It has its outcome already.
    TooLate,
    /// The ticket names nothing that lives.
    Stale,
}

impl Pool {
    pub(super) fn new(engine: &Arc<EngineCore>, id: usize) -> Self {
        let meta = &engine.pools[id];
        let shard = &engine.shards[meta.shard];
        let id = engine.first.wrapping_add(u32::try_from(id).unwrap_or(u32::MAX));
        Self {
            engine: Arc::clone(engine),
            shard: NonNull::from(shard),
            core: NonNull::from(&shard.pools()[meta.index]),
            id,
            fork_generation: engine.fork_generation,
            ids: Request::pools_of(id, id),
        }
    }

    /// Whether this process is a child of the one that made the engine: one relaxed load.
    #[inline(always)]
    pub(super) fn is_forked(&self) -> bool {
        self.fork_generation != fork_generation()
    }

    #[inline(always)]
    pub(super) fn shard(&self) -> &Shard {
        // SAFETY: points into `self.engine`, which never moves or drops its shards while handles live.
        unsafe { self.shard.as_ref() }
    }

    #[inline(always)]
    pub(super) fn core(&self) -> &PoolCore {
        // SAFETY: as in `shard`.
        unsafe { self.core.as_ref() }
    }

    pub(super) fn meta(&self) -> &PoolMeta {
        &self.engine.pools[self.id.wrapping_sub(self.engine.first) as usize]
    }

    pub(super) const fn id(&self) -> u32 {
        self.id
    }

    /// The name.
    pub fn name(&self) -> &str {
        &self.meta().name
    }

    /// Priorities of its bands, most urgent first.
    pub fn priorities(&self) -> Vec<i32> {
        self.core().table().open().to_vec()
    }

    pub(super) fn priority_of(&self, band: u8) -> i32 {
        self.core().table().get(band.into()).map_or(0, |(priority, _)| priority)
    }

    pub(super) fn name_of(&self, flow: u32) -> Option<FlowName> {
        let (group, tenant, key) = self.meta().flows.name_of(flow)?;
        Some(FlowName { group, tenant, key })
    }

    pub(super) fn now_ns(&self) -> u64 {
        self.engine.clock.now_ns()
    }

    /// The band of a priority. One that is no band gets one made of the pool's template, where `unknownPriority` says
    /// so, which is cold: takes a mutex, allocates, and waits for the pool's lock. Else a look at a table.
    ///
    /// # Errors
    ///
    /// [`Reason::UnknownBand`]: the priority is not provisioned, or none can be made because the pool has had
    /// `maxBands` priorities already; it is never mapped to another. [`Reason::Forked`], [`Reason::Poisoned`] where
    /// one is to be made.
    pub fn band(&self, priority: i32) -> Result<Band, Reason> {
        match self.core().table().find(priority) {
            Some(index) => Ok(Band { pool: self.id, index }),
            None => self.unlisted(priority),
        }
    }

    /// What every call checks first: the process, the pool of band and flow, the cost.
    #[inline(always)]
    fn check(&self, request: &Request) -> Result<(), Reason> {
        if self.is_forked() {
            return Err(Reason::Forked);
        }
        if request.pools() != self.ids {
            self.check_closely(request)?;
        }
        // One comparison for 0 and for too much.
        if request.cost.wrapping_sub(1) >= self.core().max_cost() {
            return Err(Reason::TooLarge);
        }
        Ok(())
    }

    /// The fast path: one step on the pool's word, for who has no flow.
    #[inline(always)]
    fn admit_fast(&self, request: &Request) -> bool {
        request.flow == NONE && self.shard().admit_fast(self.core(), request.band)
    }

    /// What the locked path needs to know of a checked request.
    #[inline(always)]
    fn submission(&self, request: &Request, queue: u32, tag: u64) -> Submission {
        let timeout_ns = self.patience(request);
        let Request { band, flow, flow_generation, cost, bytes, received_ns, slo_ns, .. } =
            *request;
        Submission {
            band,
            flow,
            flow_generation,
            cost,
            bytes,
            timeout_ns,
            queue,
            tag,
            received_ns,
            slo_ns,
        }
    }

    /// How long a checked request may wait, [resolved](patience::resolve).
    #[inline(always)]
    fn patience(&self, request: &Request) -> u64 {
        patience::resolve(request.timeout_ns, || self.core().patience(request.band))
    }

    /// A request whose pools do not compare equal: it has an absolute deadline, or is another pool's.
    #[cold]
    fn check_closely(&self, request: &Request) -> Result<(), Reason> {
        let band_pool = request.pool & !Request::TIMED;
        if Request::pools_of(band_pool, request.flow_pool) != self.ids {
            let is_ours = band_pool == self.id;
            return Err(if is_ours { Reason::UnknownPool } else { Reason::UnknownBand });
        }
        let deadline_ns = patience::absolute(request.timeout_ns).unwrap_or(u64::MAX);
        if deadline_ns <= self.engine.clock.now_ns() { Err(Reason::Deadline) } else { Ok(()) }
    }

    /// Says how many backends serve this pool; some exist until this is called. While there are none nothing is
    /// dispatched: who comes or waits is refused or evicted as `no_backend` when his time is over, and that time is
    /// the pool's `noBackendTtl`, where it has one. Waits for the pool's lock bit; any thread.
    ///
    /// # Errors
    ///
    /// [`Reason::Poisoned`], [`Reason::Forked`].
    pub fn set_backends(&self, count: u32) -> Result<(), Reason> {
        if self.is_forked() {
            return Err(Reason::Forked);
        }
        self.shard().set_backends(self.core(), count > 0)
    }

    /// After the settings or the engine's default have changed.
    pub(super) fn set_times_to_live(&self, settings: &PoolSettings) {
        self.core().set_times_to_live(self.engine.admission_timeout_ns(), settings);
    }

    #[inline(always)]
    pub(super) fn permit(&self, flow: u32, cost: u32, how: Admitted) -> Permit<'_> {
        Permit::new(self, Slot::new(flow, cost, how))
    }

    /// The permit a completion carries.
    #[inline(always)]
    pub(super) fn queued(&self, record: &Record) -> Permit<'_> {
        let ((idx, generation), (flow, cost)) = (record.ticket(), record.charge());
        if flow == HELD {
            return self.tracked(idx, generation, cost, Admitted::Queued);
        }
        self.permit(flow, cost, Admitted::Queued)
    }

    /// The permit of a request that keeps its entry.
    #[cold]
    #[inline(never)]
    pub(super) fn tracked(
        &self,
        idx: u32,
        generation: u32,
        cost: u32,
        how: Admitted,
    ) -> Permit<'_> {
        Permit::new(self, Slot::tracked(idx, generation, cost, how))
    }

    #[inline(always)]
    pub(super) fn give_back(&self, slot: &Slot) {
        // A child of fork has a copy of the state whose holder, if there was one, does not exist here.
        if planted!("m15") && self.core().gate.peek().has(PoolWord::CLOSED) {
            core::mem::forget(Arc::clone(&self.engine));
        }
        if !self.is_forked() && (!slot.is_anonymous() || !self.core().gate.release()) {
            self.give_back_locked(slot);
        }
    }

    #[inline(never)]
    fn give_back_locked(&self, slot: &Slot) {
        match slot.ended() {
            Ended::Flow { flow, charged, actual } => {
                self.shard().release_locked(self.core(), flow, charged, actual);
            }
            // Of an exempt flow, let through when the slab was full: nothing was taken.
            Ended::Tracked { idx: NO_ENTRY, .. } => {}
            Ended::Tracked { idx, generation, actual } => {
                self.shard().finish(self.core(), idx, generation, actual);
            }
        }
    }

    /// A permit now, or the reason why not. Queues nothing. Lock-free; about 10 ns without a flow, 25
    /// with one.
    ///
    /// # Errors
    ///
    /// [`Reason::WouldQueue`], [`Reason::Busy`] (another thread decides just now), and the refusals of
    /// [`Pool::submit`].
    #[inline(always)]
    pub fn try_admit(&self, request: &Request) -> Result<Permit<'_>, Reason> {
        self.check(request)?;
        if !self.admit_fast(request) {
            return self.try_locked(request);
        }
        Ok(self.permit(request.flow, request.cost, Admitted::Fast))
    }

    #[inline(never)]
    fn try_locked(&self, request: &Request) -> Result<Permit<'_>, Reason> {
        let &Request { band, flow, flow_generation, cost, .. } = request;
        let newcomer = Newcomer { flow, flow_generation, cost, band };
        match self.shard().try_locked(self.core(), newcomer) {
            Answer::Granted => Ok(self.permit(request.flow, request.cost, Admitted::Fast)),
            Answer::Held { idx, generation } => {
                Ok(self.tracked(idx, generation, request.cost, Admitted::Fast))
            }
            Answer::Rejected(reason) => Err(reason),
            _ => Err(Reason::WouldQueue),
        }
    }

    /// A future that resolves to a permit. Nothing happens before its first poll; dropping it while it
    /// waits cancels, and a grant that races with the drop goes to the next waiter. Needs no runtime.
    #[inline]
    pub const fn admit(&self, request: Request) -> Admit<'_> {
        Admit::new(self, request)
    }

    /// Waits for a permit on this thread, at most `timeout` (absent: the request's).
    ///
    /// # Errors
    ///
    /// [`Reason::Deadline`] when the time is over, and the refusals of [`Pool::submit`].
    pub fn admit_blocking(
        &self,
        request: Request,
        timeout: Option<core::time::Duration>,
    ) -> Result<Permit<'_>, Reason> {
        let request = timeout.map_or(request, |timeout| request.timeout(timeout));
        let clock = &self.engine.clock;
        let deadline = patience::deadline(self.patience(&request), || clock.now_ns());
        let deadline = (deadline != u64::MAX).then_some(deadline);
        let permit = block_on_until(self.admit(request), deadline, || clock.now_ns());
        permit.unwrap_or(Err(Reason::Deadline))
    }

    /// Admits at once, or queues under a ticket whose outcome comes to `queue` with `tag`. Never waits.
    ///
    /// # Errors
    ///
    /// [`Reason::Busy`] (the ring or the completion queue is full: try again), [`Reason::QueueFull`],
    /// [`Reason::TooLarge`], [`Reason::TenantQueueFull`] (a cap of 0), [`Reason::Deadline`] (a timeout of
    /// 0), [`Reason::UnknownBand`] or [`Reason::UnknownPool`] (the band or the flow is another pool's),
    /// [`Reason::UnknownPool`] (the queue is another engine's), [`Reason::ShuttingDown`],
    /// [`Reason::Forked`], [`Reason::Poisoned`]. Nothing is left behind.
    #[inline]
    pub fn submit<'q>(
        &self,
        request: &Request,
        queue: impl Into<QueueRef<'q>>,
        tag: u64,
    ) -> Result<Submitted<'_>, Reason> {
        self.check(request)?;
        let queue = queue.into();
        if queue.engine() != self.engine.first {
            return Err(Reason::UnknownPool);
        }
        self.submit_to(request, queue.name(), tag)
    }

    /// The future's half of [`Pool::submit`]: no completion queue, the outcome stays in the entry.
    pub(super) fn submit_waiting(&self, request: &Request) -> Result<Submitted<'_>, Reason> {
        self.check(request)?;
        self.submit_to(request, NONE, 0)
    }

    /// A checked request.
    #[inline(always)]
    fn submit_to(&self, request: &Request, queue: u32, tag: u64) -> Result<Submitted<'_>, Reason> {
        let granted = || self.permit(request.flow, request.cost, Admitted::Fast);
        if self.admit_fast(request) {
            return Ok(Submitted::Granted(granted()));
        }
        match self.submit_locked(request, queue, tag).answer() {
            Answer::Queued { idx, generation } => {
                Ok(Submitted::Queued(Ticket { pool: self.id, idx, generation }))
            }
            Answer::Granted => Ok(Submitted::Granted(granted())),
            Answer::Held { idx, generation } => {
                let permit = self.tracked(idx, generation, request.cost, Admitted::Fast);
                Ok(Submitted::Granted(permit))
            }
            Answer::Rejected(reason) => Err(reason),
            _ => Err(Reason::Busy),
        }
    }

    #[inline(never)]
    fn submit_locked(&self, request: &Request, queue: u32, tag: u64) -> Packed {
        self.shard().submit_locked(self.core(), &self.submission(request, queue, tag))
    }

    /// The future's owner is gone.
    pub(super) fn abandon(&self, ticket: Ticket) {
        if !self.is_forked() {
            self.forget_waker(ticket);
            self.shard().abandon(self.core(), ticket.idx, ticket.generation);
        }
    }

    /// Drops the waker of an entry its future still owns: a free entry must not keep a task alive. A panic
    /// of that must not keep the entry.
    pub(super) fn forget_waker(&self, ticket: Ticket) {
        self.drop_waker(self.shard().slab().waker(ticket.idx).take());
    }

    /// A waker nobody will use. Its panic has been told by the panic hook; it is no reason to lose a place.
    #[allow(clippy::unused_self, reason = "called where a pool's wakers are, and only there")]
    pub(super) fn drop_waker(&self, waker: Option<core::task::Waker>) {
        if waker.is_some() {
            let _panicked = catch_unwind(AssertUnwindSafe(|| drop(waker)));
        }
    }

    /// Whether a holder panicked, so that nobody will ever decide again.
    pub(super) fn is_dead(&self) -> bool {
        self.core().gate.peek().has(PoolWord::DEAD)
    }

    /// Takes a request out of the queue, from any thread. Never waits.
    pub fn cancel(&self, ticket: Ticket) -> CancelAnswer {
        if self.is_forked() || ticket.pool != self.id {
            return CancelAnswer::Stale;
        }
        match self.shard().cancel(self.core(), ticket.idx, ticket.generation) {
            Answer::Cancelled => CancelAnswer::Cancelled,
            Answer::TooLate => CancelAnswer::TooLate,
            Answer::Requested | Answer::Done => CancelAnswer::Requested,
            _ => CancelAnswer::Stale,
        }
    }

    /// Changes the number of slots (1..=1,048,576; `false`: out of range, nothing changes). Growing grants
    /// waiters at once, shrinking revokes nobody. In force when applied, which may be after the return if
    /// another thread decides just now.
    pub fn resize(&self, slots: u32) -> bool {
        let valid = (1..=PoolSettings::MAX_SLOTS).contains(&slots) && !self.is_forked();
        if valid {
            self.shard().resize(self.core(), slots);
        }
        valid
    }

    /// Sets the saturation that gates and WFQ mode follow, 0 and up, instead of running / capacity or what a detector
    /// reads; `None` goes back. NaN and negative values are refused: `false`, nothing changes.
    pub fn set_saturation(&self, saturation: Option<f64>) -> bool {
        let valid = saturation.is_none_or(|s| s >= 0.0) && !self.is_forked();
        if valid {
            self.shard().set_saturation(self.core(), saturation);
        }
        valid
    }

    /// Refuses new requests; who waits and who runs goes on.
    pub fn drain(&self) {
        if !self.is_forked() {
            self.shard().drain(self.core());
        }
    }

    /// Refuses new requests and evicts who waits.
    pub fn shut_down(&self) {
        if !self.is_forked() {
            self.shard().shut_down(self.core());
        }
    }

    /// Whether it is dead, or closed with nobody and nothing left in it.
    pub(super) fn is_at_rest(&self) -> bool {
        let view = self.view();
        self.is_dead() || view.closed && view.waiting == 0 && !self.core().has_mail()
    }

    /// The pool at one moment, with its counters. Waits for the pool's lock: not for the hot path. Zeros in
    /// a child of `fork`, and of a poisoned pool.
    pub fn view(&self) -> PoolView {
        if self.engine.is_forked() {
            return PoolView::NOTHING;
        }
        self.shard().view(self.core())
    }

    /// For tests: runs a turn and calls `pause` inside it, with the pool's lock held, as if the thread had
    /// lost its core there. `false`: the lock was taken. A panic of `pause` poisons the pool.
    #[doc(hidden)]
    pub fn pause_inside_turn(&self, pause: impl FnOnce()) -> bool {
        self.shard().paused_turn(self.core(), pause)
    }
}
