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

/// Where events come from. The engine pulls; a source never pushes, so that
/// back-pressure is its natural state.
pub trait Source: Send + 'static {
    /// What reports, logs and dead letters call this source, for example `file:orders.ndjson`.
    fn describe(&self) -> String;

    /// Appends the next batch to `into` (at least one item, at most some thousand, all of one
    /// [partition](Self::partition)), waiting until there is one. A source of several partitions
    /// gives none of one that is [paused](Self::set_paused).
    ///
    /// # Errors
    /// The source cannot go on (the file vanished, the archive is damaged). What was
    /// appended before is valid.
    ///
    /// # Cancel safety
    /// A dropped future has taken nothing that the next call does not return.
    fn pull<'a>(&'a mut self, into: &'a mut Vec<Taken>)
    -> BoxFuture<'a, Result<Pull, SourceError>>;

    /// Polled while nothing is pulled, because what was taken has no room, for a source that has
    /// something to do meanwhile; it never ends. Dropped when it is pulled again. `None`: there is
    /// nothing to do.
    fn held_up(&mut self) -> Option<BoxFuture<'_, ()>> {
        None
    }

    /// How much of a finite input has been read, between 0 and 1. `None`
    /// where the end is not known.
    fn progress(&self) -> Option<f64> {
        None
    }

    /// Bytes that are there and were not read, of an input whose end is not known. `None` where
    /// that is not known either.
    fn behind(&self) -> Option<u64> {
        None
    }

    /// Files of which something was not read, and that are not open: if one is removed, that is
    /// lost.
    fn files_at_risk(&self) -> usize {
        0
    }

    /// True when what was refused can be read again by a later run.
    fn replayable(&self) -> bool;

    /// Where its positions are, for a source that reads several things, one after the other or as
    /// its partitions. Asked once, before the first pull.
    fn places(&self) -> Option<Arc<dyn Places>> {
        None
    }

    /// Where it says how it stands with what it reads from; `None` where it is always connected, as
    /// a file is. Asked once, before the first pull.
    fn status(&self) -> Option<Arc<StatusCell>> {
        None
    }

    /// How long its partitions are its own without a word from its broker: after that, none of
    /// their events is started until the broker has answered. `None` where nobody takes them away.
    /// Asked once, before the first pull.
    fn lease(&self) -> Option<Arc<Lease>> {
        None
    }

    /// What stores its positions, for a source that keeps any. The engine asks once, before the
    /// first pull, and commits from then on; a source may count on that, and give nothing more
    /// until a commit has been made.
    fn committer(&mut self) -> Option<Arc<dyn Committer>> {
        None
    }

    /// What is told how the items of the last pull are settled, if the source wants to know. Asked
    /// after each pull that gave any.
    fn receipts(&self) -> Option<Arc<dyn Receipts>> {
        None
    }

    /// True for a source whose partitions come and go and are paused each by itself (D15). It is
    /// pulled also while some of them, or all, are paused: a broker wants to be asked whatever its
    /// consumer is doing. When its input is removed or the run drains, it is told to give nothing,
    /// and pulled on until all that it gave is settled and its positions are stored, or the run is
    /// stopped at once (D11); what it gives then is dropped, and never settled. Asked once, before
    /// the first pull.
    fn is_partitioned(&self) -> bool {
        false
    }

    /// The partition of the items of the last pull. Asked after each pull that gave any.
    fn partition(&self) -> Partition {
        Partition::ONLY
    }

    /// Of these partitions, the next pulls are to give nothing: the whole list, told before a pull
    /// whenever it has changed. Those that are not in it are to be read. Told only to a source that
    /// [is partitioned](Self::is_partitioned).
    fn set_paused(&mut self, paused: &[Partition]) {
        let _ = paused;
    }

    /// The partitions that are taken away, asked after [`Pull::Revoke`].
    fn revoking(&mut self) -> Vec<Partition> {
        Vec::new()
    }

    /// What waited of this partition has been given up, and nothing of it is started any more;
    /// events in their handlers' hands (a batch as a whole) go on. Told for each of
    /// [`revoking`](Self::revoking), before the next pull. A partition that comes back begins anew:
    /// its events are of another assignment.
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
    /// Where it stood: a line number for files, an offset for logs. Rises within a source.
    pub position: u64,
    /// The event, or what could not be read as one.
    pub event: Result<Event, Malformed>,
}

/// An item that is no event. Its bytes are kept for the dead letters.
#[derive(Debug)]
pub struct Malformed {
    /// The bytes as they were read.
    pub raw: Vec<u8>,
    /// What is wrong, and where in the bytes.
    pub reason: String,
    /// It has more bytes than its source takes for an event: a dead letter of its own reason.
    pub too_large: bool,
}

impl Malformed {
    /// Bytes that are no event.
    pub fn new(raw: Vec<u8>, reason: impl Into<String>) -> Self {
        Self { raw, reason: reason.into(), too_large: false }
    }

    /// Bytes of which there are more than the source takes for an event.
    pub fn too_large(raw: Vec<u8>, reason: impl Into<String>) -> Self {
        Self { too_large: true, ..Self::new(raw, reason) }
    }
}
