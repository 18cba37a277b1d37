//! Pools: one address in front of many workers.
//!
//! ```text
//! sender ──permit──▶ shard ──▶ inbox │ outbox ──▶ worker ──▶ handler ──▶ outcome, reply
//!                    by key or       │ taken one message at a time, by any awake worker
//!                    by sender       └─ wake only when a shard becomes ready
//! ```
//!
//! There is no task between sender and worker, and no message is bound to a worker before it is
//! started. With [`ordered_by`](PoolBuilder::ordered_by), messages of one key are handled one at a
//! time, in order. A key whose handler suspends, or that waits for a retry, waits in its own lane
//! and blocks no other key. If a worker keeps state for each of its keys,
//! [`sticky_by`](PoolBuilder::sticky_by) gives it all messages of a key ([`sticky`]).
//!
//! # Ways in
//! | from | with |
//! |---|---|
//! | a task | [`send`](Address::send), [`send_many`](Address::send_many), [`call`](Address::call): they wait for room |
//! | anywhere | [`try_send`](Address::try_send), [`try_send_many`](Address::try_send_many): they never wait |
//! | a place that is kept | [`reserve`](Address::reserve) |
//! | a stream | [`sink`](Address::sink) |
//! | a server, a layer of tower | [`service`](Address::service) |
//! | several workers at once | [`gather`] |
//! | a clock | [`send_after`](Address::send_after), [`send_every`](Address::send_every) |
//!
//! # Order
//! A worker gets the messages of one address and class in the order in which they were accepted; a
//! retry comes later. Beyond that, without keys:
//!
//! | a pool | handles |
//! |---|---|
//! | that was built with one worker (or none), while it has one | in the order of acceptance, from all senders, per class |
//! | that was built with several and has shrunk to one | in order per address; addresses interleaved |
//! | of several workers | in no promised order |
//!
//! The queues of a pool are made when it is built, several for each initial worker, and a pool that
//! shrinks to one worker still serves all of them: if they were joined later, every sender would
//! have to look up its queue. If order across senders matters, build the pool with one worker; it
//! may grow, and is one line again when it has shrunk. With a [`policy`] that chooses a worker, the
//! line is that worker's mailbox; messages from the mailboxes of workers that have left are handled
//! in between.
//!
//! # Calls in a circle
//! If a handler calls its own pool and no other worker is free to answer, it gets
//! [`WouldDeadlock`](crate::CallError::WouldDeadlock). A circle of several pools is not detected,
//! because every call between pools would have to check all others: if a handler of pool *a* calls
//! pool *b*, a handler there calls *a*, and each has one worker, both wait forever. With more
//! workers it takes as many such calls at once. Remedies:
//!
//! * **A time limit** for calls that handlers make: [`call_timeout`](Address::call_timeout). The
//!   circle then ends with [`TimedOut`](crate::CallError::TimedOut).
//! * **Sends instead of calls** in one direction: *b* sends its question and returns; the answer
//!   comes as a message.
//! * **A later reply**: the handler takes the port of its own caller
//!   ([`Delivery::take_reply_port`](crate::Delivery::take_reply_port)), makes the call in a task,
//!   and is free for the next message at once.
//!
//! ```
//! # use greenroom::{prelude::*, CallError};
//! # use std::{sync::{Arc, OnceLock}, time::Duration};
//! /// Asks the other before it answers.
//! struct Desk {
//!     other: Arc<OnceLock<greenroom::Address<u8, u8, String>>>,
//! }
//!
//! impl Actor for Desk {
//!     type Message = u8;
//!     type Reply = u8;
//!     type Error = String;
//!
//!     async fn handle(&mut self, hops: u8, _cx: &mut Context<Self>) -> Result<u8, String> {
//!         let Some(left) = hops.checked_sub(1) else { return Ok(0) };
//!         let other = self.other.get().ok_or("alone")?;
//!         let answer = other.call_timeout(left, Duration::from_millis(20)).await;
//!         answer.map_err(|error| error.to_string())
//!     }
//! }
//!
//! # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let others = [Arc::default(), Arc::default()];
//! let [of_a, of_b] = others.clone();
//! let a = Pool::new(move |_slot| Desk { other: Arc::clone(&of_a) }).workers(1).spawn().await?;
//! let b = Pool::new(move |_slot| Desk { other: Arc::clone(&of_b) }).workers(1).spawn().await?;
//! let _ = (others[0].set(b.address()), others[1].set(a.address()));
//! assert_eq!(a.call(1).await, Ok(0));
//! // From a to b, and back to the only worker of a, which waits for b.
//! assert!(matches!(a.call(2).await, Err(CallError::Failed(_))));
//! # Ok(()) }
//! ```
//!
//! # Senders that block their thread
//! A message is handled by a task of the runtime. A sender that shares its thread with the worker
//! and computes or blocks after a send, without an await, delays that message, and with one worker
//! all that follow: on a runtime of one thread until it awaits, on several until another thread
//! takes the worker over. Let it await something after the send, block in
//! [`spawn_blocking`](tokio::task::spawn_blocking), or give the pool threads of its own with
//! [`dedicated_threads`](PoolBuilder::dedicated_threads).
//!
//! # Price
//! In tasks that share their threads with the workers, a sender whose messages pile up yields from
//! time to time, so even a `send` that finds room may let other tasks run. On several threads, one
//! thread of the process checks all pools with awake workers every two milliseconds.
//!
//! # Limits and size
//! [`limits`] and [`autoscale`] decide how fast and how many messages run at once, and how many
//! workers there are. A pool obeys them if it is set up to: [`rate`](PoolBuilder::rate),
//! [`concurrency`](PoolBuilder::concurrency), [`adaptive`](PoolBuilder::adaptive),
//! [`autoscale`](PoolBuilder::autoscale). An [`advisor`] suggests changes of the settings every few
//! minutes: [`advise`](PoolBuilder::advise).

