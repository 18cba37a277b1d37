//! Lanes: the lines of waiting messages behind keys.
//!
//! A lane exists only for a key whose message is suspended, waits for a retry, or has yielded to
//! others. Its state says which party owns the key:
//!
//! ```text
//!            open(worker)                    quota used up, worker died
//!   (none) ───────────────▶ Running(worker) ─────────────────────────────▶ Ready
//!      ▲                     │    ▲    │                                     │
//!      └──── queue empty ────┘    └────│─────────── taken by a worker ───────┘
//!                                      ├── retry ──────────▶ Retrying ── timer ─────▶ Ready
//!                                      └── final failure ──▶ Parked ──── operator ──▶ Ready, or (none)
//! ```
//!
//! Lanes are found by the hash of their key. The caller compares the keys themselves outside the
//! lock, because a comparison runs user code.

mod line;

use std::{any::TypeId, sync::Arc};

use hashbrown::HashTable;

use super::{
    backlog::Backlog,
    deque::Deque,
    discard::discard,
    entry::{Entry, first},
    payload::Payload,
    stamp::Stamp,
};
use crate::sync::Notify;
use line::Line;

/// The name of a lane within its shard: the hash of its key, and a number that is never reused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LaneId {
    /// The hash of its key.
    pub hash: u32,
    number: u64,
}

impl LaneId {
    /// True for the lane of one message without a key.
    pub fn is_keyless(self) -> bool {
        self.number & KEYLESS != 0
    }
}

/// A bit in the number of a lane without a key.
const KEYLESS: u64 = 1 << 63;

/// The owner of a lane's key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LaneState {
    /// This worker has a message of the key in hand. Ends when the lane closes, yields or is
    /// parked.
    Running(usize),
    /// The clock: the first message waits for its retry. Ended by the timer or by a stop.
    Retrying,
    /// An operator: a message has failed for good, the first one if it is still there. Ended by the
    /// operator or by a stop.
    Parked,
    /// No owner; it is in the shard's list of ready lanes. Ends when a worker takes it, or by a
    /// stop.
    Ready,
    /// Its share: it is in the share's line, under this number. Ends when a worker takes it in the
    /// turn of the share, or by a stop.
    Shared(u64),
}

/// The line behind a key, and the owner of that key.
pub struct Lane<T: Payload, K> {
    /// The name of the lane.
    pub id: LaneId,
    /// The key of the lane.
    pub key: LaneKey<K>,
    /// The owner of that key.
    pub state: LaneState,
    /// Present once a message has waited here. Most lanes belong to a key with a single message,
    /// and come and go with it.
    line: Option<Box<Line<T, K>>>,
}

/// The key of a lane, shared with the few places that need it outside the lock.
pub struct LaneKey<K> {
    own: Option<K>,
    shared: Option<Arc<K>>,
}

impl<K> LaneKey<K> {
    fn new(key: K) -> Self {
        Self { own: Some(key), shared: None }
    }

    fn get(&self) -> Option<&K> {
        self.own.as_ref().or(self.shared.as_deref())
    }

    /// The key as a shared value, for use outside the lock. `None` only for a lane without a key.
    pub fn share(&mut self) -> Option<Arc<K>> {
        if let Some(own) = self.own.take() {
            self.shared = Some(Arc::new(own));
        }
        self.shared.clone()
    }
}

impl<T: Payload, K> Lane<T, K> {
    fn new(id: LaneId, key: K, state: LaneState) -> Self {
        Self { id, key: LaneKey::new(key), state, line: None }
    }

    fn line(&mut self) -> &mut Line<T, K> {
        self.line.get_or_insert_with(|| Box::new(Line::new()))
    }

    /// The messages that wait here, in order.
    pub fn iter(&self) -> impl Iterator<Item = &Entry<T, K>> {
        self.line.as_ref().map(|line| line.queue.iter()).unwrap_or_default()
    }

    /// The message at this place, mutable.
    pub fn at_mut(&mut self, place: usize) -> Option<&mut Entry<T, K>> {
        self.line.as_mut()?.queue.get_mut(place)
    }

    /// The number of messages that wait here, including lifted ones.
    #[inline]
    pub fn len(&self) -> usize {
        self.line.as_ref().map_or(0, |line| line.queue.len() + line.lifted)
    }

