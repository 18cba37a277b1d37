//! From names and parts to an engine.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, AtomicUsize},
    },
    time::Duration,
};

use greenroom::{Notices, Pool, PoolBuilder, event_pool};
use parking_lot::Mutex;
use tokio::sync::watch;

use super::{
    Engine, Parts, Phase,
    brake::Brake,
    config::{
        BuildError, Concurrency, DEFAULT_POOL, HandlerConfig, NoHandler, OutageConfig, PoolConfig,
    },
    control::Managed,
    ledger::Ledger,
    log_limit::LogLimit,
    order_audit::Line,
    outage::Outage,
    run::SharedPool,
    shared::{Handler, Job, Output, PoolSettings, Shared},
    worker::{self, BusWorker},
};
use crate::{
    dead_letter::DeadLetterStore, name::Name, pattern::Pattern, router::Router, sink::Sink,
    source::Source,
};

/// How long a drain may take, unless said otherwise.
const DEADLINE: Duration = Duration::from_secs(30);

/// One key may have this part of a pool's queue, unless said otherwise.
const SHARE_OF_A_KEY: usize = 4;

/// Above 1,000,000 millionths: how much of the input has been read is not known.
const UNKNOWN: u64 = u64::MAX >> 16;

/// Sets an engine up. Nothing runs before [`build`](Self::build).
#[must_use = "a builder does nothing until it is built"]
pub struct EngineBuilder {
    inputs: Vec<Box<dyn Source>>,
    pools: Vec<(String, PoolConfig)>,
    handlers: Vec<(String, HandlerConfig)>,
    outputs: Vec<Output>,
    dead_letters: Option<Arc<dyn DeadLetterStore>>,
    no_handler: NoHandler,
    outage: OutageConfig,
    deadline: Duration,
    line_of: LineOf,
}

/// What a pool keeps in order.
type LineOf = fn(&Job) -> Option<Line>;

impl Default for EngineBuilder {
    fn default() -> Self {
        Self {
            inputs: Vec::new(),
            pools: Vec::new(),
            handlers: Vec::new(),
            outputs: Vec::new(),
            dead_letters: None,
            no_handler: NoHandler::default(),
            outage: OutageConfig::default(),
            deadline: DEADLINE,
            line_of: |job| job.line.clone(),
        }
    }
}

impl EngineBuilder {
    /// Reads events from here.
    pub fn input(mut self, source: Box<dyn Source>) -> Self {
        self.inputs.push(source);
        self
    }

    /// A named pool. The pool `default` exists anyway; named here, it gets this configuration.
    pub fn pool(mut self, name: impl Into<String>, config: PoolConfig) -> Self {
        self.pools.push((name.into(), config));
        self
    }

    /// A named handler.
    pub fn handler(mut self, name: impl Into<String>, config: HandlerConfig) -> Self {
        self.handlers.push((name.into(), config));
        self
    }

    /// Sends what handlers produce, and `on` covers, here. The first output that covers an event gets it.
    pub fn output(
        mut self,
        name: impl Into<String>,
        on: Vec<Pattern>,
        sink: Arc<dyn Sink>,
    ) -> Self {
        self.outputs.push(Output { name: name.into(), events: AtomicU64::new(0), on, sink });
        self
    }

    /// Where dead letters go.
    pub fn dead_letters(mut self, store: Arc<dyn DeadLetterStore>) -> Self {
        self.dead_letters = Some(store);
        self
    }

    /// What happens to events that no handler is named for; a dead letter unless said otherwise.
    pub fn no_handler(mut self, no_handler: NoHandler) -> Self {
        self.no_handler = no_handler;
        self
    }

    /// When a handler is taken to be in outage.
    pub fn outage(mut self, outage: OutageConfig) -> Self {
        self.outage = outage;
        self
    }

    /// How long a drain may take; 30 s unless said otherwise.
    pub fn deadline(mut self, deadline: Duration) -> Self {
        self.deadline = deadline;
        self
    }

    /// Starts the pools. Nothing is read before [`Engine::run`].
    ///
    /// # Errors
    /// What is wrong with the names or sizes, or why a pool could not start.
    ///
    /// # Panics
    /// Outside a tokio runtime.
    pub async fn build(mut self) -> Result<Engine, BuildError> {
        if self.inputs.is_empty() {
            return Err(BuildError::NoInput);
        }
        let dead_letters = self.dead_letters.take().ok_or(BuildError::NoDeadLetters)?;
        let pools = self.pool_settings()?;
        let (handlers, router) = self.handlers(&pools)?;
        let settings = pools.iter().map(|(name, config)| PoolSettings {
            name: Name::new(name),
            config: Mutex::new(*config),
            brake: Brake::default(),
            timeout: config.timeout,
            keeps_order: keeps_order(config),
            on_full: config.on_full,
            failed_attempts: AtomicU64::new(0),
            further_attempts: AtomicU64::new(0),
        });
        let shared = Arc::new(Shared {
            router,
            handlers,
            pools: settings.collect(),
            outputs: std::mem::take(&mut self.outputs),
            dead_letters,
            no_handler: self.no_handler,
            letter_log: LogLimit::default(),
            ledger: Arc::new(Ledger::new(pools.len())),
            inputs: self.inputs.iter().map(|source| Arc::from(source.describe())).collect(),
            reading: AtomicUsize::new(0),
        });
        let mut running = Vec::new();
        for (place, (name, config)) in pools.iter().enumerate() {
            running.push(spawn(&shared, place, name, config, self.line_of).await?);
        }
        let managed = running
            .iter()
            .map(|pool| Managed { management: pool.manage(), keys: pool.keys().ok() });
        let parts = Parts {
            shared,
            managed: managed.collect(),
            pools: running,
            deadline: self.deadline,
            outage_limit: self.outage.limit,
            phase: watch::Sender::new(Phase::Run),
            read: self.inputs.iter().map(|_| Arc::new(AtomicU64::new(UNKNOWN))).collect(),
        };
        Ok(Engine { sources: self.inputs, parts })
    }

