//! What becomes of messages for which there is no room.

use std::{
    cmp::Reverse,
    hash::Hash,
    sync::{Arc, atomic::Ordering},
};

use greenroom_queue::{
    discard::discard,
    lock::Locked,
    permits::{Closed, Refused},
};

use super::{
    Core, OutboxOf, Queued, Urgency,
    dispatch::{Chosen, MailboxPlace, PoolPermit},
};
use crate::pool::frame::notify::{found_full, found_worker_full, has_dropped};
use crate::{
    Actor, CallError, DeadLetter, DeadLetterReason,
    pool::{builder::overflow::Overflow, membership::mailbox::Mailbox, outgoing::OutgoingOf},
};

impl<A: Actor, K: Hash + Eq + Send + Sync + 'static> Core<A, K> {
    /// The pool is full: what its overflow policy makes of a message.
    #[cold]
    pub(crate) fn overflow(&self, payload: &mut OutgoingOf<A>, sender: u32) -> Result<(), Refused> {
        found_full(self);
        self.overflow_with(payload, |payload| self.make_room(payload, sender))
    }

    /// As `overflow`, for a message for this worker, such as one of several copies.
    #[cold]
    pub(crate) fn overflow_at(
        &self,
        member: &Mailbox<A, K>,
        payload: &mut OutgoingOf<A>,
    ) -> Result<(), Refused> {
        found_worker_full(self);
        self.overflow_with(payload, |payload| {
            let permit = self.make_room_at(member, 0)?;
            self.push_to(member, payload).map_err(|Closed| Refused::Closed)?;
            permit.used();
            Ok(())
        })
    }

    fn overflow_with(
        &self,
        payload: &mut OutgoingOf<A>,
        make_room: impl FnOnce(&mut OutgoingOf<A>) -> Result<(), Refused>,
    ) -> Result<(), Refused> {
        match &self.settings.functions.overflow {
            Overflow::Wait => Err(Refused::Full),
            Overflow::Reject => Err(Refused::Rejected),
            Overflow::DropNewest => {
                discard(payload.lend());
                has_dropped(self);
                Err(Refused::Dropped)
            }
            Overflow::DropOldest => make_room(payload),
            Overflow::Fallback(other) => other.take_over(payload),
        }
    }

    /// The message that has waited longest makes room, and its permit goes to the one that arrives.
    fn make_room(&self, payload: &mut OutgoingOf<A>, sender: u32) -> Result<(), Refused> {
        if self.settings.derived.bytes.is_some() {
            self.make_byte_room(self.shard_of(&(None, 0), sender), payload)?;
            // There may be room for a message.
            match self.try_place_claimed(payload, sender, Urgency::Now) {
                Err(Refused::Full) => {}
                placed => return placed,
            }
        }
        if let Some(push) = &self.push {
            return push.make_room(self, payload, sender);
        }
        let key = self.key(payload);
        let index = self.shard_of(&key, sender);
        let evicted = match self.has_room_behind(index, &key) {
            Ok(()) => self.evict(index),
            Err(Refused::KeyFull) => self.evict_of(index, key.1),
            Err(refused) => {
                discard(key);
                return Err(refused);
            }
        };
        let permit = self.freed(evicted)?;
        self.push(index, payload, key).map_err(never_waits)?;
        permit.used();
        Ok(())
    }

    /// The messages that have waited longest make room until there is enough for the bytes
    /// of this one.
    fn make_byte_room(&self, index: usize, payload: &mut OutgoingOf<A>) -> Result<(), Refused> {
        while self.try_claim(payload).is_err() {
            drop(self.freed(self.evict(index))?);
        }
        Ok(())
    }

    /// The message's key has as many waiting messages as it may: applies the overflow policy
    /// of the pool.
    #[cold]
    pub(crate) fn overflow_of_key(&self, payload: &mut OutgoingOf<A>) -> Result<(), Refused> {
        match &self.settings.functions.overflow {
            Overflow::Wait => Err(Refused::KeyFull),
            Overflow::Reject => Err(Refused::KeyRejected),
            Overflow::DropNewest => {
                discard(payload.lend());
                has_dropped(self);
                Err(Refused::Dropped)
            }
            Overflow::DropOldest => self.make_room_behind_key(payload),
            Overflow::Fallback(other) => other.take_over(payload),
        }
    }

    fn make_room_behind_key(&self, payload: &mut OutgoingOf<A>) -> Result<(), Refused> {
        let key = self.key(payload);
        let index = self.shard_of(&key, 0);
        let evicted = self.evict_of(index, key.1);
        let permit = self.freed(evicted).map_err(|_| Refused::KeyRejected)?;
        self.push(index, payload, key).map_err(never_waits)?;
        permit.used();
        Ok(())
    }

    /// As `make_room`, at the worker that the policy chooses, if that is full. The policy comes
    /// first: if it refuses or panics, no message makes room.
    pub(super) fn make_room_by_choice(
        &self,
        payload: &mut OutgoingOf<A>,
        sender: u32,
    ) -> Result<(), Refused> {
        let chosen = self.choose_in_turn(payload);
        let (permit, pushed) = match chosen {
            Chosen::Refused => return Err(Refused::ByPolicy),
            Chosen::Several(members) => {
                return self.make_room_for_copies(&members, payload, sender);
            }
            Chosen::One(member) => {
                let permit = self.make_room_at(&member, sender)?;
                let pushed = match self.push_to(&member, payload) {
                    Err(Closed) => self.push_to_any(payload, sender),
                    Ok(()) => Ok(()),
                };
                (permit, pushed)
            }
            Chosen::Hold(seen) => {
                let permit = self.freed(self.evict(self.shard_of(&(None, 0), sender)))?;
                (permit, self.hold_back(payload, seen).map_err(|Closed| Refused::Closed))
            }
            Chosen::Any | Chosen::Gone => {
                let permit = self.freed(self.evict(self.shard_of(&(None, 0), sender)))?;
                (permit, self.push_to_any(payload, sender))
            }
        };
        pushed?;
        permit.used();
        Ok(())
    }

    /// A copy for each, even for a full one. If no message may give way at one of them, no worker
    /// gets one, and room that was made before was made in vain.
    fn make_room_for_copies(
        &self,
        members: &[Arc<Mailbox<A, K>>],
        payload: &mut OutgoingOf<A>,
        sender: u32,
    ) -> Result<(), Refused> {
        let copies = self.copies(members.len() - 1, payload);
        let (mut places, mut permits) = (Vec::new(), Vec::new());
        for member in members {
            permits.push(self.make_room_at(member, sender)?);
            places.push(MailboxPlace(Some(&**member)));
        }
        let taken = permits.len() as u64;
        permits.into_iter().for_each(PoolPermit::used);
        self.hand_out(members, payload, copies, places, taken)
    }

    /// Makes room in a full mailbox, or in a full pool for a message from outside it, and takes a
    /// place there.
    pub(super) fn make_room_at(
        &self,
        member: &Mailbox<A, K>,
        sender: u32,
    ) -> Result<PoolPermit<'_, A, K>, Refused> {
        if member.try_reserve().is_ok() {
            match self.queue.permits.try_take(1, self) {
                Ok(_) => return Ok(PoolPermit(Some(self))),
                Err(Refused::Full) => {}
                Err(refused) => {
                    member.give_back();
                    return Err(refused);
                }
            }
            let freed = self.freed(self.evict(self.shard_of(&(None, 0), sender)));
            return freed.inspect_err(|_| member.give_back());
        }
        let permit = self.freed(member.evict())?;
        if member.try_reserve().is_err() {
            member.reserve_anyway();
        }
        Ok(permit)
    }

    /// The permit of a message that was evicted.
    pub(super) fn freed(
        &self,
        evicted: Option<Queued<A, K>>,
    ) -> Result<PoolPermit<'_, A, K>, Refused> {
        let Some(evicted) = evicted else { return Err(Refused::Rejected) };
        let permit = PoolPermit(Some(self));
        self.dead_letter_evicted(evicted);
        Ok(permit)
    }

    /// Takes out a normal message: one that was handed to a worker that has not come for it, or the
    /// oldest of this shard, of another, of a worker's mailbox, or of those held back; an urgent
    /// one if there is no other. A message that waits for another attempt stays.
    pub(super) fn evict(&self, index: usize) -> Option<Queued<A, K>> {
        let normal = self.take_handed(1).pop();
        let normal = normal.or_else(|| self.evict_from_any(index, false));
        let normal = normal.or_else(|| self.evict_mail());
        let normal = normal.or_else(|| self.routing.held.lock().pop_front());
        normal.or_else(|| self.evict_from_any(index, true))
    }

    /// Of this shard, or of another.
    fn evict_from_any(&self, index: usize, urgent: bool) -> Option<Queued<A, K>> {
        let shards = self.queue.shards.len();
        for step in 0..shards {
            let shard = (index + step) % shards;
            let evicted = match urgent {
                true => self.evict_urgent_from(shard),
                false => self.evict_from(shard),
            };
            if evicted.is_some() {
                return evicted;
            }
        }
        None
    }

    /// Of the fullest mailbox, or of another.
    fn evict_mail(&self) -> Option<Queued<A, K>> {
        let mut waiting = Vec::new();
        for slot in 0..self.mailboxes.len() {
            if let Some(mailbox) = self.mailbox_if_any(slot) {
                waiting.push((mailbox.waiting(), slot));
            }
        }
        for slot in fullest_first(waiting) {
            if let Some(mailbox) = self.mailbox_if_any(slot)
                && let Some(evicted) = mailbox.evict()
            {
                return Some(evicted);
            }
        }
        None
    }

    fn evict_from(&self, shard: usize) -> Option<Queued<A, K>> {
        let mut outbox = self.queue.shards[shard].outbox.lock();
        let oldest = outbox.queue.pop_first(|entry| !entry.is_retry());
        let oldest = oldest.or_else(|| self.queue.shards[shard].inbox.lock().queue.pop_front());
        if let Some(entry) = &oldest {
            outbox.left(entry);
            return oldest;
        }
        self.evict_from_lanes(shard, outbox, false)
    }

    fn evict_urgent_from(&self, shard: usize) -> Option<Queued<A, K>> {
        let mut outbox = self.queue.shards[shard].outbox.lock();
        let more = outbox.has_urgent_ready();
        let oldest = self.pop_urgent(shard, more);
        if let Some(entry) = &oldest {
            outbox.left(entry);
            return oldest;
        }
        self.evict_from_lanes(shard, outbox, true)
    }

    /// A lane that no worker runs has a message, or is none.
    fn evict_from_lanes(
        &self,
        shard: usize,
        mut outbox: Locked<'_, OutboxOf<A, K>>,
        urgent: bool,
    ) -> Option<Queued<A, K>> {
        let (entry, emptied) = outbox.lanes.evict(urgent)?;
        outbox.left(&entry);
        // What names it among the ready ones is passed over.
        let closed = emptied.and_then(|id| outbox.lanes.close(id));
        // Otherwise workers would look for an urgent message here until the next message comes.
        self.clear_urgent_if_last(shard, &mut outbox);
        drop(outbox);
        discard(closed);
        Some(entry)
    }

    /// As `evict`, of a key with this hash.
    fn evict_of(&self, shard: usize, hash: u32) -> Option<Queued<A, K>> {
        let mut outbox = self.queue.shards[shard].outbox.lock();
        let oldest = outbox.lanes.evict_of(hash);
        let is_such = |entry: &Queued<A, K>| entry.key.is_some() && entry.hash == hash;
        let oldest = oldest.or_else(|| outbox.queue.pop_first(is_such));
        let oldest =
            oldest.or_else(|| self.queue.shards[shard].inbox.lock().queue.pop_first(is_such))?;
        outbox.left(&oldest);
        Some(oldest)
    }

    fn dead_letter_evicted(&self, entry: Queued<A, K>) {
        self.frame.telemetry.counters.dead_letters.count_shared(DeadLetterReason::Evicted);
        if entry.is_retry() {
            self.frame.telemetry.counters.waiting.fetch_sub(1, Ordering::Relaxed);
        }
        let age = self.age_of(&entry);
        let (port, attempts) = match entry.extra {
            Some(extra) => (extra.port, extra.attempts),
            None => (None, 0),
        };
        if let Some(port) = port {
            port.resolve(CallError::Evicted);
        }
        discard(entry.key);
        let reason = DeadLetterReason::Evicted;
        let message = Some(entry.message);
        let letter = DeadLetter { message, reason, error: None, panic: None, attempts, age };
        self.report_dead_letter(letter);
        has_dropped(self);
    }
}

/// These slots, that with the most messages first.
fn fullest_first(mut waiting: Vec<(usize, usize)>) -> Vec<usize> {
    waiting.sort_by_key(|(messages, _)| Reverse(*messages));
    waiting.into_iter().map(|(_, slot)| slot).collect()
}

/// In a pool that makes room no sender waits, even if others were quicker.
fn never_waits(refused: Refused) -> Refused {
    if refused == Refused::KeyFull { Refused::KeyRejected } else { refused }
}
