//! One script, step by step, on the engine and on the reference.

use core::task::Poll;
use core::time::Duration;

use bandgate_core::clock::Clock;
use bandgate_core::types::policy::{BandSelection, Holdback};
use bandgate_core::types::settings::{DriverKind, KeySettings};
use bandgate_core::{
    Admit, Admitted, CompletionQueue, Engine, Flow, Permit, Pool, Reason, Request, Settings,
    Submitted, Ticket,
};

use super::common;
use super::reference::{Expect, MS, Model, Stage};
use super::script::{Ask, FLOWS, MAX_COST, Op, PRIORITIES, Shape, TENANT_OF, TENANTS};

fn settings(shape: &Shape) -> Settings {
    let mut settings = common::settings(DriverKind::Host, shape.slots, &PRIORITIES);
    settings.max_requests = shape.entries;
    settings.admission_timeout = shape.default_timeout_us.map(Duration::from_micros);
    let ceilings = PRIORITIES.into_iter().zip(shape.ceilings.iter().copied()).collect();
    let pool = &mut settings.pools[0];
    pool.holdback = Holdback::Explicit { ceilings, default: None };
    pool.selection = shape.selection.clone();
    pool.max_cost = MAX_COST;
    pool.max_flows = 16;
    pool.ring_capacity = 4;
    for tenant in 0..TENANTS {
        let mut row = common::tenant(&format!("t{tenant}"), 0);
        row.max_in_flight = shape.tenant_caps[tenant];
        settings.tenants.push(row);
    }
    let keys = (1..FLOWS).map(|flow| KeySettings {
        name: format!("k{flow}"),
        tenant: format!("t{}", TENANT_OF[flow]),
        weight: 100,
        max_in_flight: shape.key_caps[flow],
        exempt: false,
    });
    settings.keys = keys.collect();
    settings
}

