//! What becomes of messages for which there is no room.

use std::{hash::Hash, sync::atomic::Ordering};

use super::{Core, Queued};
use crate::{
    Actor, CallError, Class, DeadLetter, DeadLetterReason,
    pool::{
        discard::discard,
        overflow::Overflow,
        parcel::ParcelOf,
        permits::{Closed, Refused},
    },
};

impl<A: Actor, K: Hash + Eq + Send + Sync + 'static> Core<A, K> {
    /// The pool is full: what its overflow policy makes of a message.
    #[cold]
    pub(crate) fn overflow(&self, parcel: &mut ParcelOf<A>, sender: u32) -> Result<(), Refused> {
        match &self.settings.overflow {
            Overflow::Wait => Err(Refused::Full),
            Overflow::Reject => Err(Refused::Rejected),
            Overflow::DropNewest => {
                discard(parcel.lend());
                Err(Refused::Dropped)
            }
            Overflow::DropOldest => self.make_room(parcel, sender),
            Overflow::Fallback(other) => other.take_over(parcel),
        }
    }

    /// The message that has waited longest makes room, and its permit goes to the one that arrives.
    fn make_room(&self, parcel: &mut ParcelOf<A>, sender: u32) -> Result<(), Refused> {
        let key = self.key(parcel);
        let index = self.shard_of(&key, sender);
        let Some(evicted) = self.evict(index) else { return Err(Refused::Rejected) };
        self.bury_evicted(evicted);
        let pushed = match self.settings.dispatch {
            Some(_) => self.dispatch_permitted(parcel, sender),
            None => self.push(index, parcel, key).map_err(|Closed| Refused::Closed),
        };
        if pushed.is_err() {
            self.permits.give(1, self);
        }
        pushed
    }

    /// Takes out the oldest normal message of this shard, or of another, or of a worker's mailbox; an urgent one where there is
    /// no other. One that waits for another attempt in a lane stays.
    fn evict(&self, index: usize) -> Option<Queued<A, K>> {
        let shards = (0..self.shards.len()).map(|step| (index + step) % self.shards.len());
        let mut evicted = shards.filter_map(|shard| {
            let shard = &self.shards[shard];
            let mut outbox = shard.outbox.lock();
            let oldest = outbox.queue.pop_front().or_else(|| shard.inbox.lock().queue.pop_front());
            oldest.or_else(|| outbox.lanes.evict(Class::Normal))
        });
        let desks = || self.desks.iter().filter_map(|desk| desk.lock().clone());
        let fullest = || desks().max_by_key(|mailbox| mailbox.waiting())?.evict();
        evicted.next().or_else(fullest).or_else(|| self.evict_urgent())
    }

    fn evict_urgent(&self) -> Option<Queued<A, K>> {
        let mut shards = self.shards.iter().enumerate();
        shards.find_map(|(index, shard)| {
            let mut outbox = shard.outbox.lock();
            let more = outbox.has_urgent_ready();
            self.pop_urgent(index, more).or_else(|| outbox.lanes.evict(Class::Urgent))
        })
    }

    fn bury_evicted(&self, entry: Queued<A, K>) {
        self.tally.dead_lettered.fetch_add(1, Ordering::Relaxed);
        if entry.is_retry() {
            self.tally.waiting.fetch_sub(1, Ordering::Relaxed);
        }
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
        self.report_dead_letter(DeadLetter { message, reason, error: None, panic: None, attempts });
    }
}
