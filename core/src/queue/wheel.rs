//! A hierarchical timer wheel in 1 ms ticks: deadlines of waiting requests.
//!
//! Hashed hierarchical timing wheels, scheme 7 of Varghese and Lauck (1987): insert and cancel are O(1), a timer
//! moves down at most one level per 64-fold approach of its deadline. The level of a timer is the highest 6-bit
//! digit in which its tick differs from the current one, so the first set bit of the lowest level in use is the
//! earliest slot. Eight levels cover every `u64` of nanoseconds: no deadline is beyond the horizon, none is
//! clamped (the upper three are used by deadlines 12 days, 2 and 139 years away; they cost one word each).
#![forbid(unsafe_code)]

use alloc::vec::Vec;
use core::cell::Cell;

use crate::types::NONE;

/// Nanoseconds in one tick.
pub const TICK_NS: u64 = 1_000_000;

const DIGIT_BITS: u32 = 6;
const SLOTS: usize = 1 << DIGIT_BITS;
const LEVELS: usize = 8;
const TICK_BITS: u32 = 48;

// Every tick of a `u64` of nanoseconds has at most LEVELS digits.
const _: () = assert!(
    TICK_BITS as usize == LEVELS * DIGIT_BITS as usize && (u64::MAX / TICK_NS) >> TICK_BITS == 0
);

pub use crate::slab::TimerLink;

/// Access to the timers by index; the wheel only names those it was given and their neighbours.
pub trait TimerLinks {
    /// The place of a timer.
    fn timer(&self, idx: u32) -> TimerLink;
    /// Replaces the place of a timer.
    fn set_timer(&self, idx: u32, timer: TimerLink);
    /// Replaces `next` alone.
    fn set_next(&self, idx: u32, next: u32);
    /// Replaces `prev` alone.
    fn set_prev(&self, idx: u32, prev: u32);
    /// What [`Wheel::insert`] was told, in nanoseconds; asked only when a timer moves down a level.
    fn deadline_ns(&self, idx: u32) -> u64;
}

/// How [`Wheel::advance`] ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Advanced {
    /// Everything due has fired.
    Done,
    /// The budget ran out: call again, with the same time or a later one.
    More,
}

/// The wheel. Single owner; times are nanoseconds of one clock that the caller reads.
#[derive(Debug)]
pub struct Wheel {
    /// The tick reached: what is due at it stands in the slot of its lowest digit.
    tick: u64,
    len: u32,
    /// The level whose current slot is being moved down; 0: none.
    cascading: usize,
    occupied: [u64; LEVELS],
    heads: [u32; SLOTS * LEVELS],
}

impl Wheel {
    /// An empty wheel at `now_ns`.
    pub const fn new(now_ns: u64) -> Self {
        Self {
            tick: now_ns / TICK_NS,
            len: 0,
            cascading: 0,
            occupied: [0; LEVELS],
            heads: [NONE; SLOTS * LEVELS],
        }
    }

    /// Timers that are set.
    #[inline]
    pub const fn len(&self) -> u32 {
        self.len
    }

    /// Whether none is set.
    #[inline]
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Sets a timer that is not set. O(1). `links` knows the deadline too, as long as the timer is set.
    ///
    /// It fires in the first `advance` at or after `deadline_ns` rounded up to a millisecond. A deadline in the
    /// last millisecond of the range, such as `u64::MAX`, never comes.
    #[inline]
    pub fn insert<L: TimerLinks>(&mut self, links: &L, idx: u32, deadline_ns: u64) {
        debug_assert!(links.timer(idx).prev == NONE, "a timer is set once");
        debug_assert!(links.deadline_ns(idx) == deadline_ns, "the links know the deadline");
        self.place(links, idx, deadline_ns);
        self.len += 1;
    }

    /// Stops a timer. False if it was not set. O(1).
    #[inline]
    pub fn cancel<L: TimerLinks>(&mut self, links: &L, idx: u32) -> bool {
        let TimerLink { next, prev } = links.timer(idx);
        if prev == NONE {
            return false;
        }
        links.set_prev(idx, NONE);
        if next != NONE {
            // Whatever stood before this one: another timer, or the mark of the first with the slot.
            links.set_prev(next, prev);
        }
        if prev & TimerLink::FIRST == 0 {
            links.set_next(prev, next);
        } else {
            self.set_head(prev & !TimerLink::FIRST, next);
        }
        self.len -= 1;
        true
    }

    /// Goes on to `now_ns` and reports what is due, earliest tick first, no order within one.
    ///
    /// Never early by the time given; at most one tick late by it. Each timer fired or moved down takes 1 from
    /// `budget`, so that a call is bounded; the rest is picked up by the next one. A time before the last one
    /// fires nothing.
    pub fn advance<L: TimerLinks>(
        &mut self,
        links: &L,
        now_ns: u64,
        budget: &mut u32,
        mut out: impl FnMut(u32),
    ) -> Advanced {
        let target = now_ns / TICK_NS;
        if target < self.tick {
            return Advanced::Done;
        }
        loop {
            if !self.cascade(links, budget) || !self.fire(links, budget, &mut out) {
                return Advanced::More;
            }
            match self.earliest() {
                Some((level, tick)) if tick <= target => {
                    self.tick = tick;
                    self.cascading = level;
                }
                _ => {
                    self.tick = target;
                    return Advanced::Done;
                }
            }
        }
    }

    /// When `advance` next has something to do: exact to the millisecond within 64 ms, else the start of the
    /// slot, which is not after the first deadline rounded up. `None` without timers.
    #[inline]
    pub fn next_deadline(&self) -> Option<u64> {
        if self.cascading != 0 && self.head(self.cascading, self.tick) != NONE {
            return Some(self.tick.saturating_mul(TICK_NS));
        }
        self.earliest().map(|(_, tick)| tick.saturating_mul(TICK_NS))
    }

