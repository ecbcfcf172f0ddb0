//! The rules that words cannot say.

use crate::Found;
use crate::source::{Source, body_or_end, closing, line_of, words};

/// Ground: what every module may use.
const GROUND: &[&str] = &["sync", "types", "error", "clock", "topology"];

/// The modules of the library in the order of the path, each with what it may name beside itself and
/// the ground. A module that is not listed may not exist: a new one is a decision, made here.
const LAYERS: &[(&str, &[&str])] = &[
    ("sync", &[]),
    ("types", &[]),
    ("error", &[]),
    ("clock", &[]),
    ("topology", &[]),
    ("ring", &[]),
    ("slab", &["ring"]),
    ("queue", &["slab"]),
    ("select", &["slab"]),
    ("admit", &["slab"]),
    ("route", &["slab"]),
    ("notify", &["slab", "ring"]), // completions leave by the rings
    ("config", &[]),
    // config: the table of names through which a pool's flows are interned
    ("shard", &["ring", "slab", "queue", "select", "admit", "route", "notify", "config"]),
    ("engine", &["ring", "slab", "queue", "select", "admit", "route", "notify", "shard", "config"]),
    ("replica", ABOVE_ENGINE),
    ("observe", ABOVE_ENGINE),
    ("sim", ABOVE_ENGINE),
];
const ABOVE_ENGINE: &[&str] =
    &["ring", "slab", "queue", "select", "admit", "route", "notify", "shard", "engine", "config"];

const ORDERINGS: [&str; 5] = ["Relaxed", "Acquire", "Release", "AcqRel", "SeqCst"];

/// Longest file and longest function, in lines.
const FILE_LINES: usize = 500;
const FUNCTION_LINES: usize = 80;

/// The layer of a module; `shard` and `engine` may be cut into several files of that beginning.
fn layer(module: &str) -> Option<(&'static str, &'static [&'static str])> {
    let spine =
        |name: &str| matches!(name, "shard" | "engine") && module.starts_with(&format!("{name}_"));
    LAYERS.iter().find(|(name, _)| *name == module || spine(name)).copied()
}

/// Imports that go against the direction of the path.
pub(crate) fn layers(source: &Source) -> Found {
    let path = source.module();
    let Some((own, allowed)) = layer(path[0]) else {
        return vec![(0, format!("module `{}` is not in LAYERS", path[0]))];
    };
    let code = source.shipped();
    let mut found = Found::new();
    for at in words(&code, "crate") {
        for name in names_after(&code, at + "crate".len()) {
            let known = layer(&name).map_or(name.as_str(), |(known, _)| known);
            if known != own && !GROUND.contains(&known) && !allowed.contains(&known) {
                found.push((line_of(&code, at), format!("`{own}` names `crate::{name}`")));
            }
        }
    }
    for at in words(&code, "super").filter(|&at| !code[..at].ends_with("::")) {
        let ups = code[at..].split("::").take_while(|part| *part == "super").count();
        if ups < path.len() {
            continue;
        }
        for name in names_after(&code, at + "super::".len() * ups - "::".len()) {
            let Some((known, _)) = layer(&name) else { continue };
            if known != own && !GROUND.contains(&known) && !allowed.contains(&known) {
                found.push((line_of(&code, at), format!("`{own}` names `{name}` through super")));
            }
        }
    }
    found
}

/// First names of the path or of the braced list that follows `::` at `at`.
fn names_after(code: &str, at: usize) -> Vec<String> {
    let Some(rest) = code[at..].strip_prefix("::") else { return Vec::new() };
    let first = |text: &str| {
        let text = text.trim_start();
        let end = text.find(|c: char| !c.is_alphanumeric() && c != '_' && c != '*');
        text[..end.unwrap_or(text.len())].to_owned()
    };
    if !rest.starts_with('{') {
        return vec![first(rest)];
    }
    let (inner, mut depth, mut start) = (&rest[1..closing(rest, 0) - 1], 0_u32, 0);
    let mut names = Vec::new();
    for (i, c) in inner.char_indices() {
        match c {
            '{' => depth += 1,
            '}' => depth -= 1,
            ',' if depth == 0 => {
                names.push(first(&inner[start..i]));
                start = i + 1;
            }
            _ => {}
        }
    }
    names.push(first(&inner[start..]));
    names.retain(|name| !name.is_empty() && name != "self");
    names
}

/// Atomic accesses without an ORDERING comment on them or within six lines above.
pub(crate) fn atomic_accesses_are_explained(source: &Source) -> Found {
    const CALLS: [&str; 8] = [
        "load",
        "store",
        "swap",
        "compare_exchange",
        "compare_exchange_weak",
        "fence",
        "compiler_fence",
        "fetch_",
    ];
    let code = source.shipped();
    let mut found = Found::new();
    for call in CALLS {
        let hits: Vec<usize> = if call == "fetch_" {
            code.match_indices(".fetch_").map(|(at, _)| at + 1).collect()
        } else {
            words(&code, call).collect()
        };
        for at in hits {
            let name = code[at..].find(|c: char| !c.is_alphanumeric() && c != '_');
            let Some(open) = name.map(|n| at + n).filter(|&o| code[o..].starts_with('(')) else {
                continue;
            };
            let args = &code[open..closing(&code, open)];
            let ordering = |word: &&'static str| {
                words(args, word).any(|i| {
                    let before = args[..i].trim_end();
                    before.ends_with("Ordering::") || before.ends_with(['(', ','])
                })
            };
            let (first, last) = (line_of(&code, at), line_of(&code, open + args.len() - 1));
            if ORDERINGS.iter().any(&ordering) && !noted(source, "ORDERING:", first, last, 6) {
                found.push((first, format!("`{call}` without its ordering's reason")));
            }
        }
    }
    found
}

