//! From names and parts to an engine.

use std::{
    sync::{Arc, atomic::AtomicU64},
    time::Duration,
};

use greenroom::shares::ShareLimits;
use parking_lot::Mutex;
use tokio::sync::watch;

use super::{
    ending::Ending,
    engine::{Engine, Parts},
    phase::Phase,
    pools::{LineOf, fair_share, keeps_order, spawn},
};
use crate::{
    BoxFuture,
    dead_letter::DeadLetterStore,
    engine::{
        account::ledger::Ledger,
        config::{BuildError, Finish, NoHandler, OutageConfig},
        egress::{
            dead_letters::DeadLetters,
            exits::Exits,
            outputs::{EngineOutputs, Output},
        },
        intake::{budget::InputConfig, destinations::Destinations, inputs::Inputs},
        process::{
            circuits::Circuits,
            entries::{HandlerEntry, PoolSettings},
            failures::{FailedEvent, Failures, OnFailure},
            key_audit::KeyAudit,
            loopback::{Loopback, LoopbackConfig},
            managed::Managed,
            parked::Parked,
            pause::PauseGate,
            pool_shares::PoolShares,
            processing::Processing,
            replaying::Replaying,
            retries::Retries,
            share_rooms::ShareRooms,
            shown::ShownEvents,
        },
        shared::Shared,
    },
    layer::Layers,
    name::Name,
    pattern::Pattern,
    router::{
        DEFAULT_POOL, HandlerConfig, Interest, Matcher, Named, PoolConfig, Router, RouterError,
    },
    sink::Sink,
    source::Source,
    trace::Recorder,
};

/// The default limit of a drain.
const DEADLINE: Duration = Duration::from_secs(30);

/// Sets an engine up. Nothing runs before [`build`](Self::build).
#[must_use = "a builder does nothing until it is built"]
pub struct EngineBuilder {
    inputs: Vec<NewInput>,
    all_outputs: bool,
    routing: RoutingParts,
    outputs: Vec<Output>,
    dead_letters: Option<Arc<dyn DeadLetterStore>>,
    outage: OutageConfig,
    on_failure: Option<OnFailure>,
    recorder: Option<Arc<dyn Recorder>>,
    loopback: Option<LoopbackConfig>,
    deadline: Duration,
    finish: Option<Finish>,
    line_of: LineOf,
}

/// Where events go, as it was named: in any order.
struct RoutingParts {
    router: Router,
    /// The router was given, with a configuration of its own.
    has_router: bool,
    pools: Vec<(String, PoolConfig)>,
    handlers: Vec<(String, HandlerConfig)>,
    /// What single shares may, by their pool.
    shares: Vec<(String, Arc<str>, ShareLimits)>,
    /// Around every handler, outside of its own.
    layers: Layers,
    no_handler: NoHandler,
    handler_rejected: NoHandler,
    /// Of the random choices of all pools.
    seed: Option<u64>,
    audit: Option<KeyAudit>,
}

/// An input that was named.
struct NewInput {
    name: Option<String>,
    /// Which events it takes, and its limits on events in flight.
    config: InputConfig,
    source: Box<dyn Source>,
}

/// The name of the loopback in dead letters and reports, in place of an input.
const LOOPBACK: &str = "loopback";

impl Default for EngineBuilder {
    fn default() -> Self {
        Self {
            inputs: Vec::new(),
            all_outputs: false,
            routing: RoutingParts::default(),
            outputs: Vec::new(),
            dead_letters: None,
            outage: OutageConfig::default(),
            on_failure: None,
            recorder: None,
            loopback: None,
            deadline: DEADLINE,
            finish: None,
            line_of: |job| job.line.clone(),
        }
    }
}

impl Default for RoutingParts {
    fn default() -> Self {
        Self {
            router: Router::new(PoolConfig::default()),
            has_router: false,
            pools: Vec::new(),
            handlers: Vec::new(),
            shares: Vec::new(),
            layers: Layers::new(),
            no_handler: NoHandler::DeadLetter,
            handler_rejected: NoHandler::DeadLetter,
            seed: None,
            audit: None,
        }
    }
}

fn named_shares(all: &[(String, Arc<str>, ShareLimits)], pool: &str) -> PoolShares {
    let here = all.iter().filter(|(name, ..)| name == pool);
    PoolShares::new(here.map(|(_, share, limits)| (share.clone(), *limits)))
}

impl Engine {
    /// Starts to set an engine up.
    pub fn builder() -> EngineBuilder {
        EngineBuilder::default()
    }
}

impl EngineBuilder {
    /// Reads events from here.
    pub fn input(self, source: Box<dyn Source>) -> Self {
        self.input_with(source, InputConfig::default())
    }

