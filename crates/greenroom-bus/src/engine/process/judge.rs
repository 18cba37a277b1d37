//! The consequence of a failed attempt: which side is to blame, and whether the event waits, is
//! retried, or is given up.

use std::{sync::atomic::Ordering, time::Duration};

use greenroom::{
    DeadLetter, DeadLetterReason, FailureAction, FinalAction, Rule,
    failure::{Cause, FailedAttempt},
};
use tokio::time::Instant;

use super::{
    circuit::{Blame, Failing, OutageCause, Probe},
    entries::{HandlerEntry, PoolSettings},
    failures::FailedEvent,
    job::{BusError, PoolJob, Tries},
    parked::WHAT_NEXT,
    retries::RetryClass,
};
use crate::{
    dead_letter::Reason,
    engine::{intake::partition::GivenUp, shared::Shared},
    excerpt::excerpt,
    handler::{Effect, Failure, FailureKind},
    router::Retry,
};

/// The longest wait that a target may ask for (`Retry-After`).
const LONGEST_ASKED: Duration = Duration::from_secs(300);

/// The wait of an event that its worker gave back unstarted.
const RELEASED: Duration = Duration::from_millis(50);

/// The wait of an event whose attempt failed in an outage, before it asks again
/// whether the outage is over.
pub(crate) const OUTAGE: Duration = Duration::from_millis(200);

/// An event that is not begun, because one before it in its line is to be attempted again.
pub(crate) fn released(entry: &HandlerEntry, job: &PoolJob) -> BusError {
    waiting(entry, job, "one before it in its line was not done", RELEASED)
}

/// An event that is not attempted, because it is given up.
pub(crate) fn given_up(entry: &HandlerEntry, job: &PoolJob) -> BusError {
    let why = "its partition was taken away, or a stop came, before it was attempted";
    BusError { is_given_up: true, ..waiting(entry, job, why, Duration::ZERO) }
}

/// No attempt was made: the error includes that of the last attempt.
pub(crate) fn waiting(entry: &HandlerEntry, job: &PoolJob, why: &str, wait: Duration) -> BusError {
    let tries = job.extras().map(|extras| &extras.tries);
    let failure = match tries.and_then(Tries::last_error) {
        Some(error) => {
            let told = format!("{why}; its last attempt failed: {error}");
            Failure::new(FailureKind::Released, told)
        }
        None => Failure::new(FailureKind::Released, why),
    };
    let backoff = entry.retry().backoff;
    let failures = tries.map_or(0, Tries::failures);
    let waits = Some(wait);
    BusError {
        failure,
        waits,
        backoff,
        failures,
        is_last: false,
        is_given_up: false,
        holds_share: None,
    }
}

/// Judges a failure: is it the event's, or is its handler in outage?
pub(crate) fn failed(
    shared: &Shared,
    pool: &PoolSettings,
    job: &mut PoolJob,
    failure: Failure,
    probe: Probe,
) -> BusError {
    if let Some(room) = job.room() {
        room.returns();
    }
    let entry = &shared.process.handlers[job.handler()];
    let (retry, now) = (entry.retry(), Instant::now());
    let since = job.extras().and_then(|extras| extras.tries.streak());
    let (streak, forgiven) = entry.circuits.streak(job, since);
    if forgiven {
        job.extras_mut().tries.begin_anew();
    }
    let mut blame = Blame::Event;
    match failure.kind {
        // It is not a failure of the handler: a probe that ends like this, without ending the
        // outage, is followed by another.
        FailureKind::Reject
        | FailureKind::Park
        | FailureKind::Crash
        | FailureKind::HoldShare { .. }
        | FailureKind::PauseShare
        | FailureKind::LoopbackFull => {}
        FailureKind::Fatal => {
            let why = || format!("stopped by the handler {:?}: {}", entry.name, failure.error);
            shared.inputs.read_from(&job.origin).stop.stop(why);
        }
        FailureKind::Released => take_back(job, pool),
        _ => blame = blamed(shared, job, &failure, probe, now),
    }
    let waits = match blame {
        Blame::Event | Blame::Unknown(_) => None,
        Blame::Outage | Blame::NewOutage => Some(OUTAGE),
    };
    let pauses_share = failure.kind == FailureKind::PauseShare
        && job.share().is_some_and(|share| pool.shares.is_gone(share));
    let waits = if pauses_share { Some(OUTAGE) } else { waits };
    if let Blame::Unknown(undecided) = blame {
        job.extras_mut().tries.hold(now + undecided);
    }
    if failure.kind != FailureKind::Released {
        tell_failure(shared, job, &failure.error, Some(failure.kind));
        job.extras_mut().tries.note(&excerpt(&failure.error));
        pool.failed_attempts.fetch_add(1, Ordering::Relaxed);
        if waits.is_none() {
            job.extras_mut().tries.failed(streak, now);
        }
    }
    if failure.effect == Effect::Unknown {
        shared.ledger.unanswered.fetch_add(1, Ordering::Relaxed);
    }
    if failure.kind.blames_the_handler() && failure.effect == Effect::None {
        // The event has reached no one: the next attempt repeats this one.
        take_back(job, pool);
    }
    let tries = &job.extras_mut().tries;
    let failures = tries.failures();
    let is_last = failures >= retry.attempts || tries.is_over(retry.total, now);
    let why = shared.inputs.revocations.why(job.origin.assigned);
    if let Some(class) =
        RetryClass::from_failure(failure.kind, waits.is_some(), is_last || why.is_some())
    {
        pool.retries.count(class);
    }
    let is_given_up = why.is_some_and(|why| gives_up(why, failure.kind));
    let holds_share = match failure.kind {
        FailureKind::PauseShare if pauses_share => Some(Duration::MAX),
        FailureKind::HoldShare { after } if job.share().is_some() => {
            Some(after.unwrap_or_else(|| retry.backoff.wait(failures, 1.0)).min(LONGEST_ASKED))
        }
        _ => None,
    };
    let holds_share = job.share().cloned().zip(holds_share).map(Box::new);
    let backoff = retry.backoff;
    BusError { failure, waits, backoff, failures, is_last, is_given_up, holds_share }
}

