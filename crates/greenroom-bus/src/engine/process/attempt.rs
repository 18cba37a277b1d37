//! Attempts: an event, or several of one line, in the hands of a handler.

use std::{
    future::Future,
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use greenroom_config::plural;

use super::{
    attempt_figures::WorkerFigures,
    circuit::Probe,
    entries::{HandlerEntry, PoolSettings},
    gates::{self, IN_OUTAGE},
    job::{BusError, PoolJob},
    judge::{OUTAGE, failed, given_up, released, tell_failure, waiting},
    loopback::{Loopback, has_room},
    shown::ShownEvent,
    under_way::{AttemptUnderWay, stays_unrecorded},
};
use crate::{
    engine::shared::Shared,
    event::Event,
    handler::{self, Attempt, Effect, Failure, FailureKind, Handling, Outputs, Settlement},
    router::AckWhen,
};

/// How long a handler may take to close its resources.
const PATIENCE: Duration = Duration::from_secs(5);

/// Added to the limit before a handler that exceeds it is dropped.
const OVERTIME: Duration = Duration::from_secs(1);

/// The handlers of one worker, and the state that they need for an attempt.
pub(crate) struct Attempts {
    shared: Arc<Shared>,
    pool: usize,
    slot: usize,
    /// By the handler's place; built when first needed.
    handlers: Vec<Option<BuiltHandler>>,
    /// The event whose handler waits for something.
    in_hand: Arc<ShownEvent>,
}

/// A handler of this worker, and the outcomes of its attempts.
struct BuiltHandler {
    handler: Box<dyn handler::Handler>,
    figures: WorkerFigures,
}

impl Attempts {
    pub(crate) fn new(shared: Arc<Shared>, pool: usize, slot: usize) -> Self {
        let handlers = shared.process.handlers.iter().map(|_| None).collect();
        let in_hand = shared.process.pools[pool].in_hand.of_worker(slot);
        Self { shared, pool, slot, handlers, in_hand }
    }

    /// Like `attempt`, for several jobs, with a result for each. Jobs of one handler are passed to
    /// it together.
    pub(crate) async fn attempt_all(
        &mut self,
        mut jobs: Vec<&mut PoolJob>,
    ) -> Vec<Result<Outputs, BusError>> {
        let mut results = Vec::with_capacity(jobs.len());
        for of_handler in jobs.chunk_by_mut(|one, next| one.handler() == next.handler()) {
            let config = &self.shared.process.handlers[of_handler[0].handler()].config;
            let any_held = of_handler.iter().any(|job| gates::held(&self.shared, job).is_some());
            let alone = any_held || config.ack == AckWhen::Manual || config.loopback > 0;
            match of_handler {
                several if alone => results.extend(self.attempt_each(several).await),
                [job] => results.push(self.attempt(job).await),
                several => results.extend(self.attempt_together(several).await),
            }
        }
        results
    }

    /// One after the other. After a failure or a wait, the remaining jobs are not begun: they would
    /// leave their line out of turn.
    async fn attempt_each(&mut self, jobs: &mut [&mut PoolJob]) -> Vec<Result<Outputs, BusError>> {
        let (mut results, mut any_failed) = (Vec::with_capacity(jobs.len()), false);
        for job in jobs {
            let result = match any_failed && job.line.is_some() {
                true => Err(released(&self.shared.process.handlers[job.handler()], job)),
                false => self.attempt(job).await,
            };
            any_failed |= result.is_err();
            results.push(result);
        }
        results
    }

    async fn attempt_together(
        &mut self,
        jobs: &mut [&mut PoolJob],
    ) -> Vec<Result<Outputs, BusError>> {
        let Self { shared, handlers, pool, slot, .. } = self;
        let place = jobs[0].handler();
        let (entry, pool) = (&shared.process.handlers[place], &shared.process.pools[*pool]);
        gates::wait(shared, pool, entry, jobs).await;
        if jobs.iter().any(|job| gates::is_given_up(shared, job)) {
            return self.attempt_each(jobs).await;
        }
        // One event probes; the others wait for its outcome. It asks again by itself.
        let probes = match gates::admit(shared, entry, jobs[0]) {
            Err((why, wait)) => {
                return jobs.iter().map(|job| Err(waiting(entry, job, why, wait))).collect();
            }
            Ok(probe) => probe.0.is_some(),
        };
        if probes {
            let (first, others) = jobs.split_at_mut(1);
            let mut results = vec![self.attempt(first[0]).await];
            let entry = &self.shared.process.handlers[place];
            results.extend(others.iter().map(|job| Err(waiting(entry, job, IN_OUTAGE, OUTAGE))));
            return results;
        }
        let attempts: Vec<Attempt> =
            jobs.iter_mut().map(|job| begin(shared, job, pool, *slot)).collect();
        let mut recorded = Vec::new();
        if shared.process.recorder.is_some() {
            let attempts = jobs.iter_mut().zip(&attempts);
            recorded
                .extend(attempts.map(|(job, attempt)| AttemptUnderWay::new(shared, job, attempt)));
        }
        let made = match built(&mut handlers[place], entry, *slot) {
            Err(failure) => jobs.iter().map(|_| Err(failure.clone())).collect(),
            Ok(BuiltHandler { handler, figures }) => {
                let began = figures.begin();
                let told: Vec<&PoolJob> = jobs.iter().map(|job| &**job).collect();
                let in_hand = AttemptsInHand { shared, jobs: &told };
                let under_way =
                    recorded.iter().map(Option::as_deref).chain(std::iter::repeat(None));
                let seen = jobs.iter().zip(under_way).map(|(job, recorded)| seen(recorded, job));
                let events: Vec<_> = seen.zip(attempts).collect();
                let made = within(pool.timeout, handler.handle_all(&events)).await;
                in_hand.answered();
                let results = match made {
                    Ok(results) => results,
                    Err(late) => jobs.iter().map(|_| Err(late.clone())).collect(),
                };
                figures.all_ended(began, &results);
                results
            }
        };
        let missing = || Err(Failure::new(FailureKind::Released, "it was not attempted"));
        let results = made.into_iter().chain(std::iter::repeat_with(missing));
        let recorded = recorded.into_iter().chain(std::iter::repeat_with(|| None));
        let handler = handlers[place].as_ref().map(|built| &*built.handler);
        let results = results.enumerate();
        let judged = jobs.iter_mut().zip(recorded).zip(results).map(|((job, recorded), result)| {
            let (place, result) = result;
            let result = match &shared.loopback {
                Some(back) => result.and_then(|made| may_send_back(shared, back, job, made)),
                None => result,
            };
            let result = ended(shared, job, recorded, result);
            note_health(entry, job, &result, handler, place);
            result.map_err(|failure| failed(shared, pool, job, failure, Probe(None)))
        });
        judged.collect()
    }

    pub(crate) async fn attempt(&mut self, job: &mut PoolJob) -> Result<Outputs, BusError> {
        // Borrowed apart, so that no shared count is written for each event.
        let Self { shared, handlers, pool, slot, in_hand: shown } = self;
        let (entry, pool) = (&shared.process.handlers[job.handler()], &shared.process.pools[*pool]);
        gates::wait(shared, pool, entry, std::slice::from_ref(&job)).await;
        if gates::is_given_up(shared, job) {
            return Err(given_up(entry, job));
        }
        let probe = gates::admit(shared, entry, job)
            .map_err(|(why, wait)| waiting(entry, job, why, wait))?;
        let attempt = begin(shared, job, pool, *slot);
        if !has_room(
            job.present_extras().and_then(|extras| extras.reserved.as_mut()),
            entry.config.loopback,
        ) {
            let error = "there is no room on the way back for what its handler may send there";
            let failure = Failure::new(FailureKind::LoopbackFull, error).with_effect(Effect::None);
            return Err(failed(shared, pool, job, failure, probe));
        }
        let recorded = AttemptUnderWay::new(shared, job, &attempt);
        let result = match built(&mut handlers[job.handler()], entry, *slot) {
            Err(failure) => Err(failure),
            Ok(BuiltHandler { handler, figures }) => {
                let settlement = settlement(job, entry);
                let job = &*job;
                let in_hand = AttemptsInHand { shared, jobs: &[job] };
                let watched = shared.process.audit.as_ref().zip(job.line.as_ref());
                let _audited = watched.and_then(|(audit, line)| audit.begin(line, job.event.id()));
                let event = seen(recorded.as_deref(), job);
                let began = figures.begin();
                let handling = match settlement {
                    None => handler.handle(event, &attempt),
                    Some(settlement) => handler.handle_and_settle(event, &attempt, settlement),
                };
                let result = match handling {
                    Handling::Done(result) => result,
                    Handling::Later(result) => {
                        let result = shown.while_waiting(&job.event, within(pool.timeout, result));
                        result.await.and_then(|done| done)
                    }
                };
                in_hand.answered();
                figures.ended(began, &result);
                result
            }
        };
        let result = match &shared.loopback {
            Some(back) => result.and_then(|made| may_send_back(shared, back, job, made)),
            None => result,
        };
        let result = ended(shared, job, recorded, result);
        let handler = handlers[job.handler()].as_ref().map(|built| &*built.handler);
        note_health(entry, job, &result, handler, 0);
        // A probe that was answered in the handler's place is given back here: another one is made.
        result.map_err(|failure| failed(shared, pool, job, failure, probe))
    }

    /// Lets the handlers close their resources.
    pub(crate) async fn stop(&mut self) {
        for BuiltHandler { handler, .. } in self.handlers.iter_mut().flatten() {
            if tokio::time::timeout(PATIENCE + OVERTIME, handler.stop(PATIENCE)).await.is_err() {
                let pool = &*self.shared.process.pools[self.pool].name;
                tracing::warn!(pool, worker = self.slot, "a handler did not stop; it is dropped");
            }
        }
    }
}

/// Events that a handler has in hand. If it is dropped before the handler has answered (it panics,
/// or a stop drops it), the outcome is unknown. That is counted, and a panic is reported here,
/// because the pool, which catches it, has no event to report.
struct AttemptsInHand<'a> {
    shared: &'a Shared,
    jobs: &'a [&'a PoolJob],
}