use std::{ops::Deref, sync::Arc, time::Duration};

mod admin;
pub mod batch;
mod builder;
mod bytes;
pub(crate) mod clock;
mod controllers;
mod core;
mod desk;
mod env;
mod erased;
mod failed;
pub(crate) mod frame;
#[cfg(feature = "gather")]
pub mod gather;
pub(crate) mod handoff;
pub mod keeper;
pub mod keys;
pub(crate) mod left_over;
mod letters;
mod lifecycle;
pub mod limits;
mod membership;
pub(crate) mod not_accepted;
pub(crate) mod outgoing;
mod panic_message;
pub mod policy;
mod pool_payload;
mod push;
mod routing;
pub mod shares;
mod sharing;
pub mod stats;
pub mod sticky;
mod stop;
#[cfg(feature = "supervision")]
mod supervised;
mod withdrawal;
mod worker;
mod worker_handle;
mod worker_sender;

#[cfg(feature = "tower")]
pub use crate::address::service;
pub use crate::{
    address::{Address, Call, Calling, Permit, Sending, WeakAddress},
    control::{advisor, autoscale},
    size::Inbox,
};
pub use admin::PoolAdmin;
pub use admin::change::{Change, ChangeReport};
pub use admin::error::AdminError;
pub use builder::PoolBuilder;
pub use builder::overflow::Overflow;
pub(crate) use bytes::Claim;
pub(crate) use clock::timed::later;
#[cfg(test)]
pub(crate) use core::Core;
pub(crate) use failed::Failed;
pub(crate) use handoff::pool_exchange::PoolHandoffSlot;
pub use letters::PoolDeadLetters;
pub use membership::not_ready::NotReady;
#[cfg(feature = "supervision")]
pub(crate) use membership::restart::RestartLog;
pub use membership::restart::{Restarts, WhenExhausted};
pub(crate) use membership::slot_state::SlotState;
pub(crate) use outgoing::Outgoing;
pub use stats::PoolStats;
pub use stop::{Stop, StopReport, StopSummary};
pub(crate) use worker::refusals::Refusals;
pub use worker_handle::Worker;

