//! A system: the actors and pools of a program, or of a part of it, with one end.
//!
//! Pools that use one another must be stopped in order: first those that were started last, because
//! they use the others, each with time to finish, and all of them before the operator loses
//! patience. Written by hand, that is a list of stops and a clock in every `main`; and a test that
//! returns early leaves all of them running.
//!
//! ```text
//! started:   store ─▶ index ─▶ requests
//! shutdown:  requests, then index, then store: each refuses new messages and handles its queue
//!            ├───────────── one deadline ────────────┤ the rest of it is each one's deadline;
//!                                                      at its end the rest is stopped at once
//! ```
//!
//! # Price
//! An address per actor, which keeps it alive; a lock when actors are added, counted or stopped.
//! Messages do not pass through a system.

use std::{any::Any, fmt, future::poll_fn, hash::Hash, mem, sync::Arc, task::Poll, time::Duration};

use greenroom_queue::discard::discard;
use greenroom_queue::lock::Mutex;
use tokio::time::Instant;

use crate::{
    Actor, Address, Pool, PoolBuilder, SpawnError, Stop,
    any_address::Erased,
    pool::{StopSummary, clock::timed::later},
};

/// Owns actors and pools: keeps them alive, knows their number, and stops them, the last started
/// first.
///
/// Dropping it sends [`Stop::Now`] to all of them, without waiting.
///
/// ```
/// use std::time::Duration;
/// use greenroom::{System, prelude::*};
/// # struct Store; impl Actor for Store { type Message = u8; type Reply = u8; type Error = ();
/// # async fn handle(&mut self, page: u8, _: &mut Context<Self>) -> Result<u8, ()> { Ok(page) } }
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let system = System::new();
/// let store = system.start(Pool::new(|_slot| Store).name("store")).await?;
/// let requests = Pool::new(|_slot| Store).name("requests").spawn().await?;
/// system.adopt(&requests);
/// assert_eq!(system.len(), 2);
///
/// let report = system.shutdown(Duration::from_secs(30)).await;
/// assert_eq!(report.ends[0].name, "requests");
/// assert!(report.is_clean());
/// assert!(system.is_empty());
/// # Ok(()) }
/// ```
#[derive(Default)]
pub struct System {
    /// In start order. Locked at most for a short visit to each actor; none is dropped or waited
    /// for under it.
    actors: Mutex<Vec<SystemEntry>>,
}

/// An actor or a pool. Dropping the last handle of a pool runs its owner's code, so none is
/// dropped under the lock.
struct SystemEntry {
    /// Its vtable, for orders.
    vtable: Arc<dyn Erased>,
    /// The address that keeps it alive.
    address: Box<dyn Any + Send + Sync>,
}

/// How the actors of a system ended.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct SystemReport {
    /// One entry for each, in the order in which they were stopped. Actors that had ended by
    /// themselves are not included.
    pub ends: Vec<ActorEnd>,
}

/// How one actor or pool of a system ended.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ActorEnd {
    /// Its name.
    pub name: String,
    /// The leftover messages, and the workers that did not release their messages.
    pub summary: StopSummary,
}

impl SystemReport {
    /// The number of messages that were accepted and not handled. A stop through the pool
    /// itself returns them.
    pub fn left_over(&self) -> usize {
        self.ends.iter().map(|end| end.summary.left_over).sum()
    }

    /// Workers whose handler did not yield: they block their thread until they return.
    pub fn wedged(&self) -> impl Iterator<Item = &str> {
        self.ends.iter().flat_map(|end| &end.summary.wedged).map(String::as_str)
    }

    /// True if everything was handled and every worker has yielded.
    pub fn is_clean(&self) -> bool {
        self.left_over() == 0 && self.wedged().next().is_none()
    }
}

