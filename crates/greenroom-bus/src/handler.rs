//! The contract of a handler: one event in, zero or more events out, or a [`Failure`] that names
//! the consequence.
//!
//! A [`HandlerFactory`] belongs to the configuration and is shared; each worker of a pool
//! builds its own [`Handler`] from it, so a handler may keep state (a process, a
//! connection) without locks.

pub mod discard;
pub mod exec;
pub mod http;
mod kind;
pub mod log;
pub mod pass;
mod settlement;
pub mod simulate;
mod stand_in;
pub mod typed;

#[cfg(test)]
pub(crate) mod samples;

use std::{sync::Arc, time::Duration};

pub use kind::{HandlerKind, Makes, OpenHandler, handler};
pub use settlement::Settlement;

use crate::{
    BoxFuture,
    event::{DataError, Event, EventError},
    name::Name,
};

/// Builds one [`Handler`] for each worker of a pool.
pub trait HandlerFactory: Send + Sync + 'static {
    /// Builds the handler of one worker. Cheap: slow work (starting a process, connecting) belongs
    /// in the first [`Handler::handle`].
    ///
    /// # Errors
    /// A sentence for the operator; the worker tries again with backoff.
    fn build(&self, worker: usize) -> Result<Box<dyn Handler>, String>;

    /// Whether its handlers settle events themselves, through
    /// [`handle_and_settle`](Handler::handle_and_settle): only those can be run with
    /// [`ack: manual`](crate::engine::AckWhen::Manual).
    fn settles(&self) -> bool {
        false
    }

    /// How often handlers of this factory restarted their processes, all workers together. 0 for a
    /// handler without processes.
    fn restarts(&self) -> u64 {
        0
    }

    /// How often a worker process died, or was killed because of its answer.
    fn crashes(&self) -> u64 {
        0
    }

    /// Worker processes die again and again, for now.
    fn crash_loop(&self) -> Option<CrashLoop> {
        None
    }

    /// How often a handler sent an event again, within one call of [`Handler::handle`], although
    /// the first time [may have taken effect](Effect::Unknown). Those that a [`Failure`] reports
    /// are not counted here.
    fn unanswered(&self) -> u64 {
        0
    }

    /// Whether handlers tell the other side the [fence](Attempt::fence) of each attempt.
    fn sends_fence(&self) -> bool {
        false
    }

    /// Whether handlers want to hear how their events are settled: each event then has a
    /// [`Watch`](crate::settlement::Watch) as a [local value](Event::local).
    fn watches_settlement(&self) -> bool {
        false
    }
}

/// Crashes of worker processes that follow one another.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct CrashLoop {
    /// How many there were.
    pub crashes: u64,
    /// For how long: since the first of them.
    pub lasted: Duration,
    /// How the last one ended, and its last output.
    pub last: String,
}

impl CrashLoop {
    /// This many crashes in this time, the last of which was this.
    pub fn new(crashes: u64, lasted: Duration, last: impl Into<String>) -> Self {
        Self { crashes, lasted, last: last.into() }
    }
}

/// Handles events one at a time.
pub trait Handler: Send + 'static {
    /// Starts one attempt. Handlers that need not wait answer [`Handling::Done`],
    /// which costs no allocation.
    ///
    /// Dropping the future cancels the attempt at its next await.
    fn handle<'a>(&'a mut self, event: &'a Event, attempt: &'a Attempt) -> Handling<'a>;

    /// Like [`handle`](Self::handle), for handlers that are run with [`ack:
    /// manual`](crate::engine::AckWhen::Manual): reports through `settlement` how the event ends,
    /// now or later, at the latest when the handler is [stopped](Self::stop). After a failed
    /// attempt the next one gets the same settlement; an event that is given up is settled as such.
    fn handle_and_settle<'a>(
        &'a mut self,
        event: &'a Event,
        attempt: &'a Attempt,
        settlement: Settlement,
    ) -> Handling<'a> {
        let _ = settlement;
        self.handle(event, attempt)
    }

    /// Makes an attempt at each of several events, in this order; returns a result for each, by
    /// which it is settled. They belong to one line, or to none
    /// ([`PoolConfig::batches`](crate::engine::PoolConfig::batches)). The default handles them one
    /// after the other, and gives those after a failed one back unstarted.
    ///
    /// A handler that handles them in one go keeps the order of the line by the same rule: an event
    /// that succeeds after one that is to be retried has left the line, and is counted as out of
    /// order.
    fn handle_all<'a>(
        &'a mut self,
        events: &'a [(&'a Event, Attempt)],
    ) -> BoxFuture<'a, Vec<HandlerResult>> {
        Box::pin(async move {
            let mut results: Vec<HandlerResult> = Vec::with_capacity(events.len());
            for (event, attempt) in events {
                let stopped = results.last().is_some_and(is_to_be_tried_again);
                if stopped {
                    let why = "an event before it failed";
                    results.push(Err(Failure::new(FailureKind::Released, why)));
                    continue;
                }
                results.push(match self.handle(event, attempt) {
                    Handling::Done(result) => result,
                    Handling::Later(result) => result.await,
                });
            }
            results
        })
    }

    /// Whether the handler itself gave the result at this index of the last call; a single event
    /// has index 0. An answer that was given in its place (by a layer that found a duplicate) does
    /// not show that it works.
    fn gave_result(&self, place: usize) -> bool {
        let _ = place;
        true
    }

    /// Closes the handler's resources, within `patience`.
    fn stop(&mut self, patience: Duration) -> BoxFuture<'_, ()> {
        let _ = patience;
        Box::pin(std::future::ready(()))
    }
}

/// An attempt that is done, or one that needs to be awaited.
pub enum Handling<'a> {
    /// The result is there.
    Done(HandlerResult),
    /// The result needs to be awaited.
    Later(BoxFuture<'a, HandlerResult>),
}