use self::{
    frame::{figures::figures, ready::ready},
    keys::{Keys, WrongKeyType},
};
use crate::{Actor, pool::admin::control::Control};

/// A running pool: an [`Address`] (to which it dereferences) together with the right to inspect and
/// stop it.
///
/// Dropping the pool, its clones and all its addresses handles the queued messages,
/// then stops the workers.
///
/// | to hold | what it can do | keeps the pool running |
/// |---|---|---|
/// | a clone of the pool | all of it | yes |
/// | an [`Address`] ([`address`](Self::address)) | send and call; knows no actor type | yes |
/// | a [`PoolAdmin`] ([`admin`](Self::admin)) | look, change and stop | no |
///
/// As with addresses, a clone is another sender: its messages are not in order with
/// those of the original.
///
/// ```
/// # use greenroom::prelude::*;
/// # struct Clerk; impl Actor for Clerk { type Message = u8; type Reply = u8; type Error = ();
/// # async fn handle(&mut self, page: u8, _: &mut Context<Self>) -> Result<u8, ()> { Ok(page) } }
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let pool = Pool::new(|_slot| Clerk).workers(2).spawn().await?;
/// let requests = pool.clone(); // for a task of its own
/// let answered = tokio::spawn(async move { requests.call(7).await });
/// assert_eq!(answered.await?, Ok(7));
/// assert_eq!(pool.stats().handled, 1);
/// # Ok(()) }
/// ```
pub struct Pool<A: Actor> {
    address: Address<A::Message, A::Reply, A::Error>,
    control: Arc<dyn Control<A>>,
}

impl<A: Actor> Pool<A> {
    fn spawned<K>(core: Arc<core::Core<A, K>>) -> Self
    where
        K: std::hash::Hash + Eq + Send + Sync + 'static,
    {
        let address = Address::new(core.clone());
        Self { address, control: core }
    }

    /// An address for senders.
    pub fn address(&self) -> Address<A::Message, A::Reply, A::Error> {
        self.address.clone()
    }

    /// The figures of the pool. Takes the lock of each shard for a moment.
    pub fn stats(&self) -> PoolStats {
        figures(&*self.control)
    }

    /// Messages that hold a place of the capacity: queued, or waiting for a retry. Like
    /// [`PoolStats::depth`], but without the cost of the other figures: for frequent calls, or for
    /// many pools. Takes the lock of each shard for a moment.
    ///
    /// ```
    /// # use greenroom::prelude::*;
    /// # struct Clerk; impl Actor for Clerk { type Message = u8; type Reply = u8; type Error = ();
    /// # async fn handle(&mut self, page: u8, _: &mut Context<Self>) -> Result<u8, ()> { Ok(page) } }
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let pool = Pool::new(|_slot| Clerk).workers(1).spawn().await?;
    /// pool.try_send(7)?;
    /// // Nobody has had a turn to handle it.
    /// assert_eq!((pool.depth(), pool.stats().depth()), (1, 1));
    /// # Ok(()) }
    /// ```
    pub fn depth(&self) -> u64 {
        self.control.depth() as u64
    }

    /// Messages that could not be handled, unless a hook takes them
    /// ([`on_dead_letter`](PoolBuilder::on_dead_letter)): list, inspect, replay and remove them.
    pub fn dead_letters(&self) -> PoolDeadLetters<A::Message, A::Reply, A::Error> {
        PoolDeadLetters::new(self.control.dead_letters(), self.address.clone())
    }

