//! Flows that nobody uses are forgotten, so that a table keyed by what clients send stays bounded and of use.

use alloc::vec::Vec;

use arrayvec::ArrayVec;

use super::{Flows, Known, Seen};
use crate::error::Reason;

/// One row of a [sweep](Flows::sweep): what to look at, and what was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Look {
    /// The row.
    pub flow: u32,
    /// What it had been served at the last look.
    pub served: u64,
    /// It had permits or waiters then: when these ended nobody wrote down.
    pub was_in_use: bool,
    /// To be forgotten, if it is not in use and this has not changed.
    pub is_due: bool,
    /// What was found.
    pub found: Found,
}

/// What a look at a row found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found {
    /// It stands for no flow.
    Free,
    /// It was used since the last look, or is in use.
    Used {
        /// What it has been served.
        served: u64,
        /// It has permits or waiters now.
        in_use: bool,
    },
    /// Nothing happened.
    Idle,
    /// Nothing happened, and it was forgotten.
    Forgotten,
}

/// Rows looked at in one hold of the pool's LOCK, and in one of the mutex.
const BATCH: usize = 64;
const SLICE: usize = 65_536;

impl Flows {
    /// Whether the table is so full that idle flows should go: it is more than half full and was not swept for
    /// `pause_ns`.
    pub fn wants_sweep(&self, now_ns: u64, pause_ns: u64) -> bool {
        let names = self.lock();
        let is_rested = names.swept_ns.is_none_or(|swept| now_ns >= swept.saturating_add(pause_ns));
        is_rested && names.flows.len() > self.limit as usize / 2
    }

    /// Looks at every row and forgets the flows that have been idle for `idle_ns`; how many. `look` finds out, and
    /// forgets the rows, 64 at a time; the names are locked for 65,536 at a time.
    ///
    /// A flow counts as idle from the look that last saw it changed, or from its last interning.
    ///
    /// # Errors
    ///
    /// What `look` says; what it has forgotten until then stays forgotten.
    pub fn sweep(
        &self,
        now_ns: u64,
        idle_ns: u64,
        mut look: impl FnMut(&mut [Look]) -> Result<(), Reason>,
    ) -> Result<usize, Reason> {
        let (mut from, mut count) = (0, 0);
        loop {
            let mut names = self.lock();
            names.swept_ns = Some(now_ns);
            let slice = from..names.seen.len().min(from + SLICE);
            if slice.is_empty() {
                return Ok(count);
            }
            from = slice.end;
            let mut gone = Vec::new();
            let looked = names.look_at(slice, now_ns, idle_ns, &mut look, &mut gone);
            count += gone.len();
            names.remove(&gone);
            looked?;
        }
    }
}

impl Known {
    fn look_at(
        &mut self,
        rows: core::ops::Range<usize>,
        now_ns: u64,
        idle_ns: u64,
        look: &mut impl FnMut(&mut [Look]) -> Result<(), Reason>,
        gone: &mut Vec<u32>,
    ) -> Result<(), Reason> {
        for start in rows.clone().step_by(BATCH) {
            let batch = start..rows.end.min(start + BATCH);
            let mut looks: ArrayVec<Look, BATCH> = (batch.start..)
                .zip(&self.seen[batch.clone()])
                .map(|(row, seen)| Look {
                    flow: u32::try_from(row).unwrap_or(u32::MAX),
                    served: seen.served,
                    was_in_use: seen.in_use,
                    is_due: now_ns.saturating_sub(seen.since_ns) >= idle_ns,
                    found: Found::Idle,
                })
                .collect();
            look(&mut looks)?;
            for (seen, look) in self.seen[batch].iter_mut().zip(&looks) {
                match look.found {
                    Found::Used { served, in_use } => {
                        *seen = Seen { served, in_use, since_ns: now_ns, ..*seen };
                    }
                    Found::Forgotten => gone.push(look.flow),
                    Found::Free | Found::Idle => {}
                }
            }
        }
        Ok(())
    }

    /// Takes out the names of rows that were forgotten, in ascending order. A tenant whose row is among them has no
    /// other flow; a group goes with its last tenant.
    fn remove(&mut self, gone: &[u32]) {
        if gone.is_empty() {
            return;
        }
        let is_gone = |row: u32| gone.binary_search(&row).is_ok();
        self.flows.retain(|_, flow| !is_gone(flow));
        let (groups, mut left) = (&mut self.groups, Vec::new());
        self.tenants.retain(|group, row| {
            if is_gone(row) {
                left.push(group);
            }
            !is_gone(row)
        });
        left.sort_unstable();
        let free = &mut self.free_groups;
        groups.retain(|_, group| {
            let fewer = left.partition_point(|it| *it <= group.index)
                - left.partition_point(|it| *it < group.index);
            group.tenants -= u32::try_from(fewer).unwrap_or(0);
            if group.tenants == 0 {
                free.push(group.index);
            }
            group.tenants != 0
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::flows::{Handle, Made};
    use crate::types::settings::Settings;

    const fn handle(index: u32, generation: u32) -> Handle {
        Handle { index, generation }
    }

    const fn made(tenant: u32, index: u32, generation: u32) -> Made {
        Made { tenant, flow: handle(index, generation) }
    }

    #[test]
    fn what_was_forgotten_leaves_no_name_behind_and_its_group_goes_with_the_last_tenant() {
        let flows = Flows::new(&Settings::default(), 4);
        let intern = |group: &str, tenant: &str, row, now_ns| {
            flows.intern(group, tenant, "", now_ns, |new| {
                assert_eq!(new.group, u32::from(group != "g"), "{group}");
                Ok(made(row, row, 0))
            })
        };
        for (group, tenant, row) in [("g", "a", 0), ("h", "b", 1), ("h", "c", 2)] {
            assert_eq!(intern(group, tenant, row, 0), Ok(handle(row, 0)));
        }
        assert!(flows.wants_sweep(0, 100));
        // Used until 50, then not; one is interned anew at 90 and so in use.
        let used = flows.sweep(50, 0, |looks| {
            for look in looks {
                look.found = Found::Used { served: 7, in_use: false };
            }
            Ok(())
        });
        assert_eq!((used, flows.wants_sweep(149, 100)), (Ok(0), false));
        assert_eq!(intern("h", "c", 9, 90), Ok(handle(2, 0)));
        let forget = |looks: &mut [Look]| {
            for look in looks {
                assert!(look.served == 7, "as seen at 50");
                look.found = if look.is_due { Found::Forgotten } else { Found::Idle };
            }
            Ok(())
        };
        assert_eq!(flows.sweep(149, 100, forget), Ok(0));
        assert_eq!(flows.sweep(150, 100, forget), Ok(2));
        assert_eq!(flows.name_of(0), None);
        assert_eq!(flows.name_of(2), Some(("h".into(), "c".into(), "c".into())));
        // The place of the group that lost its only tenant is the next group's.
        let fresh = flows.intern("new", "d", "", 150, |new| {
            assert_eq!(new.group, 0);
            Ok(made(0, 0, 1))
        });
        assert_eq!(fresh, Ok(handle(0, 1)));
    }
}
