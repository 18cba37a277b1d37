//! From a factory to a running pool.

use std::{convert::Infallible, hash::Hash, ops::RangeInclusive, sync::Arc, time::Duration};

mod bounds;
pub(crate) mod config;
pub(crate) mod constructors;
pub(crate) mod functions;
mod keeper;
mod keys;
pub(crate) mod overflow;
pub(crate) mod settings;
pub(crate) mod shares;
mod sticky;
pub(crate) mod threads;

use super::{
    Pool,
    batch::{batches::Batches, bytes::BatchBytes, hand::in_batches::InBatches},
    bytes::ByteBound,
    core::{Core, PushOf, SharingOf, assign::ByTable, dispatch::ByPolicy, shares::ByShare},
    frame::start::start_all,
    limits::{Adaptive, AtOnce, Rate},
    membership::restart::{Restarts, WhenExhausted},
    policy::Policy,
    worker::Factory,
};
#[cfg(feature = "supervision")]
use crate::pool::{
    controllers::{advisor, autoscale},
    frame::{start::watch, task_guard::start_clock},
};
use crate::{
    Actor, Backoff, DeadLetter, FailurePolicy, FailureTable, FinalAction, Layer, PoolEvents,
    RestartPolicy, Rule, SpawnError,
    chance::random_seed,
    control::{advisor::Advisor, autoscale::Autoscale},
    layer::Layered,
};
use bounds::check_bytes;
use config::{LimitConfig, PoolConfig, checked::Surroundings};
use functions::{CopyOf, FunctionsOf, KeyOf, ShareOf};
use overflow::Overflow;
use settings::{Derived, Settings};

/// A pool that is being set up. Nothing runs before [`spawn`](Self::spawn).
#[must_use = "a builder does nothing until it is spawned"]
pub struct PoolBuilder<A: Actor, K = Infallible> {
    factory: Factory<A>,
    /// `None` for a pool without order.
    key_of: Option<KeyOf<A::Message, K>>,
    /// Present if messages have shares.
    share_of: Option<ShareOf<A::Message>>,
    /// How messages of shares are taken, if there are shares.
    sharing: Option<SharingOf<A, K>>,
    config: PoolConfig,
    functions: FunctionsOf<A>,
    /// `None` if workers pull.
    push: Option<PushOf<A, K>>,
}

impl<A: Actor> PoolBuilder<A> {
    pub(crate) fn new(factory: Factory<A>) -> Self {
        let (config, functions) = (PoolConfig::default(), FunctionsOf::<A>::default());
        Self { factory, key_of: None, share_of: None, sharing: None, config, functions, push: None }
    }

    /// Gives each message to the worker that a policy chooses, instead of the first free one. An
    /// order by key that is set later replaces it.
    ///
    /// ```
    /// # use greenroom::{policy::RoundRobin, prelude::*};
    /// # struct Clerk; impl Actor for Clerk { type Message = u64; type Reply = usize; type Error = ();
    /// # async fn handle(&mut self, _: u64, cx: &mut Context<Self>) -> Result<usize, ()> { Ok(cx.slot()) } }
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let pool = Pool::new(|_slot| Clerk).workers(2).dispatch(RoundRobin::new()).spawn().await?;
    /// let slots = (pool.call(7).await, pool.call(7).await, pool.call(7).await);
    /// assert_eq!(slots, (Ok(0), Ok(1), Ok(0)));
    /// # Ok(()) }
    /// ```
    pub fn dispatch(mut self, policy: impl Policy<A::Message>) -> Self {
        self.functions.dispatch = Some(Box::new(policy));
        self.functions.sticky = None;
        self.push = Some(Box::new(ByPolicy));
        self
    }

    /// Like [`dispatch`](Self::dispatch), for a policy that may choose several workers: each gets a
    /// copy, and each copy is a message of its own.
    pub fn dispatch_copies(mut self, policy: impl Policy<A::Message>) -> Self
    where
        A::Message: Clone,
    {
        self.functions.copy_for_several = Some(A::Message::clone);
        self.dispatch(policy)
    }

