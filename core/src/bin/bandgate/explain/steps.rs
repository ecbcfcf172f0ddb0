//! The steps of one decision, in the order in which the engine asks them.
#![forbid(unsafe_code)]

use core::fmt::Write;
use core::time::Duration;

use bandgate_core::{
    Reason,
    admit::{
        caps::{Caps, Room, TenantRow, UNCAPPED, Usage},
        ceiling::limit,
        saturation,
    },
    select::band::Mode,
    sim::scheme::Scheme,
    types::{
        policy::{BandSelection, Fairness, Holdback, Signal},
        saturation::SaturationSource,
        settings::PoolMode,
        template::UnknownPriority,
    },
};

use super::Question;
use super::account::{Account, BandState, Before, Outcome, Request, Rule, Step, Verdict};
use super::place::Place;
use super::show;

/// What is found out, step by step.
struct Steps<'a> {
    question: &'a Question<'a>,
    done: Vec<Step>,
    remarks: Vec<String>,
}

/// Answers the question.
pub(crate) fn answer(question: &Question<'_>) -> Account {
    let mut steps = Steps { question, done: Vec::new(), remarks: Vec::new() };
    let mut outcome = match steps.refusal() {
        Ok(rejected) => rejected,
        Err(caps) => steps.decision(caps),
    };
    steps.observe(&mut outcome);
    for step in &mut steps.done {
        step.decides = step.rule == outcome.rule;
    }
    steps.account(outcome)
}

