//! What inputs, workers and the report of one engine share.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, SystemTime},
};

use parking_lot::Mutex;
use tokio::{sync::Notify, time::Instant};

use super::{
    brake::Brake,
    config::{HandlerConfig, NoHandler, OnFull, PoolConfig, Retry},
    failures::{FailedEvent, Failures},
    inputs::Inputs,
    ledger::{Ledger, PartTicket},
    letters::LetterTicket,
    log_limit::LogLimit,
    loopback::{Loopback, Reserved},
    order_audit::Line,
    outage::Outage,
    outputs::Outputs,
    parked::Parked,
    shares::Shares,
    tries::Tries,
};
use crate::{
    dead_letter::{DeadLetter, DeadLetterStore, Reason},
    event::Event,
    excerpt::excerpt,
    handler::{FailureKind, Settlement},
    name::Name,
    router::{HandlerFailure, Router},
    settlement::{Ack, Outcome},
};

/// A handler with its health.
pub(crate) struct Handler {
    pub(crate) name: Name,
    pub(crate) config: HandlerConfig,
    /// The place of its pool.
    pub(crate) pool: usize,
    pub(crate) outage: Outage,
    pub(crate) brake: Brake,
    /// As it is now; looked at when an attempt has failed.
    retry: Mutex<Retry>,
}

impl Handler {
    pub(crate) fn new(name: &str, config: HandlerConfig, pool: usize, outage: Outage) -> Self {
        let retry = Mutex::new(config.retry.unwrap_or_default());
        Self { name: Name::new(name), config, pool, outage, brake: Brake::default(), retry }
    }

    pub(crate) fn retry(&self) -> Retry {
        *self.retry.lock()
    }

    pub(crate) fn set_retry(&self, retry: Retry) {
        *self.retry.lock() = retry;
    }
}

/// What a pool does that its workers and inputs must know.
pub(crate) struct PoolSettings {
    pub(crate) name: Name,
    /// As it is now.
    pub(crate) config: Mutex<PoolConfig>,
    pub(crate) brake: Brake,
    /// Of an attempt.
    pub(crate) timeout: Option<Duration>,
    /// Events stand in line where their handlers say so.
    pub(crate) keeps_order: bool,
    pub(crate) on_full: OnFull,
    /// Attempts that failed.
    pub(crate) failed_attempts: AtomicU64,
    /// Attempts that were not the first of their event.
    pub(crate) further_attempts: AtomicU64,
}

pub(crate) struct Shared {
    pub(crate) router: Router,
    pub(crate) handlers: Vec<Handler>,
    pub(crate) pools: Vec<PoolSettings>,
    pub(crate) outputs: Outputs,
    /// Whether an event goes to all outputs that take it, rather than to the first.
    pub(crate) all_outputs: bool,
    /// How pools share the threads, where one has a weight.
    pub(crate) shares: Option<Shares>,
    /// The way back in, where there is one.
    pub(crate) loopback: Option<Arc<Loopback>>,
    /// Its place among the inputs; 0 where there is none.
    pub(crate) loopback_place: u32,
    pub(crate) dead_letters: Arc<dyn DeadLetterStore>,
    pub(crate) no_handler: NoHandler,
    /// What becomes of an event that every matcher refuses.
    pub(crate) handler_rejected: NoHandler,
    pub(crate) ledger: Arc<Ledger>,
    pub(crate) letter_log: LogLimit,
    pub(crate) failures: Failures,
    pub(crate) parked: Parked,
    pub(crate) inputs: Inputs,
}

/// Tells an input to stop, and why.
#[derive(Debug, Default)]
pub(crate) struct InputStop {
    why: Mutex<Option<WhyStop>>,
    told: Notify,
}

/// Why an input is to stop.
#[derive(Debug, Clone)]
pub(crate) enum WhyStop {
    /// A handler says that nothing more of it can be handled.
    Fatal(String),
    /// It was removed.
    Removed,
}

impl InputStop {
    /// The first who says so is heard.
    pub(crate) fn stop(&self, why: impl FnOnce() -> String) {
        self.why.lock().get_or_insert_with(|| WhyStop::Fatal(why()));
        self.told.notify_one();
    }

    /// As [`stop`](Self::stop), where nothing is wrong.
    pub(crate) fn remove(&self) {
        self.why.lock().get_or_insert(WhyStop::Removed);
        self.told.notify_one();
    }

    /// Waits until it is to stop.
    ///
    /// # Cancel safety
    /// A dropped future has done nothing.
    pub(crate) async fn told(&self) -> WhyStop {
        loop {
            if let Some(why) = self.why.lock().clone() {
                return why;
            }
            self.told.notified().await;
        }
    }
}

