//! A message whose key has a lane goes behind those in it.

use std::sync::Arc;

use greenroom_queue::{
    discard::{discard, panic_of},
    lanes::{Lane, LaneId, LaneState, is_plain_key},
};

use super::Outboxed;
use crate::{
    Actor, CallError,
    pool::core::{Core, Key, OutboxOf, Queued},
};

/// The place of a message whose key has a lane.
pub(crate) enum LanePlace {
    Behind,
    /// First in the lane that the worker itself runs, which has nothing in hand.
    Next,
}

impl<A: Actor, K: Key> Core<A, K> {
    /// Puts a message into the lane of its key, or gives it back if there is none. Keys are
    /// compared without the lock.
    #[cold]
    pub(crate) fn behind_its_lane<'a>(
        &'a self,
        index: usize,
        mut outbox: Outboxed<'a, A, K>,
        epoch: u64,
        entry: Queued<A, K>,
    ) -> (Outboxed<'a, A, K>, Result<LanePlace, Queued<A, K>>) {
        outbox.compare(epoch, Some(entry.hash));
        let (outbox, lane) = self.lane_of(index, outbox, &entry);
        // The lane may have closed since: then the key is free. None can have opened, because only
        // the holder of the token opens lanes for messages of this queue, and the watchdog leaves a
        // token alone that compares.
        let urgent = entry.urgent;
        let (mut outbox, entry) = self.notify_if_parked(index, outbox, lane, entry);
        outbox.carried = None;
        let placed = match lane {
            Some(id) => outbox.lanes.push_back(id, entry).map(|()| id),
            None => Err(entry),
        };
        if let Ok(id) = &placed {
            self.came_behind(&mut outbox, *id);
        }
        let full = lane.and_then(|id| outbox.lanes.get(id)).and_then(Lane::is_as_long_as_wanted);
        if let Some(full) = full {
            drop(outbox);
            full.notify_one();
            outbox = self.queue.shards[index].outbox.lock();
        }
        outbox.compare(epoch, None);
        let placed = placed.map(|id| match urgent {
            true => self.set_lane_urgent(index, &mut outbox, epoch, id),
            false => LanePlace::Behind,
        });
        (outbox, placed)
    }

    /// The lane of this message's key. Keys of types whose comparison is the standard library's are
    /// compared in place; others are user code, and are compared without the lock.
    fn lane_of<'a>(
        &'a self,
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
        (self.queue.shards[index].outbox.lock(), lane)
    }

    /// A caller that waits for the reply to a message of a parked key is told so: it would wait for
    /// an operator.
    fn notify_if_parked<'a>(
        &'a self,
        index: usize,
        mut outbox: Outboxed<'a, A, K>,
        lane: Option<LaneId>,
        mut entry: Queued<A, K>,
    ) -> (Outboxed<'a, A, K>, Queued<A, K>) {
        let state = lane.and_then(|id| outbox.lanes.get(id)).map(|lane| lane.state);
        let extra = entry.extra.as_mut().filter(|_| state == Some(LaneState::Parked));
        let Some(port) = extra.and_then(|extra| extra.port.take()) else { return (outbox, entry) };
        // The token still says that keys are compared: it stays in its place.
        drop(outbox);
        port.resolve(CallError::Parked);
        (self.queue.shards[index].outbox.lock(), entry)
    }

    /// An urgent message has come into a lane. If that is the caller's own, it is the next one that
    /// the caller handles.
    fn set_lane_urgent(
        &self,
        index: usize,
        outbox: &mut OutboxOf<A, K>,
        epoch: u64,
        id: LaneId,
    ) -> LanePlace {
        let worker = outbox.held(epoch).map(|token| token.worker);
        match outbox.set_urgent(id) {
            Some(LaneState::Ready) => {
                self.queue.wake.set_urgent(index);
                LanePlace::Behind
            }
            Some(LaneState::Running(owner)) if Some(owner) == worker => LanePlace::Next,
            _ => LanePlace::Behind,
        }
    }
}

/// The lane whose key is this one. If a comparison panics, the message waits behind the first lane
/// with its hash: keys that cannot be compared have no order to keep, and nothing is lost.
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
