//! The contract of a source that keeps its positions: it receives settlements, and stores the
//! positions that follow from them.

use std::{future::pending, time::Duration};

use super::{error::SourceError, partition::Partition};
use crate::{
    BoxFuture,
    settlement::Settled,
    watermark::{DoneAhead, Epoch},
};

/// Receives how the items of a source are settled, for one partition in one epoch of it: a result
/// that comes after the partition was given away is still reported here, and can be distinguished
/// from one that counts.
pub trait Receipts: Send + Sync + 'static {
    /// Called once for each item, in the order in which they are settled, which is any; on
    /// whichever thread settles it. Must not wait.
    fn settled(&self, position: u64, how: Settled);
}

/// Stores how far a source has come. The engine says when: [now and then](Self::every), when it is
/// [due](Self::due), and a last time when everything is settled and stored, or given up.
///
/// A source that has one delivers unsettled and refused items again, to the next run: a stop gives
/// back its waiting items.
pub trait Committer: Send + Sync + 'static {
    /// Stores the positions settled so far. Commits come one after the other. Does nothing if
    /// nothing has changed.
    ///
    /// # Errors
    /// It cannot be stored, and trying again would not help: the engine stops the input. Temporary
    /// errors are for the source to log, and to retry, in this commit or the next.
    ///
    /// # Cancel safety
    /// A dropped future may still store it.
    fn commit<'a>(&'a self) -> BoxFuture<'a, Result<(), SourceError>>;

    /// Resolves when so much has happened since the last commit that the next one should not wait
    /// for its time; never, by default.
    ///
    /// # Cancel safety
    /// A dropped future has done nothing.
    fn due<'a>(&'a self) -> BoxFuture<'a, ()> {
        Box::pin(pending())
    }

    /// How often positions are stored, unless the configuration of the input sets it; once a second
    /// by default. A crash repeats about this much settled work, so sources that can store cheaply
    /// do it more often.
    fn every(&self) -> Duration {
        Duration::from_secs(1)
    }

    /// Told after the last commit of an input: nothing more is stored, and another source may take
    /// its place.
    fn end(&self) {}

    /// The positions that it found, and its state.
    fn standing(&self) -> Standing;

    /// How far each partition has come that is assigned now.
    fn partitions(&self) -> Vec<PartitionStanding> {
        Vec::new()
    }
}

/// How often positions are stored that are a small file on this machine: two syncs each.
pub(crate) const LOCAL: Duration = Duration::from_millis(100);

/// How far one partition of a source has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PartitionStanding {
    /// Which.
    pub partition: Partition,
    /// The assignment of it that counts, from 1.
    pub epoch: Epoch,
    /// Above all positions that were received.
    pub next: u64,
    /// The lowest position that is not settled; `next` if none is open.
    pub oldest_open: u64,
    /// How many positions are behind `next` that the source could give; `None` if it does not know.
    pub lag: Option<u64>,
    /// The settled positions beyond `oldest_open`.
    pub ahead: DoneAhead,
}

/// The state of a source that keeps its positions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Standing {
    /// The progress of an earlier run; `None` if there was none.
    pub resumed: Option<Resumed>,
    /// Items that were done before this run, and were skipped.
    pub skipped: u64,
    /// Items that are delivered again at most, should everything end now.
    pub repeated_at_most: u64,
}

/// The progress of an earlier run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Resumed {
    /// Partitions with stored positions.
    pub partitions: u64,
    /// Files with stored positions, if the source reads files: several of them may be one
    /// partition.
    pub files: u64,
    /// Settled positions beyond the lowest open one.
    pub done: u64,
    /// The most items that are delivered again: those that were open at the last commit, and those
    /// that may have been taken since.
    pub again_at_most: u64,
}

impl std::ops::Add for Resumed {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            partitions: self.partitions + other.partitions,
            files: self.files + other.files,
            done: self.done + other.done,
            again_at_most: self.again_at_most + other.again_at_most,
        }
    }
}