    /// True while a withdrawal examines the messages that wait here.
    #[inline]
    pub fn is_lifted(&self) -> bool {
        self.line.as_ref().is_some_and(|line| line.lifted > 0)
    }

    /// True if no message waits here.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The first message.
    pub fn front(&self) -> Option<&Entry<T, K>> {
        self.line.as_ref()?.queue.front()
    }

    /// Has the collector of a batch notified when this many messages wait here.
    pub fn expect(&mut self, messages: usize, full: Arc<Notify>) {
        self.line().wanted = Some((messages, full));
    }

    /// The reason why the lane is parked, if it is.
    pub fn failed(&self) -> Option<&Arc<T::Failure>> {
        self.line.as_ref()?.failed.as_ref()
    }

    /// Sets the reason why the lane is parked.
    pub fn set_failed(&mut self, failed: Arc<T::Failure>) {
        self.line().failed = Some(failed);
    }

    /// Like `failed`, but takes the reason out.
    pub fn take_failed(&mut self) -> Option<Arc<T::Failure>> {
        self.line.as_mut()?.failed.take()
    }

    /// True if the waiting messages here hold no permit.
    pub fn is_apart(&self) -> bool {
        self.line.as_ref().is_some_and(|line| line.apart)
    }

    /// Sets whether the waiting messages here hold no permit (`apart`) or one each.
    pub fn set_apart(&mut self, apart: bool) {
        self.line().apart = apart;
    }

    /// True if no other party has to know about a message that arrives here: the key is not parked,
    /// and no worker collects a batch.
    fn hears_of_nothing(&self) -> bool {
        let waits_for_more = self.line.as_ref().is_some_and(|line| line.wanted.is_some());
        self.state != LaneState::Parked && !waits_for_more
    }

    /// True if the first message is urgent, or waits for a retry with an urgent one behind it.
    pub fn is_urgent(&self) -> bool {
        self.line.as_ref().is_some_and(|line| line.is_urgent())
    }

    /// The collector of a batch, once enough messages wait. Returned only once; notify it under no
    /// lock.
    pub fn is_as_long_as_wanted(&mut self) -> Option<Arc<Notify>> {
        self.line.as_mut()?.is_as_long_as_wanted()
    }

    /// The number of messages that wait for a retry: they come before all others.
    pub fn retried(&self) -> usize {
        self.line.as_ref().map_or(0, |line| line.retried())
    }

    fn evict(&mut self, urgent: bool) -> Option<Entry<T, K>> {
        self.line.as_mut()?.evict(urgent)
    }
}

/// The waiting messages of a lane while they are lifted.
pub struct LiftedLine<T: Payload, K> {
    /// The lane's name.
    pub id: LaneId,
    /// The lifted messages; later, those that stay.
    pub messages: Deque<Entry<T, K>>,
    /// The number of messages that were lifted.
    pub lifted: usize,
}

/// Where a message belongs that may have to wait behind its key.
pub enum Behind<'a, T: Payload, K> {
    /// In the lane of its key.
    Lane(LaneEnd<'a, T, K>),
    /// In no lane: none has the hash of its key.
    Nothing,
    /// A lane has that hash, and the caller has to decide.
    Unknown,
}

/// The end of a lane, for a normal message.
pub struct LaneEnd<'a, T: Payload, K> {
    line: &'a mut Line<T, K>,
    queued: &'a mut usize,
}

impl<T: Payload, K> LaneEnd<'_, T, K> {
    /// Puts the message into the line.
    pub fn push(self, entry: Entry<T, K>) {
        self.line.push(entry);
        *self.queued += 1;
    }
}

/// The result for the owner of a lane that takes its next message.
#[must_use = "it may hold user data, which is dropped outside the lock"]
pub enum InOwnLane<T: Payload, K> {
    /// The next message.
    Next(Entry<T, K>),
    /// No message: the lane is removed, if it was there.
    Closed(Option<Removed<T, K>>),
    /// The messages are lifted, or must not be taken: the lane stays.
    Stays,
}

/// The rest of a lane that was empty.
#[must_use = "it holds user data, which is dropped outside the lock"]
pub struct Removed<T: Payload, K> {
    key: LaneKey<K>,
    line: Option<Box<Line<T, K>>>,
}

