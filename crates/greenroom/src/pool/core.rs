//! The state that the senders, the workers and the clock of one pool share.

use std::{
    any::type_name,
    sync::{Arc, OnceLock},
    time::Duration,
};

use greenroom_queue::{
    entry::Hashed,
    lock::user_code_follows,
    permits::Queues,
    places::{KEYED_SHARDS, Places},
    queue::WorkQueue,
    stamp::Stamp,
    urgency::Urgency,
};

use super::{
    builder::{config::PoolConfig, overflow::Overflow, settings::Settings, threads::Threads},
    clock::Clock,
    controllers::Controllers,
    desk::{Desk, Desks},
    env::Env,
    frame::{AnyCore, Frame},
    handoff::{Handoff, HandoffSlotOf},
    left_over::LeftOver,
    lifecycle::{Acceptance, Lifecycle},
    limits::Gate,
    membership::Membership,
    outgoing::{LendOutgoing, OutgoingOf},
    pool_payload::{InboxGuard, Key, OutboxOf, PayloadOf, Queued, ShardOf},
    push::Push,
    routing::{Routing, WayIn},
    sharing::Sharing,
    stats::telemetry::Telemetry,
};
use crate::{Actor, AddressOf, Class, DeadLetters, delivery::Extra};

pub(crate) mod accept;
pub(crate) mod adopt;
mod any_core;
pub(crate) mod assign;
pub(crate) mod backlog;
pub(crate) mod batch;
pub(crate) mod claims;
mod controlled;
pub(crate) mod dispatch;
pub(crate) mod drain;
pub(crate) mod elsewhere;
pub(crate) mod evict;
pub(crate) mod keys;
pub(crate) mod mail;
mod migrate;
pub(crate) mod notify;
pub(crate) mod park;
pub(crate) mod parked;
pub(crate) mod place;
pub(crate) mod push;
pub(crate) mod pushes;
pub(crate) mod room;
pub(crate) mod serve;
pub(crate) mod shares;
pub(crate) mod shut;
pub(crate) mod signals;
mod sweep;
pub(crate) mod take;
#[cfg(test)]
mod tests;
pub(crate) mod waiters;
pub(crate) mod withdraw;
pub(crate) mod workers;

/// How a pool takes the messages of shares, if it has shares.
pub(crate) type SharingOf<A, K> = Box<dyn Sharing<A, K, Core<A, K>>>;

/// How a pool pushes messages, if it does.
pub(crate) type PushOf<A, K> = Box<dyn Push<A, K, Core<A, K>>>;

/// The optional ways to push and to share.
type WaysOf<A, K> = (Option<PushOf<A, K>>, Option<SharingOf<A, K>>);

/// One pool. Its addresses, workers and administration share it.
pub(crate) struct Core<A: Actor, K> {
    /// The message settings from its builder. Never changes.
    pub(crate) settings: Settings<A, K>,
    /// The message queues, their bounds, and the waking of idle workers.
    pub(crate) queue: WorkQueue<PayloadOf<A>, K>,
    /// How a message is routed: by its key, its sender, or a policy.
    pub(crate) routing: Routing<A, K>,
    /// How messages are pushed to workers, if they are.
    pub(crate) push: Option<PushOf<A, K>>,
    /// How messages of shares are taken, if the pool has shares.
    pub(crate) sharing: Option<SharingOf<A, K>>,
    /// Calls that skip the queue.
    pub(crate) handoff: Handoff,
    /// The per-worker parts: see [`desk`](Self::desk).
    pub(crate) desks: Desks,
    /// Messages that could not be handled, if no hook takes them.
    pub(crate) letters: DeadLetters<A::Message, A::Error>,
    /// Messages that were given back because the pool has stopped.
    pub(crate) left_over: LeftOver<A::Message, A::Reply, A::Error>,
    /// The address of its keeper, if the keeper takes urgent messages. Set before the keeper
    /// starts.
    pub(crate) urgent: OnceLock<AddressOf<A>>,
    /// The part that does not depend on the types.
    pub(crate) frame: Frame,
}

impl<A: Actor, K: Key> Core<A, K> {
    pub(crate) fn new(
        config: PoolConfig,
        limits: Option<Arc<Gate>>,
        mut settings: Settings<A, K>,
        (push, sharing): WaysOf<A, K>,
        awake_limit: usize,
        runtime: tokio::runtime::Handle,
        threads: Option<Threads>,
    ) -> Self {
        let shares = settings.shares.take();
        let keyed = settings.key_of.is_some();
        let (workers, capacity) = (config.size.workers, settings.derived.capacity);
        let shards = match keyed && workers > 1 {
            true => KEYED_SHARDS,
            false => Places::shards(workers, settings.functions.batching.is_some()),
        };
        let bounds = settings.derived.key_bounds;
        let drops = !matches!(settings.functions.overflow, Overflow::Wait);
        let is_sticky = settings.functions.sticky.is_some();
        let core = Self {
            queue: WorkQueue::new(shards, keyed, bounds, capacity, workers, awake_limit),
            routing: Routing::new(&config, &mut settings),
            push,
            sharing,
            handoff: Handoff::default(),
            desks: Desks::new(workers),
            letters: DeadLetters::new(config.failure.dead_letters),
            left_over: LeftOver::new(),
            urgent: OnceLock::new(),
            frame: Frame {
                behavior: type_name::<A>(),
                needs_clock: drops || is_sticky || shares.is_some(),
                has_policy: settings.functions.dispatch.is_some(),
                membership: Membership::new(&config.size),
                lifecycle: Lifecycle::new(),
                clock: Clock::new(),
                telemetry: Telemetry::new(is_watched(&runtime), config.handling.single, keyed),
                controllers: Controllers::default(),
                env: Env::new(runtime, threads, settings.derived.seed),
                limits,
                shares,
                config,
            },
            settings,
        };
        if let Some(sharing) = &core.sharing {
            sharing.begin(&core);
        }
        if let Some(quick) = core.frame.config.handling.quick {
            core.queue.wake.set_quick(quick);
            let pace = if quick { Duration::ZERO } else { Duration::MAX };
            core.frame.telemetry.coarse.note_pace(pace);
        }
        core
    }

