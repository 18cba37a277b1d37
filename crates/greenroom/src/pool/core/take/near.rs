//! Taking messages of a pool whose handlers usually wait: one that needs no weighing goes straight
//! into the delivery.

use std::hash::Hash;

use greenroom_queue::{
    discard::discard,
    lanes::{LaneId, LaneState},
    lock::locked,
};

use super::QUOTA;
use crate::{
    Actor, Class,
    pool::{
        core::{Core, OutboxOf, Queued},
        worker::in_flight::{DeliveryOf, Source},
    },
};

/// A message that was taken in a pool whose handlers usually wait.
pub(crate) enum TakenNear<A: Actor, K> {
    InDelivery(Source),
    Entry(Source, Queued<A, K>),
}

impl<A: Actor, K: Hash + Eq + Send + Sync + 'static> Core<A, K> {
    /// As `take`, if handlers usually wait: a message that needs no weighing goes straight into the
    /// delivery, and its key has its lane by then.
    pub(crate) fn take_near(
        &self,
        worker: usize,
        delivery: &mut DeliveryOf<A>,
    ) -> Option<TakenNear<A, K>> {
        while let Some(index) = self.queue.wake.near() {
            let mut outbox = locked(&self.queue.shards[index].outbox);
            let taken = self.pop_free(index, &mut outbox, worker, delivery);
            drop(outbox);
            if let Some(source) = taken {
                return Some(TakenNear::InDelivery(source));
            }
            if self.queue.wake.claim_this(index)
                && let Some((source, entry)) = self.take_from(index, worker, Class::Urgent)
            {
                return Some(TakenNear::Entry(source, entry));
            }
        }
        None
    }

    /// As `next`, for a worker whose lane is empty, if handlers usually wait: the lane ends, and
    /// the next message of the shard is in the delivery, under one lock. None if anything has to be
    /// weighed: then [`next`](Self::next) goes on, from a lane that may have ended.
    pub(crate) fn next_near(
        &self,
        worker: usize,
        index: usize,
        id: LaneId,
        delivery: &mut DeliveryOf<A>,
    ) -> Option<Source> {
        let mut outbox = locked(&self.queue.shards[index].outbox);
        // Before anything else is looked at: its key is free from here on, and the next message of
        // it is not to wait behind a lane that closes.
        let closed = outbox.lanes.close_empty(id)?;
        let source = self.pop_free(index, &mut outbox, worker, delivery);
        drop(outbox);
        // Most are of a key with a single message, and have nothing else to drop.
        match closed.into_key() {
            Ok(key) => discard(key),
            closed => discard(closed),
        }
        source
    }

    /// Takes the next message of a keyed shard whose token is free and opens the lane of its key,
    /// if nothing is to be weighed: no lane is ready, no key is counted, nothing is urgent, and the
    /// message's own key is free and has not had its quota. The bit of the shard in the ready map
    /// stays as long as there are messages: others need not be told of each.
    #[inline(always)]
    fn pop_free(
        &self,
        index: usize,
        outbox: &mut OutboxOf<A, K>,
        worker: usize,
        delivery: &mut DeliveryOf<A>,
    ) -> Option<Source> {
        let is_plain =
            outbox.is_plain() && !self.queue.wake.has_urgent_at(index) && !self.has_ended();
        if !is_plain || !self.queue.shards[index].refill_or(outbox, || self.queue.wake.clear(index))
        {
            return None;
        }
        let (hash, key) = outbox.pop_free(QUOTA, delivery)?;
        let lane = key.map(|key| outbox.lanes.open(hash, key, LaneState::Running(worker)));
        self.note_taken(index, outbox);
        if self.queue.shards[index].has_more_or(outbox, || self.queue.wake.clear(index)) {
            // Under the lock: it may have been claimed by a worker that has found the lane ready.
            self.queue.wake.mark(index);
        }
        Some(lane.map_or(Source::None, |id| Source::Lane { index, id, run: 0 }))
    }
}
