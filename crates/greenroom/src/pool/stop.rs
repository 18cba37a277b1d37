//! Stopping: refuse new work, handle what is queued, and say what was not handled.

use std::time::Duration;

use super::stats::PoolStats;

mod hands;
pub(super) mod run;
mod witness;

/// How a pool is stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Stop {
    /// Handle what is queued, for at most this long; then drop handlers at their next await.
    Graceful {
        /// The deadline, from now.
        within: Duration,
    },
    /// Start nothing more, and wait for what is in hand.
    Now,
}

impl Stop {
    /// A graceful stop with a deadline.
    pub const fn within(deadline: Duration) -> Self {
        Self::Graceful { within: deadline }
    }
}

/// How a pool ended.
#[derive(Debug)]
pub struct StopReport<M> {
    /// The messages (after [`stop_keeping_calls`](crate::PoolAdmin::stop_keeping_calls) the
    /// deliveries) that were accepted and not handled, as far as they still exist: queued, waiting
    /// for another attempt, or in the hand of a handler that had left its message in place.
    pub left_over: Vec<M>,
    /// Workers whose handler did not let go: they block their thread, and go on until they return.
    pub wedged: Vec<String>,
    /// The last figures.
    pub stats: PoolStats,
}

/// How a pool ended that was stopped by code that does not know its messages.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct StopSummary {
    /// How many messages were accepted and not handled. They are kept: a stop through the pool
    /// itself returns them.
    pub left_over: usize,
    /// Workers whose handler did not let go.
    pub wedged: Vec<String>,
}
