//! A router without inputs and outputs: the caller hands it an event, and gets the results of its
//! handlers.

use std::{sync::Arc, time::Duration};

use greenroom::{NotAccepted, TrySendError};
use parking_lot::Mutex;
use tokio::{sync::oneshot, time::Instant};

use super::{
    builder::EngineBuilder,
    engine::{Engine, Parts},
};
use crate::{
    BoxFuture,
    dead_letter::{DeadLetter, DeadLetterStore, Reason},
    engine::{
        account::report::RunReport,
        config::BuildError,
        control::Control,
        intake::{
            overflow::gone,
            route::line_of,
            ticket::{Batch, Ticket},
        },
        process::{
            job::{JobAddress, PoolJob},
            origin::Origin,
            produced::{HandlerFailure, Produced},
        },
        shared::Shared,
    },
    event::Event,
    name::Name,
    router::{OnFull, Route, Router},
    settlement::{Ack, Settle, Settled},
};

/// The name of a router's callers, in place of an input.
const CALLERS: &str = "router";

/// The results of handlers for an event.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct Dispatched {
    /// The returned events, those of one handler together and in its order.
    pub outputs: Vec<Event>,
}

/// Why an event was not handled, or not by all of its handlers.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum NotDispatched {
    /// No handler is named for its type.
    #[error("no handler is named for the type {0:?}")]
    NoHandler(String),
    /// Handlers are named for its type, and none of their matchers takes it.
    #[error("no matcher of the handlers for the type {0:?} takes the event")]
    HandlerRejected(String),
    /// A matcher panicked.
    #[error("the matcher of the handler {handler:?} panicked: {panic}")]
    MatcherPanicked {
        /// The handler.
        handler: Name,
        /// The message of the panic.
        panic: String,
    },
    /// At least one of the handlers that it went to gave it up.
    #[error("{}", failures.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))]
    Failed {
        /// The handlers that failed, and why.
        failures: Vec<HandlerFailure>,
        /// The results of the others, if it went to several.
        outputs: Vec<Event>,
    },
    /// A pool was full and rejects, or the router is stopping: the event may be given again.
    #[error("the event was refused: a pool is full or stopping")]
    Refused,
}

/// A router whose pools run. When dropped, it lets them handle their queued events.
///
/// ```
/// use std::{sync::Arc, time::Duration};
///
/// use greenroom_bus::{
///     event::Event,
///     handler::pass::PassFactory,
///     router::{HandlerConfig, PoolConfig, Router},
/// };
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let mut router = Router::new(PoolConfig { workers: 4, ..PoolConfig::default() });
/// router.add_handler("pass", HandlerConfig::new(vec!["**".parse()?], Arc::new(PassFactory)))?;
/// let router = router.start().await?;
/// let handled = router.handle(Event::builder("1", "/shop", "order").build()?).await?;
/// assert_eq!(handled.outputs[0].id(), "1");
/// let report = router.stop(Duration::from_secs(5)).await;
/// assert_eq!(report.handled, 1);
/// # Ok(()) }
/// ```
pub struct RunningRouter {
    parts: Parts,
    started: Instant,
}

impl Router {
    /// Starts the pools.
    ///
    /// # Errors
    /// Why a pool could not start.
    ///
    /// # Panics
    /// Outside a tokio runtime.
    pub fn start(self) -> BoxFuture<'static, Result<RunningRouter, BuildError>> {
        Box::pin(async {
            let parts = without_inputs(self, Arc::new(Callers)).await?;
            Ok(RunningRouter { parts, started: Instant::now() })
        })
    }
}

impl RunningRouter {
    /// Looks at the pools and handlers while they run, and changes them.
    pub fn control(&self) -> Control {
        self.parts.control()
    }

    /// The names of the handlers, each at its place.
    pub fn handlers(&self) -> impl ExactSizeIterator<Item = &str> {
        self.parts.shared.routing.router.handlers()
    }

    /// Where an event would go.
    pub fn route(&self, event: &Event) -> Route {
        self.parts.shared.routing.routes.route(event)
    }