impl AttemptsInHand<'_> {
    /// The handler has answered for them.
    fn answered(self) {
        std::mem::forget(self);
    }
}

impl Drop for AttemptsInHand<'_> {
    fn drop(&mut self) {
        self.shared.ledger.unanswered.fetch_add(self.jobs.len() as u64, Ordering::Relaxed);
        if std::thread::panicking() {
            let tell =
                |job: &&PoolJob| tell_failure(self.shared, job, "the handler panicked", None);
            self.jobs.iter().for_each(tell);
        }
    }
}

/// The event as its handler sees it.
fn seen<'a>(recorded: Option<&'a AttemptUnderWay<'_>>, job: &'a PoolJob) -> &'a Event {
    recorded.map_or(&job.event, AttemptUnderWay::told)
}

/// Records the end of an attempt, if its delivery is recorded. Hidden parts of the event are
/// removed from its error first: from now on, it may be shown in many places.
fn ended(
    shared: &Shared,
    job: &mut PoolJob,
    recorded: Option<Box<AttemptUnderWay<'_>>>,
    result: handler::HandlerResult,
) -> handler::HandlerResult {
    let result = result.map_err(|failure| {
        let error = shared.egress.dead_letters.store.redact(&job.event, failure.error);
        Failure { error, ..failure }
    });
    match recorded {
        Some(under_way) => under_way.ended(result.as_ref().map(drop), job),
        None if result.is_err() => stays_unrecorded(shared, job),
        None => {}
    }
    result
}