    /// The part of the worker in this slot.
    #[inline]
    pub(crate) fn desk(&self, slot: usize) -> &Desk<A, K> {
        self.desks.at(slot)
    }

    /// Notes how long a handler took, as the average of a few.
    pub(crate) fn note_pace(&self, each: Duration) {
        if self.frame.config.handling.quick.is_none() {
            self.queue.wake.note_pace(each);
        }
    }

    /// True if only the holder of a shard's token may take from its queue.
    pub(crate) fn keyed(&self) -> bool {
        self.settings.key_of.is_some()
    }

    /// The key of a message and its hash. Runs user code: call it before admission, under no lock.
    #[inline]
    pub(crate) fn key(
        &self,
        payload: &impl LendOutgoing<A::Message, A::Reply, A::Error>,
    ) -> Hashed<K> {
        self.key_of(payload.message())
    }

    /// Like `key`, for a message that is stored elsewhere.
    #[inline]
    pub(crate) fn key_of(&self, message: Option<&A::Message>) -> Hashed<K> {
        let Some(key_of) = &self.settings.key_of else { return (None, 0) };
        user_code_follows();
        let key = message.and_then(key_of);
        let hash = key.as_ref().map_or(0, |key| self.routing.hash(key));
        (key, hash)
    }

    #[inline]
    pub(crate) fn shard_of(&self, (key, hash): &Hashed<K>, sender: u32) -> usize {
        let place = if key.is_some() { *hash } else { sender };
        place as usize & (self.queue.shards.len() - 1)
    }

    /// False if the coarse clock may have been stopped since the last look at a scheduled shard:
    /// that happens without the watchdog, while every worker waits.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn is_timely(&self) -> bool {
        self.frame.telemetry.coarse.is_timely(|| self.queue.wake.awake())
    }

    /// The stamp for the message with this number, among those that were counted together.
    #[inline]
    pub(crate) fn stamp(&self, number: u64) -> Stamp {
        self.frame.telemetry.coarse.stamp(number, self.is_late())
    }

    /// True if the coarse clock may have been stopped for long (see there).
    #[inline]
    fn is_late(&self) -> bool {
        self.frame
            .telemetry
            .coarse
            .is_late(|| !self.frame.clock.watchdog.is_watched(), || self.queue.wake.awake())
    }

    /// A worker is being woken: sets the coarse clock unless the watchdog does. Call it before the
    /// worker counts as awake.
    #[inline]
    pub(crate) fn note_time(&self) {
        if !self.frame.telemetry.coarse.is_watched() || !self.frame.clock.watchdog.is_watched() {
            self.frame.telemetry.coarse.set();
        }
    }

    /// Notes that handlers usually wait now, or only rarely. Handlers that were declared quick stay
    /// so. Batches are collected from the queue, so in a pool of batches a key stays at its head
    /// until the batch is complete.
    #[cold]
    pub(crate) fn wait_usually(&self, waits: bool) {
        if self.frame.config.handling.quick != Some(true)
            && self.settings.functions.batching.is_none()
        {
            self.queue.wake.set_waits(waits);
        }
    }

    /// The identity of the pool.
    pub(crate) fn identity(&self) -> usize {
        std::ptr::from_ref(self).addr()
    }

    /// The pool without its types.
    pub(crate) fn erased(self: &Arc<Self>) -> Arc<dyn AnyCore> {
        self.clone()
    }

    /// The address that takes this message instead of a worker. For a message that is not urgent,
    /// it costs one look at the class.
    #[inline]
    pub(crate) fn diverted(&self, payload: &OutgoingOf<A>) -> Option<&AddressOf<A>> {
        match payload.class {
            Class::Urgent => self.urgent.get(),
            _ => None,
        }
    }
}

/// On one thread, no other worker could take over the work that a handler holds up, so only pools
/// on several threads are watched.
pub(crate) fn is_watched(runtime: &tokio::runtime::Handle) -> bool {
    runtime.runtime_flavor() != tokio::runtime::RuntimeFlavor::CurrentThread
}

pub(crate) type ExtraOf<A> = Extra<<A as Actor>::Reply, <A as Actor>::Error>;

impl<A: Actor, K: Key> Queues for Core<A, K> {
    fn started(&self) -> u64 {
        self.frame.membership.started()
    }

    fn reclaim(&self) -> u64 {
        self.queue.credit_map.reclaim(|shard| self.queue.shards[shard].inbox.lock().take_credit())
    }
}
