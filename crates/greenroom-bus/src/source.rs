//! The contract of a source: batches of events, each with its position.

mod committer;
mod error;
pub mod file;
pub mod generator;
pub mod memory;

use std::sync::Arc;

use crate::{BoxFuture, event::Event};

pub use committer::{Committer, Receipts, Resumed, Standing};
pub use error::SourceError;

/// Where events come from. The engine pulls; a source never pushes, so that back-pressure is its natural state.
pub trait Source: Send + 'static {
    /// What reports, logs and dead letters call this source, for example `file:orders.ndjson`.
    fn describe(&self) -> String;

    /// Appends the next batch to `into` (at least one item, at most some thousand), waiting until there is one.
    ///
    /// # Errors
    /// The source cannot go on (the file vanished, the archive is damaged). What was appended before is valid.
    ///
    /// # Cancel safety
    /// A dropped future has taken nothing that the next call does not return.
    fn pull<'a>(&'a mut self, into: &'a mut Vec<Taken>)
    -> BoxFuture<'a, Result<Pull, SourceError>>;

    /// How much of a finite input has been read, between 0 and 1. `None` where the end is not known.
    fn progress(&self) -> Option<f64> {
        None
    }

    /// True when what was refused can be read again by a later run.
    fn replayable(&self) -> bool;

    /// Who stores its positions, for a source that keeps any. The engine asks once, before the first pull, and commits from
    /// then on; a source may count on that, and give nothing more until a commit has been made.
    fn committer(&mut self) -> Option<Arc<dyn Committer>> {
        None
    }

    /// Who is to hear how the items of the last pull are settled, where anybody is. Asked after each pull that gave any, so
    /// these belong to one partition.
    fn receipts(&self) -> Option<Arc<dyn Receipts>> {
        None
    }
}

/// Whether a source has more to give.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pull {
    /// Call again.
    More,
    /// That was the last batch (it may be empty).
    End,
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
