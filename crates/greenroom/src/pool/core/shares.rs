//! Taking messages in a pool with shares: each waiting key has a place in the line of its share,
//! and the shares decide whose turn it is.
//!
//! ```text
//!  queue of a shard ─┐ sorted in                      ┌─▶ lane of its key, run by a worker
//!  ready lanes ──────┴──────────▶ line of its share ──┘          │ one message
//!       ▲                                                        │
//!       └──────────────── more messages of the key ◀─────────────┘
//! ```
//!
//! All other code that opens, fills, parks and empties lanes works as in other pools. A ready lane
//! is sorted in by the share of its first message, so a key whose messages belong to several shares
//! waits for each in its turn.

use greenroom_queue::{
    discard::{discard, panic_of},
    lanes::{LaneId, LaneState},
    shares::ShareQueue,
    sync::Ordering,
    watchdog::TICK,
};

use super::{
    Core, Key, Queued,
    take::{Outboxed, TakenMessage, behind::behind_its_lane},
};
use crate::{
    Actor,
    pool::{
        frame,
        shares::{Share, ShareTicket},
        sharing::Sharing,
        worker::in_flight::Source,
    },
};

/// At most this many messages are sorted in before a worker takes one itself, so that it does not
/// compute for long.
const SORTED_AT_ONCE: usize = 1_024;

/// At least this many are sorted in; otherwise messages behind a flood would wait for too long.
const SORTED_AT_LEAST: usize = 64;

/// About how long it takes to sort one in, in nanoseconds.
const SORTING: u64 = 1_000;

/// Messages that will be done within this many ticks of the watchdog (32 ms) hardly have to wait.
const SOON: u64 = 16;

/// Handlers that seem slow for this many ticks are slow. Before that, a thread may have been
/// preempted.
const LATE_TICKS: u32 = 4;

/// Lanes on their way into the lines of their shares: they get into line whatever happens.
struct Sorted<'a, A: Actor, K: Key> {
    core: &'a Core<A, K>,
    tickets: Vec<(Share, ShareTicket, bool)>,
}

impl<A: Actor, K: Key> Drop for Sorted<'_, A, K> {
    fn drop(&mut self) {
        if self.tickets.is_empty() {
            return;
        }
        frame::shares::work(self.core, |shares, now| {
            for (share, ticket, urgent) in self.tickets.drain(..) {
                shares.add(&share, ticket, urgent, now);
            }
        });
    }
}

/// The number of messages to sort in while others can be started. Workers should stay busy while a
/// flood is sorted in, so sorting takes no more time than passes between the ends of two attempts.
fn soon<A: Actor, K: Key>(pool: &Core<A, K>) -> usize {
    let turn = frame::shares::work(pool, |shares, _| shares.turn()).flatten();
    let soon = turn.map_or(SORTED_AT_ONCE, |turn| (turn / SORTING) as usize);
    soon.clamp(SORTED_AT_LEAST, SORTED_AT_ONCE)
}

/// Sorts in up to this many messages. Returns whether these were all.
fn sort<A: Actor, K: Key>(
    pool: &Core<A, K>,
    worker: usize,
    cursor: &mut u32,
    most: impl FnOnce() -> usize,
) -> bool {
    let (mut most, mut left) = (Some(most), usize::MAX);
    while left > 0
        && let Some(index) = pool.queue.wake.claim(*cursor)
    {
        *cursor = (index as u32 + 1) % 64;
        // The next pick sets the bit of the shares again, if there is something.
        if index < pool.queue.shards.len() {
            left = most.take().map_or(left, |most| most());
            pool.sort_in(index, worker, &mut left);
        }
    }
    left > 0
}

/// Takes a message of the share whose turn it is, among those that were sorted in.
fn pick<A: Actor, K: Key>(pool: &Core<A, K>, worker: usize) -> TakenMessage<A, K> {
    loop {
        let picked = frame::shares::work(pool, |shares, now| shares.pick(worker, now))??;
        if let Some(taken) = pool.take_picked(worker, picked) {
            return Some(taken);
        }
        frame::shares::not_started(pool, worker);
    }
}

/// A pool whose messages belong to shares.
pub(crate) struct ByShare;

impl<A: Actor, K: Key> Sharing<A, K, Core<A, K>> for ByShare {
    fn share_of(&self, pool: &Core<A, K>, message: &A::Message) -> Share {
        pool.share_of(message)
    }

    fn take_out(&self, pool: &Core<A, K>, worker: usize, cursor: &mut u32) -> TakenMessage<A, K> {
        let is_all = sort(pool, worker, cursor, || soon(pool));
        let picked = pick(pool, worker);
        if picked.is_some() || is_all {
            return picked;
        }
        sort(pool, worker, cursor, || SORTED_AT_ONCE);
        pick(pool, worker)
    }

    fn begin(&self, pool: &Core<A, K>) {
        let (Some(_), Some(gate)) = (&pool.frame.shares, &pool.frame.limits) else { return };
        let may_be_quick =
            pool.frame.telemetry.coarse.is_watched() && pool.settings.functions.batching.is_none();
        let is_even = frame::shares::work(pool, |shares, _| shares.is_even());
        if may_be_quick && is_even == Some(true) {
            gate.set_shared(false);
        }
    }

