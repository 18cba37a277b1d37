//! Administration, apart from work: sizes, slots, figures and the end of a pool.

pub(crate) mod change;
pub(crate) mod control;
pub(crate) mod error;

use std::{convert::Infallible, hash::Hash, sync::Arc, time::Duration};

use super::{
    Worker,
    core::{Core, adopt::adopt},
    frame::{
        AnyCore,
        capacity::set_capacity,
        changes,
        figures::{figures, worker_figures},
        ready::ready,
        snapshot::inspect,
    },
    keys::{Keys, WrongKeyType},
    letters::PoolDeadLetters,
    limits::Rate,
    membership::not_ready::NotReady,
    shares::{NoShares, Shares},
    stats::{Latencies, LatencySnapshot, PoolStats, WorkerStats},
    stop::{Stop, StopReport},
};
use crate::{
    Actor, Delivery,
    address::Address,
    control::advisor::{Advice, Advisor},
    inspect::{Inspection, Items},
    pool::admin::control::Control,
};
use change::Change;
use error::AdminError;

/// A pool's administration. Each method answers in bounded time, however busy the pool is, and says
/// which change has begun or why none has. Holding it does not keep the pool running.
///
/// # Who is in which list
/// A worker is *live* once its `started` hook has returned. Until then, and after each death until
/// it runs again, it is *starting*; [`Pool::ready`](crate::Pool::ready) waits for it.
///
/// | | live | starting | disabled | leaving | vacant slots |
/// |---|---|---|---|---|---|
/// | [`workers`](Self::workers), and [`Worker::status`] says which | yes | yes | | | |
/// | [`BroadcastAddress::workers`](crate::gather::BroadcastAddress::workers) | yes | | | | |
/// | [`PoolStats::live`]; [`PoolStats::starting`] of them start | yes | yes | | | |
/// | [`PoolStats::configured`] | yes | yes | yes | | |
/// | [`inspect`](Self::inspect), with a status each | yes | yes | yes | yes | |
/// | [`worker_stats`](Self::worker_stats), with a status each | yes | yes | yes | yes | yes |
///
/// ```
/// # use greenroom::prelude::*;
/// # use std::time::Duration;
/// # struct Clerk; impl Actor for Clerk { type Message = u8; type Reply = u8; type Error = ();
/// # async fn handle(&mut self, page: u8, _: &mut Context<Self>) -> Result<u8, ()> { Ok(page) } }
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let pool = Pool::new(|_slot| Clerk).workers(2).bounds(1..=8).spawn().await?;
/// let change = pool.admin().resize(4)?;
/// assert_eq!((change.added(), change.size()), (&[2, 3][..], 4));
/// let report = change.done(Duration::from_secs(5)).await;
/// assert!(report.is_complete());
/// # Ok(()) }
/// ```
pub struct PoolAdmin<A: Actor> {
    control: Arc<dyn Control<A>>,
}

impl<A: Actor> PoolAdmin<A> {
    pub(super) fn new(control: Arc<dyn Control<A>>) -> Self {
        Self { control }
    }

    fn pool(&self) -> Arc<dyn AnyCore> {
        self.control.clone()
    }

    /// Begins to start this many more workers, after the others. A worker that cannot be started is
    /// retried with backoff; the change reports its first attempt.
    ///
    /// # Errors
    /// The pool is not running, or would have more workers than allowed.
    pub fn add(&self, workers: usize) -> Result<Change, AdminError> {
        changes::add(&self.pool(), workers)
    }