    /// Pools that keep no order, though events stand in lines: to see that the audit notices.
    #[cfg(test)]
    pub(super) fn without_order(mut self) -> Self {
        self.line_of = |_| None;
        self
    }

    /// The pools, `default` among them.
    fn pool_settings(&self) -> Result<Vec<(String, PoolConfig)>, BuildError> {
        let mut pools: Vec<(String, PoolConfig)> = Vec::new();
        for (name, config) in &self.pools {
            if name.is_empty() {
                return Err(BuildError::PoolNameEmpty);
            }
            if pools.iter().any(|(other, _)| other == name) {
                return Err(BuildError::PoolExists(name.clone()));
            }
            pools.push((name.clone(), *config));
        }
        if !pools.iter().any(|(name, _)| name == DEFAULT_POOL) {
            pools.insert(0, (DEFAULT_POOL.to_owned(), PoolConfig::default()));
        }
        Ok(pools)
    }

    fn handlers(
        &self,
        pools: &[(String, PoolConfig)],
    ) -> Result<(Vec<Handler>, Router), BuildError> {
        let mut handlers: Vec<Handler> = Vec::new();
        let mut router = Router::default();
        for (place, (name, config)) in self.handlers.iter().enumerate() {
            let exists = |reason| BuildError::HandlerExists { handler: name.clone(), reason };
            if handlers.iter().any(|other| *other.name == **name) {
                return Err(exists("another handler has that name".to_owned()));
            }
            let pool = pools.iter().position(|(pool, _)| *pool == config.pool);
            let not_found =
                || BuildError::PoolNotFound { handler: name.clone(), pool: config.pool.clone() };
            let pool = pool.ok_or_else(not_found)?;
            for on in &config.on {
                router.add(on, place).map_err(|taken| {
                    let first = self.handlers[taken.first].0.as_str();
                    exists(format!("{} is handled by {first:?} already", taken.on))
                })?;
            }
            let outage = Outage::new(self.outage);
            handlers.push(Handler::new(name, config.clone(), pool, outage));
        }
        Ok((handlers, router))
    }
}

async fn spawn(
    shared: &Arc<Shared>,
    place: usize,
    name: &str,
    config: &PoolConfig,
    line_of: LineOf,
) -> Result<SharedPool, BuildError> {
    let (workers, letters) = (shared.clone(), shared.clone());
    let notices = if config.event_stream { Notices::global() } else { Notices::off() };
    let pool = Pool::new(move |slot| BusWorker::new(workers.clone(), place, slot))
        .name(name)
        .quick_factory()
        .workers(config.workers)
        .capacity(config.queue)
        .restarts(config.restarts)
        .notices(notices)
        .failure_policy(worker::policy)
        .on_dead_letter(move |letter| worker::bury(&letters, letter));
    let pool = limited(pool, config);
    let pool = match config.engine {
        event_pool::Engine::Keyed => ordered(pool.ordered_by_opt(line_of), config).spawn().await?,
        event_pool::Engine::Sticky => sticky(pool, config).sticky_by_opt(line_of).spawn().await?,
        _ => pool.finally(config.on_final_failure).spawn().await?,
    };
    Ok(Arc::new(pool))
}

fn limited(pool: PoolBuilder<BusWorker>, config: &PoolConfig) -> PoolBuilder<BusWorker> {
    let pool = match config.rate {
        Some(rate) => pool.rate(rate),
        None => pool,
    };
    let pool = match config.concurrency {
        Some(Concurrency::Fixed(events)) => pool.concurrency(events),
        Some(Concurrency::Adaptive(settings)) => pool.adaptive(settings),
        None => pool,
    };
    let pool = match config.autoscale {
        Some(settings) => pool.autoscale(settings),
        None => pool,
    };
    match config.dedicated_threads {
        Some(threads) => pool.dedicated_threads(threads),
        None => pool,
    }
}

/// What waits behind a key holds room in the pool, so that one key that waits cannot fill it, be it for an attempt or for an
/// operator.
fn ordered(
    pool: PoolBuilder<BusWorker, Line>,
    config: &PoolConfig,
) -> PoolBuilder<BusWorker, Line> {
    let most = config.max_per_key.unwrap_or(config.queue.div_ceil(SHARE_OF_A_KEY));
    let pool = pool.max_per_key(most).max_parked(most).finally(config.on_final_failure);
    match config.batches {
        Some(batches) => pool.batches(batches),
        None => pool,
    }
}

/// Each worker has its share of the queue.
fn sticky(pool: PoolBuilder<BusWorker>, config: &PoolConfig) -> PoolBuilder<BusWorker> {
    pool.mailbox(config.queue.div_ceil(config.workers.max(1))).finally(config.on_final_failure)
}

fn keeps_order(config: &PoolConfig) -> bool {
    config.engine != event_pool::Engine::Shared
}
