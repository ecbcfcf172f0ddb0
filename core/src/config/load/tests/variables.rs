//! Variables over the document.

use super::super::Config;
use super::super::env::segment;

const FILE: &str = "engine: {shards: 2}\nbands: [{priority: 20, ceiling: 1.0}]\n\
    pools: {chat: {slots: 8}, llama-70b: {}}\ntenants: {acme: {weight: 5}}\n\
    plugins: [{type: cross-band-fairness-policy, name: w, parameters: {activationThreshold: 0.5, distribution: explicit, ratios: {20: 0.5, -1: 0.5}}}]\n";

fn load(variables: &[(&str, &str)]) -> Result<Config, Vec<String>> {
    let variables = variables.iter().map(|(name, value)| ((*name).into(), (*value).into()));
    let shown = |error: super::ConfigError| error.to_string().lines().map(Into::into).collect();
    Config::load(FILE, variables, "t.yaml").map_err(shown)
}

#[test]
fn a_variable_wins_over_the_document_and_the_document_over_the_default() {
    let settings = load(&[]).unwrap().settings;
    assert_eq!((settings.shards, settings.pools[0].slots, settings.pools[1].slots), (2, 8, 32));
    let settings = load(&[
        ("BANDGATE__ENGINE__SHARDS", "4"),
        ("BANDGATE__ENGINE__DEFAULT_POOL_SLOTS", "5"),
        ("BANDGATE__ENGINE__ADMISSION_TIMEOUT", "unlimited"),
        ("BANDGATE__POOLS__CHAT__SLOTS", "9"),
        ("BANDGATE__POOLS__LLAMA_70B__MAX_COST", "1Ki"),
        ("BANDGATE__TENANTS__ACME__MAX_IN_FLIGHT", "0"),
        ("BANDGATE__BANDS__0__NAME", "007"),
        ("BANDGATE__PLUGINS__0__PARAMETERS__RATIOS__20", "0.25"),
        ("BANDGATE__PLUGINS__0__PARAMETERS__RATIOS___1", "0.75"),
        ("BANDGATE__FLOW_CONTROL__BAND_SELECTION_POLICY_PLUGIN_REF", "w"),
        ("BANDGATE_OTHER", "not ours"),
        ("PATH", "/bin"),
    ])
    .unwrap()
    .settings;
    assert_eq!((settings.shards, settings.pools[0].slots, settings.pools[1].slots), (4, 9, 5));
    assert_eq!((settings.admission_timeout, settings.pools[1].max_cost), (None, 1024));
    assert_eq!((settings.tenants[0].max_in_flight, settings.tenants[0].weight), (Some(0), 5));
    assert_eq!(settings.pools[0].bands[0].name.as_deref(), Some("007"));
    let selection = format!("{:?}", settings.pools[0].selection);
    assert!(selection.contains("[(20, Ratio(2500)), (-1, Ratio(7500))]"), "{selection}");
}

#[test]
fn a_variable_at_fault_is_named_with_all_the_others() {
    let faults = load(&[
        ("BANDGATE__ENGINE__SHARD", "4"),
        ("BANDGATE__ENGINE__SHARDS", "0"),
        ("BANDGATE__ENGINE__MODE__X", "1"),
        ("BANDGATE__ENGINE", "1"),
        ("BANDGATE__POOLS__CHATS__SLOTS", "4"),
        ("BANDGATE__POOLS__CHAT__MAX_HOLD", "x"),
        ("BANDGATE__POOLS__CHAT__SLOTS", "many"),
        ("BANDGATE__BANDS__1__NAME", "x"),
        ("BANDGATE__METADATA", "x"),
        ("BANDGATE__GROUPS__G__WEIGHT", ""),
        ("BANDGATE__", ""),
    ])
    .unwrap_err();
    assert_eq!(
        faults,
        [
            "BANDGATE__: matches no key",
            "BANDGATE__BANDS__1__NAME: matches no element of bands: the document lists 1",
            "BANDGATE__ENGINE: names a section: name one of its keys",
            "BANDGATE__ENGINE__MODE__X: matches no key: there is nothing below a scalar (X)",
            "BANDGATE__ENGINE__SHARD: matches no key (did you mean BANDGATE__ENGINE__SHARDS)",
            "BANDGATE__ENGINE__SHARDS: engine.shards: 0 is out of range: use 1 to 64",
            "BANDGATE__GROUPS__G__WEIGHT: matches no entry of groups in the document",
            "BANDGATE__METADATA: metadata is not a scalar: set it in the document",
            "BANDGATE__POOLS__CHATS__SLOTS: matches no entry of pools in the document (did you mean BANDGATE__POOLS__CHAT__SLOTS)",
            "BANDGATE__POOLS__CHAT__MAX_HOLD: pools.chat.maxHold: expected a duration like 250ms, 30s, 5m or 1h, or `unlimited`, got the text \"x\"",
            "BANDGATE__POOLS__CHAT__SLOTS: pools.chat.slots: expected an integer, got the text \"many\"",
        ]
    );
}

#[test]
fn a_variable_that_two_names_share_is_refused() {
    let variables = [("BANDGATE__POOLS__A_B__SLOTS".into(), "1".into())];
    let error = Config::load("pools: {a-b: {}, a_b: {}}", variables, "t.yaml").unwrap_err();
    assert_eq!(
        error.to_string(),
        "BANDGATE__POOLS__A_B__SLOTS: matches 2 entries of pools: rename one, or set it in the document"
    );
}

#[test]
fn the_pool_that_needs_no_listing_has_variables_too() {
    for text in ["", "pools:", "pools: {}", "engine: {defaultPoolSlots: 3}"] {
        let variables = [("BANDGATE__POOLS__DEFAULT__SLOTS".into(), "7".into())];
        let settings = Config::load(text, variables, "t.yaml").unwrap().settings;
        let pools: Vec<_> = settings.pools.iter().map(|p| (&*p.name, p.slots)).collect();
        assert_eq!(pools, [("default", 7)], "{text}");
    }
    let variables = [("BANDGATE__POOLS__DEFAULT__SLOTS".into(), "7".into())];
    let error = Config::load("pools: {chat: {}}", variables, "t.yaml").unwrap_err();
    assert_eq!(
        error.to_string(),
        "BANDGATE__POOLS__DEFAULT__SLOTS: matches no entry of pools in the document"
    );
}

#[test]
fn names_become_segments_in_one_way() {
    for (name, expected) in [
        ("slots", "SLOTS"),
        ("defaultPoolSlots", "DEFAULT_POOL_SLOTS"),
        ("llama-70b", "LLAMA_70B"),
        ("-5", "_5"),
        ("gpt.4", "GPT_4"),
        ("apiVersion", "API_VERSION"),
    ] {
        assert_eq!(segment(name), expected);
    }
}
