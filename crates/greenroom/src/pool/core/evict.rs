//! Overflow: messages for which there is no room.

use std::{cmp::Reverse, sync::atomic::Ordering};

use greenroom_queue::{
    discard::discard,
    lock::Locked,
    permits::{Closed, Refused},
};

use super::{
    Core, Key, OutboxOf, Queued, Urgency,
    backlog::has_room_behind,
    claims::{try_claim, try_place_claimed},
    drain::bury,
    mail::push_to,
    push::push_in_line,
    room::PoolPermit,
    serve::take_handed,
};
use crate::pool::frame::notify::{found_full, found_worker_full, has_dropped};
use crate::{
    Actor, CallError, DeadLetterReason,
    pool::{builder::overflow::Overflow, membership::mailbox::Mailbox, outgoing::OutgoingOf},
};

/// The pool is full: applies its overflow policy to a message.
#[cold]
pub(crate) fn overflow<A: Actor, K: Key>(
    core: &Core<A, K>,
    payload: &mut OutgoingOf<A>,
    sender: u32,
) -> Result<(), Refused> {
    found_full(core);
    let full = (Refused::Full, Refused::Rejected);
    overflow_with(core, payload, full, |payload| make_room(core, payload, sender))
}

/// Like `overflow`, for a message to this worker, such as one of several copies.
#[cold]
pub(crate) fn overflow_at<A: Actor, K: Key>(
    core: &Core<A, K>,
    member: &Mailbox<A, K>,
    payload: &mut OutgoingOf<A>,
) -> Result<(), Refused> {
    found_worker_full(core);
    let full = (Refused::Full, Refused::Rejected);
    overflow_with(core, payload, full, |payload| {
        let permit = make_room_at(core, member, 0)?;
        push_to(core, member, payload).map_err(|Closed| Refused::Closed)?;
        permit.used();
        Ok(())
    })
}

fn overflow_with<A: Actor, K: Key>(
    core: &Core<A, K>,
    payload: &mut OutgoingOf<A>,
    (waits, rejected): (Refused, Refused),
    make_room: impl FnOnce(&mut OutgoingOf<A>) -> Result<(), Refused>,
) -> Result<(), Refused> {
    match &core.settings.functions.overflow {
        Overflow::Wait => Err(waits),
        Overflow::Reject => Err(rejected),
        Overflow::DropNewest => {
            discard(payload.lend());
            has_dropped(core);
            Err(Refused::Dropped)
        }
        Overflow::DropOldest => make_room(payload),
        Overflow::Fallback(other) => other.take_over(payload),
    }
}

/// Evicts the message that has waited longest and gives its permit to the new one.
fn make_room<A: Actor, K: Key>(
    core: &Core<A, K>,
    payload: &mut OutgoingOf<A>,
    sender: u32,
) -> Result<(), Refused> {
    if core.settings.derived.bytes.is_some() {
        make_byte_room(core, core.shard_of(&(None, 0), sender), payload)?;
        // There may be room for a message now.
        match try_place_claimed(core, payload, sender, Urgency::Now) {
            Err(Refused::Full) => {}
            placed => return placed,
        }
    }
    if let Some(push) = &core.push {
        return push.make_room(core, payload, sender);
    }
    let key = core.key(payload);
    let index = core.shard_of(&key, sender);
    let evicted = match has_room_behind(core, index, &key) {
        Ok(()) => evict(core, index),
        Err(Refused::KeyFull) => evict_of(core, index, key.1),
        Err(refused) => {
            discard(key);
            return Err(refused);
        }
    };
    let permit = freed(core, evicted)?;
    push_in_line(core, index, payload, key, false).map_err(never_waits)?;
    permit.used();
    Ok(())
}

/// Evicts the messages that have waited longest until there are enough bytes for this one.
fn make_byte_room<A: Actor, K: Key>(
    core: &Core<A, K>,
    index: usize,
    payload: &mut OutgoingOf<A>,
) -> Result<(), Refused> {
    while try_claim(core, payload).is_err() {
        drop(freed(core, evict(core, index))?);
    }
    Ok(())
}

/// The message's key already has as many waiting messages as it may have: applies the overflow
/// policy of the pool.
#[cold]
pub(crate) fn overflow_of_key<A: Actor, K: Key>(
    core: &Core<A, K>,
    payload: &mut OutgoingOf<A>,
) -> Result<(), Refused> {
    let full = (Refused::KeyFull, Refused::KeyRejected);
    overflow_with(core, payload, full, |payload| make_room_behind_key(core, payload))
}

fn make_room_behind_key<A: Actor, K: Key>(
    core: &Core<A, K>,
    payload: &mut OutgoingOf<A>,
) -> Result<(), Refused> {
    let key = core.key(payload);
    let index = core.shard_of(&key, 0);
    let evicted = evict_of(core, index, key.1);
    let permit = freed(core, evicted).map_err(|_| Refused::KeyRejected)?;
    push_in_line(core, index, payload, key, false).map_err(never_waits)?;
    permit.used();
    Ok(())
}

/// Makes room in a full mailbox, or in a full pool for a message from outside it, and takes a place
/// there.
pub(super) fn make_room_at<'a, A: Actor, K: Key>(
    core: &'a Core<A, K>,
    member: &Mailbox<A, K>,
    sender: u32,
) -> Result<PoolPermit<'a, A, K>, Refused> {
    if member.try_reserve().is_ok() {
        let permit = match try_permit(core) {
            Err(Refused::Full) => freed(core, evict(core, core.shard_of(&(None, 0), sender))),
            tried => tried,
        };
        return permit.inspect_err(|_| member.give_back());
    }
    let permit = freed(core, member.evict())?;
    if member.try_reserve().is_err() {
        member.reserve_anyway();
    }
    Ok(permit)
}