struct Run<'e> {
    engine: &'e Engine,
    pool: &'e Pool,
    queue: &'e CompletionQueue,
    clock: &'e Clock,
    flows: Vec<Flow>,
    model: Model,
    next_id: u32,
    permits: Vec<(u32, Permit<'e>)>,
    futures: Vec<(u32, Admit<'e>)>,
    tickets: Vec<(u32, Ticket)>,
    polls_are_turns: bool,
}

/// Runs it; panics where the two differ.
pub(crate) fn compare(shape: &Shape, script: &[Op]) {
    let (engine, pool, clock) = common::host(&settings(shape));
    let queue = engine.completion_queue(u32::try_from(shape.places).unwrap()).unwrap();
    let flow = |n: usize| pool.flow("", &format!("t{}", TENANT_OF[n]), &format!("k{n}")).unwrap();
    let mut run = Run {
        engine: &engine,
        pool: &pool,
        queue: &queue,
        clock: &clock,
        flows: (1..FLOWS).map(flow).collect(),
        model: Model::new(shape),
        next_id: 0,
        permits: Vec::new(),
        futures: Vec::new(),
        tickets: Vec::new(),
        polls_are_turns: matches!(shape.selection, BandSelection::Wfq(_)),
    };
    for op in script {
        run.step(op);
        run.check();
    }
    run.wind_up();
}

impl Run<'_> {
    fn request(&self, ask: &Ask) -> Request {
        let band = self.pool.band(PRIORITIES[ask.band]).unwrap();
        let mut request = Request::new(band).cost(ask.cost);
        if ask.flow != 0 {
            request = request.flow(self.flows[ask.flow - 1]);
        }
        ask.timeout_us.map_or(request, |us| request.timeout(Duration::from_micros(us)))
    }

    fn new_id(&mut self) -> u32 {
        self.next_id += 1;
        self.next_id
    }

    fn step(&mut self, op: &Op) {
        match op {
            Op::Submit(ask) => self.submit(ask),
            Op::Try(ask) => self.try_admit(ask),
            Op::Admit(ask, polled) => {
                let id = self.new_id();
                self.futures.push((id, self.pool.admit(self.request(ask))));
                self.model.futures.insert(id, (*ask, Stage::New));
                if *polled {
                    self.poll_future(self.futures.len() - 1);
                }
            }
            Op::Release(n) if !self.permits.is_empty() => {
                let (id, permit) = self.permits.remove(n % self.permits.len());
                self.model.release(id);
                permit.release();
            }
            Op::Cancel(n) if !self.tickets.is_empty() => {
                let (id, ticket) = self.tickets[n % self.tickets.len()];
                assert_eq!(self.pool.cancel(ticket), self.model.cancel(id), "cancel of {id}");
            }
            Op::PollFuture(n) if !self.futures.is_empty() => {
                self.poll_future(n % self.futures.len());
            }
            Op::DropFuture(n) if !self.futures.is_empty() => {
                let (id, future) = self.futures.remove(n % self.futures.len());
                self.model.drop_future(id);
                drop(future);
            }
            Op::Resize(slots) => {
                assert!(self.pool.resize(*slots));
                self.model.resize(*slots);
            }
            Op::Saturation(gauge) => self.set_saturation(*gauge),
            Op::Advance(us) => {
                self.model.now += us * 1_000;
                self.clock.set(self.model.now);
            }
            // A turn nobody needs is invisible in a strict pool; the weighted policy would see it.
            Op::Poll if self.polls_are_turns => self.set_saturation(self.model.gauge()),
            Op::Poll => self.poll(),
            Op::Drain => {
                self.pool.drain();
                self.model.close(false);
            }
            Op::ShutDown => {
                self.pool.shut_down();
                self.model.close(true);
            }
            _ => {}
        }
    }

    fn set_saturation(&mut self, gauge: Option<f64>) {
        assert!(self.pool.set_saturation(gauge));
        self.model.set_gauge(gauge);
    }

    fn poll(&mut self) {
        let before = (self.model.granted, self.model.expired);
        let progress = self.engine.poll();
        self.model.poll();
        let granted = self.model.granted - before.0;
        let expired = self.model.expired - before.1;
        assert_eq!((u64::from(progress.grants), progress.expired), (granted, expired));
        assert!(!progress.more);
    }

    fn submit(&mut self, ask: &Ask) {
        let id = self.new_id();
        let expected = self.model.submit(id, ask, false);
        match self.pool.submit(&self.request(ask), self.queue, u64::from(id)) {
            Ok(Submitted::Granted(permit)) => {
                assert_eq!(expected, Expect::Granted, "submit {id}");
                assert_eq!((permit.how(), permit.cost()), (Admitted::Fast, ask.cost));
                self.permits.push((id, permit));
            }
            Ok(Submitted::Queued(ticket)) => {
                assert_eq!(expected, Expect::Queued, "submit {id}");
                self.tickets.push((id, ticket));
            }
            Err(reason) => assert_eq!(expected, Expect::Rejected(reason), "submit {id}"),
        }
    }

    fn try_admit(&mut self, ask: &Ask) {
        let id = self.new_id();
        let expected = self.model.try_admit(id, ask);
        match self.pool.try_admit(&self.request(ask)) {
            Ok(permit) => {
                assert_eq!(expected, Expect::Granted, "try {id}");
                self.permits.push((id, permit));
            }
            Err(reason) => assert_eq!(expected, Expect::Rejected(reason), "try {id}"),
        }
    }

    fn poll_future(&mut self, at: usize) {
        let id = self.futures[at].0;
        let (ask, stage) = self.model.futures[&id];
        let expected = match stage {
            Stage::New => match self.model.submit(id, &ask, true) {
                Expect::Granted => Poll::Ready(Ok(Admitted::Fast)),
                Expect::Queued => Poll::Pending,
                Expect::Rejected(reason) => Poll::Ready(Err(reason)),
            },
            Stage::Waiting => Poll::Pending,
            Stage::Granted => {
                self.model.held.insert(id, ask.flow);
                Poll::Ready(Ok(Admitted::Queued))
            }
            Stage::Evicted(reason) => Poll::Ready(Err(reason)),
        };
        let answer = common::poll_once(&mut self.futures[at].1);
        let seen = answer.map(|outcome| {
            outcome.map(|permit| {
                let how = permit.how();
                self.permits.push((id, permit));
                how
            })
        });
        assert_eq!(seen, expected, "future {id}");
        if seen.is_ready() {
            drop(self.futures.remove(at));
            self.model.futures.remove(&id);
        } else if stage == Stage::New {
            self.model.futures.insert(id, (ask, Stage::Waiting));
            let ticket = self.futures[at].1.ticket().unwrap();
            self.tickets.push((id, ticket));
        }
    }

    /// After a step: the same outcomes, grants in the same order, and the same counts.
    fn check(&mut self) {
        let (mut grants, mut evictions) = (Vec::new(), Vec::new());
        while let Some(completion) = self.queue.poll() {
            let id = u32::try_from(completion.tag).unwrap();
            assert!(self.tickets.contains(&(id, completion.ticket)), "the ticket it had");
            match completion.outcome {
                Ok(permit) => {
                    grants.push(id);
                    self.permits.push((id, permit));
                }
                Err(reason) => evictions.push((id, reason)),
            }
        }
        let outcomes = core::mem::take(&mut self.model.outcomes);
        let expected: Vec<u32> = outcomes.iter().filter(|o| o.1.is_ok()).map(|o| o.0).collect();
        let refused = |o: &(u32, Result<(), Reason>)| Some((o.0, o.1.err()?));
        let mut expected_evictions: Vec<_> = outcomes.iter().filter_map(refused).collect();
        // Within a tick deadlines have no order.
        evictions.sort_unstable();
        expected_evictions.sort_unstable();
        assert_eq!((grants, evictions), (expected, expected_evictions));
        self.check_counts();
    }

    fn check_counts(&self) {
        let (view, model) = (self.pool.view(), &self.model);
        assert_eq!(i64::from(view.free), model.free());
        assert_eq!(i64::from(view.running), model.running());
        assert_eq!(view.slots, model.slots());
        assert_eq!(view.waiting as usize, model.waiting());
        assert!(view.capped <= view.waiting);
        assert_eq!(view.closed, model.closed);
        assert_eq!(view.stats.granted, model.granted);
        assert_eq!(view.stats.direct, model.direct);
        assert_eq!(view.stats.evicted, model.evicted);
    }

    /// Everything ends: every slot is free again and nobody waits.
    fn wind_up(mut self) {
        while !self.futures.is_empty() {
            self.step(&Op::DropFuture(0));
            self.check();
        }
        self.step(&Op::ShutDown);
        self.check();
        while !self.permits.is_empty() {
            self.step(&Op::Release(0));
            self.check();
        }
        self.model.now += 1_000 * MS;
        self.clock.set(self.model.now);
        common::settle(self.engine);
        self.check();
        let view = self.pool.view();
        assert_eq!((view.running, view.waiting), (0, 0));
    }
}
