//! `bandgate replay`: one trace, several configurations, one report.
#![forbid(unsafe_code)]

use std::{
    fs::File,
    io::{BufReader, IsTerminal},
    path::{Path, PathBuf},
};

use bandgate_core::{
    sim::{
        assign::Rule,
        engine::SimEngine,
        gating::Gating,
        replay::{ReplayError, replay},
        report::{ConfigReport, Report, STARVED_RULE},
        scheme::Scheme,
        service::{self, Speedup},
        stats::Collector,
        table,
        trace::Trace,
        workload::{Plan, Workload, WorkloadError},
    },
    types::settings::{PoolMode, PoolSettings},
};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::{Failure, demo, load, load::Loaded, outputs::Output, picture, print, remark};

/// What a terminal shows while the replay runs.
const BAR: &str = "{msg:24} {bar:40} {pos}/{len} requests, {elapsed}";

const RULES: &str = "\
Without TRACE: the committed Azure code trace at speed-up 20. Without --config: three configurations of 8 slots and three \
bands, strict and both WFQ schedules with shares of 60, 30 and 10 %.

Trace formats, told by the header line:
  TIMESTAMP,ContextTokens,GeneratedTokens                         Azure LLM inference trace
  t_ms,client,input_tokens,output_tokens                          ServeGen sample (client = tenant)
  t_ms,band,tenant,key,input_tokens,output_tokens[,session]       generic; empty fields are assigned

A request holds its slot for 5 ms + 0.1 ms per input token + 12 ms per output token. Its cost is the sum of its tokens. What \
the trace does not say (band, tenant, key) is a hash of seed and row number.";

/// Arguments of `replay`.
#[derive(Debug, clap::Args)]
#[command(after_help = RULES)]
pub(crate) struct Args {
    /// The trace.
    trace: Option<PathBuf>,
    /// A configuration; give several to compare them.
    #[arg(long = "config", value_name = "YAML")]
    configs: Vec<PathBuf>,
    /// Pool to replay against, if a configuration has several.
    #[arg(long, value_name = "NAME")]
    pool: Option<String>,
    /// Divide arrival times by this; service times stay [default: 1].
    #[arg(long, value_name = "X")]
    speedup: Option<Speedup>,
    /// Slots of the pool, instead of what the configurations say.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=i64::from(PoolSettings::MAX_SLOTS)))]
    slots: Option<u32>,
    /// Seed of the assignment.
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Parts of the bands for rows that name none, as 20=2,10=3,0=5 [default: the same for each].
    #[arg(long, value_name = "BAND=PARTS,...", value_delimiter = ',', value_parser = part, allow_hyphen_values = true)]
    mix: Vec<(i32, u32)>,
    /// Tenants for rows that name none.
    #[arg(long, value_name = "N", default_value_t = 16, value_parser = clap::value_parser!(u32).range(1..=65_536))]
    tenants: u32,
    /// Keys of each tenant for rows that name none.
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u32).range(1..=1_024))]
    keys: u32,
    /// Write the report as JSON.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Write a picture: waits over time, configurations side by side.
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
}

/// `BAND=PARTS` of a mix.
fn part(text: &str) -> Result<(i32, u32), String> {
    let parse = || {
        let (band, parts) = text.split_once('=')?;
        Some((band.parse().ok()?, parts.parse().ok()?))
    };
    parse().ok_or_else(|| "expected BAND=PARTS, as 20=3".to_owned())
}

/// Runs the command. Nothing is printed or written unless everything went well.
pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    let json = args.json.as_deref().map(Output::new).transpose()?;
    let svg = args.svg.as_deref().map(Output::new).transpose()?;
    let configs = configs(args)?;
    let (path, speedup) = match &args.trace {
        Some(path) => (path.clone(), args.speedup.unwrap_or(Speedup::ONE)),
        None => (demo::trace()?, args.speedup.unwrap_or(demo::SPEEDUP)),
    };
    // Not the path of a build: the demonstration's trace has a name of its own.
    let shown = args.trace.as_ref().map_or_else(|| demo::TRACE.into(), |p| p.display().to_string());
    let trace = read(&path, &shown)?;
    let rule =
        Rule { seed: args.seed, mix: args.mix.clone(), tenants: args.tenants, keys: args.keys };
    let jobs = configs
        .iter()
        .map(|config| Job::new(config, args, &trace, &rule, speedup, &shown))
        .collect::<Result<Vec<_>, _>>()?;
    let reports = jobs.iter().map(Job::run).collect::<Result<Vec<_>, _>>()?;
    let report = assemble(&path, &trace, &rule, speedup, reports);
    if let Some(json) = json {
        let text = serde_json::to_string_pretty(&report);
        json.write(&format!("{}\n", text.map_err(|e| Failure::Internal(e.to_string()))?))?;
    }
    if let Some(svg) = svg {
        svg.write(&picture::svg(&report).map_err(Failure::Internal)?)?;
    }
    print(&table::render(&report))
}

