//! What the holder of LOCK may do: apply one command each, decide, compute the word to unlock with.
//!
//! Everything here is plain memory. The critical section allocates nothing, calls nothing of the host and
//! is bounded by the session's budget.

mod commands;
mod decide;
mod packed;
mod session;
mod submission;

pub use packed::Packed;

use super::completions::QueueName;
use super::limits::Wait;
use super::pool::{PoolCore, PoolState};
use super::rules::Stop;
use super::{Shard, codes, view::SlabView};
use crate::admit::caps::Room;
use crate::admit::word::PoolWord;
use crate::error::Reason;
use crate::slab::{Phase, State};
use crate::sync::planted;
use crate::types::NONE;
use crate::types::extend::RequestView;

pub use session::Session;
pub use submission::{Newcomer, Submission};

/// The command a call brings along, but for submit and release, which have turns of their own.
#[derive(Clone, Copy, Debug)]
pub enum Own {
    /// None: the ring, the urgent list and the waiters are looked after.
    Nothing,
    /// Grant now or say why not; queues nothing.
    Try(Submission),
    /// Out of the queue, the outcome told.
    Cancel {
        /// Slab index.
        idx: u32,
        /// Generation of the ticket.
        generation: u32,
    },
    /// Out of the queue or out of the slot; nobody wants the outcome.
    Abandon {
        /// Slab index.
        idx: u32,
        /// Generation of the ticket.
        generation: u32,
    },
    /// A tracked permit ended.
    Finish {
        /// Slab index.
        idx: u32,
        /// Generation of the entry.
        generation: u32,
        /// Tokens really used.
        actual: u32,
    },
}

/// What became of the own command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// Applied (or there was none).
    Done,
    /// Has a slot.
    Granted,
    /// Has a slot, and keeps this entry until it gives it back.
    Held {
        /// Slab index.
        idx: u32,
        /// Generation.
        generation: u32,
    },
    /// Waits under this ticket.
    Queued {
        /// Slab index.
        idx: u32,
        /// Generation.
        generation: u32,
    },
    /// Refused; nothing was left behind.
    Rejected(Reason),
    /// The cancel took the request out of the queue.
    Cancelled,
    /// The cancel came after the grant or another outcome.
    TooLate,
    /// The ticket names nothing that lives.
    Stale,
    /// Handed over: the outcome comes by completion.
    Requested,
}

/// One hold of LOCK.
#[derive(Debug)]
pub(super) struct Hold<'s, 'n> {
    pub(super) shard: &'s Shard,
    pub(super) pool: &'s PoolCore,
    pub(super) st: &'s mut PoolState,
    pub(super) word: PoolWord,
    pub(super) session: &'s mut Session<'n>,
    /// Most that ran since the turn began: what the WFQ mode looks at if somebody waited meanwhile.
    peak: u32,
    /// Whether anybody has waited since the turn began, be he granted or gone by now.
    awaited: bool,
    /// Why the last walk over the waiters ended; absent until the first.
    stop: Option<Stop>,
}

impl<'s, 'n> Hold<'s, 'n> {
    /// Starts to use the state LOCK gives.
    #[inline(always)]
    pub(super) fn new(
        shard: &'s Shard,
        pool: &'s PoolCore,
        st: &'s mut PoolState,
        word: PoolWord,
        session: &'s mut Session<'n>,
    ) -> Self {
        Self { shard, pool, st, word, session, peak: 0, awaited: false, stop: None }
    }

    /// Urgent list, ring, own command, decide: steps 1 to 4 of a turn.
    pub(super) fn first(&mut self, own: Own) -> Answer {
        self.begin();
        let answer = match own {
            Own::Nothing => Answer::Done,
            Own::Try(submission) => self.own_try(&submission),
            Own::Cancel { idx, generation } => self.cancel(idx, generation, true),
            Own::Abandon { idx, generation } => self.abandon(idx, generation),
            Own::Finish { idx, generation, actual } => {
                self.end_tracked(idx, generation, Some(actual));
                Answer::Done
            }
        };
        if self.stop.is_none() && !(planted!("z2") && matches!(own, Own::Nothing)) {
            self.decide();
        }
        answer
    }

    /// The same for a submit.
    #[inline(always)]
    pub(super) fn first_submit(&mut self, submission: &Submission) -> Answer {
        if planted!("o2") {
            let answer = self.own_submit(submission);
            self.again();
            return answer;
        }
        self.begin();
        let answer = self.own_submit(submission);
        if self.stop.is_none() {
            self.again();
        }
        answer
    }

    /// The same for a release: the charge is corrected from the estimate to the actual cost.
    #[inline(always)]
    pub(super) fn first_release(&mut self, flow: u32, charged: u32, actual: u32) -> Answer {
        self.begin();
        self.release(flow, 1);
        if charged != actual {
            self.st.caps.settle(flow, charged, actual);
        }
        self.decide();
        Answer::Done
    }

    /// The same without an own command: a look after the unlock found work.
    #[cold]
    pub(super) fn again(&mut self) {
        self.begin();
        self.decide();
    }

