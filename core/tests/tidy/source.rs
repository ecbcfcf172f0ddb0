//! A Rust file cut into what the rules look at: code without texts and comments, the comments, and
//! which lines belong to test modules. A lexer of one screen, not a parser: brace counting is enough.

use std::path::{Path, PathBuf};
use std::{collections::BTreeSet, fs};

/// One file, line by line. All vectors have the same length.
#[derive(Debug)]
pub(crate) struct Source {
    /// Path from the root of the repository, with `/`.
    pub(crate) path: String,
    /// The lines as they are.
    pub(crate) raw: Vec<String>,
    /// The lines with comments and the insides of texts blanked, columns kept.
    pub(crate) code: Vec<String>,
    /// The comments alone.
    pub(crate) notes: Vec<String>,
    /// Whether the line is in a test module.
    pub(crate) test: Vec<bool>,
    /// Whether this file, or a module file above it, forbids unsafe code.
    pub(crate) forbids_unsafe: bool,
}

impl Source {
    /// Cuts a text; `path` decides which rules apply.
    pub(crate) fn new(path: &str, text: &str) -> Self {
        // Only Rust has Rust's comments and texts; everything else is looked at as it is.
        let is_rust = Path::new(path).extension().is_some_and(|e| e == "rs");
        let (code, notes) =
            if is_rust { split(text) } else { (String::new(), " \n".repeat(text.lines().count())) };
        let lines = |s: &str| s.split('\n').map(str::to_owned).collect::<Vec<_>>();
        let mut source = Self {
            path: path.into(),
            raw: text.lines().map(str::to_owned).collect(),
            code: lines(&code),
            notes: lines(&notes),
            test: Vec::new(),
            forbids_unsafe: code.contains("#![forbid(unsafe_code)]"),
        };
        source.code.resize(source.raw.len(), String::new());
        source.notes.resize(source.raw.len(), String::new());
        source.test = test_lines(&source.text());
        source.test.resize(source.raw.len(), false);
        source
    }

    /// The blanked code as one text.
    pub(crate) fn text(&self) -> String {
        self.code.join("\n")
    }

    /// The blanked code without its test modules, as one text with the same lines.
    pub(crate) fn shipped(&self) -> String {
        let lines = self.code.iter().zip(&self.test);
        lines.map(|(line, &test)| if test { "" } else { line }).collect::<Vec<_>>().join("\n")
    }

    /// The module path below `core/src`: `queue/heap.rs` is `[queue, heap]`, `queue/mod.rs` `[queue]`.
    pub(crate) fn module(&self) -> Vec<&str> {
        let inner = self.path.strip_prefix("core/src/").unwrap_or(&self.path);
        let mut parts: Vec<&str> = inner.trim_end_matches(".rs").split('/').collect();
        if matches!(parts.last(), Some(&("mod" | "lib" | "main"))) {
            parts.pop();
        }
        parts
    }
}

/// Line number (from 0) of a byte of a text.
pub(crate) fn line_of(text: &str, at: usize) -> usize {
    text[..at].matches('\n').count()
}

/// Every place where `word` stands in `text` and does not continue a longer name on either side.
pub(crate) fn words<'a>(text: &'a str, word: &'a str) -> impl Iterator<Item = usize> + 'a {
    let name = |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric() || c == '_');
    text.match_indices(word).map(|(at, _)| at).filter(move |&at| {
        let before = name(word.chars().next()) && name(text[..at].chars().next_back());
        let after = name(word.chars().next_back()) && name(text[at + word.len()..].chars().next());
        !before && !after
    })
}

/// The end (exclusive) of the bracketed text that opens at byte `open`.
pub(crate) fn closing(text: &str, open: usize) -> usize {
    let mut depth = 0_u32;
    for (i, c) in text[open..].char_indices() {
        match c {
            '(' | '[' | '{' => depth += 1,
            ')' | ']' | '}' => depth = depth.saturating_sub(1),
            _ => continue,
        }
        if depth == 0 {
            return open + i + c.len_utf8();
        }
    }
    text.len()
}

/// The first `{` or `;` outside brackets at or after `from`: where a body opens, or an item without one ends.
pub(crate) fn body_or_end(text: &str, from: usize) -> Option<(usize, char)> {
    let mut depth = 0_i32;
    for (i, c) in text[from..].char_indices() {
        match c {
            '(' | '[' => depth += 1,
            ')' | ']' => depth -= 1,
            '{' | ';' if depth == 0 => return Some((from + i, c)),
            _ => {}
        }
    }
    None
}

/// Every Rust and text file of the repository, sorted by path.
pub(crate) fn load(root: &Path) -> Vec<Source> {
    let mut paths = Vec::new();
    walk(root, &mut paths);
    paths.sort();
    let mut sources: Vec<Source> = paths
        .iter()
        .filter_map(|path| {
            let text = fs::read_to_string(path).ok()?;
            let short = path.strip_prefix(root).ok()?.to_str()?.replace('\\', "/");
            Some(Source::new(&short, &text))
        })
        .collect();
    let forbidding: BTreeSet<String> =
        sources.iter().filter(|s| s.forbids_unsafe).map(|s| s.module().join("/")).collect();
    let tests: BTreeSet<String> = sources.iter().flat_map(test_files).collect();
    for source in &mut sources {
        let module = source.module().join("/");
        let within = |set: &BTreeSet<String>| {
            set.iter().any(|m| module == *m || module.starts_with(&format!("{m}/")))
        };
        source.forbids_unsafe = within(&forbidding);
        if within(&tests) {
            source.test.fill(true);
        }
    }
    sources
}

