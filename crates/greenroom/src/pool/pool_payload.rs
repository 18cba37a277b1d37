//! The parts of a pool's messages, in a queue and in hand.

use std::{hash::Hash, marker::PhantomData};

use greenroom_queue::{
    deque::Deque,
    entry::Entry,
    lock::Locked,
    payload::Payload,
    shard::{Shard, ShardInbox, ShardOutbox},
    slot::Slot,
    stamp::Stamp,
};

use super::failed::Failed;
use crate::{Actor, Class, Delivery, delivery::Extra};

/// The type of a pool's keys.
pub(crate) trait Key: Hash + Eq + Send + Sync + 'static {}

impl<K: Hash + Eq + Send + Sync + 'static> Key for K {}

/// A message of a pool and its extra parts.
pub(crate) struct PoolPayload<M, R, E>(PhantomData<(M, R, E)>);

/// The payload of a pool with these actors.
pub(crate) type PayloadOf<A> =
    PoolPayload<<A as Actor>::Message, <A as Actor>::Reply, <A as Actor>::Error>;

/// An entry in the queues of a pool with these actors.
pub(crate) type Queued<A, K> = Entry<PayloadOf<A>, K>;

/// Several of them.
pub(crate) type Entries<A, K> = Deque<Queued<A, K>>;

pub(crate) type ShardOf<A, K> = Shard<PayloadOf<A>, K>;

pub(crate) type InboxGuard<'a, A, K> = Locked<'a, ShardInbox<PayloadOf<A>, K>>;

pub(crate) type OutboxOf<A, K> = ShardOutbox<PayloadOf<A>, K>;

impl<M, R, E> Payload for PoolPayload<M, R, E> {
    type Message = M;
    type Extra = Extra<R, E>;
    type Failure = Failed<E>;

    fn is_retry(extra: &Extra<R, E>) -> bool {
        extra.next.parked
    }

    fn has_failed_for_good(extra: &Extra<R, E>) -> bool {
        extra.next.parked && extra.next.for_good
    }
}

impl<M, R, E> Slot<PoolPayload<M, R, E>> for Delivery<M, R, E> {
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn put(&mut self, message: M, extra: Option<Box<Extra<R, E>>>, urgent: bool, stamp: Stamp) {
        let before = (self.message.replace(message), std::mem::replace(&mut self.extra, extra));
        debug_assert!(before.0.is_none() && before.1.is_none());
        // Not dropped, so that nothing has to be kept across a call that never happens.
        std::mem::forget(before);
        self.class = Class::of(urgent);
        self.stamp = stamp;
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use super::{Entry, PoolPayload};

    type OfMessages<M, K> = Entry<PoolPayload<M, u64, u64>, K>;

    #[test]
    fn p25_a_queued_message_takes_24_bytes_over_itself_at_most() {
        assert_eq!(size_of::<OfMessages<u64, Infallible>>() - size_of::<u64>(), 24);
        assert_eq!(size_of::<OfMessages<[u64; 4], Infallible>>() - size_of::<[u64; 4]>(), 24);
        assert_eq!(size_of::<OfMessages<u64, u64>>() - size_of::<u64>(), 40, "with a key");
    }

    #[test]
    fn p25_a_message_shorter_than_its_fields_lies_in_a_gap_between_them() {
        assert_eq!(size_of::<OfMessages<u8, Infallible>>(), 24);
        assert_eq!(size_of::<OfMessages<[u8; 9], Infallible>>(), 32);
    }
}
