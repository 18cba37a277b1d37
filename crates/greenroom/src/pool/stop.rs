//! Stops a pool: refuses new work, handles queued messages, and reports unhandled ones.

use std::time::Duration;

use super::stats::PoolStats;

mod hands;
pub(super) mod run;
mod witness;

/// How to stop a pool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Stop {
    /// Handle queued messages, for at most this long; then drop handlers at their next await.
    Graceful {
        /// The deadline, from now.
        within: Duration,
    },
    /// Start nothing more, and wait for the messages in hand.
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
    /// for a retry, or in the hand of a handler that had left its message in place.
    pub left_over: Vec<M>,
    /// Workers whose handler did not yield: they block their thread until they return.
    pub wedged: Vec<String>,
    /// The last figures.
    pub stats: PoolStats,
}

/// How a pool ended if code that does not know its messages stopped it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct StopSummary {
    /// How many messages were accepted and not handled. They are kept: a stop through the pool
    /// itself returns them.
    pub left_over: usize,
    /// Workers whose handler did not yield.
    pub wedged: Vec<String>,
}