/// An event on its way through a pool.
pub(crate) struct Job {
    pub(crate) event: Event,
    /// The place of its handler.
    pub(crate) handler: usize,
    /// The line that it stands in; none for an event without order.
    pub(crate) line: Option<Line>,
    /// Where it came from.
    pub(crate) origin: Origin,
    /// Attempts so far, the one in hand included; not those that its handler gave back unstarted.
    pub(crate) attempts: u32,
    /// Its settlement; dropped with the job, it refuses the event.
    pub(crate) ack: Ack,
    /// Room on the way back for what its handler may send there.
    pub(crate) reserved: Option<Reserved>,
    /// Its attempts that failed.
    pub(crate) tries: Tries,
    /// Why it has parked its key, where it has.
    pub(crate) parked_for: Option<Arc<str>>,
    /// In its handler's hands, where that settles it itself.
    pub(crate) manual: Option<Settlement>,
    /// Who wants to know what its handler makes of it, instead of the outputs.
    pub(crate) produced: Option<Arc<Produced>>,
}

impl Job {
    pub(crate) fn new(
        event: Event,
        handler: usize,
        line: Option<Line>,
        origin: Origin,
        ack: Ack,
    ) -> Self {
        Self {
            event,
            handler,
            line,
            origin,
            attempts: 0,
            ack,
            reserved: None,
            tries: Tries::default(),
            parked_for: None,
            manual: None,
            produced: None,
        }
    }
}

/// What handlers made of an event that a caller gave to a router.
#[derive(Debug, Default)]
pub(crate) struct Produced(Mutex<(Vec<Event>, Vec<HandlerFailure>)>);

impl Produced {
    pub(crate) fn add(&self, outputs: impl IntoIterator<Item = Event>) {
        self.0.lock().0.extend(outputs);
    }

    fn failed(&self, failure: HandlerFailure) {
        self.0.lock().1.push(failure);
    }

    pub(crate) fn take(&self) -> (Vec<Event>, Vec<HandlerFailure>) {
        std::mem::take(&mut *self.0.lock())
    }
}

/// Where an event came from.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Origin {
    /// The place of its input.
    pub(crate) input: u32,
    /// Its position there.
    pub(crate) position: u64,
    /// Its number among the events of its input, from 1; 0 where they have no order among them.
    pub(crate) number: u64,
    pub(crate) taken_at: Instant,
}

impl Origin {
    /// Of an event that a caller gave to a router.
    pub(crate) fn of_caller() -> Self {
        Self { input: 0, position: 0, number: 0, taken_at: Instant::now() }
    }
}

/// What became a dead letter, and why.
pub(crate) struct Given {
    pub(crate) event: Option<Event>,
    pub(crate) raw: Option<Vec<u8>>,
    pub(crate) reason: Reason,
    pub(crate) error: String,
    pub(crate) attempts: u32,
    pub(crate) handler: Option<usize>,
}

impl Shared {
    /// Hands a dead letter to its store; the event is settled when it is stored.
    pub(crate) fn dead_letter(&self, origin: Origin, ack: Ack, given: Given) {
        ack.set_outcome(Outcome::DeadLettered);
        let handler = given.handler.map(|place| &self.handlers[place]);
        let pool = handler.map(|handler| handler.pool);
        let bytes = given.event.as_ref().map_or(0, Event::approximate_bytes)
            + given.raw.as_ref().map_or(0, Vec::len);
        self.log_letter(origin, &given);
        let last_at = SystemTime::now();
        self.dead_letters.store(DeadLetter {
            event: given.event,
            raw: given.raw,
            reason: given.reason,
            error: given.error,
            attempts: given.attempts,
            first_at: last_at.checked_sub(origin.taken_at.elapsed()).unwrap_or(last_at),
            last_at,
            input: self.inputs.name(origin.input),
            source: self.inputs.label(origin.input),
            position: origin.position,
            pool: pool.map(|pool| Arc::from(&*self.pools[pool].name)),
            handler: handler.map(|handler| Arc::from(&*handler.name)),
            ack: LetterTicket::ack(&self.ledger, given.reason, pool, bytes, ack),
        });
    }

    fn log_letter(&self, origin: Origin, given: &Given) {
        let Some(left_out) = self.letter_log.line(Instant::now()) else { return };
        let input = &*self.inputs.name(origin.input);
        let (reason, error) = (given.reason.as_str(), &*excerpt(&given.error));
        let id = given.event.as_ref().map(|event| excerpt(event.id()));
        let id = id.as_deref();
        let handler = given.handler.map(|place| self.handlers[place].name.as_str());
        let (position, attempts) = (origin.position, given.attempts);
        tracing::warn!(
            input,
            position,
            id,
            handler,
            reason,
            attempts,
            error,
            lines_left_out = left_out,
            "dead letter"
        );
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
