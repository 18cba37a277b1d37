//! Plain settings in range, and the runtime and threads of a pool.

use std::sync::Arc;

use tokio::runtime::Handle;

use super::PoolConfig;
use crate::{
    SpawnError,
    control::{advisor::Judge, autoscale::Autoscaler},
    pool::{builder::threads::Threads, clock::timed, limits::Gate},
    size::{MAX_CAPACITY, MAX_WORKERS, check_range},
};

/// The most threads that one pool may have of its own.
const MAX_THREADS: usize = 1_024;

/// The runtime and the threads of a pool.
pub(in crate::pool::builder) struct Surroundings {
    pub(in crate::pool::builder) runtime: Handle,
    pub(in crate::pool::builder) threads: Option<Threads>,
    pub(in crate::pool::builder) limits: Option<Arc<Gate>>,
}

impl PoolConfig {
    /// The capacity, if size and controllers are in range.
    pub(in crate::pool::builder) fn checked_capacity(&mut self) -> Result<usize, SpawnError> {
        if let Some(settings) = self.size.autoscale.as_deref().copied() {
            Autoscaler::new(settings)?;
            self.size.bounds = settings.min..=settings.max;
            self.size.workers = self.size.workers.clamp(settings.min, settings.max);
        }
        self.size.advisor.as_deref().copied().map(Judge::new).transpose()?;
        let (size, capacities) = (&self.size, 1..=MAX_CAPACITY);
        let (workers, bounds, mailbox) = (size.workers, &size.bounds, size.mailbox);
        check_range(workers <= MAX_WORKERS, "workers", workers, "0 to 65,536")?;
        let is_within = bounds.contains(&workers) && *bounds.end() <= MAX_WORKERS;
        check_range(is_within, "workers", workers, "within the pool's bounds, 65,536 at most")?;
        check_range(capacities.contains(&mailbox), "mailbox", mailbox, "1 to 100,000,000")?;
        let capacity = size.capacity.unwrap_or(workers.max(1).saturating_mul(mailbox));
        check_range(capacities.contains(&capacity), "capacity", capacity, "1 to 100,000,000")?;
        Ok(capacity)
    }

    /// Starts the pool's own threads, if it has any.
    pub(in crate::pool::builder) fn surroundings(&mut self) -> Result<Surroundings, SpawnError> {
        let threads = self.start_threads()?;
        let runtime = threads.as_ref().and_then(Threads::handle);
        let runtime = runtime.map_or_else(|| timed::current(&self.name), Ok)?;
        // Limits take their time from a clock that needs a runtime.
        let limits = match self.limits.take() {
            Some(limits) => {
                Gate::new(limits.rate, limits.at_once, limits.adjustable, limits.shared)?
            }
            None => None,
        };
        Ok(Surroundings { runtime, threads, limits })
    }

    fn start_threads(&self) -> Result<Option<Threads>, SpawnError> {
        let Some(threads) = self.size.dedicated_threads else { return Ok(None) };
        let is_within = (1..=MAX_THREADS).contains(&threads);
        check_range(is_within, "dedicated threads", threads, "1 to 1,024")?;
        let started = Threads::start(&self.name, threads);
        started.map(Some).map_err(|error| SpawnError::NoThreads {
            pool: self.name.to_string(),
            reason: error.to_string(),
        })
    }
}
