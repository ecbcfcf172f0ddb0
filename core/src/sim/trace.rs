//! Trace readers: a text file in, one [`TraceRow`] a line out, or an error that names the line.
//!
//! The format is told by the header line:
//!
//! | header | format |
//! | --- | --- |
//! | `TIMESTAMP,ContextTokens,GeneratedTokens` | Azure LLM inference trace |
//! | `t_ms,client,input_tokens,output_tokens` | ServeGen sample; the client is the tenant |
//! | `t_ms,band,tenant,key,input_tokens,output_tokens[,session]` | generic; band, tenant, key and session may be empty |
//!
//! Common to all: fields are plain (no quotes), lines end with LF or CRLF, the last one may have no end, a byte-order
//! mark is skipped, a line has at most [`MAX_LINE`] bytes, times never decrease, and time 0 is the first row. A file
//! without rows, an empty line and a request of cost 0 are errors. Reading streams: one line is held at a time.
#![forbid(unsafe_code)]

mod azure;
mod field;
mod generic;
mod line;
mod servegen;

use std::{collections::HashMap, fmt, io::BufRead};

use self::{field::split, line::Lines};
use crate::types::NONE;

/// Longest line in bytes, its end included.
pub const MAX_LINE: usize = 4096;

/// Why a trace could not be read: the line, what it should have been, what it was.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TraceError {
    /// Line number, the first is 1.
    pub line: u64,
    /// What the reader expected there.
    pub expected: String,
    /// What it found, shortened.
    pub got: String,
}

impl TraceError {
    fn new(line: u64, expected: impl Into<String>, got: &str) -> Self {
        const SHOWN: usize = 60;
        let mut shown: String = got.chars().take(SHOWN).flat_map(char::escape_debug).collect();
        if got.chars().nth(SHOWN).is_some() {
            shown.push_str("...");
        }
        Self { line, expected: expected.into(), got: format!("\"{shown}\"") }
    }

    fn plain(line: u64, expected: impl Into<String>, got: impl Into<String>) -> Self {
        Self { line, expected: expected.into(), got: got.into() }
    }
}

impl fmt::Display for TraceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: expected {}, got {}", self.line, self.expected, self.got)
    }
}

impl core::error::Error for TraceError {}

/// One request of a trace. Names are indices into the reader's tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TraceRow {
    /// Nanoseconds since the first row.
    pub t_ns: u64,
    /// Priority of its band, if the trace says one.
    pub band_priority: Option<i32>,
    /// Tenant, an index into [`Trace::tenants`].
    pub tenant: Option<u32>,
    /// Key, an index into [`Trace::keys`].
    pub key: Option<u32>,
    /// Session, an index into [`Trace::sessions`].
    pub session: Option<u32>,
    /// Prompt tokens.
    pub input_tokens: u32,
    /// Generated tokens.
    pub output_tokens: u32,
}

impl TraceRow {
    /// Input and output tokens together, at least 1: the reader refuses other rows.
    pub fn cost(&self) -> u32 {
        self.input_tokens.saturating_add(self.output_tokens)
    }
}

/// Which of the known formats a file has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Azure LLM inference trace.
    Azure,
    /// ServeGen sample.
    ServeGen,
    /// Generic CSV.
    Generic {
        /// The optional last column is there.
        session: bool,
    },
}

impl Format {
    /// The format with this header line.
    fn of_header(header: &str) -> Option<Self> {
        match header {
            azure::HEADER => Some(Self::Azure),
            servegen::HEADER => Some(Self::ServeGen),
            generic::HEADER => Some(Self::Generic { session: false }),
            _ if header.strip_suffix(",session") == Some(generic::HEADER) => {
                Some(Self::Generic { session: true })
            }
            _ => None,
        }
    }

    /// Name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Azure => "azure",
            Self::ServeGen => "servegen",
            Self::Generic { .. } => "generic",
        }
    }
}

/// Names seen so far, each with its index in order of appearance.
#[derive(Clone, Debug, Default)]
pub struct Names {
    index: HashMap<Box<str>, u32>,
    names: Vec<Box<str>>,
}

impl Names {
    /// The index of `name`, a new one if it was not seen before. `None` for the empty name.
    fn intern(&mut self, name: &str) -> Option<u32> {
        if name.is_empty() {
            return None;
        }
        if let Some(&found) = self.index.get(name) {
            return Some(found);
        }
        let new = u32::try_from(self.names.len()).ok().filter(|&n| n != NONE)?;
        self.index.insert(name.into(), new);
        self.names.push(name.into());
        Some(new)
    }

    /// The name at `index`.
    pub fn get(&self, index: u32) -> Option<&str> {
        self.names.get(usize::try_from(index).ok()?).map(AsRef::as_ref)
    }

    /// How many names there are.
    pub fn len(&self) -> usize {
        self.names.len()
    }

