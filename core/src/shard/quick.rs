//! The quick turn: a call that finds nothing else to do than its own command and what follows from it.
//!
//! The general [turn](super::turn) drains, expires, decides and repeats; most calls find no mail, nothing
//! due, and at most one decision to make. They run the same [rules](super::rules) here, straight through.
//! Whatever is out of the ordinary goes to the general turn, before anything was changed or with the rest.

use super::Shard;
use super::completions::{QueueLink, QueueName, Record};
use super::hold::{Answer, Newcomer, Packed, Session, Submission};
use super::pool::{PoolCore, PoolState};
use super::rules::{PARKING_BUDGET, Stop};
use super::turn::Poison;
use super::view::SlabView;
use crate::admit::word::PoolWord;
use crate::clock::Now;
use crate::error::Reason;
use crate::queue::Waiter;
use crate::slab::{Phase, State};
use crate::sync::{Ordering, fence, planted};
use crate::types::{BandMask, MAX_BANDS, NONE, TURN_BUDGET};

/// What a quick look at an admit found.
enum Admitted {
    /// Has its slot; the word to unlock with.
    Now(PoolWord),
    /// May not run now.
    Later,
    /// Not for a quick turn; nothing was changed.
    Unclear,
}

/// Whom to wake after the unlock.
enum Notice {
    Nobody,
    Waker(u32),
    Bell(QueueLink),
}

/// What a quick release did.
struct Handed {
    word: PoolWord,
    notice: Notice,
    /// More is to be decided than one grant.
    more: bool,
    deadline: Option<u64>,
}

impl Shard {
    /// A submit with LOCK taken as `word`.
    #[inline(always)]
    pub(super) fn submit_held(&self, pool: &PoolCore, word: PoolWord, sub: &Submission) -> Packed {
        // Without a free slot there is nothing to look at first.
        if word.free() > 0 || word.has(PoolWord::CLOSED) {
            match self.admit_held(pool, word, sub.newcomer()) {
                Admitted::Now(word) => {
                    self.unlock_quick(pool, word, None);
                    return Packed::GRANTED;
                }
                Admitted::Later => {}
                Admitted::Unclear => return self.turn_submit_packed(pool, word, *sub),
            }
        }
        match self.queue_held(pool, word, sub) {
            Some((idx, generation)) => Packed::queued(idx, generation),
            None => self.turn_submit_packed(pool, word, *sub),
        }
    }

    #[cold]
    #[inline(never)]
    fn turn_submit_packed(&self, pool: &PoolCore, word: PoolWord, sub: Submission) -> Packed {
        self.turn_submit(pool, word, sub).into()
    }

    /// The same without queueing; `None`: run a general turn, nothing was changed.
    #[inline(always)]
    pub(super) fn try_held(
        &self,
        pool: &PoolCore,
        word: PoolWord,
        sub: Newcomer,
    ) -> Option<Answer> {
        match self.admit_held(pool, word, sub) {
            Admitted::Now(word) => {
                self.unlock_quick(pool, word, None);
                Some(Answer::Granted)
            }
            // It may lack a unit of the ceiling only.
            Admitted::Later if self.ceiling.is_some() => None,
            Admitted::Later => {
                let word = guarded(self, pool, word, |st| {
                    // Refused for good, or exempt: a general turn finds out and writes it down.
                    let is_accepted = st.caps.accepts(sub.flow, sub.flow_generation);
                    is_accepted.then(|| st.word_after(word, false))
                })?;
                self.unlock_quick(pool, word, None);
                Some(Answer::Rejected(Reason::WouldQueue))
            }
            Admitted::Unclear => None,
        }
    }

    /// Whether a newcomer gets a slot at once. A call, so that all it needs comes in registers.
    #[inline(never)]
    fn admit_held(&self, pool: &PoolCore, word: PoolWord, sub: Newcomer) -> Admitted {
        if word.has(PoolWord::CLOSED) {
            return Admitted::Unclear;
        }
        guarded(self, pool, word, |st| {
            if st.quiet_at(self, pool).is_none() {
                return Admitted::Unclear;
            }
            let waiting = st.queues.waiting() != 0;
            if waiting && word.free() > 0 && !self.nobody_may_run(st, word) {
                return Admitted::Unclear;
            }
            if word.free() <= pool.gate.reserve(usize::from(sub.band) % MAX_BANDS)
                || !st.caps.try_take(sub.flow, sub.flow_generation, sub.cost)
            {
                return Admitted::Later;
            }
            st.settle_direct(word, sub.band, &self.clock);
            let word = word.add_free(-1);
            // With nobody waiting what the last holder marked stays true: nothing, or that a pool asks.
            Admitted::Now(if waiting { st.word_after(word, false) } else { word.without_lock() })
        })
    }

