//! The names of a pool's flows: the only place where a tenant or key is a string.
//!
//! Interning is cold: it takes a mutex, allocates, and waits for the pool's lock. Hot calls take the index.

use alloc::string::String;
use std::collections::HashMap;
use std::sync::Mutex;

use super::names::Names;
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

#[derive(Debug, Default)]
struct Known {
    groups: HashMap<String, u32>,
    /// By group.
    tenants: Names,
    /// By the row of the tenant.
    flows: Names,
}

/// The flows of one pool by name, at most `max_flows`.
#[derive(Debug)]
pub struct Flows {
    names: Mutex<Known>,
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

    /// The index of a flow, made by `add` (which answers its tenant's row and its own) if it is new.
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
        add: impl FnOnce(&NewFlow) -> Result<(u32, u32), Reason>,
    ) -> Result<u32, Reason> {
        let key = if key.is_empty() { tenant } else { key };
        let group = self.groups_of.get(tenant).map_or(group, String::as_str);
        let group = if group.is_empty() { "default" } else { group };
        // A panic of `add` leaves the names as they were: nothing is inserted before it has answered.
        let mut names = self.names.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let groups = u32::try_from(names.groups.len()).unwrap_or(u32::MAX);
        let group_index = names.groups.get(group).copied().unwrap_or(groups);
        let tenant_row = names.tenants.get(group_index, tenant);
        if let Some(row) = tenant_row
            && let Some(flow) = names.flows.get(row, key)
        {
            return Ok(flow);
        }
        let fits = names.tenants.has_room(tenant) && names.flows.has_room(key);
        if names.flows.len() >= self.limit as usize || !fits {
            return Err(Reason::FlowTableFull);
        }
        let default = RowSpec { cap: u32::MAX, weight: DEFAULT_WEIGHT };
        let tenant_spec = self.tenants.get(tenant).copied().unwrap_or(default);
        let key_name = (String::from(tenant), String::from(key));
        let flow_spec = self.keys.get(&key_name).copied().unwrap_or(default);
        let (row, flow) = add(&NewFlow {
            tenant: tenant_row.ok_or(tenant_spec),
            group: group_index,
            flow: flow_spec,
        })?;
        names.groups.entry(String::from(group)).or_insert(group_index);
        if tenant_row.is_none() {
            names.tenants.add(group_index, tenant, row);
        }
        names.flows.add(row, key, flow);
        Ok(flow)
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
        let first = flows.intern("other", "acme", "", |new| {
            assert_eq!(new.tenant, Err(spec));
            Ok((0, 0))
        });
        assert_eq!(first, Ok(0));
        assert_eq!(flows.intern("", "acme", "acme", |_| Err(Reason::Poisoned)), Ok(0));
        let second = flows.intern("chat", "acme", "k", |new| {
            assert_eq!((new.tenant, new.flow.cap), (Ok(0), u32::MAX));
            Ok((0, 1))
        });
        assert_eq!(second, Ok(1));
        assert_eq!(flows.intern("", "x", "", |_| Ok((1, 2))), Err(Reason::FlowTableFull));
    }
}