impl<T: Payload, K> Removed<T, K> {
    /// Drops it. Most lanes belong to a key with a single message, and have nothing else to drop.
    #[inline]
    pub fn discard(self) {
        let LaneKey { own, shared } = self.key;
        discard(own);
        if shared.is_some() || self.line.is_some() {
            discard((shared, self.line));
        }
    }
}

/// An evicted message, and its lane if the lane is to be closed.
pub type Evicted<T, K> = (Entry<T, K>, Option<LaneId>);

/// The lanes of one shard, by the seeded hash of their key. The field order matters: together with
/// the lock of the outbox they fill a cache line.
#[repr(C)]
pub struct Lanes<T: Payload, K> {
    table: HashTable<Lane<T, K>>,
    next_number: u64,
    /// The number of messages in all lanes.
    queued: usize,
    /// Empty lines of closed lanes, for the next lanes. Each one holds the one below it.
    spare_lines: Option<Box<Line<T, K>>>,
}

/// The most lines that are kept: only a few, so that a shard without keys in use holds little
/// memory.
const SPARE_LINES: u32 = 4;

/// True for key types whose comparison is a few steps of standard library code.
#[inline]
pub fn is_plain_key<K: 'static>() -> bool {
    let key = TypeId::of::<K>();
    let of_numbers = [
        TypeId::of::<u8>(),
        TypeId::of::<u16>(),
        TypeId::of::<u32>(),
        TypeId::of::<u64>(),
        TypeId::of::<u128>(),
        TypeId::of::<usize>(),
        TypeId::of::<i8>(),
        TypeId::of::<i16>(),
        TypeId::of::<i32>(),
        TypeId::of::<i64>(),
        TypeId::of::<i128>(),
        TypeId::of::<isize>(),
        TypeId::of::<[u8; 16]>(),
    ];
    let of_texts = [
        TypeId::of::<&'static str>(),
        TypeId::of::<String>(),
        TypeId::of::<Box<str>>(),
        TypeId::of::<Arc<str>>(),
    ];
    of_numbers.contains(&key) || of_texts.contains(&key)
}

/// An empty table with more room than this releases its memory.
pub const KEPT_WHEN_EMPTY: usize = 64;

/// The table uses the highest and the lowest bits. A multiplicative hash (Knuth: The Art of
/// Computer Programming 3, 6.4).
#[inline]
fn spread(hash: u32) -> u64 {
    u64::from(hash).wrapping_mul(0x9E37_79B9_7F4A_7C15)
}

/// Each closure is a type of its own: written out at each use, it would have the table compiled
/// once for each.
#[inline]
fn is_named<T: Payload, K>(id: LaneId) -> impl Fn(&Lane<T, K>) -> bool {
    move |lane| lane.id == id
}

#[inline]
fn is_of_hash<T: Payload, K>(hash: u32) -> impl Fn(&Lane<T, K>) -> bool {
    move |lane| lane.id.hash == hash
}

/// Takes a spare line, if there is one.
#[inline]
fn next_spare<T: Payload, K>(spare: &mut Option<Box<Line<T, K>>>) -> Option<Box<Line<T, K>>> {
    let mut line = spare.take()?;
    *spare = line.below.take();
    Some(line)
}

impl<T: Payload, K> Lanes<T, K> {
    /// No lanes.
    pub fn new() -> Self {
        Self { table: HashTable::new(), next_number: 0, queued: 0, spare_lines: None }
    }

    /// The number of messages in all lanes, without lifted ones.
    pub fn queued(&self) -> usize {
        self.queued
    }

    /// The lane of this key. Compares keys, so it is only for types that may be compared under the
    /// lock.
    pub fn of_key(&self, hash: u32, key: Option<&K>) -> Option<LaneId>
    where
        K: PartialEq,
    {
        self.named(hash, &|lane| lane.key.get() == key)
    }

    /// Where a message waits for others of its key, if that key has a lane and no other party has
    /// to know about the message. It compares only keys that may be compared under the lock; with
    /// other keys, the caller has to decide if a lane has this hash.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub fn behind(&mut self, entry: &Entry<T, K>) -> Behind<'_, T, K>
    where
        K: PartialEq + 'static,
    {
        let found = self.table.find_mut(spread(entry.hash), is_of_hash(entry.hash));
        let Some(lane) = found else { return Behind::Nothing };
        let is_of_key = is_plain_key::<K>() && lane.key.get() == entry.key.as_ref();
        if !is_of_key || entry.urgent || !lane.hears_of_nothing() {
            return Behind::Unknown;
        }
        if lane.line.is_none() {
            lane.line = next_spare(&mut self.spare_lines);
        }
        Behind::Lane(LaneEnd { line: lane.line(), queued: &mut self.queued })
    }