    /// Includes an actor or another pool as a worker: it receives whole deliveries, one at a time,
    /// as fast as it has room for them, and its replies go straight to the callers. It stays until
    /// it is removed or has stopped, and then leaves by itself. This pool does not stop it.
    ///
    /// A message that it does not take (it has stopped, has no workers, or its policy or keys
    /// forbid it) goes to another worker at once. If none takes it, its caller gets the reason, and
    /// a send becomes a dead letter with the reason
    /// [`NoWorkers`](crate::DeadLetterReason::NoWorkers). A pool that
    /// [holds](crate::PoolBuilder::hold_when_empty) its messages asks all of its workers again ten
    /// times a second, as long as they only lack workers. If the last worker leaves because it has
    /// stopped, queued messages become dead letters as well.
    ///
    /// ```
    /// # use greenroom::prelude::*;
    /// # struct Clerk; impl Actor for Clerk { type Message = u8; type Reply = u8; type Error = ();
    /// # async fn handle(&mut self, page: u8, _: &mut Context<Self>) -> Result<u8, ()> { Ok(page) } }
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let all = Pool::new(|_slot| Clerk).workers(0).spawn().await?;
    /// let some = Pool::new(|_slot| Clerk).workers(2).spawn().await?;
    /// all.admin().adopt(some.address())?.done(std::time::Duration::from_secs(1)).await;
    /// assert_eq!(all.call(7).await, Ok(7));
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// The pool is not running, has as many workers as allowed, keeps order per key, or would
    /// contain itself.
    pub fn adopt(
        &self,
        other: Address<A::Message, A::Reply, A::Error>,
    ) -> Result<Change, AdminError> {
        self.take_in(other, false)
    }

    /// Like [`adopt`](Self::adopt), for an actor or pool that belongs to this pool from now on:
    /// once the pool has ended, for whatever reason, the member handles the messages that it
    /// received, and stops, as if its last address was dropped. The stop of the pool does not wait
    /// for that. A pool that was killed drops the handlers of its member as well. A member that
    /// leaves earlier, because it is [deleted](Self::delete) or removed, continues by itself.
    ///
    /// ```
    /// # use greenroom::prelude::*;
    /// # struct Clerk;
    /// # impl Actor for Clerk {
    /// # type Message = u8; type Reply = u8; type Error = ();
    /// # async fn handle(&mut self, n: u8, _: &mut Context<Self>) -> Result<u8, ()> { Ok(n) }
    /// # }
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let all = Pool::new(|_slot| Clerk).workers(0).spawn().await?;
    /// let some = Pool::new(|_slot| Clerk).workers(2).spawn().await?;
    /// all.admin().put(some.address())?.done(std::time::Duration::from_secs(1)).await;
    /// assert_eq!(all.call(7).await, Ok(7));
    /// all.stop(Stop::Now).await;
    /// some.erase().ended().await;
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Those of `adopt`.
    pub fn put(
        &self,
        member: Address<A::Message, A::Reply, A::Error>,
    ) -> Result<Change, AdminError> {
        self.take_in(member, true)
    }

    fn take_in(
        &self,
        other: Address<A::Message, A::Reply, A::Error>,
        is_owned: bool,
    ) -> Result<Change, AdminError> {
        // Not through `Control`: only programs that adopt should compile it.
        let core = self.control.clone().typed().downcast::<Core<A, Infallible>>();
        let core = core.map_err(|_| match self.control.frame().lifecycle.check_running() {
            Ok(()) => AdminError::Ordered,
            Err(ended) => ended,
        })?;
        changes::change(&self.pool(), |told| adopt(&core, other, is_owned, told))
    }

    /// Tells a member to leave that was [put](Self::put) or [adopted](Self::adopt): it finishes
    /// passing on its message, is then no worker of this pool any more, and continues by itself. If
    /// it was included several times, it leaves once.
    ///
    /// # Errors
    /// Those of [`remove`](Self::remove), and if the address is not that of a member.
    pub fn delete(
        &self,
        member: &Address<A::Message, A::Reply, A::Error>,
    ) -> Result<Change, AdminError> {
        changes::delete(&self.pool(), &member.erase())
    }

    /// Tells this many workers to leave: disabled ones first, then idle ones, then those that
    /// joined last. Each finishes the message in hand. If there are fewer, all of them leave, and
    /// the change says so.
    ///
    /// A pool whose last worker was removed refuses messages, unless it
    /// [holds](crate::PoolBuilder::hold_when_empty) them. Messages that are already queued wait for
    /// the next worker that is [added](Self::add) or adopted, or for a stop, which returns them. So
    /// do their callers: give a call a time limit if that may take long.
    ///
    /// # Errors
    /// The pool is not running, or would have fewer workers than allowed.
    pub fn remove(&self, workers: usize) -> Result<Change, AdminError> {
        changes::remove(&self.pool(), workers)
    }

