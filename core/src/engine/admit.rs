//! The future of a permit.
#![forbid(unsafe_code)]

use core::future::Future;
use core::pin::Pin;
use core::task::{Context, Poll};

use super::permit::{Admitted, Permit};
use super::pool::{Pool, Submitted};
use super::request::{Request, Ticket};
use crate::error::Reason;
use crate::slab::{Phase, State};

/// Resolves to a permit or the reason of the refusal; see [`Pool::admit`].
#[derive(Debug)]
#[must_use = "futures do nothing unless polled"]
pub struct Admit<'p> {
    pool: &'p Pool,
    request: Request,
    stage: Stage,
}

#[derive(Clone, Copy, Debug)]
enum Stage {
    New,
    Waiting(Ticket),
    Done,
}

impl<'p> Admit<'p> {
    pub(super) const fn new(pool: &'p Pool, request: Request) -> Self {
        Self { pool, request, stage: Stage::New }
    }

    /// The ticket while it waits, to cancel from elsewhere.
    pub const fn ticket(&self) -> Option<Ticket> {
        match self.stage {
            Stage::Waiting(ticket) => Some(ticket),
            Stage::New | Stage::Done => None,
        }
    }

    fn granted(&mut self, permit: Permit<'p>) -> Poll<Result<Permit<'p>, Reason>> {
        self.stage = Stage::Done;
        Poll::Ready(Ok(permit))
    }

    fn refused(&mut self, reason: Reason) -> Poll<Result<Permit<'p>, Reason>> {
        self.stage = Stage::Done;
        Poll::Ready(Err(reason))
    }

    /// Registers first, looks second: a grant in between wakes.
    fn look(&mut self, ticket: Ticket, cx: &Context<'_>) -> Poll<Result<Permit<'p>, Reason>> {
        if self.pool.is_forked() {
            return self.refused(Reason::Forked);
        }
        let slab = self.pool.shard().slab();
        self.pool.drop_waker(slab.waker(ticket.idx).register(cx.waker()));
        let Some(state) = slab.state(ticket.idx) else { return self.refused(Reason::Poisoned) };
        match state.phase() {
            Phase::Granted => {
                self.pool.forget_waker(ticket);
                slab.give(ticket.idx);
                let Request { flow, cost, .. } = self.request;
                self.granted(self.pool.permit(flow, cost, Admitted::Queued))
            }
            Phase::Held => {
                self.pool.forget_waker(ticket);
                slab.set_state(ticket.idx, State::new(ticket.generation, Phase::Running));
                let Ticket { idx, generation, .. } = ticket;
                let cost = self.request.cost;
                self.granted(self.pool.tracked(idx, generation, cost, Admitted::Queued))
            }
            Phase::Evicted => {
                self.pool.forget_waker(ticket);
                slab.give(ticket.idx);
                self.refused(state.reason().unwrap_or(Reason::Cancelled))
            }
            Phase::New | Phase::Queued | Phase::Free if self.pool.is_dead() => {
                self.refused(Reason::Poisoned)
            }
            Phase::New | Phase::Queued | Phase::Free | Phase::Running => Poll::Pending,
        }
    }
}

impl<'p> Future for Admit<'p> {
    type Output = Result<Permit<'p>, Reason>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.get_mut();
        match this.stage {
            Stage::New => match this.pool.submit_waiting(&this.request) {
                Ok(Submitted::Granted(permit)) => this.granted(permit),
                Ok(Submitted::Queued(ticket)) => {
                    this.stage = Stage::Waiting(ticket);
                    this.look(ticket, cx)
                }
                Err(reason) => this.refused(reason),
            },
            Stage::Waiting(ticket) => this.look(ticket, cx),
            // A future polled after it was ready has nothing left to give.
            Stage::Done => Poll::Pending,
        }
    }
}

impl Drop for Admit<'_> {
    fn drop(&mut self) {
        if let Stage::Waiting(ticket) = self.stage {
            self.pool.abandon(ticket);
        }
    }
}
