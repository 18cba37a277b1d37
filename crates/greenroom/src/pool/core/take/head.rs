//! Taking messages from the queue of a keyed shard, as the holder of its token.

use greenroom_queue::{discard::discard, lock::locked, shard::LOOK_AHEAD};

use super::{
    behind::{LanePlace, behind_its_lane},
    taken::{Outboxed, QUOTA, TakenMessage},
};
use crate::{
    Actor, Class,
    pool::{
        core::{Core, Key, OutboxOf, Queued, ShardOf},
        worker::in_flight::{DeliveryOf, Source},
    },
};

/// Takes the next message of a keyed shard, as the holder of its token, if no decision is needed:
/// no key of the shard waits, and the message's own key has not used up its quota. Returns the hash
/// of its key.
#[cfg_attr(not(debug_assertions), inline(always))]
pub(crate) fn take_at_head<A: Actor, K: Key>(
    core: &Core<A, K>,
    shard: &ShardOf<A, K>,
    epoch: u64,
    delivery: &mut DeliveryOf<A>,
) -> Option<Option<u32>> {
    let mut outbox = locked(&shard.outbox);
    if core.has_ended() {
        return None;
    }
    let (finished, hash) = outbox.step(epoch, QUOTA, delivery)?;
    drop(outbox);
    discard(finished);
    Some(hash)
}

/// Takes the next message that may run, as the holder of the shard's token. Messages whose key is
/// busy go to that key's lane. Gives the token back if there is nothing. In the middle of a run it
/// also does so if there are messages only in the inbox: a worker that took each message as it
/// arrives would meet the senders at every one.
pub(super) fn advance<A: Actor, K: Key>(
    core: &Core<A, K>,
    index: usize,
    mut outbox: Outboxed<'_, A, K>,
    epoch: u64,
    run: u32,
    first: Class,
) -> TakenMessage<A, K> {
    // The last message has been settled, so its key is free: a lane opened for it from now on would
    // have no owner.
    let finished = outbox.held(epoch).and_then(|token| token.in_hand.take());
    let dry = run > 0 && outbox.queue.is_empty();
    if dry && core.queue.shards[index].has_more_or(&outbox, &|| {}) {
        core.queue.wake.mark(index);
    }
    let (mut outbox, entry) = match dry {
        true => (outbox, None),
        false => next_free(core, index, outbox, epoch, first),
    };
    let left = entry.is_none() && !dry;
    if left && (outbox.has_ready() || core.queue.shards[index].has_more_or(&outbox, &|| {})) {
        core.queue.wake.mark(index);
    }
    let (taken, token) = match entry {
        Some(mut entry) => {
            outbox.left(&entry);
            core.queue.note_taken(index, &outbox);
            let key = entry.key.take().map(|key| (entry.hash, key));
            let hash = key.as_ref().map(|(hash, _)| *hash);
            outbox.publish(epoch, key);
            match core.queue.wake.waits() {
                true => (Some((pass_on_now(core, index, &mut outbox), entry)), None),
                false => (Some((Source::Head { index, epoch, hash, run }, entry)), None),
            }
        }
        None => (None, outbox.token.take()),
    };
    drop(outbox);
    discard((finished, token));
    taken
}

/// If handlers usually wait, the key of a message gets its lane before the handler is polled, under
/// the lock that is taken anyway, and others continue with the shard: the handler can then suspend
/// at no cost.
fn pass_on_now<A: Actor, K: Key>(
    core: &Core<A, K>,
    index: usize,
    outbox: &mut OutboxOf<A, K>,
) -> Source {
    let lane = outbox.pass_on();
    if outbox.has_ready() || core.queue.shards[index].refill(outbox) {
        core.queue.wake.mark(index);
    }
    lane.map_or(Source::None, |id| Source::Lane { index, id, run: 0 })
}

/// The next message of the queue whose key has no owner and has not used up its quota.
fn next_free<'a, A: Actor, K: Key>(
    core: &'a Core<A, K>,
    index: usize,
    mut outbox: Outboxed<'a, A, K>,
    epoch: u64,
    first: Class,
) -> (Outboxed<'a, A, K>, Option<Queued<A, K>>) {
    while let Some(mut entry) = pop_head(core, index, &mut outbox, first) {
        if entry.key.is_some() && outbox.lanes.has(entry.hash) {
            let (again, placed) = behind_its_lane(core, index, outbox, epoch, entry);
            outbox = again;
            entry = match placed {
                // Its key may be free because the pool ended over it while keys were compared.
                Err(free) if core.has_ended() => {
                    outbox.queue.push_front(free);
                    return (outbox, None);
                }
                Err(free) => free,
                Ok(LanePlace::Next) => return (outbox, None),
                Ok(LanePlace::Behind) => continue,
            };
        }
        if entry.urgent || !outbox.exceeds(&entry, QUOTA) {
            return (outbox, Some(entry));
        }
        if core.queue.shards[index].is_all_of(&mut outbox, entry.hash) {
            return (outbox, Some(entry));
        }
        if outbox.queue.len() < LOOK_AHEAD {
            core.queue.shards[index].refill_behind(&mut outbox);
        }
        if let Some(other) = outbox.pop_other(entry.hash) {
            outbox.queue.push_front(entry);
            return (outbox, Some(other));
        }
        if outbox.has_nobody_else() {
            return (outbox, Some(entry));
        }
        outbox.stand_aside(entry);
        core.queue.wake.mark(index);
    }
    (outbox, None)
}

/// The next message of a shard: urgent ones first, or none of them if a normal one is due. Also
/// none if there is an urgent one in a ready lane.
fn pop_head<A: Actor, K: Key>(
    core: &Core<A, K>,
    index: usize,
    outbox: &mut OutboxOf<A, K>,
    first: Class,
) -> Option<Queued<A, K>> {
    if first == Class::Urgent && core.queue.wake.has_urgent_at(index) {
        if outbox.has_urgent_ready() {
            return None;
        }
        if let Some(entry) = core.queue.pop_urgent_head(index, outbox) {
            return Some(entry);
        }
    }
    if !core.queue.shards[index].refill(outbox) {
        return None;
    }
    outbox.pop_queue().or_else(|| match first {
        Class::Urgent => core.queue.pop_urgent_head(index, outbox),
        Class::Normal => None,
    })
}
