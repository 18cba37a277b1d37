//! The further messages of a batch, and the way of its failed ones.

use std::{
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use greenroom_queue::{
    discard::{discard, panic_of},
    entry::Entry,
    lanes::LaneState,
    payload::Payload,
    shard::LOOK_AHEAD,
};
use tokio::sync::Notify;

use super::{Core, Key, Queued, take::Outboxed};
use crate::{
    Actor,
    pool::{
        pool_payload::{Entries, PoolPayload},
        worker::in_flight::Source,
    },
};

impl<A: Actor, K: Key> Core<A, K> {
    /// The next message that may be handled with those that were taken from here: of the same key,
    /// or, without keys, any.
    pub(crate) fn next_of_batch(&self, worker: usize, source: Source) -> Option<Queued<A, K>> {
        match source {
            _ if self.frame.shares.is_some() => self.sharing.as_ref()?.next(self, worker, source),
            Source::Lane { index, id, .. } => {
                let mut outbox = self.queue.shards[index].outbox.lock();
                if !joins(outbox.lanes.get(id)?.front()?) {
                    return None;
                }
                outbox.pop_lane(id)
            }
            Source::Head { index, epoch, hash: Some(hash), .. } => {
                self.next_of_key(index, epoch, hash)
            }
            Source::Shared { index, .. } => {
                let mut outbox = self.queue.shards[index].outbox.lock();
                if !joins(outbox.queue.front()?) {
                    return None;
                }
                outbox.pop_queue()
            }
            _ => None,
        }
    }

    /// The next message with the key in hand, for the holder of the token. Until that is known, the
    /// key is with the caller. If another key has the same hash, there is no next one.
    fn next_of_key(&self, index: usize, epoch: u64, hash: u32) -> Option<Queued<A, K>> {
        let mut outbox = self.queue.shards[index].outbox.lock();
        let in_hand = outbox.held(epoch)?.in_hand.take()?;
        let (mut outbox, found) = match outbox.lanes.has(hash) {
            // A lane of a key that collides with this one: which of the two keys a message has
            // is not asked.
            true => (outbox, None),
            false => {
                if outbox.queue.len() < LOOK_AHEAD {
                    self.queue.shards[index].refill_behind(&mut outbox);
                }
                self.take_near_of(index, outbox, epoch, hash, &in_hand.1)
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
    /// It is found by its hash and compared outside of the lock; the token says that it must not be
    /// taken away meanwhile.
    fn take_near_of<'a>(
        &'a self,
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
        let mut outbox = self.queue.shards[index].outbox.lock();
        outbox.compare(epoch, None);
        if same {
            return (outbox, Some(entry));
        }
        outbox.queue.push_front(entry);
        (outbox, None)
    }

    /// Moves queued messages of the key whose lane a worker runs there, if no worker drains the
    /// shard: a worker that does would move them.
    pub(crate) fn fetch_into_lane(&self, worker: usize, source: Source) {
        let Source::Lane { index, id, .. } = source else { return };
        let mut outbox = self.queue.shards[index].outbox.lock();
        if outbox.token.is_some() {
            return;
        }
        let Some(key) = outbox.lanes.get(id).and_then(|lane| lane.key.share()) else { return };
        let epoch = outbox.grant(worker);
        self.queue.shards[index].refill_behind(&mut outbox);
        loop {
            let (again, found) = self.take_near_of(index, outbox, epoch, id.hash, &key);
            outbox = again;
            let Some(entry) = found else { break };
            if let Err(entry) = outbox.lanes.push_back(id, entry) {
                debug_assert!(false, "a lane that is run is there");
                outbox.queue.push_front(entry);
                break;
            }
        }
        let token = outbox.held(epoch).is_some().then(|| outbox.token.take());
        let more = self.queue.shards[index].has_more_or(&outbox, &|| {});
        drop(outbox);
        discard((token, key));
        if more {
            self.queue.wake.mark(index);
        }
    }

    /// The collector that is notified when so many messages wait in the lane that a worker runs.
    pub(crate) fn expect_more(&self, source: Source, messages: usize) -> Option<Arc<Notify>> {
        let Source::Lane { index, id, .. } = source else { return None };
        let mut outbox = self.queue.shards[index].outbox.lock();
        let lane = outbox.lanes.get(id)?;
        let full = Arc::new(Notify::new());
        if lane.len() >= messages {
            full.notify_one();
        }
        lane.expect(messages, full.clone());
        Some(full)
    }

    /// Puts messages of a key that are to be attempted again at the head of its line, in order; the
    /// clock owns the key until `after` has passed. Without a key each waits alone.
    pub(crate) fn park_line(
        &self,
        worker: usize,
        source: Source,
        mut entries: Entries<A, K>,
        after: Duration,
    ) -> Source {
        if let Source::Mailbox = source {
            // Of its own mailbox a worker takes one at a time.
            while let Some(entry) = entries.pop_front() {
                self.park(worker, source, entry, after);
            }
            return source;
        }
        let Some((index, id, mut outbox, place)) = self.own_lane(worker, source) else {
            let index = match source {
                Source::Shared { index, .. } | Source::BetweenRuns { index, .. } => index,
                _ => 0,
            };
            while let Some(entry) = entries.pop_front() {
                self.queue.permits.take_back();
                self.frame.telemetry.counters.waiting.fetch_add(1, Ordering::Relaxed);
                self.frame.clock.park_message(index, entry, after);
            }
            return match source {
                Source::Shared { .. } | Source::BetweenRuns { .. } => source,
                _ => Source::None,
            };
        };
        self.push_line(&mut outbox, id, entries);
        if let Some(lane) = outbox.lanes.get(id) {
            lane.state = LaneState::Retrying;
        }
        drop(outbox);
        self.frame.clock.park_lane(index, id, after);
        place
    }
}

/// Whether a message is of this key. If they cannot be compared, it counts as one of another.
fn is_of<T: Payload, K: Eq>(entry: &Entry<T, K>, key: &K) -> bool {
    let mut is_same = false;
    discard(panic_of(&mut || is_same = entry.key.as_ref() == Some(key)));
    is_same
}

/// True for a message that may be handled with others.
fn joins<M, R, E, K>(entry: &Entry<PoolPayload<M, R, E>, K>) -> bool {
    !entry.extra.as_ref().is_some_and(|extra| extra.next.alone)
}
