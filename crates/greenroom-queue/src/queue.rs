//! Message queues, their bounds, and the waking of idle workers.

use std::sync::atomic::AtomicU64;

use super::{
    backlog::KeyBounds,
    credit_map::CreditMap,
    entry::Entry,
    lock::locked,
    payload::Payload,
    permits::Permits,
    shard::{Refilled, Shard, ShardOutbox, Turns},
    slot::Slot,
    wake::Wake,
};

/// Unused permits of all shards together are at most one in this many of the capacity, so that
/// nothing has to search for them while the pool is far from full.
const CREDIT_SHARE: usize = 8;

/// Larger blocks would not make a permit noticeably cheaper.
const MAX_CREDIT: usize = 64;

/// How many permits a shard takes at once.
pub fn credit_for(capacity: usize, shards: usize) -> u64 {
    (capacity / shards / CREDIT_SHARE).clamp(1, MAX_CREDIT) as u64
}

/// Message queues, their bounds, and the waking of idle workers.
pub struct WorkQueue<T: Payload, K> {
    /// One or several shards: by key or by sender.
    pub shards: Vec<Shard<T, K>>,
    /// The bound on messages that are accepted and not started.
    pub permits: Permits,
    /// The number of permits that a shard takes at once. Changes with the capacity.
    pub credit: AtomicU64,
    /// The shards that may have unused permits.
    pub credit_map: CreditMap,
    /// Which shards are ready, and which workers are idle.
    pub wake: Wake,
}

impl<T: Payload, K> WorkQueue<T, K> {
    /// A queue with this many shards and this capacity. At most `awake_limit` of the workers are
    /// awake at the same time.
    pub fn new(
        shards: usize,
        keyed: bool,
        bounds: KeyBounds,
        capacity: usize,
        workers: usize,
        awake_limit: usize,
    ) -> Self {
        let turns = if keyed { Turns::OF_KEYS } else { Turns::OF_A_SENDER };
        let turns = turns.of_messages_of(size_of::<T::Message>());
        let mut all = Vec::with_capacity(shards);
        for _ in 0..shards {
            all.push(Shard::new(turns, bounds));
        }
        Self {
            shards: all,
            permits: Permits::new(capacity),
            credit: AtomicU64::new(credit_for(capacity, shards)),
            credit_map: CreditMap::new(),
            wake: Wake::new(workers, awake_limit),
        }
    }

    /// A message was taken from this shard to be started: from time to time, that completes a block
    /// of permits for waiters.
    #[inline]
    pub fn note_taken(&self, index: usize, outbox: &ShardOutbox<T, K>) {
        self.permits.note_taken(index as u64, outbox.taken);
    }

    /// Without keys: takes a message from a ready shard, preferably from one without another
    /// worker.
    pub fn take_shared(
        &self,
        cursor: u32,
        join: bool,
        slot: &mut impl Slot<T>,
    ) -> Option<(usize, bool)> {
        while let Some((index, alone)) = self.wake.acquire_affinity(cursor, join) {
            if self.pop_shared(index, slot) {
                return Some((index, alone));
            }
            self.leave_shared(index, alone);
        }
        None
    }

    /// Leaves a shard without keys; `alone` is true if the worker has the affinity to it.
    pub fn leave_shared(&self, index: usize, alone: bool) {
        if alone {
            self.wake.release_affinity(index);
        }
    }

