//! Messages that are out of their shard while a withdrawal examines them.

use crate::{
    block_queue::BlockQueue, deque::Deque, entry::Entry, lanes::LiftedLine, payload::Payload,
};

/// The messages of a shard while a withdrawal examines them; later, those that stay.
pub struct Lifted<T: Payload, K> {
    /// From the outbox, followed by those from the inbox.
    pub queue: BlockQueue<Entry<T, K>>,
    /// From the inbox.
    pub urgent: Deque<Entry<T, K>>,
}

/// The messages that are out of a shard.
pub(super) struct LiftedCount {
    pub(super) messages: usize,
    /// The hashes of those that are counted by their keys.
    pub(super) hashes: Vec<u32>,
}

/// The hashes of the messages that are counted by their keys.
pub(super) fn hashes<T: Payload, K>(lifted: &Lifted<T, K>, lines: &[LiftedLine<T, K>]) -> Vec<u32> {
    let mut hashes = Vec::new();
    let is_counted = |entry: &Entry<T, K>| entry.key.is_some() && !entry.is_retry();
    for entry in lifted.queue.iter() {
        if is_counted(entry) {
            hashes.push(entry.hash);
        }
    }
    for entry in lifted.urgent.iter() {
        if is_counted(entry) {
            hashes.push(entry.hash);
        }
    }
    for line in lines {
        for entry in line.messages.iter() {
            if !entry.is_retry() {
                hashes.push(line.id.hash);
            }
        }
    }
    hashes
}
