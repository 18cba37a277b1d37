//! A durable log: it accepts events, and has them on disk before it says so (B03).
//!
//! ```text
//! append ──▶ waiting ──▶ committer: one block, one write, one sync ──▶ segment files
//!    ▲      (bounded)      │                                               │
//!    └── stored, repeated ─┴──▶ durable up to here ──▶ LogSource ◀── blocks ┘
//!                                                        │ settled
//!                                                        ▼
//!                                                   consumers/NAME.checkpoint
//! ```
//!
//! [`EventLog`] is the contract, [`SegmentLog`] the log in a directory. The directory has segment
//! files of a fixed size, which are allocated on disk before they are written. One thread writes
//! them: all pending appends become one block, which is written and synced once, and then all of
//! them are answered. A crash costs at most the block that was being written, none of which was
//! acknowledged; any other incomplete data is damage, and the log refuses to open.
//!
//! The price is a sync for each append that comes alone: some milliseconds on a disk, some
//! microseconds on one with a battery. Concurrent appends share it. Use
//! [`memory`](crate::source::memory) if nothing has to outlive the process.

mod active;
mod backup;
mod clock;
mod committer;
mod consumers;
mod disk;
mod error;
mod format;
#[doc(hidden)]
pub mod fuzzed;
mod identities;
mod inspection;
mod options;
mod positions;
mod reader;
mod recovery;
mod retention;
mod roll;
mod segment;
mod segment_log;
mod shared;
mod source;
mod waiting;
mod walk;

#[cfg(test)]
mod sim_disk;
#[cfg(test)]
mod tests;

use std::time::Duration;

use crate::{BoxFuture, event::Event};

pub use backup::back_up;
pub use error::{Damage, LogError};
pub use inspection::{Inspection, inspect, is_log};
pub use options::LogOptions;
pub use segment_log::{ConsumerStanding, LogStanding, SegmentLog};
pub use source::LogSource;

/// Accepts events and keeps them until they are handled.
pub trait EventLog: Send + Sync + 'static {
    /// Its name in reports and logs, for example `log:orders-log`.
    fn describe(&self) -> String;

    /// Appends these events, in this order, all or none, and waits until they are durable.
    /// Concurrent appends share one sync. An event whose source and id were stored within the log's
    /// memory of them is not stored again: once the first of them is durable, it counts as
    /// [repeated](Appended::repeated).
    ///
    /// # Errors
    /// None of it was stored, except after [`AppendError::Failed`], when that is unknown.
    ///
    /// # Cancel safety
    /// A dropped future may have stored all of it, or nothing. A caller that does not know which
    /// posts again; the remembered ids make that safe.
    fn append<'a>(&'a self, events: Vec<Event>) -> BoxFuture<'a, Result<Appended, AppendError>>;

    /// The log, or its disk, is full: events found no room, and there has been none since. Small
    /// ones may find some.
    fn is_full(&self) -> bool {
        false
    }
}

/// The result of an append.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Appended {
    /// Events that are durable now and were not before.
    pub stored: u64,
    /// Events that had been stored before.
    pub repeated: u64,
}

/// Why nothing was appended.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AppendError {
    /// There is no room at the moment: too much waits to be written, or the log has its greatest
    /// size and all of it is still needed.
    #[error("{reason}")]
    Full {
        /// Which limit was reached, and how to make room, for an operator.
        reason: String,
        /// How long to wait before another try.
        retry_after: Duration,
    },
    /// These events have more bytes than the log takes at once, whenever it is.
    #[error("{bytes} bytes at once are more than the {limit} that the log takes")]
    TooLarge {
        /// Their size.
        bytes: u64,
        /// The limit.
        limit: u64,
    },
    /// The log cannot store anything any more; the error, and the next step, for an operator. It
    /// does not recover: a sync that failed once may seem to succeed the next time, with the data
    /// lost.
    #[error("{0}")]
    Failed(String),
}
