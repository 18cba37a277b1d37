//! Taking messages of a shard without keys.

use greenroom_queue::{lock::locked, shard::Refilled};

use crate::{
    Actor,
    pool::{
        core::{Core, Key, OutboxOf, Queued, ShardOf},
        worker::in_flight::DeliveryOf,
    },
};

impl<A: Actor, K: Key> Core<A, K> {
    /// Without keys: goes to a ready shard, to one without another worker if there is one.
    pub(crate) fn take_shared(
        &self,
        cursor: u32,
        join: bool,
        delivery: &mut DeliveryOf<A>,
    ) -> Option<(usize, bool)> {
        while let Some((index, alone)) = self.queue.wake.acquire_affinity(cursor, join) {
            if self.pop_shared(index, delivery) {
                return Some((index, alone));
            }
            self.release_affinity(index, alone);
        }
        None
    }

    /// Takes the next message of a shard without keys, in the middle of a run: none if its outbox
    /// is empty. The inbox is left to its senders: a worker that took each message as it came would
    /// meet them at every one.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) fn pop_in_run(
        &self,
        index: usize,
        shard: &ShardOf<A, K>,
        delivery: &mut DeliveryOf<A>,
    ) -> bool {
        let mut outbox = locked(&shard.outbox);
        // Straight into its place: between the two, each further move is felt.
        let Some(entry) = outbox.pop_queue() else { return false };
        entry.put_into(delivery);
        if outbox.queue.is_empty() {
            self.look_ahead(index, &outbox);
        }
        true
    }

    /// Takes the first message of a run from a shard without keys.
    pub(crate) fn pop_shared(&self, index: usize, delivery: &mut DeliveryOf<A>) -> bool {
        let mut outbox = self.queue.shards[index].outbox.lock();
        if outbox.queue.is_empty() {
            match self.refill_shared(index, &mut outbox) {
                Some(Refilled::Last(entry)) => {
                    entry.put_into(delivery);
                    self.note_taken(index, &outbox);
                    return true;
                }
                Some(Refilled::More) => {}
                None => return false,
            }
        }
        match outbox.pop_queue() {
            Some(entry) => entry.put_into(delivery),
            None => match self.pop_urgent(index, false) {
                Some(entry) => entry.put_into(delivery),
                None => return false,
            },
        }
        self.note_taken(index, &outbox);
        if outbox.queue.is_empty() {
            self.look_ahead(index, &outbox);
        }
        true
    }

    /// The queue has run dry: a bit in the ready map means a message.
    #[cold]
    fn look_ahead(&self, index: usize, outbox: &OutboxOf<A, K>) {
        self.queue.shards[index].has_more_or(outbox, &|| self.queue.wake.clear(index));
    }

    #[cold]
    fn refill_shared(
        &self,
        index: usize,
        outbox: &mut OutboxOf<A, K>,
    ) -> Option<Refilled<Queued<A, K>>> {
        let empty = || self.queue.wake.clear(index);
        match self.queue.wake.is_quick() {
            true => self.queue.shards[index].refill_and_take(outbox, &empty),
            false => self.queue.shards[index].refill_or(outbox, &empty).then_some(Refilled::More),
        }
    }
}