    /// Whether those who wait are all held up by gate or caps although slots are free.
    #[inline(never)]
    fn nobody_may_run(&self, st: &mut PoolState, word: PoolWord) -> bool {
        let running = st.running(word);
        let eligible = st.prepare_policy(running, running, || self.clock.now_ns());
        let next = st.next_waiter(SlabView::new(self), eligible, &mut { PARKING_BUDGET });
        next == Err(Stop::NobodyMayRun)
    }

    /// Queues what cannot run now: index and generation; `None`: run a general turn, nothing was changed.
    #[inline(always)]
    fn queue_held(&self, pool: &PoolCore, word: PoolWord, sub: &Submission) -> Option<(u32, u32)> {
        let (idx, generation, word, deadline) = guarded(self, pool, word, |st| {
            // Under an engine ceiling nothing is calm: a unit may be missing only.
            if !st.is_calm {
                return None;
            }
            let now_ns = st.quiet_at(self, pool)?;
            if sub.timeout_ns == 0 || !st.caps.accepts(sub.flow, sub.flow_generation) {
                return None;
            }
            if sub.queue != NONE && !self.has_place(pool, st, sub.queue) {
                return None;
            }
            let idx = self.slab.take_raw(&mut st.free)?;
            if sub.queue != NONE {
                st.open_queues[QueueName::slot(sub.queue)].places -= 1;
            }
            let now = Now::known(&self.clock, now_ns);
            // SAFETY: the index was just taken: this holder owns the entry.
            let deadline_ns = unsafe { self.slab.with_body(idx, |body| sub.write(body, &now)) };
            // SAFETY: as above.
            let entry = unsafe { self.slab.owned(idx) };
            let generation = entry.own_state().generation();
            entry.set_state(State::new(generation, Phase::Queued));
            let view = SlabView::new(self);
            let about = || sub.view(deadline_ns, &now);
            st.enqueue(view, idx, u32::from(sub.band), sub.flow, deadline_ns, about);
            let deadline = st.publish_after(pool, deadline_ns);
            Some((idx, generation, st.word_after(word, false), deadline))
        })?;
        self.unlock_quick(pool, word, deadline);
        Some((idx, generation))
    }

    /// Whether there is a place for the outcome in a completion queue: reserved ahead, or now.
    #[inline(always)]
    fn has_place(&self, pool: &PoolCore, st: &mut PoolState, name: u32) -> bool {
        let open = &mut st.open_queues[QueueName::slot(name)];
        if open.name != name {
            return false;
        }
        if open.places == 0 {
            open.places = self.reserve_places(pool, name);
        }
        open.places != 0
    }

    /// A release with LOCK taken as `word`.
    #[inline(always)]
    pub(super) fn release_held(
        &self,
        pool: &PoolCore,
        word: PoolWord,
        flow: u32,
        charged: u32,
        actual: u32,
    ) {
        let is_alone = guarded(self, pool, word, |st| {
            // Under a ceiling: another pool asks, and gets the slot's unit.
            if st.queues.waiting() != 0 || word.has(PoolWord::BLOCKED) {
                return false;
            }
            if st.quiet_at(self, pool).is_none() {
                return false;
            }
            st.caps.give(flow, 1);
            if charged != actual {
                st.caps.settle(flow, charged, actual);
            }
            true
        });
        if is_alone {
            self.unlock_quick(pool, word.add_free(1).without_lock(), None);
        } else {
            self.hand_on(pool, word, flow, charged, actual);
        }
    }

    /// A release while somebody waits: one decision follows.
    #[inline(never)]
    fn hand_on(&self, pool: &PoolCore, word: PoolWord, flow: u32, charged: u32, actual: u32) {
        let handed = guarded(self, pool, word, |st| {
            if st.queues.waiting() == 0 {
                return None;
            }
            let now_ns = st.quiet_at(self, pool)?;
            let peak = st.running(word);
            st.give_back(SlabView::new(self), flow, 1);
            if charged != actual {
                st.caps.settle(flow, charged, actual);
            }
            Some(self.hand_one(pool, st, word.add_free(1), peak, now_ns))
        });
        let Some(handed) = handed else {
            return self.turn_release(pool, word, flow, charged, actual);
        };
        if handed.more {
            self.turn_rest(pool, handed.word);
        } else {
            self.unlock_quick(pool, handed.word, handed.deadline);
        }
        match handed.notice {
            Notice::Nobody => {}
            Notice::Waker(idx) => self.wake(idx),
            Notice::Bell(queue) => {
                // Published under LOCK, and the fence after the unlock lies between.
                queue.get().bell().ring_fenced();
            }
        }
    }