    /// Handles messages of one key one at a time, in the order in which they were accepted.
    /// Different keys do not wait for one another, and any worker may handle any key.
    ///
    /// The function runs in the sender, before the message is accepted. A key should be cheap to
    /// clone and compare: an integer, an `Arc<str>`.
    ///
    /// ```
    /// # use greenroom::prelude::*;
    /// # struct Handler; impl Actor for Handler { type Message = (u64, &'static str); type Reply = (); type Error = ();
    /// # async fn handle(&mut self, _: Self::Message, _: &mut Context<Self>) -> Result<(), ()> { Ok(()) } }
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let orders = Pool::new(|_slot| Handler).workers(64).ordered_by(|order: &(u64, _)| order.0).spawn().await?;
    /// orders.send((17, "created")).await?;
    /// orders.send((17, "paid")).await?; // never before "created" is done
    /// # Ok(()) }
    /// ```
    pub fn ordered_by<K: Hash + Eq + Send + Sync + 'static>(
        self,
        key: impl Fn(&A::Message) -> K + Send + Sync + 'static,
    ) -> PoolBuilder<A, K> {
        self.ordered_by_opt(move |message| Some(key(message)))
    }

    /// Like [`ordered_by`](Self::ordered_by), if some messages have no key: these are handled in
    /// any order.
    pub fn ordered_by_opt<K: Hash + Eq + Send + Sync + 'static>(
        self,
        key: impl Fn(&A::Message) -> Option<K> + Send + Sync + 'static,
    ) -> PoolBuilder<A, K> {
        let factory = self.factory.clone();
        let mut ordered = self.with(factory, Some(Box::new(key)));
        (
            ordered.functions.dispatch,
            ordered.functions.copy_for_several,
            ordered.functions.sticky,
        ) = (None, None, None);
        ordered
    }
}

