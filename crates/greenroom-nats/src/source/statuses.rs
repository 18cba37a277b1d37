//! How the source stands, by what the drivers of its partitions see (O17).

use std::{collections::BTreeSet, sync::Arc};

use greenroom_bus::source::{InputState, Partition, StatusCell};
use parking_lot::Mutex;

use crate::connection::Connection;

/// What the drivers of a source share.
pub(super) struct Statuses {
    pub(super) cell: Arc<StatusCell>,
    /// What it reads, where nothing is wrong.
    reads: String,
    /// Partitions whose consumer cannot be had.
    lost: Mutex<BTreeSet<Partition>>,
}

impl Statuses {
    /// Of a source that is about to connect.
    pub(super) fn new(name: &str, server: &str, reads: String) -> Arc<Self> {
        let cell = StatusCell::new(name, server);
        Arc::new(Self { cell, reads, lost: Mutex::default() })
    }

    /// The driver of this partition sees this.
    pub(super) fn show(&self, connection: &Connection, partition: Partition, is_lost: bool) {
        let any_lost = {
            let mut lost = self.lost.lock();
            match is_lost {
                true => lost.insert(partition),
                false => lost.remove(&partition),
            };
            !lost.is_empty()
        };
        let reads = &self.reads;
        let (state, detail) = match connection.is_up() {
            true if any_lost => {
                let why = "the consumer or its stream is gone, or cannot be had: it is looked for";
                (InputState::Waiting, format!("{reads}: {why}"))
            }
            true => (InputState::Assigned, reads.clone()),
            false if connection.is_refused() => (InputState::Refused, connection.why_down()),
            false => (InputState::Lost, connection.why_down()),
        };
        self.cell.set(state, detail);
    }
}
