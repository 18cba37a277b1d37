//! Messages of keys that may have too many waiting: they are counted on their way in, and their
//! senders wait for room behind a key (K10).
//!
//! A sender that finds no room behind its key waits in line there, without a permit of the pool,
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

use super::{Core, Hashed, InboxGuard, Key};
use crate::{
    Actor, CallError,
    pool::outgoing::{LendOutgoing, OutgoingOf},
};

impl<A: Actor, K: Key> Core<A, K> {
    /// How many messages may wait behind one key.
    pub(crate) fn key_bounds(&self) -> KeyBounds {
        let waiting = self.routing.max_per_key.load(Ordering::Relaxed);
        KeyBounds { waiting, ..self.settings.derived.key_bounds }
    }
}

/// True for a message without a key in a pool that requires one. Costs nothing without keys.
#[inline]
pub(super) fn lacks_key<A: Actor, K: Key>(core: &Core<A, K>, key: &Hashed<K>) -> bool {
    size_of::<Option<K>>() != 0 && key.0.is_none() && core.frame.config.keys.key_required
}

/// Queues and counts a message whose permit has been taken, unless its key already has as many as
/// it may have. Returns whether the shard must be announced.
#[cold]
pub(super) fn push_counted<A: Actor, K: Key>(
    core: &Core<A, K>,
    index: usize,
    payload: &mut OutgoingOf<A>,
    key: Hashed<K>,
    waited: bool,
) -> Result<bool, Refused> {
    let shard = &core.queue.shards[index];
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
        let backlog = Shard::count(&mut inbox, &mut outbox, core.key_bounds());
        parked = backlog.is_parked(key.1);
        if let Err(refused) = backlog.admit(key.1, waited) {
            drop((inbox, outbox));
            discard(key);
            give_back_unused(core, unused);
            return Err(refused);
        }
    }
    // A caller that waited for the reply would wait for an operator.
    let port = payload.extra.as_mut().filter(|_| parked).and_then(|extra| extra.port.take());
    let first = place(core, index, &mut inbox, payload, key);
    let freed = outbox.take_freed();
    drop((inbox, outbox));
    if let Some(port) = port {
        port.resolve(CallError::Parked);
    }
    wake_in(&freed);
    give_back_unused(core, unused);
    Ok(first)
}

fn give_back_unused<A: Actor, K: Key>(core: &Core<A, K>, permits: u64) {
    if permits > 0 {
        core.queue.permits.give(permits, core);
    }
}

/// If the bound of one key was not set, it follows the capacity. The caller serves the senders that
/// wait behind keys, under no lock.
pub(super) fn share_out<A: Actor, K: Key>(core: &Core<A, K>, capacity: usize) {
    let Some(share) = core.settings.derived.key_share else { return };
    core.routing.max_per_key.store(capacity.div_ceil(share), Ordering::Relaxed);
    for shard in &core.queue.shards {
        let mut outbox = shard.outbox.lock();
        shard.inbox.lock().bound_keys(core.key_bounds());
        if let Some(backlog) = &mut outbox.backlog {
            backlog.set_bounds(core.key_bounds());
        }
    }
}

/// True if there is room behind this key.
pub(super) fn has_room_behind<A: Actor, K: Key>(
    core: &Core<A, K>,
    index: usize,
    key: &Hashed<K>,
) -> Result<(), Refused> {
    if key.0.is_none() {
        return Ok(());
    }
    let shard = &core.queue.shards[index];
    let mut outbox = shard.outbox.lock();
    let mut inbox = shard.inbox.lock();
    inbox.take_stock(&mut outbox);
    if inbox.headroom() > 0 {
        return Ok(());
    }
    let unused = inbox.take_credit();
    let backlog = Shard::count(&mut inbox, &mut outbox, core.key_bounds());
    let refusal = backlog.refusal(key.1);
    drop((inbox, outbox));
    give_back_unused(core, unused);
    refusal.map_or(Ok(()), Err)
}

