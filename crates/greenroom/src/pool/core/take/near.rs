//! Taking messages in a pool whose handlers usually wait: one that needs no decision goes straight
//! into the delivery.

use greenroom_queue::{
    discard::discard,
    lanes::{InOwnLane, LaneId, LaneState},
    lock::locked,
};

use super::{take_from, taken::QUOTA};
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

/// What a worker finds after its last message, in a pool whose handlers usually wait.
pub(crate) enum NextNear {
    InDelivery(Source),
    /// Its lane has ended, and the worker goes elsewhere.
    Nothing,
    /// A decision is needed: [`take_behind`](super::take_behind) continues, from a lane that may
    /// have ended.
    Unknown,
}

/// Like `take_ready`, if handlers usually wait: a message that needs no decision goes straight into
/// the delivery, and its key already has its lane then.
pub(crate) fn take_ready_near<A: Actor, K: Key>(
    core: &Core<A, K>,
    worker: usize,
    delivery: &mut DeliveryOf<A>,
) -> Option<TakenNear<A, K>> {
    while let Some(index) = core.queue.wake.near() {
        // The bit of the shares comes after those of all shards.
        if let Some(shard) = core.queue.shards.get(index) {
            let mut outbox = locked(&shard.outbox);
            let taken = pop_free(core, index, &mut outbox, worker, delivery);
            drop(outbox);
            if let Some(source) = taken {
                return Some(TakenNear::InDelivery(source));
            }
        }
        if core.queue.wake.claim_this(index)
            && let Some((source, entry)) = take_from(core, index, worker)
        {
            return Some(TakenNear::Entry(source, entry));
        }
    }
    None
}

/// Like `take_behind`, for a worker that runs a lane, if handlers usually wait. The next message of
/// the lane goes into the delivery if its key has not used up its quota. Otherwise the lane ends
/// and, if the worker `stays`, the next message of its shard goes there, all under one lock.
pub(crate) fn take_behind_near<A: Actor, K: Key>(
    core: &Core<A, K>,
    worker: usize,
    (index, id, run): (usize, LaneId, u32),
    stays: bool,
    delivery: &mut DeliveryOf<A>,
) -> NextNear {
    let mut outbox = locked(&core.queue.shards[index].outbox);
    // Before any other check: if the lane closes, its key is free from here on, and the key's next
    // message must not wait there.
    let closed = match outbox.pop_or_close(id, run + 1 < QUOTA) {
        InOwnLane::Next(mut entry) => {
            core.queue.note_taken(index, &outbox);
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
        true => pop_free(core, index, &mut outbox, worker, delivery),
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

/// Takes the next message of a keyed shard whose token is free and opens the lane of its key, if no
/// decision is needed: no lane is ready, no key is counted, nothing is urgent, and the message's
/// own key is free and has not used up its quota. The bit of the shard in the ready map stays as
/// long as there are messages: others need not be notified of each.
#[cfg_attr(not(debug_assertions), inline(always))]
fn pop_free<A: Actor, K: Key>(
    core: &Core<A, K>,
    index: usize,
    outbox: &mut OutboxOf<A, K>,
    worker: usize,
    delivery: &mut DeliveryOf<A>,
) -> Option<Source> {
    let is_plain = outbox.is_plain() && !core.queue.wake.has_urgent_at(index) && !core.has_ended();
    let (shard, empty) = (&core.queue.shards[index], || core.queue.wake.clear(index));
    if !is_plain || !shard.refill_or(outbox, &empty) {
        return None;
    }
    let (hash, key) = outbox.pop_free(QUOTA, delivery)?;
    let lane = key.map(|key| outbox.lanes.open(hash, key, LaneState::Running(worker)));
    core.queue.note_taken(index, outbox);
    if shard.has_more_or(outbox, &empty) {
        // Under the lock: a worker that has found the lane ready may have claimed the bit.
        core.queue.wake.mark(index);
    }
    Some(lane.map_or(Source::None, |id| Source::Lane { index, id, run: 0 }))
}