impl Steps<'_> {
    fn note(&mut self, rule: Rule, says: String) {
        self.done.push(Step { rule, decides: false, says, bands: Vec::new() });
    }

    fn rejected(&mut self, rule: Rule, reason: Reason, says: String) -> Outcome {
        self.note(rule, says.clone());
        outcome(Verdict::Rejected, Some(reason), rule, says)
    }

    /// What refuses it before it may even wait; otherwise what its caps say.
    fn refusal(&mut self) -> Result<Outcome, Room> {
        let Question { pool, bands, band, band_text, args, .. } = self.question;
        let Some(band) = *band else {
            let mut says = format!(
                "{band_text} is not provisioned in pool {} ({}); it is never mapped to another",
                pool.name,
                show::bands(bands)
            );
            if pool.templates.unknown == UnknownPriority::Template {
                let most = pool.most_bands();
                // Writing to a string cannot fail.
                let _ = write!(says, ", and none can be made: maxBands has room for {most}");
            }
            return Ok(self.rejected(Rule::Band, Reason::UnknownBand, says));
        };
        let name = show::band(&bands[band]);
        if self.question.is_made {
            let like = pool.templates.of(bands[band].0);
            let says = format!(
                "{name} is made by unknownPriority: template ({:?} among flows, {:?} within)",
                like.fairness, like.order
            );
            self.note(Rule::Band, says);
            self.remarks.push("whether clients made other bands before is not known".to_owned());
        } else {
            self.note(Rule::Band, format!("{name} is provisioned"));
        }
        let (cost, most) = (args.cost, pool.max_cost);
        if cost == 0 || cost > most {
            let says = format!("{cost} is outside 1 to maxCost ({most})");
            return Ok(self.rejected(Rule::Cost, Reason::TooLarge, says));
        }
        self.note(Rule::Cost, format!("{cost} is within 1 to maxCost ({most})"));
        if args.closed {
            let says = "the pool drains or is shut down: nobody is taken in".to_owned();
            return Ok(self.rejected(Rule::Closed, Reason::ShuttingDown, says));
        }
        self.note(Rule::Closed, "the pool takes requests in".to_owned());
        self.caps()
    }

    /// The caps of tenant and key, in rows of the engine's own.
    fn caps(&mut self) -> Result<Outcome, Room> {
        let args = self.question.args;
        let Some(tenant) = &args.tenant else {
            self.note(Rule::Caps, "no tenant, so no caps".to_owned());
            return Err(Room::Yes);
        };
        let settings = &self.question.loaded.settings;
        let key = args.key.as_ref().unwrap_or(tenant);
        let of_tenant = settings.tenants.iter().find(|t| t.name == *tenant);
        let of_key = settings.keys.iter().find(|k| k.tenant == *tenant && k.name == *key);
        let tenant_cap = of_tenant.and_then(|t| t.max_in_flight);
        let key_cap = of_key.and_then(|k| k.max_in_flight);
        let mut caps = Caps::new(1);
        let cap = tenant_cap.unwrap_or(UNCAPPED);
        let row = TenantRow { usage: Usage::up_to(cap), weight: 1, group: 0 };
        let (flow, generation) = caps.add_tenant(row, key_cap.unwrap_or(UNCAPPED), 1);
        let is_exempt = of_key.is_some_and(|k| k.exempt) || of_tenant.is_some_and(|t| t.exempt);
        caps.set_exempt(flow, is_exempt);
        (0..args.in_flight).for_each(|_| caps.take_beyond(flow, args.cost));
        let text = |cap: Option<u32>| cap.map_or("no cap".to_owned(), |cap| format!("cap {cap}"));
        let state = format!(
            "tenant {tenant}: {}; key {key}: {}; {} in flight",
            text(tenant_cap),
            text(key_cap),
            args.in_flight
        );
        if caps.is_exempt(flow, generation) {
            let whose = if of_key.is_some_and(|k| k.exempt) { "key" } else { "tenant" };
            let says = format!("its {whose} is exempt: it runs beside queue, caps and slots");
            self.note(Rule::Exempt, says.clone());
            return Ok(outcome(Verdict::Runs, None, Rule::Exempt, says));
        }
        if !caps.accepts(flow, generation) {
            let says = format!("{state}; a cap of 0 refuses");
            return Ok(self.rejected(Rule::Caps, Reason::TenantQueueFull, says));
        }
        let room = caps.room(flow);
        let says = match room {
            Room::Yes => "room for one more",
            Room::FlowFull => "the key is at its cap",
            Room::TenantFull => "the tenant is at its cap",
        };
        self.note(Rule::Caps, format!("{state}; {says}"));
        Err(room)
    }

    /// Gate, mode, order and slots.
    fn decision(&mut self, caps: Room) -> Outcome {
        let question = self.question;
        let (settings, pool) = (&question.loaded.settings, &*question.pool);
        let priorities = question.priorities();
        let saturation = question.args.saturation;
        let mut place = Place::new(settings, pool, &priorities, saturation, &question.waiting);
        let band = question.band.unwrap_or(0);
        self.saturation(&place);
        self.gate(&mut place, band);
        let served = place.serve();
        let open = place.open();
        let is_open = open >> band & 1 == 1;
        let is_free = place.running < place.slots;
        self.slots(&place, &served);
        if is_open && is_free && caps == Room::Yes {
            let says = "a slot is free, its gate is open, and nobody who may run is left waiting";
            return outcome(Verdict::Runs, None, Rule::Slots, says.to_owned());
        }
        let (rule, says) = self.held_back_by(&place, band, is_open, caps);
        self.waits(place, band, caps, rule, says)
    }

    fn saturation(&mut self, place: &Place) {
        let (given, slots) = (self.question.args.saturation, place.slots);
        let says = match &self.question.pool.saturation {
            SaturationSource::Slots => format!(
                "{given}: {} of {slots} slots run ({:.3}), the least that reach it",
                place.running,
                saturation::saturation(place.running, slots)
            ),
            SaturationSource::Gauge => format!("{given}, as the host set it"),
            SaturationSource::Concurrency(_) => {
                format!("{given}, as concurrency-detector reads the backends")
            }
            SaturationSource::Utilization(_) => {
                format!("{given}, as utilization-detector reads the backends")
            }
            SaturationSource::Custom(custom) => {
                format!("{given}, as {} reads the backends", custom.kind())
            }
        };
        self.note(Rule::Saturation, says);
        if place.is_given {
            self.remarks.push(format!(
                "this saturation says nothing of slots: {} of {slots} are taken to run",
                place.running
            ));
            self.remarks.push("it is taken to stay while requests end and start".to_owned());
        }
        if given > 1.0 && !place.is_given {
            self.remarks
                .push("running over slots does not pass 1: taken as a full pool".to_owned());
        }
    }

    /// The gate of every band, the mode, and the order they give.
    fn gate(&mut self, place: &mut Place, band: usize) {
        let pool = &*self.question.pool;
        let open = place.open();
        let now = place.gates.saturation(place.running);
        let is_slot_count = place.gates.is_slot_count();
        let ceilings = place.gates.ceilings().to_vec();
        let level = place.level();
        let mode = place.begin(open);
        let order = place.order(open);
        let scheme = Scheme::of(&pool.selection, &self.question.priorities());
        let states: Vec<BandState> = (0..self.question.bands.len())
            .map(|i| BandState {
                priority: self.question.bands[i].0,
                name: self.question.bands[i].1.clone(),
                waiting: self.question.waiting[i],
                ceiling: ceilings[i],
                ceiling_slots: is_slot_count.then(|| limit(ceilings[i], place.slots)),
                gated: open >> i & 1 == 0,
                weight: scheme.weights.get(&self.question.bands[i].0).copied(),
                rank: order.iter().position(|at| usize::from(*at) == i).map_or(0, |at| at + 1),
            })
            .collect();
        let own = &states[band];
        let (verb, side) = if own.gated { ("gated", ">=") } else { ("open", "<") };
        let mut says = format!(
            "{} is {verb}: saturation {now:.3} {side} ceiling {:.3}",
            show::band(&self.question.bands[band]),
            own.ceiling
        );
        // Writing to a string cannot fail.
        if let Some(slots) = own.ceiling_slots {
            let _ = write!(says, " ({slots} of {} slots)", place.slots);
        }
        self.done.push(Step { rule: Rule::Gate, decides: false, says, bands: states });
        self.mode(place, mode, level);
        let names = order.iter().map(|i| show::band(&self.question.bands[usize::from(*i)]));
        let says = names.collect::<Vec<_>>().join(", ");
        self.note(Rule::Order, format!("{says}; gated bands last, gated and empty ones skipped"));
        self.moving();
    }

    fn mode(&mut self, place: &Place, mode: Mode, level: u32) {
        let says = match &self.question.pool.selection {
            BandSelection::Strict => "strict: the most urgent band first".to_owned(),
            BandSelection::Custom(custom) => format!("the host's own: {custom:?}"),
            BandSelection::Wfq(wfq) => {
                let level = if place.is_given {
                    format!("saturation {}", self.question.args.saturation)
                } else {
                    let (next, slots) = (level.saturating_add(1).min(place.slots), place.slots);
                    format!("{next} of {slots} slots, this dispatch included,")
                };
                let (activation, is) = (wfq.activation, mode == Mode::Wfq);
                let schedule = Scheme::of(&self.question.pool.selection, &[]).schedule;
                if is {
                    format!("{schedule}: {level} reaches activationThreshold {activation}")
                } else {
                    format!("strict: {level} is below activationThreshold {activation}")
                }
            }
        };
        self.note(Rule::Mode, says);
    }

    fn moving(&mut self) {
        let remark = match &self.question.pool.holdback {
            Holdback::Adaptive(it) => match &it.signal {
                Signal::Detector(name) => format!(
                    "these ceilings move by themselves: taken as without pressure, since detector {name} is not asked"
                ),
                _ => "these ceilings move by themselves: taken as at the first decision in this state".to_owned(),
            },
            Holdback::SoftReflective => {
                "these ceilings alternate from decision to decision: taken as at the first one".to_owned()
            }
            _ => return,
        };
        self.remarks.push(remark);
    }

    fn slots(&mut self, place: &Place, served: &[u32]) {
        let free = place.slots.saturating_sub(place.running);
        let ahead: Vec<String> = served
            .iter()
            .zip(&self.question.bands)
            .filter(|(count, _)| **count > 0)
            .map(|(count, band)| format!("{count} of {}", show::band(band)))
            .collect();
        let mut says = format!("{free} of {} free", place.slots);
        if !ahead.is_empty() {
            let _ = write!(
                says,
                ", after those who waited and may run got theirs: {}",
                ahead.join(", ")
            );
        }
        self.note(Rule::Slots, says);
    }

    /// The rule that keeps it from running.
    fn held_back_by(
        &self,
        place: &Place,
        band: usize,
        is_open: bool,
        caps: Room,
    ) -> (Rule, String) {
        if caps != Room::Yes {
            let whose = if caps == Room::FlowFull { "its key" } else { "its tenant" };
            return (Rule::Caps, format!("{whose} is at its cap: until a request of it ends"));
        }
        let name = show::band(&self.question.bands[band]);
        let ceiling = place.gates.ceilings().get(band).copied().unwrap_or(0.0);
        // A full pool gates a ceiling of 1 too; there it is the slots that are short.
        let is_full = !place.is_given && place.running >= place.slots && ceiling >= 1.0;
        if !is_open && !is_full {
            let says = if ceiling <= 0.0 {
                format!("{name} has a ceiling of 0: it never runs")
            } else {
                format!("{name} is gated: until the saturation is below {ceiling:.3}")
            };
            return (Rule::Gate, says);
        }
        (Rule::Slots, "no slot is free: until a request ends and it is next".to_owned())
    }

    /// It has to wait: whether it may, and who goes first.
    fn waits(
        &mut self,
        place: Place,
        band: usize,
        caps: Room,
        rule: Rule,
        says: String,
    ) -> Outcome {
        let settings = &self.question.loaded.settings;
        if settings.admission_timeout == Some(Duration::ZERO) {
            let says = format!("{says}; admissionTimeout is 0s, so nobody waits");
            return self.rejected(Rule::Timeout, Reason::Deadline, says);
        }
        let (waiting, most) = (place.waiting_in_all(), settings.max_requests);
        if waiting >= most {
            let says = format!("{says}; {waiting} wait, and maxRequests is {most}");
            return self.rejected(Rule::QueueRoom, Reason::QueueFull, says);
        }
        let mut outcome = outcome(Verdict::Waits, None, rule, says);
        if caps != Room::Yes {
            self.remarks
                .push("who waits for a cap of its own is passed by everybody else".to_owned());
            return outcome;
        }
        let is_by_turns = self.question.pool.bands.iter().any(|settings| {
            settings.priority == self.question.bands[band].0
                && settings.fairness == Fairness::RoundRobin
        });
        if is_by_turns && place.waiting[band] > 0 {
            let remark = "its band takes flows in turn: a flow with fewer waiters is served earlier than last";
            self.remarks.push(remark.to_owned());
        }
        if let Some((before, releases)) = place.turn_of(band) {
            outcome.releases = Some(releases);
            let counts = before.iter().zip(&self.question.bands).filter(|(count, _)| **count > 0);
            outcome.before = counts
                .map(|(count, (priority, _))| Before { band: *priority, dispatches: *count })
                .collect();
        }
        outcome
    }

    /// A pool that only observes lets everybody run and counts what it would have done.
    fn observe(&mut self, outcome: &mut Outcome) {
        if self.question.pool.mode != PoolMode::Observe || outcome.verdict == Verdict::Runs {
            return;
        }
        // What is wrong with the request itself is refused in every mode.
        if matches!(outcome.rule, Rule::Band | Rule::Cost | Rule::Closed) {
            return;
        }
        let would =
            outcome.reason.map_or("wait".to_owned(), |reason| format!("be rejected ({reason})"));
        let says =
            format!("mode observe: it runs; under enforce it would {would}: {}", outcome.says);
        self.note(Rule::Observe, says.clone());
        *outcome = self::outcome(Verdict::Runs, None, Rule::Observe, says);
    }

    fn account(mut self, outcome: Outcome) -> Account {
        let Question { loaded, pool, bands, band, args, .. } = self.question;
        let settings = &loaded.settings;
        let all: u64 = settings.pools.iter().map(|pool| u64::from(pool.slots)).sum();
        if let Some(ceiling) = settings.ceiling.filter(|ceiling| u64::from(*ceiling) < all) {
            self.remarks.push(format!(
                "all pools share engine.ceiling {ceiling}: this one may have fewer slots than its own"
            ));
        }
        let own = band.and_then(|band| bands.get(band));
        Account {
            config: loaded.source.clone(),
            pool: pool.name.clone(),
            request: Request {
                band: own.map(|(priority, _)| *priority).or_else(|| args.band.parse().ok()),
                band_name: own.and_then(|(_, name)| name.clone()),
                tenant: args.tenant.clone(),
                key: args.key.clone().or_else(|| args.tenant.clone()),
                cost: args.cost,
                saturation: args.saturation,
            },
            steps: self.done,
            outcome,
            remarks: self.remarks,
        }
    }
}

fn outcome(verdict: Verdict, reason: Option<Reason>, rule: Rule, says: String) -> Outcome {
    let reason = reason.map(Reason::as_str);
    Outcome { verdict, reason, rule, says, before: Vec::new(), releases: None }
}
