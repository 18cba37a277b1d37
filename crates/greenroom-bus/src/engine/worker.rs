//! The workers of the engine's pools: attempts, outputs, failures.

use std::{
    future::Future,
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use greenroom::{
    Actor, Answer, Backoff, Context, DeadLetter, DeadLetterReason, Delivery, ExitReason,
    FailureAction, FinalAction, Rule,
    failure::{Cause, FailedAttempt},
};
use tokio::time::Instant;

use super::{
    config::{AckWhen, Retry},
    ledger::OutputsTicket,
    loopback::{Reserved, Returning, has_room},
    outage::{Admission, Blame, Failing},
    outputs::{self, Inside},
    parked,
    shared::{self, Job, PoolSettings, Shared},
};
use crate::{
    dead_letter::Reason,
    event::Event,
    excerpt::excerpt,
    handler::{self, Attempt, Effect, Failure, FailureKind, Handling, Outputs, Settlement},
    name::Name,
    settlement::{Ack, Refusal},
    sink::Outgoing,
};

/// The longest wait that a target may ask for (`Retry-After`).
const LONGEST_ASKED: Duration = Duration::from_secs(300);

/// The wait of an event that its worker gave back unstarted.
const RELEASED: Duration = Duration::from_millis(50);

/// How long a handler may take to end what it keeps open.
const PATIENCE: Duration = Duration::from_secs(5);

/// What is added to it before a handler is dropped that does not keep to it.
const OVERTIME: Duration = Duration::from_secs(1);

/// The wait of an event whose handler is paused, before it looks again.
const PAUSED: Duration = Duration::from_secs(1);

/// How long an event waits at a time before its last attempt.
const HELD: Duration = Duration::from_millis(100);

/// The wait of an event whose attempt failed in an outage, before it asks again whether the outage is over.
const OUTAGE: Duration = Duration::from_millis(200);

/// One worker, with a handler of its own for each that its pool runs.
pub(crate) struct BusWorker {
    shared: Arc<Shared>,
    pool: usize,
    slot: usize,
    /// The outputs, as it knows them.
    outputs: outputs::View,
    /// By the handler's place; built when first needed.
    handlers: Vec<Option<Box<dyn handler::Handler>>>,
}

/// A failed attempt, as the pool's failure policy and dead letters see it.
#[derive(Debug)]
pub(crate) struct BusError {
    pub(crate) failure: Failure,
    /// The handler is in outage: the attempt does not count.
    waits: Option<Duration>,
    /// Between attempts.
    backoff: Backoff,
    /// Attempts that failed and count, this one included.
    failures: u32,
    /// No other is made.
    is_last: bool,
}

impl BusWorker {
    pub(crate) fn new(shared: Arc<Shared>, pool: usize, slot: usize) -> Self {
        let handlers = shared.handlers.iter().map(|_| None).collect();
        let outputs = outputs::View::new(&shared.outputs);
        Self { shared, pool, slot, outputs, handlers }
    }

    /// As `attempt`, for several jobs: a result each. Those of one handler go to it together.
    async fn attempt_all(&mut self, mut jobs: Vec<&mut Job>) -> Vec<Result<Outputs, BusError>> {
        let mut results = Vec::with_capacity(jobs.len());
        for of_handler in jobs.chunk_by_mut(|one, next| one.handler == next.handler) {
            let config = &self.shared.handlers[of_handler[0].handler].config;
            // One that is to wait does not hold the others up.
            let any_held = of_handler.iter().any(|job| held(&self.shared, job).is_some());
            let alone = any_held || config.ack == AckWhen::Manual || config.loopback > 0;
            match of_handler {
                several if alone => {
                    for job in several {
                        results.push(self.attempt(job).await);
                    }
                }
                [job] => results.push(self.attempt(job).await),
                several => results.extend(self.attempt_together(several).await),
            }
        }
        results
    }

    async fn attempt_together(&mut self, jobs: &mut [&mut Job]) -> Vec<Result<Outputs, BusError>> {
        let Self { shared, handlers, pool, slot, .. } = self;
        let place = jobs[0].handler;
        let (entry, pool) = (&shared.handlers[place], &shared.pools[*pool]);
        pool.brake.off().await;
        if let Some(shares) = &shared.shares {
            shares.turn(entry.pool).await;
        }
        if entry.brake.is_on() {
            return jobs.iter().map(|_| Err(paused(entry))).collect();
        }
        match entry.outage.admit_now() {
            Admission::Wait(wait) => {
                return jobs.iter().map(|_| Err(waits_for_handler(entry, wait))).collect();
            }
            Admission::Probe => {
                // One event probes; the others wait for what comes of it.
                drop(Probe(Some(entry)));
                let (first, others) = jobs.split_at_mut(1);
                let mut results = vec![self.attempt(first[0]).await];
                let entry = &self.shared.handlers[place];
                results.extend(others.iter().map(|_| Err(waits_for_handler(entry, OUTAGE))));
                return results;
            }
            _ => {}
        }
        let attempts: Vec<Attempt> =
            jobs.iter_mut().map(|job| begin(job, entry, pool, *slot)).collect();
        let made = match built(&mut handlers[place], entry, *slot) {
            Err(failure) => jobs.iter().map(|_| Err(failure.clone())).collect(),
            Ok(handler) => {
                let told: Vec<&Job> = jobs.iter().map(|job| &**job).collect();
                let in_hand = InHand { shared, jobs: &told };
                let events: Vec<_> =
                    jobs.iter().zip(attempts).map(|(job, attempt)| (&job.event, attempt)).collect();
                let made = within(pool.timeout, handler.handle_all(&events)).await;
                in_hand.answered();
                match made {
                    Ok(results) => results,
                    Err(late) => jobs.iter().map(|_| Err(late.clone())).collect(),
                }
            }
        };
        let missing = || Err(Failure::new(FailureKind::Released, "it was not attempted"));
        let results = made.into_iter().chain(std::iter::repeat_with(missing));
        let judged = jobs.iter_mut().zip(results).map(|(job, result)| {
            let result = result.and_then(|outputs| may_send_back(shared, job, outputs));
            let judged = result.map_err(|failure| failed(shared, pool, job, failure, Probe(None)));
            judged.inspect(|_| worked(entry))
        });
        judged.collect()
    }

    async fn attempt(&mut self, job: &mut Job) -> Result<Outputs, BusError> {
        // Borrowed apart, so that no shared count is written for each event.
        let Self { shared, handlers, pool, slot, .. } = self;
        let (entry, pool) = (&shared.handlers[job.handler], &shared.pools[*pool]);
        if pool.brake.is_on() {
            pool.brake.off().await;
        }
        if let Some(shares) = &shared.shares {
            shares.turn(entry.pool).await;
        }
        if entry.brake.is_on() {
            return Err(paused(entry));
        }
        if let Some(wait) = held(shared, job) {
            return Err(waiting(
                entry,
                "its last attempt waits for others to say who is to blame",
                wait,
            ));
        }
        let admission = entry.outage.admit_now();
        if let Admission::Wait(wait) = admission {
            return Err(waits_for_handler(entry, wait));
        }
        let probe = Probe((admission == Admission::Probe).then_some(entry));
        let attempt = begin(job, entry, pool, *slot);
        if !has_room(job, entry.config.loopback) {
            let error = "there is no room on the way back for what its handler may send there";
            let failure = Failure::new(FailureKind::LoopbackFull, error).with_effect(Effect::None);
            return Err(failed(shared, pool, job, failure, probe));
        }
        let result = match built(&mut handlers[job.handler], entry, *slot) {
            Err(failure) => Err(failure),
            Ok(handler) => {
                let settlement = settlement(job, entry);
                let job = &*job;
                let in_hand = InHand { shared, jobs: &[job] };
                let handling = match settlement {
                    None => handler.handle(&job.event, &attempt),
                    Some(settlement) => handler.handle_and_settle(&job.event, &attempt, settlement),
                };
                let result = match handling {
                    Handling::Done(result) => result,
                    Handling::Later(result) => {
                        within(pool.timeout, result).await.and_then(|done| done)
                    }
                };
                in_hand.answered();
                result
            }
        };
        result
            .and_then(|outputs| may_send_back(shared, job, outputs))
            .map_err(|failure| failed(shared, pool, job, failure, probe))
            .inspect(|_| worked(entry))
    }
}

/// Events that a handler has in hand. Dropped before it has said what became of them (it panics, or
/// is dropped by a stop), nobody knows what it did: that is counted, and a panic is told, because
/// the pool, which catches that, has no event to tell of.
struct InHand<'a> {
    shared: &'a Shared,
    jobs: &'a [&'a Job],
}

