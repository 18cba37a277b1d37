//! A message whose key has a lane goes behind the others in that lane.

use std::sync::Arc;

use greenroom_queue::{
    discard::{discard, panic_of},
    lanes::{Lane, LaneId, LaneState, is_plain_key},
};

use super::taken::Outboxed;
use crate::{
    Actor, CallError,
    pool::core::{Core, Key, OutboxOf, Queued},
};

/// The place of a message whose key has a lane.
pub(crate) enum LanePlace {
    Behind,
    /// First in the lane that the worker itself runs, with nothing in hand.
    Next,
}

/// Puts a message into the lane of its key, or gives it back if there is none. Keys are compared
/// without the lock.
#[cold]
pub(crate) fn behind_its_lane<'a, A: Actor, K: Key>(
    core: &'a Core<A, K>,
    index: usize,
    mut outbox: Outboxed<'a, A, K>,
    epoch: u64,
    entry: Queued<A, K>,
) -> (Outboxed<'a, A, K>, Result<LanePlace, Queued<A, K>>) {
    outbox.compare(epoch, Some(entry.hash));
    let (outbox, lane) = lane_of(core, index, outbox, &entry);
    // The lane may have closed since: then the key is free. None can have opened, because only the
    // holder of the token opens lanes for messages of this queue, and the watchdog does not take
    // the token while keys are compared.
    let urgent = entry.urgent;
    let (mut outbox, entry) = notify_if_parked(core, index, outbox, lane, entry);
    outbox.carried = None;
    let placed = match lane {
        Some(id) => outbox.lanes.push_back(id, entry).map(|()| id),
        None => Err(entry),
    };
    if let Ok(id) = &placed
        && outbox.lanes.get(*id).is_some_and(|lane| lane.is_apart())
    {
        // The worker that took it serves waiters before it rests.
        core.queue.permits.return_unused(1);
    }
    let full = lane.and_then(|id| outbox.lanes.get(id)).and_then(Lane::is_as_long_as_wanted);
    if let Some(full) = full {
        drop(outbox);
        full.notify_one();
        outbox = core.queue.shards[index].outbox.lock();
    }
    outbox.compare(epoch, None);
    let placed = placed.map(|id| match urgent {
        true => set_lane_urgent(core, index, &mut outbox, epoch, id),
        false => LanePlace::Behind,
    });
    (outbox, placed)
}

/// The lane of this message's key. Keys whose comparison is standard library code are compared in
/// place; comparing others runs user code, without the lock.
fn lane_of<'a, A: Actor, K: Key>(
    core: &'a Core<A, K>,
    index: usize,
    mut outbox: Outboxed<'a, A, K>,
    entry: &Queued<A, K>,
) -> (Outboxed<'a, A, K>, Option<LaneId>) {
    if is_plain_key::<K>() {
        let lane = outbox.lanes.of_key(entry.hash, entry.key.as_ref());
        return (outbox, lane);
    }
    let candidates = outbox.lanes.candidates(entry.hash);
    drop(outbox);
    let lane = find_lane(candidates, entry.key.as_ref());
    (core.queue.shards[index].outbox.lock(), lane)
}

/// Notifies a caller that waits for the reply to a message of a parked key: it would wait for an
/// operator.
fn notify_if_parked<'a, A: Actor, K: Key>(
    core: &'a Core<A, K>,
    index: usize,
    mut outbox: Outboxed<'a, A, K>,
    lane: Option<LaneId>,
    mut entry: Queued<A, K>,
) -> (Outboxed<'a, A, K>, Queued<A, K>) {
    let state = lane.and_then(|id| outbox.lanes.get(id)).map(|lane| lane.state);
    let extra = entry.extra.as_mut().filter(|_| state == Some(LaneState::Parked));
    let Some(port) = extra.and_then(|extra| extra.port.take()) else { return (outbox, entry) };
    // The token still says that keys are compared, so it stays in its place.
    drop(outbox);
    port.resolve(CallError::Parked);
    (core.queue.shards[index].outbox.lock(), entry)
}

/// An urgent message has arrived in a lane. If it is the caller's own lane, the message is the next
/// one that the caller handles.
fn set_lane_urgent<A: Actor, K: Key>(
    core: &Core<A, K>,
    index: usize,
    outbox: &mut OutboxOf<A, K>,
    epoch: u64,
    id: LaneId,
) -> LanePlace {
    let worker = outbox.held(epoch).map(|token| token.worker);
    match outbox.set_urgent(id) {
        Some(LaneState::Ready) => {
            core.queue.wake.set_urgent(index);
            LanePlace::Behind
        }
        Some(LaneState::Running(owner)) if Some(owner) == worker => LanePlace::Next,
        _ => LanePlace::Behind,
    }
}

/// The lane with this key. If a comparison panics, the message waits behind the first lane with its
/// hash: keys that cannot be compared have no order to keep, and nothing is lost.
pub(crate) fn find_lane<K: Eq>(
    candidates: Vec<(LaneId, Arc<K>)>,
    key: Option<&K>,
) -> Option<LaneId> {
    let mut found = None;
    let mut compare = || {
        for (id, open) in &candidates {
            if found.is_none() && Some(&**open) == key {
                found = Some(*id);
            }
        }
    };
    if let Some(panic) = panic_of(&mut compare) {
        discard(panic);
        found = candidates.first().map(|(id, _)| *id);
    }
    discard(candidates);
    found
}