/// Whether a failure ends the event in this run. After a stop, an event in hand ends as it would
/// have without the stop: it may become a dead letter. The pool does not start it again, and no
/// operator can decide about its key.
fn gives_up(why: GivenUp, kind: FailureKind) -> bool {
    why == GivenUp::Revoked || kind == FailureKind::Park
}

/// Does not count an attempt that was counted when it began.
fn take_back(job: &mut PoolJob, pool: &PoolSettings) {
    if job.attempts > 1 {
        pool.further_attempts.fetch_sub(1, Ordering::Relaxed);
    }
    job.attempts = job.attempts.saturating_sub(1);
}

/// Reports a failure to the handler's health. In an outage, nothing that its event has failed of
/// counts.
fn blamed(
    shared: &Shared,
    job: &mut PoolJob,
    failure: &Failure,
    probe: Probe,
    now: Instant,
) -> Blame {
    let entry = &shared.process.handlers[job.handler()];
    let tries = &job.extras_mut().tries;
    let (left, since) = (tries.left(entry.retry(), now), tries.streak());
    let failing = Failing {
        event: job.origin.identity(),
        cause: OutageCause::from_failure(failure.kind),
        error: &failure.error,
        probe: probe.done(),
        left,
        since,
        others_may_come: shared.inputs.others_may_come(&job.origin),
    };
    let blame = entry.circuits.failed(job, failing, now);
    if blame == Blame::NewOutage {
        let (handler, error) = (&*entry.name, &*excerpt(&failure.error));
        match entry.circuits.named(job) {
            Some(share) => tracing::warn!(
                handler,
                share,
                error,
                "a share is in outage: its events wait, one at a time probes, and others go on"
            ),
            None => tracing::error!(
                handler,
                error,
                "the handler is in outage: its events wait, one at a time probes"
            ),
        }
    }
    if matches!(blame, Blame::NewOutage | Blame::Outage) {
        job.extras_mut().tries.begin_anew();
    }
    blame
}

/// Tells of a failed attempt.
pub(crate) fn tell_failure(shared: &Shared, job: &PoolJob, error: &str, kind: Option<FailureKind>) {
    let handler = &shared.process.handlers[job.handler()];
    let place = shared.inputs.place(&job.origin);
    shared.process.failures.tell(&FailedEvent {
        event: &job.event,
        error,
        kind,
        handler: handler.name,
        pool: shared.process.pools[handler.pool].name,
        attempt: job.attempts,
        key: job.line.as_ref().map(|line| &*line.key),
        source: &place.source,
        position: place.position,
    });
}

