//! From a configuration and a factory to a running event-bus pool.

use std::{hash::Hash, sync::Arc};

use super::{
    EventPool, Keyed, Shared,
    alarm::MemoryAlarm,
    config::EventPoolConfig,
    engine::Engine,
    memory::{Machine, MemoryReading},
    sizes::{MessageSize, Sizes},
};
use crate::{Actor, Pool, PoolBuilder, PoolEvents, SpawnError};
use greenroom_config::Problems;

/// An event-bus pool that is being set up; made by [`EventPool::new`]. Nothing
/// runs before [`spawn`](Self::spawn).
#[must_use = "a builder does nothing until it is spawned"]
pub struct EventPoolBuilder<A: Actor> {
    config: EventPoolConfig,
    pool: PoolBuilder<A>,
    key_required: bool,
    size_of: Option<MessageSize<A::Message>>,
    memory: Arc<dyn MemoryReading>,
}

/// Why an event-bus pool could not be started.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EventPoolError {
    /// The configuration is out of range.
    #[error(transparent)]
    Config(#[from] Problems),
    /// The pool could not be started.
    #[error(transparent)]
    Spawn(#[from] SpawnError),
}

impl<A: Actor> EventPoolBuilder<A> {
    pub(super) fn new(config: EventPoolConfig, pool: PoolBuilder<A>) -> Self {
        Self { config, pool, key_required: false, size_of: None, memory: Arc::new(Machine) }
    }

    /// The pool's name in logs and reports; `pool` by default.
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.pool = self.pool.name(name);
        self
    }

    /// Any other setting of a pool: a failure table, a limit, a hook for dead letters. The settings
    /// of the configuration (sizes, restarts, the order) still hold.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use greenroom::{Backoff, event_pool::{EventPool, EventPoolConfig, Keyed}, prelude::*};
    /// # struct Orders; impl Actor for Orders { type Message = Keyed<u64, &'static str>; type Reply = (); type Error = ();
    /// # async fn handle(&mut self, _: Self::Message, _: &mut Context<Self>) -> Result<(), ()> { Ok(()) } }
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let backoff = Backoff::new(Duration::from_millis(100), Duration::from_secs(10));
    /// let orders = EventPool::new(EventPoolConfig::default(), |_slot| Orders)
    ///     .with(|pool| pool.retry(5, backoff).dead_letters(10_000))
    ///     .spawn()
    ///     .await?;
    /// # Ok(()) }
    /// ```
    pub fn with(mut self, set: impl FnOnce(PoolBuilder<A>) -> PoolBuilder<A>) -> Self {
        self.pool = set(self.pool);
        self
    }

    /// Refuses messages without a key (`KeyRequired`). Otherwise they are handled in any order.
    pub fn key_required(mut self) -> Self {
        self.key_required = true;
        self
    }

    /// The source of figures about memory; the [`Machine`] by default.
    pub fn memory_reading(mut self, reading: Arc<dyn MemoryReading>) -> Self {
        self.memory = reading;
        self
    }
}

impl<A, K, M> EventPoolBuilder<A>
where
    A: Actor<Message = Keyed<K, M>>,
    K: Hash + Eq + Clone + Send + Sync + 'static,
    M: Send + 'static,
{
    /// Returns the size of a message, in bytes, for the memory estimate: 200 is assumed without
    /// this. It is called in the sender, for one message in 61.
    pub fn message_size(mut self, size_of: impl Fn(&M) -> usize + Send + Sync + 'static) -> Self {
        self.size_of = Some(Box::new(move |keyed| size_of(&keyed.message)));
        self
    }

    /// Starts the pool, and logs its memory estimate.
    ///
    /// # Errors
    /// All settings that are out of range, or why the pool could not start; nothing is left running
    /// then.
    pub async fn spawn(self) -> Result<EventPool<A>, EventPoolError> {
        self.config.check()?;
        let Self { config, pool, key_required, size_of, memory } = self;
        let pool = settled(pool, &config);
        let pool = if key_required { pool.key_required() } else { pool };
        let notices = pool.told();
        let pool = match config.engine {
            Engine::Keyed => pool.ordered_by_opt(key_of).spawn().await?,
            Engine::Sticky => pool.sticky_by_opt(key_of).spawn().await?,
            Engine::Shared => pool.spawn().await?,
        };
        let sizes = Arc::new(Sizes::new(size_of));
        let pool = EventPool::started(Shared { pool, config, key_required, sizes, memory });
        pool.tell_estimate();
        if notices.is_on() {
            let (end, figures) = (pool.pool().erase(), pool.figures());
            let runtime = pool.pool().runtime().clone();
            runtime.spawn(MemoryAlarm::new(config.memory_ceiling).watch(end, notices, figures));
        }
        Ok(pool)
    }
}

/// The pool with the settings of the configuration.
fn settled<A: Actor>(pool: PoolBuilder<A>, config: &EventPoolConfig) -> PoolBuilder<A> {
    let pool = pool.workers(config.pool_size()).mailbox(config.inbox_size());
    let pool = pool.max_restarts(config.max_restarts);
    if config.enable_event_stream { pool } else { pool.pool_events(PoolEvents::off()) }
}

fn key_of<K: Clone, M>(keyed: &Keyed<K, M>) -> Option<K> {
    keyed.key.clone()
}

impl_debug!([A: Actor] EventPoolBuilder<A>, |this| config: this.config);

impl<A: Actor> EventPool<A> {
    /// Sets up a pool whose workers `factory` builds, like [`Pool::new`].
    #[expect(clippy::new_ret_no_self, reason = "a pool is started by its builder")]
    pub fn new(
        config: EventPoolConfig,
        factory: impl Fn(usize) -> A + Send + Sync + 'static,
    ) -> EventPoolBuilder<A> {
        EventPoolBuilder::new(config, Pool::new(factory))
    }
}
