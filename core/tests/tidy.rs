//! The rules of the tree, checked by reading it: who may import whom, who may name atomics, time,
//! locks and system calls, and that every unsafe block and atomic access says why it is right.
//!
//! [`RULES`] is the list. Every rule carries snippets that break it and one that does not, so a rule
//! that cannot fail fails its own test. Allowances stand in the table, nowhere else.

#[path = "tidy/checks.rs"]
mod checks;
#[path = "tidy/source.rs"]
mod source;

use checks::{
    atomic_accesses_are_explained, files_are_short, floats, forbid_where_nothing_is_unsafe,
    functions_are_short, layers, lone_seqcst, named_atomics, unfinished, unsafe_is_explained,
};
use source::{Source, load, words};
use std::path::Path;

/// What a rule found: the line, from 0, and what stands there.
type Found = Vec<(usize, String)>;

/// How a rule looks.
enum Check {
    /// None of these words in shipped code (comments, texts and test modules do not count).
    Shipped(&'static [&'static str]),
    /// None of these words in code, test modules included.
    Code(&'static [&'static str]),
    /// None of these anywhere, comments included.
    Anywhere(&'static [&'static str]),
    /// Something that words cannot say.
    By(fn(&Source) -> Found),
}

/// One rule.
struct Rule {
    name: &'static str,
    /// Beginnings of the paths it looks at.
    within: &'static [&'static str],
    /// Beginnings of the paths that may do it all the same.
    except: &'static [&'static str],
    check: Check,
    /// What to do instead.
    fix: &'static str,
    /// (path, text) that must be found.
    bad: &'static [(&'static str, &'static str)],
    /// (path, text) that must not be found.
    good: &'static [(&'static str, &'static str)],
}

/// A text eight times.
macro_rules! eight {
    ($text:expr) => {
        concat!($text, $text, $text, $text, $text, $text, $text, $text)
    };
}

const CORE: &[&str] = &["core/src/"];
const ALL_RUST: &[&str] =
    &["core/src/", "core/tests/", "core/examples/", "benches/", "loom-tests/", "ffi/", "python/"];
const STAGES_ON_CORE: &[&str] =
    &["core/src/ring/", "core/src/slab", "core/src/queue/", "core/src/select/", "core/src/admit/"];

/// A function of more than 512 lines.
const LONG: &str = concat!("fn f() {\n", eight!(eight!(eight!("g();\n"))), "}\n");