/// A permit, if there is room in the pool.
pub(super) fn try_permit<A: Actor, K: Key>(
    core: &Core<A, K>,
) -> Result<PoolPermit<'_, A, K>, Refused> {
    core.queue.permits.try_take(1, core).map(|_| PoolPermit(Some(core)))
}

/// The permit of a message that was evicted.
pub(super) fn freed<A: Actor, K: Key>(
    core: &Core<A, K>,
    evicted: Option<Queued<A, K>>,
) -> Result<PoolPermit<'_, A, K>, Refused> {
    let Some(evicted) = evicted else { return Err(Refused::Rejected) };
    let permit = PoolPermit(Some(core));
    dead_letter_evicted(core, evicted);
    Ok(permit)
}

/// Takes out a normal message: one that was handed to a worker that has not come for it, or the
/// oldest of this shard, of another, of a worker's mailbox, or of those held; an urgent one if
/// there is no other. A message that waits for a retry stays.
pub(super) fn evict<A: Actor, K: Key>(core: &Core<A, K>, index: usize) -> Option<Queued<A, K>> {
    let normal = take_handed(core, 1).pop_front();
    let normal = normal.or_else(|| evict_from_any(core, index, false));
    let normal = normal.or_else(|| evict_mail(core));
    let normal = normal.or_else(|| core.routing.held.lock().pop_front());
    normal.or_else(|| evict_from_any(core, index, true))
}

/// Evicts a message from this shard, or from another.
fn evict_from_any<A: Actor, K: Key>(
    core: &Core<A, K>,
    index: usize,
    urgent: bool,
) -> Option<Queued<A, K>> {
    let shards = core.queue.shards.len();
    (0..shards).find_map(|step| evict_from(core, (index + step) % shards, urgent))
}

/// Evicts a message from the fullest mailbox, or from another.
fn evict_mail<A: Actor, K: Key>(core: &Core<A, K>) -> Option<Queued<A, K>> {
    let mut waiting = Vec::new();
    for slot in 0..core.desks.len() {
        if let Some(mailbox) = core.mailbox_if_any(slot) {
            waiting.push((mailbox.waiting(), slot));
        }
    }
    waiting.sort_by_key(|(messages, _)| Reverse(*messages));
    for (_, slot) in waiting {
        if let Some(mailbox) = core.mailbox_if_any(slot)
            && let Some(evicted) = mailbox.evict()
        {
            return Some(evicted);
        }
    }
    None
}

fn evict_from<A: Actor, K: Key>(
    core: &Core<A, K>,
    shard: usize,
    urgent: bool,
) -> Option<Queued<A, K>> {
    let mut outbox = core.queue.shards[shard].outbox.lock();
    let oldest = if urgent {
        let more = outbox.has_urgent_ready();
        core.queue.pop_urgent(shard, more)
    } else {
        let oldest = outbox.queue.pop_first(&|entry| !entry.is_retry());
        oldest.or_else(|| core.queue.shards[shard].inbox.lock().queue.pop_front())
    };
    if let Some(entry) = &oldest {
        outbox.left(entry);
        return oldest;
    }
    evict_from_lanes(core, shard, outbox, urgent)
}

/// Evicts a message from a lane. A lane that no worker runs must not be left empty, so it is
/// closed.
fn evict_from_lanes<A: Actor, K: Key>(
    core: &Core<A, K>,
    shard: usize,
    mut outbox: Locked<'_, OutboxOf<A, K>>,
    urgent: bool,
) -> Option<Queued<A, K>> {
    let (entry, emptied) = outbox.lanes.evict(urgent)?;
    outbox.left(&entry);
    // Its stale name among the ready lanes is passed over.
    let closed = emptied.and_then(|id| outbox.lanes.close(id));
    // Otherwise workers would look for an urgent message here until the next message arrives.
    core.queue.clear_urgent_if_last(shard, &mut outbox);
    drop(outbox);
    discard(closed);
    Some(entry)
}

/// Like `evict`, for a key with this hash.
fn evict_of<A: Actor, K: Key>(core: &Core<A, K>, shard: usize, hash: u32) -> Option<Queued<A, K>> {
    let mut outbox = core.queue.shards[shard].outbox.lock();
    let oldest = outbox.lanes.evict_of(hash);
    let is_such = |entry: &Queued<A, K>| entry.key.is_some() && entry.hash == hash;
    let oldest = oldest.or_else(|| outbox.queue.pop_first(&is_such));
    let oldest =
        oldest.or_else(|| core.queue.shards[shard].inbox.lock().queue.pop_first(&is_such))?;
    outbox.left(&oldest);
    Some(oldest)
}

fn dead_letter_evicted<A: Actor, K: Key>(core: &Core<A, K>, entry: Queued<A, K>) {
    if entry.is_retry() {
        core.frame.telemetry.counters.waiting.fetch_sub(1, Ordering::Relaxed);
    }
    bury(core, entry, DeadLetterReason::Evicted, CallError::Evicted);
    has_dropped(core);
}

/// In a pool that evicts, no sender waits, even if others were quicker.
fn never_waits(refused: Refused) -> Refused {
    if refused == Refused::KeyFull { Refused::KeyRejected } else { refused }
}
