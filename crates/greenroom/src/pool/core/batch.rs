//! The further messages of a batch, and the way of its failed ones.

use std::sync::Arc;

use greenroom_queue::{
    discard::{discard, panic_of},
    entry::Entry,
    payload::Payload,
    shard::LOOK_AHEAD,
};
use tokio::sync::Notify;

use super::{Core, Key, Queued, take::Outboxed};
use crate::{
    Actor,
    pool::{pool_payload::PoolPayload, worker::in_flight::Source},
};

/// The next message that may be handled together with those taken from here: one with the same key
/// or, without keys, any.
pub(crate) fn next_of_batch<A: Actor, K: Key>(
    core: &Core<A, K>,
    worker: usize,
    source: Source,
) -> Option<Queued<A, K>> {
    match source {
        _ if core.frame.shares.is_some() => core.sharing.as_ref()?.next(core, worker, source),
        Source::Lane { index, id, .. } => {
            let mut outbox = core.queue.shards[index].outbox.lock();
            if !joins(outbox.lanes.get(id)?.front()?) {
                return None;
            }
            outbox.pop_lane(id)
        }
        Source::Head { index, epoch, hash: Some(hash), .. } => {
            next_of_key(core, index, epoch, hash)
        }
        Source::Shared { index, .. } => {
            let mut outbox = core.queue.shards[index].outbox.lock();
            if !joins(outbox.queue.front()?) {
                return None;
            }
            outbox.pop_queue()
        }
        _ => None,
    }
}

/// The next message with the key in hand, for the holder of the token. The caller keeps the key
/// until the message is found. If another key has the same hash, there is no next message.
fn next_of_key<A: Actor, K: Key>(
    core: &Core<A, K>,
    index: usize,
    epoch: u64,
    hash: u32,
) -> Option<Queued<A, K>> {
    let mut outbox = core.queue.shards[index].outbox.lock();
    let in_hand = outbox.held(epoch)?.in_hand.take()?;
    let (mut outbox, found) = match outbox.lanes.has(hash) {
        // A lane of a key that collides with this one: nothing checks which of the two keys a
        // message has.
        true => (outbox, None),
        false => {
            if outbox.queue.len() < LOOK_AHEAD {
                core.queue.shards[index].refill_behind(&mut outbox);
            }
            take_near_of(core, index, outbox, epoch, hash, &in_hand.1)
        }
    };
    if let Some(token) = outbox.held(epoch) {
        token.in_hand = Some(in_hand);
        token.taken += u64::from(found.is_some());
    }
    let entry = found?;
    if !joins(&entry) {
        outbox.queue.push_front(entry);
        return None;
    }
    outbox.left(&entry);
    outbox.taken = outbox.taken.wrapping_add(1);
    Some(entry)
}

/// Takes a message of this key out of the queue, for the holder of the token.
///
/// The message is found by its hash, and the keys are compared outside the lock; meanwhile the
/// token says that it must not be taken away.
fn take_near_of<'a, A: Actor, K: Key>(
    core: &'a Core<A, K>,
    index: usize,
    mut outbox: Outboxed<'a, A, K>,
    epoch: u64,
    hash: u32,
    key: &K,
) -> (Outboxed<'a, A, K>, Option<Queued<A, K>>) {
    let of_hash = |entry: &Queued<A, K>| entry.key.is_some() && entry.hash == hash;
    let Some(entry) = outbox.queue.remove_near(LOOK_AHEAD, &of_hash) else {
        return (outbox, None);
    };
    outbox.compare(epoch, Some(hash));
    drop(outbox);
    let same = is_of(&entry, key);
    let mut outbox = core.queue.shards[index].outbox.lock();
    outbox.compare(epoch, None);
    if same {
        return (outbox, Some(entry));
    }
    outbox.queue.push_front(entry);
    (outbox, None)
}

/// Moves queued messages of the key whose lane a worker runs into that lane, if no worker drains
/// the shard: a worker that drains it would move them.
pub(crate) fn fetch_into_lane<A: Actor, K: Key>(core: &Core<A, K>, worker: usize, source: Source) {
    let Source::Lane { index, id, .. } = source else { return };
    let mut outbox = core.queue.shards[index].outbox.lock();
    if outbox.token.is_some() {
        return;
    }
    let Some(key) = outbox.lanes.get(id).and_then(|lane| lane.key.share()) else { return };
    let epoch = outbox.grant(worker);
    core.queue.shards[index].refill_behind(&mut outbox);
    loop {
        let (again, found) = take_near_of(core, index, outbox, epoch, id.hash, &key);
        outbox = again;
        let Some(entry) = found else { break };
        if let Err(entry) = outbox.lanes.push_back(id, entry) {
            debug_assert!(false, "a lane that is run is there");
            outbox.queue.push_front(entry);
            break;
        }
    }
    let token = outbox.held(epoch).is_some().then(|| outbox.token.take());
    let more = core.queue.shards[index].has_more_or(&outbox, &|| {});
    drop(outbox);
    discard((token, key));
    if more {
        core.queue.wake.mark(index);
    }
}

/// Returns a notification for when this many messages wait in the lane that a worker runs.
pub(crate) fn expect_more<A: Actor, K: Key>(
    core: &Core<A, K>,
    source: Source,
    messages: usize,
) -> Option<Arc<Notify>> {
    let Source::Lane { index, id, .. } = source else { return None };
    let mut outbox = core.queue.shards[index].outbox.lock();
    let lane = outbox.lanes.get(id)?;
    let full = Arc::new(Notify::new());
    if lane.len() >= messages {
        full.notify_one();
    }
    lane.expect(messages, full.clone());
    Some(full)
}

/// True if a message has this key. If they cannot be compared, it counts as having another.
fn is_of<T: Payload, K: Eq>(entry: &Entry<T, K>, key: &K) -> bool {
    let mut is_same = false;
    discard(panic_of(&mut || is_same = entry.key.as_ref() == Some(key)));
    is_same
}

/// True for a message that may be handled with others.
fn joins<M, R, E, K>(entry: &Entry<PoolPayload<M, R, E>, K>) -> bool {
    !entry.extra.as_ref().is_some_and(|extra| extra.next.alone)
}
