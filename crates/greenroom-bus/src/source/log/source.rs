//! The events of a log, for one consumer.

use std::{collections::VecDeque, fmt, sync::Arc};

use tokio::{sync::watch, task::JoinHandle};

use super::{
    consumers::StoredConsumer,
    error::LogError,
    positions::LogPositions,
    reader::ConsumerReader,
    shared::{Durable, Held, Shared, WriterState},
};
use crate::source::{Committer, Pull, Pulling, Receipts, Source, SourceError, Taken};

/// Events of one pull.
const BATCH: usize = 1_024;

/// The events that were read of a block.
type BlockRead = Result<VecDeque<Taken>, LogError>;

/// Reads a log from its consumer's position, and continues with new appends. It ends when the log
/// is closed and all events were given; with an error if the log has failed. Positions are sequence
/// numbers, from 1.
///
/// Memory: the events of two blocks, of up to 8 MiB each unless an append was larger.
pub struct LogSource {
    name: String,
    durable: watch::Receiver<Durable>,
    /// `None` while it is with `reading`.
    reader: Option<ConsumerReader>,
    /// The next block, on its way.
    reading: Option<JoinHandle<(ConsumerReader, BlockRead)>>,
    /// Events that were read and not given.
    ready: VecDeque<Taken>,
    /// Events below this may be given.
    room_below: u64,
    positions: LogPositions,
    /// The engine commits them.
    is_committed: bool,
}

impl LogSource {
    pub(super) fn new(
        (shared, held): (Arc<Shared>, Held),
        consumer: &str,
        name: String,
        (stored, is_new): (&StoredConsumer, bool),
    ) -> Self {
        let reader = ConsumerReader::new(shared.clone(), stored.positions.lowest());
        let (durable, names) = (shared.durable(), (consumer.to_owned(), name.clone()));
        let positions = LogPositions::new((shared, held), names, (stored, is_new));
        Self {
            name,
            durable,
            reader: Some(reader),
            reading: None,
            ready: VecDeque::new(),
            room_below: 0,
            positions,
            is_committed: false,
        }
    }

    /// Gives the events that were read, as far as there is room. False if there were none.
    async fn give(&mut self, into: &mut Vec<Taken>) -> bool {
        let Some(first) = self.ready.front().map(|taken| taken.position) else { return false };
        if self.is_committed && first >= self.room_below {
            self.room_below = self.positions.room_for(first).await;
        }
        let below = if self.is_committed { self.room_below } else { u64::MAX };
        let count = self.ready.iter().take(BATCH).take_while(|item| item.position < below).count();
        let mut taken: Vec<_> = self.ready.drain(..count).collect();
        self.positions.received(&mut taken);
        let gives_any = !taken.is_empty();
        into.append(&mut taken);
        gives_any
    }

    /// Begins to read the next block, if it is durable. Otherwise returns the state of the writer.
    fn read_on(&mut self) -> Option<WriterState> {
        let durable = self.durable.borrow_and_update().clone();
        let has_more = self.reader.as_ref().is_some_and(|reader| reader.next() < durable.next);
        let Some(mut reader) = self.reader.take_if(|_| has_more) else {
            return Some(durable.writer);
        };
        self.reading = Some(tokio::task::spawn_blocking(move || {
            let read = reader.read();
            (reader, read)
        }));
        None
    }

    /// Takes the result of the read.
    async fn take_read(&mut self) -> Result<(), SourceError> {
        let Some(reading) = &mut self.reading else { return Ok(()) };
        let read = reading.await;
        self.reading = None;
        let (reader, read) = read.map_err(|error| self.failed(error))?;
        self.reader = Some(reader);
        self.ready = read.map_err(|error| self.failed(error))?;
        Ok(())
    }

    fn failed(&self, error: impl fmt::Display) -> SourceError {
        SourceError::new(self.name.clone(), error.to_string())
    }
}

impl Source for LogSource {
    fn describe(&self) -> String {
        self.name.clone()
    }

    fn pull<'a>(&'a mut self, into: &'a mut Vec<Taken>) -> Pulling<'a> {
        Box::pin(async move {
            loop {
                let writer = if self.reading.is_none() { self.read_on() } else { None };
                if !self.ready.is_empty() {
                    if self.give(into).await {
                        return Ok(Pull::More);
                    }
                    continue;
                }
                match writer {
                    None => self.take_read().await?,
                    // The log is never dropped before it has said how it ended.
                    Some(WriterState::Open) => _ = self.durable.changed().await,
                    Some(WriterState::Failed(why)) => return Err(self.failed(why)),
                    Some(WriterState::Closed) => {
                        self.positions.end();
                        return Ok(Pull::End);
                    }
                }
            }
        })
    }

    fn replayable(&self) -> bool {
        true
    }

    fn committer(&mut self) -> Option<Arc<dyn Committer>> {
        self.is_committed = true;
        Some(Arc::new(self.positions.clone()))
    }

    fn receipts(&self) -> Option<Arc<dyn Receipts>> {
        Some(Arc::new(self.positions.clone()))
    }
}

impl Drop for LogSource {
    fn drop(&mut self) {
        self.positions.end();
    }
}

impl fmt::Debug for LogSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LogSource").field("name", &self.name).finish_non_exhaustive()
    }
}
