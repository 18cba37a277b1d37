//! The event-bus pool: messages with keys, a configuration of a few numbers, presets, and
//! figures about memory.
//!
//! A service that handles the events of many aggregates (orders, accounts, devices) wants few
//! decisions: how many at once, how many may wait, and the reaction to a worker that dies. An
//! [`EventPool`] is a [`Pool`] built from those:
//!
//! ```text
//! YAML, TOML, code ─▶ EventPoolConfig ─▶ workers, mailbox, restarts, notices, order per key
//!                     a preset, and its overrides
//! ```
//!
//! ```
//! use greenroom::{event_pool::{EventPool, EventPoolConfig, Keyed, Preset}, prelude::*};
//!
//! struct Orders;
//!
//! impl Actor for Orders {
//!     type Message = Keyed<u64, &'static str>;
//!     type Reply = String;
//!     type Error = std::convert::Infallible;
//!
//!     async fn handle(&mut self, event: Self::Message, _cx: &mut Context<Self>) -> Result<String, Self::Error> {
//!         Ok(format!("order {:?} is {}", event.key, event.message))
//!     }
//! }
//!
//! # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let config = EventPoolConfig { pool_size: Some(64), ..Preset::Orders.into() };
//! let orders = EventPool::new(config, |_slot| Orders).key_required().spawn().await?;
//! orders.submit(Some(17), "created").await?; // does not wait for the handler
//! assert_eq!(orders.process(Some(17), "paid").await?, "order Some(17) is paid"); // does, and comes after it
//! orders.stop(Stop::within(std::time::Duration::from_secs(30))).await;
//! # Ok(()) }
//! ```
//!
//! # The effect of a failure
//! As in any pool ([`FailureTable`](crate::FailureTable)): an error of the handler is a result, and
//! goes to the caller, or makes a dead letter of a message without a caller. A panic restarts the
//! worker; other workers handle the queued messages, or the worker does when it is back.
//!
//! # Price
//! That of the pool. If message sizes are measured, one message in 61 is measured. A separate task
//! checks the memory every five seconds.
//!
//! # When to use something else
//! [`Pool`], if messages contain their keys, or have none; everything here is built on it.

use std::sync::Arc;

mod alarm;
mod builder;
mod config;
mod engine;
mod memory;
mod preset;
mod sizes;

use self::sizes::{ASSUMED, Sizes};
pub use self::{
    builder::{EventPoolBuilder, EventPoolError},
    config::EventPoolConfig,
    engine::Engine,
    memory::{Machine, MemoryReading, PoolMemory},
    preset::Preset,
};
use crate::{
    Actor, Address, CallError, Pool, PoolStats, SendError, Stop, StopReport, TrySendError,
};
pub use greenroom_config::Problems;

/// A message with its ordering key, if it has one. The actors of an [`EventPool`] handle it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Keyed<K, M> {
    /// The subject of the message. Cheap to clone: an integer, an `Arc<str>`.
    pub key: Option<K>,
    /// The message itself.
    pub message: M,
}

/// A running event-bus pool. A clone is the same pool, and another sender; the pool drains and
/// stops when the last one is dropped. See the [module](self).
pub struct EventPool<A: Actor> {
    /// A sender of its own: messages without keys then do not meet at one queue.
    address: Address<A::Message, A::Reply, A::Error>,
    shared: Arc<Shared<A>>,
}

/// The state that the clones share.
struct Shared<A: Actor> {
    pool: Pool<A>,
    config: EventPoolConfig,
    key_required: bool,
    sizes: Arc<Sizes<A::Message>>,
    memory: Arc<dyn MemoryReading>,
}

/// The figures of an event-bus pool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct EventPoolStats {
    /// Those of any pool. The depth is read from the queues on each call, so a wedged worker hides
    /// nothing.
    pub pool: PoolStats,
    /// The memory that this takes.
    pub memory: PoolMemory,
}

