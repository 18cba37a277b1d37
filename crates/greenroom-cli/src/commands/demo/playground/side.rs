//! One of the two pools.

use std::{sync::Arc, time::Duration};

use greenroom::{Backoff, Pool, SpawnError, pool::stats::WorkerStats};
use tokio::time::Instant;

use super::{
    load::{KEYS, LoadEvent, MOST_OF_KEY},
    settings::PlaySettings,
    target::PlayTarget,
};
use crate::commands::trial::{Arrival, Trial};

/// More than all lines together hold.
const ROOM: usize = (KEYS * MOST_OF_KEY) as usize;
/// Enough that no event is ever given up.
const ATTEMPTS: u32 = 1_000;
/// Between two attempts.
const BACKOFF: Backoff = Backoff::new(Duration::from_millis(100), Duration::from_millis(400));
/// Chance within the pool, such as the table of the sticky one: the same in every run.
const POOL_SEED: u64 = 1;

/// How a worker is found for an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Queueing {
    /// Any free worker, in order per key.
    Lanes,
    /// The worker that the hash of the key chooses.
    Hashing,
}

/// A pool and its target.
pub(super) struct PlaySide {
    pub(super) queueing: Queueing,
    pool: Pool<Trial>,
    pub(super) target: Arc<PlayTarget>,
}

impl PlaySide {
    /// Starts the pool.
    ///
    /// # Errors
    /// It cannot be started.
    pub(super) async fn new(
        queueing: Queueing,
        settings: PlaySettings,
        seed: u64,
        started: Instant,
    ) -> Result<Self, String> {
        let keeps_worker = queueing == Queueing::Hashing;
        let target = PlayTarget::new(settings, keeps_worker, seed, started);
        let workers = settings.workers as usize;
        let pool = match queueing {
            Queueing::Lanes => lanes(target.clone(), workers).await,
            Queueing::Hashing => hashing(target.clone(), workers).await,
        };
        Ok(Self { queueing, pool: pool.map_err(|error| error.to_string())?, target })
    }

    /// Sends it, if there is room in the line of its key.
    pub(super) fn offer(&self, LoadEvent { key, share }: LoadEvent, due: Duration) {
        let Some(number) = self.target.enter(key) else { return };
        let arrival = Arrival { due, key: Some(key), number, share };
        if self.pool.try_send(arrival).is_err() {
            self.target.leave(key);
        }
    }

    /// Applies other settings from now on.
    ///
    /// # Errors
    /// The pool refuses its new size.
    pub(super) fn change(&self, settings: PlaySettings) -> Result<(), String> {
        let resized = self.pool.admin().resize(settings.workers as usize);
        let _ = resized.map_err(|error| error.to_string())?;
        self.target.change(settings);
        Ok(())
    }

    /// Its workers, those that finish their last event included.
    pub(super) fn workers(&self) -> Vec<WorkerStats> {
        let mut workers = self.pool.admin().worker_stats();
        workers.retain(|worker| worker.status.is_some());
        workers
    }
}

async fn lanes(target: Arc<PlayTarget>, workers: usize) -> Result<Pool<Trial>, SpawnError> {
    let pool = Trial::pool(target).name("lanes").workers(workers).capacity(ROOM);
    let pool = pool.shared_by(|arrival: &Arrival| arrival.share);
    pool.seed(POOL_SEED).retry(ATTEMPTS, BACKOFF).spawn().await
}

async fn hashing(target: Arc<PlayTarget>, workers: usize) -> Result<Pool<Trial>, SpawnError> {
    let pool = Trial::hashed(target).name("hashing").workers(workers);
    let pool = pool.capacity(ROOM).mailbox(ROOM);
    pool.seed(POOL_SEED).retry(ATTEMPTS, BACKOFF).spawn().await
}
