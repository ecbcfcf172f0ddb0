//! Generic CSV: everything the engine knows of a request. Empty band, tenant or key: assigned by the rule.
#![forbid(unsafe_code)]

use super::{
    Tables, TraceError, TraceRow,
    field::{Fields, millis, tokens},
};

pub(super) const HEADER: &str = "t_ms,band,tenant,key,input_tokens,output_tokens";
pub(super) const WITH_SESSION: &str = "t_ms,band,tenant,key,input_tokens,output_tokens,session";

pub(super) fn row(
    line: u64,
    fields: &Fields<'_>,
    tables: &mut Tables,
) -> Result<TraceRow, TraceError> {
    Ok(TraceRow {
        t_ns: millis(line, "t_ms", fields[0])?,
        band_priority: priority(line, fields[1])?,
        tenant: tables.tenants.intern(fields[2]),
        key: tables.keys.intern(fields[3]),
        session: fields.get(6).and_then(|name| tables.sessions.intern(name)),
        input_tokens: tokens(line, "input_tokens", fields[4])?,
        output_tokens: tokens(line, "output_tokens", fields[5])?,
    })
}

fn priority(line: u64, text: &str) -> Result<Option<i32>, TraceError> {
    if text.is_empty() {
        return Ok(None);
    }
    text.parse().map(Some).map_err(|_| {
        TraceError::new(line, "band as a priority -2147483648..=2147483647 or empty", text)
    })
}