    #[inline(always)]
    fn begin(&mut self) {
        self.peak = self.peak.max(self.st.peak).max(self.running());
        self.awaited |= self.st.awaited || self.st.queues.waiting() > 0;
        if !self.st.chain.is_empty() || !self.pool.urgent().is_empty() {
            self.drain_urgent();
        }
        if self.pool.ring.has_stamped() {
            self.drain_ring();
        }
        if !self.st.wheel.is_empty() {
            self.expire();
        }
    }

    /// Whether the last walk found that nobody who waits may run.
    pub(super) fn nobody_may_run(&self) -> bool {
        self.stop == Some(Stop::NobodyMayRun)
    }

    /// Slots in use.
    #[inline(always)]
    pub(super) fn running(&self) -> u32 {
        self.st.running(self.word)
    }

    /// A submit runs at once only if the ring is empty *now*; behind a hole or a spent budget it queues up
    /// like everybody else.
    #[inline(always)]
    fn own_submit(&mut self, submission: &Submission) -> Answer {
        if self.st.observes {
            return self.observed(submission);
        }
        let Submission { band, flow, flow_generation, .. } = *submission;
        let is_closing = self.is_closing();
        if let Some(reason) = self.refusal(band, flow, flow_generation, is_closing) {
            return self.refused(submission, reason);
        }
        let must_follow =
            !planted!("o3") && (!self.pool.ring.is_drained() || self.session.budget == 0);
        if must_follow && !planted!("o2") {
            return self.submit_behind(submission);
        }
        let stop = self.decide();
        if stop != Stop::Budget && (self.runs_now(submission) || self.runs_with_unit(submission)) {
            self.take_slot(submission.band, submission.flow, submission.cost);
            self.st.stats.direct += 1;
            return self.granted_directly(submission);
        }
        if submission.timeout_ns == 0 {
            return self.refused(submission, self.st.backends.overdue());
        }
        if self.st.limits.on
            && let Some(bound) = self.book(&Wait::of(submission))
        {
            return self.refused(submission, bound.refusal(!self.st.backends.none_exists()).reason);
        }
        let (idx, generation) = match self.take_entry(submission) {
            Ok(entry) => entry,
            Err(reason) => {
                self.unbook(|| Wait::of(submission));
                return self.refused(submission, reason);
            }
        };
        let deadline_ns = self.write_body(idx, submission);
        let Submission { band, flow, .. } = *submission;
        let now = self.session.now;
        self.enqueue(idx, generation, band, flow, deadline_ns, || {
            submission.view(deadline_ns, now)
        });
        Answer::Queued { idx, generation }
    }

    /// `try_admit` under LOCK: queues nothing, posts nothing.
    fn own_try(&mut self, submission: &Submission) -> Answer {
        if self.st.observes {
            return self.observed(submission);
        }
        let Submission { band, flow, flow_generation, .. } = *submission;
        let is_closing = self.is_closing();
        if let Some(reason) = self.refusal(band, flow, flow_generation, is_closing) {
            return self.refused(submission, reason);
        }
        if !planted!("t3") && !self.pool.ring.is_drained() {
            return Answer::Rejected(Reason::Busy);
        }
        let stop = self.decide();
        if stop == Stop::Budget {
            return Answer::Rejected(Reason::Busy);
        }
        if !self.runs_now(submission) && !self.runs_with_unit(submission) {
            let none_exists = self.st.backends.none_exists();
            let reason = if none_exists { Reason::NoBackend } else { Reason::WouldQueue };
            return Answer::Rejected(reason);
        }
        self.take_slot(submission.band, submission.flow, submission.cost);
        self.st.stats.direct += 1;
        self.granted_directly(submission)
    }

    /// Whether a newcomer comes too late: the pool is closed, or what was in the ring before him is all that
    /// a drain still waits for.
    #[inline(always)]
    fn is_closing(&self) -> bool {
        self.word.has(PoolWord::CLOSED)
    }

    /// Why a submission may not even wait.
    #[inline(always)]
    pub(super) fn refusal(
        &mut self,
        band: u8,
        flow: u32,
        generation: u32,
        is_closed: bool,
    ) -> Option<Reason> {
        self.st.ranks.touch(band);
        if is_closed {
            return Some(Reason::ShuttingDown);
        }
        if !self.st.ranks.is_open(band) {
            return Some(Reason::UnknownBand);
        }
        // A cap of 0 means refuse: who can never run must not wait for ever.
        (!self.st.caps.accepts(flow, generation)).then(|| self.st.why_not(flow, generation))
    }

    /// Whether a newcomer may take a slot, given that nobody who waits may run.
    #[inline(always)]
    pub(super) fn runs_now(&mut self, submission: &Submission) -> bool {
        self.has_slot_for(submission.band)
            && (submission.flow == NONE || self.st.caps.room(submission.flow) == Room::Yes)
    }

    /// Whether the gate leaves this band a slot. The reserves of a pool whose fast path is closed say nothing.
    #[inline(always)]
    fn has_slot_for(&mut self, band: u8) -> bool {
        if !self.st.is_general {
            return self.word.free() > self.pool.gate.reserve(usize::from(band));
        }
        if self.st.backends.none_exists() {
            return false;
        }
        self.refresh_gates();
        let running = self.running();
        let rank = self.st.ranks.rank(band.into());
        self.word.free() > 0 && self.st.gates.eligible(running) >> rank & 1 == 1
    }

