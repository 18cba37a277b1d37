//! The part of a shard that workers empty.

use std::{collections::VecDeque, sync::Arc};

use super::{lifted::LiftedCount, ready_lanes::ReadyLanes, token::Token, variety::Variety};
use crate::{
    backlog::Backlog,
    block_queue::BlockQueue,
    entry::Entry,
    lanes::{Behind, InOwnLane, KEPT_WHEN_EMPTY, LaneId, LaneState, Lanes},
    payload::Payload,
    slot::Slot,
    sync::Notify,
};

/// The part that workers empty, under the second lock. The field order matters: the fields that a
/// worker writes as it takes a message (unless it holds the token) are in two cache lines, and the
/// lock is at the start of the first.
#[repr(C)]
pub struct ShardOutbox<T: Payload, K> {
    /// The lines behind keys that have to wait.
    pub lanes: Lanes<T, K>,
    /// The number of messages taken so far, from the queue and from lanes: the watchdog sees
    /// progress by it.
    pub taken: u64,
    /// Present while messages are counted by their keys, here and in the inbox.
    pub backlog: Option<Box<Backlog>>,
    pub(super) streak: Streak,
    /// Messages in the order of acceptance, all of them before those of the inbox.
    pub queue: BlockQueue<Entry<T, K>>,
    /// The lanes that no worker owns.
    pub ready: ReadyLanes,
    /// Present while a worker drains the outbox of a keyed pool.
    pub token: Option<Token<K>>,
    /// The hash of a message that the holder is moving while it compares keys outside the lock.
    pub carried: Option<u32>,
    pub(super) epochs: Epochs,
    /// Whether the messages that the queue was filled with are mixed.
    pub(super) variety: Variety,
    /// The value of `taken` when a retry was last put before the others.
    pub(super) put_first: u64,
    /// Present while the messages of the shard are out of it.
    pub(super) lifted: Option<Box<LiftedCount>>,
}

/// The epochs of the drain tokens.
#[derive(Default)]
pub(super) struct Epochs {
    /// The epoch of the next token.
    pub(super) next: u64,
    /// The epoch of the token that the watchdog saw at its last tick, and the token's progress
    /// then.
    pub(super) seen: Option<(u64, u64)>,
}

/// How many messages of one hash were taken from the queue in a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Streak {
    pub(super) hash: u32,
    pub(super) count: u32,
}

impl Streak {
    const NONE: Self = Self { hash: 0, count: 0 };

    /// Counts a message that is taken from the queue. Returns false, without counting it, if its
    /// key has used up its quota.
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn admits<T: Payload, K>(&mut self, entry: &Entry<T, K>, quota: u32) -> bool {
        let same = entry.key.is_some() && self.hash == entry.hash;
        if same && self.count >= quota {
            return false;
        }
        *self = Self { hash: entry.hash, count: if same { self.count + 1 } else { 1 } };
        true
    }
}

/// The previous key, which is no longer in hand, and the hash of the next one.
pub type KeyChange<K> = (Option<(u32, K)>, Option<u32>);

/// The number of messages that are searched for another key after a key has used up its quota: more
/// than the quota, and few enough to be searched under a lock.
pub const LOOK_AHEAD: usize = 64;

/// The start value of `put_first`: as if others had had their turn since.
pub const LONG_AGO: u64 = u64::MAX - 1;

impl<T: Payload, K> ShardOutbox<T, K> {
    pub(super) fn new() -> Self {
        Self {
            lanes: Lanes::new(),
            taken: 0,
            backlog: None,
            streak: Streak::NONE,
            queue: BlockQueue::new(),
            ready: ReadyLanes::default(),
            token: None,
            carried: None,
            epochs: Epochs::default(),
            variety: Variety::default(),
            put_first: LONG_AGO,
            lifted: None,
        }
    }

    /// Gives the token to `worker`, without a message yet.
    pub fn grant(&mut self, worker: usize) -> u64 {
        let epoch = self.epochs.next;
        self.epochs.next += 1;
        self.token = Some(Token { epoch, worker, taken: 0, in_hand: None, comparing: false });
        epoch
    }