    /// The earliest slot in use: its level and the tick it begins at.
    #[inline]
    #[allow(clippy::cast_possible_truncation, reason = "at most 8 levels")]
    fn earliest(&self) -> Option<(usize, u64)> {
        let level = self.occupied.iter().position(|&slots| slots != 0)?;
        let shift = level as u32 * DIGIT_BITS;
        let slot = u64::from(self.occupied[level].trailing_zeros());
        let above = self.tick >> shift >> DIGIT_BITS << DIGIT_BITS;
        Some((level, (above | slot) << shift))
    }

    /// Moves the timers of the current slot of the level being cascaded down; whether that is finished.
    fn cascade<L: TimerLinks>(&mut self, links: &L, budget: &mut u32) -> bool {
        while self.cascading != 0 {
            let idx = self.head(self.cascading, self.tick);
            if idx == NONE {
                self.cascading = 0;
                break;
            }
            if *budget == 0 {
                return false;
            }
            *budget -= 1;
            #[allow(clippy::cast_possible_truncation, reason = "at most 8 levels")]
            self.unlink_first(links, idx, Self::slot(self.tick, self.cascading as u32));
            self.place(links, idx, links.deadline_ns(idx));
        }
        true
    }

    /// Fires what stands in the slot of the current tick; whether that is finished.
    fn fire<L: TimerLinks>(
        &mut self,
        links: &L,
        budget: &mut u32,
        out: &mut impl FnMut(u32),
    ) -> bool {
        loop {
            let idx = self.head(0, self.tick);
            if idx == NONE {
                return true;
            }
            if *budget == 0 {
                return false;
            }
            *budget -= 1;
            self.unlink_first(links, idx, Self::slot(self.tick, 0));
            links.set_prev(idx, NONE);
            self.len -= 1;
            out(idx);
        }
    }

    /// Takes the first timer out of its slot.
    #[inline]
    fn unlink_first<L: TimerLinks>(&mut self, links: &L, idx: u32, slot: u32) {
        let next = links.timer(idx).next;
        if next != NONE {
            links.set_prev(next, TimerLink::FIRST | slot);
        }
        self.set_head(slot, next);
    }

    /// Links a timer into its slot as seen from the current tick; one that is due into the current slot.
    #[inline]
    fn place<L: TimerLinks>(&mut self, links: &L, idx: u32, deadline_ns: u64) {
        debug_assert!(idx < TimerLink::FIRST, "an index stands in `prev`");
        let tick = deadline_ns.div_ceil(TICK_NS).max(self.tick);
        let level = (u64::BITS - 1 - ((tick ^ self.tick) | 1).leading_zeros()) / DIGIT_BITS;
        let slot = Self::slot(tick, level);
        let next = self.heads[slot as usize];
        links.set_timer(idx, TimerLink { next, prev: TimerLink::FIRST | slot });
        if next != NONE {
            links.set_prev(next, idx);
        }
        self.set_head(slot, idx);
    }

    /// The slot of a tick in a level, numbered over all levels.
    #[inline]
    #[allow(clippy::cast_possible_truncation, reason = "masked to one digit")]
    const fn slot(tick: u64, level: u32) -> u32 {
        level << DIGIT_BITS | (tick >> (level * DIGIT_BITS)) as u32 & (SLOTS as u32 - 1)
    }

    #[inline]
    #[allow(clippy::cast_possible_truncation, reason = "at most 8 levels")]
    fn head(&self, level: usize, tick: u64) -> u32 {
        self.heads[Self::slot(tick, level as u32) as usize]
    }

    #[inline]
    fn set_head(&mut self, slot: u32, idx: u32) {
        let slot = slot as usize;
        self.heads[slot] = idx;
        let bit = 1 << (slot % SLOTS);
        let word = &mut self.occupied[slot / SLOTS];
        *word = if idx == NONE { *word & !bit } else { *word | bit };
    }
}

/// Timers in plain vectors: for tests and benches of the wheel alone.
#[derive(Debug)]
pub struct VecTimers {
    links: Vec<Cell<TimerLink>>,
    deadlines: Vec<Cell<u64>>,
}

impl VecTimers {
    /// Room for `capacity` timers, none of which is set.
    pub fn new(capacity: u32) -> Self {
        let links = (0..capacity).map(|_| Cell::new(TimerLink::IDLE)).collect();
        Self { links, deadlines: (0..capacity).map(|_| Cell::new(0)).collect() }
    }

    /// Notes the deadline of a timer that is not set; before [`Wheel::insert`].
    #[inline]
    pub fn set_deadline(&self, idx: u32, deadline_ns: u64) {
        self.deadlines[idx as usize].set(deadline_ns);
    }

    #[inline]
    fn edit(&self, idx: u32, change: impl FnOnce(&mut TimerLink)) {
        let cell = &self.links[idx as usize];
        let mut link = cell.get();
        change(&mut link);
        cell.set(link);
    }
}

impl TimerLinks for VecTimers {
    #[inline]
    fn timer(&self, idx: u32) -> TimerLink {
        self.links[idx as usize].get()
    }

    #[inline]
    fn set_timer(&self, idx: u32, timer: TimerLink) {
        self.links[idx as usize].set(timer);
    }

    #[inline]
    fn set_next(&self, idx: u32, next: u32) {
        self.edit(idx, |link| link.next = next);
    }

    #[inline]
    fn set_prev(&self, idx: u32, prev: u32) {
        self.edit(idx, |link| link.prev = prev);
    }

    #[inline]
    fn deadline_ns(&self, idx: u32) -> u64 {
        self.deadlines[idx as usize].get()
    }
}
