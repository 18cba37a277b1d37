//! Management, apart from work: sizes, slots, figures and the end of a pool.

use std::{fmt, future::Future, hash::Hash, ops::RangeInclusive, pin::Pin, sync::Arc};

use tokio::sync::mpsc;

use super::{
    change::Change,
    core::Core,
    gather::Worker,
    stats::{PoolStats, WorkerStats},
    stop::{self, Stop, StopReport},
};
use crate::Actor;

type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// What a pool can be told, whatever its keys are.
pub(crate) trait Control<A: Actor>: Send + Sync {
    fn stats(&self) -> PoolStats;
    fn worker_stats(&self) -> Vec<WorkerStats>;
    fn workers(self: Arc<Self>) -> Vec<Worker<A::Message, A::Reply, A::Error>>;
    /// Those that handle messages now, in the order of their slots.
    fn live_workers(self: Arc<Self>) -> Vec<Worker<A::Message, A::Reply, A::Error>>;
    fn add(self: Arc<Self>, workers: usize) -> Result<Change, ManageError>;
    fn remove(self: Arc<Self>, workers: usize) -> Result<Change, ManageError>;
    fn remove_worker(self: Arc<Self>, slot: usize) -> Result<Change, ManageError>;
    fn resize(self: Arc<Self>, workers: usize) -> Result<Change, ManageError>;
    fn enable(self: Arc<Self>, slot: usize) -> Result<Change, ManageError>;
    fn stop(self: Arc<Self>, how: Stop) -> BoxFuture<'static, StopReport<A::Message>>;
}

impl<A, K> Control<A> for Core<A, K>
where
    A: Actor,
    K: Hash + Eq + Send + Sync + 'static,
{
    fn stats(&self) -> PoolStats {
        PoolStats::of(self)
    }

    fn worker_stats(&self) -> Vec<WorkerStats> {
        WorkerStats::all(self)
    }

    fn workers(self: Arc<Self>) -> Vec<Worker<A::Message, A::Reply, A::Error>> {
        Core::workers(&self, false)
    }

    fn live_workers(self: Arc<Self>) -> Vec<Worker<A::Message, A::Reply, A::Error>> {
        let mut workers = Core::workers(&self, true);
        workers.sort_unstable_by_key(Worker::slot);
        workers
    }

    fn add(self: Arc<Self>, workers: usize) -> Result<Change, ManageError> {
        let (outcomes, told) = mpsc::unbounded_channel();
        let (slots, size) = self.hire(workers, &outcomes)?;
        Ok(Change::new(slots, Vec::new(), size, told))
    }

    fn remove(self: Arc<Self>, workers: usize) -> Result<Change, ManageError> {
        let (outcomes, told) = mpsc::unbounded_channel();
        let (slots, size) = self.dismiss(workers, &outcomes)?;
        Ok(Change::new(Vec::new(), slots, size, told))
    }

    fn remove_worker(self: Arc<Self>, slot: usize) -> Result<Change, ManageError> {
        let (outcomes, told) = mpsc::unbounded_channel();
        let size = self.dismiss_one(slot, &outcomes)?;
        Ok(Change::new(Vec::new(), vec![slot], size, told))
    }

    fn resize(self: Arc<Self>, workers: usize) -> Result<Change, ManageError> {
        let size = self.roster.lock().len();
        match workers.checked_sub(size) {
            Some(more) => self.add(more),
            None => self.remove(size - workers),
        }
    }

    fn enable(self: Arc<Self>, slot: usize) -> Result<Change, ManageError> {
        let (outcomes, told) = mpsc::unbounded_channel();
        let size = Core::enable(&self, slot, &outcomes)?;
        Ok(Change::new(vec![slot], Vec::new(), size, told))
    }

    fn stop(self: Arc<Self>, how: Stop) -> BoxFuture<'static, StopReport<A::Message>> {
        Box::pin(stop::stop(self, how))
    }
}