    /// The lanes with this hash: their keys may be equal.
    pub fn candidates(&mut self, hash: u32) -> Vec<(LaneId, Arc<K>)> {
        let mut candidates = Vec::new();
        for lane in self.table.iter_hash_mut(spread(hash)) {
            if lane.id.hash == hash
                && let Some(key) = lane.key.share()
            {
                candidates.push((lane.id, key));
            }
        }
        candidates
    }

    /// True if a key with this hash has a lane.
    #[inline]
    pub fn has(&self, hash: u32) -> bool {
        !self.table.is_empty() && self.table.find(spread(hash), is_of_hash(hash)).is_some()
    }

    /// The first lane with this hash that matches.
    fn named(&self, hash: u32, is_such: &dyn Fn(&Lane<T, K>) -> bool) -> Option<LaneId> {
        let found = self.table.find(spread(hash), |lane| lane.id.hash == hash && is_such(lane));
        found.map(|lane| lane.id)
    }

    /// Opens a lane for this key, which must not have one.
    pub fn open(&mut self, hash: u32, key: K, state: LaneState) -> LaneId {
        let id = LaneId { hash, number: self.next_number };
        self.next_number += 1;
        let lane = Lane::new(id, key, state);
        self.table.insert_unique(spread(hash), lane, |lane| spread(lane.id.hash));
        id
    }

    /// Opens a lane for one message without a key. The lane's hash is that of no message without a
    /// key, so a search by such a message's hash does not find the lane.
    pub fn open_keyless(&mut self, state: LaneState) -> LaneId {
        let number = self.next_number | KEYLESS;
        self.next_number += 1;
        let hash = (spread(number as u32) as u32).max(1);
        let id = LaneId { hash, number };
        let lane = Lane { id, key: LaneKey { own: None, shared: None }, state, line: None };
        self.table.insert_unique(spread(hash), lane, |lane| spread(lane.id.hash));
        id
    }

    /// The lane with this name, unless it was closed.
    pub fn get(&mut self, id: LaneId) -> Option<&mut Lane<T, K>> {
        self.table.find_mut(spread(id.hash), is_named(id))
    }

    /// True for a lane that has no owner and may be taken.
    pub fn is_ready(&self, id: LaneId) -> bool {
        let lane = self.table.find(spread(id.hash), is_named(id));
        lane.is_some_and(|lane| lane.state == LaneState::Ready && !lane.is_lifted())
    }

    /// The lane with this hash that this worker runs.
    pub fn run_by(&self, hash: u32, worker: usize) -> Option<LaneId> {
        self.named(hash, &|lane| lane.state == LaneState::Running(worker))
    }

    /// Puts a message into this lane, behind the others of its class. Returns the message as an
    /// error if the lane is gone.
    pub fn push_back(&mut self, id: LaneId, entry: Entry<T, K>) -> Result<(), Entry<T, K>> {
        let lane = self.table.find_mut(spread(id.hash), is_named(id));
        let Some(lane) = lane else { return Err(entry) };
        if lane.line.is_none() {
            lane.line = next_spare(&mut self.spare_lines);
        }
        lane.line().push(entry);
        self.queued += 1;
        Ok(())
    }

    /// Like `push_back`, but before all others.
    pub fn push_front(&mut self, id: LaneId, entry: Entry<T, K>) -> Result<(), Entry<T, K>> {
        match self.get(id) {
            Some(lane) => lane.line().queue.push_front(entry),
            None => return Err(entry),
        }
        self.queued += 1;
        Ok(())
    }

    /// Undoes a [`pop_front`](Self::pop_front). Returns the message as an error if the lane is
    /// gone.
    pub fn unpop(&mut self, id: LaneId, entry: Entry<T, K>) -> Result<(), Entry<T, K>> {
        match self.get(id) {
            Some(lane) => lane.line().unpop(entry),
            None => return Err(entry),
        }
        self.queued += 1;
        Ok(())
    }