/// The configurations asked for, each under a name of its own.
fn configs(args: &Args) -> Result<Vec<Loaded>, Failure> {
    if args.configs.is_empty() {
        return demo::configs();
    }
    let mut loaded =
        args.configs.iter().map(|path| load::file(path)).collect::<Result<Vec<_>, _>>()?;
    let names: Vec<String> = loaded.iter().map(|c| c.name.clone()).collect();
    for config in &mut loaded {
        if names.iter().filter(|name| **name == config.name).count() > 1 {
            config.name.clone_from(&config.source);
        }
    }
    Ok(loaded)
}

fn read(path: &Path, shown: &str) -> Result<Trace, Failure> {
    let file = File::open(path).map_err(|e| Failure::Input(format!("cannot read {shown}: {e}")))?;
    Trace::read(BufReader::new(file)).map_err(|e| Failure::Input(format!("{shown}: {e}")))
}

fn assemble(
    path: &Path,
    trace: &Trace,
    rule: &Rule,
    speedup: Speedup,
    configs: Vec<ConfigReport>,
) -> Report {
    let slots = configs.first().map(|c| c.slots);
    Report {
        trace: path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned(),
        format: trace.format.name(),
        rows: trace.rows.len(),
        seed: rule.seed,
        slots: slots.filter(|&n| configs.iter().all(|c| c.slots == n)),
        speedup: speedup.factor(),
        assignment_rule: rule.to_string(),
        service_rule: service::RULE,
        starved_rule: STARVED_RULE,
        configs,
    }
}

/// One configuration, checked against the trace and ready to run.
#[derive(Debug)]
struct Job {
    config: Loaded,
    pool: PoolSettings,
    bands: Vec<(i32, Option<String>)>,
    workload: Workload,
}

impl Job {
    fn new(
        config: &Loaded,
        args: &Args,
        trace: &Trace,
        rule: &Rule,
        speedup: Speedup,
        shown: &str,
    ) -> Result<Self, Failure> {
        let mut pool = config.pool(args.pool.as_deref())?.clone();
        if let Some(slots) = args.slots {
            pool.slots = slots;
        }
        if core::mem::take(&mut pool.mode) == PoolMode::Observe {
            remark(&format!("{}: mode observe: what enforce would do is shown", config.source));
        }
        let bands = load::bands(&pool);
        let priorities: Vec<i32> = bands.iter().map(|&(priority, _)| priority).collect();
        let timeout = config.settings.admission_timeout;
        let plan = Plan {
            rule,
            priorities: &priorities,
            speedup,
            timeout_ns: timeout.map(|t| u64::try_from(t.as_nanos()).unwrap_or(u64::MAX)),
        };
        let workload = Workload::build(trace, &plan).map_err(|e| {
            let source = &config.source;
            Failure::Input(match e {
                // The options are at fault, not the trace.
                WorkloadError::Rule(e) => format!("--mix under {source}: {e}"),
                e => format!("{shown} under {source}: {e}"),
            })
        })?;
        Ok(Self { config: config.clone(), pool, bands, workload })
    }

    fn run(&self) -> Result<ConfigReport, Failure> {
        let name = &self.config.name;
        let priorities: Vec<i32> = self.bands.iter().map(|&(priority, _)| priority).collect();
        let collector =
            Collector::new(self.bands.len()).map_err(|e| Failure::Internal(e.to_string()))?;
        let mut collector = collector.with_gating(Gating::of(&self.pool, &priorities));
        let mut engine = SimEngine::start(&self.config.settings, &self.pool, &self.workload)
            .map_err(|e| Failure::Input(format!("{}: {e}", self.config.source)))?;
        let mut dispatcher = engine.dispatcher();
        let bar = progress_bar(self.workload.requests.len() as u64, name);
        let mut progress = |arrived| bar.set_position(arrived as u64);
        replay(&self.workload, self.pool.slots, &mut dispatcher, &mut collector, &mut progress)
            .map_err(|e| match e {
                ReplayError::TimeOverflow | ReplayError::NoSlots => Failure::Input(e.to_string()),
                _ => Failure::Internal(format!("the engine broke a promise: {e}")),
            })?;
        bar.finish_and_clear();
        let scheme = Scheme::of(&self.pool.selection, &priorities);
        Ok(ConfigReport::new(name, self.pool.slots, scheme, &self.bands, &collector))
    }
}

/// A bar on a terminal, nothing elsewhere.
fn progress_bar(length: u64, name: &str) -> ProgressBar {
    if !std::io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let bar = ProgressBar::with_draw_target(Some(length), ProgressDrawTarget::stderr());
    if let Ok(style) = ProgressStyle::with_template(BAR) {
        bar.set_style(style);
    }
    bar.set_message(name.to_owned());
    bar
}
