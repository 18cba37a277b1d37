//! The result of an inspection.

use std::sync::Arc;

use super::Value;
use crate::PoolStats;

/// A snapshot of a pool and its workers. Made by [`PoolAdmin::inspect`](crate::PoolAdmin::inspect).
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Inspection {
    /// The name of the pool.
    pub pool: Arc<str>,
    /// Its figures, if requested.
    pub stats: Option<PoolStats>,
    /// Its workers, by slot: those that are running, starting, disabled or leaving. There
    /// are [other lists](crate::PoolAdmin#who-is-in-which-list).
    pub workers: Vec<WorkerInspection>,
}

/// A worker of a pool.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct WorkerInspection {
    /// Its slot.
    pub slot: usize,
    /// Its name, `<pool>-<slot>`.
    pub name: String,
    /// The runtime's figures, if requested.
    pub figures: Option<WorkerFigures>,
    /// Its published values, as far as requested, in the order of the keys.
    pub published: Vec<(Arc<str>, Value)>,
}

impl WorkerInspection {
    /// The value that it has published for this key.
    pub fn value(&self, key: &str) -> Option<&Value> {
        self.published.iter().find(|(of, _)| **of == *key).map(|(_, value)| value)
    }
}

/// The runtime's figures of a worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct WorkerFigures {
    /// Whether it runs.
    pub status: WorkerStatus,
    /// Restarts since it took the slot.
    pub restarts: u32,
    /// True while it has a message in hand.
    pub in_hand: bool,
    /// Messages that wait for this particular worker. Those that any worker may take are in the
    /// pool's figures.
    pub mailbox: usize,
    /// The number of them that will move to another worker, once this one has finished its message
    /// in hand.
    pub held: usize,
}

/// Whether a worker runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum WorkerStatus {
    /// It is being built, for the first time or again.
    Starting,
    /// It handles messages.
    Live,
    /// Its slot has no worker until it is enabled.
    Disabled,
    /// It ends after the message in hand.
    Leaving,
}
