//! ServeGen sample: `t_ms,client,input_tokens,output_tokens`; the client stands for a tenant.
#![forbid(unsafe_code)]

use super::{
    Tables, TraceError, TraceRow,
    field::{Fields, millis, tokens},
};

pub(super) const HEADER: &str = "t_ms,client,input_tokens,output_tokens";

pub(super) fn row(
    line: u64,
    fields: &Fields<'_>,
    tables: &mut Tables,
) -> Result<TraceRow, TraceError> {
    let client = fields[1];
    let tenant = tables
        .tenants
        .intern(client)
        .ok_or_else(|| TraceError::new(line, "a client (not empty)", client))?;
    Ok(TraceRow {
        t_ns: millis(line, "t_ms", fields[0])?,
        band_priority: None,
        tenant: Some(tenant),
        key: None,
        session: None,
        input_tokens: tokens(line, "input_tokens", fields[2])?,
        output_tokens: tokens(line, "output_tokens", fields[3])?,
    })
}