/// The result of an attempt.
pub type HandlerResult = Result<Outputs, Failure>;

/// True for an event whose line waits for it.
pub(crate) fn is_to_be_tried_again(result: &HandlerResult) -> bool {
    result.as_ref().is_err_and(|failure| failure.kind != FailureKind::Reject)
}

/// True for a result that shows, if the handler itself gave it, that the other side works: it has
/// handled the event, or has refused that event.
pub(crate) fn shows_that_it_works(result: &HandlerResult) -> bool {
    match result {
        Ok(_) => true,
        Err(failure) => failure.kind.blames_the_event() && failure.effect != Effect::None,
    }
}

/// A handler's results for a handled event.
#[derive(Debug, Clone, Default)]
pub enum Outputs {
    /// No event is passed on.
    #[default]
    None,
    /// The event itself is passed on, unchanged.
    Same,
    /// These events are passed on, in this order.
    Events(Vec<Event>),
}

/// An attempt, as its handler may see it.
#[derive(Debug, Clone)]
pub struct Attempt {
    /// 1 for the first attempt.
    pub number: u32,
    /// The pool that handles the event.
    pub pool: Name,
    /// The handler's name in the configuration.
    pub handler: Name,
    /// The index of the worker within its pool.
    pub worker: usize,
    /// Distinguishes an assignment of the event's partition from a later one, which has a higher
    /// number, even in another process. `None` unless the handler's
    /// [factory](HandlerFactory::sends_fence) asks for it.
    pub fence: Option<u64>,
    /// The [share](crate::router::HandlerConfig::share_by) of the event, if it has one.
    pub share: Option<Arc<str>>,
}

/// Why an attempt failed, in words, and the consequence.
#[derive(Debug, Clone)]
pub struct Failure {
    /// The consequence.
    pub kind: FailureKind,
    /// The error and its place, in words for an operator.
    pub error: String,
    /// The possible effect of the attempt.
    pub effect: Effect,
}

/// The possible effect of a failed attempt on the other side.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    /// The other side has never had the event: no connection was made, or no process was there.
    None,
    /// The other side had the event and said that it failed.
    Answered,
    /// The other side had the event, or a part of it, and the effect is unknown: the connection was
    /// lost, the process died, the time was over. The report counts these as `repeated at most`.
    Unknown,
}

/// The consequence of a failed attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum FailureKind {
    /// Try again: after `after` where the other side named a time, otherwise
    /// after the configured backoff.
    Retry {
        /// The wait that the other side asked for.
        after: Option<Duration>,
    },
    /// The attempt took longer than its limit: like `Retry`, counted separately.
    Timeout,
    /// The event cannot be handled: a dead letter at once.
    Reject,
    /// It has made more loopback events than its handler declares, or there is no room for that
    /// many: like `Retry`, and says nothing about the handler's health.
    LoopbackFull,
    /// The source must not continue: it is stopped, and the event is refused.
    Fatal,
    /// An operator has to decide: the event's key waits, with the event at its head. Without a key,
    /// or in a pool that does not keep order, it is a dead letter at once.
    Park,
    /// Try again, like `Retry`; until then, nothing of the event's share is attempted
    /// ([`HandlerConfig::share_by`](crate::router::HandlerConfig::share_by)), and after that one
    /// attempt probes. It says nothing about the handler's health.
    HoldShare {
        /// The wait that the other side asked for.
        after: Option<Duration>,
    },
    /// The other side wants nothing of this share any more: it is paused until an operator resumes
    /// it, and no event is blamed. Without a share, it is a dead letter at once.
    PauseShare,
    /// The worker process died with this event in hand: counts against the event's poison limit.
    Crash,
    /// The event was given back unstarted: tried again soon, no attempt counted.
    Released,
    /// The other side refuses the handler itself (a wrong credential): it is paused and probed, and
    /// no event is blamed.
    Pause,
    /// The program that the handler runs does not work (it cannot be started, or crashes at once):
    /// like `Pause`.
    Broken,
}

impl FailureKind {
    /// True if the event was refused, by a handler that works.
    pub fn blames_the_event(self) -> bool {
        matches!(self, Self::Reject | Self::Park)
    }

    /// True if no event will do better before the handler is mended.
    pub fn blames_the_handler(self) -> bool {
        matches!(self, Self::Pause | Self::Broken)
    }
}

impl Failure {
    /// A failure of this kind. Its effect is not known after a timeout or a crash; every other is
    /// taken for an answer.
    pub fn new(kind: FailureKind, error: impl Into<String>) -> Self {
        let effect = match kind {
            FailureKind::Timeout | FailureKind::Crash => Effect::Unknown,
            _ => Effect::Answered,
        };
        Self { kind, error: error.into(), effect }
    }

    /// The same with this effect.
    #[must_use]
    pub fn with_effect(self, effect: Effect) -> Self {
        Self { effect, ..self }
    }

    /// A failure that another attempt may mend.
    pub fn retry(error: impl Into<String>) -> Self {
        Self::new(FailureKind::Retry { after: None }, error)
    }

    /// A failure that no attempt will mend.
    pub fn reject(error: impl Into<String>) -> Self {
        Self::new(FailureKind::Reject, error)
    }
}

/// Data that cannot be read becomes no better by another attempt: the event is rejected,
/// with its bytes as they came.
impl From<DataError> for Failure {
    fn from(error: DataError) -> Self {
        Self::reject(error.to_string())
    }
}

/// Nor does an event that cannot be made.
impl From<EventError> for Failure {
    fn from(error: EventError) -> Self {
        Self::reject(format!("an event to be produced: {error}"))
    }
}

impl std::error::Error for Failure {}

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.error)
    }
}
