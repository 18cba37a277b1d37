//! A pool under a supervisor.
//!
//! Its address exists before it is started, and outlives every restart: messages wait in between.
//!
//! ```text
//! resting ──start──▶ up ──a worker's budget is used up──▶ the supervisor decides; the slot rests
//!    ▲                │
//!    └────suspend─────┘   the queue is kept, messages are accepted
//! ```

use std::{any::Any, sync::Arc, time::Duration};

use tokio::{sync::mpsc, time::Instant};

use super::{
    Pool,
    admin::change::SlotOutcome,
    clock::timed::later,
    core::Core,
    frame::{
        AnyCore,
        members::start_in,
        rest::wake_slots,
        supervised::{active_slots, close_down, rest_from_the_start, tell_to_rest},
    },
    stop::run::wait_until,
};
use crate::{
    Actor, PoolEvent, Stop,
    pool::StopSummary,
    pool::pool_payload::Key,
    supervisor::{
        ChildSpec,
        child::{Child, ChildFuture, ExitReporter},
    },
};

/// How long dropped actors may take to reach their next await.
const LET_GO: Duration = Duration::from_millis(500);

/// A pool, as its supervisor sees it.
struct SupervisedPool {
    pool: Arc<dyn AnyCore>,
    /// Keeps the pool from stopping while its supervisor has it.
    _alive: Box<dyn Any + Send + Sync>,
}

/// A pool that rests, as a child for its supervisor.
pub(super) fn kept<A: Actor, K: Key>(core: Arc<Core<A, K>>) -> (Pool<A>, ChildSpec) {
    rest_from_the_start(&*core);
    let pool = Pool::spawned(core.clone());
    let kept = SupervisedPool { pool: core, _alive: Box::new(pool.address()) };
    (pool, ChildSpec::plain(Arc::new(kept)))
}

impl Child for SupervisedPool {
    fn name(&self) -> Arc<str> {
        self.pool.frame().config.name.clone()
    }

    fn start(self: Arc<Self>, exits: ExitReporter) -> ChildFuture<Result<(), String>> {
        Box::pin(async move { start(&self.pool, exits).await })
    }

    fn suspend(self: Arc<Self>, patience: Duration) -> ChildFuture<()> {
        Box::pin(async move { suspend(&*self.pool, patience).await })
    }

    fn disable(self: Arc<Self>, patience: Duration) -> ChildFuture<()> {
        Box::pin(async move {
            suspend(&*self.pool, patience).await;
            close_down(&*self.pool);
        })
    }

    fn stop(self: Arc<Self>, how: Stop) -> ChildFuture<StopSummary> {
        self.pool.frame().controllers.escalation.lock().take();
        Box::pin(self.pool.clone().stop_unknown(how))
    }
}

/// Starts a worker in every resting slot, and returns when one of them runs.
async fn start(pool: &Arc<dyn AnyCore>, exits: ExitReporter) -> Result<(), String> {
    if pool.is_closed() {
        return Err("the pool has been stopped".to_owned());
    }
    *pool.frame().controllers.escalation.lock() = Some(exits);
    let (outcomes, mut told) = mpsc::unbounded_channel();
    let slots = wake_slots(&**pool);
    start_in(pool, &slots, &outcomes);
    drop(outcomes);
    let mut reason = None;
    while let Some(outcome) = told.recv().await {
        match outcome {
            SlotOutcome::StartFailed(_, error) => reason = reason.or(Some(error)),
            SlotOutcome::Started(_) | SlotOutcome::Left(_) => {
                pool.frame().notify(PoolEvent::Started { workers: slots.len() });
                return Ok(());
            }
        }
    }
    match reason {
        None if slots.is_empty() => Ok(()),
        reason => {
            suspend(&**pool, Duration::ZERO).await;
            Err(reason.unwrap_or_else(|| "the runtime is shutting down".to_owned()))
        }
    }
}

/// Ends the workers after their messages in hand or, when the time is up, at their next await.
async fn suspend(pool: &dyn AnyCore, patience: Duration) {
    pool.frame().controllers.escalation.lock().take();
    active_slots(pool).into_iter().for_each(|slot| tell_to_rest(pool, slot));
    pool.frame().lifecycle.over.notify_waiters();
    let rests = || active_slots(pool).is_empty();
    if !wait_until(pool, later(patience), rests).await {
        pool.frame().membership.abort(&active_slots(pool));
        wait_until(pool, Instant::now() + LET_GO, rests).await;
    }
}
