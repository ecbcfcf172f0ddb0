//! `bandgate explain`: what would happen to one request, and which rule decides.
#![forbid(unsafe_code)]

mod account;
mod place;
mod show;
mod steps;

use std::borrow::Cow;
use std::path::PathBuf;

use bandgate_core::types::settings::{BandSettings, PoolSettings};
use bandgate_core::types::template::{BandTemplate, UnknownPriority};

use crate::{Failure, load, load::Loaded, print};

const RULES: &str = "\
The state is the one a request finds on arrival. A pool that counts slots has as many requests running as it takes to reach \
the saturation; a pool with a gauge or a detector reads the saturation itself, and one slot is taken to be free. Whoever waits \
is taken to have room at its own caps, and to have come before. Nothing is started: the engine's own policies answer.

Examples:
  bandgate explain conf.yaml --band 10 --tenant acme --saturation 0.7
      Would a request of band 10 run at saturation 0.7, and if not, which rule holds it back?
  bandgate explain conf.yaml --pool chat --band batch --tenant acme --key k-1 --cost 2000 --saturation 1 \\
      --waiting 20=3 --waiting 0=50
      In a full pool where others wait already: who goes first?
  bandgate explain conf.yaml --band 0 --tenant acme --in-flight 4 --saturation 0.5 --json
      The same as JSON, for a tenant that has four requests running.

Exit codes: 0 answered, whatever the answer; 2 bad input.";

/// Arguments of `explain`.
#[derive(Debug, clap::Args)]
#[command(after_help = RULES)]
pub(crate) struct Args {
    /// The YAML file.
    config: PathBuf,
    /// Pool, if the configuration has several.
    #[arg(long, value_name = "NAME")]
    pool: Option<String>,
    /// Band of the request: its priority, or its name.
    #[arg(long, value_name = "PRIORITY|NAME", allow_hyphen_values = true)]
    band: String,
    /// Tenant of the request; without it the request has no flow and no caps.
    #[arg(long, value_name = "NAME", value_parser = name)]
    tenant: Option<String>,
    /// Key of the request [default: the key of the tenant's name].
    #[arg(long, value_name = "NAME", value_parser = name, requires = "tenant")]
    key: Option<String>,
    /// Requests of this key that run already.
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = clap::value_parser!(u32).range(0..=i64::from(PoolSettings::MAX_SLOTS)), requires = "tenant")]
    in_flight: u32,
    /// Cost of the request in tokens.
    #[arg(long, value_name = "N", default_value_t = 1)]
    cost: u32,
    /// Saturation it finds, 0 and up; 1 is full.
    #[arg(long, value_name = "S", value_parser = saturation, allow_negative_numbers = true)]
    saturation: f64,
    /// Requests that wait in a band already, as 20=3; give several for several bands.
    #[arg(long, value_name = "BAND=N", value_parser = waiting, allow_hyphen_values = true)]
    waiting: Vec<(String, u32)>,
    /// The pool drains or is shut down.
    #[arg(long)]
    closed: bool,
    /// Answer as JSON.
    #[arg(long)]
    json: bool,
}

fn name(text: &str) -> Result<String, String> {
    if text.is_empty() || text.len() > 256 {
        return Err("expected a name of 1 to 256 bytes".to_owned());
    }
    Ok(text.to_owned())
}

fn saturation(text: &str) -> Result<f64, String> {
    let good = |s: &f64| s.is_finite() && *s >= 0.0;
    let expected = "expected a number, 0 (idle) and up; 1 is full";
    text.parse().ok().filter(good).ok_or_else(|| expected.to_owned())
}

fn waiting(text: &str) -> Result<(String, u32), String> {
    let parse = || {
        let (band, count) = text.rsplit_once('=')?;
        Some((band.to_owned(), count.parse().ok()?))
    };
    parse().ok_or_else(|| "expected BAND=N, as 20=3".to_owned())
}

/// What is asked, checked against the configuration.
#[derive(Debug)]
struct Question<'a> {
    loaded: &'a Loaded,
    pool: Cow<'a, PoolSettings>,
    /// Most urgent first, with their names.
    bands: Vec<(i32, Option<String>)>,
    /// Where the request's band stands among them; `None`: it is not provisioned.
    band: Option<usize>,
    /// It was made of the pool's template for this request.
    is_made: bool,
    /// As given.
    band_text: &'a str,
    /// Waiting per band.
    waiting: Vec<u32>,
    args: &'a Args,
}

impl<'a> Question<'a> {
    fn new(args: &'a Args, loaded: &'a Loaded) -> Result<Self, Failure> {
        let mut pool = Cow::Borrowed(loaded.pool(args.pool.as_deref())?);
        let mut bands = load::bands(&pool);
        let mut band = find(&bands, &args.band);
        let made = made(&pool, band, &args.band);
        let is_made = made.is_some();
        if let Some(made) = made {
            pool.to_mut().bands.push(made);
            bands = load::bands(&pool);
            band = find(&bands, &args.band);
        }
        if band.is_none() && args.band.parse::<i32>().is_err() {
            return Err(no_band("--band", &args.band, &bands));
        }
        let mut waiting = vec![0; bands.len()];
        let mut seen = vec![false; bands.len()];
        for (text, count) in &args.waiting {
            let at = find(&bands, text).ok_or_else(|| no_band("--waiting", text, &bands))?;
            if core::mem::replace(&mut seen[at], true) {
                let message = format!("--waiting: band {text} is named twice: name it once");
                return Err(Failure::Input(message));
            }
            waiting[at] = *count;
        }
        Ok(Self { loaded, pool, bands, band, is_made, band_text: &args.band, waiting, args })
    }

    fn priorities(&self) -> Vec<i32> {
        self.bands.iter().map(|(priority, _)| *priority).collect()
    }
}

/// The band the pool would make of a priority it does not know.
fn made(pool: &PoolSettings, band: Option<usize>, text: &str) -> Option<BandSettings> {
    let priority = text.parse().ok().filter(|_| band.is_none())?;
    let makes = pool.templates.unknown == UnknownPriority::Template;
    let BandTemplate { fairness, order } = pool.templates.of(priority).clone();
    let has_room = pool.bands.len() < pool.most_bands();
    let band = BandSettings { fairness, order, ..BandSettings::new(priority) };
    (makes && has_room).then_some(band)
}

/// A band by priority or name; a name that looks like a number is one only if no band has that priority.
fn find(bands: &[(i32, Option<String>)], text: &str) -> Option<usize> {
    let priority = text.parse::<i32>().ok();
    bands
        .iter()
        .position(|(p, _)| Some(*p) == priority)
        .or_else(|| bands.iter().position(|(_, name)| name.as_deref() == Some(text)))
}

fn no_band(option: &str, text: &str, bands: &[(i32, Option<String>)]) -> Failure {
    let known = show::bands(bands);
    Failure::Input(format!("{option}: expected a provisioned band ({known}), got {text}"))
}

/// Runs the command.
pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    let loaded = load::file(&args.config)?;
    let question = Question::new(args, &loaded)?;
    let account = steps::answer(&question);
    if args.json {
        let text = serde_json::to_string_pretty(&account);
        let text = text.map_err(|e| Failure::Internal(e.to_string()))?;
        return print(&format!("{text}\n"));
    }
    print(&show::text(&account))
}