impl InHand<'_> {
    /// The handler has said what became of them.
    fn answered(self) {
        std::mem::forget(self);
    }
}

impl Drop for InHand<'_> {
    fn drop(&mut self) {
        self.shared.ledger.unanswered.fetch_add(self.jobs.len() as u64, Ordering::Relaxed);
        if std::thread::panicking() {
            let tell = |job: &&Job| self.shared.tell_failure(job, "the handler panicked", None);
            self.jobs.iter().for_each(tell);
        }
    }
}

/// The outputs, unless more of them would come back in than the handler has declared.
fn may_send_back(shared: &Shared, job: &Job, outputs: Outputs) -> Result<Outputs, Failure> {
    let Some(loopback) = &shared.loopback else { return Ok(outputs) };
    let back = match &outputs {
        Outputs::None => 0,
        Outputs::Same => usize::from(loopback.takes(job.event.ty())),
        Outputs::Events(events) => events.iter().filter(|event| loopback.takes(event.ty())).count(),
    };
    let declared = shared.handlers[job.handler].config.loopback;
    if back <= declared {
        return Ok(outputs);
    }
    let error = format!("{back} events would come back in, and its handler declares {declared}");
    // The handler has done what it does, and does it again in the next attempt.
    Err(Failure::new(FailureKind::LoopbackFull, error).with_effect(Effect::Unknown))
}

