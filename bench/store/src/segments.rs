//! The log of the product.

use std::path::Path;

use greenroom_bus::{
    BoxFuture,
    event::Event,
    store::log::{EventLog, LogOptions, SegmentLog},
};

use super::Store;

pub(super) struct Segments(SegmentLog);

impl Segments {
    pub(super) fn open(path: &Path) -> Self {
        Self(SegmentLog::open(path, LogOptions::default()).expect("a log"))
    }
}

impl Drop for Segments {
    fn drop(&mut self) {
        self.0.close_and_wait();
    }
}

impl Store for Segments {
    fn append(&self, events: Vec<Event>) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            self.0.append(events).await.expect("it is stored");
        })
    }

    fn syncs(&self) -> u64 {
        self.0.standing().syncs
    }
}

/// Opens a log, and says what it holds.
pub(super) fn open_and_count(path: &Path) -> (u64, u64) {
    let log = Segments::open(path);
    let standing = log.0.standing();
    (standing.next - standing.first, standing.bytes)
}
