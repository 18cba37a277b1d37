//! Pools and handlers by name.

use std::{
    collections::{HashMap, HashSet},
    sync::OnceLock,
};

use super::{
    config::{AckWhen, DEFAULT_POOL, HandlerConfig, PoolConfig},
    error::RouterError,
    routes::{Considered, Route, Routes, Rule},
};
use crate::{event::Event, pattern::Pattern};

/// Named pools and handlers, before they start.
///
/// ```
/// use std::sync::Arc;
///
/// use greenroom_bus::{
///     event::Event,
///     handler::pass::PassFactory,
///     router::{HandlerConfig, PoolConfig, Route, Router},
/// };
///
/// let mut router = Router::new(PoolConfig::default());
/// router.add_pool("erp", PoolConfig { workers: 5, ..*router.pool_config() })?;
/// let all = HandlerConfig::new(vec!["order.**".parse()?], Arc::new(PassFactory));
/// router.add_handler("all", all)?;
/// let created = HandlerConfig::new(vec!["order.created".parse()?], Arc::new(PassFactory));
/// router.add_handler_to_pool("created", created, "erp")?;
///
/// let event = |ty: &str| Event::builder("1", "/shop", ty).build();
/// let route = |ty: &str| event(ty).map(|event| router.route(&event));
/// assert_eq!(route("order.created")?, Route::One(1));
/// assert_eq!(route("order.line.added")?, Route::One(0));
/// assert_eq!(route("price.changed")?, Route::NoHandler);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Router {
    /// The defaults that pools inherit.
    base: PoolConfig,
    /// `default` first, unless an engine was given its own configuration for it.
    pools: Vec<(String, PoolConfig)>,
    handlers: Vec<(String, HandlerConfig)>,
    /// Made when first asked for; empty again when a handler comes or goes.
    routes: OnceLock<Routes>,
}

impl Router {
    /// A router with the pool `default` in this configuration.
    pub fn new(default: PoolConfig) -> Self {
        let pools = vec![(DEFAULT_POOL.to_owned(), default)];
        Self { base: default, pools, handlers: Vec::new(), routes: OnceLock::new() }
    }

    /// The configuration of the router, which pools inherit: `PoolConfig { workers: 5,
    /// ..*router.pool_config() }` has five workers and otherwise the settings of `default`.
    pub fn pool_config(&self) -> &PoolConfig {
        &self.base
    }

    /// Adds a pool.
    ///
    /// # Errors
    /// [`PoolNameEmpty`](RouterError::PoolNameEmpty); [`PoolExists`](RouterError::PoolExists),
    /// which `default` always does.
    pub fn add_pool(&mut self, name: &str, config: PoolConfig) -> Result<(), RouterError> {
        if name.is_empty() {
            return Err(RouterError::PoolNameEmpty);
        }
        if name == DEFAULT_POOL || self.pools.iter().any(|(other, _)| other == name) {
            return Err(RouterError::PoolExists(name.to_owned()));
        }
        self.pools.push((name.to_owned(), config));
        Ok(())
    }

    /// Takes a pool away.
    ///
    /// # Errors
    /// There is none of this name; it is `default`; a handler needs it.
    pub fn remove_pool(&mut self, name: &str) -> Result<PoolConfig, RouterError> {
        let needs = |(_, config): &&(String, HandlerConfig)| config.pool == name;
        if let Some((handler, _)) = self.handlers.iter().find(needs) {
            return Err(RouterError::PoolInUse { pool: name.to_owned(), handler: handler.clone() });
        }
        let place = self.pools.iter().position(|(other, _)| other == name);
        match place.filter(|_| name != DEFAULT_POOL) {
            Some(place) => Ok(self.pools.remove(place).1),
            None => Err(RouterError::NotRemoved(name.to_owned())),
        }
    }

    /// Adds a handler to the pool `default`, whatever its configuration says.
    ///
    /// # Errors
    /// Like [`add_handler_to_pool`](Self::add_handler_to_pool).
    pub fn add_handler(&mut self, name: &str, config: HandlerConfig) -> Result<(), RouterError> {
        self.add_handler_to_pool(name, config, DEFAULT_POOL)
    }

    /// Adds a handler to this pool, whatever its configuration says. Its place is
    /// how many there were before.
    ///
    /// # Errors
    /// [`PoolNotFound`](RouterError::PoolNotFound); [`HandlerExists`](RouterError::HandlerExists)
    /// if the name is taken, or if another handler already takes all events of its types and
    /// neither is marked `fan_out`: a type has one handler, and before it those whose matchers
    /// check [fields](super::Matcher::field); [`CannotSettle`](RouterError::CannotSettle);
    /// [`HandlerForNothing`](RouterError::HandlerForNothing);
    /// [`HandlerNameEmpty`](RouterError::HandlerNameEmpty).
    pub fn add_handler_to_pool(
        &mut self,
        name: &str,
        config: HandlerConfig,
        pool: &str,
    ) -> Result<(), RouterError> {
        if name.is_empty() {
            return Err(RouterError::HandlerNameEmpty);
        }
        if self.pools.iter().all(|(other, _)| other != pool) {
            let (handler, pool) = (name.to_owned(), pool.to_owned());
            return Err(RouterError::PoolNotFound { handler, pool });
        }
        if config.ack == AckWhen::Manual && !config.factory.settles() {
            return Err(RouterError::CannotSettle(name.to_owned()));
        }
        self.check_handlers(std::iter::once((name, &config)))?;
        let config = HandlerConfig { pool: pool.to_owned(), ..config };
        self.handlers.push((name.to_owned(), config));
        self.routes.take();
        Ok(())
    }