    /// Reads from here the events that the matcher takes. The others are acknowledged, and count as
    /// ignored; one on which it panics is a dead letter.
    pub fn input_where(self, source: Box<dyn Source>, matcher: Matcher) -> Self {
        self.input_with(source, matcher.into())
    }

    /// Reads from this source the events that its matcher takes, with limits of its own on events
    /// in flight.
    pub fn input_with(mut self, source: Box<dyn Source>, config: InputConfig) -> Self {
        self.inputs.push(NewInput { name: None, config, source });
        self
    }

    /// Like [`input_with`](Self::input_with), with a name by which the input can be
    /// [removed](crate::engine::Control::remove_input) while the engine runs. An input without a
    /// name gets that of its source, [as it describes itself](Source::describe), with a number if
    /// others have the same: `script`, `script (2)`. A [`Matcher`] is a configuration with the
    /// default limits.
    pub fn input_named(
        mut self,
        name: impl Into<String>,
        config: impl Into<InputConfig>,
        source: Box<dyn Source>,
    ) -> Self {
        self.inputs.push(NewInput { name: Some(name.into()), config: config.into(), source });
        self
    }

    /// The pools and handlers of this router, instead of those that were added before. Its
    /// configuration overrides the engine's [`buffer`](Self::buffer), in either order.
    pub fn router(mut self, router: Router) -> Self {
        (self.routing.router, self.routing.has_router) = (router, true);
        self
    }

    /// Events that each pool accepts and does not start, unless its own configuration or that of
    /// the router sets it; 1,000 by default. The settings that pools inherit are in
    /// [`pool_config`](Self::pool_config).
    pub fn buffer(mut self, events: usize) -> Self {
        if !self.routing.has_router {
            self.routing.router.set_buffer(events);
        }
        self
    }

    /// The settings that pools inherit: `PoolConfig { workers: 5, ..*engine.pool_config() }`.
    pub fn pool_config(&self) -> &PoolConfig {
        self.routing.router.pool_config()
    }

    /// Like [`Router::add_pool`], which returns the error at once.
    ///
    /// # Errors
    /// As there.
    pub fn add_pool(&mut self, name: &str, config: PoolConfig) -> Result<(), RouterError> {
        self.routing.router.add_pool(name, config)
    }

    /// Like [`Router::add_handler`].
    ///
    /// # Errors
    /// As there.
    pub fn add_handler(&mut self, name: &str, config: HandlerConfig) -> Result<(), RouterError> {
        self.routing.router.add_handler(name, config)
    }

    /// Like [`Router::add_handler_to_pool`].
    ///
    /// # Errors
    /// As there.
    pub fn add_handler_to_pool(
        &mut self,
        name: &str,
        config: HandlerConfig,
        pool: &str,
    ) -> Result<(), RouterError> {
        self.routing.router.add_handler_to_pool(name, config, pool)
    }

    /// A named pool. The pool `default` exists anyway; named here, it gets this configuration.
    pub fn pool(mut self, name: impl Into<String>, config: PoolConfig) -> Self {
        self.routing.pools.push((name.into(), config));
        self
    }

    /// What this share may in this pool, in place of its
    /// [`share_limits`](PoolConfig::share_limits).
    pub fn share(
        mut self,
        pool: impl Into<String>,
        share: impl Into<Arc<str>>,
        limits: ShareLimits,
    ) -> Self {
        self.routing.shares.push((pool.into(), share.into(), limits));
        self
    }

    /// A named handler.
    pub fn handler(mut self, name: impl Into<String>, config: HandlerConfig) -> Self {
        self.routing.handlers.push((name.into(), config));
        self
    }

    /// Puts these layers around every handler, inside those that were given before, and outside a
    /// handler's own ([`Layers::around`]).
    pub fn layers(mut self, layers: &Layers) -> Self {
        self.routing.layers = self.routing.layers.and(layers);
        self
    }

    /// Sends results of handlers that `on` covers to this sink. The first output that covers an
    /// event gets it, unless [`all_outputs`](Self::all_outputs) is set.
    pub fn output(self, name: impl Into<String>, on: Vec<Pattern>, sink: Arc<dyn Sink>) -> Self {
        self.output_where(name, on, Matcher::any(), sink)
    }

    /// Like [`output`](Self::output), for those of these events that the matcher takes. The others
    /// go to the next output. If a matcher panics on an output event, its input is refused.
    pub fn output_where(
        mut self,
        name: impl Into<String>,
        on: Vec<Pattern>,
        matcher: Matcher,
        sink: Arc<dyn Sink>,
    ) -> Self {
        self.outputs.push(Output::new(name.into(), Interest { on, matcher }, sink));
        self
    }

    /// Hands the results of handlers to every output that takes them, rather than to the first. An
    /// event is settled when all of them have stored it.
    pub fn all_outputs(mut self, all: bool) -> Self {
        self.all_outputs = all;
        self
    }