    /// No name was seen.
    pub fn is_empty(&self) -> bool {
        self.names.is_empty()
    }
}

/// The three name tables of a reader.
#[derive(Clone, Debug, Default)]
struct Tables {
    tenants: Names,
    keys: Names,
    sessions: Names,
}

/// Reads a trace row by row; an iterator that ends after its first error.
pub struct TraceReader<R> {
    lines: Lines<R>,
    format: Format,
    tables: Tables,
    /// Time of the first row and of the last one, as the file has them.
    first_ns: Option<u64>,
    last_ns: u64,
    done: bool,
}

impl<R> fmt::Debug for TraceReader<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TraceReader").field("format", &self.format).finish_non_exhaustive()
    }
}

impl<R: BufRead> TraceReader<R> {
    /// Reads the header and tells the format by it.
    pub fn open(input: R) -> Result<Self, TraceError> {
        let mut lines = Lines::new(input);
        let expected = || {
            format!(
                "one of the header lines \"{}\", \"{}\", \"{}\" and \"{}\"",
                azure::HEADER,
                servegen::HEADER,
                generic::HEADER,
                generic::WITH_SESSION
            )
        };
        let format = match lines.next_line()? {
            None => return Err(TraceError::plain(1, expected(), "an empty file")),
            Some((line, header)) => Format::of_header(header)
                .ok_or_else(|| TraceError::new(line, expected(), header))?,
        };
        let tables = Tables::default();
        Ok(Self { lines, format, tables, first_ns: None, last_ns: 0, done: false })
    }

    /// The format the header told.
    pub fn format(&self) -> Format {
        self.format
    }

    /// The next row; `None` at the end of a file that had at least one.
    fn next_row(&mut self) -> Result<Option<TraceRow>, TraceError> {
        let Some((line, text)) = self.lines.next_line()? else {
            if self.first_ns.is_none() {
                let line = self.lines.number() + 1;
                return Err(TraceError::plain(line, "at least one row", "the end of the file"));
            }
            return Ok(None);
        };
        if text.is_empty() {
            return Err(TraceError::plain(line, "a row", "an empty line"));
        }
        let mut row = match self.format {
            Format::Azure => azure::row(line, &split(line, azure::HEADER, text)?)?,
            Format::ServeGen => {
                servegen::row(line, &split(line, servegen::HEADER, text)?, &mut self.tables)?
            }
            Format::Generic { session } => {
                let header = if session { generic::WITH_SESSION } else { generic::HEADER };
                generic::row(line, &split(line, header, text)?, &mut self.tables)?
            }
        };
        check_cost(line, &row)?;
        if self.first_ns.is_some() && row.t_ns < self.last_ns {
            let expected = "a time not before the one of the row above (rows sorted by time)";
            let time = text.split(',').next().unwrap_or_default();
            return Err(TraceError::new(line, expected, time));
        }
        self.last_ns = row.t_ns;
        row.t_ns -= *self.first_ns.get_or_insert(row.t_ns);
        Ok(Some(row))
    }
}

/// A cost is at least 1 and fits in 32 bits.
fn check_cost(line: u64, row: &TraceRow) -> Result<(), TraceError> {
    let expected = "input and output tokens that sum to 1..=4294967295 (the cost)";
    match row.input_tokens.checked_add(row.output_tokens) {
        Some(0) => Err(TraceError::plain(line, expected, "cost 0")),
        Some(_) => Ok(()),
        None => Err(TraceError::plain(
            line,
            expected,
            format!("{} and {}", row.input_tokens, row.output_tokens),
        )),
    }
}

impl<R: BufRead> Iterator for TraceReader<R> {
    type Item = Result<TraceRow, TraceError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.done {
            return None;
        }
        let next = self.next_row().transpose();
        self.done = !matches!(next, Some(Ok(_)));
        next
    }
}

/// A whole trace with its names.
#[derive(Clone, Debug)]
pub struct Trace {
    /// Its format.
    pub format: Format,
    /// Its rows in order of time, at least one.
    pub rows: Vec<TraceRow>,
    /// Tenant names.
    pub tenants: Names,
    /// Key names.
    pub keys: Names,
    /// Session names.
    pub sessions: Names,
}

impl Trace {
    /// Reads all of `input`.
    pub fn read(input: impl BufRead) -> Result<Self, TraceError> {
        let mut reader = TraceReader::open(input)?;
        let mut rows = Vec::new();
        while let Some(row) = reader.next_row()? {
            if rows.len() >= NONE as usize {
                let line = reader.lines.number();
                return Err(TraceError::plain(line, "at most 4294967295 rows", "one more"));
            }
            rows.push(row);
        }
        let TraceReader { format, tables: Tables { tenants, keys, sessions }, .. } = reader;
        Ok(Self { format, rows, tenants, keys, sessions })
    }
}

#[cfg(test)]
mod tests;
