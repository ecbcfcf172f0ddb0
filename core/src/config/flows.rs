//! The names of a pool's flows: the only place where a tenant or key is a string.
//!
//! Interning is cold: it takes a mutex, allocates, and waits for the pool's lock. Hot calls take the index.

use alloc::string::String;
use alloc::vec::Vec;
use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use arrayvec::ArrayVec;

use crate::error::Reason;
use crate::types::settings::{KeySettings, Settings};

/// Cap and weight of a row to be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RowSpec {
    /// Most requests running at once; `u32::MAX`: no cap.
    pub cap: u32,
    /// Weight in fair share; no effect yet.
    pub weight: u32,
}

/// A flow that was never seen before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NewFlow {
    /// Its tenant: a row that exists, or one to be made.
    pub tenant: Result<u32, RowSpec>,
    /// Group index of the tenant.
    pub group: u32,
    /// The flow's own row.
    pub flow: RowSpec,
}

/// Weight of a tenant or key that names none.
const DEFAULT_WEIGHT: u32 = 100;

/// Rows of a flow that was made: its tenant's and its own, and how often its own has stood for another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Made {
    /// Row of the tenant.
    pub tenant: u32,
    /// The flow.
    pub flow: Handle,
}

/// An interned flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Handle {
    /// Its row.
    pub index: u32,
    /// Which of the flows that stood at that row.
    pub generation: u32,
}

/// One row of a [sweep](Flows::sweep): what to look at, and what was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Look {
    /// The row.
    pub flow: u32,
    /// What it had been served at the last look.
    pub served: u64,
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
    /// It was used since, or is in use; what it has been served.
    Used(u64),
    /// Nothing happened.
    Idle,
    /// Nothing happened, and it was forgotten.
    Forgotten,
}

#[derive(Debug, Default)]
struct Group {
    index: u32,
    tenants: u32,
}

/// When a row was last seen in use.
#[derive(Clone, Copy, Debug)]
struct Seen {
    served: u64,
    since_ns: u64,
}

#[derive(Debug, Default)]
struct Names {
    groups: HashMap<String, Group>,
    /// Indices of groups without tenants, and how many indices there are.
    free_groups: Vec<u32>,
    group_count: u32,
    tenants: HashMap<(u32, String), u32>,
    flows: HashMap<(u32, String), Handle>,
    seen: Vec<Seen>,
    swept_ns: Option<u64>,
}

/// Rows looked at in one hold of the pool's LOCK, and in one of the mutex.
const BATCH: usize = 64;
const SLICE: usize = 4096;

/// The flows of one pool by name, at most `max_flows`.
#[derive(Debug)]
pub struct Flows {
    names: Mutex<Names>,
    tenants: HashMap<String, RowSpec>,
    keys: HashMap<(String, String), RowSpec>,
    groups_of: HashMap<String, String>,
    limit: u32,
}

impl Flows {
    /// The names of a pool under these settings, which say what is known of tenants and keys.
    pub fn new(settings: &Settings, max_flows: u32) -> Self {
        let spec = |cap: Option<u32>, weight| RowSpec { cap: cap.unwrap_or(u32::MAX), weight };
        let tenants = settings.tenants.iter();
        let key = |key: &KeySettings| (key.tenant.clone(), key.name.clone());
        Self {
            names: Mutex::default(),
            tenants: tenants.map(|t| (t.name.clone(), spec(t.max_in_flight, t.weight))).collect(),
            keys: settings.keys.iter().map(|k| (key(k), spec(k.max_in_flight, k.weight))).collect(),
            groups_of: settings
                .tenants
                .iter()
                .filter_map(|t| Some((t.name.clone(), t.group.clone()?)))
                .collect(),
            limit: max_flows,
        }
    }

    /// Group, tenant and key of a flow. Cold: takes the mutex and looks through the names.
    pub fn name_of(&self, flow: u32) -> Option<(String, String, String)> {
        let names = self.lock();
        let ((row, key), _) = names.flows.iter().find(|(_, handle)| handle.index == flow)?;
        let ((group, tenant), _) = names.tenants.iter().find(|(_, index)| *index == row)?;
        let (group, _) = names.groups.iter().find(|(_, it)| it.index == *group)?;
        Some((group.clone(), tenant.clone(), key.clone()))
    }