const RULES: &[Rule] = &[
    Rule {
        name: "layers",
        within: CORE,
        except: &["core/src/lib.rs", "core/src/design.rs", "core/src/bin/"],
        check: Check::By(layers),
        fix: "move what is shared into types, or compose it in shard or engine (see LAYERS)",
        bad: &[
            ("core/src/queue/heap.rs", "use crate::select::Rank;"),
            ("core/src/queue/heap.rs", "use crate::{types::NONE, admit::Word};"),
            ("core/src/queue/heap.rs", "use super::super::notify::Bell;"),
            ("core/src/select/mod.rs", "use super::queue::Lane;"),
            ("core/src/types/policy.rs", "fn f() { crate::queue::f(); }"),
            ("core/src/ring/mpsc.rs", "use crate::slab::Slab;"),
            ("core/src/admit/word.rs", "use crate::Engine;"),
            ("core/src/select/flow.rs", "use crate::*;"),
            ("core/src/newcomer.rs", "use crate::types::NONE;"),
        ],
        good: &[
            ("core/src/queue/heap.rs", "use crate::{slab::Slab, types::NONE}; use super::lane::L;"),
            ("core/src/shard/turn.rs", "use crate::{queue::Q, select::S, admit::A, notify::N};"),
            ("core/src/queue/heap.rs", "// crate::select is not ours\nfn f() {}"),
        ],
    },
    Rule {
        name: "one-facade",
        within: CORE,
        // The model of a parker stands in for the system under loom, and exists only there.
        except: &["core/src/sync.rs", "core/src/notify/parker/model.rs"],
        check: Check::Code(&["sync::atomic", "atomic::", "loom::", "cell::UnsafeCell"]),
        fix: "use crate::sync, which is std or loom",
        bad: &[
            ("core/src/ring/mpsc.rs", "use core::sync::atomic::AtomicU64;"),
            ("core/src/ring/mpsc.rs", "use std::sync::{atomic::AtomicU64};"),
            ("core/src/slab.rs", "let cell = loom::cell::UnsafeCell::new(0);"),
        ],
        good: &[
            ("core/src/ring/mpsc.rs", "use crate::sync::AtomicU64; use atomic_waker::AtomicWaker;"),
            ("core/src/sync.rs", "pub use core::sync::atomic::AtomicU64;"),
        ],
    },
    Rule {
        name: "system-calls",
        within: CORE,
        except: &[
            "core/src/notify/",
            "core/src/replica/",
            "core/src/topology",
            "core/src/clock.rs",
        ],
        check: Check::Shipped(&["libc", "io_uring", "asm!", "global_asm!", "syscall", "std::os"]),
        fix: "system calls live in notify, replica and topology (clock for the time)",
        bad: &[
            ("core/src/engine.rs", "unsafe { libc::write(1, p, 1) };"),
            ("core/src/shard.rs", "use io_uring::IoUring;"),
        ],
        good: &[("core/src/notify/eventfd.rs", "use libc::c_int;")],
    },
    Rule {
        name: "time",
        within: CORE,
        except: &["core/src/clock.rs"],
        check: Check::Shipped(&["Instant::now", "SystemTime", "_rdtsc", "clock_gettime"]),
        fix: "take `now` as an argument; only clock reads time",
        bad: &[("core/src/queue/wheel.rs", "let now = std::time::Instant::now();")],
        good: &[("core/src/clock.rs", "let now = Instant::now();")],
    },
    Rule {
        name: "locks",
        within: CORE,
        except: &[
            "core/src/config/",
            "core/src/observe/",
            "core/src/replica/",
            "core/src/bin/",
            "core/src/notify/",
        ],
        check: Check::Shipped(&[
            "Mutex",
            "RwLock",
            "Condvar",
            "mpsc::channel",
            "mpsc::sync_channel",
            "sync::mpsc",
        ]),
        fix: "no thread waits for another below the surfaces: use the pool's lock bit and its ring",
        bad: &[
            ("core/src/engine.rs", "static M: std::sync::Mutex<u8> = std::sync::Mutex::new(0);"),
            ("core/src/shard.rs", "use std::sync::mpsc;"),
        ],
        good: &[
            ("core/src/notify/park.rs", "use std::sync::{Condvar, Mutex};"),
            ("core/src/ring/mod.rs", "pub mod mpsc;"),
        ],
    },
    Rule {
        name: "core-not-std",
        within: STAGES_ON_CORE,
        except: &[],
        check: Check::Shipped(&["std::"]),
        fix: "import from core or alloc; threads and files belong to other modules",
        bad: &[("core/src/queue/mod.rs", "use std::vec::Vec;")],
        good: &[(
            "core/src/queue/mod.rs",
            "use alloc::vec::Vec;\n#[cfg(test)]\nmod tests {\n use std::thread;\n}",
        )],
    },
    Rule {
        name: "orderings-explained",
        within: CORE,
        except: &[],
        check: Check::By(atomic_accesses_are_explained),
        fix: "write `// ORDERING:` within six lines above: what it pairs with and why not weaker",
        bad: &[
            ("core/src/slab.rs", "let n = self.len.load(Relaxed);"),
            (
                "core/src/slab.rs",
                "self.len\n.compare_exchange(\na,\nb,\nOrdering::AcqRel,\nRelaxed,\n);",
            ),
            ("core/src/slab.rs", "fence(SeqCst);"),
            (
                "core/src/slab.rs",
                "// ORDERING: far away.\n\n\n\n\n\n\n\nself.len.store(1, Release);",
            ),
        ],
        good: &[
            ("core/src/slab.rs", "// ORDERING: a statistic.\nlet n = self.len.load(Relaxed);"),
            (
                "core/src/slab.rs",
                "// ORDERING: long,\n//a\n//b\n//c\n//d\n//e\n//f\nself.len.store(1, Release);",
            ),
            ("core/src/slab.rs", "list.swap(Command::Release, other); use x::Ordering::Relaxed;"),
            ("core/src/slab.rs", "#[cfg(test)]\nmod tests {\n fn f() { x.load(Relaxed); }\n}"),
        ],
    },
    Rule {
        name: "seqcst-only-as-fence",
        within: CORE,
        except: &["core/src/sync.rs"],
        check: Check::By(lone_seqcst),
        fix: "say the pair with Acquire and Release, or use fence(SeqCst) between store and load",
        bad: &[("core/src/ring/mpsc.rs", "self.tail.store(1, Ordering::SeqCst);")],
        good: &[(
            "core/src/ring/mpsc.rs",
            "use crate::sync::Ordering::SeqCst;\nfence(SeqCst); fence(Ordering::SeqCst);",
        )],
    },
    Rule {
        name: "safety-explained",
        within: ALL_RUST,
        except: &[],
        check: Check::By(unsafe_is_explained),
        fix: "write `// SAFETY:` above it: which rule makes it sound",
        bad: &[
            ("core/src/slab.rs", "let x = 1;\nunsafe { f(x) }"),
            ("core/src/slab.rs", "unsafe impl Send for Slab {}"),
        ],
        good: &[
            (
                "core/src/slab.rs",
                "// SAFETY: the caller owns the entry,\n// see above.\nlet x = unsafe { f() };",
            ),
            (
                "core/src/slab.rs",
                "// SAFETY: as above.\n#[cfg(not(loom))]\nunsafe impl Send for Slab {}",
            ),
        ],
    },
    Rule {
        name: "unsafe-only-where-needed",
        within: CORE,
        except: &[
            "core/src/ring/",
            "core/src/slab",
            "core/src/sync.rs",
            "core/src/notify/",
            "core/src/replica/",
            "core/src/topology",
            "core/src/clock.rs",
            "core/src/shard",
            "core/src/engine",
            "core/src/admit/word.rs",
        ],
        check: Check::Code(&["unsafe"]),
        fix: "keep unsafe in the cells and rings; everything else is plain memory under LOCK",
        bad: &[("core/src/queue/heap.rs", "unsafe { *p }")],
        good: &[
            ("core/src/ring/mpsc.rs", "unsafe { *p }"),
            ("core/src/queue/mod.rs", "#![forbid(unsafe_code)]"),
        ],
    },
    Rule {
        name: "forbid-unsafe",
        within: &[
            "core/src/select/",
            "core/src/queue/",
            "core/src/config/",
            "core/src/sim/",
            "core/src/types",
        ],
        except: &[],
        check: Check::By(forbid_where_nothing_is_unsafe),
        fix: "write #![forbid(unsafe_code)] at its top, or at the top of the module above it",
        bad: &[("core/src/queue/lane.rs", "//! Lanes.\nfn f() {}")],
        good: &[
            ("core/src/queue/lane.rs", "//! Lanes.\n#![forbid(unsafe_code)]\nfn f() {}"),
            ("core/src/queue/mod.rs", "pub mod lane;"),
        ],
    },
    Rule {
        name: "no-floats",
        within: &["core/src/select/", "core/src/queue/", "core/src/ring/"],
        except: &[],
        check: Check::By(floats),
        fix: "weights, shares and scores are integers; see select for the fractions",
        bad: &[
            ("core/src/select/band/wfq.rs", "let share: f64 = x;"),
            ("core/src/queue/mod.rs", "let half = 0.5;"),
            ("core/src/queue/mod.rs", "let n = 1e9;"),
        ],
        good: &[("core/src/queue/mod.rs", "for i in 0..10 { t.0.1 += 0x1e9 + 7_u64; }")],
    },
    Rule {
        name: "models-use-production-types",
        within: &["loom-tests/"],
        except: &["loom-tests/src/"],
        check: Check::By(named_atomics),
        fix: "drive core's own type; ghost counters come from the helper in loom-tests/src",
        bad: &[
            ("loom-tests/tests/word.rs", "use loom::sync::atomic::AtomicU64;"),
            ("loom-tests/tests/word.rs", "let w = AtomicUsize::new(0);"),
        ],
        good: &[
            ("loom-tests/tests/word.rs", "use bandgate_core::admit::PoolWord;"),
            ("loom-tests/src/lib.rs", "use std::sync::atomic::AtomicU64;"),
        ],
    },
    Rule {
        name: "file-length",
        within: ALL_RUST,
        except: &[],
        check: Check::By(files_are_short),
        fix: "one idea a file: cut it where the second idea begins (tests may go to tests.rs)",
        bad: &[("core/src/slab.rs", LONG)],
        good: &[("core/src/slab.rs", "fn f() {}"), ("benches/traces/a.csv", LONG)],
    },
    Rule {
        name: "function-length",
        within: ALL_RUST,
        except: &[],
        check: Check::By(functions_are_short),
        fix: "one screen a function: name the steps",
        bad: &[("core/src/slab.rs", LONG)],
        good: &[("core/src/slab.rs", "fn f(a: [u8; 4]) -> u8 {\n a[0]\n}")],
    },
    Rule {
        name: "nothing-unfinished",
        within: ALL_RUST,
        except: &[],
        check: Check::By(unfinished),
        fix: "finish it, or leave it out and say so in the documentation",
        bad: &[
            ("core/src/slab.rs", "fn f() { todo!() }"),
            ("core/src/slab.rs", "fn f() { unimplemented!() }"),
            ("core/src/slab.rs", concat!("// TO", "DO: later")),
            ("core/tests/stress.rs", "#[ignore]\n#[test]\nfn f() {}"),
        ],
        good: &[("core/src/slab.rs", "// What is to do is in the method.")],
    },
    Rule {
        name: "no-machine-paths",
        within: &[""],
        except: &[],
        check: Check::Anywhere(&[
            concat!("/wo", "rk/"),
            concat!("/ro", "ot/"),
            concat!("/t", "mp/"),
            concat!("/ho", "me/"),
        ]),
        fix: "use paths relative to the repository, or mktemp",
        bad: &[
            ("README.md", concat!("see /wo", "rk/design.md")),
            ("Makefile", concat!("cd /t", "mp/x")),
        ],
        good: &[("README.md", "see core/src/design.rs")],
    },
    Rule {
        name: "no-registry-hosts",
        within: &[""],
        except: &[],
        check: Check::Anywhere(&[
            concat!("crates", ".io"),
            concat!("py", "pi.org"),
            concat!("python", "hosted.org"),
        ]),
        fix: "leave the registry to the user's own settings",
        bad: &[("core/Cargo.toml", concat!("registry = \"https://index.crates", ".io\""))],
        good: &[("README.md", "cargo add bandgate-core")],
    },
];

