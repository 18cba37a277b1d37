//! What inputs, workers and the report of one engine share.

use std::sync::{Arc, atomic::Ordering};

use parking_lot::Mutex;

use super::{
    account::{
        ledger::{Ledger, PartTicket},
        order_audit::Line,
    },
    config::NoHandler,
    egress::{
        dead_letters::{Addressed, DeadLetters, Given},
        outputs::Outputs,
    },
    intake::inputs::Inputs,
    process::{
        entries::{Handler, PoolSettings},
        failures::{FailedEvent, Failures},
        fair_share::FairShare,
        job::{Job, Origin},
        loopback::Loopback,
        parked::Parked,
        produced::HandlerFailure,
    },
};
use crate::{
    dead_letter::Reason, event::Event, handler::FailureKind, router::Router, settlement::Ack,
};

pub(crate) struct Shared {
    pub(crate) router: Router,
    pub(crate) handlers: Vec<Handler>,
    pub(crate) pools: Vec<PoolSettings>,
    pub(crate) outputs: Outputs,
    /// Whether an event goes to all outputs that take it, rather than to the first.
    pub(crate) all_outputs: bool,
    /// How pools share the threads, where one has a weight.
    pub(crate) shares: Option<FairShare>,
    /// The way back in, where there is one.
    pub(crate) loopback: Option<Arc<Loopback>>,
    /// Its place among the inputs; 0 where there is none.
    pub(crate) loopback_place: u32,
    pub(crate) dead_letters: DeadLetters,
    pub(crate) no_handler: NoHandler,
    /// What becomes of an event that every matcher refuses.
    pub(crate) handler_rejected: NoHandler,
    pub(crate) ledger: Arc<Ledger>,
    pub(crate) failures: Failures,
    pub(crate) parked: Parked,
    pub(crate) inputs: Inputs,
}

impl Shared {
    /// Hands a dead letter to its store; the event is settled when it is stored.
    pub(crate) fn dead_letter(&self, origin: Origin, ack: Ack, given: Given) {
        let handler = given.handler.map(|place| &self.handlers[place]);
        let pool = handler.map(|handler| (handler.pool, self.pools[handler.pool].name.as_str()));
        let addressed = Addressed {
            input: self.inputs.name(origin.input),
            source: self.inputs.label(origin.input),
            position: origin.position,
            taken_at: origin.taken_at,
            handler: handler.map(|handler| handler.name.as_str()),
            pool,
        };
        self.dead_letters.give(given, &addressed, ack);
    }

    /// A job that no attempt will help any more.
    pub(crate) fn give_up(&self, job: Job, reason: Reason, error: String) {
        let (attempts, handler) = (job.attempts, Some(job.handler));
        if let Some(manual) = &job.manual {
            manual.acknowledge();
        }
        if let Some(produced) = &job.produced {
            let name = self.handlers[job.handler].name;
            produced.failed(HandlerFailure::new(name, reason, error.clone(), attempts));
        }
        let given = Given { event: Some(job.event), raw: None, reason, error, attempts, handler };
        self.dead_letter(job.origin, job.ack, given);
    }

    /// Tells of a failed attempt.
    pub(crate) fn tell_failure(&self, job: &Job, error: &str, kind: Option<FailureKind>) {
        let handler = &self.handlers[job.handler];
        self.failures.tell(&FailedEvent {
            event: &job.event,
            error,
            kind,
            handler: handler.name,
            pool: self.pools[handler.pool].name,
            attempt: job.attempts,
            key: job.line.as_ref().map(|line| &*line.key),
            source: &self.inputs.label(job.origin.input),
            position: job.origin.position,
        });
    }

    /// The line that an event of this input stands in, where its pool keeps any. A key that cannot be had is an error where
    /// one is required.
    pub(crate) fn line(
        &self,
        event: &Event,
        handler: usize,
        input: u32,
    ) -> Result<Option<Line>, String> {
        let config = &self.handlers[handler].config;
        let Some(order_by) = &config.order_by else { return Ok(None) };
        let key = match order_by.key(event) {
            Ok(Some(key)) => key,
            Ok(None) if !config.key_required => return Ok(None),
            Ok(None) => {
                return Err(format!(
                    "the event has no {order_by}, by which its handler keeps order"
                ));
            }
            Err(error) => return Err(error.to_string()),
        };
        let keeps_order = self.pools[self.handlers[handler].pool].keeps_order;
        Ok(keeps_order.then(|| self.ledger.audit.line(input, handler, key)))
    }

    /// A part of an event's settlement that ends by itself: the line that its handler keeps is left then.
    pub(crate) fn part(&self, ack: Ack, line: Option<&Line>) -> Ack {
        let Some(line) = line else { return ack };
        self.ledger.audit.taken(line);
        let (ledger, line) = (self.ledger.clone(), line.clone());
        Ack::new(PartTicket { ledger, line, event: Mutex::new(Some(ack)) })
    }

    /// An event leaves in its turn, or out of it.
    pub(crate) fn leaves(&self, line: Option<&Line>, number: u64) {
        if number > 0 && line.is_some_and(|line| !self.ledger.audit.left(line, number)) {
            self.ledger.out_of_order.fetch_add(1, Ordering::Relaxed);
            tracing::error!(?line, number, "an event left out of order; please report this");
        }
    }
}
