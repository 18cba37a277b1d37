//! Parking: messages that wait for a retry, each at the head of its key's lane or, without a key,
//! alone.

use std::{sync::atomic::Ordering, time::Duration};

use greenroom_queue::lanes::{LaneId, LaneState};

use super::{Core, Key, OutboxOf, Queued, place::demote, pushes::park_mail, take::Outboxed};
use crate::pool::frame::gate::dead_letter_if_ruined;
use crate::{
    Actor,
    pool::{membership::mailbox::Mailbox, pool_payload::Entries, worker::in_flight::Source},
};

/// Puts messages of a key that are to be retried at the head of its line, in order. The clock owns
/// the lane until `after` has passed. Without a key, each message waits alone. Returns the new
/// place of the worker.
pub(crate) fn park<A: Actor, K: Key>(
    core: &Core<A, K>,
    worker: usize,
    source: Source,
    mut entries: Entries<A, K>,
    after: Duration,
) -> Source {
    if let Some((index, id, mut outbox, place)) = own_lane(core, worker, source) {
        put_first(core, &mut outbox, id, entries);
        if let Some(lane) = outbox.lanes.get(id) {
            lane.state = LaneState::Retrying;
        }
        drop(outbox);
        core.frame.clock.park_lane(index, id, after);
        return place;
    }
    wait_again(core, entries.len());
    while let Some(entry) = entries.pop_front() {
        match source {
            Source::Mailbox => park_mail(core, worker, entry, after),
            Source::Head { index, .. }
            | Source::Shared { index, .. }
            | Source::BetweenRuns { index, .. } => {
                core.frame.clock.park_message(index, entry, after);
            }
            Source::Lane { .. } | Source::None => core.frame.clock.park_message(0, entry, after),
        }
    }
    // A holder of the token keeps it and continues with other keys.
    source
}

/// Counts that this many started messages wait again.
fn wait_again<A: Actor, K: Key>(core: &Core<A, K>, messages: usize) {
    for _ in 0..messages {
        core.queue.permits.take_back();
    }
    core.frame.telemetry.counters.waiting.fetch_add(messages, Ordering::Relaxed);
}

/// Puts messages that have failed at the front of a lane, in order.
pub(super) fn put_first<A: Actor, K: Key>(
    core: &Core<A, K>,
    outbox: &mut OutboxOf<A, K>,
    id: LaneId,
    entries: Entries<A, K>,
) {
    wait_again(core, entries.len());
    let unplaced = outbox.lanes.put_first(id, entries);
    debug_assert!(unplaced.is_ok(), "a lane that is run is there");
}

/// The lane of the key that a worker owns, opened if there is none yet, and the new place of the
/// worker.
pub(super) fn own_lane<A: Actor, K: Key>(
    core: &Core<A, K>,
    worker: usize,
    source: Source,
) -> Option<(usize, LaneId, Outboxed<'_, A, K>, Source)> {
    match source {
        Source::Lane { index, id, .. } => {
            Some((index, id, core.queue.shards[index].outbox.lock(), Source::None))
        }
        Source::Head { index, epoch, .. } => {
            let mut outbox = core.queue.shards[index].outbox.lock();
            if let Some(token) = outbox.held(epoch) {
                let (hash, key) = token.in_hand.take()?;
                let id = outbox.lanes.open(hash, key, LaneState::Parked);
                return Some((index, id, outbox, source));
            }
            drop(outbox);
            match demote(&core.queue, worker, source) {
                lane @ Source::Lane { .. } => own_lane(core, worker, lane),
                _ => None,
            }
        }
        _ => None,
    }
}

/// The wait of a lane is over.
pub(crate) fn wake_lane<A: Actor, K: Key>(core: &Core<A, K>, index: usize, id: LaneId) {
    let mut outbox = core.queue.shards[index].outbox.lock();
    match outbox.lanes.get(id) {
        Some(lane) if lane.state == LaneState::Retrying => {}
        _ => return,
    }
    if outbox.make_ready(id) {
        core.queue.wake.set_urgent(index);
    }
    drop(outbox);
    core.announce(index);
    dead_letter_if_ruined(core);
}

/// A message from a worker's own mailbox has waited for its retry: it goes back there or, if the
/// worker has gone, to any other.
pub(crate) fn wake_mail<A: Actor, K: Key>(core: &Core<A, K>, slot: usize, entry: Queued<A, K>) {
    match core.mailbox_if_any(slot) {
        Some(mailbox) => leave_to(core, &mailbox, entry),
        None => wake_message(core, 0, entry),
    }
}

/// Gives a message to this worker or, if it has gone since, to any other.
pub(crate) fn leave_to<A: Actor, K: Key>(
    core: &Core<A, K>,
    mailbox: &Mailbox<A, K>,
    entry: Queued<A, K>,
) {
    match mailbox.put_again(entry) {
        Ok(()) => drop(core.queue.wake.call(mailbox.slot, &core.frame.clock.watchdog)),
        Err(entry) => wake_message(core, 0, entry),
    }
}

/// A message without a key has waited for its retry.
pub(crate) fn wake_message<A: Actor, K: Key>(core: &Core<A, K>, index: usize, entry: Queued<A, K>) {
    let shard = &core.queue.shards[index];
    let mut outbox = shard.outbox.lock();
    shard.put_again(&mut outbox, entry);
    shard.inbox.lock().scheduled = true;
    drop(outbox);
    core.announce(index);
    dead_letter_if_ruined(core);
}