/// Why a pool was not changed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ManageError {
    /// The pool is stopping or has stopped.
    #[error("the pool is not running")]
    NotRunning,
    /// The size would be outside of what the pool was set up for.
    #[error("{asked} workers are outside of the pool's bounds, {} to {}", bounds.start(), bounds.end())]
    OutOfBounds {
        /// The size asked for.
        asked: usize,
        /// What is possible.
        bounds: RangeInclusive<usize>,
    },
    /// There is no worker with this slot.
    #[error("the pool has no slot {0}")]
    NoSuchSlot(usize),
    /// The slot is not disabled.
    #[error("slot {0} is not disabled")]
    NotDisabled(usize),
}

/// A pool's management: each method answers in bounded time, however busy the pool is, with what was begun or why not.
/// Holding it does not keep the pool running.
///
/// ```
/// # use greenroom::prelude::*;
/// # use std::time::Duration;
/// # struct Clerk; impl Actor for Clerk { type Message = u8; type Reply = u8; type Error = ();
/// # async fn handle(&mut self, page: u8, _: &mut Context<Self>) -> Result<u8, ()> { Ok(page) } }
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let pool = Pool::new(|_slot| Clerk).workers(2).bounds(1..=8).spawn().await?;
/// let change = pool.manage().resize(4)?;
/// assert_eq!((change.added(), change.size()), (&[2, 3][..], 4));
/// let report = change.done(Duration::from_secs(5)).await;
/// assert!(report.is_complete());
/// # Ok(()) }
/// ```
pub struct Management<A: Actor> {
    control: Arc<dyn Control<A>>,
}

impl<A: Actor> Management<A> {
    pub(super) fn new(control: Arc<dyn Control<A>>) -> Self {
        Self { control }
    }

    /// Begins to start so many more workers, behind the others. A worker that cannot be started is tried again with
    /// backoff; the change tells about its first try.
    ///
    /// # Errors
    /// The pool is not running, or would have more workers than it may.
    pub fn add(&self, workers: usize) -> Result<Change, ManageError> {
        self.control.clone().add(workers)
    }

    /// Tells so many workers to leave: idle ones first, then those that joined last. Each finishes the message in hand. Where
    /// there are fewer, all of them leave, and the change says so.
    ///
    /// # Errors
    /// The pool is not running, or would have fewer workers than it may.
    pub fn remove(&self, workers: usize) -> Result<Change, ManageError> {
        self.control.clone().remove(workers)
    }

    /// Tells the worker in this slot to leave.
    ///
    /// # Errors
    /// As [`remove`](Self::remove), and when there is no such worker.
    pub fn remove_worker(&self, slot: usize) -> Result<Change, ManageError> {
        self.control.clone().remove_worker(slot)
    }

    /// Adds or removes workers until there are so many.
    ///
    /// # Errors
    /// The pool is not running, or may not have so many workers.
    pub fn resize(&self, workers: usize) -> Result<Change, ManageError> {
        self.control.clone().resize(workers)
    }

    /// Starts a worker in a slot that was disabled, with a restart budget as if new.
    ///
    /// # Errors
    /// The pool is not running, or there is no such slot, or it is not disabled.
    pub fn enable(&self, slot: usize) -> Result<Change, ManageError> {
        self.control.clone().enable(slot)
    }

    /// The workers that are there or are being started, in the order in which they joined, each with an address of its own.
    /// These addresses keep the pool running, as others do.
    pub fn workers(&self) -> Vec<Worker<A::Message, A::Reply, A::Error>> {
        self.control.clone().workers()
    }

    /// What the pool is doing. Takes the lock of each shard for a moment.
    pub fn stats(&self) -> PoolStats {
        self.control.stats()
    }

    /// What each slot of the pool has done and does, also those that are vacant now.
    pub fn worker_stats(&self) -> Vec<WorkerStats> {
        self.control.worker_stats()
    }

    /// Stops the pool; see [`Pool::stop`](crate::Pool::stop).
    ///
    /// # Cancel safety
    /// A dropped future has closed the pool once it was polled; call again to see it end.
    pub async fn stop(&self, how: Stop) -> StopReport<A::Message> {
        self.control.clone().stop(how).await
    }
}

impl<A: Actor> Clone for Management<A> {
    fn clone(&self) -> Self {
        Self { control: self.control.clone() }
    }
}

impl<A: Actor> fmt::Debug for Management<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Management").field("stats", &self.stats()).finish()
    }
}