    /// Hands an event to its handlers, and waits until all of them are done with it, retries
    /// included. Waits for room in a pool whose [`OnFull`] is `Pause`. Events with the same key
    /// that are handed over one after the other are handled in that order; the order of concurrent
    /// calls is undefined.
    ///
    /// However many events fail, each is given up after its attempts, and its caller gets the
    /// error: failures of several events are not an [outage](crate::engine::OutageConfig) here. A
    /// handler that its target refuses is in outage all the same, and its events wait.
    ///
    /// # Errors
    /// There is no handler for it, a handler gave it up, or it was refused.
    ///
    /// # Cancel safety
    /// A dropped future has refused the event if it was waiting for room; otherwise handlers
    /// continue, and their results are discarded.
    pub async fn handle(&self, event: Event) -> Result<Dispatched, NotDispatched> {
        let shared = &self.parts.shared;
        let ty = || event.ty().to_owned();
        let places = match shared.routing.routes.route(&event) {
            Route::One(place) => vec![place],
            Route::Several(places) => places,
            Route::NoHandler => return Err(NotDispatched::NoHandler(ty())),
            Route::Rejected => return Err(NotDispatched::HandlerRejected(ty())),
            Route::Panicked { handler, panic } => {
                let handler = shared.process.handlers[handler].name;
                return Err(NotDispatched::MatcherPanicked { handler, panic });
            }
        };
        let produced = Arc::new(Produced::default());
        let settled = self.give(event, &places, &produced).await.await;
        let (outputs, failures) = produced.take();
        match settled {
            Ok(Settled::Acknowledged(_)) if failures.is_empty() => Ok(Dispatched { outputs }),
            Ok(Settled::Acknowledged(_)) => Err(NotDispatched::Failed { failures, outputs }),
            Ok(Settled::Refused(_)) | Err(_) => Err(NotDispatched::Refused),
        }
    }

    /// Hands a part of the event to the pool of each of these handlers.
    async fn give(
        &self,
        event: Event,
        places: &[usize],
        produced: &Arc<Produced>,
    ) -> oneshot::Receiver<Settled> {
        let shared = &self.parts.shared;
        shared.ledger.takes(1);
        let (tell, told) = oneshot::channel();
        let whole = Ack::new(Caller(Mutex::new(Some(tell)), ticket(shared)));
        for place in places {
            let origin = Origin::of_caller();
            let part = whole.child();
            let job = match line_of(shared, &event, *place, 0) {
                Ok(line) => {
                    let ack = shared.ledger.part(part, line.as_ref(), None);
                    let share = shared.process.handlers[*place].config.share(&event);
                    let mut job = PoolJob::new(event.clone(), *place, line, origin, ack);
                    job.set_share(share);
                    job
                }
                Err(error) => {
                    let job = PoolJob::new(event.clone(), *place, None, origin, part);
                    let job = job.with_produced(produced.clone());
                    shared.give_up(job, Reason::KeyMissing, error);
                    continue;
                }
            };
            let job = job.with_produced(produced.clone());
            let pool = shared.process.handlers[*place].pool;
            admit(shared, pool, &self.parts.pools[pool].address(), job).await;
        }
        whole.confirm();
        told
    }

    /// Handles the accepted events within this time, refuses the rest, and returns the report of
    /// the whole run.
    ///
    /// # Cancel safety
    /// Like [`Engine::run`](crate::engine::Engine::run).
    pub fn stop(self, within: Duration) -> BoxFuture<'static, RunReport> {
        Box::pin(async move {
            let report = stop(self.parts, within).await;
            RunReport { elapsed: self.started.elapsed(), ..report }
        })
    }
}

/// Hands a job to its pool, as the pool's `on_full` says.
async fn admit(shared: &Shared, pool: usize, address: &JobAddress, job: PoolJob) {
    let on_full = shared.process.pools[pool].on_full;
    if on_full == OnFull::Pause {
        if let Err(error) = address.send(job).await {
            let why = error.without_message();
            if let Some(job) = error.into_message() {
                gone(shared, why, job);
            }
        }
        return;
    }
    match address.try_send(job) {
        Ok(()) => {}
        Err(TrySendError::Full(job) | TrySendError::KeyFull(job)) => {
            if on_full == OnFull::DeadLetter {
                let error = format!("the pool {:?} is full", shared.process.pools[pool].name);
                shared.give_up(job, Reason::PoolFull, error);
            }
        }
        Err(error) => {
            let why: NotAccepted = error.without_message();
            if let Some(job) = error.into_message() {
                gone(shared, why, job);
            }
        }
    }
}

/// Tells the caller how its event ended.
struct Caller<T: Settle>(Mutex<Option<oneshot::Sender<Settled>>>, T);

impl<T: Settle> Settle for Caller<T> {
    fn settled(&self, how: Settled) {
        self.1.settled(how);
        if let Some(tell) = self.0.lock().take() {
            let _ = tell.send(how);
        }
    }
}

/// Reports events that cannot be handled to their callers.
struct Callers;

impl DeadLetterStore for Callers {
    fn describe(&self) -> String {
        "the callers".to_owned()
    }

    fn store(&self, letter: DeadLetter) {
        letter.ack.confirm();
    }
}

async fn without_inputs(
    router: Router,
    dead_letters: Arc<dyn DeadLetterStore>,
) -> Result<Parts, BuildError> {
    let engine = EngineBuilder::default().router(router).dead_letters(dead_letters);
    Ok(engine.build_for(CALLERS).await?.parts)
}

/// Handles the accepted events, and ends.
async fn stop(mut parts: Parts, deadline: Duration) -> RunReport {
    parts.deadline = deadline;
    parts.control().drain();
    Engine { parts }.run().await
}

/// The settlement of one event in the ledger.
fn ticket(shared: &Shared) -> Ticket {
    Ticket::new(Batch::of_caller(&shared.ledger), 0, None)
}