impl System {
    /// A system that owns no actor yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Starts a pool that this system owns.
    ///
    /// # Errors
    /// Those of [`PoolBuilder::spawn`].
    ///
    /// # Cancel safety
    /// A dropped future leaves nothing running.
    pub async fn start<A: Actor, K: Hash + Eq + Send + Sync + 'static>(
        &self,
        builder: PoolBuilder<A, K>,
    ) -> Result<Pool<A>, SpawnError> {
        let pool = builder.spawn().await?;
        self.adopt(&pool);
        Ok(pool)
    }

    /// Owns an actor or a pool from now on, as the one started last. An actor that it already owns
    /// keeps its place.
    pub fn adopt<M: 'static, R: 'static, E: 'static>(&self, address: &Address<M, R, E>) {
        let adopted = SystemEntry { vtable: address.vtable(), address: Box::new(address.clone()) };
        let mut actors = self.actors.lock();
        let mut unused = Vec::new();
        // If it would grow: so an adoption visits a few actors, on average.
        if actors.len() == actors.capacity() {
            unused.extend(actors.extract_if(.., |actor| actor.vtable.is_over()));
        }
        match actors.iter().any(|other| Arc::ptr_eq(&other.vtable, &adopted.vtable)) {
            true => unused.push(adopted),
            false => actors.push(adopted),
        }
        drop(actors);
        discard(unused);
    }

    /// How many of its actors and pools have not ended. Looks at each.
    pub fn len(&self) -> usize {
        self.swept(|actors| actors.len())
    }

    /// True once all have ended.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Stops all, the last started first: each refuses new messages, handles the messages it has,
    /// and has ended before the next is stopped. At the deadline, the rest are stopped at once, and
    /// handlers are dropped at their await. Returns within a second after the deadline, and names
    /// the workers that did not yield.
    ///
    /// An actor that is adopted during this call is also stopped. The system can be used again
    /// afterwards.
    ///
    /// # Cancel safety
    /// A dropped future has begun to stop some. The system still owns them; call
    /// again to see them end.
    pub async fn shutdown(&self, within: Duration) -> SystemReport {
        let deadline = later(within);
        let mut report = SystemReport::default();
        while let Some(last) = self.swept(|actors| actors.last().map(|last| last.vtable.clone())) {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                self.stop_rest(&mut report).await;
                continue;
            }
            let summary = last.clone().stop_unknown(Stop::within(left)).await;
            self.release(&last, summary, &mut report);
        }
        report
    }

    /// Stops the rest without time to drain: all are notified, the last started first, before any
    /// is waited for.
    async fn stop_rest(&self, report: &mut SystemReport) {
        let rest: Vec<_> =
            self.actors.lock().iter().rev().map(|actor| actor.vtable.clone()).collect();
        let stop =
            |vtable: &Arc<dyn Erased>| vtable.clone().stop_unknown(Stop::within(Duration::ZERO));
        let mut stops: Vec<_> = rest.iter().map(stop).collect();
        let mut ends = vec![None; rest.len()];
        poll_fn(|task| {
            for (stop, end) in stops.iter_mut().zip(&mut ends).filter(|(_, end)| end.is_none()) {
                if let Poll::Ready(summary) = stop.as_mut().poll(task) {
                    *end = Some(summary);
                }
            }
            if ends.contains(&None) { Poll::Pending } else { Poll::Ready(()) }
        })
        .await;
        for (vtable, summary) in rest.iter().zip(ends.into_iter().flatten()) {
            self.release(vtable, summary, report);
        }
    }

    /// Forgets an actor that has ended, or that does not yield.
    fn release(&self, vtable: &Arc<dyn Erased>, summary: StopSummary, report: &mut SystemReport) {
        report.ends.push(ActorEnd { name: vtable.name().to_string(), summary });
        let mut actors = self.actors.lock();
        let released: Vec<_> =
            actors.extract_if(.., |actor| Arc::ptr_eq(&actor.vtable, vtable)).collect();
        drop(actors);
        discard(released);
    }

    /// Looks at the actors that have not ended; the others are dropped after the lock.
    fn swept<T>(&self, look: impl FnOnce(&mut Vec<SystemEntry>) -> T) -> T {
        let mut actors = self.actors.lock();
        let ended: Vec<_> = actors.extract_if(.., |actor| actor.vtable.is_over()).collect();
        let seen = look(&mut actors);
        drop(actors);
        discard(ended);
        seen
    }
}

impl Drop for System {
    fn drop(&mut self) {
        let actors = mem::take(self.actors.get_mut());
        for SystemEntry { vtable, address } in actors.into_iter().rev() {
            vtable.stop_behind(Stop::Now);
            discard(address);
        }
    }
}

impl fmt::Debug for System {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<_> = self.actors.lock().iter().map(|actor| actor.vtable.name()).collect();
        f.debug_struct("System").field("actors", &names).finish()
    }
}
