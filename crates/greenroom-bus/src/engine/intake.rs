//! From a source to the pools: events are routed, given their settlement and their place in line.
//!
//! A pool that is full does not stop the others: its events wait beside it, in order, up to a bound, and only then is
//! the source asked for nothing more.

use std::{
    future::poll_fn,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    task::Poll,
};

use greenroom::{Address, TrySendError};
use tokio::{sync::watch, time::Instant};

use super::{
    config::{NoHandler, OnFull},
    ledger::{Batch, Ticket},
    order_audit::Line,
    phase::Phase,
    shared::{Given, Job, Origin, Shared},
    waiting::{Room, Waiting, gone},
    worker::BusError,
};
use crate::{
    BoxFuture,
    dead_letter::Reason,
    event::Event,
    router::Route,
    settlement::{Ack, Outcome},
    source::{Pull, Source, SourceError, Taken},
};

/// Events that may wait beside full pools before their source pauses (R05).
const RUN_AHEAD: usize = 10_000;

/// Events routed before they are handed to the pools, and other tasks get a turn. Waking workers is paid once for all of
/// them; the workers that are woken sit behind this task on its thread.
const EVENTS_PER_TURN: usize = 256;

pub(crate) type JobAddress = Address<Job, (), BusError>;

pub(crate) struct Intake {
    shared: Arc<Shared>,
    /// The place of the input.
    input: u32,
    source: Box<dyn Source>,
    pools: Vec<JobAddress>,
    /// Events that wait beside each pool, in order.
    waiting: Vec<Waiting>,
    /// The number of the last event taken.
    number: u64,
    /// The batch being routed.
    batch: Arc<Batch>,
    /// The part of the input that has been read, in millionths; shown as progress.
    progress: Arc<AtomicU64>,
    reading: Reading,
}

/// Counts an input as one that may still give events, until it is dropped: also by a panic of its source.
struct Reading(Arc<Shared>);

impl Drop for Reading {
    fn drop(&mut self) {
        self.0.reading.fetch_sub(1, Ordering::AcqRel);
    }
}

impl Intake {
    pub(crate) fn new(
        shared: Arc<Shared>,
        input: u32,
        source: Box<dyn Source>,
        pools: Vec<JobAddress>,
        progress: Arc<AtomicU64>,
    ) -> Self {
        let waiting = pools.iter().map(|_| Waiting::default()).collect();
        shared.reading.fetch_add(1, Ordering::AcqRel);
        let reading = Reading(shared.clone());
        let batch = Arc::new(Batch { ledger: shared.ledger.clone(), taken_at: Instant::now() });
        Self { shared, input, source, pools, waiting, number: 0, batch, progress, reading }
    }

    /// Runs until the source has ended and nothing waits, or until the engine stops its inputs. What still waits then is
    /// handed to the pools while they drain.
    ///
    /// # Errors
    /// The source could not go on.
    pub(crate) async fn run(
        mut self,
        mut phase: watch::Receiver<Phase>,
    ) -> Result<(), SourceError> {
        let ended = self.read(&mut phase).await;
        drop(self.source);
        drop(self.reading);
        while self.waiting.iter().any(|waiting| !waiting.is_empty())
            && *phase.borrow_and_update() != Phase::Now
        {
            tokio::select! {
                biased;
                _ = phase.changed() => {}
                room = room(&self.shared, &self.pools, &mut self.waiting) => {
                    hand_over(&self.shared, &self.pools, room, &mut self.waiting);
                    feed(&self.shared, &self.pools, &mut self.waiting);
                }
            }
        }
        ended
    }