/// What a handler settles the event with, where it does that itself. The same one for each attempt.
fn settlement(job: &mut Job, entry: &shared::Handler) -> Option<Settlement> {
    if entry.config.ack != AckWhen::Manual {
        return None;
    }
    let ack = &job.ack;
    Some(job.manual.get_or_insert_with(|| Settlement::new(ack.child())).clone())
}

/// The handler has handled an event.
fn worked(entry: &shared::Handler) {
    if entry.outage.succeeded() {
        tracing::info!(handler = &*entry.name, "the handler works again");
    }
}

/// What an event waits for whose handler is in outage.
fn waits_for_handler(entry: &shared::Handler, wait: Duration) -> BusError {
    waiting(entry, "the handler is in outage", wait)
}

/// What an event waits for whose handler is paused.
fn paused(entry: &shared::Handler) -> BusError {
    waiting(entry, "the handler is paused", PAUSED)
}

/// No attempt was made.
fn waiting(entry: &shared::Handler, why: &str, wait: Duration) -> BusError {
    let failure = Failure::new(FailureKind::Released, why);
    let backoff = entry.retry().backoff;
    BusError { failure, waits: Some(wait), backoff, failures: 0, is_last: false }
}

/// How long an event waits before its last attempt, a part at a time: inputs may end meanwhile, and
/// then nobody else comes.
fn held(shared: &Shared, job: &Job) -> Option<Duration> {
    let left = job.tries.held_for(|| shared.inputs.reading() > 0)?;
    Some(left.min(HELD))
}

/// Awaits an attempt as long as its pool lets it take.
async fn within<T>(
    limit: Option<Duration>,
    attempt: impl Future<Output = T>,
) -> Result<T, Failure> {
    let Some(limit) = limit else { return Ok(attempt.await) };
    let late = |_| {
        let error = format!("the attempt took longer than {limit:?}, which its pool allows");
        Failure::new(FailureKind::Timeout, error)
    };
    tokio::time::timeout(limit, attempt).await.map_err(late)
}

/// The handler in this place, built when it is first needed.
fn built<'a>(
    place: &'a mut Option<Box<dyn handler::Handler>>,
    entry: &shared::Handler,
    slot: usize,
) -> Result<&'a mut Box<dyn handler::Handler>, Failure> {
    match place {
        Some(handler) => Ok(handler),
        None => match entry.config.factory.build(slot) {
            Ok(handler) => Ok(place.insert(handler)),
            Err(error) => Err(Failure::new(FailureKind::Pause, error).with_effect(Effect::None)),
        },
    }
}

