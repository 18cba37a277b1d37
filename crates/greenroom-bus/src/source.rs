//! The contract of a source: batches of events, each with its position.

pub(crate) mod ahead;
mod committer;
mod error;
pub mod file;
pub mod generator;
#[cfg(feature = "http-input")]
pub mod http;
mod kind;
pub(crate) mod lease;
pub mod log;
pub mod memory;
mod partition;
mod places;
mod start;
mod status;

use std::sync::Arc;

use crate::{BoxFuture, event::Event};

pub(crate) use committer::LOCAL;
pub use committer::{Committer, PartitionStanding, Receipts, Resumed, Standing};
pub use error::SourceError;
pub use kind::{InputKind, InputServer, InputSetup, OpenInput, RecordShape, input};
pub use lease::Lease;
pub use partition::Partition;
pub use places::{Place, Places};
pub use start::StartAt;
pub use status::{InputState, InputStatus, StatusCell};

/// What [`Source::pull`] gives.
pub type Pulling<'a> = BoxFuture<'a, Result<Pull, SourceError>>;

/// Where events come from. The engine pulls; a source never pushes, so that
/// back-pressure is its natural state.
pub trait Source: Send + 'static {
    /// Its name in reports, logs and dead letters, for example `file:orders.ndjson`.
    fn describe(&self) -> String;

    /// Appends the next batch to `into` (at least one item, at most some thousand, all of one
    /// [partition](Self::partition)), waiting until there is one. A source of several partitions
    /// gives no items of a [paused](Self::set_paused) one.
    ///
    /// # Errors
    /// The source cannot continue (the file vanished, the archive is damaged). Items that were
    /// appended before are valid.
    ///
    /// # Cancel safety
    /// A dropped future has taken nothing that the next call does not return.
    fn pull<'a>(&'a mut self, into: &'a mut Vec<Taken>) -> Pulling<'a>;

    /// Polled while the source is not pulled because its items have no room, for a source that has
    /// work to do in that time; it never resolves. Dropped when the source is pulled again. `None`
    /// if there is no such work.
    fn held_up(&mut self) -> Option<BoxFuture<'_, ()>> {
        None
    }

    /// How much of a finite input has been read, between 0 and 1. `None`
    /// where the end is not known.
    fn progress(&self) -> Option<f64> {
        None
    }

    /// Unread bytes of an input without a known end. `None` if that is not known either.
    fn behind(&self) -> Option<u64> {
        None
    }

    /// Files that have unread data and are not open: removing one loses that data.
    fn files_at_risk(&self) -> usize {
        0
    }

    /// True if refused items can be read again by a later run.
    fn replayable(&self) -> bool;

    /// Where its positions are, for a source that reads several things, one after the other or as
    /// its partitions. Asked once, before the first pull.
    fn places(&self) -> Option<Arc<dyn Places>> {
        None
    }

    /// Its connection status; `None` if it has no connection, like a file. Called once, before the
    /// first pull.
    fn status(&self) -> Option<Arc<StatusCell>> {
        None
    }

    /// How long its partitions are its own without a response from its broker: after that, none of
    /// their events is started until the broker has answered. `None` if partitions are never
    /// revoked. Called once, before the first pull.
    fn lease(&self) -> Option<Arc<Lease>> {
        None
    }

    /// The committer of its positions, for a source that keeps any. The engine asks once, before
    /// the first pull, and commits from then on; a source may rely on that, and give nothing more
    /// until a commit has been made.
    fn committer(&mut self) -> Option<Arc<dyn Committer>> {
        None
    }

    /// Receives how the items of the last pull are settled, if the source needs that. Called after
    /// each pull that returned any.
    fn receipts(&self) -> Option<Arc<dyn Receipts>> {
        None
    }

    /// True for a source whose partitions come and go and are paused individually (D15). It is also
    /// pulled while some of them, or all, are paused: a broker expects to be polled at all times.
    /// When its input is removed or the run drains, it is told to give nothing, and pulled until
    /// all of its items are settled and its positions are stored, or the run is stopped at once
    /// (D11); items that it gives after that are dropped, and never settled. Called once, before
    /// the first pull.
    fn is_partitioned(&self) -> bool {
        false
    }

    /// The partition of the items of the last pull. Asked after each pull that gave any.
    fn partition(&self) -> Partition {
        Partition::ONLY
    }

    /// The next pulls are to give nothing of these partitions: the complete list, passed before a
    /// pull whenever it has changed. All others are to be read. Called only on a source that [is
    /// partitioned](Self::is_partitioned).
    fn set_paused(&mut self, paused: &[Partition]) {
        let _ = paused;
    }

    /// The partitions that are taken away, asked after [`Pull::Revoke`].
    fn revoking(&mut self) -> Vec<Partition> {
        Vec::new()
    }

    /// The waiting events of this partition have been given up, and none is started any more;
    /// events in their handlers' hands (a batch as a whole) continue. Called for each of
    /// [`revoking`](Self::revoking), before the next pull. A partition that comes back is a new
    /// assignment.
    fn revoked(&mut self, partition: Partition) {
        let _ = partition;
    }
}

/// Whether a source has more to give.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pull {
    /// Call again.
    More,
    /// That was the last batch (it may be empty).
    End,
    /// Nothing was appended: partitions are taken away, which [`Source::revoking`] names.
    Revoke,
}

/// One item of a source.
#[derive(Debug)]
pub struct Taken {
    /// Its position: a line number for files, an offset for logs. Rises within a source.
    pub position: u64,
    /// The event, or the data that could not be read as one.
    pub event: Result<Event, Malformed>,
}

/// An item that is no event. Its bytes are kept for the dead letters.
#[derive(Debug)]
pub struct Malformed {
    /// The bytes as they were read.
    pub raw: Vec<u8>,
    /// The problem, and its place in the bytes.
    pub reason: String,
    /// It has more bytes than its source takes for an event: a dead letter of its own reason.
    pub too_large: bool,
}

impl Malformed {
    /// Bytes that are no event.
    pub fn new(raw: Vec<u8>, reason: impl Into<String>) -> Self {
        Self { raw, reason: reason.into(), too_large: false }
    }

    /// Data that exceeds the source's limit for an event.
    pub fn too_large(raw: Vec<u8>, reason: impl Into<String>) -> Self {
        Self { too_large: true, ..Self::new(raw, reason) }
    }
}
