//! What is wrong with a configuration, and where: every fault of a document is collected before any is reported.

use core::fmt;

use super::host::PolicyTypes;
use super::node::At;

/// One thing that is wrong. Displayed as `NAME:LINE: path: message (did you mean ...)`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// Name of the document, or of the environment variable the value came from.
    pub origin: String,
    /// Where in the configuration, as in `pools.chat.slots`; empty for the document as a whole.
    pub path: String,
    /// Line of the document, from 1; absent for a variable.
    pub line: Option<u32>,
    /// Column of that line, from 1.
    pub column: Option<u32>,
    /// What is wrong and what to write instead.
    pub message: String,
    /// The nearest name that exists, if one is near.
    pub suggestion: Option<String>,
}

/// Something that is accepted but probably not meant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Warning {
    /// Name of the document, or of the environment variable the value came from.
    pub origin: String,
    /// Where in the configuration.
    pub path: String,
    /// Line of the document, from 1; absent for a variable.
    pub line: Option<u32>,
    /// What is ignored, and why.
    pub message: String,
}

/// Every fault of a configuration, in the order of the document; never empty.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}", lines(.faults))]
pub struct ConfigError {
    /// The faults: first those of the document by line, then those of variables by name.
    pub faults: Vec<Fault>,
}

fn lines(faults: &[Fault]) -> String {
    let all: Vec<String> = faults.iter().map(ToString::to_string).collect();
    all.join("\n")
}

fn place(f: &mut fmt::Formatter<'_>, origin: &str, line: Option<u32>, path: &str) -> fmt::Result {
    write!(f, "{origin}:")?;
    if let Some(line) = line {
        write!(f, "{line}:")?;
    }
    if path.is_empty() { Ok(()) } else { write!(f, " {path}:") }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        place(f, &self.origin, self.line, &self.path)?;
        write!(f, " {}", self.message)?;
        match &self.suggestion {
            Some(name) => write!(f, " (did you mean {name})"),
            None => Ok(()),
        }
    }
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        place(f, &self.origin, self.line, &self.path)?;
        write!(f, " {}", self.message)
    }
}

/// Most faults kept of one document; the rest is counted.
const MAX_FAULTS: usize = 1_000;

/// Collects the faults and warnings of one document.
#[derive(Debug)]
pub(crate) struct Faults {
    document: String,
    list: Vec<Fault>,
    more: usize,
    pub(crate) warnings: Vec<Warning>,
    /// The types of the host: every reader has its faults at hand, so they come along with them.
    pub(crate) types: PolicyTypes,
}

impl Faults {
    pub(crate) fn new(document: &str) -> Self {
        Self {
            document: document.into(),
            list: Vec::new(),
            more: 0,
            warnings: Vec::new(),
            types: PolicyTypes::default(),
        }
    }

    /// For a document that may name these types.
    pub(crate) fn with_types(mut self, types: &PolicyTypes) -> Self {
        self.types = types.clone();
        self
    }

    /// Notes a fault at a place of the document or of a variable.
    pub(crate) fn add(&mut self, path: &str, at: &At, message: impl Into<String>) {
        self.suggest(path, at, message, None);
    }

    /// Notes a fault together with the name that was probably meant.
    pub(crate) fn suggest(
        &mut self,
        path: &str,
        at: &At,
        message: impl Into<String>,
        suggestion: Option<&str>,
    ) {
        if self.full() {
            self.more += 1;
            return;
        }
        self.list.push(Fault {
            origin: self.origin(at),
            path: path.into(),
            line: at.line(),
            column: at.column(),
            message: message.into(),
            suggestion: suggestion.map(Into::into),
        });
    }

    /// Whether further faults are only counted.
    pub(crate) fn full(&self) -> bool {
        self.list.len() >= MAX_FAULTS
    }

    /// Whether there is none yet.
    pub(crate) fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    pub(crate) fn warn(&mut self, path: &str, at: &At, message: impl Into<String>) {
        let warning = Warning {
            origin: self.origin(at),
            path: path.into(),
            line: at.line(),
            message: message.into(),
        };
        self.warnings.push(warning);
    }

    fn origin(&self, at: &At) -> String {
        at.variable().map_or_else(|| self.document.clone(), Into::into)
    }

    /// The warnings, or the error when anything is wrong.
    pub(crate) fn finish(self) -> Result<Vec<Warning>, ConfigError> {
        if self.list.is_empty() { Ok(self.warnings) } else { Err(self.into_error()) }
    }

    /// The faults in the order of the document.
    pub(crate) fn into_error(mut self) -> ConfigError {
        let document = self.document;
        self.list.sort_by(|a, b| {
            let key = |f: &Fault| (f.origin != document, f.line, f.column);
            key(a).cmp(&key(b)).then_with(|| a.origin.cmp(&b.origin))
        });
        if self.more > 0 {
            self.list.push(Fault {
                origin: document,
                path: String::new(),
                line: None,
                column: None,
                message: format!("{} more faults are not listed: correct these first", self.more),
                suggestion: None,
            });
        }
        ConfigError { faults: self.list }
    }
}