    fn look(&self, pool: &Core<A, K>, taken: u64) {
        let (Some(desk), Some(gate)) = (&pool.frame.shares, &pool.frame.limits) else { return };
        let waiting = pool.queue.permits.in_use(pool) as u64;
        if !gate.is_shared() {
            let is_late = waiting > taken.saturating_mul(SOON) || !pool.queue.wake.is_quick();
            let late = if is_late { desk.late.load(Ordering::Relaxed) + 1 } else { 0 };
            desk.late.store(late, Ordering::Relaxed);
            if late >= LATE_TICKS {
                gate.set_shared(true);
            }
            return;
        }
        if pool.settings.functions.batching.is_some() {
            return;
        }
        let is_soon = frame::shares::work(pool, |shares, _| {
            let pace = shares.quick_pace().filter(|_| shares.is_even())?;
            Some(u128::from(waiting.saturating_mul(pace)) < TICK.as_nanos() * u128::from(SOON))
        });
        if is_soon.flatten() == Some(true) {
            desk.late.store(0, Ordering::Relaxed);
            pool.queue.wake.set_quick(true);
            gate.set_shared(false);
            let _: TakenMessage<A, K> = self.take_strays(pool);
        }
    }

    #[cold]
    fn take_strays(&self, pool: &Core<A, K>) -> TakenMessage<A, K> {
        while let Some(line) = frame::shares::work(pool, ShareQueue::take_line).flatten() {
            for ShareTicket { index, id, number } in line {
                let mut outbox = pool.queue.shards[index].outbox.lock();
                let lane = outbox.lanes.get(id);
                if lane.is_some_and(|lane| lane.state == LaneState::Shared(number))
                    && outbox.make_ready(id)
                {
                    pool.queue.wake.set_urgent(index);
                }
                drop(outbox);
                pool.queue.wake.mark(index);
            }
        }
        None
    }

    fn next(&self, pool: &Core<A, K>, worker: usize, source: Source) -> Option<Queued<A, K>> {
        let Source::Lane { index, id, .. } = source else { return None };
        if id.is_keyless() {
            pool.frame.shares.as_deref().filter(|desk| !desk.ordered)?;
            let ticket = frame::shares::work(pool, |shares, now| shares.pick_beside(worker, now))??;
            return pool.take_out(ticket);
        }
        let mut outbox = pool.queue.shards[index].outbox.lock();
        let entry = outbox.lanes.pop_front(id)?;
        drop(outbox);
        let share = pool.share_of(&entry.message);
        let of_hand = frame::shares::work(pool, |shares, _| shares.in_hand_of(worker).cloned());
        let is_same = of_hand.flatten() == Some(share);
        let mut outbox = pool.queue.shards[index].outbox.lock();
        if is_same {
            outbox.left(&entry);
            outbox.taken = outbox.taken.wrapping_add(1);
            pool.queue.note_taken(index, &outbox);
            return Some(entry);
        }
        let unplaced = outbox.lanes.unpop(id, entry);
        debug_assert!(unplaced.is_ok(), "a lane that is run is there");
        None
    }
}

impl<A: Actor, K: Key> Core<A, K> {
    /// The share of a message. If the function panics, it is the common share.
    fn share_of(&self, message: &A::Message) -> Share {
        let Some(share_of) = &self.settings.share_of else { return Share::COMMON };
        let mut share = Share::COMMON;
        discard(panic_of(&mut || share = share_of(message)));
        share
    }

    /// The only message of a lane without a key, which no worker runs.
    fn take_out(&self, ShareTicket { index, id, number }: ShareTicket) -> Option<Queued<A, K>> {
        let mut outbox = self.queue.shards[index].outbox.lock();
        outbox.lanes.get(id).filter(|lane| lane.state == LaneState::Shared(number))?;
        let entry = outbox.pop_lane(id);
        self.queue.note_taken(index, &outbox);
        let closed = outbox.lanes.close(id);
        drop(outbox);
        discard(closed);
        entry
    }

    /// Makes the worker the owner of the lane that was picked, unless the lane is gone.
    fn take_picked(&self, worker: usize, ticket: ShareTicket) -> TakenMessage<A, K> {
        let ShareTicket { index, id, number } = ticket;
        let mut outbox = self.queue.shards[index].outbox.lock();
        if self.has_ended() {
            return None;
        }
        let lane = outbox.lanes.get(id).filter(|lane| lane.state == LaneState::Shared(number))?;
        if lane.is_lifted() {
            // It is sorted in again once its messages are back.
            lane.state = LaneState::Ready;
            return None;
        }
        lane.state = LaneState::Running(worker);
        let entry = outbox.pop_lane(id);
        self.queue.note_taken(index, &outbox);
        let empty = entry.is_none().then(|| outbox.lanes.close(id));
        drop(outbox);
        discard(empty);
        entry.map(|entry| (Source::Lane { index, id, run: 0 }, entry))
    }

