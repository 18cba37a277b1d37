//! Messages of keys that may have too many: they are counted on their way in, and their senders
//! wait for room behind a key (K10).
//!
//! A sender that finds no room behind its key stands in line there, without a permit of the pool,
//! and tries again when it is woken (`room.rs`): once for each message of the key that was started
//! or taken out, and once more by a sender that has found room while there is more. Workers wake
//! these senders when they serve waiters of the pool, because they hold no lock then.

use std::sync::Arc;

use greenroom_queue::{
    backlog::{KeyBounds, wake_in},
    discard::discard,
    permits::Refused,
    shard::Shard,
    sync::{Notify, Ordering},
};

use super::{Core, Hashed, Key};
use crate::{Actor, CallError, pool::outgoing::OutgoingOf};

impl<A: Actor, K: Key> Core<A, K> {
    /// A message without a key in a pool that requires one. Costs nothing if there are no keys.
    #[inline]
    pub(super) fn lacks_key(&self, key: &Hashed<K>) -> bool {
        size_of::<Option<K>>() != 0 && key.0.is_none() && self.frame.config.keys.key_required
    }

    /// Queues a message whose permit has been taken, and counts it, unless its key has as many as
    /// it may. Says whether the shard must be announced.
    #[cold]
    pub(super) fn push_counted(
        &self,
        index: usize,
        payload: &mut OutgoingOf<A>,
        key: Hashed<K>,
        waited: bool,
    ) -> Result<bool, Refused> {
        let shard = &self.queue.shards[index];
        let mut outbox = shard.outbox.lock();
        let mut inbox = shard.inbox.lock();
        if inbox.closed {
            drop((inbox, outbox));
            discard(key);
            return Err(Refused::Closed);
        }
        inbox.take_stock(&mut outbox);
        let unused = inbox.take_credit();
        let mut parked = false;
        if inbox.headroom() == 0 && key.0.is_some() {
            let backlog = Shard::count(&mut inbox, &mut outbox, self.key_bounds());
            parked = backlog.is_parked(key.1);
            if let Err(refused) = backlog.admit(key.1, waited) {
                drop((inbox, outbox));
                discard(key);
                self.give_back_unused(unused);
                return Err(refused);
            }
        }
        // A caller that waited for the reply would wait for an operator.
        let port = payload.extra.as_mut().filter(|_| parked).and_then(|extra| extra.port.take());
        let first = self.place(index, &mut inbox, payload, key);
        let freed = outbox.take_freed();
        drop((inbox, outbox));
        if let Some(port) = port {
            port.resolve(CallError::Parked);
        }
        wake_in(&freed);
        self.give_back_unused(unused);
        Ok(first)
    }

    fn give_back_unused(&self, permits: u64) {
        if permits > 0 {
            self.queue.permits.give(permits, self);
        }
    }

    /// How many messages may wait behind one key.
    pub(crate) fn key_bounds(&self) -> KeyBounds {
        let waiting = self.routing.max_per_key.load(Ordering::Relaxed);
        KeyBounds { waiting, ..self.settings.derived.key_bounds }
    }

    /// The bound of one key follows the capacity, if it was not given. The caller serves those who
    /// wait behind a key, under no lock.
    pub(super) fn share_out(&self, capacity: usize) {
        let Some(share) = self.settings.derived.key_share else { return };
        self.routing.max_per_key.store(capacity.div_ceil(share), Ordering::Relaxed);
        for shard in &self.queue.shards {
            let mut outbox = shard.outbox.lock();
            shard.inbox.lock().bound_keys(self.key_bounds());
            if let Some(backlog) = &mut outbox.backlog {
                backlog.set_bounds(self.key_bounds());
            }
        }
    }

    /// Whether there is room behind this key.
    pub(super) fn has_room_behind(&self, index: usize, key: &Hashed<K>) -> Result<(), Refused> {
        if key.0.is_none() {
            return Ok(());
        }
        let shard = &self.queue.shards[index];
        let mut outbox = shard.outbox.lock();
        let mut inbox = shard.inbox.lock();
        inbox.take_stock(&mut outbox);
        if inbox.headroom() > 0 {
            return Ok(());
        }
        let unused = inbox.take_credit();
        let backlog = Shard::count(&mut inbox, &mut outbox, self.key_bounds());
        let refusal = backlog.refusal(key.1);
        drop((inbox, outbox));
        self.give_back_unused(unused);
        refusal.map_or(Ok(()), Err)
    }