    /// Tells the worker in this slot to leave.
    ///
    /// # Errors
    /// Those of [`remove`](Self::remove), and if there is no such worker.
    pub fn remove_worker(&self, slot: usize) -> Result<Change, AdminError> {
        changes::remove_worker(&self.pool(), slot)
    }

    /// Adds or removes workers until there are `workers` of them.
    ///
    /// A pool that was built with several workers and is shrunk to one handles the messages of one
    /// address in order, but does not keep one order over all addresses. A pool that was built with
    /// one worker does, whenever it has one (see [Order](crate::pool#order)).
    ///
    /// # Errors
    /// The pool is not running, or cannot have that many workers.
    pub fn resize(&self, workers: usize) -> Result<Change, AdminError> {
        changes::resize(&self.pool(), workers)
    }

    /// Starts a worker in a disabled slot, with a new restart budget.
    ///
    /// # Errors
    /// The pool is not running, or there is no such slot, or it is not disabled.
    pub fn enable(&self, slot: usize) -> Result<Change, AdminError> {
        changes::enable(&self.pool(), slot)
    }

    /// Gives the pool this advisor, in place of its present one, or none (`None`). A period begins
    /// with it, and earlier advice is forgotten; see
    /// [`PoolBuilder::advise`](crate::PoolBuilder::advise).
    ///
    /// # Errors
    /// The pool is not running, or a setting is out of range; nothing has changed then.
    pub fn set_advisor(&self, advisor: impl Into<Option<Advisor>>) -> Result<(), AdminError> {
        changes::set_advisor(&self.pool(), advisor.into())
    }

    /// Sets how many messages in total may be accepted and not started, whatever the size of the
    /// pool; [`PoolBuilder::capacity`](crate::PoolBuilder::capacity) sets it at the start. New room
    /// goes to waiting senders at once, first come, first served. If more messages are queued than
    /// there is room for, none is accepted until they have gone; queued messages stay, in their
    /// order.
    ///
    /// In a pool with a policy that chooses a worker, each worker's own mailbox keeps its size. The
    /// bound behind one key keeps its value from the start.
    ///
    /// ```
    /// # use greenroom::prelude::*;
    /// # struct Clerk; impl Actor for Clerk { type Message = u8; type Reply = u8; type Error = ();
    /// # async fn handle(&mut self, page: u8, _: &mut Context<Self>) -> Result<u8, ()> { Ok(page) } }
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let pool = Pool::new(|_slot| Clerk).workers(2).capacity(10).spawn().await?;
    /// pool.admin().set_capacity(500)?;
    /// assert_eq!(pool.stats().capacity, 500);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// The pool is not running, or `messages` is not within 1 and 100,000,000.
    pub fn set_capacity(&self, messages: usize) -> Result<(), AdminError> {
        set_capacity(&*self.control, messages)
    }

    /// Limits the rate at which messages are started, or lifts the limit
    /// (`None`). The pool must have been built with a limit, or with
    /// [`adjustable_limits`](crate::PoolBuilder::adjustable_limits). A worker that waits for a
    /// token gets it at the new rate. It holds while a pool drains as well. Once the pool has
    /// ended, nothing changes, and the result is `Ok`.
    ///
    /// ```
    /// # use greenroom::{limits::Rate, prelude::*};
    /// # struct Clerk; impl Actor for Clerk { type Message = u8; type Reply = u8; type Error = ();
    /// # async fn handle(&mut self, page: u8, _: &mut Context<Self>) -> Result<u8, ()> { Ok(page) } }
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let pool = Pool::new(|_slot| Clerk).workers(2).rate(Rate::per_second(10)).spawn().await?;
    /// pool.admin().set_rate(Rate::per_second(500))?;
    /// pool.admin().set_rate(None)?; // as fast as its workers are
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// The pool was built without limits, or this one is out of range; nothing has changed then.
    pub fn set_rate(&self, rate: impl Into<Option<Rate>>) -> Result<(), AdminError> {
        let rate = rate.into();
        changes::set_limit(self.control.frame(), "rate", |gate| gate.set_rate(rate))
    }