/// The consequence of a failed attempt (P18, D05, D09).
pub(crate) fn policy(attempt: FailedAttempt<'_, BusError>, chance: f64) -> FailureAction {
    let error = match attempt.cause {
        Cause::Error(error) => error,
        _ => return row(Retry::default()).action(attempt.failures, chance),
    };
    if error.is_given_up {
        // Dropped, its settlement refuses it: the next owner of its partition, or the next run,
        // handles it.
        return FailureAction::Drop;
    }
    if let Some(after) = error.waits {
        // Spread, so that waiting events do not all return at once.
        return FailureAction::Retry { after: after.mul_f64(0.5 + 0.5 * chance), counted: false };
    }
    let retried = match error.is_last {
        true => FailureAction::DeadLetter,
        false => FailureAction::Retry {
            after: error.backoff.wait(error.failures, chance),
            counted: true,
        },
    };
    match error.failure.kind {
        // Dropped, its settlement refuses it.
        FailureKind::Fatal => FailureAction::Drop,
        FailureKind::Reject | FailureKind::Crash | FailureKind::PauseShare => {
            FailureAction::DeadLetter
        }
        FailureKind::Park => FailureAction::ParkKey,
        FailureKind::Released => FailureAction::Retry { after: RELEASED, counted: false },
        FailureKind::Retry { after: Some(asked) }
        | FailureKind::HoldShare { after: Some(asked) } => {
            with_wait(retried, |_| asked.min(LONGEST_ASKED))
        }
        _ => retried,
    }
}

/// Another attempt waits for as long as this says.
fn with_wait(verdict: FailureAction, wait: impl Fn(Duration) -> Duration) -> FailureAction {
    match verdict {
        FailureAction::Retry { after, counted } => {
            FailureAction::Retry { after: wait(after), counted }
        }
        other => other,
    }
}

fn row(retry: Retry) -> Rule {
    Rule::Retry {
        attempts: retry.attempts,
        backoff: retry.backoff,
        finally: FinalAction::DeadLetter,
    }
}

/// A job parks its key. Its error stays with it for the report.
fn park(shared: &Shared, job: &mut PoolJob, error: &str) {
    if let Some(room) = job.room() {
        room.leaves();
    }
    let extras = job.extras_mut();
    extras.parked_for = Some(error.into());
    // A later attempt is the first again.
    extras.tries.begin_anew();
    let now = Instant::now();
    if let Some(line) = &job.line {
        shared.process.parked.note(line.clone(), job.event.clone(), job.attempts, now);
    }
    let Some(left_out) = shared.process.parked.parks(now) else { return };
    let handler = &shared.process.handlers[job.handler()];
    let key = job.line.as_ref().map(|line| &*line.key);
    let (id, attempts, input) =
        (job.event.id(), job.attempts, shared.inputs.label(job.origin.input));
    let (input, pool, handler) =
        (&*input, &*shared.process.pools[handler.pool].name, &*handler.name);
    tracing::warn!(
        key,
        handler,
        pool,
        input,
        id,
        trace_id = job.event.trace_id(),
        attempts,
        error,
        lines_left_out = left_out,
        "a key waits for an operator, with all its events: {WHAT_NEXT}"
    );
}
/// A job has failed for good, and parks its key.
pub(crate) fn parks(
    shared: &Shared,
    job: Option<&mut PoolJob>,
    error: Option<&BusError>,
    panic: Option<&str>,
) {
    // Otherwise it was dropped in the middle of its outputs, which is reported as such.
    let Some(job) = job else { return };
    match (error, panic) {
        (Some(error), _) => park(shared, job, &error.failure.error),
        (None, panic) => {
            let error = format!("the handler panicked: {}", panic.unwrap_or_default());
            park(shared, job, &error);
        }
    }
}

/// Stores events that the pool has given up.
pub(crate) fn bury(shared: &Shared, letter: DeadLetter<PoolJob, BusError>) {
    // Without a message, the job was dropped in the middle of its outputs, and its settlement with
    // it: by a stop, or by an output that panicked.
    let Some(job) = letter.message else {
        if let Some(panic) = letter.panic {
            tracing::error!(panic, "an output panicked; the event that it was given is refused");
        }
        return;
    };
    // The new owner of its partition handles it, and may do better: dropped, it is refused.
    if shared.inputs.revocations.is_revoked(job.origin.assigned) {
        return;
    }
    let error = match (letter.error, letter.panic) {
        (Some(error), _) => error.failure,
        (None, Some(panic)) => Failure::reject(format!("the handler panicked: {panic}")),
        (None, None) => Failure::reject("no worker was left to handle it"),
    };
    let reason = match (letter.reason, error.kind) {
        (DeadLetterReason::Poisoned, _) | (_, FailureKind::Crash) => Reason::Poisoned,
        (
            DeadLetterReason::Failed,
            FailureKind::Reject | FailureKind::Park | FailureKind::PauseShare,
        ) => Reason::Rejected,
        (DeadLetterReason::NoWorkers, _) => Reason::NoWorkers,
        _ => Reason::RetriesExhausted,
    };
    shared.give_up(job, reason, error.error);
}
