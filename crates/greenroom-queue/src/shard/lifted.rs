//! Messages that are out of their shard while a withdrawal looks at them.

use crate::{
    block_queue::BlockQueue, deque::Deque, entry::Entry, lanes::LiftedLine, payload::Payload,
};

/// The messages of a shard, while a withdrawal looks at them, or those that stay.
pub struct Lifted<T: Payload, K> {
    /// From the outbox, and behind that from the inbox.
    pub queue: BlockQueue<Entry<T, K>>,
    /// From the inbox.
    pub urgent: Deque<Entry<T, K>>,
}

/// How much is out of a shard.
pub(super) struct LiftedCount {
    pub(super) messages: usize,
    /// Of those that are counted by their keys.
    pub(super) hashes: Vec<u32>,
}

/// Of the messages that are counted by their keys.
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