    /// Like `push_front`, for several messages, in order.
    pub fn put_first(
        &mut self,
        id: LaneId,
        mut entries: Deque<Entry<T, K>>,
    ) -> Result<(), Deque<Entry<T, K>>> {
        let Some(lane) = self.table.find_mut(spread(id.hash), is_named(id)) else {
            return Err(entries);
        };
        self.queued += entries.len();
        let queue = &mut lane.line().queue;
        entries.append(queue);
        *queue = entries;
        Ok(())
    }

    /// Takes out the next message of this lane.
    pub fn pop_front(&mut self, id: LaneId) -> Option<Entry<T, K>> {
        let entry = self.get(id)?.line.as_mut()?.pop()?;
        self.queued -= 1;
        Some(entry)
    }

    /// Removes a lane, unless its messages are lifted. The result holds user data: drop it outside
    /// the lock.
    pub fn close(&mut self, id: LaneId) -> Option<Lane<T, K>> {
        let found = self.table.find_entry(spread(id.hash), is_named(id)).ok()?;
        if found.get().is_lifted() {
            return None;
        }
        let (mut lane, _) = found.remove();
        self.queued -= lane.len();
        self.tidy(&mut lane.line);
        Some(lane)
    }

    /// Takes out the next message of this lane if it `may`, or removes the lane if it is empty.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub fn pop_or_close(&mut self, id: LaneId, may: bool) -> InOwnLane<T, K> {
        let found = self.table.find_entry(spread(id.hash), is_named(id));
        let Ok(mut found) = found else { return InOwnLane::Closed(None) };
        if let Some(line) = &mut found.get_mut().line {
            if line.lifted > 0 && line.queue.is_empty() || !may && !line.queue.is_empty() {
                return InOwnLane::Stays;
            }
            if let Some(entry) = line.pop() {
                self.queued -= 1;
                return InOwnLane::Next(entry);
            }
        }
        let (Lane { key, mut line, .. }, _) = found.remove();
        self.tidy(&mut line);
        InOwnLane::Closed(Some(Removed { key, line }))
    }

    /// Keeps or drops the line of a lane that was removed.
    #[inline]
    fn tidy(&mut self, line: &mut Option<Box<Line<T, K>>>) {
        if self.table.is_empty() && self.table.capacity() > KEPT_WHEN_EMPTY {
            self.table = HashTable::new();
        }
        if line.as_ref().is_some_and(|line| line.is_spare()) {
            self.keep(line);
        }
    }

    fn keep(&mut self, line: &mut Option<Box<Line<T, K>>>) {
        let below = self.spare_lines.as_ref().map_or(0, |spare| spare.spares);
        if below < SPARE_LINES
            && let Some(mut line) = line.take()
        {
            (line.spares, line.below) = (below + 1, self.spare_lines.take());
            self.spare_lines = Some(line);
        }
    }

    /// Takes out the waiting messages of each lane, in order, to be examined under no lock.
    pub fn lift(&mut self) -> Vec<LiftedLine<T, K>> {
        let mut lines = Vec::new();
        for lane in &mut self.table {
            if let Some(line) = &mut lane.line
                && !line.queue.is_empty()
            {
                (line.lifted, line.urgent) = (line.queue.len(), 0);
                let messages = std::mem::take(&mut line.queue);
                lines.push(LiftedLine { id: lane.id, lifted: messages.len(), messages });
            }
        }
        self.queued = 0;
        lines
    }

    /// Puts back the messages of a lane that stay. Returns them as an error if the lane is gone
    /// because the pool was emptied in between.
    pub fn set_down(
        &mut self,
        id: LaneId,
        stay: Deque<Entry<T, K>>,
    ) -> Result<(), Deque<Entry<T, K>>> {
        let messages = stay.len();
        match self.get(id) {
            Some(lane) => lane.line().set_down(stay),
            None => return Err(stay),
        }
        self.queued += messages;
        Ok(())
    }

    /// Takes every message that waits here, in order within a lane, and every lane that no worker
    /// runs. Lanes hold keys: drop them outside the lock. Returns the number of messages that held
    /// no permit, including lifted ones.
    pub fn drain(
        &mut self,
        entries: &mut Deque<Entry<T, K>>,
        unowned: &mut Vec<Lane<T, K>>,
    ) -> usize {
        let (mut apart, mut closed) = (0, Vec::new());
        self.queued = 0;
        for lane in &mut self.table {
            if !matches!(lane.state, LaneState::Running(_)) {
                closed.push(lane.id);
            }
            if lane.is_apart() {
                apart += lane.len();
            }
            if let Some(line) = &mut lane.line {
                line.urgent = 0;
                entries.append(&mut line.queue);
            }
        }
        for id in closed {
            if let Ok(lane) = self.table.find_entry(spread(id.hash), is_named(id)) {
                unowned.push(lane.remove().0);
            }
        }
        apart
    }

    /// Takes the first message that waits in some lane and has not been attempted (an urgent or a
    /// normal one), for a sender that needs its room. Also names the lane if no worker runs it and
    /// it is empty now: the caller closes it.
    pub fn evict(&mut self, urgent: bool) -> Option<Evicted<T, K>> {
        for lane in &mut self.table {
            // Messages without a permit free no room.
            if !lane.is_apart()
                && let Some(entry) = lane.evict(urgent)
            {
                self.queued -= 1;
                let emptied = lane.state == LaneState::Ready && lane.is_empty();
                return Some((entry, emptied.then_some(lane.id)));
            }
        }
        None
    }

    /// Like `evict`, for a normal message of a lane with this hash that is not ready: a ready lane
    /// might be left without a message.
    pub fn evict_of(&mut self, hash: u32) -> Option<Entry<T, K>> {
        for lane in self.table.iter_hash_mut(spread(hash)) {
            if lane.id.hash == hash
                && lane.state != LaneState::Ready
                && !lane.is_apart()
                && let Some(entry) = lane.evict(false)
            {
                self.queued -= 1;
                return Some(entry);
            }
        }
        None
    }

    /// The time when the longest-waiting message of all lanes was queued.
    pub fn oldest(&self) -> Option<Stamp> {
        let mut oldest = None;
        for lane in &self.table {
            oldest = Stamp::earliest(&[oldest, first(lane.iter())]);
        }
        oldest
    }

    /// True if there is no lane.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.table.is_empty()
    }

    /// Counts the waiting messages of the lanes by their keys.
    pub fn count_into(&self, backlog: &mut Backlog) {
        for lane in &self.table {
            for entry in lane.iter() {
                backlog.count_of(lane.id.hash, entry);
            }
            if lane.state == LaneState::Parked {
                backlog.park(lane.id.hash);
            }
        }
    }

    /// Takes out the messages that have failed for good: one, or several of a batch, perhaps among
    /// others that have attempts left.
    pub fn take_failed(&mut self, id: LaneId) -> Deque<Entry<T, K>> {
        let (mut failed, mut place) = (Deque::new(), 0);
        let Some(line) = self.get(id).and_then(|lane| lane.line.as_mut()) else { return failed };
        while let Some(entry) = line.queue.get(place)
            && entry.is_retry()
        {
            if !entry.has_failed_for_good() {
                place += 1;
            } else if let Some(entry) = line.queue.remove(place) {
                failed.push_back(entry);
            }
        }
        self.queued -= failed.len();
        failed
    }

    /// Takes out everything that waits in a lane.
    pub fn empty(&mut self, id: LaneId) -> Deque<Entry<T, K>> {
        let Some(line) = self.get(id).and_then(|lane| lane.line.as_mut()) else {
            return Deque::new();
        };
        (line.urgent, line.urgent_run) = (0, 0);
        let all = std::mem::take(&mut line.queue);
        self.queued -= all.len();
        all
    }

    /// Iterates over the lanes in no particular order.
    pub fn iter(&self) -> impl Iterator<Item = &Lane<T, K>> {
        self.table.iter()
    }

    /// Like `iter`, but mutable.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut Lane<T, K>> {
        self.table.iter_mut()
    }

    /// True if another lane with the hash of this one is parked too.
    pub fn has_other_parked(&self, id: LaneId) -> bool {
        let other = |lane: &Lane<T, K>| lane.id != id && lane.state == LaneState::Parked;
        self.named(id.hash, &other).is_some()
    }

    /// The number of lanes that the table has room for.
    pub fn room(&self) -> usize {
        self.table.capacity()
    }
}
