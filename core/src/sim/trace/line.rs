//! Lines of bounded length out of any reader.
#![forbid(unsafe_code)]

use std::io::{BufRead, Read};

use super::{MAX_LINE, TraceError};

/// Splits a reader into lines, counting them.
pub(super) struct Lines<R> {
    input: R,
    buf: Vec<u8>,
    number: u64,
}

impl<R: BufRead> Lines<R> {
    pub(super) fn new(input: R) -> Self {
        Self { input, buf: Vec::with_capacity(256), number: 0 }
    }

    /// Lines read so far.
    pub(super) fn number(&self) -> u64 {
        self.number
    }

    /// The next line with its number, without its end; `None` at the end of the input.
    pub(super) fn next_line(&mut self) -> Result<Option<(u64, &str)>, TraceError> {
        self.buf.clear();
        let line = self.number + 1;
        let limit = MAX_LINE as u64 + 1;
        let read = self.input.by_ref().take(limit).read_until(b'\n', &mut self.buf);
        let read = read.map_err(|e| TraceError::plain(line, "a readable file", e.to_string()))?;
        if read == 0 {
            return Ok(None);
        }
        if read > MAX_LINE {
            let expected = format!("a line of at most {MAX_LINE} bytes");
            return Err(TraceError::plain(line, expected, "a longer one"));
        }
        self.number = line;
        let mut text: &[u8] = &self.buf;
        if line == 1 {
            text = text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text);
        }
        text = text.strip_suffix(b"\n").unwrap_or(text);
        text = text.strip_suffix(b"\r").unwrap_or(text);
        let text = core::str::from_utf8(text)
            .map_err(|_| TraceError::new(line, "UTF-8 text", &String::from_utf8_lossy(text)))?;
        Ok(Some((line, text)))
    }
}