    /// Takes the next message of a shard without keys, in the middle of a run. Returns false if its
    /// outbox is empty. The inbox is left to the senders: a worker that took each message as it
    /// arrives would meet them at every one.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub fn pop_in_run(&self, index: usize, shard: &Shard<T, K>, slot: &mut impl Slot<T>) -> bool {
        let mut outbox = locked(&shard.outbox);
        // Moves it directly into its place: any further move in between costs noticeable time.
        let Some(entry) = outbox.pop_queue() else { return false };
        entry.put_into(slot);
        if outbox.queue.is_empty() {
            self.look_ahead(index, &outbox);
        }
        true
    }

    /// Takes the first message of a run from a shard without keys.
    pub fn pop_shared(&self, index: usize, slot: &mut impl Slot<T>) -> bool {
        let mut outbox = self.shards[index].outbox.lock();
        if outbox.queue.is_empty() {
            match self.refill_shared(index, &mut outbox) {
                Some(Refilled::Last(entry)) => {
                    entry.put_into(slot);
                    self.note_taken(index, &outbox);
                    return true;
                }
                Some(Refilled::More) => {}
                None => return false,
            }
        }
        match outbox.pop_queue() {
            Some(entry) => entry.put_into(slot),
            None => match self.pop_urgent(index, false) {
                Some(entry) => entry.put_into(slot),
                None => return false,
            },
        }
        self.note_taken(index, &outbox);
        if outbox.queue.is_empty() {
            self.look_ahead(index, &outbox);
        }
        true
    }

    /// The queue has run dry. Clears the shard's bit in the ready map unless there is a message.
    #[cold]
    fn look_ahead(&self, index: usize, outbox: &ShardOutbox<T, K>) {
        self.shards[index].has_more_or(outbox, &|| self.wake.clear(index));
    }

    #[cold]
    fn refill_shared(
        &self,
        index: usize,
        outbox: &mut ShardOutbox<T, K>,
    ) -> Option<Refilled<Entry<T, K>>> {
        let empty = || self.wake.clear(index);
        match self.wake.is_quick() {
            true => self.shards[index].refill_and_take(outbox, &empty),
            false => self.shards[index].refill_or(outbox, &empty).then_some(Refilled::More),
        }
    }

    /// The next urgent message of a keyed shard, for the holder of its token.
    pub fn pop_urgent_head(
        &self,
        index: usize,
        outbox: &mut ShardOutbox<T, K>,
    ) -> Option<Entry<T, K>> {
        let entry = self.pop_urgent(index, outbox.has_urgent_ready())?;
        outbox.taken = outbox.taken.wrapping_add(1);
        Some(entry)
    }

    /// The next urgent message of a shard. In a keyed pool it is for the holder of the token, which
    /// knows whether there are `more` in ready lanes.
    pub fn pop_urgent(&self, index: usize, more: bool) -> Option<Entry<T, K>> {
        let mut inbox = self.shards[index].inbox.lock();
        let entry = inbox.pop_urgent();
        if !inbox.has_urgent() && !more {
            self.wake.clear_urgent(index);
        }
        entry
    }

    /// Takes an urgent message from a shard without keys.
    pub fn take_urgent(&self) -> Option<Entry<T, K>> {
        loop {
            let urged = self.wake.urgent_shards();
            if urged == 0 {
                return None;
            }
            if let Some(entry) = self.pop_urgent(urged.trailing_zeros() as usize, false) {
                return Some(entry);
            }
        }
    }

    /// A lane is gone that may have been the last one with an urgent message.
    pub fn clear_urgent_if_last(&self, index: usize, outbox: &mut ShardOutbox<T, K>) {
        if !self.wake.has_urgent_at(index) || outbox.has_urgent_ready() {
            return;
        }
        let inbox = self.shards[index].inbox.lock();
        if !inbox.has_urgent() {
            self.wake.clear_urgent(index);
        }
    }

    /// Takes the token from holders that have computed for longer than a tick (K03). Returns
    /// whether one was taken, and the number of messages that the shards have given out so far.
    ///
    /// It never waits for a lock: a shard whose lock is taken makes progress, and its holder may be
    /// the very thread that the operating system has preempted for the watchdog.
    pub fn revoke_stuck_tokens(&self) -> (bool, u64) {
        let (mut any, mut taken) = (false, 0_u64);
        for (index, shard) in self.shards.iter().enumerate() {
            let Some(mut outbox) = shard.outbox.try_lock() else { continue };
            taken = taken.wrapping_add(outbox.taken);
            let waiting = outbox.token.is_some() && shard.seems_to_have_waiting(&outbox);
            if outbox.revoke(waiting) {
                drop(outbox);
                self.wake.mark(index);
                any = true;
            }
        }
        (any, taken)
    }
}
