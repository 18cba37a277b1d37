//! One pool of a running engine.

mod shares;
mod workers;

use greenroom::{
    Change, PoolStats,
    advisor::{Advice, Advisor},
    keys::KeyStatus,
    limits::Rate,
    pool::AdminError,
    stats::Latencies,
};

pub use self::{
    shares::{PausedShare, PoolSharesControl},
    workers::{KeyInHand, WorkerView},
};

use super::{
    change::{ChangeError, known},
    handle::Control,
};
use crate::{
    engine::process::{entries::PoolSettings, managed::Managed, retries::RetryClass},
    router::{Concurrency, PoolConfig},
};

/// One pool of a running engine: its figures, its sizes and limits, its pause. Cheap to clone; does
/// not keep the pool running.
#[derive(Clone)]
pub struct PoolControl {
    pub(crate) control: Control,
    pub(crate) place: usize,
}

/// The key that most waiting events of a pool have.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct LongestLine {
    /// The key.
    pub key: String,
    /// The handler by which it is ordered.
    pub handler: String,
    /// How many wait.
    pub events: usize,
}

/// One setting of a pool with its new value, found to be possible.
pub(crate) struct PoolChange {
    pool: PoolControl,
    to: PoolConfig,
    setting: &'static Setting,
}

/// The name of a setting, and how it gets its new value.
type Setting = (&'static str, fn(&PoolControl, &PoolConfig) -> Result<(), ChangeError>);

/// The settings that change while a pool runs.
const LIVE: &[Setting; 7] = &[
    ("workers", |pool, to| pool.resize(to.workers).map(drop)),
    ("queue", |pool, to| pool.set_queue(to.queue)),
    ("share_queue", |pool, to| {
        pool.set_share_queue(to.share_queue);
        Ok(())
    }),
    ("rate", |pool, to| pool.set_rate(to.rate)),
    ("concurrency", |pool, to| pool.set_concurrency(pool.fixed_limit(to.concurrency)?)),
    ("advisor", |pool, to| pool.set_advisor(to.advisor)),
    // Carried out by its handlers.
    ("retry", |pool, to| {
        pool.settings().config.lock().retry = to.retry;
        Ok(())
    }),
];

impl PoolControl {
    pub(super) fn settings(&self) -> &PoolSettings {
        &self.control.shared.process.pools[self.place]
    }

    pub(super) fn managed(&self) -> &Managed {
        &self.control.managed[self.place]
    }

    fn done<T>(&self, result: Result<T, AdminError>) -> Result<T, ChangeError> {
        result.map_err(|error| ChangeError::Refused { pool: self.name().to_owned(), error })
    }

    /// Its name.
    pub fn name(&self) -> &'static str {
        self.settings().name.as_str()
    }

    /// Its activity, in figures.
    pub fn stats(&self) -> PoolStats {
        self.managed().admin.stats()
    }

    /// How long events waited for a worker, were in hand, and were in the pool.
    pub fn latencies(&self) -> Latencies {
        self.managed().admin.latencies()
    }

    /// Failures that were followed by another attempt, by class.
    pub fn retries(&self) -> impl Iterator<Item = (RetryClass, u64)> + use<> {
        self.settings().retries.counts().into_iter()
    }

    /// Its current configuration, with all changes since the start.
    pub fn config(&self) -> PoolConfig {
        *self.settings().config.lock()
    }

    /// Starts no further attempt in this pool until it is [resumed](Self::resume). Attempts under
    /// way continue; each worker may take one event and hold it unattempted. Once the queue is
    /// full, [`on_full`](PoolConfig::on_full) applies to further events. Returns true if it was not
    /// paused before.
    pub fn pause(&self) -> bool {
        self.settings().pause.set(true)
    }

    /// Resumes it at once. Returns true if it was paused.
    pub fn resume(&self) -> bool {
        self.settings().pause.set(false)
    }

    /// True while it is paused.
    pub fn is_paused(&self) -> bool {
        self.settings().pause.is_on()
    }

    /// Adds or removes workers to reach this number. A worker that is removed first finishes its
    /// events in hand.
    ///
    /// # Errors
    /// The pool is not running (it drains once every input has ended, or the run was stopped), or
    /// this number is out of range.
    pub fn resize(&self, workers: usize) -> Result<Change, ChangeError> {
        let change = self.done(self.managed().admin.resize(workers))?;
        self.settings().config.lock().workers = workers;
        Ok(change)
    }

    /// Sets how many events may be accepted and not started. Events already queued stay, even if
    /// they are more. The limit behind one key stays as it was at the start.
    ///
    /// # Errors
    /// The pool is not running, its engine gives each worker a queue of its own, or
    /// the size is out of range.
    pub fn set_queue(&self, events: usize) -> Result<(), ChangeError> {
        if self.config().engine == greenroom::event_pool::Engine::Sticky {
            return Err(self.fixed("queue (with the engine `sticky`)"));
        }
        self.done(self.managed().admin.set_capacity(events))?;
        let mut config = self.settings().config.lock();
        config.queue = events;
        self.bound_shares(&config);
        Ok(())
    }

    /// Sets the most events of one share in the queue; `None`: a quarter of it. While others fill
    /// the queue, it is less. Events of a share that has more stay in the queue. Does nothing in a
    /// pool without shares.
    pub fn set_share_queue(&self, events: Option<usize>) {
        let mut config = self.settings().config.lock();
        config.share_queue = events;
        self.bound_shares(&config);
    }

    fn bound_shares(&self, config: &PoolConfig) {
        if let Some(rooms) = &self.settings().rooms {
            rooms.set_bound(config);
        }
    }

    /// Limits the events started in a period of time; `None` removes the limit.
    ///
    /// # Errors
    /// The rate is out of range.
    pub fn set_rate(&self, rate: impl Into<Option<Rate>>) -> Result<(), ChangeError> {
        let rate = rate.into();
        self.done(self.managed().admin.set_rate(rate))?;
        self.settings().config.lock().rate = rate;
        Ok(())
    }

    /// Limits the events in hand to this number, or to the number of workers (`None`). When a pool
    /// without a limit gets one, attempts already under way continue and are not counted.
    ///
    /// # Errors
    /// The limit is 0, or the pool has an adaptive one.
    pub fn set_concurrency(&self, events: impl Into<Option<usize>>) -> Result<(), ChangeError> {
        let events = events.into();
        self.done(self.managed().admin.set_concurrency(events))?;
        self.settings().config.lock().concurrency = events.map(Concurrency::Fixed);
        Ok(())
    }

    /// Sets the advisor that observes it from now on; `None` removes it. Earlier advice is
    /// discarded.
    ///
    /// # Errors
    /// The pool is not running, or a setting is out of range.
    pub fn set_advisor(&self, advisor: Option<Advisor>) -> Result<(), ChangeError> {
        self.done(self.managed().admin.set_advisor(advisor))?;
        self.settings().config.lock().advisor = advisor;
        Ok(())
    }

    /// Its advisor's last advice; `None` if it has none, and before its first period has ended.
    pub fn advice(&self) -> Option<Advice> {
        self.managed().admin.advice()
    }

    /// The key that most waiting events have. Looks at all of them.
    pub fn longest_line(&self) -> Option<LongestLine> {
        let longest = self.managed().keys.as_ref()?.longest_line()?;
        let line = longest.key?;
        let handler = &self.control.shared.process.handlers[line.handler as usize];
        let (key, handler) = (line.key.to_string(), handler.name.to_string());
        Some(LongestLine { key, handler, events: longest.messages })
    }

    /// Why the events of a key wait: for each input with events of the key, its label and the state
    /// of its line. Empty if no event of that key is pending, or the pool keeps no order per key.
    ///
    /// # Errors
    /// There is no handler of this name in this pool.
    pub fn why(&self, handler: &str, key: &str) -> Result<Vec<(String, KeyStatus)>, ChangeError> {
        let shared = &self.control.shared;
        let own = |place: &usize| {
            let entry = &shared.process.handlers[*place];
            entry.pool == self.place && &*entry.name == handler
        };
        let Some(handler) = (0..shared.process.handlers.len()).find(own) else {
            let of_pool = shared.process.handlers.iter().filter(|entry| entry.pool == self.place);
            let known = known(of_pool.map(|entry| entry.name.as_str()));
            return Err(ChangeError::NoSuchHandler { name: handler.to_owned(), known });
        };
        let Some(keys) = &self.managed().keys else { return Ok(Vec::new()) };
        let why = |(input, name): (usize, std::sync::Arc<str>)| {
            let line = shared.ledger.audit.line(input as u32, handler, key.into());
            let why = keys.status(&line, |error| error.failure.error.clone())?;
            Some((name.to_string(), why))
        };
        Ok(shared.inputs.names().into_iter().enumerate().filter_map(why).collect())
    }

    fn fixed(&self, what: &str) -> ChangeError {
        ChangeError::already_started(format!("pools.{}.{what}", self.name()))
    }

    /// The changes to this configuration.
    pub(crate) fn changes(&self, to: &PoolConfig) -> Result<Vec<PoolChange>, ChangeError> {
        let is = self.config();
        let live = PoolConfig {
            workers: to.workers,
            queue: to.queue,
            share_queue: to.share_queue,
            rate: to.rate,
            concurrency: to.concurrency,
            retry: to.retry,
            advisor: to.advisor,
            ..is
        };
        if live != *to {
            return Err(self.fixed(is.first_difference(to)));
        }
        if is.queue != to.queue && is.engine == greenroom::event_pool::Engine::Sticky {
            return Err(self.fixed("queue (with the engine `sticky`)"));
        }
        if is.concurrency != to.concurrency {
            self.fixed_limit(is.concurrency)?;
            self.fixed_limit(to.concurrency)?;
        }
        let differs = [
            is.workers != to.workers,
            is.queue != to.queue,
            is.share_queue != to.share_queue,
            is.rate != to.rate,
            is.concurrency != to.concurrency,
            is.advisor != to.advisor,
            is.retry != to.retry,
        ];
        let changes = LIVE.iter().zip(differs).filter(|(_, differs)| *differs);
        let change = |(setting, _)| PoolChange { pool: self.clone(), to: *to, setting };
        Ok(changes.map(change).collect())
    }

    fn fixed_limit(&self, limit: Option<Concurrency>) -> Result<Option<usize>, ChangeError> {
        match limit {
            None => Ok(None),
            Some(Concurrency::Fixed(events)) => Ok(Some(events)),
            Some(Concurrency::Adaptive(_)) => Err(self.fixed("concurrency (an adaptive one)")),
        }
    }
}

impl PoolChange {
    /// The change that was made.
    pub(crate) fn carry_out(self) -> Result<String, ChangeError> {
        let Self { pool, to, setting: (name, set) } = self;
        set(&pool, &to)?;
        Ok(format!("pools.{}.{name}", pool.name()))
    }
}
