//! A message as it lies in a queue.

use super::{block_queue::OfRun, stamp::Stamp};
use crate::{Actor, Class, Delivery, delivery::Extra};

/// A queued message. What a plain send does not need costs one empty pointer.
pub(crate) struct Entry<M, R, E, K> {
    pub(crate) message: M,
    /// For calls, and for messages that have failed before.
    pub(crate) extra: Option<Box<Extra<R, E>>>,
    /// Computed in the sender. `None` in a pool without order, and for a message without a key.
    pub(crate) key: Option<K>,
    /// Of the key, seeded per pool.
    pub(crate) hash: u32,
    pub(crate) class: Class,
    /// When it was queued; for one that is attempted again, when that is due.
    pub(crate) stamp: Stamp,
}

/// The key, if there is one, and its hash.
pub(crate) type Hashed<K> = (Option<K>, u32);

/// An entry in the queues of a pool of these actors.
pub(crate) type Queued<A, K> =
    Entry<<A as Actor>::Message, <A as Actor>::Reply, <A as Actor>::Error, K>;

impl<M, R, E, K> OfRun for Entry<M, R, E, K> {
    type Message = M;

    fn of_run(message: M, stamp: Stamp) -> Self {
        Self { message, extra: None, key: None, hash: 0, class: Class::Normal, stamp }
    }
}

/// Puts a plain message in hand. Nothing else is in there: nothing is dropped.
#[inline(always)]
pub(crate) fn put_plain<M, R, E>(message: M, stamp: Stamp, delivery: &mut Delivery<M, R, E>) {
    // Not dropped, so that nothing has to be kept across a call that is never made.
    let before = delivery.message.replace(message);
    debug_assert!(before.is_none() && delivery.extra.is_none());
    std::mem::forget(before);
    delivery.class = Class::Normal;
    delivery.stamp = stamp;
}

impl<M, R, E, K> Entry<M, R, E, K> {
    /// As [`put_plain`], for a message without a key that may carry more.
    #[inline(always)]
    pub(crate) fn put_into(self, delivery: &mut Delivery<M, R, E>) {
        put_plain(self.message, self.stamp, delivery);
        let before = std::mem::replace(&mut delivery.extra, self.extra);
        debug_assert!(before.is_none());
        std::mem::forget(before);
        delivery.class = self.class;
    }

    /// True for a message that waits for another attempt.
    pub(crate) fn is_retry(&self) -> bool {
        self.extra.as_ref().is_some_and(|extra| extra.parked)
    }
}

impl<M, R, E, K> Entry<M, R, E, K> {
    /// True for a message that waits for an operator, at the head of its key's line.
    pub(crate) fn has_failed_for_good(&self) -> bool {
        self.extra.as_ref().is_some_and(|extra| extra.parked && extra.for_good)
    }
}

/// When the first message was queued that does not wait for another attempt. Queues are in order
/// of acceptance.
pub(crate) fn first<'a, M: 'a, R: 'a, E: 'a, K: 'a>(
    mut entries: impl Iterator<Item = &'a Entry<M, R, E, K>>,
) -> Option<Stamp> {
    entries.find(|entry| !entry.is_retry()).map(|entry| entry.stamp)
}
