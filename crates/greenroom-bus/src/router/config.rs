//! How a pool and a handler are declared.

use std::{sync::Arc, time::Duration};

use greenroom::{
    Backoff, FinalAction, Restarts,
    advisor::Advisor,
    autoscale::Autoscale,
    batch::Batches,
    event_pool,
    limits::{Adaptive, Rate},
    shares::ShareLimits,
};

use greenroom_config::{
    count, defaults_beside, duration, durations, options, units::DAY_MS, words,
};

use super::matcher::Matcher;
use crate::{
    event::{Event, OrderBy},
    handler::HandlerFactory,
    pattern::Pattern,
};

/// A named pool of workers.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PoolConfig {
    /// Events in hand at once; 1 by default.
    pub workers: usize,
    /// Events accepted and not started, for the whole pool; 1,000 by default.
    pub queue: usize,
    /// The order that events keep: that of each handler's [`order_by`](HandlerConfig::order_by), or
    /// none, whatever the handlers ask for.
    pub engine: event_pool::Engine,
    /// The treatment of an event that finds the queue full, or the limit for its key reached.
    pub on_full: OnFull,
    /// Events that may wait behind one key; `None`: a quarter of the queue, so
    /// that one key cannot fill it.
    pub max_per_key: Option<usize>,
    /// The consequence when an event has failed for good. A dead letter by default; decisions about
    /// parked keys go through [`Pool::keys`](greenroom::Pool::keys), and events that are still
    /// parked at the end of a run are refused.
    pub on_final_failure: FinalAction,
    /// The field that orders the events of handlers without one of their own
    /// ([`HandlerConfig::order_by`]). `None`: no order.
    pub order_by: Option<OrderBy>,
    /// The field that names the share of events of handlers without one of their own
    /// ([`HandlerConfig::share_by`]). `None`: no shares.
    pub share_by: Option<OrderBy>,
    /// What each share may, but those that are
    /// [named](crate::engine::EngineBuilder::share). A weight of 1 and no cap by default.
    pub share_limits: ShareLimits,
    /// Events of one share that may wait in the pool; `None`: a quarter of the queue, so that one
    /// share cannot fill it. Of the limit for one key, whichever is reached first counts.
    pub share_queue: Option<usize>,
    /// The treatment of an event whose share has as many waiting; `None`: as
    /// [`on_full`](Self::on_full). What pauses takes no room of other shares.
    pub on_share_full: Option<OnFull>,
    /// How failures of its handlers are retried that name nothing of their own
    /// ([`HandlerConfig::retry`]). `None`: as usual.
    pub retry: Option<Retry>,
    /// How often a worker whose handler panicked is restarted.
    pub restarts: Restarts,
    /// Whether the pool reports its events to the process's [`PoolEvents`](greenroom::PoolEvents)
    /// and to the log.
    pub event_stream: bool,
    /// How many events of one line a handler gets at once; one by default.
    pub batches: Option<Batches>,
    /// With how many bytes (about:
    /// [`Event::approximate_bytes`](crate::event::Event::approximate_bytes)) such a batch is full,
    /// too; `None`: only with its number of events.
    pub batch_bytes: Option<usize>,
    /// The most attempts started in a period of time; unlimited by default. An event that waits for
    /// its turn holds no key.
    pub rate: Option<Rate>,
    /// The most attempts in hand at once, if that is fewer than the workers; unlimited by default.
    pub concurrency: Option<Concurrency>,
    /// How long an attempt may take; unlimited by default. A longer attempt is dropped at its next
    /// await and has failed: how far it got is unknown.
    pub timeout: Option<Duration>,
    /// Lets the pool change its workers by itself, between these bounds.
    pub autoscale: Option<Autoscale>,
    /// Observes the pool for minutes at a time and recommends settings: a queue length and a number
    /// of workers. None by default.
    pub advisor: Option<Advisor>,
    /// Runs the workers on this many threads of the pool's own, for handlers that compute or block:
    /// otherwise they delay the inputs and every other pool.
    pub dedicated_threads: Option<usize>,
    /// Its share of the starts of handlers where several pools compete for threads, because their
    /// handlers compute: three times the weight, three times the starts. 1 for pools that name
    /// none, where another does; above 0. Attempts that wait for something take no thread, and no
    /// share; nor do those of a pool with [`dedicated_threads`](Self::dedicated_threads).
    pub weight: Option<u32>,
}

