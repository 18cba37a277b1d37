//! Taking messages: from ready lanes, and from the queue of a shard.
//!
//! In a keyed pool everything between "the token is mine" and "the key in hand is published"
//! happens under one hold of the outbox's lock, so the watchdog never finds a token whose holder
//! has moved on. The one exception is the comparison of keys, which is user code: it runs without
//! the lock, and the token says so while it runs.
//!
//! Whether the pool has ended is looked at under the same lock: a worker that ends the pool over a
//! message gives that message's key up after that, and a worker that then finds the key free must
//! not go on with it.

use std::{
    hash::Hash,
    panic::AssertUnwindSafe,
    sync::{Arc, atomic::Ordering},
};

use greenroom_queue::{
    discard::discard,
    lanes::{Lane, LaneId, LaneState, is_plain_key},
    lock::{Locked, locked, user_code_follows},
    shard::{LOOK_AHEAD, Refilled},
    slot::Slot,
};

use super::{Core, OutboxOf, Queued, ShardOf};
use crate::{
    Actor, CallError, Class,
    pool::worker::in_flight::{DeliveryOf, Source},
};

/// Messages that one worker takes from a shard before it lets the runtime run other tasks.
const BUDGET: u32 = 64;

/// As `BUDGET`, if handlers are quick: enough that workers keep up with several senders on their
/// thread, and that a shard with a hot key does not fall behind the others, which have as many
/// turns and few messages.
const QUICK_BUDGET: u32 = 512;

/// Messages of one key in a row while others are ready (K04).
pub(crate) const QUOTA: u32 = 16;

/// The place of a message whose key has a lane.
enum LanePlace {
    Behind,
    /// First in the lane that the worker itself runs, which has nothing in hand.
    Next,
}

pub(crate) type TakenMessage<A, K> = Option<(Source, Queued<A, K>)>;

/// A message that was taken in a pool whose handlers usually wait.
pub(crate) enum TakenNear<A: Actor, K> {
    InDelivery(Source),
    Entry(Source, Queued<A, K>),
}

pub(super) type Outboxed<'a, A, K> = Locked<'a, OutboxOf<A, K>>;