    /// The keys of a pool with [`ordered_by`](PoolBuilder::ordered_by): their states and the
    /// reasons, the hottest keys, and those that wait for an operator.
    ///
    /// # Errors
    /// When the keys are of another type, or there are none.
    pub fn keys<K: std::hash::Hash + Eq + Send + Sync + 'static>(
        &self,
    ) -> Result<Keys<A, K>, WrongKeyType> {
        Keys::of(&self.control)
    }

    /// Waits until this many workers run: [`spawn`](PoolBuilder::spawn) returns as soon as one
    /// does, and the others follow. Each start sends a notification, so nothing is polled and
    /// workers are not asked.
    ///
    /// A worker runs once its `started` hook has returned. A worker that has died does not run
    /// until it is started again.
    ///
    /// ```
    /// # use greenroom::prelude::*;
    /// # use std::time::Duration;
    /// struct Connected;
    ///
    /// impl Actor for Connected {
    ///     type Message = ();
    ///     type Reply = ();
    ///     type Error = std::io::Error;
    ///
    ///     async fn started(&mut self, cx: &mut Context<Self>) -> Result<(), Self::Error> {
    ///         tokio::time::sleep(Duration::from_millis(cx.slot() as u64)).await; // connects
    ///         Ok(())
    ///     }
    ///
    ///     async fn handle(&mut self, (): (), _: &mut Context<Self>) -> Result<(), Self::Error> {
    ///         Ok(())
    ///     }
    /// }
    ///
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let pool = Pool::new(|_slot| Connected).workers(4).spawn().await?;
    /// pool.ready(4, Duration::from_secs(10)).await?;
    /// assert_eq!(pool.broadcast().workers().len(), 4);
    ///
    /// let error = pool.ready(5, Duration::from_millis(5)).await.unwrap_err();
    /// assert_eq!(error.to_string(), "4 of 5 workers run");
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// [`NotReady`], with the number that run and the error of the last failed start: when the time
    /// is over, or at once when the pool is stopping.
    ///
    /// # Cancel safety
    /// A dropped future changes nothing.
    pub async fn ready(&self, workers: usize, within: Duration) -> Result<(), NotReady> {
        ready(&*self.control, workers, within).await
    }

    /// A handle to inspect and change the pool, apart from its work.
    pub fn admin(&self) -> PoolAdmin<A> {
        PoolAdmin::new(self.control.clone())
    }

    /// Stops the pool, and returns the messages that were not handled. Works while the pool is
    /// saturated and handlers are stuck: a graceful stop returns half a second after its deadline
    /// at the latest. A worker of the pool would wait for its own end: from a handler or a hook of
    /// the pool, this call only starts the stop, and returns nothing.
    ///
    /// # Cancel safety
    /// A dropped future has closed the pool; call again to see it end.
    pub async fn stop(&self, how: Stop) -> StopReport<A::Message> {
        self.control.clone().stop(how).await
    }
}

impl_clone!([A: Actor] Pool<A>: address, control);

#[cfg(feature = "gather")]
impl<A: Actor> Pool<A> {
    /// The pool as an address that gives each message to all of its live workers, a copy each. A
    /// call then has an answer of another type; messages and calls to one worker still go through
    /// the pool's own address.
    ///
    /// ```
    /// # use greenroom::prelude::*;
    /// # struct Clerk; impl Actor for Clerk { type Message = u8; type Reply = u8; type Error = ();
    /// # async fn handle(&mut self, page: u8, _: &mut Context<Self>) -> Result<u8, ()> { Ok(page) } }
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let pool = Pool::new(|_slot| Clerk).workers(1).spawn().await?;
    /// let gathered = pool.broadcast().call(7).all().await?;
    /// assert!(gathered.is_complete());
    /// # Ok(()) }
    /// ```
    pub fn broadcast(&self) -> gather::BroadcastAddress<A::Message, A::Reply, A::Error>
    where
        A::Message: Clone,
    {
        gather::BroadcastAddress::new(self.address())
    }

    /// The pool as an address that divides each request among its live workers and joins
    /// their answers into one.
    pub fn split_join<S>(
        &self,
        settings: gather::SplitJoin<A::Message, A::Reply, A::Error, S>,
    ) -> gather::SplitJoinAddress<A::Message, A::Reply, A::Error, S> {
        settings.among(self.address())
    }
}

impl<A: Actor> Deref for Pool<A> {
    type Target = Address<A::Message, A::Reply, A::Error>;

    fn deref(&self) -> &Self::Target {
        &self.address
    }
}

impl_debug!([A: Actor] Pool<A>, |this| stats: this.stats());