impl<A: Actor, K: Hash + Eq + Send + Sync + 'static> PoolBuilder<A, K> {
    /// Puts a layer around each actor that is built; other settings stay. A further call adds the
    /// next layer outside. `layer` is called with the worker's slot, once per start.
    ///
    /// ```
    /// # use greenroom::{Layer, layer::Next, prelude::*};
    /// # struct Clerk; impl Actor for Clerk { type Message = u8; type Reply = u8; type Error = ();
    /// # async fn handle(&mut self, page: u8, _: &mut Context<Self>) -> Result<u8, ()> { Ok(page) } }
    /// struct Counted(u64);
    ///
    /// impl<A: Actor> Layer<A> for Counted {
    ///     async fn receive(
    ///         &mut self,
    ///         delivery: &mut Delivery<A::Message, A::Reply, A::Error>,
    ///         mut next: Next<'_, A>,
    ///     ) -> Result<Answer<A::Reply>, A::Error> {
    ///         self.0 += 1;
    ///         next.run(delivery).await
    ///     }
    /// }
    ///
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let pool = Pool::new(|_slot| Clerk).workers(2).layer(|_slot| Counted(0)).spawn().await?;
    /// assert_eq!(pool.call(7).await, Ok(7));
    /// # Ok(()) }
    /// ```
    pub fn layer<L: Layer<A>>(
        self,
        layer: impl Fn(usize) -> L + Send + Sync + 'static,
    ) -> PoolBuilder<Layered<A, L>, K> {
        let factory = self.factory.layered(layer);
        let mut this = self;
        let key_of = this.key_of.take();
        let push: Option<PushOf<Layered<A, L>, K>> = match this.functions.sticky {
            _ if this.push.is_none() => None,
            Some(_) => Some(Box::new(ByTable)),
            None => Some(Box::new(ByPolicy)),
        };
        let sharing: Option<SharingOf<Layered<A, L>, K>> = match this.sharing {
            Some(_) => Some(Box::new(ByShare)),
            None => None,
        };
        let mut layered = this.with(factory, key_of);
        (layered.push, layered.sharing) = (push, sharing);
        layered
    }

    /// The same settings for other actors with the same messages, or for another order. Its workers
    /// pull.
    fn with<B, L>(
        self,
        factory: Factory<B>,
        key_of: Option<KeyOf<A::Message, L>>,
    ) -> PoolBuilder<B, L>
    where
        B: Actor<Message = A::Message, Reply = A::Reply, Error = A::Error>,
    {
        let Self { share_of, config, functions, .. } = self;
        PoolBuilder { factory, key_of, share_of, sharing: None, config, functions, push: None }
    }

    /// Hands several messages to the actor at once, for an actor whose [`receive`](Actor::receive)
    /// looks at the [`batch_items`](crate::Delivery::batch_items) of a delivery: no message
    /// is copied, and each is settled by itself. [`Pool::batched`] is for actors that take
    /// batches whole.
    pub fn batches(mut self, batches: Batches) -> Self {
        self.functions.batching = Some(Box::new(InBatches(batches)));
        self
    }

    /// A batch is also full at this many bytes, where `size` returns the bytes of each message. The
    /// message that reaches the bound is the last of its batch, so a batch exceeds the bound by
    /// less than one message. A batch that waits for more ([`Batches::within`]) checks its size
    /// four times in that time.
    ///
    /// `size` runs in the worker. This has no effect in a pool without batches.
    ///
    /// ```
    /// use greenroom::{batch::{Batch, Batches}, prelude::*};
    ///
    /// struct Upload;
    /// impl Actor for Upload {
    ///     type Message = Batch<Vec<u8>>;
    ///     type Reply = Vec<Result<usize, ()>>;
    ///     type Error = ();
    ///     async fn handle(&mut self, parts: Batch<Vec<u8>>, _: &mut Context<Self>) -> Result<Self::Reply, ()> {
    ///         let bytes: usize = parts.iter().map(Vec::len).sum();
    ///         Ok(parts.iter().map(|_| Ok(bytes)).collect())
    ///     }
    /// }
    ///
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let uploads = Pool::batched(|_slot| Upload, Batches::of(100))
    ///     .batch_bytes(1_000, Vec::len)
    ///     .workers(1)
    ///     .spawn()
    ///     .await?;
    /// let part = || uploads.call(vec![0; 400]);
    /// let sent = tokio::join!(part(), part(), part(), part());
    /// assert_eq!(sent, (Ok(1_200), Ok(1_200), Ok(1_200), Ok(400)));
    /// # Ok(()) }
    /// ```
    pub fn batch_bytes(
        mut self,
        bytes: usize,
        size: impl Fn(&A::Message) -> usize + Send + Sync + 'static,
    ) -> Self {
        self.functions.batch_bytes = Some((bytes, Box::new(size)));
        self
    }

    /// Like `batches`, but keeps copies.
    pub(super) fn in_batches(mut self, batches: Batches, copy: CopyOf<A::Message>) -> Self {
        self.functions.copy = Some(copy);
        self.batches(batches)
    }

    /// The pool's name in logs and reports; its workers are `<name>-<index>`. `pool` by default.
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.config.name = Arc::from(name.into());
        self
    }

    /// Says that the factory does not block: it is then called on the runtime's own threads, which
    /// saves a thread for each worker that starts.
    pub fn quick_factory(mut self) -> Self {
        self.factory = self.factory.quick();
        self
    }

    /// How many messages may be in hand at once: 0 to 65,536; 3 by default. A pool that starts with
    /// none gets its first worker by [`PoolAdmin::add`](crate::PoolAdmin::add).
    ///
    /// As many as there are cores for handlers that compute; many more for handlers that wait, at
    /// a few hundred bytes each. With one worker, messages are handled in the order in which they
    /// were accepted, over all senders (see [Order](crate::pool#order)).
    pub fn workers(mut self, workers: usize) -> Self {
        self.config.size.workers = workers;
        self
    }

    /// The fewest and the most workers that the pool may have while it runs; 0 to 65,536 by
    /// default. A change of size beyond these bounds is refused.
    pub fn bounds(mut self, workers: RangeInclusive<usize>) -> Self {
        self.config.size.bounds = workers;
        self
    }

    /// Lets the pool change its size by itself, between these bounds, which replace
    /// [`bounds`](Self::bounds): a change by hand cannot pass them either. The pool is sampled
    /// each second. It grows in one step when it is late, and shrinks when fewer workers have been
    /// enough for long. See [`autoscale`](crate::pool::autoscale).
    ///
    /// The pool starts with the number of [`workers`](Self::workers) that was set, within the
    /// bounds.
    ///
    /// ```
    /// # use greenroom::{autoscale::Autoscale, prelude::*};
    /// # struct Clerk; impl Actor for Clerk { type Message = u8; type Reply = u8; type Error = ();
    /// # async fn handle(&mut self, page: u8, _: &mut Context<Self>) -> Result<u8, ()> { Ok(page) } }
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let pool = Pool::new(|_slot| Clerk).workers(1).autoscale(Autoscale::between(2, 64)).spawn().await?;
    /// assert_eq!(pool.stats().configured, 2);
    /// # Ok(()) }
    /// ```
    pub fn autoscale(mut self, settings: Autoscale) -> Self {
        self.config.size.autoscale = Some(Box::new(settings));
        self
    }

    /// Observes the pool for some minutes at a time, and recommends settings to change, with the
    /// figures that justify it and the lines to change; see [`advisor`](crate::pool::advisor) and
    /// [`PoolAdmin::advice`](crate::PoolAdmin::advice).
    ///
    /// ```
    /// # use greenroom::{advisor::Advisor, prelude::*};
    /// # use std::time::Duration;
    /// # struct Clerk; impl Actor for Clerk { type Message = u8; type Reply = u8; type Error = ();
    /// # async fn handle(&mut self, page: u8, _: &mut Context<Self>) -> Result<u8, ()> { Ok(page) } }
    /// # #[tokio::main(flavor = "current_thread", start_paused = true)] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let pool = Pool::new(|_slot| Clerk).workers(4).advise(Advisor::default()).spawn().await?;
    /// assert!(pool.call(7).await.is_ok());
    /// assert!(pool.admin().advice().is_none()); // nothing is known yet
    /// tokio::time::sleep(Duration::from_secs(301)).await;
    /// let advice = pool.admin().advice().unwrap();
    /// assert_eq!(advice.change.unwrap().to_string(), "inbox_size: 1000 -> 500");
    /// # Ok(()) }
    /// ```
    pub fn advise(mut self, settings: Advisor) -> Self {
        self.config.size.advisor = Some(Box::new(settings));
        self
    }

    /// Starts at most this many messages in this time; the excess waits in the queue. After a
    /// pause, a tenth of a second's worth is started at once.
    ///
    /// ```
    /// # use greenroom::{limits::Rate, prelude::*};
    /// # struct Clerk; impl Actor for Clerk { type Message = u8; type Reply = u8; type Error = ();
    /// # async fn handle(&mut self, page: u8, _: &mut Context<Self>) -> Result<u8, ()> { Ok(page) } }
    /// # #[tokio::main(flavor = "current_thread", start_paused = true)] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let pool = Pool::new(|_slot| Clerk).rate(Rate::per_second(5)).spawn().await?;
    /// let start = tokio::time::Instant::now();
    /// for page in 0..6 {
    ///     assert_eq!(pool.call(page).await, Ok(page));
    /// }
    /// assert_eq!(start.elapsed().as_millis(), 1_000);
    /// # Ok(()) }
    /// ```
    pub fn rate(mut self, rate: Rate) -> Self {
        self.limits().rate = Some(rate);
        self
    }

    /// Has at most this many messages in hand at once, whatever the number of workers.
    pub fn concurrency(mut self, messages: usize) -> Self {
        self.limits().at_once = Some(AtOnce::Fixed(messages));
        self
    }

    /// Lets a pool without limits get a rate and a limit on messages
    /// in hand while it runs: [`set_rate`](crate::PoolAdmin::set_rate),
    /// [`set_concurrency`](crate::PoolAdmin::set_concurrency). Off by default. Until
    /// there is a limit, it costs a load for each message, and each call goes through the queue.
    pub fn adjustable_limits(mut self) -> Self {
        self.limits().adjustable = true;
        self
    }

    /// Finds out how many messages may be in hand at once. Unless the limit is
    /// [enforced](Adaptive::enforced), it is only observed: nothing waits, and the figures show the
    /// limit that would apply. A handler's error counts as a rejection by the service it uses, so
    /// that fast failures make the limit smaller; a panic does not count.
    pub fn adaptive(mut self, settings: Adaptive) -> Self {
        self.limits().at_once = Some(AtOnce::Adaptive(settings));
        self
    }

    /// Accepts messages up to the capacity while there is no worker, and keeps them for the next
    /// one. Without this, a pool without workers refuses messages with `NoWorkers`. Messages that
    /// wait when the last slot is disabled become dead letters; those that wait when the last
    /// worker is [removed](crate::PoolAdmin::remove) are kept for the next.
    pub fn hold_when_empty(mut self) -> Self {
        self.config.size.holds_when_empty = true;
        self
    }

    /// The overflow policy for messages that find no room; they wait by default.
    pub fn overflow(mut self, overflow: Overflow<A::Message, A::Reply, A::Error>) -> Self {
        self.functions.overflow = overflow;
        self
    }

    /// How many messages per worker may be accepted and not started; 1,000 by default. The bound is
    /// one for the whole pool: `workers x mailbox`.
    pub fn mailbox(mut self, messages: usize) -> Self {
        self.config.size.mailbox = messages;
        self
    }

    /// How many messages in total may be accepted and not started, instead of `workers x mailbox`.
    pub fn capacity(mut self, messages: usize) -> Self {
        self.config.size.capacity = Some(messages);
        self
    }

    /// The failure policy for handlers that fail or panic, instead of the default [`FailureTable`].
    ///
    /// A policy that may ask for a retry or park a key ([`FailurePolicy::needs_message`]) needs the
    /// message: from an actor that leaves it in its delivery ([`Actor::KEEPS_MESSAGE`]), or from
    /// [`keep_copies`](Self::keep_copies). Otherwise [`spawn`](Self::spawn) refuses it.
    ///
    /// ```
    /// # use greenroom::{FailureTable, FinalAction, Rule, Backoff, SpawnError, prelude::*};
    /// # use std::time::Duration;
    /// # struct Clerk; impl Actor for Clerk { type Message = u8; type Reply = u8; type Error = ();
    /// # async fn handle(&mut self, page: u8, _: &mut Context<Self>) -> Result<u8, ()> {
    /// # Ok(page) } }
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let backoff = Backoff::new(Duration::from_millis(100), Duration::from_secs(10));
    /// let again = Rule::Retry { attempts: 5, backoff, finally: FinalAction::DeadLetter };
    /// let table = FailureTable { error: again, ..FailureTable::default() };
    /// let refused = Pool::new(|_slot| Clerk).failure_policy(table).spawn().await;
    /// assert!(matches!(refused, Err(SpawnError::NoCopies { .. })));
    /// let pool = Pool::new(|_slot| Clerk).failure_policy(table).keep_copies().spawn().await?;
    /// # Ok(()) }
    /// ```
    pub fn failure_policy(mut self, policy: impl FailurePolicy<A::Error>) -> Self {
        self.functions.policy = Box::new(policy);
        self
    }

    /// Keeps a copy of each message while it is in hand: for a [policy](Self::failure_policy) that
    /// retries it, for parked keys, and so that [dead letters](Self::dead_letters) have it and can
    /// be replayed. An actor that leaves its messages in place ([`Actor::KEEPS_MESSAGE`]) needs no
    /// copies, and none are made.
    ///
    /// Off by default; [`retry`](Self::retry) and [`on_final_failure`](Self::on_final_failure)
    /// turn it on. The price is a clone for each message: wrap one that is costly to copy in an
    /// `Arc`.
    pub fn keep_copies(mut self) -> Self
    where
        A::Message: Clone,
    {
        if !A::KEEPS_MESSAGE {
            self.functions.copy = self.functions.copy.or(Some(A::Message::clone));
        }
        self
    }

    /// Attempts a message that fails or panics up to `attempts` times in total. In a keyed pool the
    /// key waits between attempts and the worker continues. [Keeps copies](Self::keep_copies).
    ///
    /// Retries take turns with other messages, even if there is no wait between attempts. A message
    /// that panics is attempted at most twice, unless [`poison_limit`](Self::poison_limit) is
    /// raised.
    pub fn retry(self, attempts: u32, backoff: Backoff) -> Self
    where
        A::Message: Clone,
    {
        let again = |finally| Rule::Retry { attempts, backoff, finally };
        let table = FailureTable {
            error: again(FinalAction::Return),
            ..FailureTable::all(again(FinalAction::DeadLetter))
        };
        self.keep_copies().failure_policy(table)
    }

    /// Like [`failure_policy`](Self::failure_policy), but keeps a copy of each message while it is
    /// in hand, made by `copy`: for messages that are not `Clone`.
    pub fn retry_with(
        mut self,
        copy: fn(&A::Message) -> A::Message,
        policy: impl FailurePolicy<A::Error>,
    ) -> Self {
        self.functions.copy = Some(copy);
        self.failure_policy(policy)
    }

    /// Checks before each attempt at a message whether it should still be started. If not, it is
    /// withdrawn: its handler is not called, its caller gets
    /// [`CallError::Withdrawn`](crate::CallError::Withdrawn), and it counts as
    /// [`withdrawn`](crate::PoolStats::withdrawn), not as a dead letter. A message that has failed
    /// is also checked before it waits for a retry or parks its key, if it is still there.
    ///
    /// This catches messages that [`PoolAdmin::withdraw`](crate::PoolAdmin::withdraw) cannot: those
    /// that are sent after it, and those that were just moving between two places. For example, a
    /// message carries the number that was current when it was sent, and `wanted` compares it with
    /// the current number.
    ///
    /// `wanted` is called by workers, under no lock, once or more before each attempt; after its
    /// last call the handler starts at once. It is called for every message, so keep it to a
    /// comparison or two. A panic in it counts as one of the handler. Pools without it pay nothing.
    /// Pools with it queue each call: none is handed directly to an idle worker.
    ///
    /// ```
    /// # use greenroom::{CallError, prelude::*};
    /// # use std::sync::{Arc, atomic::{AtomicU64, Ordering}};
    /// struct Page { edition: u64 }
    /// # struct Clerk; impl Actor for Clerk { type Message = Page; type Reply = u64; type Error = ();
    /// # async fn handle(&mut self, page: Page, _: &mut Context<Self>) -> Result<u64, ()> { Ok(page.edition) } }
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let current = Arc::new(AtomicU64::new(1));
    /// let seen = current.clone();
    /// let pool = Pool::new(|_slot| Clerk)
    ///     .starts_if(move |page: &Page| page.edition == seen.load(Ordering::SeqCst))
    ///     .spawn()
    ///     .await?;
    /// assert_eq!(pool.call(Page { edition: 1 }).await, Ok(1));
    /// current.store(2, Ordering::SeqCst);
    /// assert_eq!(pool.call(Page { edition: 1 }).await, Err(CallError::Withdrawn));
    /// assert_eq!(pool.stats().withdrawn, 1);
    /// # Ok(()) }
    /// ```
    pub fn starts_if(
        mut self,
        wanted: impl Fn(&A::Message) -> bool + Send + Sync + 'static,
    ) -> Self {
        self.functions.starts_if = Some(Box::new(Box::new(wanted)));
        self
    }

    /// A message whose handler has panicked this often is a dead letter, whatever the policy says;
    /// 2 by default.
    pub fn poison_limit(mut self, kills: u32) -> Self {
        self.config.failure.poison_limit = kills.max(1);
        self
    }

    /// Runs the workers on this many threads of the pool's own, for handlers that compute or block:
    /// the rest of the runtime is not held up. 1 to 1,024 threads; as many as there are cores for
    /// handlers that compute, as many as workers for handlers that block.
    ///
    /// ```
    /// # use greenroom::prelude::*;
    /// # struct Cruncher; impl Actor for Cruncher { type Message = u64; type Reply = u64; type Error = ();
    /// # async fn handle(&mut self, n: u64, _: &mut Context<Self>) -> Result<u64, ()> { Ok(n) } }
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let pool = Pool::new(|_slot| Cruncher).workers(2).dedicated_threads(2).spawn().await?;
    /// assert_eq!(pool.call(7).await, Ok(7));
    /// # Ok(()) }
    /// ```
    pub fn dedicated_threads(mut self, threads: usize) -> Self {
        self.config.size.dedicated_threads = Some(threads);
        self
    }

    /// How long a handler may take, from its start; no limit by default. A handler that does
    /// not return in time is dropped at its next await, and the failure policy decides about its
    /// message ([`Cause::Timeout`](crate::failure::Cause::Timeout)).
    pub fn time_limit(mut self, limit: Duration) -> Self {
        self.config.failure.time_limit = Some(limit);
        self
    }

    /// Whether a worker is restarted when it has ended; after an abnormal end by default. Otherwise
    /// its slot is disabled.
    pub fn restart_policy(mut self, policy: RestartPolicy) -> Self {
        self.config.failure.restart_policy = policy;
        self
    }

    /// The consequence when a worker ends and its restart budget is used up; its slot is disabled
    /// by default.
    pub fn when_exhausted(mut self, then: WhenExhausted) -> Self {
        self.config.failure.when_exhausted = then;
        self
    }

    /// A single actor: the pool ends with it.
    pub(crate) fn single(mut self) -> Self {
        self.config.handling.single = true;
        self.config.size.workers = 1;
        self.config.size.bounds = 1..=1;
        self.config.failure.restart_policy = RestartPolicy::Temporary;
        self.config.failure.when_exhausted = WhenExhausted::StopPool;
        self.factory = self.factory.quick();
        self
    }

    /// The restart budget of each worker: 3 restarts a minute by default, so a pool of three
    /// workers has none left after 12 panics within a minute. It then refuses messages, and logs
    /// an error; [`PoolAdmin::enable`](crate::PoolAdmin::enable) revives a slot. Raise the budget
    /// if handlers may panic, or build the pool [under a supervisor](Self::supervised).
    pub fn restarts(mut self, restarts: Restarts) -> Self {
        self.config.failure.restarts = restarts;
        self
    }

    /// How many dead letters the pool keeps, for [`Pool::dead_letters`]; 1,000 by default. At the
    /// bound the oldest is dropped. Keep as many as an operator will look at, and as memory allows.
    /// 0 keeps none.
    ///
    /// A letter has its message, and can be replayed, if the handler had not taken it or the pool
    /// [keeps copies](Self::keep_copies). By default there is no copy: a message that a handler
    /// took and failed with leaves a letter with only the reason.
    pub fn dead_letters(mut self, bound: usize) -> Self {
        self.config.failure.dead_letters = bound;
        self
    }

    /// The receiver of the pool's events: the process's [`PoolEvents::global`] by default.
    ///
    /// ```
    /// # use greenroom::{PoolEvent, PoolEvents, pool_events::Event, prelude::*};
    /// # struct Clerk; impl Actor for Clerk { type Message = u8; type Reply = u8; type Error = ();
    /// # async fn handle(&mut self, page: u8, _: &mut Context<Self>) -> Result<u8, ()> { Ok(page) } }
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let notices = PoolEvents::new(100);
    /// let mut receiver = notices.subscribe();
    /// let pool = Pool::new(|_slot| Clerk).workers(1).pool_events(notices).spawn().await?;
    /// let first = receiver.recv().await.and_then(Event::into_item).unwrap();
    /// assert!(matches!(first.what, PoolEvent::WorkerStarted { slot: 0 }));
    /// # Ok(()) }
    /// ```
    pub fn pool_events(mut self, events: PoolEvents) -> Self {
        self.config.notices = events;
        self
    }

    /// Gives each dead letter to this hook, on the worker that gave the message up, instead
    /// of keeping it in the pool's queue. The hook must not block. The pool does not log these
    /// letters either.
    pub fn on_dead_letter(
        mut self,
        hook: impl Fn(DeadLetter<A::Message, A::Error>) + Send + Sync + 'static,
    ) -> Self {
        self.functions.on_dead_letter = Some(Box::new(hook));
        self
    }

    /// Seeds the random choices of the pool (jitter, the hash of keys), for tests that replay.
    pub fn seed(mut self, seed: u64) -> Self {
        self.config.seed = Some(seed);
        self
    }

    /// Whether handlers count as quick (they return within 2 µs), instead of measuring that: quick
    /// ones are handled several in a row, by few workers, and perhaps in their callers' tasks. For
    /// tests in which the order of runs must not depend on how fast the machine is, and under tools
    /// that slow it down, such as those that count instructions.
    pub fn quick_handlers(mut self, quick: bool) -> Self {
        self.config.handling.quick = Some(quick);
        self
    }

    /// Starts the workers, all at once, and returns as soon as one of them runs; the others follow.
    /// With a policy (and with sticky keys) it returns once each worker has started or failed to,
    /// because the order of workers matters there. [`Pool::ready`] waits for all of them in other
    /// pools as well.
    ///
    /// # Errors
    /// A setting out of range, or no worker that could be started; nothing is left running then.
    /// Without threads of its own, a pool needs a tokio runtime with time enabled:
    /// [`SpawnError::NoRuntime`] and [`SpawnError::NoTime`] say so.
    pub async fn spawn(self) -> Result<Pool<A>, SpawnError> {
        self.spawn_core().await.map(Pool::spawned)
    }

    /// Sets the pool up as the child of a supervisor, which starts it. Its address is there at
    /// once: messages that are sent before the start, and between restarts, wait. The pool restarts
    /// a worker that ends while its budget lasts; after that the supervisor is notified. With
    /// `Restarts { max: 0, .. }` the supervisor decides about each end.
    ///
    /// ```
    /// # use greenroom::{Supervisor, prelude::*, supervisor::Strategy};
    /// # struct Clerk; impl Actor for Clerk { type Message = u8; type Reply = u8; type Error = ();
    /// # async fn handle(&mut self, page: u8, _: &mut Context<Self>) -> Result<u8, ()> { Ok(page) } }
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let (clerks, child) = Pool::new(|_slot| Clerk).name("clerks").supervised()?;
    /// let root = Supervisor::new(Strategy::OneForOne).child(child).spawn().await?;
    /// assert_eq!(clerks.call(7).await, Ok(7));
    /// root.stop(Stop::Now).await;
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// A setting out of range, or no tokio runtime with time enabled, like [`spawn`](Self::spawn).
    #[cfg(feature = "supervision")]
    pub fn supervised(mut self) -> Result<(Pool<A>, crate::supervisor::ChildSpec), SpawnError> {
        self.config.failure.when_exhausted = WhenExhausted::Escalate;
        let core = self.into_core()?;
        let pool = core.erased();
        autoscale::begin(&pool);
        advisor::begin(&pool);
        start_clock(&pool);
        watch(&pool);
        Ok(super::supervised::kept(core))
    }

    pub(crate) async fn spawn_core(self) -> Result<Arc<Core<A, K>>, SpawnError> {
        let core = self.into_core()?;
        start_all(&core.erased()).await?;
        Ok(core)
    }

    /// Like `restarts`, for the number alone.
    pub(crate) fn max_restarts(mut self, max: u32) -> Self {
        self.config.failure.restarts.max = max;
        self
    }

    /// The receiver of the pool's events.
    pub(crate) fn told(&self) -> PoolEvents {
        self.config.notices.clone()
    }

    /// A pool in which nothing runs yet. A single actor stays one, whatever else was set.
    pub(super) fn into_core(self) -> Result<Arc<Core<A, K>>, SpawnError> {
        let then = self.config.failure.when_exhausted;
        match self.config.handling.single {
            true => self.single().when_exhausted(then).into_checked_core(),
            false => self.into_checked_core(),
        }
    }

    fn into_checked_core(mut self) -> Result<Arc<Core<A, K>>, SpawnError> {
        let capacity = self.config.checked_capacity()?;
        bounds::check_failure::<A>(&self.config, &self.functions, self.key_of.is_some())?;
        let shares = self.checked_shares()?;
        let mut derived = self.derived(capacity)?;
        let Surroundings { runtime, threads, limits } = self.config.surroundings()?;
        let awake_limit = runtime.metrics().num_workers();
        let Self { factory, key_of, share_of, sharing, config, mut functions, push } = self;
        derived.uses_handoff &= limits.is_none();
        functions.policy = bounds::ending(functions.policy, config.failure.finally);
        let settings = Settings { functions, factory, key_of, share_of, shares, derived };
        Ok(Arc::new(Core::new(
            config,
            limits,
            settings,
            (push, sharing),
            awake_limit,
            runtime,
            threads,
        )))
    }

    /// Computes the derived values, except limits: those take their time from a clock that needs a
    /// runtime.
    fn derived(&mut self, capacity: usize) -> Result<Derived<A::Message>, SpawnError> {
        let (table_slots, key_bounds) = (self.checked_table()?, self.checked_key_bounds(capacity)?);
        let key_share = self.key_share();
        let functions = &mut self.functions;
        let (bytes, batch_bytes) = (functions.bytes.take(), functions.batch_bytes.take());
        check_bytes("max bytes", bytes.as_ref().map(|(most, _)| *most))?;
        check_bytes("batch bytes", batch_bytes.as_ref().map(|(most, _)| *most))?;
        let bytes = bytes.map(|(most, size_of)| Box::new(ByteBound::new(most, size_of)));
        let batch_bytes = batch_bytes.map(|(most, size_of)| BatchBytes::new(most, size_of));
        let is_checked = functions.dispatch.is_some() || bytes.is_some();
        let chooses = is_checked || self.key_of.is_some() || functions.sticky.is_some();
        let asks = functions.starts_if.is_some();
        let handles_together = functions.batching.is_some();
        Ok(Derived {
            capacity,
            table_slots,
            key_bounds,
            key_share,
            bytes,
            batch_bytes,
            is_checked,
            looks_at_start: functions.copy.is_some() || asks,
            uses_handoff: !chooses && !handles_together && !asks,
            seed: self.config.seed.unwrap_or_else(random_seed),
        })
    }

    fn limits(&mut self) -> &mut LimitConfig {
        self.config.limits.get_or_insert_default()
    }
}
