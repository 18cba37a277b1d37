//! How large a pool may be: its workers, and its bound on messages that are accepted and not
//! started.

use crate::SpawnError;

/// The most workers of one pool.
pub(crate) const MAX_WORKERS: usize = 65_536;

/// The largest capacity of one pool, which tokio's semaphore can count on every platform.
pub(crate) const MAX_CAPACITY: usize = 100_000_000;

/// Refuses a setting that is not within its range.
pub(crate) fn check_range(
    is_within: bool,
    setting: &'static str,
    value: usize,
    range: &'static str,
) -> Result<(), SpawnError> {
    if is_within { Ok(()) } else { Err(SpawnError::OutOfRange { setting, value, range }) }
}

/// The bound of a pool: a number of messages for each worker, or in total.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Inbox {
    /// A number for each worker: the bound follows the size of the pool. `inbox_size` in a
    /// configuration.
    PerWorker(usize),
    /// A number in total, whatever the size. `queue` in a configuration.
    InAll(usize),
}

impl Inbox {
    /// The bound with this many workers. A pool without workers has the bound of one.
    pub fn capacity(self, workers: usize) -> usize {
        match self {
            Self::PerWorker(messages) => workers.max(1).saturating_mul(messages),
            Self::InAll(messages) => messages,
        }
    }

    /// The number as given.
    pub fn messages(self) -> usize {
        match self {
            Self::PerWorker(messages) | Self::InAll(messages) => messages,
        }
    }

    /// Its key in a configuration.
    pub fn key(self) -> &'static str {
        match self {
            Self::PerWorker(_) => "inbox_size",
            Self::InAll(_) => "queue",
        }
    }
}
