//! Messages that are out of their shard while a withdrawal looks at them.

use std::collections::VecDeque;

use crate::{block_queue::BlockQueue, entry::Entry, lanes::LiftedLine, payload::Payload};

/// The messages of a shard, while a withdrawal looks at them, or those that stay.
pub struct Lifted<T: Payload, K> {
    /// From the outbox, and behind that from the inbox.
    pub queues: [BlockQueue<Entry<T, K>>; 2],
    /// From the inbox.
    pub urgent: VecDeque<Entry<T, K>>,
}

/// How much is out of a shard.
pub(super) struct LiftedCount {
    pub(super) messages: usize,
    /// Of those that are counted by their keys.
    pub(super) hashes: Vec<u32>,
}

/// Of the messages that are counted by their keys.
pub(super) fn hashes<T: Payload, K>(lifted: &Lifted<T, K>, lines: &[LiftedLine<T, K>]) -> Vec<u32> {
    let queued = lifted.queues.iter().flat_map(BlockQueue::iter).chain(&lifted.urgent);
    let queued = queued.filter(|entry| entry.key.is_some() && !entry.is_retry());
    let in_lanes = lines
        .iter()
        .flat_map(|(id, line)| line.iter().filter(|entry| !entry.is_retry()).map(|_| id.hash));
    queued.map(|entry| entry.hash).chain(in_lanes).collect()
}