impl<A: Actor, K: Hash + Eq + Send + Sync + 'static> Core<A, K> {
    /// Looks for work in every ready shard, beginning behind the one that was served last; in each,
    /// for messages of the class `first` before others.
    pub(crate) fn take(&self, worker: usize, cursor: &mut u32, first: Class) -> TakenMessage<A, K> {
        while let Some(index) = self.queue.wake.claim(*cursor) {
            *cursor = (index as u32 + 1) % 64;
            if let Some(work) = self.take_from(index, worker, first) {
                return Some(work);
            }
        }
        None
    }

    /// As `take`, if handlers usually wait: a message that needs no weighing goes straight into the
    /// delivery, and its key has its lane by then.
    pub(crate) fn take_near(
        &self,
        worker: usize,
        delivery: &mut DeliveryOf<A>,
    ) -> Option<TakenNear<A, K>> {
        while let Some(index) = self.queue.wake.near() {
            let mut outbox = locked(&self.queue.shards[index].outbox);
            let taken = self.pop_free(index, &mut outbox, worker, delivery);
            drop(outbox);
            if let Some(source) = taken {
                return Some(TakenNear::InDelivery(source));
            }
            if self.queue.wake.claim_this(index)
                && let Some((source, entry)) = self.take_from(index, worker, Class::Urgent)
            {
                return Some(TakenNear::Entry(source, entry));
            }
        }
        None
    }

    /// As `next`, for a worker whose lane is empty, if handlers usually wait: the lane ends, and
    /// the next message of the shard is in the delivery, under one lock. None if anything has to be
    /// weighed: then [`next`](Self::next) goes on, from a lane that may have ended.
    pub(crate) fn next_near(
        &self,
        worker: usize,
        index: usize,
        id: LaneId,
        delivery: &mut DeliveryOf<A>,
    ) -> Option<Source> {
        let mut outbox = locked(&self.queue.shards[index].outbox);
        if outbox.lanes.get(id).is_none_or(|lane| !lane.is_empty()) {
            return None;
        }
        // Before anything else is looked at: its key is free from here on, and the next message of
        // it is not to wait behind a lane that closes.
        let closed = outbox.lanes.close(id);
        let source = self.pop_free(index, &mut outbox, worker, delivery);
        drop(outbox);
        // Most are of a key with a single message, and have nothing else to drop.
        match closed.map(Lane::into_key) {
            Some(Ok(key)) => discard(key),
            closed => discard(closed),
        }
        source
    }

    /// Takes the next message of a keyed shard whose token is free and opens the lane of its key,
    /// if nothing is to be weighed: no lane is ready, no key is counted, nothing is urgent, and the
    /// message's own key is free and has not had its quota. The bit of the shard in the ready map
    /// stays as long as there are messages: others need not be told of each.
    #[inline(always)]
    fn pop_free(
        &self,
        index: usize,
        outbox: &mut OutboxOf<A, K>,
        worker: usize,
        delivery: &mut DeliveryOf<A>,
    ) -> Option<Source> {
        let is_plain =
            outbox.is_plain() && !self.queue.wake.has_urgent_at(index) && !self.has_ended();
        if !is_plain || !self.queue.shards[index].refill_or(outbox, || self.queue.wake.clear(index))
        {
            return None;
        }
        let (hash, key) = outbox.pop_free(QUOTA, delivery)?;
        let lane = key.map(|key| outbox.lanes.open(hash, key, LaneState::Running(worker)));
        self.note_taken(index, outbox);
        if self.queue.shards[index].has_more_or(outbox, || self.queue.wake.clear(index)) {
            // Under the lock: it may have been claimed by a worker that has found the lane ready.
            self.queue.wake.mark(index);
        }
        Some(lane.map_or(Source::None, |id| Source::Lane { index, id, run: 0 }))
    }

    /// The next message from the source of the last one, or `None` when its place has been given
    /// up. `stays` if a worker whose lane is empty may go on with its shard.
    pub(crate) fn next(&self, worker: usize, source: Source, stays: bool) -> TakenMessage<A, K> {
        match source {
            Source::None | Source::Mailbox => None,
            Source::Shared { .. } | Source::BetweenRuns { .. } => {
                self.release(worker, source);
                None
            }
            Source::Head { index, epoch, run, .. } if run < self.budget() => {
                let mut outbox = self.queue.shards[index].outbox.lock();
                let held = outbox.held(epoch).is_some();
                if held && !self.has_ended() {
                    return self.advance(index, outbox, epoch, run + 1, Class::Urgent);
                }
                drop(outbox);
                if held {
                    self.release(worker, source);
                    return None;
                }
                self.next(worker, self.demote(worker, source), stays)
            }
            Source::Head { .. } => {
                self.release(worker, source);
                None
            }
            Source::Lane { index, id, run } => {
                self.next_in_lane(index, id, run, stays.then_some(worker))
            }
        }
    }

    /// Without keys: goes to a ready shard, to one without another worker if there is one.
    pub(crate) fn take_shared(
        &self,
        worker: usize,
        cursor: u32,
        join: bool,
        delivery: &mut DeliveryOf<A>,
    ) -> Option<(usize, bool)> {
        while let Some((index, alone)) = self.queue.wake.acquire_affinity(cursor, join) {
            if self.pop_shared(index, alone.then_some(worker), delivery) {
                return Some((index, alone));
            }
            self.release_affinity(index, worker, alone);
        }
        None
    }

    /// Takes the next message of a shard without keys, in the middle of a run: none if its outbox
    /// is empty. The inbox is left to its senders: a worker that took each message as it came would
    /// meet them at every one.
    #[inline(always)]
    pub(crate) fn pop_in_run(
        &self,
        index: usize,
        shard: &ShardOf<A, K>,
        delivery: &mut DeliveryOf<A>,
    ) -> bool {
        let mut outbox = locked(&shard.outbox);
        // Straight into its place: between the two, each further move is felt.
        if let Some((message, stamp)) = outbox.pop_of_run() {
            delivery.put_plain(message, stamp);
        } else {
            let Some(entry) = outbox.pop_queue() else { return false };
            entry.put_into(delivery);
        }
        if outbox.queue.is_empty() {
            self.look_ahead(index, &outbox);
        }
        true
    }

    /// Takes the first message of a run from a shard without keys.
    pub(crate) fn pop_shared(
        &self,
        index: usize,
        affine: Option<usize>,
        delivery: &mut DeliveryOf<A>,
    ) -> bool {
        let mut outbox = self.queue.shards[index].outbox.lock();
        if outbox.queue.is_empty() {
            match self.refill_shared(index, affine, &mut outbox) {
                Some(Refilled::Last(entry)) => {
                    entry.put_into(delivery);
                    self.note_taken(index, &outbox);
                    return true;
                }
                Some(Refilled::More) => {}
                None => return false,
            }
        }
        match outbox.pop_queue() {
            Some(entry) => entry.put_into(delivery),
            None => match self.pop_urgent(index, false) {
                Some(entry) => entry.put_into(delivery),
                None => return false,
            },
        }
        self.note_taken(index, &outbox);
        if outbox.queue.is_empty() {
            self.look_ahead(index, &outbox);
        }
        true
    }

    /// Takes the next message of a keyed shard, as the holder of its token, if nothing is to be
    /// weighed: no key of the shard waits, and the message's own has not had its quota. Returns the
    /// hash of its key.
    #[inline(always)]
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

    /// True when nothing more is to be started.
    #[inline(always)]
    fn has_ended(&self) -> bool {
        self.lifecycle.ended.load(Ordering::Acquire)
    }

    /// Messages of a run.
    pub(crate) fn budget(&self) -> u32 {
        if self.queue.wake.is_quick() { QUICK_BUDGET } else { BUDGET }
    }

    /// The queue has run dry: a bit in the ready map means a message.
    #[cold]
    fn look_ahead(&self, index: usize, outbox: &OutboxOf<A, K>) {
        self.queue.shards[index].has_more_or(outbox, || self.queue.wake.clear(index));
    }

    #[cold]
    fn refill_shared(
        &self,
        index: usize,
        affine: Option<usize>,
        outbox: &mut OutboxOf<A, K>,
    ) -> Option<Refilled<Queued<A, K>>> {
        let empty = || self.queue.wake.clear(index);
        match self.queue.wake.is_quick() {
            true => self.queue.shards[index].refill_near(outbox, affine, empty),
            false => self.queue.shards[index].refill_or(outbox, empty).then_some(Refilled::More),
        }
    }

    /// Urgent messages first, unless a normal one is due. Otherwise ready lanes and the queue take
    /// turns. The queue of a keyed shard belongs to the holder of the token.
    fn take_from(&self, index: usize, worker: usize, first: Class) -> TakenMessage<A, K> {
        let shard = &self.queue.shards[index];
        let mut outbox = shard.outbox.lock();
        if self.has_ended() {
            return None;
        }
        let may_drain = outbox.token.is_none();
        let urged = first == Class::Urgent && self.queue.wake.has_urgent_at(index);
        if urged && let Some(id) = outbox.next_urgent_ready() {
            return self.take_lane(index, outbox, id, worker);
        }
        let urged = urged && may_drain && shard.inbox.lock().has_urgent();
        let queue_first = outbox.ready.queue_first && may_drain && shard.refill(&mut outbox);
        if !urged
            && !queue_first
            && let Some(id) = outbox.next_ready()
        {
            outbox.ready.queue_first = true;
            return self.take_lane(index, outbox, id, worker);
        }
        if !urged {
            outbox.ready.queue_first = false;
        }
        let taken = match may_drain {
            true => {
                if outbox.has_ready() {
                    self.queue.wake.mark(index);
                }
                let epoch = outbox.grant(worker);
                self.advance(index, outbox, epoch, 0, first)
            }
            false => {
                drop(outbox);
                None
            }
        };
        match (taken, first) {
            // A normal one was due, and there is none.
            (None, Class::Normal) => self.take_from(index, worker, Class::Urgent),
            (taken, _) => taken,
        }
    }

    fn take_lane(
        &self,
        index: usize,
        mut outbox: Outboxed<'_, A, K>,
        id: LaneId,
        worker: usize,
    ) -> TakenMessage<A, K> {
        if let Some(lane) = outbox.lanes.get(id) {
            lane.state = LaneState::Running(worker);
        }
        let entry = outbox.pop_lane(id);
        self.note_taken(index, &outbox);
        // Its only message may have made room for another.
        let empty = entry.is_none().then(|| outbox.lanes.close(id));
        self.clear_urgent_if_last(index, &mut outbox);
        let may_drain = outbox.token.is_none();
        let more =
            outbox.has_ready() || (may_drain && self.queue.shards[index].refill(&mut outbox));
        drop(outbox);
        if more {
            self.queue.wake.mark(index);
        }
        discard(empty);
        entry.map(|entry| (Source::Lane { index, id, run: 0 }, entry))
    }

    /// A lane was taken that may have been the last with an urgent message.
    fn clear_urgent_if_last(&self, index: usize, outbox: &mut OutboxOf<A, K>) {
        if !self.queue.wake.has_urgent_at(index) || outbox.has_urgent_ready() {
            return;
        }
        let inbox = self.queue.shards[index].inbox.lock();
        if !inbox.has_urgent() {
            self.queue.wake.clear_urgent(index);
        }
    }

    /// Takes the next message that may run, as the holder of the shard's token. Messages whose key
    /// is busy go to that key's lane. Gives the token back when there is nothing, and in the middle
    /// of a run also when messages lie only in the inbox: a worker that took each message as it
    /// came would meet the senders at every one.
    fn advance(
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
        if dry && self.queue.shards[index].has_more_or(&outbox, || {}) {
            self.queue.wake.mark(index);
        }
        let (mut outbox, entry) = match dry {
            true => (outbox, None),
            false => self.next_free(index, outbox, epoch, first),
        };
        let left = entry.is_none() && !dry;
        if left && (outbox.has_ready() || self.queue.shards[index].has_more_or(&outbox, || {})) {
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

    /// The next message of a shard, urgent ones first unless a normal one is due. None also if an
    /// urgent one lies in a lane that is ready.
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
        outbox.pop_queue().or_else(|| self.pop_urgent_head(index, outbox))
    }

    fn pop_urgent_head(&self, index: usize, outbox: &mut OutboxOf<A, K>) -> Option<Queued<A, K>> {
        let entry = self.pop_urgent(index, outbox.has_urgent_ready())?;
        outbox.taken = outbox.taken.wrapping_add(1);
        Some(entry)
    }

    /// The next urgent message of a shard. In a keyed pool, for the holder of its token, which says
    /// whether there are `more` in ready lanes.
    pub(super) fn pop_urgent(&self, index: usize, more: bool) -> Option<Queued<A, K>> {
        let mut inbox = self.queue.shards[index].inbox.lock();
        let entry = inbox.pop_urgent();
        if !inbox.has_urgent() && !more {
            self.queue.wake.clear_urgent(index);
        }
        entry
    }

    /// Takes an urgent message from a shard without keys.
    pub(crate) fn take_urgent(&self) -> Option<Queued<A, K>> {
        loop {
            let urged = self.queue.wake.urgent_shards();
            if urged == 0 {
                return None;
            }
            if let Some(entry) = self.pop_urgent(urged.trailing_zeros() as usize, false) {
                return Some(entry);
            }
        }
    }

    /// Goes to a keyed shard with urgent messages that no worker drains and that is not `but`.
    pub(crate) fn take_from_urgent_shard(
        &self,
        worker: usize,
        but: Option<usize>,
    ) -> TakenMessage<A, K> {
        let but = but.map_or(0, |index| 1_u64 << index);
        let mut urged = self.queue.wake.urgent_shards() & !but;
        while urged != 0 {
            let index = urged.trailing_zeros() as usize;
            urged &= urged - 1;
            if self.queue.wake.claim_this(index)
                && let Some(work) = self.take_from(index, worker, Class::Urgent)
            {
                return Some(work);
            }
        }
        None
    }

    /// Puts a message into the lane of its key, or gives it back if there is none. Keys are
    /// compared without the lock.
    #[cold]
    fn behind_its_lane<'a>(
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

    /// The next message of a lane. If it is empty, and `heir` goes on with the shard, which no
    /// worker drains, the next message there, under the same lock.
    fn next_in_lane(
        &self,
        index: usize,
        id: LaneId,
        run: u32,
        heir: Option<usize>,
    ) -> TakenMessage<A, K> {
        let mut outbox = self.queue.shards[index].outbox.lock();
        // Keys of this shard wait for a quota, those of other shards for a turn, as they do
        // behind any shard.
        let others = run + 1 >= QUOTA
            && (outbox.has_ready() || self.queue.shards[index].has_waiting(&outbox))
            || run >= BUDGET && self.queue.wake.any_ready();
        if others {
            drop(outbox);
            self.release_lane(index, id);
            return None;
        }
        if let Some(entry) = outbox.pop_lane(id) {
            self.note_taken(index, &outbox);
            return Some((Source::Lane { index, id, run: run + 1 }, entry));
        }
        let Ok(closed) = outbox.lanes.close_unless_lifted(id) else {
            drop(outbox);
            self.release_lane(index, id);
            return None;
        };
        let is_free = outbox.token.is_none() && !outbox.has_ready() && !self.has_ended();
        let taken = match heir.filter(|_| is_free) {
            Some(worker) => {
                let epoch = outbox.grant(worker);
                self.advance(index, outbox, epoch, 0, Class::Urgent)
            }
            None => {
                drop(outbox);
                None
            }
        };
        discard(closed);
        taken
    }
}

/// The lane whose key is this one. If a comparison panics, the message waits behind the first lane
/// with its hash: keys that cannot be compared have no order to keep, and nothing is lost.
pub(super) fn find_lane<K: Eq>(
    candidates: Vec<(LaneId, Arc<K>)>,
    key: Option<&K>,
) -> Option<LaneId> {
    user_code_follows();
    let compare = || candidates.iter().find(|(_, open)| Some(&**open) == key).map(|(id, _)| *id);
    let found = match std::panic::catch_unwind(AssertUnwindSafe(compare)) {
        Ok(found) => found,
        Err(panic) => {
            discard(panic);
            candidates.first().map(|(id, _)| *id)
        }
    };
    discard(candidates);
    found
}