/// Whether `tag` stands in the comments of these lines or of the `above` lines before them; a block
/// of comments that reaches into those lines counts as a whole.
fn noted(source: &Source, tag: &str, first: usize, last: usize, above: usize) -> bool {
    let mut from = first.saturating_sub(above);
    while from > 0 && source.raw[from].trim_start().starts_with("//") {
        from -= 1;
    }
    source.notes[from..=last].iter().any(|note| note.contains(tag))
}

/// Unsafe blocks and impls without a SAFETY comment above the statement they stand in.
pub(crate) fn unsafe_is_explained(source: &Source) -> Found {
    let code = source.text();
    let mut found = Found::new();
    for at in words(&code, "unsafe") {
        let rest = code[at + "unsafe".len()..].trim_start();
        let line = line_of(&code, at);
        let is_claim = rest.starts_with('{') || words(rest, "impl").next() == Some(0);
        // Up to three lines of the same statement, or attributes, may stand between.
        if is_claim && !noted(source, "SAFETY:", line, line, 3) {
            found.push((line, "unsafe without its reason".into()));
        }
    }
    found
}

/// `SeqCst` anywhere but as the argument of a fence or in an import.
pub(crate) fn lone_seqcst(source: &Source) -> Found {
    let code = source.shipped();
    let alone = words(&code, "SeqCst").filter(|&at| {
        let before = code[..at].trim_end_matches("Ordering::");
        let statement = before.rfind([';', '{', '}']).map_or(0, |i| i + 1);
        let import =
            words(&before[before.rfind(';').map_or(0, |i| i + 1)..], "use").next().is_some();
        !before[statement..].trim_end().ends_with("fence(") && !import
    });
    alone.map(|at| (line_of(&code, at), "`SeqCst` outside a fence".into())).collect()
}

/// Float types and literals.
pub(crate) fn floats(source: &Source) -> Found {
    let code = source.shipped();
    let types = ["f32", "f64"].into_iter().flat_map(|word| words(&code, word)).collect::<Vec<_>>();
    let literals =
        code.match_indices(|c: char| c.is_ascii_digit()).map(|(at, _)| at).filter(|&at| {
            // Only where a number starts: not inside a name, a longer number, or after a field's dot.
            let starts =
                !code[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_' || c == '.');
            let number = code[at..].trim_start_matches(|c: char| c.is_ascii_digit() || c == '_');
            let mut next = number.chars();
            let (a, b) = (next.next(), next.next());
            starts
                && match a {
                    Some('.') => b.is_some_and(|c| c.is_ascii_digit()),
                    Some('e' | 'E') => b.is_some_and(|c| c.is_ascii_digit() || c == '-'),
                    Some('f') => number.starts_with("f32") || number.starts_with("f64"),
                    _ => false,
                }
        });
    let all = types.into_iter().chain(literals);
    all.map(|at| (line_of(&code, at), "a float".into())).collect()
}

/// Modules without unsafe code that do not forbid it. A file that only declares modules needs nothing.
pub(crate) fn forbid_where_nothing_is_unsafe(source: &Source) -> Found {
    let code = source.text();
    let has = |word: &str| words(&code, word).next().is_some();
    let holds_code = ["fn", "struct", "enum", "const"].into_iter().any(has);
    if source.forbids_unsafe || has("unsafe") || !holds_code {
        return Found::new();
    }
    vec![(0, "no unsafe code and nothing that keeps it out".into())]
}

/// Atomic types by name.
pub(crate) fn named_atomics(source: &Source) -> Found {
    let code = source.text();
    let types = code.match_indices("Atomic").map(|(at, _)| at).filter(|&at| {
        let whole = !code[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_');
        whole && code[at + "Atomic".len()..].starts_with(|c: char| c.is_ascii_uppercase())
    });
    let paths = words(&code, "sync::atomic").collect::<Vec<_>>();
    types.chain(paths).map(|at| (line_of(&code, at), "an atomic".into())).collect()
}

/// Files over the limit, tests included.
pub(crate) fn files_are_short(source: &Source) -> Found {
    let lines = source.raw.len();
    if lines <= FILE_LINES { Vec::new() } else { vec![(FILE_LINES, format!("{lines} lines"))] }
}

/// Functions over the limit, outside test modules.
pub(crate) fn functions_are_short(source: &Source) -> Found {
    let code = source.shipped();
    let mut found = Found::new();
    for at in words(&code, "fn").filter(|&at| code[at + 2..].starts_with(' ')) {
        if let Some((open, '{')) = body_or_end(&code, at) {
            let lines = line_of(&code, closing(&code, open) - 1) - line_of(&code, at) + 1;
            if lines > FUNCTION_LINES {
                found.push((line_of(&code, at), format!("a function of {lines} lines")));
            }
        }
    }
    found
}

/// What is left for later: macros, marks in comments, tests that do not run.
pub(crate) fn unfinished(source: &Source) -> Found {
    let (code, notes) = (source.text(), source.notes.join("\n"));
    let find = |text: &str, word: &str| -> Found {
        words(text, word).map(|at| (line_of(text, at), format!("`{word}`"))).collect()
    };
    let mut found = Found::new();
    for word in ["todo!", "unimplemented!", "#[ignore"] {
        found.extend(find(&code, word));
    }
    for word in [concat!("TO", "DO"), concat!("FIX", "ME")] {
        found.extend(find(&notes, word));
    }
    found
}