    /// Puts the ready messages of a shard into the lines of their shares.
    fn sort_in(&self, index: usize, worker: usize, left: &mut usize) {
        let mut sorted = Sorted { core: self, tickets: Vec::new() };
        let outbox = self.queue.shards[index].outbox.lock();
        let outbox = self.sort_lanes(index, outbox, worker, &mut sorted);
        let (outbox, more) = match outbox.token.is_none() && !self.has_ended() {
            true => self.sort_queue(index, outbox, worker, left, &mut sorted),
            false => (outbox, false),
        };
        drop(outbox);
        if more {
            self.queue.wake.mark(index);
        }
    }

    /// Sorts in ready lanes.
    fn sort_lanes<'a>(
        &'a self,
        index: usize,
        mut outbox: Outboxed<'a, A, K>,
        worker: usize,
        sorted: &mut Sorted<'_, A, K>,
    ) -> Outboxed<'a, A, K> {
        while let Some(id) = outbox.next_urgent_ready().or_else(|| outbox.next_ready()) {
            if let Some(lane) = outbox.lanes.get(id) {
                lane.state = LaneState::Running(worker);
            }
            let Some(entry) = outbox.lanes.pop_front(id) else {
                // Its only message was evicted.
                let empty = outbox.lanes.close(id);
                drop(outbox);
                discard(empty);
                outbox = self.queue.shards[index].outbox.lock();
                continue;
            };
            drop(outbox);
            let (share, urgent) = (self.share_of(&entry.message), entry.urgent);
            outbox = self.queue.shards[index].outbox.lock();
            let unplaced = outbox.lanes.unpop(id, entry);
            debug_assert!(unplaced.is_ok(), "a lane that is run is there");
            self.stand(index, &mut outbox, id, (share, urgent), sorted);
        }
        self.queue.clear_urgent_if_last(index, &mut outbox);
        outbox
    }

    /// Sorts in up to this many messages of the queue, as the holder of the shard's token. Returns
    /// whether there are more.
    fn sort_queue<'a>(
        &'a self,
        index: usize,
        mut outbox: Outboxed<'a, A, K>,
        worker: usize,
        left: &mut usize,
        sorted: &mut Sorted<'_, A, K>,
    ) -> (Outboxed<'a, A, K>, bool) {
        let epoch = outbox.grant(worker);
        while *left > 0
            && !self.has_ended()
            && let Some(mut entry) = self.pop_any(index, &mut outbox)
        {
            *left -= 1;
            if entry.key.is_some() && outbox.lanes.has(entry.hash) {
                let (again, placed) = behind_its_lane(self, index, outbox, epoch, entry);
                outbox = again;
                entry = match placed {
                    Ok(_) => continue,
                    Err(free) => free,
                };
            }
            outbox.compare(epoch, Some(entry.hash));
            drop(outbox);
            let (share, urgent) = (self.share_of(&entry.message), entry.urgent);
            outbox = self.queue.shards[index].outbox.lock();
            outbox.compare(epoch, None);
            let id = match entry.key.take() {
                Some(key) => outbox.lanes.open(entry.hash, key, LaneState::Ready),
                None => {
                    let id = outbox.lanes.open_keyless(LaneState::Ready);
                    entry.hash = id.hash;
                    id
                }
            };
            let unplaced = outbox.lanes.push_back(id, entry);
            debug_assert!(unplaced.is_ok(), "a lane just opened is there");
            self.stand(index, &mut outbox, id, (share, urgent), sorted);
        }
        // The same token that it was given: while it compares keys, no other party takes the token
        // away.
        let token = outbox.token.take();
        let more = !outbox.queue.is_empty()
            || self.queue.shards[index].has_more_or(&outbox, &|| {})
            || outbox.has_ready();
        drop(outbox);
        discard(token);
        (self.queue.shards[index].outbox.lock(), more)
    }

    /// The next message of a shard, preferably an urgent one.
    fn pop_any(&self, index: usize, outbox: &mut Outboxed<'_, A, K>) -> Option<Queued<A, K>> {
        if self.queue.wake.has_urgent_at(index)
            && let Some(entry) = self.queue.pop_urgent_head(index, outbox)
        {
            return Some(entry);
        }
        if !self.queue.shards[index].refill(outbox) {
            return None;
        }
        outbox.pop_queue().or_else(|| self.queue.pop_urgent_head(index, outbox))
    }

    /// Puts a lane into the line of this share, an urgent one before the others.
    fn stand(
        &self,
        index: usize,
        outbox: &mut Outboxed<'_, A, K>,
        id: LaneId,
        (share, urgent): (Share, bool),
        sorted: &mut Sorted<'_, A, K>,
    ) {
        let Some(desk) = &self.frame.shares else { return };
        let number = desk.next_number();
        if let Some(lane) = outbox.lanes.get(id) {
            lane.state = LaneState::Shared(number);
            sorted.tickets.push((share, ShareTicket { index, id, number }, urgent));
        }
    }
}