    /// Where dead letters go.
    pub fn dead_letters(mut self, store: Arc<dyn DeadLetterStore>) -> Self {
        self.dead_letters = Some(store);
        self
    }

    /// The treatment of events that have no handler; a dead letter by default.
    pub fn no_handler(mut self, no_handler: NoHandler) -> Self {
        self.routing.no_handler = no_handler;
        self
    }

    /// The treatment of events that have handlers, but that every matcher refuses; a dead letter by
    /// default.
    pub fn handler_rejected(mut self, handler_rejected: NoHandler) -> Self {
        self.routing.handler_rejected = handler_rejected;
        self
    }

    /// When a handler is taken to be in outage.
    pub fn outage(mut self, outage: OutageConfig) -> Self {
        self.outage = outage;
        self
    }

    /// Feeds results of handlers back in, instead of sending them to an output. A result belongs to
    /// the event that it was made of, which is settled when all of its results are. It is handled
    /// like an event of an input called `loopback`.
    pub fn loopback(mut self, loopback: LoopbackConfig) -> Self {
        self.loopback = Some(loopback);
        self
    }

    /// Tells of each failed attempt, with its event. Without this, failures are logged with the
    /// event's type, id and key, the pool and the attempt, one a second at most.
    pub fn on_failure(
        mut self,
        on_failure: impl Fn(&FailedEvent<'_>) + Send + Sync + 'static,
    ) -> Self {
        self.on_failure = Some(Arc::new(on_failure));
        self
    }

    /// Passes the spans of deliveries to this recorder, for those that it or their producers choose
    /// ([`trace`](crate::trace)). Without one, nothing is recorded, and a `traceparent` is passed
    /// on unchanged.
    pub fn record(mut self, recorder: Arc<dyn Recorder>) -> Self {
        self.recorder = Some(recorder);
        self
    }

    /// Seeds the random choices of all pools (jitter, the hash of keys), for tests that replay.
    pub fn seed(mut self, seed: u64) -> Self {
        self.routing.seed = Some(seed);
        self
    }

    /// Watches this share of the keys, from 0 to 1, chosen by their hash: a key that is in the
    /// hands of two handler calls at once is logged and counted
    /// ([`LedgerView::overlapping`](crate::engine::LedgerView)). Without it, none is watched.
    /// Events that are handled together in a batch are not looked at.
    pub fn audit(mut self, share: f64) -> Self {
        self.routing.audit = Some(KeyAudit::new(share));
        self
    }

    /// How long a drain may take; 30 s by default.
    pub fn deadline(mut self, deadline: Duration) -> Self {
        self.deadline = deadline;
        self
    }

    /// Which events a drain waits for; by default, those in hand for inputs that keep their
    /// positions, and all that were taken for the others.
    pub fn finish(mut self, finish: impl Into<Option<Finish>>) -> Self {
        self.finish = finish.into();
        self
    }

    /// Starts the pools. Nothing is read before [`Engine::run`].
    ///
    /// # Errors
    /// Invalid names or sizes, or why a pool could not start.
    ///
    /// # Panics
    /// Outside a tokio runtime.
    pub fn build(self) -> BoxFuture<'static, Result<Engine, BuildError>> {
        Box::pin(self.build_on_sources())
    }

    async fn build_on_sources(mut self) -> Result<Engine, BuildError> {
        if self.inputs.is_empty() {
            return Err(BuildError::NoInput);
        }
        let (named, others): (Vec<_>, Vec<_>) =
            std::mem::take(&mut self.inputs).into_iter().partition(|input| input.name.is_some());
        let inputs = Inputs::new(self.finish);
        for NewInput { name, config, source } in named.into_iter().chain(others) {
            let name = name.unwrap_or_else(|| inputs.free_name(source.describe()));
            inputs.add(&name, config, source).map_err(|(why, _)| BuildError::Ends(why))?;
        }
        self.build_with(inputs).await
    }

    /// An engine without inputs, whose events all come from `giver`.
    pub(crate) async fn build_for(self, giver: &str) -> Result<Engine, BuildError> {
        let inputs = Inputs::new(self.finish);
        inputs.add_without_source(giver);
        inputs.close();
        self.build_with(inputs).await
    }