    /// Takes a handler away. Those behind it move up by one place.
    ///
    /// # Errors
    /// There is none of this name.
    pub fn remove_handler(&mut self, name: &str) -> Result<HandlerConfig, RouterError> {
        let place = self.handlers.iter().position(|(other, _)| other == name);
        let place = place.ok_or_else(|| RouterError::NotRemoved(name.to_owned()))?;
        self.routes.take();
        Ok(self.handlers.remove(place).1)
    }

    /// The names of the handlers, each at its place.
    pub fn handlers(&self) -> impl ExactSizeIterator<Item = &str> {
        self.handlers.iter().map(|(name, _)| name.as_str())
    }

    /// The names of the pools.
    pub fn pools(&self) -> impl ExactSizeIterator<Item = &str> {
        self.pools.iter().map(|(name, _)| name.as_str())
    }

    /// Where an event goes. For a type that a handler names, or that was looked up before, this
    /// takes the same time whatever the number of pools and handlers.
    pub fn route(&self, event: &Event) -> Route {
        self.routes.get_or_init(|| self.table()).route(event)
    }

    /// The handlers registered for the event's type, in the order in which they are tried, and the
    /// result of each. For people, not for routing: matchers are evaluated more than once.
    pub fn explain(&self, event: &Event) -> Vec<Considered> {
        self.routes.get_or_init(|| self.table()).explain(event)
    }

    /// The table by which events are routed, for callers that ask again and again.
    pub(crate) fn table(&self) -> Routes {
        Routes::new(self.handlers.iter().map(rule).collect())
    }

    /// Sets the pool `default`, after the other pools. The inherited settings stay.
    pub(crate) fn set_default(&mut self, config: PoolConfig) {
        self.pools.retain(|(name, _)| name != DEFAULT_POOL);
        self.pools.push((DEFAULT_POOL.to_owned(), config));
    }

    /// Pools inherit this queue, and so does `default` if it has the inherited settings.
    pub(crate) fn set_buffer(&mut self, events: usize) {
        let before = self.base;
        self.base.queue = events;
        for (_, config) in self.pools.iter_mut().filter(|(name, _)| name == DEFAULT_POOL) {
            if *config == before {
                *config = self.base;
            }
        }
    }

    /// Pools and handlers, each at its place.
    pub(crate) fn parts(&self) -> Named<'_> {
        Named { pools: &self.pools, handlers: &self.handlers }
    }

    /// Whether these handlers could be added, one after the other.
    fn check_handlers<'a>(
        &'a self,
        new: impl Iterator<Item = (&'a str, &'a HandlerConfig)>,
    ) -> Result<(), RouterError> {
        let mut taken = TakenNames::default();
        let known = self.handlers.iter().map(|(name, config)| (name.as_str(), config));
        known.chain(new).try_for_each(|(name, config)| taken.add(name, config))
    }
}

/// Pools and handlers with their names, each at its place.
#[derive(Clone, Copy)]
pub(crate) struct Named<'a> {
    pub(crate) pools: &'a [(String, PoolConfig)],
    pub(crate) handlers: &'a [(String, HandlerConfig)],
}

fn rule((_, config): &(String, HandlerConfig)) -> Rule {
    Rule { on: config.on.clone(), matcher: config.matcher.clone(), fan_out: config.fan_out }
}

/// The names and types that handlers have.
#[derive(Default)]
struct TakenNames<'a> {
    names: HashSet<&'a str>,
    /// With the handler that has it and gets all of it.
    on: HashMap<&'a Pattern, &'a str>,
}

impl<'a> TakenNames<'a> {
    /// Registers the events that a handler takes.
    fn add(&mut self, name: &'a str, config: &'a HandlerConfig) -> Result<(), RouterError> {
        let exists = |reason| Err(RouterError::HandlerExists { handler: name.to_owned(), reason });
        if config.on.is_empty() {
            return Err(RouterError::HandlerForNothing(name.to_owned()));
        }
        if !self.names.insert(name) {
            return exists("another handler has that name".to_owned());
        }
        for on in config.on.iter().filter(|_| !config.fan_out) {
            if let Some(first) = self.on.get(on) {
                return exists(format!("{on} is handled by {first:?} already"));
            }
            // With a pattern, others may get the events that its matcher refuses; a type has one
            // handler, and before it those that select by conditions on fields.
            if config.matcher.is_any() || (on.exact().is_some() && !config.matcher.asks_fields()) {
                self.on.insert(on, name);
            }
        }
        Ok(())
    }
}
