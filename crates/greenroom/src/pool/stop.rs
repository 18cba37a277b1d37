//! Stopping: refuse new work, handle what is queued, and say what was not handled.

use std::{
    hash::Hash,
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use tokio::time::Instant;

use super::{core::Core, stats::PoolStats};
use crate::{Actor, CallError};

/// How a pool is stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Stop {
    /// Handle what is queued, for at most this long; then drop handlers at their next await.
    Graceful {
        /// The deadline, from now.
        within: Duration,
    },
    /// Start nothing more, and wait for what is in hand.
    Now,
}

impl Stop {
    /// A graceful stop with a deadline.
    pub const fn within(deadline: Duration) -> Self {
        Self::Graceful { within: deadline }
    }
}

/// How a pool ended.
#[derive(Debug)]
pub struct StopReport<M> {
    /// What was accepted and not handled, as far as it still exists: queued, waiting for another attempt, or in the
    /// hand of a handler that had left it in place.
    pub left_over: Vec<M>,
    /// Workers whose handler did not let go: they block their thread, and go on until they return.
    pub wedged: Vec<String>,
    /// The last figures.
    pub stats: PoolStats,
}

/// How long dropped handlers may take to reach their next await before they are called wedged, and `stopped` hooks may
/// take where the deadline has passed.
const LET_GO: Duration = Duration::from_millis(500);

/// How long `stopped` hooks may take after [`Stop::Now`].
const HOOKS: Duration = Duration::from_secs(10);

/// Stops the pool. Called again, it waits for the same end and finds nothing left over.
pub(crate) async fn stop<A: Actor, K: Hash + Eq + Send + Sync + 'static>(
    core: Arc<Core<A, K>>,
    how: Stop,
) -> StopReport<A::Message> {
    core.close();
    let mut until = Instant::now() + HOOKS;
    if let Stop::Graceful { within } = how {
        let deadline = Instant::now() + within;
        let _ = tokio::time::timeout_at(deadline, drained(&core)).await;
        until = deadline.max(Instant::now() + LET_GO);
    }
    core.ended.store(true, Ordering::SeqCst);
    core.wake.all();
    core.clock.bell.ring_loud();
    core.progress.notify_waiters();
    let wedged = end_workers(&core, how, until).await;
    let mut left_over = std::mem::take(&mut *core.left_over.lock());
    for entry in core.drain_queues() {
        if entry.is_retry() {
            core.tally.waiting.fetch_sub(1, Ordering::Relaxed);
        }
        core.tally.returned.fetch_add(1, Ordering::Relaxed);
        if let Some(port) = entry.extra.and_then(|extra| extra.port) {
            port.resolve(CallError::Stopped);
        }
        left_over.push(entry.message);
    }
    StopReport { left_over, wedged, stats: PoolStats::of(&core) }
}

/// Waits until every accepted message has its outcome.
async fn drained<A: Actor, K: Hash + Eq + Send + Sync + 'static>(core: &Core<A, K>) {
    loop {
        let mut progress = std::pin::pin!(core.progress.notified());
        progress.as_mut().enable();
        // Pairs with the fence of a worker that lies down: its counts are seen, or it sees `closing` and notifies.
        std::sync::atomic::fence(Ordering::SeqCst);
        let stats = PoolStats::of(core);
        if stats.accepted == stats.settled()
            || core.live.load(Ordering::SeqCst) == 0
            || core.ended.load(Ordering::SeqCst)
        {
            return;
        }
        progress.await;
    }
}

/// Ends the tasks of the workers. Idle ones end by themselves and run their `stopped` hook. At a deadline the others
/// are aborted, which drops their handler at its next await. Returns the names of those that do not let go.
async fn end_workers<A: Actor, K: Hash + Eq + Send + Sync + 'static>(
    core: &Core<A, K>,
    how: Stop,
    until: Instant,
) -> Vec<String> {
    let mut tasks = core.tasks.lock().await;
    let busy = |worker: usize| core.tallies[worker].in_hand.load(Ordering::Relaxed) == 1;
    if matches!(how, Stop::Graceful { .. }) {
        let in_hand = tasks.iter().enumerate().filter(|(worker, _)| busy(*worker));
        in_hand.for_each(|(_, task)| task.abort());
    }
    let mut wedged = Vec::new();
    for (worker, task) in tasks.iter_mut().enumerate() {
        if how == Stop::Now && busy(worker) {
            let _ = task.await;
        } else if tokio::time::timeout_at(until, &mut *task).await.is_err() {
            task.abort();
            if busy(worker) {
                wedged.push(format!("{}-{worker}", core.settings.name));
            }
        }
    }
    tasks.clear();
    wedged
}