    /// Gives a free slot to the first who may run. `peak`: most that ran while somebody waited.
    #[inline(always)]
    fn hand_one(
        &self,
        pool: &PoolCore,
        st: &mut PoolState,
        word: PoolWord,
        peak: u32,
        now_ns: u64,
    ) -> Handed {
        let mut handed = Handed { word, notice: Notice::Nobody, more: false, deadline: None };
        if word.free() > 0 {
            let eligible = st.prepare_policy(st.running(word), peak, || self.clock.now_ns());
            let next = st.next_waiter(SlabView::new(self), eligible, &mut { PARKING_BUDGET });
            handed.more = match next {
                Ok((band, waiter)) => match self.grant_quick(st, eligible, band, &waiter, now_ns) {
                    Some(notice) => {
                        handed.notice = notice;
                        handed.word = word.add_free(-1);
                        handed.word.free() > 0 && st.queues.waiting() != 0
                    }
                    None => true,
                },
                Err(stop) => stop != Stop::NobodyMayRun,
            };
        }
        if handed.more {
            // Whoever goes on decides in the mode this turn began in.
            st.peak = peak;
        } else {
            handed.deadline = st.publish_deadline(pool);
            handed.word = st.word_after(handed.word, false);
        }
        handed
    }

    /// `None`: its time is over or its completion queue gone, nothing was changed.
    #[inline(always)]
    fn grant_quick(
        &self,
        st: &mut PoolState,
        eligible: BandMask,
        band: u32,
        waiter: &Waiter,
        now_ns: u64,
    ) -> Option<Notice> {
        let idx = waiter.idx;
        // SAFETY: the request waits in this pool, so its entry belongs to the holder of LOCK.
        let (queue, deadline_ns, tag, cost) = unsafe {
            self.slab.with_body(idx, |body| (body.queue, body.deadline_ns, body.tag, body.cost))
        };
        let open = &st.open_queues[QueueName::slot(queue)];
        if (queue != NONE && open.name != queue) || deadline_ns <= now_ns {
            return None;
        }
        let bell = open.link();
        st.grant(SlabView::new(self), eligible, (band, band), waiter, cost, deadline_ns);
        // SAFETY: as above; out of its band, but nobody was told yet.
        let entry = unsafe { self.slab.owned(idx) };
        if queue == NONE {
            entry.set_state(State::new(entry.own_state().generation(), Phase::Granted));
            return Some(Notice::Waker(idx));
        }
        let generation = entry.end();
        #[allow(clippy::cast_possible_truncation, reason = "a band index is below 64")]
        let band = band as u8;
        let flow = waiter.flow;
        let record = Record::new(tag, (idx, generation), (flow, cost), band, None);
        st.complete(&record, queue);
        self.slab.keep(&mut st.free, idx);
        bell.map(Notice::Bell)
    }

    /// Steps 6 to 8 after a quick turn.
    #[inline(always)]
    fn unlock_quick(&self, pool: &PoolCore, word: PoolWord, deadline: Option<u64>) {
        pool.gate.unlock(word);
        if !planted!("l1-fence") {
            // ORDERING: SeqCst fence, as after every unlock.
            fence(Ordering::SeqCst);
        }
        if let Some(deadline_ns) = deadline {
            self.sleeper.deadline_moved(deadline_ns);
        }
        if !planted!("l1-look") && !pool.is_mail_empty() {
            self.turn_mail(pool);
        }
    }

    /// The second look found something.
    #[cold]
    #[inline(never)]
    fn turn_mail(&self, pool: &PoolCore) {
        // A cell that is claimed and not stamped is not mail: who claimed it tries for LOCK itself.
        if !pool.has_mail() {
            return;
        }
        let now = Now::lazy(&self.clock);
        let mut session = Session::new(&now, TURN_BUDGET);
        self.turn_again(pool, &mut session, false);
        session.deliver(self);
    }
}

/// Runs `f` on the plain state, LOCK taken as `word` and still the caller's afterwards.
#[inline(always)]
fn guarded<R>(
    shard: &Shard,
    pool: &PoolCore,
    word: PoolWord,
    f: impl FnOnce(&mut PoolState) -> R,
) -> R {
    let poison = Poison::new(shard, &pool.gate, word);
    // SAFETY: the callers took LOCK.
    let answer = unsafe { pool.with_state(f) };
    poison.disarm();
    answer
}