/// The outputs, unless more of them would come back in than the handler has declared.
fn may_send_back(
    shared: &Shared,
    loopback: &Loopback,
    job: &PoolJob,
    outputs: Outputs,
) -> Result<Outputs, Failure> {
    let back = match &outputs {
        Outputs::None => 0,
        Outputs::Same => usize::from(loopback.takes(job.event.ty())),
        Outputs::Events(events) => events.iter().filter(|event| loopback.takes(event.ty())).count(),
    };
    let declared = shared.process.handlers[job.handler()].config.loopback;
    if back <= declared {
        return Ok(outputs);
    }
    let back = plural(back, "event");
    let error = format!("{back} would come back in, and its handler declares {declared}");
    // The handler has run, and will run again in the next attempt.
    Err(Failure::new(FailureKind::LoopbackFull, error).with_effect(Effect::Unknown))
}

/// The settlement handle of a handler that settles the event itself. The same one for each attempt.
fn settlement(job: &mut PoolJob, entry: &HandlerEntry) -> Option<Settlement> {
    if entry.config.ack != AckWhen::Manual {
        return None;
    }
    if let Some(known) = job.extras().and_then(|extras| extras.manual.clone()) {
        return Some(known);
    }
    let settlement = Settlement::new(job.ack.child());
    Some(job.extras_mut().manual.insert(settlement).clone())
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
    place: &'a mut Option<BuiltHandler>,
    entry: &HandlerEntry,
    slot: usize,
) -> Result<&'a mut BuiltHandler, Failure> {
    match place {
        Some(built) => Ok(built),
        None => match entry.config.factory.build(slot) {
            Ok(handler) => {
                let figures = entry.attempts.of_worker(slot);
                Ok(place.insert(BuiltHandler { handler, figures }))
            }
            Err(error) => Err(Failure::new(FailureKind::Broken, error).with_effect(Effect::None)),
        },
    }
}

/// Counts an attempt that is about to be made.
fn begin(shared: &Shared, job: &mut PoolJob, pool: &PoolSettings, slot: usize) -> Attempt {
    let entry = &shared.process.handlers[job.handler()];
    job.attempts = job.attempts.saturating_add(1);
    if let Some(room) = job.room() {
        room.leaves();
    }
    if job.attempts > 1 {
        pool.further_attempts.fetch_add(1, Ordering::Relaxed);
    } else if entry.config.factory.watches_settlement() {
        job.event = job.event.clone().with_local(job.ack.watch());
    }
    let fences = &shared.inputs.revocations.fences;
    let fence = entry.config.factory.sends_fence().then(|| fences.get(job.origin.assigned));
    Attempt {
        number: job.attempts,
        pool: pool.name,
        handler: entry.name,
        worker: slot,
        fence,
        share: job.share().cloned(),
    }
}

/// Notes that a handler works: it gave the result at this place itself, and reached the other side.
fn note_health(
    entry: &HandlerEntry,
    job: &PoolJob,
    result: &handler::HandlerResult,
    handler: Option<&dyn handler::Handler>,
    place: usize,
) {
    if handler::shows_that_it_works(result)
        && entry.circuits.is_troubled()
        && handler.is_some_and(|handler| handler.gave_result(place))
        && entry.circuits.succeeded(job)
    {
        let (handler, share) = (&*entry.name, entry.circuits.named(job));
        tracing::info!(handler, share, "the handler works again");
    }
}