/// Counts an attempt that is about to be made.
fn begin(job: &mut Job, entry: &shared::Handler, pool: &PoolSettings, slot: usize) -> Attempt {
    job.attempts = job.attempts.saturating_add(1);
    if job.attempts > 1 {
        pool.further_attempts.fetch_add(1, Ordering::Relaxed);
    } else if entry.config.factory.watches_settlement() {
        job.event = job.event.clone().with_local(job.ack.watch());
    }
    Attempt { number: job.attempts, pool: pool.name, handler: entry.name, worker: slot }
}

/// Judges a failure: is it the event's, or is its handler in outage?
fn failed(
    shared: &Shared,
    pool: &PoolSettings,
    job: &mut Job,
    failure: Failure,
    probe: Probe<'_>,
) -> BusError {
    let entry = &shared.handlers[job.handler];
    let (retry, now) = (entry.retry(), Instant::now());
    let (streak, forgiven) = entry.outage.streak(job.tries.streak());
    if forgiven {
        job.tries.begin_anew();
    }
    let mut blame = Blame::Event;
    match failure.kind {
        FailureKind::Reject | FailureKind::Park => {
            entry.outage.succeeded();
        }
        // Says nothing of the handler's health: a probe that ends so gives way to another.
        FailureKind::Crash | FailureKind::LoopbackFull => {}
        FailureKind::Fatal => {
            let why = || format!("stopped by the handler {:?}: {}", entry.name, failure.error);
            shared.inputs.at(job.origin.input).stop.stop(why);
        }
        FailureKind::Released => take_back(job, pool),
        _ => blame = blamed(shared, job, &failure, probe, now),
    }
    let waits = match blame {
        Blame::Event | Blame::Unknown(_) => None,
        Blame::Outage | Blame::NewOutage => Some(OUTAGE),
    };
    if let Blame::Unknown(undecided) = blame {
        job.tries.hold(now + undecided);
    }
    if failure.kind != FailureKind::Released {
        shared.tell_failure(job, &failure.error, Some(failure.kind));
        pool.failed_attempts.fetch_add(1, Ordering::Relaxed);
        if waits.is_none() {
            job.tries.failed(streak, now);
        }
    }
    if failure.effect == Effect::Unknown {
        shared.ledger.unanswered.fetch_add(1, Ordering::Relaxed);
    }
    if failure.kind == FailureKind::Pause && failure.effect == Effect::None {
        // Nobody has had the event: the next attempt is the same one again.
        take_back(job, pool);
    }
    let failures = job.tries.failures();
    let is_last = failures >= retry.attempts || job.tries.is_over(retry.total, now);
    BusError { failure, waits, backoff: retry.backoff, failures, is_last }
}

/// Does not count an attempt that [`begin`] has counted.
fn take_back(job: &mut Job, pool: &PoolSettings) {
    if job.attempts > 1 {
        pool.further_attempts.fetch_sub(1, Ordering::Relaxed);
    }
    job.attempts = job.attempts.saturating_sub(1);
}

/// Reports a failure to the handler's health. In an outage, nothing that its event has failed of
/// counts.
fn blamed(
    shared: &Shared,
    job: &mut Job,
    failure: &Failure,
    probe: Probe<'_>,
    now: Instant,
) -> Blame {
    let entry = &shared.handlers[job.handler];
    let left = job.tries.left(entry.retry(), now);
    let failing = Failing {
        event: (job.origin.input, job.origin.position),
        refused: failure.kind == FailureKind::Pause,
        error: &failure.error,
        probe: probe.done(),
        left,
        since: job.tries.streak(),
        others_may_come: shared.inputs.reading() > 0,
    };
    let blame = entry.outage.failed(failing, now);
    if blame == Blame::NewOutage {
        let (handler, error) = (&*entry.name, &*excerpt(&failure.error));
        tracing::error!(
            handler,
            error,
            "the handler is in outage: its events wait, one at a time probes"
        );
    }
    if matches!(blame, Blame::NewOutage | Blame::Outage) {
        job.tries.begin_anew();
    }
    blame
}