    /// Takes turns between the source and the pools beside which events wait, so that neither keeps the other waiting.
    async fn read(&mut self, phase: &mut watch::Receiver<Phase>) -> Result<(), SourceError> {
        let mut batch = Vec::new();
        while *phase.borrow_and_update() == Phase::Run {
            let reads = self.held_back() < RUN_AHEAD;
            let pulled = tokio::select! {
                biased;
                _ = phase.changed() => continue,
                pulled = pull(&self.shared, &mut self.source, &mut batch), if reads => Some(pulled),
                room = room(&self.shared, &self.pools, &mut self.waiting) => {
                    hand_over(&self.shared, &self.pools, room, &mut self.waiting);
                    None
                }
            };
            match pulled {
                Some(_) => self.route(&mut batch).await,
                // The next pull returns again what this one, dropped, has put here.
                None => batch.clear(),
            }
            feed(&self.shared, &self.pools, &mut self.waiting);
            self.show_progress();
            match pulled {
                Some(Ok(Pull::End)) => break,
                Some(Err(error)) => return Err(error),
                Some(Ok(Pull::More)) | None => {}
            }
        }
        Ok(())
    }

    fn held_back(&self) -> usize {
        self.waiting.iter().map(Waiting::len).sum()
    }

    fn show_progress(&self) {
        if let Some(part) = self.source.progress() {
            self.progress.store((part.clamp(0.0, 1.0) * 1e6) as u64, Ordering::Relaxed);
        }
    }

    async fn route(&mut self, batch: &mut Vec<Taken>) {
        let taken_at = Instant::now();
        let count = batch.len() as u64;
        self.shared.ledger.taken.fetch_add(count, Ordering::AcqRel);
        if batch.is_empty() {
            greenroom::step_aside().await;
        }
        let mut rest = batch.drain(..).peekable();
        while rest.peek().is_some() {
            self.batch = Arc::new(Batch { ledger: self.shared.ledger.clone(), taken_at });
            for taken in rest.by_ref().take(EVENTS_PER_TURN) {
                self.number += 1;
                let (input, position, number) = (self.input, taken.position, self.number);
                self.route_one(taken, Origin { input, position, number, taken_at });
            }
            feed(&self.shared, &self.pools, &mut self.waiting);
            greenroom::step_aside().await;
        }
    }

    fn route_one(&mut self, taken: Taken, origin: Origin) {
        let event = match taken.event {
            Ok(event) => event,
            Err(malformed) => {
                let given = Given {
                    event: None,
                    raw: Some(malformed.raw),
                    reason: Reason::Malformed,
                    error: malformed.reason,
                    attempts: 0,
                    handler: None,
                };
                return self.shared.dead_letter(origin, self.settlement(None), given);
            }
        };
        match self.shared.router.route(&event) {
            Route::One(handler) => self.route_to(event, handler, origin, None),
            Route::Several(handlers) => {
                let whole = self.settlement(None);
                for handler in handlers {
                    self.route_to(event.clone(), handler, origin, Some(&whole));
                }
                whole.confirm();
            }
            Route::NoHandler => {
                let error = format!("no handler is named for the type {:?}", event.ty());
                self.unhandled(event, origin, self.shared.no_handler, Reason::NoHandler, error);
            }
            Route::Rejected => {
                let (ty, option) = (event.ty(), self.shared.handler_rejected);
                let error = format!("no matcher of the handlers for the type {ty:?} takes it");
                self.unhandled(event, origin, option, Reason::HandlerRejected, error);
            }
            Route::Panicked { handler, panic } => {
                let name = &self.shared.handlers[handler].name;
                let error = format!("the matcher of the handler {name:?} panicked: {panic}");
                let job = Job::new(event, handler, None, origin, self.settlement(None));
                self.shared.give_up(job, Reason::Rejected, error);
            }
        }
    }

    /// To one handler: alone, or as one of several, with a part of the whole settlement.
    fn route_to(&mut self, event: Event, handler: usize, origin: Origin, whole: Option<&Ack>) {
        let line = self.shared.line(&event, handler, self.input);
        let of_line = |line: Option<&Line>| match whole {
            Some(whole) => self.shared.part(whole.child(), line),
            None => self.settlement(line.cloned()),
        };
        match line {
            Ok(line) => {
                let ack = of_line(line.as_ref());
                self.admit(Job::new(event, handler, line, origin, ack));
            }
            Err(error) => {
                let job = Job::new(event, handler, None, origin, of_line(None));
                self.shared.give_up(job, Reason::KeyMissing, error);
            }
        }
    }