    /// The same with a unit of the ceiling more, if one can be had.
    #[inline(always)]
    fn runs_with_unit(&mut self, submission: &Submission) -> bool {
        self.shard.ceiling.is_some()
            && self.draw_for_newcomer(submission)
            && self.runs_now(submission)
    }

    /// Takes a slot, the caps and the charge, and settles the band policy.
    #[inline(always)]
    fn take_slot(&mut self, band: u8, flow: u32, cost: u32) {
        let eligible = self.begin_decision();
        let rank = self.st.ranks.rank(band.into());
        self.st.policy.record(eligible, rank);
        self.tell_own_order(rank);
        self.charge(flow, cost);
    }

    #[inline(always)]
    fn charge(&mut self, flow: u32, cost: u32) {
        self.word = self.word.add_free(-1);
        self.st.count_dispatch(cost);
        if flow != NONE {
            self.st.caps.take(flow, cost);
        }
    }

    /// In a turn that has had waiters the mode follows the turn's highest value, for a newcomer behind the
    /// last of them too.
    #[inline(always)]
    pub(super) fn prepare_policy(&mut self) -> u64 {
        self.refresh_gates();
        self.begin_decision()
    }

    /// The same where the gates were asked for this decision already.
    #[inline(always)]
    pub(super) fn begin_decision(&mut self) -> u64 {
        let running = self.running();
        self.peak = self.peak.max(running);
        let level = if self.awaited { self.peak } else { running };
        let now = self.session.now;
        let eligible = self.st.prepare_policy(running, level, || now.ns());
        self.ask_own_order(eligible, level);
        eligible
    }

    /// A place in the request's completion queue: from those reserved ahead, else a batch more.
    #[inline(always)]
    fn take_place(&mut self, name: u32) -> bool {
        if name == NONE {
            return true;
        }
        let open = &mut self.st.open_queues[QueueName::slot(name)];
        if open.name != name {
            return false;
        }
        if open.places == 0 {
            open.places = self.shard.reserve_places(self.pool, name);
        }
        let has_place = open.places > 0;
        open.places -= u32::from(has_place);
        has_place
    }

    /// The inverse, for a submit that was refused after all.
    fn give_place(&mut self, name: u32) {
        if name != NONE {
            self.st.open_queues[QueueName::slot(name)].places += 1;
        }
    }

    /// A slab entry and a place for the outcome, both or none.
    #[inline(always)]
    fn take_entry(&mut self, submission: &Submission) -> Result<(u32, u32), Reason> {
        if !self.take_place(submission.queue) {
            return Err(Reason::Busy);
        }
        let entry = self.shard.slab.take_cached(&mut self.st.free);
        if entry.is_none() {
            self.give_place(submission.queue);
        }
        entry.ok_or(Reason::QueueFull)
    }

    /// A full ring leaves nothing behind.
    #[cold]
    fn submit_behind(&mut self, submission: &Submission) -> Answer {
        let (idx, generation) = match self.take_entry(submission) {
            Ok(entry) => entry,
            Err(reason) => return Answer::Rejected(reason),
        };
        let now = self.session.now;
        // SAFETY: the index was just taken: this holder owns the entry.
        unsafe { self.shard.slab.with_body(idx, |body| submission.write_whole(body, now)) };
        let command = codes::submit(idx, generation);
        if self.pool.ring.push(command).is_err() {
            self.shard.slab.give_cached(&mut self.st.free, idx);
            self.give_place(submission.queue);
            return Answer::Rejected(Reason::Busy);
        }
        Answer::Queued { idx, generation }
    }

    #[inline(always)]
    fn write_body(&mut self, idx: u32, submission: &Submission) -> u64 {
        let now = self.session.now;
        // SAFETY: the index was just taken: this holder owns the entry.
        unsafe {
            self.shard.slab.with_body(idx, |body| {
                if self.st.backends.has_budget() {
                    submission.write_patience(body, now);
                }
                submission.write(body, now)
            })
        }
    }

    /// Puts an owned entry into its band.
    #[inline(always)]
    fn enqueue(
        &mut self,
        idx: u32,
        generation: u32,
        band: u8,
        flow: u32,
        deadline_ns: u64,
        about: impl FnOnce() -> RequestView,
    ) {
        self.awaited = true;
        self.shard.slab.set_state(idx, State::new(generation, Phase::Queued));
        if self.st.tracking.on {
            let now = self.session.now;
            // SAFETY: this holder owns the entry.
            unsafe { self.shard.slab.with_body(idx, |body| body.since_ns = now.ns()) };
        }
        let has_budget = self.st.backends.has_budget();
        let deadline_ns = if has_budget { self.budgeted(idx) } else { deadline_ns };
        let view = SlabView::new(self.shard);
        self.st.enqueue(view, idx, u32::from(band), flow, deadline_ns, about);
    }
}