/// Hands what a handler produced to the outputs, in order, and confirms the event's own part.
async fn emit(shared: &Shared, to: &mut outputs::View, job: Job, outputs: Outputs) {
    let Job { event, handler, line, origin, attempts: attempt, mut ack, produced, .. } = job;
    let mut leaving =
        Leaving { shared, to, attempt, taken_at: origin.taken_at, reserved: job.reserved };
    let entry = &shared.handlers[handler];
    let at_once = entry.config.ack == AckWhen::OnSuccess;
    if at_once {
        shared.leaves(line.as_ref(), origin.number);
        let outputs = Ack::new(OutputsTicket(shared.ledger.clone()));
        std::mem::replace(&mut ack, outputs).confirm();
    }
    let pool = shared.pools[entry.pool].name;
    match (outputs, produced) {
        (Outputs::None, _) => {}
        (Outputs::Same, Some(produced)) => produced.add([event]),
        (Outputs::Events(events), Some(produced)) => {
            produced.add(events.into_iter().map(|made| made.caused_by(&event)));
        }
        (Outputs::Same, None) => leaving.pass_on(pool, event, &ack).await,
        (Outputs::Events(events), None) => {
            for made in events {
                leaving.pass_on(pool, made.caused_by(&event), &ack).await;
            }
        }
    }
    if !at_once {
        shared.leaves(line.as_ref(), origin.number);
    }
    ack.confirm();
}

/// The outputs of one event, on their way.
struct Leaving<'a> {
    shared: &'a Shared,
    /// The outputs, as its worker knows them.
    to: &'a mut outputs::View,
    attempt: u32,
    taken_at: Instant,
    /// Room on the way back.
    reserved: Option<Reserved>,
}

impl Leaving<'_> {
    /// Back in, or to the outputs that take it.
    async fn pass_on(&mut self, pool: Name, event: Event, ack: &Ack) {
        if let Some(loopback) = &self.shared.loopback
            && loopback.takes(event.ty())
        {
            // As many were reserved as the handler declares, and it has made no more.
            let Some(reserved) = self.reserved.as_mut().and_then(Reserved::split_one) else {
                return ack.child().refuse(Refusal::NotStored);
            };
            let (ack, taken_at) = (ack.child(), self.taken_at);
            return loopback.send(Returning { event, ack, reserved, taken_at });
        }
        self.hand_over(pool, event, ack).await;
    }

    /// To the outputs that take it. Where one was removed just now, it is looked anew which do.
    async fn hand_over(&mut self, pool: Name, event: Event, ack: &Ack) {
        let Self { shared, to, attempt, .. } = self;
        let leaves = |event| Outgoing { event, pool, attempt: *attempt, ack: ack.child() };
        loop {
            to.refresh(&shared.outputs);
            if !shared.all_outputs
                && let Some(output) = to.plain(event.ty())
            {
                match output.enter() {
                    Some(inside) => return hand_to(inside, leaves(event)).await,
                    None => continue,
                }
            }
            match to.taking(&event, shared.all_outputs) {
                Ok(Some(taking)) => {
                    for output in taking {
                        hand_to(output, leaves(event.clone())).await;
                    }
                    return;
                }
                Ok(None) => {}
                Err((output, panic)) => {
                    tracing::error!(output, panic, "its matcher panicked; the event is refused");
                    return ack.child().refuse(Refusal::NotStored);
                }
            }
        }
    }
}

async fn hand_to(output: Inside<'_>, outgoing: Outgoing) {
    if let Err(outgoing) = output.sink().try_accept(outgoing) {
        output.sink().accept(outgoing).await;
    }
}

/// The right to probe a handler in outage, where the attempt has it. Dropped, whatever ended the attempt (a panic, a
/// stop, an answer that says nothing), it passes to another event.
struct Probe<'a>(Option<&'a shared::Handler>);

impl Probe<'_> {
    /// The attempt has failed, and says so itself. True where it was a probe.
    fn done(mut self) -> bool {
        self.0.take().is_some()
    }
}

impl Drop for Probe<'_> {
    fn drop(&mut self) {
        if let Some(handler) = self.0 {
            handler.outage.probe_cancelled();
        }
    }
}

impl BusWorker {
    async fn emit(&mut self, job: Job, made: Outputs) {
        let Self { shared, outputs, .. } = self;
        emit(shared, outputs, job, made).await;
    }