    /// Limits how many messages are in hand at once, or lifts the limit to the number
    /// of workers (`None`). The pool must have been built with a limit, or with
    /// [`adjustable_limits`](crate::PoolBuilder::adjustable_limits). If more are in hand than a
    /// lower limit allows, none is started until they have gone. Messages that a pool without any
    /// limit has in hand are not counted by the new limit. Once the pool has ended, nothing
    /// changes, and the result is `Ok`.
    ///
    /// # Errors
    /// The pool was built without limits or with an adaptive one, or the given limit is 0. Nothing
    /// has changed.
    pub fn set_concurrency(&self, messages: impl Into<Option<usize>>) -> Result<(), AdminError> {
        let (messages, limit) = (messages.into(), "fixed concurrency limit");
        changes::set_limit(self.control.frame(), limit, |gate| gate.set_concurrency(messages))
    }

    /// The shares of a pool with [`shared_by`](crate::PoolBuilder::shared_by): to inspect, limit,
    /// hold and pause.
    ///
    /// # Errors
    /// The pool was built without.
    pub fn shares(&self) -> Result<Shares<A>, NoShares> {
        Shares::of(self.control.clone())
    }

    /// The workers that run or are being started, in the order in which they joined, each with its
    /// own address; [`Worker::status`] says which of the two. Messages to a worker that is being
    /// started wait for it. These addresses keep the pool running, like others.
    pub fn workers(&self) -> Vec<Worker<A::Message, A::Reply, A::Error>> {
        self.control.clone().workers()
    }

    /// Waits until this many workers run. Like [`Pool::ready`](crate::Pool::ready).
    ///
    /// # Errors
    /// When the time is over, or at once if the pool is stopping.
    ///
    /// # Cancel safety
    /// A dropped future changes nothing.
    pub async fn ready(&self, workers: usize, within: Duration) -> Result<(), NotReady> {
        ready(&*self.control, workers, within).await
    }

    /// The figures of the pool. Takes the lock of each shard for a moment.
    pub fn stats(&self) -> PoolStats {
        figures(&*self.control)
    }

    /// How long messages waited, were in hand, and were in the pool, in buckets. Takes, for some
    /// microseconds, a lock that each measured message takes.
    pub fn latencies(&self) -> Latencies {
        self.control.frame().telemetry.measured.latencies()
    }

    /// Messages that hold a place of the capacity. Like [`Pool::depth`](crate::Pool::depth).
    pub fn depth(&self) -> u64 {
        self.control.depth() as u64
    }

