//! A pool under a supervisor.
//!
//! Its address is there before it is started, and outlives every restart: messages wait in between.
//!
//! ```text
//! resting ──start──▶ up ──a worker's budget is used up──▶ the supervisor is told; the slot rests
//!    ▲                │
//!    └────suspend─────┘   the queue is kept, messages are accepted
//! ```

use std::{hash::Hash, sync::Arc, time::Duration};

use tokio::{sync::mpsc, time::Instant};

use super::{
    Pool, admin::change::SlotOutcome, clock::timed::later, core::Core, stop::run::wait_until,
};
use crate::{
    Actor, PoolEvent, Stop,
    address::Address,
    any_address::Erased,
    pool::StopSummary,
    supervisor::{
        ChildSpec,
        child::{Child, ChildFuture, ExitReporter},
    },
};

/// How long actors may take to reach their next await once they have been dropped.
const LET_GO: Duration = Duration::from_millis(500);

/// A pool, as its supervisor sees it.
struct SupervisedPool<A: Actor, K: Hash + Eq + Send + Sync + 'static> {
    core: Arc<Core<A, K>>,
    /// The pool does not stop as long as its supervisor has it.
    _alive: Address<A::Message, A::Reply, A::Error>,
}

/// A pool that rests, and what its supervisor is given of it.
pub(super) fn kept<A: Actor, K: Hash + Eq + Send + Sync + 'static>(
    core: Arc<Core<A, K>>,
) -> (Pool<A>, ChildSpec) {
    core.rest_from_the_start();
    let pool = Pool::spawned(core.clone());
    let kept = SupervisedPool { core, _alive: pool.address() };
    (pool, ChildSpec::plain(Arc::new(kept)))
}

impl<A: Actor, K: Hash + Eq + Send + Sync + 'static> Child for SupervisedPool<A, K> {
    fn name(&self) -> Arc<str> {
        self.core.settings.config.name.clone()
    }

    fn start(self: Arc<Self>, exits: ExitReporter) -> ChildFuture<Result<(), String>> {
        Box::pin(async move { start(&self.core, exits).await })
    }

    fn suspend(self: Arc<Self>, patience: Duration) -> ChildFuture<()> {
        Box::pin(async move { suspend(&self.core, patience).await })
    }

    fn disable(self: Arc<Self>, patience: Duration) -> ChildFuture<()> {
        Box::pin(async move {
            suspend(&self.core, patience).await;
            self.core.close_down();
        })
    }

    fn stop(self: Arc<Self>, how: Stop) -> ChildFuture<StopSummary> {
        self.core.controllers.escalation.lock().take();
        Box::pin(self.core.clone().stop_unknown(how))
    }
}

/// Starts a worker in every slot that rests, and returns when one of them runs.
async fn start<A: Actor, K: Hash + Eq + Send + Sync + 'static>(
    core: &Arc<Core<A, K>>,
    exits: ExitReporter,
) -> Result<(), String> {
    if core.is_closed() {
        return Err("the pool has been stopped".to_owned());
    }
    *core.controllers.escalation.lock() = Some(exits);
    let (outcomes, mut told) = mpsc::unbounded_channel();
    let slots = core.wake_slots();
    core.start_in(&slots, &outcomes);
    drop(outcomes);
    let mut reason = None;
    while let Some(outcome) = told.recv().await {
        match outcome {
            SlotOutcome::StartFailed(_, error) => reason = reason.or(Some(error)),
            SlotOutcome::Started(_) | SlotOutcome::Left(_) => {
                core.notify(PoolEvent::Started { workers: slots.len() });
                return Ok(());
            }
        }
    }
    match reason {
        None if slots.is_empty() => Ok(()),
        reason => {
            suspend(core, Duration::ZERO).await;
            Err(reason.unwrap_or_else(|| "the runtime is shutting down".to_owned()))
        }
    }
}

/// Ends the workers after their messages in hand, and at the end of patience at their next await.
async fn suspend<A: Actor, K: Hash + Eq + Send + Sync + 'static>(
    core: &Arc<Core<A, K>>,
    patience: Duration,
) {
    core.controllers.escalation.lock().take();
    tell_to_rest(core);
    let rests = || core.active_slots().is_empty();
    if !wait_until(core, later(patience), rests).await {
        core.membership.abort(&core.active_slots());
        wait_until(core, Instant::now() + LET_GO, rests).await;
    }
}

fn tell_to_rest<A: Actor, K: Hash + Eq + Send + Sync + 'static>(core: &Core<A, K>) {
    core.active_slots().into_iter().for_each(|slot| core.tell_to_rest(slot));
    core.lifecycle.over.notify_waiters();
}
