//! Taking messages of a pool whose handlers usually wait: one that needs no weighing goes straight
//! into the delivery.

use greenroom_queue::{
    discard::discard,
    lanes::{InOwnLane, LaneId, LaneState},
    lock::locked,
};

use super::QUOTA;
use crate::{
    Actor,
    pool::{
        core::{Core, Key, OutboxOf, Queued},
        worker::in_flight::{DeliveryOf, Source},
    },
};

/// A message that was taken in a pool whose handlers usually wait.
pub(crate) enum TakenNear<A: Actor, K> {
    InDelivery(Source),
    Entry(Source, Queued<A, K>),
}

/// What a worker has found behind its last message in a pool whose handlers usually wait.
pub(crate) enum NextNear {
    InDelivery(Source),
    /// Its lane has ended, and it goes elsewhere.
    Nothing,
    /// More is to be weighed: [`next`](Core::next) goes on, from a lane that may have ended.
    Unknown,
}

impl<A: Actor, K: Key> Core<A, K> {
    /// As `take`, if handlers usually wait: a message that needs no weighing goes straight into the
    /// delivery, and its key has its lane by then.
    pub(crate) fn take_near(
        &self,
        worker: usize,
        delivery: &mut DeliveryOf<A>,
    ) -> Option<TakenNear<A, K>> {
        while let Some(index) = self.queue.wake.near() {
            // The bit of the shares is behind those of all shards.
            if let Some(shard) = self.queue.shards.get(index) {
                let mut outbox = locked(&shard.outbox);
                let taken = self.pop_free(index, &mut outbox, worker, delivery);
                drop(outbox);
                if let Some(source) = taken {
                    return Some(TakenNear::InDelivery(source));
                }
            }
            if self.queue.wake.claim_this(index)
                && let Some((source, entry)) = self.take_from(index, worker)
            {
                return Some(TakenNear::Entry(source, entry));
            }
        }
        None
    }

    /// As `next`, for a worker that runs a lane, if handlers usually wait: the next message of the
    /// lane is in the delivery, if its key has not had its quota, or the lane ends and, if the
    /// worker `stays`, the next message of its shard is there, under one lock.
    pub(crate) fn next_near(
        &self,
        worker: usize,
        (index, id, run): (usize, LaneId, u32),
        stays: bool,
        delivery: &mut DeliveryOf<A>,
    ) -> NextNear {
        let mut outbox = locked(&self.queue.shards[index].outbox);
        // Before anything else is looked at: if it closes, its key is free from here on, and the
        // next message of it is not to wait there.
        let closed = match outbox.pop_or_close(id, run + 1 < QUOTA) {
            InOwnLane::Next(mut entry) => {
                self.note_taken(index, &outbox);
                drop(outbox);
                let key = entry.key.take();
                entry.put_into(delivery);
                discard(key);
                return NextNear::InDelivery(Source::Lane { index, id, run: run + 1 });
            }
            InOwnLane::Stays => return NextNear::Unknown,
            InOwnLane::Closed(closed) => closed,
        };
        let next = match stays {
            true => self.pop_free(index, &mut outbox, worker, delivery),
            false => None,
        };
        drop(outbox);
        if let Some(removed) = closed {
            removed.discard();
        }
        match next {
            Some(source) => NextNear::InDelivery(source),
            None if stays => NextNear::Unknown,
            None => NextNear::Nothing,
        }
    }

    /// Takes the next message of a keyed shard whose token is free and opens the lane of its key,
    /// if nothing is to be weighed: no lane is ready, no key is counted, nothing is urgent, and the
    /// message's own key is free and has not had its quota. The bit of the shard in the ready map
    /// stays as long as there are messages: others need not be told of each.
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn pop_free(
        &self,
        index: usize,
        outbox: &mut OutboxOf<A, K>,
        worker: usize,
        delivery: &mut DeliveryOf<A>,
    ) -> Option<Source> {
        let is_plain =
            outbox.is_plain() && !self.queue.wake.has_urgent_at(index) && !self.has_ended();
        let (shard, empty) = (&self.queue.shards[index], || self.queue.wake.clear(index));
        if !is_plain || !shard.refill_or(outbox, &empty) {
            return None;
        }
        let (hash, key) = outbox.pop_free(QUOTA, delivery)?;
        let lane = key.map(|key| outbox.lanes.open(hash, key, LaneState::Running(worker)));
        self.note_taken(index, outbox);
        if shard.has_more_or(outbox, &empty) {
            // Under the lock: it may have been claimed by a worker that has found the lane ready.
            self.queue.wake.mark(index);
        }
        Some(lane.map_or(Source::None, |id| Source::Lane { index, id, run: 0 }))
    }
}