/// What one rule finds in one file.
fn find(rule: &Rule, source: &Source) -> Found {
    let starts = |list: &[&str]| list.iter().any(|start| source.path.starts_with(start));
    let is_rust = Path::new(&source.path).extension().is_some_and(|e| e == "rs");
    let reads_it = is_rust || matches!(rule.check, Check::Anywhere(_));
    if !reads_it || !starts(rule.within) || starts(rule.except) {
        return Found::new();
    }
    let search = |text: &str, list: &[&str]| {
        let hits = list.iter().flat_map(|word| {
            words(text, word).map(move |at| (source::line_of(text, at), format!("`{word}`")))
        });
        hits.collect::<Found>()
    };
    match rule.check {
        Check::Shipped(list) => search(&source.shipped(), list),
        Check::Code(list) => search(&source.text(), list),
        Check::Anywhere(list) => search(&source.raw.join("\n"), list),
        Check::By(check) => check(source),
    }
}

#[test]
fn the_tree_keeps_its_rules() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let sources = load(&root);
    assert!(sources.iter().any(|s| s.path == "core/src/lib.rs"), "the tree was not found");
    let mut report = Vec::new();
    for rule in RULES {
        for source in &sources {
            for (line, what) in find(rule, source) {
                let Rule { name, fix, .. } = rule;
                report.push(format!("{}:{}: {name}: {what}; {fix}", source.path, line + 1));
            }
        }
    }
    assert!(report.is_empty(), "{} violations:\n{}", report.len(), report.join("\n"));
}

