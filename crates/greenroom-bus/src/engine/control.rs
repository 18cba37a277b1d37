//! What can be told to a running engine, and asked of it: how far it has come, its pools and handlers, its end (R02).
//!
//! | while it runs | only before it starts |
//! |---|---|
//! | a pool's workers, queue, rate and fixed concurrency limit, also where it has none or is to have none; pause and resume | pools and handlers added or removed |
//! | a handler's retries; pause and resume | the order of events, the pool of a handler, what a handler is for |
//!
//! Inputs and outputs can be added and removed while it runs (G01): an engine stays up while at least one input reads. So who
//! replaces an input adds the new one first. Once the last input has ended, or the engine was told to stop, whoever adds
//! something gets it back with [`ChangeError::Ending`].
//!
//! What cannot change is refused with [`ChangeError::AlreadyStarted`] and its name; nothing has changed then.

mod handler;
mod input;
mod output;
mod pool;
mod removal;

use std::sync::{Arc, atomic::Ordering};

use greenroom::{PoolAdmin, keys::Keys, pool::AdminError};
use tokio::sync::watch;

use super::{
    HandlerConfig, Phase, PoolConfig, Progress, order_audit::Line, shared::Shared,
    worker::BusWorker,
};

pub use handler::HandlerControl;
pub use pool::PoolControl;
pub(super) use removal::{Kind, known};
pub use removal::{NotAdded, Removal};

/// Looks at a running engine, changes it, and stops it. Cheap to clone; outlives its run, and then changes nothing.
#[derive(Clone)]
pub struct Control {
    pub(super) shared: Arc<Shared>,
    pub(super) phase: watch::Sender<Phase>,
    /// By the pool's place.
    pub(super) managed: Arc<[Managed]>,
}

/// What a pool is managed with. Does not keep it running.
pub(super) struct Managed {
    pub(super) admin: PoolAdmin<BusWorker>,
    /// Where the pool keeps order per key.
    pub(super) keys: Option<Keys<BusWorker, Line>>,
}

/// Why a running engine was not changed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ChangeError {
    /// There is no pool of this name.
    #[error("there is no pool {name:?}; there are: {known}")]
    NoSuchPool {
        /// The name.
        name: String,
        /// The names of those that there are.
        known: String,
    },
    /// There is no handler of this name.
    #[error("there is no handler {name:?}; there are: {known}")]
    NoSuchHandler {
        /// The name.
        name: String,
        /// The names of those that there are.
        known: String,
    },
    /// There is no input or output of this name.
    #[error("there is no {kind} {name:?}; there are: {known}")]
    NoSuchEnd {
        /// What it would be: `input` or `output`.
        kind: &'static str,
        /// The name.
        name: String,
        /// The names of those that there are.
        known: String,
    },
    /// An input or output of this name is there, or was removed and is not done.
    #[error(
        "there is an {kind} {name:?} already{}",
        if *leaving { ", which was removed and is not done: try again later" } else { "" }
    )]
    NameTaken {
        /// What it is: `input` or `output`.
        kind: &'static str,
        /// The name.
        name: String,
        /// True where it was removed, and what it has given or accepted is not settled.
        leaving: bool,
    },
    /// The engine was told to stop, every input has ended, or it is over.
    #[error("inputs and outputs cannot change any more: the engine drains, or is over")]
    Ending,
    /// This can only be set before the engine starts.
    #[error("{what} cannot change while the engine runs: stop it and start it anew")]
    AlreadyStarted {
        /// What would have changed, for example `pools.erp.engine`.
        what: String,
    },
    /// The pool refused it.
    #[error("the pool {pool:?} was not changed: {error}")]
    Refused {
        /// Its name.
        pool: String,
        /// Why.
        error: AdminError,
    },
    /// A value that cannot be used.
    #[error("{what} cannot be used: {why}")]
    Unusable {
        /// What was to be set, for example `handlers.push.retry.attempts`.
        what: String,
        /// What is possible.
        why: String,
    },
}

impl ChangeError {
    fn already_started(what: String) -> Self {
        Self::AlreadyStarted { what }
    }
}

impl Control {
    /// Stops the inputs and handles what was taken, within the deadline. What is left then is refused, and that is what a
    /// pool or handler that is paused still holds.
    pub fn drain(&self) {
        self.advance(Phase::Drain);
    }

    /// Drops handlers at their next await and refuses what is left.
    pub fn stop_now(&self) {
        self.advance(Phase::Now);
    }

    fn advance(&self, to: Phase) {
        self.phase.send_if_modified(|phase| {
            let forward = *phase < to;
            *phase = to.max(*phase);
            forward
        });
    }

    /// How far the run has come.
    pub fn phase(&self) -> Phase {
        *self.phase.borrow()
    }