/// Files of the working tree, without what is built or hidden; `.ci` and dot-files are looked at.
fn walk(dir: &Path, out: &mut Vec<PathBuf>) {
    const TEXT: [&str; 14] = [
        "rs", "toml", "md", "yaml", "yml", "json", "jsonl", "csv", "c", "h", "hpp", "py", "pyi",
        "sh",
    ];
    for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
        let path = entry.path();
        let name = entry.file_name().to_string_lossy().into_owned();
        let is_dir = entry.file_type().is_ok_and(|kind| kind.is_dir());
        if is_dir {
            if !name.starts_with("target") && (name == ".ci" || !name.starts_with('.')) {
                walk(&path, out);
            }
        } else if matches!(name.as_str(), "Makefile" | "run")
            || path.extension().is_some_and(|e| TEXT.iter().any(|t| e == *t))
        {
            out.push(path);
        }
    }
}

/// Modules declared `#[cfg(test)] mod name;`: their files are tests from the first line to the last.
fn test_files(source: &Source) -> Vec<String> {
    let text = source.text();
    let outer = source.module().join("/");
    let mut found = Vec::new();
    for (at, _) in text.match_indices("#[cfg(test)]") {
        let rest = text[at + "#[cfg(test)]".len()..].trim_start();
        let rest = rest.strip_prefix("pub(crate) ").unwrap_or(rest);
        if let Some((name, _)) = rest.strip_prefix("mod ").and_then(|r| r.split_once(';'))
            && name.chars().all(|c| c.is_alphanumeric() || c == '_')
        {
            found.push(if outer.is_empty() { name.into() } else { format!("{outer}/{name}") });
        }
    }
    found
}

/// Lines of items under `#[cfg(test)]` (also `all(test, …)`), the attribute included.
fn test_lines(text: &str) -> Vec<bool> {
    let mut lines = vec![text.contains("#![cfg(test)]"); text.matches('\n').count() + 1];
    let marks = ["#[cfg(test)]", "#[cfg(all(test", "#[test]"];
    for (at, mark) in marks.iter().flat_map(|mark| text.match_indices(mark)) {
        let Some((end, kind)) = body_or_end(text, closing(text, at + mark.find('[').unwrap_or(0)))
        else {
            continue;
        };
        let end = if kind == '{' { closing(text, end) } else { end + 1 };
        lines[line_of(text, at)..=line_of(text, end - 1)].fill(true);
    }
    lines
}

/// What the lexer is in the middle of.
#[derive(Clone, Copy)]
enum In {
    Code,
    Line,
    Block(u32),
    Text,
    Raw(usize),
}

/// Splits a text into (code, comments), both with the same lines and columns as the original.
fn split(text: &str) -> (String, String) {
    let chars: Vec<char> = text.chars().collect();
    let (mut code, mut notes) = (String::new(), String::new());
    let (mut state, mut i) = (In::Code, 0);
    while i < chars.len() {
        let (next, len) = step(&chars, i, state);
        for &c in &chars[i..(i + len).min(chars.len())] {
            let is_note = matches!(state, In::Line | In::Block(_))
                || matches!((state, next), (In::Code, In::Line | In::Block(_)));
            let is_code = matches!((state, next), (In::Code, In::Code)) && len == 1;
            code.push(if c == '\n' || is_code { c } else { ' ' });
            notes.push(if c == '\n' || is_note { c } else { ' ' });
        }
        (state, i) = (next, i + len);
    }
    (code, notes)
}

/// The state after the characters at `i`, and how many of them belong together.
fn step(chars: &[char], i: usize, state: In) -> (In, usize) {
    let at = |k: usize| chars.get(i + k).copied().unwrap_or('\0');
    match state {
        In::Line => (if at(0) == '\n' { In::Code } else { In::Line }, 1),
        In::Block(depth) => match (at(0), at(1)) {
            ('*', '/') if depth == 1 => (In::Code, 2),
            ('*', '/') => (In::Block(depth - 1), 2),
            ('/', '*') => (In::Block(depth + 1), 2),
            _ => (state, 1),
        },
        In::Text if at(0) == '\\' => (In::Text, 2),
        In::Text => (if at(0) == '"' { In::Code } else { In::Text }, 1),
        In::Raw(hashes) => {
            let closes = at(0) == '"' && (1..=hashes).all(|k| at(k) == '#');
            if closes { (In::Code, 1 + hashes) } else { (state, 1) }
        }
        In::Code => match (at(0), at(1)) {
            ('/', '/') => (In::Line, 2),
            ('/', '*') => (In::Block(1), 2),
            ('"', _) => (In::Text, 1),
            ('r', '"' | '#')
                if !i
                    .checked_sub(1)
                    .is_some_and(|p| chars[p].is_alphanumeric() && chars[p] != 'b') =>
            {
                let hashes = (1..255).take_while(|&k| at(k) == '#').count();
                if at(1 + hashes) == '"' { (In::Raw(hashes), 2 + hashes) } else { (In::Code, 1) }
            }
            // A character and not a lifetime: blanked as a whole, so that '"' and '{' count for nothing.
            ('\'', '\\') => (In::Code, 3 + (3..12).take_while(|&k| at(k) != '\'').count() + 1),
            ('\'', _) if at(2) == '\'' => (In::Code, 3),
            _ => (In::Code, 1),
        },
    }
}