    async fn build_with(mut self, inputs: Inputs) -> Result<Engine, BuildError> {
        let dead_letters = self.dead_letters.take().ok_or(BuildError::NoDeadLetters)?;
        self.gather()?;
        self.check_loopback()?;
        let outputs = EngineOutputs::new();
        for output in std::mem::take(&mut self.outputs) {
            outputs.add(output, None).map_err(BuildError::Ends)?;
        }
        let way_back = |config| Loopback::new(config, inputs.add_without_source(LOOPBACK));
        let loopback = self.loopback.take().map(|config| Arc::new(way_back(config)));
        let Named { pools, handlers } = self.routing.router.parts();
        let named = |pool: &String| pools.iter().any(|(name, _)| name == pool);
        if let Some((pool, ..)) = self.routing.shares.iter().find(|(pool, ..)| !named(pool)) {
            return Err(BuildError::NoSuchPool(pool.clone()));
        }
        let mut shared_out = vec![false; pools.len()];
        let handlers = handlers.iter().map(|(name, config)| {
            let pool = pools.iter().position(|(pool, _)| *pool == config.pool);
            let pool = pool.unwrap_or_else(|| unreachable!("the router knows every pool in use"));
            let mut config = config.clone().inherit(&pools[pool].1);
            config.factory = self.routing.layers.around(config.factory);
            shared_out[pool] |= config.share_by.is_some();
            HandlerEntry::new(name, config, pool, Circuits::new(self.outage))
        });
        let handlers: Vec<_> = handlers.collect();
        let settings =
            pools.iter().zip(shared_out).map(|((name, config), has_shares)| PoolSettings {
                name: Name::new(name),
                config: Mutex::new(*config),
                pause: PauseGate::default(),
                shares: named_shares(&self.routing.shares, name),
                in_hand: ShownEvents::default(),
                timeout: config.timeout,
                keeps_order: keeps_order(config),
                on_full: config.on_full,
                rooms: has_shares.then(|| ShareRooms::new(config)),
                failed_attempts: AtomicU64::new(0),
                further_attempts: AtomicU64::new(0),
                retries: Retries::default(),
            });
        let ledger = Arc::new(Ledger::new(pools.len()));
        let phase = watch::Sender::new(Phase::Run);
        let replaying =
            dead_letters.replays().map(|store| Arc::new(Replaying::new(store, phase.subscribe())));
        let process = Processing {
            handlers,
            pools: settings.collect(),
            fair_share: fair_share(pools),
            failures: Failures::new(self.on_failure.take()),
            parked: Parked::default(),
            recorder: self.recorder.take(),
            audit: self.routing.audit.take(),
        };
        let egress = Exits {
            outputs,
            all_outputs: self.all_outputs,
            dead_letters: DeadLetters::new(dead_letters, ledger.clone()),
        };
        let routing = Destinations {
            no_handler: self.routing.no_handler,
            handler_rejected: self.routing.handler_rejected,
            routes: self.routing.router.table(),
            router: self.routing.router,
        };
        let shared =
            Arc::new(Shared { inputs, routing, process, loopback, replaying, egress, ledger });
        let (seed, mut running) = (self.routing.seed, Vec::new());
        for (place, (name, config)) in shared.routing.router.parts().pools.iter().enumerate() {
            let seed = seed.map(|seed| seed.wrapping_add(place as u64));
            running.push(spawn(&shared, (place, name), config, self.line_of, seed).await?);
        }
        let managed =
            running.iter().map(|pool| Managed { admin: pool.admin(), keys: pool.keys().ok() });
        let parts = Parts {
            managed: managed.collect(),
            pools: running,
            _ending: Ending(shared.clone()),
            shared,
            deadline: self.deadline,
            outage_limit: self.outage.limit,
            phase,
        };
        Ok(Engine { parts })
    }

    fn check_loopback(&self) -> Result<(), BuildError> {
        let sends = |(_, config): &&(String, HandlerConfig)| config.loopback > 0;
        let Some((handler, config)) = self
            .routing
            .router
            .parts()
            .handlers
            .iter()
            .filter(sends)
            .max_by_key(|(_, config)| config.loopback)
        else {
            return Ok(());
        };
        let (handler, declared) = (handler.clone(), config.loopback);
        match &self.loopback {
            None => Err(BuildError::NoLoopback(handler)),
            Some(loopback) if loopback.room < declared => {
                Err(BuildError::LoopbackTooSmall { handler, declared, room: loopback.room })
            }
            Some(_) => Ok(()),
        }
    }

    /// Collects the handlers and pools, in whatever order they were named, into the router.
    fn gather(&mut self) -> Result<(), RouterError> {
        let mut has_default = false;
        for (name, config) in std::mem::take(&mut self.routing.pools) {
            if name == DEFAULT_POOL && !has_default {
                has_default = true;
                self.routing.router.set_default(config);
            } else {
                self.routing.router.add_pool(&name, config)?;
            }
        }
        for (name, config) in std::mem::take(&mut self.routing.handlers) {
            let pool = config.pool.clone();
            self.routing.router.add_handler_to_pool(&name, config, &pool)?;
        }
        Ok(())
    }

    /// Pools that keep no order, though events stand in lines: to see that the audit notices.
    #[cfg(test)]
    pub(crate) fn without_order(mut self) -> Self {
        self.line_of = |_| None;
        self
    }
}