    /// The token, if it is still the one of this epoch.
    pub fn held(&mut self, epoch: u64) -> Option<&mut Token<K>> {
        self.token.as_mut().filter(|token| token.epoch == epoch)
    }

    /// True if this worker has a key with this hash in hand. It goes by the hash: if two keys
    /// collide (one pair in four billion), each counts as the other.
    pub fn is_owner(&self, hash: u32, worker: usize) -> bool {
        let token = self.token.as_ref().filter(|token| token.worker == worker);
        let in_hand = token.and_then(|token| token.in_hand.as_ref());
        in_hand.is_some_and(|(own, _)| *own == hash) || self.lanes.run_by(hash, worker).is_some()
    }

    /// The holder has this key in hand from now on.
    pub fn publish(&mut self, epoch: u64, key: Option<(u32, K)>) {
        let Some(token) = self.held(epoch) else {
            debug_assert!(false, "only the holder of the token publishes");
            return;
        };
        debug_assert!(
            token.in_hand.is_none(),
            "the last key was taken out, to be dropped unlocked"
        );
        token.taken += 1;
        token.in_hand = key;
    }

    /// The holder starts (`Some`) or has finished (`None`) comparing keys outside the lock, with a
    /// message in hand whose key has this hash.
    pub fn compare(&mut self, epoch: u64, carried: Option<u32>) {
        self.carried = carried;
        if let Some(token) = self.held(epoch) {
            token.comparing = carried.is_some();
        }
    }