    /// What the run has done so far. Never more settled than taken.
    pub fn progress(&self) -> Progress {
        let ledger = &self.shared.ledger;
        let counts = ledger.counts();
        let read = self.shared.inputs.read();
        let known = read.iter().all(|read| *read <= 1_000_000);
        let mean = read.iter().sum::<u64>() as f64 / (read.len().max(1) as f64 * 1e6);
        let parked = self.shared.parked.counts();
        Progress {
            parked_keys: parked.keys,
            parked_events: parked.events,
            taken: counts.taken,
            settled: counts.settled(),
            dead_lettered: counts.dead_lettered,
            dead_letters_open: ledger.letters.open() as u64,
            dead_letters_lost: ledger.letters.lost(),
            in_flight_bytes: self.input_views().iter().map(|input| input.in_flight_bytes).sum(),
            queued: ledger.queued.load(Ordering::Relaxed),
            read: known.then_some(mean),
        }
    }

    /// Why nothing goes on, where all that is under way waits behind parked keys and no input can
    /// be read on. A run of inputs whose ends are known ends then.
    pub fn standstill(&self) -> Option<String> {
        self.shared.parked.standstill()
    }

    /// The pool of this name.
    ///
    /// # Errors
    /// There is none.
    pub fn pool(&self, name: &str) -> Result<PoolControl, ChangeError> {
        let place = self.shared.pools.iter().position(|pool| &*pool.name == name);
        place.map(|place| PoolControl { control: self.clone(), place }).ok_or_else(|| {
            let known = names(self.shared.pools.iter().map(|pool| pool.name.as_str()));
            ChangeError::NoSuchPool { name: name.to_owned(), known }
        })
    }

    /// Each pool, in the order of their settings; `default` is first where it is not set.
    pub fn pools(&self) -> Vec<PoolControl> {
        let places = 0..self.shared.pools.len();
        places.map(|place| PoolControl { control: self.clone(), place }).collect()
    }

    /// The handler of this name.
    ///
    /// # Errors
    /// There is none.
    pub fn handler(&self, name: &str) -> Result<HandlerControl, ChangeError> {
        let place = self.shared.handlers.iter().position(|handler| &*handler.name == name);
        place.map(|place| HandlerControl { shared: self.shared.clone(), place }).ok_or_else(|| {
            let known = names(self.shared.handlers.iter().map(|handler| handler.name.as_str()));
            ChangeError::NoSuchHandler { name: name.to_owned(), known }
        })
    }

    /// Each handler, in the order of their settings.
    pub fn handlers(&self) -> Vec<HandlerControl> {
        let places = 0..self.shared.handlers.len();
        places.map(|place| HandlerControl { shared: self.shared.clone(), place }).collect()
    }

    /// Brings the pools and handlers to what is said here, as far as that is possible while the engine runs, and says what
    /// has changed, for example `pools.erp.workers`. First it is looked whether all of it is possible.
    ///
    /// # Errors
    /// A pool or handler was added, removed, or changed where it cannot be: nothing has changed then. A pool that refuses
    /// a size (it is stopping, or the size is out of range) leaves what came before it changed.
    pub fn apply(
        &self,
        pools: &[(&str, PoolConfig)],
        handlers: &[(&str, HandlerConfig)],
    ) -> Result<Vec<String>, ChangeError> {
        let added = |what: &str, name: &str| {
            ChangeError::already_started(format!("{what}.{name} (which is new)"))
        };
        let gone = |what: &str, name: &str| {
            ChangeError::already_started(format!("{what}.{name} (which is gone)"))
        };
        for own in self.pools() {
            let name = own.name();
            if name != super::DEFAULT_POOL && pools.iter().all(|(other, _)| *other != name) {
                return Err(gone("pools", name));
            }
        }
        for own in self.handlers() {
            if handlers.iter().all(|(name, _)| *name != own.name()) {
                return Err(gone("handlers", own.name()));
            }
        }
        let mut changes = Vec::new();
        for (name, config) in pools {
            let pool = self.pool(name).map_err(|_| added("pools", name))?;
            changes.push(pool.changes(config)?);
        }
        let mut retries = Vec::new();
        for (name, config) in handlers {
            let handler = self.handler(name).map_err(|_| added("handlers", name))?;
            let of_pool = pools.iter().find(|(pool, _)| *pool == handler.pool().as_str());
            let of_pool = of_pool.map_or_else(|| handler.pool_config(), |(_, config)| *config);
            retries.push(handler.changes(config, &of_pool)?);
        }
        let mut done = Vec::new();
        for change in changes.into_iter().flatten() {
            done.push(change.carry_out()?);
        }
        done.extend(retries.into_iter().flatten().map(handler::RetryChange::carry_out));
        Ok(done)
    }
}

fn names<'a>(names: impl Iterator<Item = &'a str>) -> String {
    names.collect::<Vec<_>>().join(", ")
}
