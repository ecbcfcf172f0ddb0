//! Lanes: the first-in-first-out list of one flow in one band, while it has waiters.
#![forbid(unsafe_code)]

use alloc::vec::Vec;

use super::heap::{Positions, grow};
use crate::types::NONE;

/// Where a lane stands; the last three are those not set aside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Place {
    /// Nowhere: it has no waiters.
    Idle,
    /// Set aside because its flow is at its cap.
    Flow,
    /// Set aside because its tenant is at its cap: in the leftist heap of (tenant, band).
    Tenant,
    /// In its band's list.
    List,
    /// In its band's heap.
    Heap,
    /// In the leftist heap of its ranked band.
    Ranked,
}

/// One lane. 48 bytes; those of idle flows are not kept.
#[derive(Clone, Copy, Debug)]
pub struct Lane {
    /// The first request, `NONE` without waiters. Links the free lanes.
    pub head: u32,
    /// The last request; the first once more if the lane is a heap.
    pub tail: u32,
    /// How many wait; not counted in the anonymous lanes, which are never set aside.
    pub len: u32,
    /// The flow, `NONE` for the anonymous lane of the band and for a lane given back.
    pub flow: u32,
    /// The flow's tenant or `NONE`.
    pub tenant: u32,
    /// Position in the band's heap, or parent in a leftist heap.
    pub at: u32,
    /// Left child in a leftist heap, or the lane before in the band's list.
    pub left: u32,
    /// Right child in a leftist heap, or the next lane in the band's list.
    pub right: u32,
    /// Arrival number of the head; kept up to date only in a leftist heap, and always in a ranked band.
    pub seq: u64,
    /// The band.
    pub band: u8,
    /// Length of the right spine in a leftist heap.
    pub rank: u8,
    /// Where it stands.
    pub place: Place,
}

const _: () = assert!(size_of::<Lane>() == 48);

impl Lane {
    /// An empty lane of a flow in a band.
    pub const fn new(flow: u32, tenant: u32, band: u8) -> Self {
        Self {
            head: NONE,
            tail: NONE,
            len: 0,
            flow,
            tenant,
            at: NONE,
            left: NONE,
            right: NONE,
            seq: 0,
            band,
            rank: 1,
            place: Place::Idle,
        }
    }

    /// Whether it has waiters and is not set aside.
    #[inline(always)]
    pub const fn is_in_band(&self) -> bool {
        self.place as u8 >= Place::List as u8
    }

    /// Whether it is this flow's in this band; a lane given back is nobody's.
    #[inline(always)]
    pub const fn is_of(&self, flow: u32, band: u32) -> bool {
        self.flow == flow && self.band as u32 == band
    }
}

/// The arena of lanes. The first ones are the anonymous lanes of the bands and are never freed.
#[derive(Debug)]
pub struct Lanes {
    all: Vec<Lane>,
    free: u32,
    reserved: u32,
    #[cfg(test)]
    pub(super) steps: u64,
}

impl Lanes {
    /// An arena of anonymous lanes alone: lane `b` is that of band `b`.
    pub fn new(bands: u8) -> Self {
        Self {
            all: (0..bands).map(|band| Lane::new(NONE, NONE, band)).collect(),
            free: NONE,
            reserved: u32::from(bands),
            #[cfg(test)]
            steps: 0,
        }
    }

    /// Makes room for `named` lanes of named flows in all, never needed beyond `most`: it does not allocate while
    /// no more exist. Allocates itself.
    pub fn reserve(&mut self, named: u32, most: u32) {
        let reserved = self.reserved as usize;
        grow(&mut self.all, reserved + named as usize, reserved + most as usize);
    }

    /// Takes a lane out of the arena; the caller says what it is.
    #[inline(always)]
    pub fn allocate(&mut self) -> u32 {
        let index = self.free;
        match self.all.get(index as usize) {
            Some(lane) => {
                self.free = lane.head;
                index
            }
            None => self.make(),
        }
    }

    #[inline(never)]
    fn make(&mut self) -> u32 {
        self.all.push(Lane::new(NONE, NONE, 0));
        Self::index(self.all.len() - 1)
    }

    /// Gives an empty lane back; an anonymous one stays.
    #[inline(always)]
    pub fn free(&mut self, index: u32) {
        let lane = &mut self.all[index as usize];
        debug_assert!(lane.head == NONE, "a lane is freed when its last waiter leaves");
        lane.place = Place::Idle;
        lane.tail = NONE;
        if index >= self.reserved {
            lane.flow = NONE;
            lane.head = self.free;
            self.free = index;
        }
    }

    /// A lane.
    #[inline(always)]
    pub fn get(&self, index: u32) -> &Lane {
        &self.all[index as usize]
    }

    /// A lane; none for `NONE`.
    #[inline(always)]
    pub fn find(&self, index: u32) -> Option<&Lane> {
        self.all.get(index as usize)
    }

    /// A lane, to change; none for `NONE`.
    #[inline(always)]
    pub fn find_mut(&mut self, index: u32) -> Option<&mut Lane> {
        self.all.get_mut(index as usize)
    }

    /// A lane, to change.
    #[inline(always)]
    pub fn get_mut(&mut self, index: u32) -> &mut Lane {
        &mut self.all[index as usize]
    }

    /// Lanes ever made, free ones included.
    #[inline]
    pub fn made(&self) -> u32 {
        Self::index(self.all.len())
    }

    /// The lanes that have waiters.
    pub fn in_use(&self) -> impl Iterator<Item = &Lane> {
        self.all.iter().filter(|lane| lane.place != Place::Idle)
    }

    /// Counts one step of a heap, for the tests of the worst case.
    #[inline]
    #[cfg_attr(not(test), allow(clippy::unused_self, reason = "only the tests count"))]
    pub(super) fn count_step(&mut self) {
        #[cfg(test)]
        {
            self.steps += 1;
        }
    }

    #[inline]
    #[allow(clippy::cast_possible_truncation, reason = "the arena holds fewer than 2^24 lanes")]
    const fn index(position: usize) -> u32 {
        position as u32
    }
}

impl Positions for Lanes {
    #[inline]
    fn set_position(&mut self, index: u32, position: u32) {
        self.count_step();
        self.all[index as usize].at = position;
    }
}