    fn settlement(&self, line: Option<Line>) -> Ack {
        if let Some(line) = &line {
            self.shared.ledger.audit.taken(line);
        }
        Ack::new(Ticket { batch: self.batch.clone(), line })
    }

    fn unhandled(
        &self,
        event: Event,
        origin: Origin,
        option: NoHandler,
        reason: Reason,
        error: String,
    ) {
        let ack = self.settlement(None);
        match option {
            NoHandler::Ignore => {
                ack.set_outcome(Outcome::Ignored);
                ack.confirm();
            }
            NoHandler::Refuse => ack.refuse(),
            NoHandler::DeadLetter => {
                let (raw, handler) = (None, None);
                let given = Given { event: Some(event), raw, reason, error, attempts: 0, handler };
                self.shared.dead_letter(origin, ack, given);
            }
        }
    }

    fn admit(&mut self, job: Job) {
        let pool = self.shared.handlers[job.handler].pool;
        // Events that may wait are handed over together, at the end of the turn.
        if self.shared.pools[pool].on_full == OnFull::Pause {
            self.waiting[pool].push(job);
            return;
        }
        match self.pools[pool].try_send(job) {
            Ok(()) => {}
            Err(TrySendError::Full(job)) => self.full(pool, job, "is full"),
            Err(TrySendError::KeyFull(job)) => {
                self.full(pool, job, "has as many events of this key waiting as may");
            }
            Err(other) => {
                let why = other.without_message();
                if let Some(job) = other.into_message() {
                    gone(&self.shared, why, job);
                }
            }
        }
    }

    fn full(&mut self, pool: usize, job: Job, why: &str) {
        match self.shared.pools[pool].on_full {
            OnFull::Pause => self.waiting[pool].push(job),
            OnFull::Reject => job.ack.refuse(),
            OnFull::DeadLetter => {
                let error = format!("the pool {:?} {why}", self.shared.pools[pool].name);
                self.shared.give_up(job, Reason::PoolFull, error);
            }
        }
    }
}

/// Waits until not too many dead letters are on their way, then for the next batch.
async fn pull(
    shared: &Shared,
    source: &mut Box<dyn Source>,
    into: &mut Vec<Taken>,
) -> Result<Pull, SourceError> {
    shared.ledger.letters.room().await;
    source.pull(into).await
}

/// Hands what waits beside pools over, as far as there is room and nobody else waits for it.
fn feed(shared: &Shared, pools: &[JobAddress], waiting: &mut [Waiting]) {
    for (pool, waiting) in pools.iter().zip(waiting) {
        waiting.feed(shared, pool);
    }
}

fn hand_over(
    shared: &Shared,
    pools: &[JobAddress],
    room: Option<(usize, Room<'_>)>,
    waiting: &mut [Waiting],
) {
    if let Some((pool, room)) = room {
        waiting[pool].hand_over(shared, &pools[pool], room);
    }
}

/// Waits until one of the pools beside which events wait has room, or has stopped, or something that waited behind its key was
/// handed over (`None`). Never, where none waits.
async fn room<'a>(
    shared: &Shared,
    pools: &'a [JobAddress],
    waiting: &mut [Waiting],
) -> Option<(usize, Room<'a>)> {
    let waits = pools.iter().enumerate().filter(|(place, _)| waiting[*place].wants_room());
    let mut rooms: Vec<(usize, BoxFuture<'a, Room<'a>>)> =
        waits.map(|(place, pool)| (place, Box::pin(pool.reserve()) as BoxFuture<'_, _>)).collect();
    poll_fn(|task| {
        let ready =
            |(place, room): &mut (usize, BoxFuture<'a, Room<'a>>)| match room.as_mut().poll(task) {
                Poll::Ready(room) => Some((*place, room)),
                Poll::Pending => None,
            };
        if let Some(room) = rooms.iter_mut().find_map(ready) {
            return Poll::Ready(Some(room));
        }
        let moved = pools
            .iter()
            .zip(&mut *waiting)
            .fold(false, |moved, (pool, waiting)| waiting.advance(shared, pool, task) || moved);
        if moved { Poll::Ready(None) } else { Poll::Pending }
    })
    .await
}