    /// Takes the next message of the queue.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub fn pop_queue(&mut self) -> Option<Entry<T, K>> {
        let is_there = !self.queue.is_empty();
        self.taken = self.taken.wrapping_add(u64::from(is_there));
        self.queue.pop_front()
    }

    /// True if the last message that was put before the others has been taken, and at least one
    /// other besides.
    pub(super) fn may_put_first(&self) -> bool {
        self.taken.wrapping_sub(self.put_first) >= 2
    }

    /// A message that waited here was started or taken out.
    #[inline]
    pub fn left(&mut self, entry: &Entry<T, K>) {
        if let Some(backlog) = &mut self.backlog {
            backlog.left(entry);
        }
    }

    /// Takes the rooms in which senders are to be woken, under no lock.
    pub fn take_freed(&mut self) -> Vec<Arc<Notify>> {
        match &mut self.backlog {
            Some(backlog) => backlog.take_freed(),
            None => Vec::new(),
        }
    }

    /// Takes the next message of a lane.
    pub fn pop_lane(&mut self, id: LaneId) -> Option<Entry<T, K>> {
        let entry = self.lanes.pop_front(id)?;
        self.left(&entry);
        self.taken = self.taken.wrapping_add(1);
        Some(entry)
    }

    /// Like `pop_lane`, for the owner of the lane, and only if it `may`; an empty lane is removed.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub fn pop_or_close(&mut self, id: LaneId, may: bool) -> InOwnLane<T, K> {
        let found = self.lanes.pop_or_close(id, may);
        if let InOwnLane::Next(entry) = &found {
            self.left(entry);
            self.taken = self.taken.wrapping_add(1);
        }
        found
    }

    /// False if no lane is ready; true if one is, or was when last checked.
    pub fn has_ready(&mut self) -> bool {
        !self.ready.all.is_empty() || self.has_urgent_ready()
    }

    /// Takes the lane that has been ready for longest off the list. Memory that the list needed for
    /// many lanes is released.
    pub fn next_ready(&mut self) -> Option<LaneId> {
        let id =
            std::iter::from_fn(|| self.ready.all.pop_front()).find(|id| self.lanes.is_ready(*id));
        if self.ready.all.is_empty() && self.ready.all.capacity() > KEPT_WHEN_EMPTY {
            self.ready.all = VecDeque::new();
        }
        id
    }

    /// Like `next_ready`, but skips the lanes that give an urgent message first: they are in the
    /// other list as well, and are taken from there.
    pub fn next_normal_ready(&mut self) -> Option<LaneId> {
        while let Some(id) = self.next_ready() {
            if !self.lanes.get(id).is_some_and(|lane| lane.is_urgent()) {
                return Some(id);
            }
        }
        None
    }

    /// True if a lane with an urgent message is ready.
    pub fn has_urgent_ready(&mut self) -> bool {
        while let Some(id) = self.ready.urgent.front() {
            if self.lanes.is_ready(*id) {
                return true;
            }
            self.ready.urgent.pop_front();
        }
        false
    }

    /// Takes the next of these lanes off the list.
    pub fn next_urgent_ready(&mut self) -> Option<LaneId> {
        let ready = self.has_urgent_ready();
        ready.then(|| self.ready.urgent.pop_front()).flatten()
    }

    /// Marks that no worker owns this lane any more. Returns true if it has an urgent message.
    pub fn make_ready(&mut self, id: LaneId) -> bool {
        let Some(lane) = self.lanes.get(id) else { return false };
        lane.state = LaneState::Ready;
        let urgent = lane.is_urgent();
        match urgent {
            true => self.ready.urgent.push_back(id),
            false => self.ready.all.push_back(id),
        }
        urgent
    }

    /// Notes that an urgent message has arrived in this lane. Returns the lane's state.
    pub fn set_urgent(&mut self, id: LaneId) -> Option<LaneState> {
        let lane = self.lanes.get(id)?;
        if let LaneState::Shared(_) = lane.state {
            // Its first message is a different one now, perhaps of another share.
            lane.state = LaneState::Ready;
        }
        let state = lane.state;
        if state == LaneState::Ready {
            self.ready.urgent.push_back(id);
        }
        Some(state)
    }

    /// The number of ready lanes that the list has room for.
    pub fn room_for_ready(&self) -> usize {
        self.ready.all.capacity()
    }

    /// Clears the list of ready lanes: all lanes have been emptied.
    pub fn forget_ready(&mut self) {
        self.ready.all.clear();
        self.ready.urgent.clear();
    }

    /// Takes the token away from its holder and gives the key in hand a lane that the holder runs.
    /// Returns the lane.
    pub fn pass_on(&mut self) -> Option<LaneId> {
        let token = self.token.take()?;
        let (hash, key) = token.in_hand?;
        Some(self.lanes.open(hash, key, LaneState::Running(token.worker)))
    }

    /// Passes the token on if its holder has not finished a message since the last tick and others
    /// wait behind it.
    pub fn revoke(&mut self, waiting: bool) -> bool {
        let now = self.token.as_ref().map(|token| (token.epoch, token.taken));
        let stuck = now.is_some() && now == self.epochs.seen;
        self.epochs.seen = now;
        let comparing = self.token.as_ref().is_some_and(|token| token.comparing);
        let revoked = stuck && waiting && !comparing;
        if revoked {
            self.pass_on();
        }
        revoked
    }

    /// True if a key has used up its quota in a row and others may be ready behind it (K04). It
    /// goes by the hash: keys that collide share a streak, which costs them a lane but no order.
    pub fn exceeds(&mut self, entry: &Entry<T, K>, quota: u32) -> bool {
        let Streak { hash, count } = self.streak;
        let same = entry.key.is_some() && count > 0 && hash == entry.hash;
        self.streak = Streak { hash: entry.hash, count: if same { count + 1 } else { 1 } };
        self.streak.count > quota && !self.queue.is_empty()
    }

    /// Moves the next message of the queue into the slot, and its key into the token, if nothing
    /// prevents it; otherwise nothing changes. Returns the key that the holder had before, to be
    /// dropped under no lock, and the hash of the new one.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub fn step(
        &mut self,
        epoch: u64,
        quota: u32,
        slot: &mut impl Slot<T>,
    ) -> Option<KeyChange<K>> {
        let token = self.token.as_mut().filter(|token| token.epoch == epoch)?;
        if !self.lanes.is_empty() || self.backlog.is_some() {
            return None;
        }
        // Taken first, and put back in the rare case that it has to wait: inspecting it in its
        // place would cost as much again.
        let mut entry = self.queue.pop_front()?;
        if !self.streak.admits(&entry, quota) {
            self.put_back(entry);
            return None;
        }
        self.taken = self.taken.wrapping_add(1);
        token.taken += 1;
        let key = entry.key.take().map(|key| (entry.hash, key));
        let hash = key.as_ref().map(|(hash, _)| *hash);
        let step = (std::mem::replace(&mut token.in_hand, key), hash);
        entry.put_into(slot);
        Some(step)
    }

    /// True if nothing comes before the queue and no message needs a closer look: there is no
    /// token, no ready lane and no counted key.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub fn is_plain(&self) -> bool {
        let is_nothing_ready = self.ready.all.is_empty() && self.ready.urgent.is_empty();
        self.token.is_none() && self.backlog.is_none() && is_nothing_ready
    }

    /// Moves the next message of the queue whose key has no lane into the slot, and returns the key
    /// and its hash; the messages before it move to the lanes of their keys. Returns `None`, with
    /// the next message left in place, if the caller has to decide: keys that are not compared
    /// here, a lane with a collector, a key that has used up its quota.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub fn pop_free(&mut self, quota: u32, slot: &mut impl Slot<T>) -> Option<(u32, Option<K>)>
    where
        K: PartialEq + 'static,
    {
        // As in `step`.
        let mut entry = self.queue.pop_front()?;
        loop {
            match self.lanes.behind(&entry) {
                Behind::Nothing => break,
                Behind::Lane(lane) => lane.push(entry),
                Behind::Unknown => {
                    self.put_back(entry);
                    return None;
                }
            }
            entry = self.queue.pop_front()?;
        }
        if !self.streak.admits(&entry, quota) {
            self.put_back(entry);
            return None;
        }
        self.taken = self.taken.wrapping_add(1);
        let of = (entry.hash, entry.key.take());
        entry.put_into(slot);
        Some(of)
    }

    #[cold]
    #[inline(never)]
    pub(super) fn put_back(&mut self, entry: Entry<T, K>) {
        self.queue.push_front(entry);
    }

    /// Takes the first of the next messages with another key that waits for no other message. It
    /// overtakes the messages of the key that has used up its quota, and needs no lane.
    pub fn pop_other(&mut self, hash: u32) -> Option<Entry<T, K>> {
        let lanes = &self.lanes;
        let other = self.queue.remove_near(LOOK_AHEAD, &|entry| match entry.key {
            Some(_) => entry.hash != hash && !lanes.has(entry.hash),
            None => true,
        })?;
        self.streak = Streak { hash: other.hash, count: 1 };
        Some(other)
    }

    /// True if a key that has used up its quota need not yield, because it is alone here; it may
    /// then have another quota.
    pub fn has_nobody_else(&mut self) -> bool {
        let alone = self.queue.len() < LOOK_AHEAD && !self.has_ready();
        if alone {
            self.streak.count = 1;
        }
        alone
    }

    /// Gives a message's key a ready lane of its own, behind all others.
    pub fn stand_aside(&mut self, mut entry: Entry<T, K>) {
        let Some(key) = entry.key.take() else { return };
        let id = self.lanes.open(entry.hash, key, LaneState::Ready);
        let unplaced = self.lanes.push_back(id, entry);
        debug_assert!(unplaced.is_ok(), "a lane just opened is there");
        self.make_ready(id);
        self.streak = Streak::NONE;
    }

    /// The number of messages in the outbox and its lanes, including those that move between them
    /// or are lifted.
    pub fn queued(&self) -> usize {
        let lifted = self.lifted.as_ref().map_or(0, |lifted| lifted.messages);
        self.queue.len() + self.lanes.queued() + usize::from(self.carried.is_some()) + lifted
    }
}