impl<A, K, M> EventPool<A>
where
    A: Actor<Message = Keyed<K, M>>,
    K: Send + 'static,
    M: Send + 'static,
{
    /// Sends a message and waits for the handler's result, and for room before that if the
    /// pool is full. There is always an answer, even if the pool stops in between, or the
    /// message's key is parked.
    ///
    /// # Errors
    /// How the message ended without a reply: [`CallError::Failed`] is the handler's own error;
    /// [`CallError::NotAccepted`] gives the message back, for instance if it has no key and needs
    /// one ([`SendError::KeyRequired`]).
    ///
    /// # Panics
    /// If the function that returns the message's size does; nothing has been sent then.
    ///
    /// # Cancel safety
    /// Dropping the future abandons the message: if it has not been started, it is skipped
    /// when its turn comes.
    pub async fn process(
        &self,
        key: Option<K>,
        message: M,
    ) -> Result<A::Reply, CallError<A::Error, Keyed<K, M>>> {
        match self.keyed(key, message) {
            Ok(keyed) => self.address.call(keyed).await,
            Err(keyed) => Err(CallError::NotAccepted(SendError::KeyRequired(keyed))),
        }
    }

    /// Sends a message. Waits for room if the pool is full, but not for the handler.
    ///
    /// # Errors
    /// The message, with the reason, when it was not accepted.
    ///
    /// # Panics
    /// Those of [`process`](Self::process).
    ///
    /// # Cancel safety
    /// A dropped future has either queued the message or done nothing; the message is dropped
    /// with it in that case.
    pub async fn submit(&self, key: Option<K>, message: M) -> Result<(), SendError<Keyed<K, M>>> {
        let keyed = self.keyed(key, message).map_err(SendError::KeyRequired)?;
        self.address.send(keyed).await
    }

    /// Sends a message without waiting for anything.
    ///
    /// # Errors
    /// The message, with the reason, when it was not accepted.
    ///
    /// # Panics
    /// Those of [`process`](Self::process).
    pub fn try_submit(&self, key: Option<K>, message: M) -> Result<(), TrySendError<Keyed<K, M>>> {
        let keyed = self.keyed(key, message).map_err(TrySendError::KeyRequired)?;
        self.address.try_send(keyed)
    }

    /// The message with its key; an error if a key is required and missing.
    fn keyed(&self, key: Option<K>, message: M) -> Result<Keyed<K, M>, Keyed<K, M>> {
        let keyed = Keyed { key, message };
        if self.shared.key_required && keyed.key.is_none() {
            return Err(keyed);
        }
        self.shared.sizes.see(&keyed);
        Ok(keyed)
    }
}

impl<A: Actor> EventPool<A> {
    fn started(shared: Shared<A>) -> Self {
        Self { address: shared.pool.address(), shared: Arc::new(shared) }
    }

    /// Its configuration.
    pub fn config(&self) -> &EventPoolConfig {
        &self.shared.config
    }

    /// The underlying pool: for management, dead letters, and everything else that a pool can do.
    pub fn pool(&self) -> &Pool<A> {
        &self.shared.pool
    }

    /// Figures on its work and its memory. Takes the lock of each shard for a moment.
    pub fn stats(&self) -> EventPoolStats {
        let pool = self.shared.pool.stats();
        let letters = self.shared.pool.dead_letters().len();
        let memory = memory(&pool, letters, self.shared.sizes.measured(), &*self.shared.memory);
        EventPoolStats { pool, memory }
    }

    /// Stops the pool, like [`Pool::stop`].
    ///
    /// # Cancel safety
    /// A dropped future has closed the pool; call again to see it end.
    pub async fn stop(&self, how: Stop) -> StopReport<A::Message> {
        self.shared.pool.stop(how).await
    }

    /// Reads the memory of the pool on each call, without keeping the pool running.
    fn figures(&self) -> impl Fn() -> PoolMemory + Send + 'static {
        let Shared { pool, sizes, memory, .. } = &*self.shared;
        let (pool, letters) = (pool.admin(), pool.dead_letters().queue().clone());
        let (sizes, reading) = (sizes.clone(), memory.clone());
        move || self::memory(&pool.stats(), letters.len(), sizes.measured(), &*reading)
    }

    /// H03: the memory of a full pool, and whether that is too much.
    fn tell_estimate(&self) {
        let (config, memory) = (&self.shared.config, self.stats().memory);
        let (pool_size, inbox_size) = (config.pool_size(), config.inbox_size());
        let (name, estimate) = (self.address.erase(), memory.estimate);
        tracing::info!(
            pool = name.name(),
            pool_size,
            inbox_size,
            engine = %config.engine,
            estimate,
            "an event pool has started; when full, its messages take about this many bytes"
        );
        if memory.is_too_much() {
            tracing::warn!(
                pool = name.name(),
                estimate,
                machine = memory.machine,
                "when full, this pool's messages take more than a quarter of the machine's memory; \
                 make inbox_size or pool_size smaller"
            );
        }
    }
}

fn memory(
    stats: &PoolStats,
    letters: usize,
    measured: Option<u64>,
    reading: &dyn MemoryReading,
) -> PoolMemory {
    let average = measured.unwrap_or(ASSUMED);
    let bytes = |messages: u64| messages.saturating_mul(average);
    PoolMemory {
        average_message: average,
        is_measured: measured.is_some(),
        estimate: bytes(stats.capacity as u64),
        queues: bytes(stats.depth().saturating_sub(stats.parked)),
        parked: bytes(stats.parked),
        dead_letters: bytes(letters as u64),
        process: reading.process(),
        machine: reading.machine(),
    }
}

impl_clone!([A: Actor] EventPool<A>: address, shared);

impl_debug!([A: Actor] EventPool<A>, |this| config: this.config(), pool: this.pool());
