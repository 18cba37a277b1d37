//! The reasons why events of an input wait beside the pools.

use std::{fmt, sync::Arc, time::Duration};

use parking_lot::Mutex;
use tokio::time::Instant;

use crate::{engine::process::share_rooms::named, name::Name};

/// How often the log names the share that stops an input.
const SAID_AGAIN: Duration = Duration::from_secs(60);

/// A share that has as many events waiting in its pool as one share may.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct HeldByShare {
    /// The pool.
    pub pool: String,
    /// Its share; `None` is the one of all events without one.
    pub share: Option<Arc<str>>,
    /// The number of its events beside the pool.
    pub events: u64,
}

impl HeldByShare {
    pub(crate) fn new(pool: Name, share: Option<Arc<str>>, events: usize) -> Self {
        Self { pool: pool.to_string(), share, events: events as u64 }
    }

    /// True if most of these events are of this share.
    pub(crate) fn is_why(&self, held_back: u64) -> bool {
        self.events > held_back / 2
    }
}

impl fmt::Display for HeldByShare {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { pool, share, events } = self;
        write!(f, "{events} events of {} wait for room in the pool {pool:?}", named(share.as_ref()))
    }
}

/// The pool and the share of most of them, at the last look.
#[derive(Debug, Default)]
pub(crate) struct HeldBy(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    pool: Option<Name>,
    share: Option<HeldByShare>,
    told_at: Option<Instant>,
}

impl HeldBy {
    pub(crate) fn pool(&self) -> Option<Name> {
        self.0.lock().pool
    }

    pub(crate) fn share(&self) -> Option<HeldByShare> {
        self.0.lock().share.clone()
    }

    pub(crate) fn set(&self, pool: Option<Name>, share: Option<HeldByShare>) {
        let mut state = self.0.lock();
        (state.pool, state.share) = (pool, share);
    }

    /// Logs that a share stops the input, if one does.
    pub(crate) fn tell(&self, input: &str, held_back: u64, run_ahead: u64) {
        let mut state = self.0.lock();
        let Some(held) = state.share.as_ref().filter(|held| held.is_why(held_back)) else { return };
        if held_back < run_ahead {
            return;
        }
        let now = Instant::now();
        if state.told_at.is_some_and(|at| now.duration_since(at) < SAID_AGAIN) {
            return;
        }
        let (share, pool) = (held.share.as_deref(), &*held.pool);
        tracing::warn!(
            input,
            pool,
            share,
            run_ahead,
            "the input stands still because of a share: {held}, of the run-ahead of {run_ahead}; raise its limits, \
             or the `queue`, `share_queue` or `run_ahead`"
        );
        state.told_at = Some(now);
    }
}