    fn lock(&self) -> MutexGuard<'_, Names> {
        // A panic of what is called leaves the names as they were: they change after it has answered.
        self.names.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A flow, made by `add` if it is new.
    ///
    /// A configured tenant belongs to its configured group, whatever the caller says; an empty group is
    /// `default`, an empty key the key of the tenant's name.
    ///
    /// # Errors
    ///
    /// [`Reason::FlowTableFull`], and what `add` says.
    pub fn intern(
        &self,
        group: &str,
        tenant: &str,
        key: &str,
        now_ns: u64,
        add: impl FnOnce(&NewFlow) -> Result<Made, Reason>,
    ) -> Result<Handle, Reason> {
        let key = if key.is_empty() { tenant } else { key };
        let group = self.groups_of.get(tenant).map_or(group, String::as_str);
        let group = if group.is_empty() { "default" } else { group };
        let mut names = self.lock();
        let fresh = names.free_groups.last().copied().unwrap_or(names.group_count);
        let group_index = names.groups.get(group).map_or(fresh, |group| group.index);
        let tenant_name = (group_index, String::from(tenant));
        let tenant_row = names.tenants.get(&tenant_name).copied();
        if let Some(row) = tenant_row
            && let Some(&flow) = names.flows.get(&(row, String::from(key)))
        {
            names.seen[flow.index as usize].since_ns = now_ns;
            return Ok(flow);
        }
        if names.flows.len() >= self.limit as usize {
            return Err(Reason::FlowTableFull);
        }
        let default = RowSpec { cap: u32::MAX, weight: DEFAULT_WEIGHT };
        let tenant_spec = self.tenants.get(tenant).copied().unwrap_or(default);
        let key_name = (String::from(tenant), String::from(key));
        let flow_spec = self.keys.get(&key_name).copied().unwrap_or(default);
        let made = add(&NewFlow {
            tenant: tenant_row.ok_or(tenant_spec),
            group: group_index,
            flow: flow_spec,
        })?;
        names.note(group, group_index, tenant_name, (made.tenant, key_name.1), made, now_ns);
        Ok(made.flow)
    }

    /// Whether the table is so full that idle flows should go: it is more than half full and was not swept for
    /// `pause_ns`.
    pub fn wants_sweep(&self, now_ns: u64, pause_ns: u64) -> bool {
        let names = self.lock();
        let is_rested = names.swept_ns.is_none_or(|swept| now_ns >= swept.saturating_add(pause_ns));
        is_rested && names.flows.len() > self.limit as usize / 2
    }

    /// Looks at every row and forgets the flows that have been idle for `idle_ns`; how many. `look` finds out, and
    /// forgets the rows, a [`BATCH`] at a time; the names are locked for a [`SLICE`] at a time.
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

impl Names {
    /// Keeps a flow that was made.
    fn note(
        &mut self,
        group: &str,
        group_index: u32,
        tenant: (u32, String),
        key: (u32, String),
        made: Made,
        now_ns: u64,
    ) {
        let is_new_tenant = self.tenants.insert(tenant, made.tenant).is_none();
        if !self.groups.contains_key(group) && self.free_groups.pop().is_none() {
            self.group_count += 1;
        }
        let known = self.groups.entry(String::from(group));
        known.or_insert(Group { index: group_index, tenants: 0 }).tenants +=
            u32::from(is_new_tenant);
        self.flows.insert(key, made.flow);
        let (row, now) = (made.flow.index as usize, Seen { served: 0, since_ns: now_ns });
        if self.seen.len() <= row {
            self.seen.resize(row + 1, now);
        }
        self.seen[row] = now;
    }

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
                    is_due: now_ns.saturating_sub(seen.since_ns) >= idle_ns,
                    found: Found::Idle,
                })
                .collect();
            look(&mut looks)?;
            for (seen, look) in self.seen[batch].iter_mut().zip(&looks) {
                match look.found {
                    Found::Used(served) => *seen = Seen { served, since_ns: now_ns },
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
        self.flows.retain(|_, flow| !is_gone(flow.index));
        let (groups, mut left) = (&mut self.groups, Vec::new());
        self.tenants.retain(|(group, _), row| {
            if is_gone(*row) {
                left.push(*group);
            }
            !is_gone(*row)
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
    use crate::types::settings::TenantSettings;

    #[test]
    fn a_name_is_added_once_and_takes_cap_and_group_from_the_settings() {
        let mut settings = Settings::default();
        settings.tenants.push(TenantSettings {
            name: "acme".into(),
            group: Some("chat".into()),
            weight: 7,
            max_in_flight: Some(2),
        });
        let flows = Flows::new(&settings, 2);
        let spec = RowSpec { cap: 2, weight: 7 };
        let first = flows.intern("other", "acme", "", 0, |new| {
            assert_eq!(new.tenant, Err(spec));
            Ok(made(0, 0, 0))
        });
        assert_eq!(first, Ok(handle(0, 0)));
        let again = flows.intern("", "acme", "acme", 0, |_| Err(Reason::Poisoned));
        assert_eq!(again, Ok(handle(0, 0)));
        let second = flows.intern("chat", "acme", "k", 0, |new| {
            assert_eq!((new.tenant, new.flow.cap), (Ok(0), u32::MAX));
            Ok(made(0, 1, 0))
        });
        assert_eq!(second, Ok(handle(1, 0)));
        let third = flows.intern("", "x", "", 0, |_| Ok(made(1, 2, 0)));
        assert_eq!(third, Err(Reason::FlowTableFull));
    }

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
                look.found = Found::Used(7);
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