/// How many attempts a pool has in hand at once, at most.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Concurrency {
    /// This many.
    Fixed(usize),
    /// As many as the target bears, found out by how long attempts take and how they end.
    Adaptive(Adaptive),
}

impl PoolConfig {
    /// The name of the first setting that differs from `other`. Settings that can change while the
    /// pool runs come last or not at all.
    pub(crate) fn first_difference(&self, other: &Self) -> &'static str {
        let differs = [
            ("engine", self.engine != other.engine),
            ("on_full", self.on_full != other.on_full),
            ("max_per_key", self.max_per_key != other.max_per_key),
            ("order_by", self.order_by != other.order_by),
            ("share_by", self.share_by != other.share_by),
            ("on_share_full", self.on_share_full != other.on_share_full),
            ("on_final_failure", self.on_final_failure != other.on_final_failure),
            ("restarts", self.restarts != other.restarts),
            ("event_stream", self.event_stream != other.event_stream),
            ("batches", self.batches != other.batches),
            ("batch_bytes", self.batch_bytes != other.batch_bytes),
            ("timeout", self.timeout != other.timeout),
            ("autoscale", self.autoscale != other.autoscale),
            ("weight", self.weight != other.weight),
            ("dedicated_threads", self.dedicated_threads != other.dedicated_threads),
            ("rate", self.rate != other.rate),
            ("concurrency", self.concurrency != other.concurrency),
        ];
        let first = differs.iter().find(|(_, differs)| *differs);
        first.map_or("its settings", |(name, _)| name)
    }
}

impl Default for PoolConfig {
    fn default() -> Self {
        Self {
            workers: 1,
            queue: 1_000,
            engine: event_pool::Engine::Keyed,
            on_full: OnFull::Pause,
            max_per_key: None,
            order_by: None,
            share_by: None,
            share_limits: ShareLimits::default(),
            share_queue: None,
            on_share_full: None,
            retry: None,
            on_final_failure: FinalAction::DeadLetter,
            restarts: Restarts::default(),
            event_stream: true,
            batches: None,
            batch_bytes: None,
            rate: None,
            concurrency: None,
            timeout: None,
            autoscale: None,
            advisor: None,
            dedicated_threads: None,
            weight: None,
        }
    }
}

words! {
    /// The treatment of an event whose pool is full.
    pub enum OnFull {
        /// It waits for the pool; other pools continue. Its source pauses once
        /// [`run_ahead`](crate::engine::InputConfig::run_ahead) events wait: 10,000 by default.
        Pause = "pause",
        /// It is refused: its source may deliver it again.
        Reject = "reject",
        /// It becomes a dead letter.
        DeadLetter = "dead_letter",
    }
}

