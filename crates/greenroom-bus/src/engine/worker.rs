//! The workers of the engine's pools: attempts, outputs, failures.

use std::{
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use greenroom::{
    Actor, Answer, Cause, Context, DeadLetter, DeadLetterReason, Delivery, ExitReason,
    FailedAttempt, Finally, Row, Verdict,
};
use tokio::time::Instant;

use super::{
    config::Retry,
    outage::Admission,
    shared::{Job, Shared},
};
use crate::{
    dead_letter::Reason,
    event::Event,
    handler::{self, Attempt, Failure, FailureKind, Handling, Outputs},
    settlement::Ack,
    sink::Outgoing,
};

/// The longest wait that a target may ask for (`Retry-After`).
const LONGEST_ASKED: Duration = Duration::from_secs(300);

/// The wait of an event that its worker gave back unstarted.
const RELEASED: Duration = Duration::from_millis(50);

/// How long a handler may take to end what it keeps open.
const PATIENCE: Duration = Duration::from_secs(5);

/// One worker, with a handler of its own for each that its pool runs.
pub(crate) struct BusWorker {
    shared: Arc<Shared>,
    pool: usize,
    slot: usize,
    /// By the handler's place; built when first needed.
    handlers: Vec<Option<Box<dyn handler::Handler>>>,
}

/// A failed attempt, as the pool's failure policy and dead letters see it.
#[derive(Debug)]
pub(crate) struct BusError {
    pub(crate) failure: Failure,
    retry: Retry,
    /// The handler is in outage: the attempt does not count.
    waits: Option<Duration>,
}

impl BusWorker {
    pub(crate) fn new(shared: Arc<Shared>, pool: usize, slot: usize) -> Self {
        let handlers = shared.handlers.iter().map(|_| None).collect();
        Self { shared, pool, slot, handlers }
    }

    /// The handler at this place, built when it is first needed.
    fn handler(&mut self, place: usize) -> Result<&mut Box<dyn handler::Handler>, Failure> {
        let slot = &mut self.handlers[place];
        match slot {
            Some(handler) => Ok(handler),
            None => match self.shared.handlers[place].config.factory.build(self.slot) {
                Ok(handler) => Ok(slot.insert(handler)),
                Err(error) => Err(Failure::new(FailureKind::Pause, error)),
            },
        }
    }

    async fn attempt(&mut self, job: &Job, number: u32) -> Result<Outputs, BusError> {
        let shared = self.shared.clone();
        let entry = &shared.handlers[job.handler];
        let retry = entry.config.retry;
        if let Admission::Wait(wait) = entry.outage.admit(Instant::now()) {
            let failure = Failure::new(FailureKind::Released, "the handler is in outage");
            return Err(BusError { failure, retry, waits: Some(wait) });
        }
        let attempt = Attempt {
            number,
            pool: shared.pools[self.pool].name.clone(),
            handler: entry.name.clone(),
            worker: self.slot,
        };
        let guard = Cancelled(Some(entry));
        let result = match self.handler(job.handler) {
            Err(failure) => Err(failure),
            Ok(handler) => match handler.handle(&job.event, &attempt) {
                Handling::Done(result) => result,
                Handling::Later(result) => result.await,
            },
        };
        guard.done();
        result.map_err(|failure| self.failed(job, failure)).inspect(|_| {
            if entry.outage.succeeded() {
                tracing::info!(handler = &*entry.name, "the handler works again");
            }
        })
    }

    /// Judges a failure: is it the event's, or is its handler in outage?
    fn failed(&self, job: &Job, failure: Failure) -> BusError {
        let entry = &self.shared.handlers[job.handler];
        self.shared.pools[self.pool].failed_attempts.fetch_add(1, Ordering::Relaxed);
        let reached = matches!(
            failure.kind,
            FailureKind::Reject | FailureKind::Released | FailureKind::Crash
        );
        let mut waits = None;
        if reached {
            entry.outage.succeeded();
        } else {
            let was_down = entry.outage.down_since().is_some();
            let refused = failure.kind == FailureKind::Pause;
            let event = (job.origin.input, job.origin.position);
            if entry.outage.failed(event, refused, &failure.error, Instant::now()) {
                waits = Some(Duration::from_millis(200));
                if !was_down {
                    let (handler, error) = (&*entry.name, &failure.error);
                    tracing::error!(
                        handler,
                        error,
                        "the handler is in outage: its events wait, one at a time probes"
                    );
                }
            }
        }
        if failure.kind == FailureKind::Timeout {
            self.shared.ledger.timed_out.fetch_add(1, Ordering::Relaxed);
        }
        BusError { failure, retry: entry.config.retry, waits }
    }
}

/// Hands what a handler produced to the outputs, in order, and confirms the event's own part.
async fn emit(shared: &Shared, job: Job, outputs: Outputs, attempt: u32) {
    let Job { event, handler, line, origin, ack } = job;
    let pool = &shared.pools[shared.handlers[handler].pool].name;
    match outputs {
        Outputs::None => {}
        Outputs::Same => pass_on(shared, pool, event, &ack, attempt).await,
        Outputs::Events(events) => {
            for event in events {
                pass_on(shared, pool, event, &ack, attempt).await;
            }
        }
    }
    shared.leaves(line.as_ref(), origin.number);
    ack.confirm();
}

async fn pass_on(shared: &Shared, pool: &Arc<str>, event: Event, ack: &Ack, attempt: u32) {
    let Some(output) = shared.output(event.ty()) else { return };
    output.events.fetch_add(1, Ordering::Relaxed);
    let outgoing = Outgoing { event, pool: pool.clone(), attempt, ack: ack.child() };
    if let Err(outgoing) = output.sink.try_accept(outgoing) {
        output.sink.accept(outgoing).await;
    }
}

/// Tells the outage state that an attempt was dropped or panicked, unless it is told that it was not.
struct Cancelled<'a>(Option<&'a super::shared::Handler>);