#[test]
fn every_rule_can_fail_and_can_pass() {
    for rule in RULES {
        assert!(!rule.bad.is_empty() && !rule.good.is_empty(), "{} has no snippets", rule.name);
        for (path, text) in rule.bad {
            let found = find(rule, &Source::new(path, text));
            assert!(!found.is_empty(), "{} misses {path}: {text}", rule.name);
        }
        for (path, text) in rule.good {
            let found = find(rule, &Source::new(path, text));
            assert!(found.is_empty(), "{} complains about {path}: {text}: {found:?}", rule.name);
        }
    }
}

#[test]
fn every_allowance_is_inside_its_rule() {
    for rule in RULES {
        for except in rule.except {
            assert!(
                rule.within.iter().any(|start| except.starts_with(start)),
                "{}: {except} is allowed what was never forbidden there",
                rule.name
            );
        }
    }
}

#[test]
fn the_readme_shows_the_quickstart_as_it_is() {
    let example = include_str!("../examples/quickstart.rs");
    let is_shown = include_str!("../../README.md").contains(example);
    assert!(is_shown, "copy core/examples/quickstart.rs into the Rust section of README.md");
}

#[test]
fn texts_and_comments_are_not_code() {
    let text = "let a = \"Mutex // no\"; /* Mutex /* Mutex */ */ let q = '\"'; let b: &'static str = r#\"Mutex\"#; // Mutex";
    let source = Source::new("core/src/slab.rs", text);
    assert_eq!(words(&source.text(), "Mutex").count(), 0, "{}", source.text());
    assert_eq!(words(&source.text(), "let").count(), 3, "{}", source.text());
    assert_eq!(words(&source.notes.join("\n"), "Mutex").count(), 3);
}