    /// Takes a place in line behind the key of this message.
    pub(super) fn stand_in_line(&self, payload: &OutgoingOf<A>) -> InLine<'_, A, K> {
        let key = self.key(payload);
        let (index, hash) = (self.shard_of(&key, 0), key.1);
        discard(key);
        let shard = &self.queue.shards[index];
        let mut outbox = shard.outbox.lock();
        let mut inbox = shard.inbox.lock();
        // Counting may have ended since, and permits for messages that are not counted may
        // be here again.
        let unused = inbox.take_credit();
        let backlog = Shard::count(&mut inbox, &mut outbox, self.key_bounds());
        let room = backlog.stand(hash);
        let alone = backlog.is_alone(hash);
        // Pairs with the load in `serve_key_lines` of a worker that takes a message of this shard
        // later, under this lock, and with the load in `close_key_lines`, after `shut` has had this
        // lock. Otherwise the sender waits although there is room, or the pool is closed.
        self.routing.key_lines.0.fetch_or(1 << index, Ordering::SeqCst);
        drop((inbox, outbox));
        // The one that looks once more has been told, in a way, that there may be room: those
        // behind rely on it.
        let line = InLine { core: self, index, hash, room, alone, woken: alone };
        self.give_back_unused(unused);
        line
    }

    /// Wakes senders that may have room behind their keys. Under no lock.
    #[inline]
    pub(super) fn serve_key_lines(&self) {
        let mut lines = self.routing.key_lines.0.load(Ordering::Relaxed);
        while lines != 0 {
            self.serve_key_line(lines.trailing_zeros() as usize);
            lines &= lines - 1;
        }
    }

    #[cold]
    fn serve_key_line(&self, index: usize) {
        let mut outbox = self.queue.shards[index].outbox.lock();
        let freed = outbox.take_freed();
        if outbox.backlog.as_ref().is_none_or(|backlog| !backlog.has_senders()) {
            // Pairs with the `fetch_or` in `stand_in_line`, under the same lock: no bit is cleared
            // over a sender that has come since.
            self.routing.key_lines.0.fetch_and(!(1 << index), Ordering::SeqCst);
        }
        drop(outbox);
        wake_in(&freed);
    }

    /// The pool accepts nothing any more: senders that wait for room behind a key hear of it.
    pub(super) fn close_key_lines(&self) {
        // Pairs with the `fetch_or` in `stand_in_line`: a sender that stood in line before `shut`
        // took the lock of its shard has its bit here. Otherwise it waits in a closed pool.
        if self.routing.key_lines.0.load(Ordering::SeqCst) == 0 {
            return;
        }
        let mut rooms: Vec<Arc<Notify>> = Vec::new();
        for shard in &self.queue.shards {
            if let Some(backlog) = &shard.outbox.lock().backlog {
                rooms.append(&mut backlog.all_rooms());
            }
        }
        for room in &rooms {
            room.notify_waiters();
        }
        wake_in(&rooms);
    }
}

/// A place in line behind a key. A sender that leaves it after having been woken passes that on.
pub(super) struct InLine<'a, A: Actor, K: Key> {
    core: &'a Core<A, K>,
    index: usize,
    hash: u32,
    room: Arc<Notify>,
    /// The line was empty before, and the sender has not looked again yet.
    pub(super) alone: bool,
    /// It has been told that there may be room, or was the first, and has not passed that on.
    woken: bool,
}

impl<A: Actor, K: Key> InLine<'_, A, K> {
    /// Waits until there may be room.
    pub(super) async fn woken(&mut self) {
        self.woken = false;
        self.room.notified().await;
        self.woken = true;
    }

    /// The message was queued: nothing is to be passed on.
    pub(super) fn used(mut self) {
        self.woken = false;
    }
}

impl<A: Actor, K: Key> Drop for InLine<'_, A, K> {
    fn drop(&mut self) {
        let mut outbox = self.core.queue.shards[self.index].outbox.lock();
        if let Some(backlog) = &mut outbox.backlog {
            backlog.step_out(self.hash, self.woken);
        }
        drop(outbox);
        self.core.serve_key_line(self.index);
    }
}
