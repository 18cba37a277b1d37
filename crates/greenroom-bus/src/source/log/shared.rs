//! Shared by the parts of an open log.

use std::{
    any::Any,
    io,
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use parking_lot::Mutex;
use tokio::sync::watch;

use super::{
    consumers::{Consumers, StoredConsumer},
    disk::Disk,
    options::LogOptions,
    segment::Segments,
    waiting::Waiting,
};

/// The durable part, for readers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Durable {
    /// Events below this are.
    pub(super) next: u64,
    pub(super) writer: WriterState,
}

/// Whether more may come.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum WriterState {
    Open,
    /// Nothing more comes.
    Closed,
    /// Nothing more comes, and why.
    Failed(Arc<str>),
}

/// A log that is open.
pub(super) struct Shared {
    pub(super) directory: PathBuf,
    pub(super) disk: Arc<dyn Disk>,
    pub(super) options: LogOptions,
    /// Locked for a look or a change, and while the first position of a new consumer is stored.
    pub(super) segments: Mutex<Segments>,
    pub(super) waiting: Waiting,
    pub(super) consumers: Consumers,
    pub(super) durable: watch::Sender<Durable>,
    /// Syncs of blocks so far.
    pub(super) syncs: AtomicU64,
    pub(super) trouble: Mutex<LogTrouble>,
}

/// The data that finds no room, and why: each until there is some.
#[derive(Default)]
pub(super) struct LogTrouble {
    /// A further segment, and so events.
    pub(super) full: Option<String>,
    /// A position of a consumer.
    pub(super) unstored: Option<String>,
}

/// Keeps others out of the directory. Held by the log, by its writer, and by each consumer that is
/// read for: none of them can meet the writer of another process, or of a later log.
pub(super) type Held = Arc<dyn Any + Send + Sync>;

impl Shared {
    pub(super) fn durable(&self) -> watch::Receiver<Durable> {
        self.durable.subscribe()
    }

    pub(super) fn count_sync(&self) {
        self.syncs.fetch_add(1, Ordering::Relaxed);
    }

    /// Returns when it survives a crash. Lets segments be removed that are not needed any more.
    pub(super) fn store_consumer(&self, name: &str, stored: StoredConsumer) -> io::Result<()> {
        self.consumers.store(name, stored)?;
        let lowest = self.consumers.lowest().unwrap_or(0);
        let is_past_a_segment =
            self.segments.lock().0.get(1).is_some_and(|second| second.header.base <= lowest);
        if is_past_a_segment {
            self.waiting.retain();
        }
        Ok(())
    }
}