    /// Withdraws the waiting messages that `is_such` selects: those that are queued, that wait
    /// behind a busy key or for a retry, that are parked, and those in the mailboxes of single
    /// workers. They are never started, and free their room at once. Returns their number.
    ///
    /// A withdrawn message is dropped, counts as [`withdrawn`](PoolStats::withdrawn) and is no dead
    /// letter; its caller gets [`CallError::Withdrawn`](crate::CallError::Withdrawn). The other
    /// messages keep their order. A message in a handler continues, and so does one with which a
    /// worker is about to call it or collects a [batch](crate::PoolBuilder::batches). A parked key
    /// stays parked without its failed message, as long as others wait in its line, and is released
    /// when none is left.
    ///
    /// # Messages that arrive meanwhile
    /// The call covers messages that were accepted before it and wait. It does not cover messages
    /// that are queued later, that fail during the call and are retried, or that are just moving
    /// from one place to another, such as from the mailbox of a worker that leaves to the queue. To
    /// keep all of these from being started, build the pool with
    /// [`starts_if`](crate::PoolBuilder::starts_if): first make it return false, then withdraw. A
    /// collecting batch also gives up unwanted messages.
    ///
    /// # Price
    /// Each waiting message is examined, and nothing of its shard is started until then. A pool
    /// that drops the [oldest](crate::Overflow::DropOldest) message for a new one may find none to
    /// drop during that time, and refuse the new one. Pools that do not call it pay nothing.
    ///
    /// `is_such` is called on this thread, under no lock, perhaps more than once for a message. It
    /// may ask the pool for its figures and send to it. If it calls `withdraw` on the same pool,
    /// that finds nothing. While another thread withdraws, this call waits for it.
    ///
    /// ```
    /// # use greenroom::prelude::*;
    /// # struct Clerk; impl Actor for Clerk { type Message = (&'static str, u8); type Reply = (); type Error = ();
    /// # async fn handle(&mut self, _: Self::Message, _: &mut Context<Self>) -> Result<(), ()> { std::future::pending().await } }
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let pool = Pool::new(|_slot| Clerk).workers(1).capacity(3).spawn().await?;
    /// for page in [("draft", 1), ("draft", 2), ("final", 3)] {
    ///     pool.send(page).await?;
    /// }
    /// assert_eq!(pool.admin().withdraw(|(kind, _)| *kind == "draft"), 2);
    /// assert_eq!((pool.stats().queued, pool.stats().withdrawn), (1, 2));
    /// # Ok(()) }
    /// ```
    ///
    /// # Panics
    /// If `is_such` panics, after the messages that it had selected by then were withdrawn; all
    /// others stay in their places.
    pub fn withdraw(&self, mut is_such: impl FnMut(&A::Message) -> bool) -> usize {
        self.control.withdraw(&mut is_such)
    }

