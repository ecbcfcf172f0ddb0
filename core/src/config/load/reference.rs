//! `CONFIG.md`, out of the key table.

use core::fmt::Write;

use super::keys::{Form, Key, Kind, ROOT};
use super::plugins::{self, Status};

const INTRODUCTION: &str = "\
# Configuration

Every key this version reads, generated from the key table of `core/src/config`. To write this file anew:
`BANDGATE_BLESS=1 cargo test -p bandgate-core --lib config`.

A configuration is one YAML document of at most 1 MiB; an empty one is all defaults. Unknown keys, repeated keys and
values out of range are errors, and all errors of a document are reported together, each with its line.

**Order.** An argument of the call wins over a variable, a variable over the document, the document over the default.

**Variables.** Every scalar has one variable: `BANDGATE`, then each part of its path in upper case, parted by two
underscores: `BANDGATE__POOLS__CHAT__SLOTS`. Words inside a key are parted by `_` (`defaultPoolSlots` is
`DEFAULT_POOL_SLOTS`), any other character of a name becomes `_` (`llama-70b` is `LLAMA_70B`), elements of a list are
numbered from 0 (`BANDGATE__BANDS__0__CEILING`). A variable sets a scalar of the engine, of the pool `default`
where no pool is listed, or of an entry the document has; it adds no pool, tenant or band. A variable that matches no
key is an error.

**Limits.** A key that is absent has its default, `unlimited` is spelt out, and 0 means refuse, where 0 is in range.

**Bands.** A pool has the bands of its own list, else of the engine-wide `bands` and `flowControl.priorityBands`; also
every priority that its ratios or explicit ceilings name, and 0 always; 64 at most.

**Policies.** A key of type policy takes the name of a plugin listed under `plugins`, a plugin type that needs no
parameters, or `{type: ..., parameters: {...}}`; fairness and ordering policies also their short word, the type without
`-fairness-policy` or `-ordering-policy`. For the ceilings the nearest statement wins: the pool's `holdback`, or
the `ceiling` of its bands (both is an error), then `flowControl.usageLimitPolicyPluginRef`, or the `ceiling` of the
engine-wide bands (both is an error).

**Saturation.** A pool's `saturation` takes `slots`, `gauge` or a detector, as policies are written; without it
`flowControl.saturationDetector`, else `slots`. `gauge` and the detectors read as `slots` until the host has said
something. A detector reads what the host reports of its backends, prefill and decode apart, and the fuller stage
counts. What the pool dispatches between two reports is added to the last one, so that a burst cannot overshoot; and
a report that no other follows becomes stale by itself. Every admit of a pool with a detector takes its lock bit; with
`tokens` or `hybrid` it also keeps track of who runs, as with `holders`.

**Change.** `live`: changes with a reload (`Engine::reload_text`), in force at the next decision, without losing what
runs or waits; `restart`: is fixed when the engine is built, and a reload that changes it is refused by name. Nothing
reads the document by itself.

";

const HEADER: &str = "\
| key | type | unit | default | range | change | meaning |
| --- | --- | --- | --- | --- | --- | --- |
";

/// The reference of every key as Markdown: path, type, unit, default, range, live or restart.
pub fn reference_markdown() -> String {
    let mut out = String::from(INTRODUCTION);
    let mut later = Vec::new();
    section(&mut out, "## Keys", "", ROOT, &mut later);
    for plugin in plugins::TYPES {
        match plugin.status {
            Status::Now([]) => {
                let _ = writeln!(
                    out,
                    "## `{}`\n\nA {}; no parameters.\n",
                    plugin.name,
                    plugin.role.noun()
                );
            }
            Status::Now(keys) => {
                let title = format!("## Parameters of `{}`", plugin.name);
                let note = format!("A {}.\n\n", plugin.role.noun());
                section(&mut out, &title, &note, keys, &mut later);
            }
            Status::Later => later.push(format!("type: {}", plugin.name)),
        }
    }
    out.push_str("## Known, not available in this version\n\nThese are refused with a message that says so.\n\n");
    for name in later {
        let _ = writeln!(out, "- `{name}`");
    }
    out
}

fn section(
    out: &mut String,
    title: &str,
    note: &str,
    keys: &'static [Key],
    later: &mut Vec<String>,
) {
    let _ = write!(out, "{title}\n\n{note}{HEADER}");
    rows(out, "", keys, later);
    out.push('\n');
}

fn rows(out: &mut String, parent: &str, keys: &'static [Key], later: &mut Vec<String>) {
    for key in keys {
        let path =
            if parent.is_empty() { key.name.into() } else { format!("{parent}.{}", key.name) };
        if key.later {
            later.push(path);
            continue;
        }
        if let Kind::Choice { later: words, .. } = key.kind {
            later.extend(words.iter().map(|word| format!("{path}: {word}")));
        }
        let default = match (key.required, key.default) {
            (true, _) => "required".into(),
            (false, "") => "none".into(),
            (false, text) if text.contains('`') || text.contains(' ') => text.into(),
            (false, text) => format!("`{text}`"),
        };
        let unit = if key.unit.is_empty() { "-" } else { key.unit };
        let range = if key.kind.range().is_empty() { "-".into() } else { key.kind.range() };
        let change = match key.kind {
            Kind::Object(_) | Kind::List(_) | Kind::Named(_) | Kind::Parameters => "-",
            _ if key.live => "live",
            _ => "restart",
        };
        let _ = writeln!(
            out,
            "| `{path}` | {} | {unit} | {default} | {range} | {change} | {} |",
            type_name(&key.kind),
            key.about
        );
        match key.kind {
            Kind::Object(keys) => rows(out, &path, keys, later),
            Kind::List(keys) => rows(out, &format!("{path}[]"), keys, later),
            Kind::Named(keys) => rows(out, &format!("{path}.<name>"), keys, later),
            _ => {}
        }
    }
}

fn type_name(kind: &Kind) -> &'static str {
    match kind {
        Kind::Int { form: Form::Plain, .. } => "integer",
        Kind::Int { form: Form::Quantity, .. } => "integer or quantity (`5k`, `1Ki`)",
        Kind::Int { form: Form::QuantityOrUnlimited, .. } => {
            "integer, quantity (`5k`, `1Ki`) or `unlimited`"
        }
        Kind::Int { form: Form::Limit, .. } => "integer or `unlimited`",
        Kind::Float(_) => "number",
        Kind::Duration { unlimited: false } => "duration (`250ms`, `30s`, `5m`, `1h`)",
        Kind::Duration { unlimited: true } => {
            "duration (`250ms`, `30s`, `5m`, `1h`) or `unlimited`"
        }
        Kind::Text => "text",
        Kind::Flag => "boolean",
        Kind::Choice { .. } => "choice",
        Kind::Texts => "list of texts",
        Kind::Anything => "anything",
        Kind::Object(_) | Kind::Parameters => "object",
        Kind::List(_) => "list of objects",
        Kind::Named(_) => "objects by name",
        Kind::ByPriority(_) => "numbers by priority",
        Kind::Policy(_) => "policy",
        Kind::Reference(_) => "plugin name or type",
        Kind::PluginType => "plugin type",
    }
}
