//! Taking messages from the queue of a keyed shard, as the holder of its token.

use greenroom_queue::{discard::discard, lock::locked, shard::LOOK_AHEAD};

use super::{Outboxed, QUOTA, TakenMessage, behind::LanePlace};
use crate::{
    Actor, Class,
    pool::{
        core::{Core, Key, OutboxOf, Queued, ShardOf},
        worker::in_flight::{DeliveryOf, Source},
    },
};

impl<A: Actor, K: Key> Core<A, K> {
    /// Takes the next message of a keyed shard, as the holder of its token, if nothing is to be
    /// weighed: no key of the shard waits, and the message's own has not had its quota. Returns the
    /// hash of its key.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) fn step(
        &self,
        shard: &ShardOf<A, K>,
        epoch: u64,
        delivery: &mut DeliveryOf<A>,
    ) -> Option<Option<u32>> {
        let mut outbox = locked(&shard.outbox);
        if self.has_ended() {
            return None;
        }
        let (finished, hash) = outbox.step(epoch, QUOTA, delivery)?;
        drop(outbox);
        discard(finished);
        Some(hash)
    }

    /// Takes the next message that may run, as the holder of the shard's token. Messages whose key
    /// is busy go to that key's lane. Gives the token back when there is nothing, and in the middle
    /// of a run also when messages lie only in the inbox: a worker that took each message as it
    /// came would meet the senders at every one.
    pub(super) fn advance(
        &self,
        index: usize,
        mut outbox: Outboxed<'_, A, K>,
        epoch: u64,
        run: u32,
        first: Class,
    ) -> TakenMessage<A, K> {
        // The key of the last message is done with: a lane opened for it from here on would
        // have no owner.
        let finished = outbox.held(epoch).and_then(|token| token.in_hand.take());
        let dry = run > 0 && outbox.queue.is_empty();
        if dry && self.queue.shards[index].has_more_or(&outbox, &|| {}) {
            self.queue.wake.mark(index);
        }
        let (mut outbox, entry) = match dry {
            true => (outbox, None),
            false => self.next_free(index, outbox, epoch, first),
        };
        let left = entry.is_none() && !dry;
        if left && (outbox.has_ready() || self.queue.shards[index].has_more_or(&outbox, &|| {})) {
            self.queue.wake.mark(index);
        }
        let (taken, token) = match entry {
            Some(mut entry) => {
                outbox.left(&entry);
                self.note_taken(index, &outbox);
                let key = entry.key.take().map(|key| (entry.hash, key));
                let hash = key.as_ref().map(|(hash, _)| *hash);
                outbox.publish(epoch, key);
                match self.queue.wake.waits() {
                    true => (Some((self.pass_on_now(index, &mut outbox), entry)), None),
                    false => (Some((Source::Head { index, epoch, hash, run }, entry)), None),
                }
            }
            None => (None, outbox.token.take()),
        };
        drop(outbox);
        discard((finished, token));
        taken
    }

    /// If handlers usually wait, the key of a message gets its lane before the handler is polled,
    /// under the lock that is taken anyway, and others go on with the shard: the handler may then
    /// suspend at no cost.
    fn pass_on_now(&self, index: usize, outbox: &mut OutboxOf<A, K>) -> Source {
        let lane = outbox.pass_on();
        if outbox.has_ready() || self.queue.shards[index].refill(outbox) {
            self.queue.wake.mark(index);
        }
        lane.map_or(Source::None, |id| Source::Lane { index, id, run: 0 })
    }

    /// The next message of the queue whose key has no owner and which has not had its quota.
    fn next_free<'a>(
        &'a self,
        index: usize,
        mut outbox: Outboxed<'a, A, K>,
        epoch: u64,
        first: Class,
    ) -> (Outboxed<'a, A, K>, Option<Queued<A, K>>) {
        while let Some(mut entry) = self.pop_head(index, &mut outbox, first) {
            if entry.key.is_some() && outbox.lanes.has(entry.hash) {
                let (again, placed) = self.behind_its_lane(index, outbox, epoch, entry);
                outbox = again;
                entry = match placed {
                    // Its key may be free because the pool has ended over it, while keys
                    // were compared.
                    Err(free) if self.has_ended() => {
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
            if self.queue.shards[index].is_all_of(&mut outbox, entry.hash) {
                return (outbox, Some(entry));
            }
            if outbox.queue.len() < LOOK_AHEAD {
                self.queue.shards[index].refill_behind(&mut outbox);
            }
            if let Some(other) = outbox.pop_other(entry.hash) {
                outbox.queue.push_front(entry);
                return (outbox, Some(other));
            }
            if outbox.has_nobody_else() {
                return (outbox, Some(entry));
            }
            outbox.stand_aside(entry);
            self.queue.wake.mark(index);
        }
        (outbox, None)
    }

    /// The next message of a shard: urgent ones first, or none of them if a normal one is due. None
    /// also if an urgent one lies in a lane that is ready.
    fn pop_head(
        &self,
        index: usize,
        outbox: &mut OutboxOf<A, K>,
        first: Class,
    ) -> Option<Queued<A, K>> {
        if first == Class::Urgent && self.queue.wake.has_urgent_at(index) {
            if outbox.has_urgent_ready() {
                return None;
            }
            if let Some(entry) = self.pop_urgent_head(index, outbox) {
                return Some(entry);
            }
        }
        if !self.queue.shards[index].refill(outbox) {
            return None;
        }
        outbox.pop_queue().or_else(|| match first {
            Class::Urgent => self.pop_urgent_head(index, outbox),
            Class::Normal => None,
        })
    }
}