impl Cancelled<'_> {
    fn done(mut self) {
        self.0 = None;
    }
}

impl Drop for Cancelled<'_> {
    fn drop(&mut self) {
        if let Some(handler) = self.0 {
            handler.outage.cancelled();
        }
    }
}

impl Actor for BusWorker {
    type Message = Job;
    type Reply = ();
    type Error = BusError;

    /// Not used: [`receive`](Actor::receive) leaves the job in place until it is handled.
    async fn handle(&mut self, job: Job, _cx: &mut Context<Self>) -> Result<(), BusError> {
        let outputs = self.attempt(&job, 1).await?;
        emit(&self.shared, job, outputs, 1).await;
        Ok(())
    }

    async fn receive(
        &mut self,
        delivery: &mut Delivery<Job, (), BusError>,
        cx: &mut Context<Self>,
    ) -> Result<Answer<()>, BusError> {
        let number = delivery.failures() + 1;
        let Some(job) = delivery.message() else { return Ok(Answer::Elsewhere) };
        let outputs = self.attempt(job, number).await?;
        let job = delivery.take();
        let _ = cx;
        emit(&self.shared, job, outputs, number).await;
        Ok(Answer::Reply(()))
    }

    async fn stopped(&mut self, _reason: &ExitReason) {
        for handler in self.handlers.iter_mut().flatten() {
            handler.stop(PATIENCE).await;
        }
    }
}

/// What follows from a failed attempt (P18, D05, D09).
pub(crate) fn policy(attempt: FailedAttempt<'_, BusError>, chance: f64) -> Verdict {
    let error = match attempt.cause {
        Cause::Error(error) => error,
        _ => return row(Retry::default()).verdict(attempt.failures, chance),
    };
    if let Some(after) = error.waits {
        // Spread, so that what waits does not come back in one instant.
        return Verdict::Retry { after: after.mul_f64(0.5 + 0.5 * chance), counted: false };
    }
    let retried = row(error.retry).verdict(attempt.failures, chance);
    match error.failure.kind {
        FailureKind::Reject | FailureKind::Crash => Verdict::DeadLetter,
        FailureKind::Released => Verdict::Retry { after: RELEASED, counted: false },
        FailureKind::Retry { after: Some(asked) } => match retried {
            Verdict::Retry { counted, .. } => {
                Verdict::Retry { after: asked.min(LONGEST_ASKED), counted }
            }
            other => other,
        },
        _ => retried,
    }
}

fn row(retry: Retry) -> Row {
    Row::Retry { attempts: retry.attempts, backoff: retry.backoff, finally: Finally::DeadLetter }
}

/// Stores what the pool has given up.
pub(crate) fn bury(shared: &Shared, letter: DeadLetter<Job, BusError>) {
    // Without a message, the job was dropped by a stop in the middle of its outputs, and its settlement with it.
    let Some(job) = letter.message else { return };
    let error = match (letter.error, letter.panic) {
        (Some(error), _) => error.failure,
        (None, Some(panic)) => Failure::reject(format!("the handler panicked: {panic}")),
        (None, None) => Failure::reject("no worker was left to handle it"),
    };
    let reason = match (letter.reason, error.kind) {
        (DeadLetterReason::Poisoned, _) | (_, FailureKind::Crash) => Reason::Poisoned,
        (DeadLetterReason::Failed, FailureKind::Reject) => Reason::Rejected,
        (DeadLetterReason::NoWorkers, _) => Reason::NoWorkers,
        _ => Reason::RetriesExhausted,
    };
    shared.give_up(job, reason, error.error, letter.attempts);
}