/// A handler, the events that it takes, and how it is run.
#[derive(Clone)]
pub struct HandlerConfig {
    /// The event types it handles.
    pub on: Vec<Pattern>,
    /// Selects some of these; all of them by default.
    pub matcher: Matcher,
    /// Whether it gets events in addition to the handler that they go to, each with an outcome of
    /// its own.
    pub fan_out: bool,
    /// The pool that runs it; `default` by default.
    pub pool: String,
    /// Events with the same value here are handled one at a time, in order. `None`: as set for [its
    /// pool](PoolConfig::order_by); [`OrderBy::none`] if it is to keep no order there.
    pub order_by: Option<OrderBy>,
    /// Events with the same value here are a share: a tenant, an account. Workers' time is divided
    /// among shares, however many events or keys each has. `None`: as set for [its
    /// pool](PoolConfig::share_by); [`OrderBy::none`] if its events are to have no share. Events
    /// without that value have one in common.
    pub share_by: Option<OrderBy>,
    /// Whether an event without that value is a dead letter; otherwise it is handled without order.
    pub key_required: bool,
    /// How failures are retried. `None`: as set for [its pool](PoolConfig::retry).
    pub retry: Option<Retry>,
    /// When an event that was handled is acknowledged.
    pub ack: AckWhen,
    /// How many results of one event may come back in, if the engine has a
    /// [`loopback`](crate::engine::EngineBuilder::loopback); none by default. That much room is
    /// reserved before it starts.
    pub loopback: usize,
    /// Builds the handler of each worker.
    pub factory: Arc<dyn HandlerFactory>,
}

impl HandlerConfig {
    /// A handler in the `default` pool, with its order and retries.
    pub fn new(on: Vec<Pattern>, factory: Arc<dyn HandlerFactory>) -> Self {
        Self {
            on,
            matcher: Matcher::any(),
            fan_out: false,
            pool: DEFAULT_POOL.to_owned(),
            order_by: None,
            share_by: None,
            key_required: false,
            retry: None,
            ack: AckWhen::default(),
            loopback: 0,
            factory,
        }
    }

    /// The key by which it orders this event; `None` if it keeps no order, or the event has no such
    /// value and needs none. Ignores whether its pool keeps order.
    ///
    /// # Errors
    /// The event needs a key and has none, or its key cannot be read: a sentence for a dead letter.
    pub fn key(&self, event: &Event) -> Result<Option<Arc<str>>, String> {
        let Some(order_by) = &self.order_by else { return Ok(None) };
        match order_by.key(event) {
            Ok(None) if self.key_required => {
                Err(format!("the event has no {order_by}, by which its handler keeps order"))
            }
            Ok(key) => Ok(key),
            Err(error) => Err(error.to_string()),
        }
    }

    /// The share of this event; `None` if it has none, or what it has is no single value.
    pub fn share(&self, event: &Event) -> Option<Arc<str>> {
        self.share_by.as_ref()?.key(event).ok().flatten()
    }

    /// Fills unset fields from its pool.
    pub(crate) fn inherit(self, pool: &PoolConfig) -> Self {
        let order_by = self.order_by.or(pool.order_by).filter(OrderBy::is_order);
        let share_by = self.share_by.or(pool.share_by).filter(OrderBy::is_order);
        let retry = self.retry.or(pool.retry);
        Self { order_by, share_by, retry, ..self }
    }
}

/// When an event that was handled is acknowledged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum AckWhen {
    /// When all results of its handler are stored by their outputs.
    #[default]
    Outputs,
    /// When its handler was done with it. Outputs that are lost afterwards are counted
    /// ([`lost_outputs`](crate::engine::RunReport::lost_outputs)), and the event is not delivered
    /// again.
    OnSuccess,
    /// When its handler says so, through [`Settlement`](crate::handler::Settlement),
    /// and its outputs are stored.
    Manual,
}

/// The pool that always exists.
pub const DEFAULT_POOL: &str = "default";

options! {
    /// A failed event is retried in its place: later events of its key wait, the worker does not.
    #[derive(Copy, Eq)]
    pub struct Retry = "retry" {
        /// How often an event is tried in total; then it is a dead letter.
        attempts: u32 = count(1..=1_000_000).default("5");
        /// The wait before the second attempt and the longest wait; it doubles in between, with
        /// jitter.
        backoff: Backoff = durations().to::<Backoff>().default("200ms..30s");
        /// No further attempt is made this long after the first failure; unlimited by default.
        /// Outages do not count.
        total: Option<Duration> = duration(1..=30 * DAY_MS).optional();
    }
}

impl Default for Retry {
    fn default() -> Self {
        defaults_beside(&[])
    }
}
