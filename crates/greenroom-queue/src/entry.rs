//! A message in a queue.

use super::{deque::Deque, payload::Payload, slot::Slot, stamp::Stamp};

/// The number of urgent messages that a worker takes in a row while normal ones wait (A03).
pub const URGENT_RUN: u32 = 64;

/// A queued message. The parts that a plain send does not need cost one empty pointer.
pub struct Entry<T: Payload, K> {
    /// The message as it was sent.
    pub message: T::Message,
    /// Present for calls and for messages that have failed before.
    pub extra: Option<Box<T::Extra>>,
    /// Computed in the sender. `None` in a pool without order and for a message without a key.
    pub key: Option<K>,
    /// The hash of the key, seeded per pool.
    pub hash: u32,
    /// True if the message comes before normal ones.
    pub urgent: bool,
    /// When the message was queued, or, for a retry, when the next attempt is due.
    pub stamp: Stamp,
}

/// The key, if any, and its hash.
pub type Hashed<K> = (Option<K>, u32);

impl<T: Payload, K> Entry<T, K> {
    /// A message of a plain send, without a key.
    pub fn plain(message: T::Message, stamp: Stamp) -> Self {
        Self { message, extra: None, key: None, hash: 0, urgent: false, stamp }
    }

    /// Puts a message without a key in hand.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub fn put_into(self, slot: &mut impl Slot<T>) {
        slot.put(self.message, self.extra, self.urgent, self.stamp);
    }

    /// True for a message that waits for a retry.
    pub fn is_retry(&self) -> bool {
        self.extra.as_ref().is_some_and(|extra| T::is_retry(extra))
    }

    /// True for a message that waits for an operator, at the head of its key's line.
    pub fn has_failed_for_good(&self) -> bool {
        self.extra.as_ref().is_some_and(|extra| T::has_failed_for_good(extra))
    }
}

/// The time when the first message that is not a retry was queued. Queues are in order of
/// acceptance.
pub fn first<'a, T: Payload + 'a, K: 'a>(
    entries: impl Iterator<Item = &'a Entry<T, K>>,
) -> Option<Stamp> {
    for entry in entries {
        if !entry.is_retry() {
            return Some(entry.stamp);
        }
    }
    None
}

/// The number of messages here that wait for a retry.
pub fn retries<T: Payload, K>(entries: &Deque<Entry<T, K>>) -> usize {
    let mut retries = 0;
    for entry in entries.iter() {
        retries += usize::from(entry.is_retry());
    }
    retries
}