    async fn receive_all(
        &mut self,
        delivery: &mut Delivery<Job, (), BusError>,
    ) -> Result<Answer<()>, BusError> {
        let jobs = delivery.messages_mut().collect();
        let mut results = self.attempt_all(jobs).await.into_iter();
        let Self { shared, outputs: known, .. } = self;
        let first = match results.next() {
            Some(Ok(outputs)) => {
                emit(shared, known, delivery.take(), outputs).await;
                Ok(Answer::Reply(()))
            }
            Some(Err(error)) => Err(error),
            None => Ok(Answer::Deferred),
        };
        for (companion, result) in delivery.batch_items().iter_mut().zip(results) {
            let settled = match result {
                Ok(outputs) => {
                    emit(shared, known, companion.delivery().take(), outputs).await;
                    Ok(())
                }
                Err(error) => Err(error),
            };
            companion.settle(settled);
        }
        first
    }
}

impl Actor for BusWorker {
    type Message = Job;
    type Reply = ();
    type Error = BusError;

    /// Not used: [`receive`](Actor::receive) leaves the job in place until it is handled.
    async fn handle(&mut self, mut job: Job, _cx: &mut Context<Self>) -> Result<(), BusError> {
        let outputs = self.attempt(&mut job).await?;
        self.emit(job, outputs).await;
        Ok(())
    }

    async fn receive(
        &mut self,
        delivery: &mut Delivery<Job, (), BusError>,
        _cx: &mut Context<Self>,
    ) -> Result<Answer<()>, BusError> {
        if !delivery.batch_items().is_empty() {
            return self.receive_all(delivery).await;
        }
        let Some(job) = delivery.message_mut() else { return Ok(Answer::Deferred) };
        let outputs = self.attempt(job).await?;
        self.emit(delivery.take(), outputs).await;
        Ok(Answer::Reply(()))
    }

    async fn stopped(&mut self, _reason: &ExitReason) {
        for handler in self.handlers.iter_mut().flatten() {
            if tokio::time::timeout(PATIENCE + OVERTIME, handler.stop(PATIENCE)).await.is_err() {
                let pool = &*self.shared.pools[self.pool].name;
                tracing::warn!(pool, worker = self.slot, "a handler did not stop; it is dropped");
            }
        }
    }
}

/// What follows from a failed attempt (P18, D05, D09).
pub(crate) fn policy(attempt: FailedAttempt<'_, BusError>, chance: f64) -> FailureAction {
    let error = match attempt.cause {
        Cause::Error(error) => error,
        _ => return row(Retry::default()).action(attempt.failures, chance),
    };
    if let Some(after) = error.waits {
        // Spread, so that what waits does not come back in one instant.
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
        FailureKind::Reject | FailureKind::Crash => FailureAction::DeadLetter,
        FailureKind::Park => FailureAction::ParkKey,
        FailureKind::Released => FailureAction::Retry { after: RELEASED, counted: false },
        FailureKind::Retry { after: Some(asked) } => {
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

/// A job has failed for good, and parks its key.
pub(crate) fn parks(
    shared: &Shared,
    job: Option<&mut Job>,
    error: Option<&BusError>,
    panic: Option<&str>,
) {
    // Otherwise it was dropped in the middle of its outputs, which is told as that.
    let Some(job) = job else { return };
    match (error, panic) {
        (Some(error), _) => parked::parks(shared, job, &error.failure.error),
        (None, panic) => {
            let error = format!("the handler panicked: {}", panic.unwrap_or_default());
            parked::parks(shared, job, &error);
        }
    }
}

/// Stores what the pool has given up.
pub(crate) fn bury(shared: &Shared, letter: DeadLetter<Job, BusError>) {
    // Without a message, the job was dropped in the middle of its outputs, and its settlement with it: by a stop, or by
    // an output that panicked.
    let Some(job) = letter.message else {
        if let Some(panic) = letter.panic {
            tracing::error!(panic, "an output panicked; the event that it was given is refused");
        }
        return;
    };
    let error = match (letter.error, letter.panic) {
        (Some(error), _) => error.failure,
        (None, Some(panic)) => Failure::reject(format!("the handler panicked: {panic}")),
        (None, None) => Failure::reject("no worker was left to handle it"),
    };
    let reason = match (letter.reason, error.kind) {
        (DeadLetterReason::Poisoned, _) | (_, FailureKind::Crash) => Reason::Poisoned,
        (DeadLetterReason::Failed, FailureKind::Reject | FailureKind::Park) => Reason::Rejected,
        (DeadLetterReason::NoWorkers, _) => Reason::NoWorkers,
        _ => Reason::RetriesExhausted,
    };
    shared.give_up(job, reason, error.error);
}