    /// The keys of the pool. Like [`Pool::keys`](crate::Pool::keys).
    ///
    /// ```
    /// # use greenroom::{PoolAdmin, prelude::*};
    /// # struct Clerk; impl Actor for Clerk { type Message = u32; type Reply = (); type Error = ();
    /// # async fn handle(&mut self, _: u32, _: &mut Context<Self>) -> Result<(), ()> { Ok(()) } }
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let pool = Pool::new(|_slot| Clerk).ordered_by(|page: &u32| page % 10).spawn().await?;
    /// let admin: PoolAdmin<Clerk> = pool.admin(); // for whoever looks after the pool
    /// assert_eq!(admin.keys::<u32>()?.counts().parked, 0);
    /// assert!(admin.dead_letters().is_empty());
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// If the keys have another type, or there are none.
    pub fn keys<K: Hash + Eq + Send + Sync + 'static>(&self) -> Result<Keys<A, K>, WrongKeyType> {
        Keys::of(&self.control)
    }

    /// The messages that could not be handled. Like
    /// [`Pool::dead_letters`](crate::Pool::dead_letters): the result contains an address for
    /// replays, which keeps the pool running.
    pub fn dead_letters(&self) -> PoolDeadLetters<A::Message, A::Reply, A::Error> {
        PoolDeadLetters::new(self.control.dead_letters(), self.control.clone().address())
    }

    /// The pool as one that gives each message to all of its live workers. Like
    /// [`Pool::broadcast`](crate::Pool::broadcast): the result keeps the pool running, like an
    /// address.
    #[cfg(feature = "gather")]
    pub fn broadcast(&self) -> super::gather::BroadcastAddress<A::Message, A::Reply, A::Error>
    where
        A::Message: Clone,
    {
        super::gather::BroadcastAddress::new(self.control.clone().address())
    }

    /// The latest advice of the pool's [advisor](crate::pool::advisor). `None` if it has no advisor
    /// ([`PoolBuilder::advise`](crate::PoolBuilder::advise)), or before the first period has ended.
    pub fn advice(&self) -> Option<Advice> {
        self.control.frame().controllers.advising.lock().advice.as_deref().copied()
    }

    /// The figures of each slot of the pool, by slot, including disabled and vacant slots.
    pub fn worker_stats(&self) -> Vec<WorkerStats> {
        worker_figures(&*self.control)
    }

    /// All measurements so far; [`LatencySnapshot::since`] gives the difference between two
    /// snapshots, such as percentiles of the last second. The percentiles of [`stats`](Self::stats)
    /// cover all the time since the start. Copies the measurements.
    pub fn latency_snapshot(&self) -> LatencySnapshot {
        self.control.frame().telemetry.measured.snapshot()
    }

    /// Inspects the pool and its workers: the runtime's own figures, and the values that workers
    /// have published ([`Context::publish`](crate::Context::publish)), as far as requested. No
    /// worker is asked, so it answers at once even if the pool is full and its workers are stuck.
    ///
    /// ```
    /// # use greenroom::{inspect::Items, prelude::*};
    /// struct Cache;
    ///
    /// impl Actor for Cache {
    ///     type Message = u64;
    ///     type Reply = ();
    ///     type Error = std::convert::Infallible;
    ///
    ///     async fn handle(&mut self, page: u64, cx: &mut Context<Self>) -> Result<(), Self::Error> {
    ///         let _ = cx.publish("last page", page);
    ///         std::future::pending().await
    ///     }
    /// }
    ///
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let pool = Pool::new(|_slot| Cache).workers(1).spawn().await?;
    /// pool.send(7).await?;
    /// # while pool.stats().in_hand == 0 { tokio::task::yield_now().await; }
    /// let seen = pool.admin().inspect(&Items::All);
    /// assert_eq!(seen.workers[0].value("last page"), Some(&7_u64.into()));
    /// assert!(seen.workers[0].figures.is_some_and(|figures| figures.in_hand));
    /// # Ok(()) }
    /// ```
    pub fn inspect(&self, wanted: &Items) -> Inspection {
        inspect(&*self.control, wanted)
    }

    /// Stops the pool; see [`Pool::stop`](crate::Pool::stop).
    ///
    /// # Cancel safety
    /// A dropped future has closed the pool once it was polled; call again to see it end.
    pub async fn stop(&self, how: Stop) -> StopReport<A::Message> {
        self.control.clone().stop(how).await
    }

    /// Stops the pool like [`stop`](Self::stop), and returns unhandled messages as deliveries. A
    /// call among them is still open: [forward](Delivery::forward) it, answer it through its
    /// [port](Delivery::take_reply_port), or drop it, which its caller sees as
    /// [`CallError::Dropped`](crate::CallError::Dropped). Do not wait for a caller of the pool
    /// while you hold the report: it waits for you. With `stop`, callers get the error that the
    /// pool has stopped, so that cannot happen.
    ///
    /// ```
    /// # use greenroom::prelude::*;
    /// # struct Clerk;
    /// # impl Actor for Clerk {
    /// # type Message = u64; type Reply = u64; type Error = ();
    /// # async fn handle(&mut self, n: u64, _: &mut Context<Self>) -> Result<u64, ()> { Ok(n) }
    /// # }
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let old = Pool::new(|_slot| Clerk).spawn().await?;
    /// let new = Pool::new(|_slot| Clerk).spawn().await?;
    /// let address = old.address();
    /// let caller = tokio::spawn(async move { address.call(7).await });
    /// # while old.stats().accepted == 0 { tokio::task::yield_now().await; }
    /// for mut call in old.admin().stop_keeping_calls(Stop::Now).await.left_over {
    ///     call.forward(&new).await?;
    /// }
    /// assert_eq!(caller.await?, Ok(7));
    /// # Ok(()) }
    /// ```
    ///
    /// # Cancel safety
    /// That of [`stop`](Self::stop); callers then get the error that the pool has stopped.
    pub async fn stop_keeping_calls(
        &self,
        how: Stop,
    ) -> StopReport<Delivery<A::Message, A::Reply, A::Error>> {
        self.control.clone().stop_keeping_calls(how).await
    }
}

impl_clone!([A: Actor] PoolAdmin<A>: control);

impl_debug!([A: Actor] PoolAdmin<A>, |this| stats: this.stats());
