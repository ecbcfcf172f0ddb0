//! Gates that follow more than the running requests: ceilings that move, samples of backends, tokens in flight.
//!
//! All of it belongs to general turns; pools whose gates are slot counts never come here.

use super::hold::Hold;
use super::pool::PoolState;
use crate::admit::gates::GateInput;
use crate::select::band::BandPolicy;
use crate::types::{BandMask, MAX_BANDS};

impl PoolState {
    /// Bands, by rank, with a request that waits or, where the pool keeps track, runs.
    fn busy(&self) -> BandMask {
        let is_busy = |band: u32| self.queues.waiting_in(band) != 0 || self.tracking.runs_in(band);
        #[allow(clippy::cast_possible_truncation, reason = "a band index is below 64")]
        let bands = (0..MAX_BANDS as u32).filter(|band| is_busy(*band)).fold(0, |m, b| m | 1 << b);
        self.ranks.ranked(bands)
    }

    fn gate_input(&self, running: u32, queue_limit: u32, now_ns: u64) -> GateInput {
        GateInput {
            running,
            busy: self.busy(),
            waiting: self.queues.waiting(),
            queue_limit,
            detector: self.detector,
            now_ns,
        }
    }

    /// Whether gates need to be told more than how many run.
    pub(super) fn gates_need_more(&self) -> bool {
        let gates = &self.gates;
        gates.is_dynamic() || gates.counts_dispatches() || gates.counts_tokens()
    }
}

/// An order of the host over the bands. Only general turns know it.
impl Hold<'_, '_> {
    #[inline(always)]
    pub(super) fn has_own_order(&self) -> bool {
        self.st.is_general && matches!(self.st.policy, BandPolicy::Custom(_))
    }

    /// Before a decision, once.
    #[inline(always)]
    pub(super) fn ask_own_order(&mut self, eligible: BandMask, level: u32) {
        if self.has_own_order() {
            self.ask_closely(eligible, level);
        }
    }

    #[cold]
    fn ask_closely(&mut self, eligible: BandMask, level: u32) {
        let saturation = self.st.gates.millionths(level.saturating_add(1));
        let Some(own) = self.st.policy.host() else { return };
        let before = own.faults();
        own.begin(eligible, saturation, self.session.now.ns());
        self.st.stats.faulty_answers += own.faults() - before;
        if let Some(faults) = own.untold_faults() {
            self.session.faulty_orders = Some((self.pool.engine_index(), faults));
        }
    }

    /// After a dispatch of the band of this rank.
    #[inline(always)]
    pub(super) fn tell_own_order(&mut self, rank: u32) {
        if self.has_own_order()
            && let Some(own) = self.st.policy.host()
        {
            own.record(rank);
        }
    }
}

impl Hold<'_, '_> {
    /// Before a decision: tells the gates what moved.
    #[inline(always)]
    pub(super) fn refresh_gates(&mut self) {
        if self.st.is_general && self.st.gates_need_more() {
            self.refresh_closely();
        }
    }

    #[cold]
    fn refresh_closely(&mut self) {
        self.st.gates.set_tokens(self.st.tracking.tokens);
        if self.st.gates.is_dynamic() {
            let input = self.gate_input();
            let before = self.st.gates.faults();
            self.st.gates.refresh(&input);
            self.st.stats.faulty_answers += self.st.gates.faults() - before;
            if let Some(faults) = self.st.gates.untold_faults() {
                self.session.faulty_ceilings = Some((self.pool.engine_index(), faults));
            }
        }
    }

    fn gate_input(&self) -> GateInput {
        let limit = self.shard.slab().capacity();
        self.st.gate_input(self.running(), limit, self.session.now.ns())
    }

    /// At the end of a hold: when ceilings may have moved although nothing happened, if somebody is held back.
    #[inline(always)]
    pub(super) fn settle_look_again(&mut self) {
        if self.st.is_general {
            self.st.look_again_ns = self.look_again();
        }
    }

    #[cold]
    fn look_again(&self) -> u64 {
        // Not asked of the last walk: a newcomer that is gated is queued without one. Without a free slot the release
        // that makes one finds whatever moved.
        let is_held_back = self.st.queues.waiting() != 0 && self.word.free() > 0;
        if !is_held_back || !self.st.gates.is_dynamic() {
            return u64::MAX;
        }
        let after = self.st.gates.look_again_ns(&self.gate_input());
        after.map_or(u64::MAX, |after| self.session.now.ns().saturating_add(after))
    }
}
