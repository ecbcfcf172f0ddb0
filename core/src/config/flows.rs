//! The names of a pool's flows: the only place where a tenant or key is a string.
//!
//! Interning is cold: it takes a mutex, allocates, and waits for the pool's lock. Hot calls take the index.

mod sweep;

use alloc::string::String;
use alloc::vec::Vec;
use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::names::Names;
use crate::error::Reason;
use crate::types::settings::{KeySettings, Settings};

pub use sweep::{Found, Look};

/// Cap and weight of a row to be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RowSpec {
    /// Most requests running at once; `u32::MAX`: no cap.
    pub cap: u32,
    /// Weight in fair share; no effect yet.
    pub weight: u32,
    /// Runs at once, without a slot; of a tenant: said of its flows too.
    pub exempt: bool,
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

/// What the settings say of tenants and keys.
#[derive(Debug, Default)]
struct Specs {
    tenants: HashMap<String, RowSpec>,
    keys: HashMap<(String, String), RowSpec>,
    groups_of: HashMap<String, String>,
}

impl Specs {
    const DEFAULT: RowSpec = RowSpec { cap: u32::MAX, weight: DEFAULT_WEIGHT, exempt: false };

    fn new(settings: &Settings) -> Self {
        let spec = |cap: Option<u32>, weight, exempt| RowSpec {
            cap: cap.unwrap_or(u32::MAX),
            weight,
            exempt,
        };
        let tenants = settings.tenants.iter();
        let key = |key: &KeySettings| (key.tenant.clone(), key.name.clone());
        Self {
            tenants: tenants
                .map(|t| (t.name.clone(), spec(t.max_in_flight, t.weight, t.exempt)))
                .collect(),
            keys: settings
                .keys
                .iter()
                .map(|k| (key(k), spec(k.max_in_flight, k.weight, k.exempt)))
                .collect(),
            groups_of: settings
                .tenants
                .iter()
                .filter_map(|t| Some((t.name.clone(), t.group.clone()?)))
                .collect(),
        }
    }

    fn tenant(&self, name: &str) -> RowSpec {
        self.tenants.get(name).copied().unwrap_or(Self::DEFAULT)
    }

    fn key(&self, tenant: &str, key: &str) -> RowSpec {
        let name = (String::from(tenant), String::from(key));
        let own = self.keys.get(&name).copied().unwrap_or(Self::DEFAULT);
        RowSpec { exempt: own.exempt || self.tenant(tenant).exempt, ..own }
    }
}

/// What a flow and its tenant may do from now on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NewSpec {
    /// The flow.
    pub handle: Handle,
    /// The flow's own.
    pub flow: RowSpec,
    /// Its tenant's.
    pub tenant: RowSpec,
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
    generation: u32,
    in_use: bool,
}

#[derive(Debug, Default)]
struct Known {
    specs: Specs,
    groups: HashMap<String, Group>,
    /// Indices of groups without tenants, and how many indices there are.
    free_groups: Vec<u32>,
    group_count: u32,
    /// Rows of tenants, by group.
    tenants: Names,
    /// Rows of flows, by the row of their tenant.
    flows: Names,
    seen: Vec<Seen>,
    swept_ns: Option<u64>,
}

/// The flows of one pool by name, at most `max_flows`.
#[derive(Debug)]
pub struct Flows {
    names: Mutex<Known>,
    limit: u32,
}

impl Flows {
    /// The names of a pool under these settings, which say what is known of tenants and keys.
    pub fn new(settings: &Settings, max_flows: u32) -> Self {
        let names = Known { specs: Specs::new(settings), ..Known::default() };
        Self { names: Mutex::new(names), limit: max_flows }
    }

    /// Group, tenant and key of a flow. Cold: takes the mutex and looks through the names.
    pub fn name_of(&self, flow: u32) -> Option<(String, String, String)> {
        let names = self.lock();
        let (row, key, _) = names.flows.iter().find(|(_, _, index)| *index == flow)?;
        let (group, tenant, _) = names.tenants.iter().find(|(_, _, index)| *index == row)?;
        let (group, _) = names.groups.iter().find(|(_, it)| it.index == group)?;
        Some((group.clone(), String::from(tenant), String::from(key)))
    }

    fn lock(&self) -> MutexGuard<'_, Known> {
        // A panic of what is called leaves the names as they were: they change after it has answered.
        self.names.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes over what new settings say of tenants and keys; what changes for the flows that exist.
    pub fn reload(&self, settings: &Settings) -> Vec<NewSpec> {
        let mut names = self.lock();
        let (old, new) = (core::mem::take(&mut names.specs), Specs::new(settings));
        let mut changed = Vec::new();
        let tenants: HashMap<u32, &str> =
            names.tenants.iter().map(|(_, tenant, row)| (row, tenant)).collect();
        for (tenant_row, key, index) in names.flows.iter() {
            let Some(tenant) = tenants.get(&tenant_row) else { continue };
            let spec = |specs: &Specs| (specs.key(tenant, key), specs.tenant(tenant));
            let (flow, its_tenant) = spec(&new);
            if spec(&old) != (flow, its_tenant) {
                changed.push(NewSpec { handle: names.handle(index), flow, tenant: its_tenant });
            }
        }
        names.specs = new;
        changed
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
        let mut names = self.lock();
        let group = names.specs.groups_of.get(tenant).map_or(group, String::as_str);
        let group = String::from(if group.is_empty() { "default" } else { group });
        let fresh = names.free_groups.last().copied().unwrap_or(names.group_count);
        let group_index = names.groups.get(&group).map_or(fresh, |group| group.index);
        let tenant_row = names.tenants.get(group_index, tenant);
        if let Some(row) = tenant_row
            && let Some(flow) = names.flows.get(row, key)
        {
            names.seen[flow as usize].since_ns = now_ns;
            return Ok(names.handle(flow));
        }
        let fits = names.tenants.has_room(tenant) && names.flows.has_room(key);
        if names.flows.len() >= self.limit as usize || !fits {
            return Err(Reason::FlowTableFull);
        }
        let (tenant_spec, flow_spec) = (names.specs.tenant(tenant), names.specs.key(tenant, key));
        let made = add(&NewFlow {
            tenant: tenant_row.ok_or(tenant_spec),
            group: group_index,
            flow: flow_spec,
        })?;
        if tenant_row.is_none() {
            names.tenants.add(group_index, tenant, made.tenant);
            names.count_tenant(group, group_index);
        }
        names.flows.add(made.tenant, key, made.flow.index);
        names.note(made.flow, now_ns);
        Ok(made.flow)
    }
}

impl Known {
    /// The handle of a flow that exists.
    fn handle(&self, index: u32) -> Handle {
        Handle { index, generation: self.seen[index as usize].generation }
    }

    /// A tenant of this group was made, and the group if it is new.
    fn count_tenant(&mut self, group: String, index: u32) {
        if !self.groups.contains_key(&group) && self.free_groups.pop().is_none() {
            self.group_count += 1;
        }
        self.groups.entry(group).or_insert(Group { index, tenants: 0 }).tenants += 1;
    }

    /// A flow was made.
    fn note(&mut self, Handle { index, generation }: Handle, now_ns: u64) {
        let seen = Seen { served: 0, since_ns: now_ns, generation, in_use: false };
        if self.seen.len() <= index as usize {
            self.seen.resize(index as usize + 1, seen);
        }
        self.seen[index as usize] = seen;
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
            exempt: false,
        });
        let flows = Flows::new(&settings, 2);
        let spec = RowSpec { cap: 2, weight: 7, exempt: false };
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
}
