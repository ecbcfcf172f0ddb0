//! A trace made ready for one configuration: integers only, so that replaying looks nothing up.
#![forbid(unsafe_code)]

use core::fmt;
use std::collections::HashMap;

use super::{
    assign::{Assigner, Rule, RuleError},
    service::{Speedup, service_ns},
    trace::{Trace, TraceRow},
};
use crate::types::{MAX_BANDS, NONE};

/// One request as the dispatcher gets it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SimRequest {
    /// Virtual arrival time in nanoseconds.
    pub arrive_ns: u64,
    /// Time it holds its slot in nanoseconds.
    pub service_ns: u64,
    /// Virtual time after which it waits no longer; `u64::MAX`: never.
    pub deadline_ns: u64,
    /// Row number in the trace, from 0; the request's name towards the dispatcher.
    pub row: u32,
    /// Flow, an index into [`Workload::flows`].
    pub flow: u32,
    /// Tokens, at least 1.
    pub cost: u32,
    /// Session number, [`NONE`] without one.
    pub session: u32,
    /// Band index, 0 the highest priority.
    pub band: u8,
}

/// A tenant and one of its keys.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SimFlow {
    /// Tenant name.
    pub tenant: String,
    /// Key name.
    pub key: String,
}

/// All requests of a trace for one set of bands, in order of arrival.
#[derive(Clone, Debug)]
pub struct Workload {
    /// The requests; `requests[i].row == i`.
    pub requests: Vec<SimRequest>,
    /// The flows they belong to.
    pub flows: Vec<SimFlow>,
}

/// What turns rows into requests.
#[derive(Clone, Copy, Debug)]
pub struct Plan<'a> {
    /// Assigns what the trace does not say.
    pub rule: &'a Rule,
    /// Provisioned priorities, descending, 1..=64 of them.
    pub priorities: &'a [i32],
    /// Factor on the arrival rate.
    pub speedup: Speedup,
    /// Longest wait in nanoseconds; absent: for ever.
    pub timeout_ns: Option<u64>,
}

/// Why a trace does not fit a configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WorkloadError {
    /// The assignment rule does not fit the bands.
    Rule(RuleError),
    /// A row names a band the pool does not have.
    UnknownBand {
        /// Line of the trace.
        line: u64,
        /// The band it names.
        priority: i32,
        /// The bands there are.
        provisioned: Vec<i32>,
    },
    /// A row arrives after the end of virtual time (2^64 nanoseconds).
    TooLate {
        /// Line of the trace.
        line: u64,
    },
    /// No bands, or more than a pool may have.
    Bands(usize),
}

impl fmt::Display for WorkloadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Rule(e) => e.fmt(f),
            Self::UnknownBand { line, priority, provisioned } => {
                let known: Vec<String> = provisioned.iter().map(ToString::to_string).collect();
                write!(
                    f,
                    "line {line}: expected a provisioned band ({}), got {priority}",
                    known.join(", ")
                )
            }
            Self::TooLate { line } => {
                write!(
                    f,
                    "line {line}: expected an arrival within 2^64 ns of virtual time, got a later one"
                )
            }
            Self::Bands(n) => write!(f, "expected 1..={MAX_BANDS} bands, got {n}"),
        }
    }
}

impl core::error::Error for WorkloadError {}

impl Workload {
    /// Makes `trace` ready under `plan`.
    pub fn build(trace: &Trace, plan: &Plan<'_>) -> Result<Self, WorkloadError> {
        if plan.priorities.is_empty() || plan.priorities.len() > MAX_BANDS {
            return Err(WorkloadError::Bands(plan.priorities.len()));
        }
        let assigner = plan.rule.over(plan.priorities).map_err(WorkloadError::Rule)?;
        let mut flows = FlowTable::default();
        let mut requests = Vec::with_capacity(trace.rows.len());
        for (row, number) in trace.rows.iter().zip(0u32..) {
            let line = u64::from(number) + 2;
            let arrive_ns = plan.speedup.scale(row.t_ns).ok_or(WorkloadError::TooLate { line })?;
            requests.push(SimRequest {
                arrive_ns,
                service_ns: service_ns(row.input_tokens, row.output_tokens),
                deadline_ns: plan.timeout_ns.map_or(u64::MAX, |t| arrive_ns.saturating_add(t)),
                row: number,
                flow: flows.of(row, number, &assigner, trace),
                cost: row.cost(),
                session: row.session.unwrap_or(NONE),
                band: band_of(row, number, &assigner, plan.priorities)?,
            });
        }
        Ok(Self { requests, flows: flows.flows })
    }
}

#[allow(clippy::cast_possible_truncation, reason = "an index among at most 64 bands")]
fn band_of(
    row: &TraceRow,
    number: u32,
    assigner: &Assigner,
    priorities: &[i32],
) -> Result<u8, WorkloadError> {
    let Some(priority) = row.band_priority else {
        return Ok(assigner.band(number) as u8);
    };
    match priorities.iter().position(|&p| p == priority) {
        Some(band) => Ok(band as u8),
        None => Err(WorkloadError::UnknownBand {
            line: u64::from(number) + 2,
            priority,
            provisioned: priorities.to_vec(),
        }),
    }
}

/// A tenant or key: named by the trace or numbered by the rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Name {
    Traced(u32),
    Assigned(u32),
}

/// Flows in order of appearance.
#[derive(Debug, Default)]
struct FlowTable {
    index: HashMap<(Name, Name), u32>,
    flows: Vec<SimFlow>,
}

impl FlowTable {
    fn of(&mut self, row: &TraceRow, number: u32, assigner: &Assigner, trace: &Trace) -> u32 {
        let tenant =
            row.tenant.map_or_else(|| Name::Assigned(assigner.tenant(number)), Name::Traced);
        let key = row.key.map_or_else(|| Name::Assigned(assigner.key(number)), Name::Traced);
        let flows = &mut self.flows;
        *self.index.entry((tenant, key)).or_insert_with(|| {
            let tenant = match tenant {
                Name::Traced(i) => trace.tenants.get(i).unwrap_or_default().to_owned(),
                Name::Assigned(n) => format!("t{n}"),
            };
            let key = match key {
                Name::Traced(i) => trace.keys.get(i).unwrap_or_default().to_owned(),
                Name::Assigned(n) => format!("{tenant}-k{n}"),
            };
            flows.push(SimFlow { tenant, key });
            // At most one flow a row, and rows are numbered in 32 bits.
            u32::try_from(flows.len() - 1).unwrap_or(NONE)
        })
    }
}