/// Takes a place in line behind the key of this message.
pub(super) fn stand_in_line<'a, A: Actor, K: Key>(
    core: &'a Core<A, K>,
    payload: &OutgoingOf<A>,
) -> InLine<'a, A, K> {
    let key = core.key(payload);
    let (index, hash) = (core.shard_of(&key, 0), key.1);
    discard(key);
    let shard = &core.queue.shards[index];
    let mut outbox = shard.outbox.lock();
    let mut inbox = shard.inbox.lock();
    // Counting may have ended since, and there may again be permits for uncounted messages.
    let unused = inbox.take_credit();
    let backlog = Shard::count(&mut inbox, &mut outbox, core.key_bounds());
    let room = backlog.stand(hash);
    let alone = backlog.is_alone(hash);
    // Pairs with the load in `serve_key_lines` of a worker that takes a message of this shard
    // later, under this lock, and with the load in `close_key_lines`, after `shut` has had this
    // lock. Otherwise the sender would wait although there is room, or the pool is closed.
    core.routing.key_lines.0.fetch_or(1 << index, Ordering::SeqCst);
    drop((inbox, outbox));
    // A sender that checks once more counts as notified of room: those behind it rely on that.
    let line = InLine { core, index, hash, room, alone, woken: alone };
    give_back_unused(core, unused);
    line
}

/// Wakes senders that may have room behind their keys. Under no lock.
#[inline]
pub(super) fn serve_key_lines<A: Actor, K: Key>(core: &Core<A, K>) {
    let mut lines = core.routing.key_lines.0.load(Ordering::Relaxed);
    while lines != 0 {
        serve_key_line(core, lines.trailing_zeros() as usize);
        lines &= lines - 1;
    }
}

#[cold]
fn serve_key_line<A: Actor, K: Key>(core: &Core<A, K>, index: usize) {
    let mut outbox = core.queue.shards[index].outbox.lock();
    let freed = outbox.take_freed();
    if outbox.backlog.as_ref().is_none_or(|backlog| !backlog.has_senders()) {
        // Pairs with the `fetch_or` in `stand_in_line`, under the same lock: no bit is cleared over
        // a sender that has arrived since.
        core.routing.key_lines.0.fetch_and(!(1 << index), Ordering::SeqCst);
    }
    drop(outbox);
    wake_in(&freed);
}

/// The pool no longer accepts messages: notifies senders that wait for room behind a key.
pub(super) fn close_key_lines<A: Actor, K: Key>(core: &Core<A, K>) {
    // Pairs with the `fetch_or` in `stand_in_line`: a sender that got in line before `shut` took
    // the lock of its shard has its bit here. Otherwise it would wait in a closed pool.
    if core.routing.key_lines.0.load(Ordering::SeqCst) == 0 {
        return;
    }
    let mut rooms: Vec<Arc<Notify>> = Vec::new();
    for shard in &core.queue.shards {
        if let Some(backlog) = &shard.outbox.lock().backlog {
            rooms.append(&mut backlog.all_rooms());
        }
    }
    for room in &rooms {
        room.notify_waiters();
    }
    wake_in(&rooms);
}

/// A place in line behind a key. A sender that leaves it after a wake-up passes the wake-up on.
pub(super) struct InLine<'a, A: Actor, K: Key> {
    core: &'a Core<A, K>,
    index: usize,
    hash: u32,
    room: Arc<Notify>,
    /// The line was empty before, and the sender has not checked again yet.
    pub(super) alone: bool,
    /// The sender was notified of possible room, or was the first, and has not passed that on.
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
        serve_key_line(self.core, self.index);
    }
}

/// Puts a message into the inbox of its shard. Returns true if the shard is to be announced. A
/// function of its own, because each call passes the inbox a closure with a type of its own.
#[inline]
pub(super) fn place<A: Actor, K: Key, P: LendOutgoing<A::Message, A::Reply, A::Error>>(
    core: &Core<A, K>,
    index: usize,
    inbox: &mut InboxGuard<'_, A, K>,
    payload: &mut P,
    key: Hashed<K>,
) -> bool {
    let (is_late, urgent) = (core.is_late(), payload.is_urgent());
    let stamp = |number| core.frame.telemetry.coarse.stamp(number, is_late);
    let first = inbox.push(payload, key, stamp);
    if urgent {
        core.queue.wake.set_urgent(index);
    }
    first
}
