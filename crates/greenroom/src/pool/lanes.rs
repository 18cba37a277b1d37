//! Lanes: the places in line behind keys that wait.
//!
//! A lane exists only for a key whose message is suspended, waits for a retry, or has given way to others. Its state
//! says who owns the key:
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
//! Lanes are found by the hash of their key; keys themselves are compared by the caller, outside the lock, because
//! comparing runs user code.

use std::{
    collections::{HashMap, VecDeque},
    sync::Arc,
};

use super::{
    crowd::Crowd,
    entry::{Entry, first},
    failed::Failed,
    stamp::Stamp,
};
use crate::{Class, class::URGENT_RUN, sync::Notify};

/// The name of a lane within its shard: the hash of its key and a number that is never used again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LaneId {
    pub(crate) hash: u32,
    number: u64,
}

/// Who owns the key of a lane.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LaneState {
    /// This worker has a message of the key in hand. Left by close, give way, park.
    Running(usize),
    /// The clock does: the first message waits for its next attempt. Left by the timer, or by a stop.
    Retrying,
    /// An operator does: a message has failed for good, the first one where it is still there. Left by the operator, or by a
    /// stop.
    Parked,
    /// Nobody does; it stands in the shard's list of ready lanes. Left when a worker takes it, or by a stop.
    Ready,
}

pub(crate) struct Lane<M, R, E, K> {
    pub(crate) id: LaneId,
    pub(crate) key: Arc<K>,
    pub(crate) state: LaneState,
    /// Later messages of the key, in order of acceptance; the first may be one that waits for another attempt.
    pub(crate) queue: VecDeque<Entry<M, R, E, K>>,
    /// How many of them are urgent and have not been attempted: they stand before the others.
    urgent: usize,
    /// Urgent messages taken in a row.
    urgent_run: u32,
    /// Who is told when so many messages wait: a worker that collects a batch.
    pub(crate) wanted: Option<(usize, Arc<Notify>)>,
    /// Why it is parked, where it is.
    pub(crate) failed: Option<Arc<Failed<E>>>,
    /// It is parked, and what waits in it holds no permit. Set and cleared by whoever gives the
    /// permits of the whole lane back or takes them again, under the same lock: else a permit is
    /// counted twice, or never.
    pub(crate) apart: bool,
}

impl<M, R, E, K> Lane<M, R, E, K> {
    /// Puts a message into line: behind the urgent ones where it is one, and never before one that waits for another attempt.
    fn push(&mut self, entry: Entry<M, R, E, K>) {
        if entry.class == Class::Normal {
            return self.queue.push_back(entry);
        }
        self.queue.insert(self.retried() + self.urgent, entry);
        self.urgent += 1;
    }

    /// True when the first message is urgent, or waits for another attempt and an urgent one is behind it.
    pub(crate) fn is_urgent(&self) -> bool {
        self.urgent > 0 || self.queue.front().is_some_and(|first| first.class == Class::Urgent)
    }

    /// Who is to be told that enough wait, once, under no lock.
    pub(crate) fn is_as_long_as_wanted(&mut self) -> Option<Arc<Notify>> {
        let (wanted, _) = self.wanted.as_ref()?;
        (self.queue.len() >= *wanted).then(|| self.wanted.take())?.map(|(_, full)| full)
    }

    /// Messages that wait for another attempt: they stand before all others.
    pub(crate) fn retried(&self) -> usize {
        self.queue.iter().take_while(|entry| entry.is_retry()).count()
    }

    fn evict(&mut self, class: Class) -> Option<Entry<M, R, E, K>> {
        let retried = self.retried();
        if class == Class::Normal {
            return self.queue.remove(retried + self.urgent);
        }
        self.urgent = self.urgent.checked_sub(1)?;
        self.queue.remove(retried)
    }

    /// The first message; but a normal one after a run of urgent ones.
    fn pop(&mut self) -> Option<Entry<M, R, E, K>> {
        let first = self.queue.front()?;
        if first.is_retry() {
            return self.queue.pop_front();
        }
        if self.urgent == 0 || self.urgent_run >= URGENT_RUN && self.urgent < self.queue.len() {
            self.urgent_run = 0;
            return self.queue.remove(self.urgent);
        }
        self.urgent -= 1;
        self.urgent_run += 1;
        self.queue.pop_front()
    }
}

/// A message that was evicted, and its lane where that is to be closed.
pub(crate) type Evicted<M, R, E, K> = (Entry<M, R, E, K>, Option<LaneId>);

/// Lanes by the hash of their key, which is seeded already. Few chains are longer than one.
type ByHash<L> = HashMap<u32, Vec<L>, foldhash::fast::FixedState>;

/// The lanes of one shard.
pub(crate) struct Lanes<M, R, E, K> {
    by_hash: ByHash<Lane<M, R, E, K>>,
    next_number: u64,
    /// Messages in all lanes.
    queued: usize,
}

/// With more room than this, an empty table gives its memory back.
pub(crate) const KEPT_WHEN_EMPTY: usize = 64;

impl<M, R, E, K> Lanes<M, R, E, K> {
    pub(crate) fn new() -> Self {
        Self { by_hash: HashMap::default(), next_number: 0, queued: 0 }
    }

    pub(crate) fn queued(&self) -> usize {
        self.queued
    }

    /// The lanes whose keys may equal one with this hash.
    pub(crate) fn candidates(&self, hash: u32) -> Vec<(LaneId, Arc<K>)> {
        let chain = self.by_hash.get(&hash);
        chain.into_iter().flatten().map(|lane| (lane.id, lane.key.clone())).collect()
    }

    pub(crate) fn has(&self, hash: u32) -> bool {
        self.by_hash.contains_key(&hash)
    }

    pub(crate) fn open(&mut self, hash: u32, key: Arc<K>, state: LaneState) -> LaneId {
        let id = LaneId { hash, number: self.next_number };
        self.next_number += 1;
        let lane = Lane {
            id,
            key,
            state,
            queue: VecDeque::new(),
            urgent: 0,
            urgent_run: 0,
            wanted: None,
            failed: None,
            apart: false,
        };
        self.by_hash.entry(hash).or_default().push(lane);
        id
    }

    pub(crate) fn get(&mut self, id: LaneId) -> Option<&mut Lane<M, R, E, K>> {
        self.by_hash.get_mut(&id.hash)?.iter_mut().find(|lane| lane.id == id)
    }

    /// True for a lane that nobody owns.
    pub(crate) fn is_ready(&self, id: LaneId) -> bool {
        let lane = self.by_hash.get(&id.hash).and_then(|chain| chain.iter().find(|l| l.id == id));
        lane.is_some_and(|lane| lane.state == LaneState::Ready)
    }

    /// The lane with this hash that this worker runs.
    pub(crate) fn run_by(&self, hash: u32, worker: usize) -> Option<LaneId> {
        let chain = self.by_hash.get(&hash)?;
        chain.iter().find(|lane| lane.state == LaneState::Running(worker)).map(|lane| lane.id)
    }

    pub(crate) fn push_back(
        &mut self,
        id: LaneId,
        entry: Entry<M, R, E, K>,
    ) -> Result<(), Entry<M, R, E, K>> {
        match self.get(id) {
            Some(lane) => lane.push(entry),
            None => return Err(entry),
        }
        self.queued += 1;
        Ok(())
    }

    pub(crate) fn push_front(
        &mut self,
        id: LaneId,
        entry: Entry<M, R, E, K>,
    ) -> Result<(), Entry<M, R, E, K>> {
        match self.get(id) {
            Some(lane) => lane.queue.push_front(entry),
            None => return Err(entry),
        }
        self.queued += 1;
        Ok(())
    }

    pub(crate) fn pop_front(&mut self, id: LaneId) -> Option<Entry<M, R, E, K>> {
        let entry = self.get(id)?.pop()?;
        self.queued -= 1;
        Some(entry)
    }

    /// Removes a lane. What is returned holds user data: drop it outside the lock.
    pub(crate) fn close(&mut self, id: LaneId) -> Option<Lane<M, R, E, K>> {
        let chain = self.by_hash.get_mut(&id.hash)?;
        let place = chain.iter().position(|lane| lane.id == id)?;
        let lane = chain.swap_remove(place);
        if chain.is_empty() {
            self.by_hash.remove(&id.hash);
        }
        if self.by_hash.is_empty() && self.by_hash.capacity() > KEPT_WHEN_EMPTY {
            self.by_hash = HashMap::default();
        }
        self.queued -= lane.queue.len();
        Some(lane)
    }

    /// Takes every message that waits here, in order within a lane, and every lane that nobody runs. What is returned
    /// holds keys: drop it outside the lock.
    pub(crate) fn drain(&mut self, into: &mut Vec<Entry<M, R, E, K>>) -> Vec<Lane<M, R, E, K>> {
        self.queued = 0;
        let mut unowned = Vec::new();
        for chain in self.by_hash.values_mut() {
            chain.iter_mut().for_each(|lane| {
                lane.urgent = 0;
                into.extend(lane.queue.drain(..));
            });
            let running = |lane: &mut Lane<_, _, _, _>| matches!(lane.state, LaneState::Running(_));
            unowned.extend(chain.extract_if(.., |lane| !running(lane)));
        }
        self.by_hash.retain(|_, chain| !chain.is_empty());
        unowned
    }

    /// Takes a message of this class that has waited in some lane without having been attempted: the first of them. For who
    /// needs its room. Names the lane where nobody runs it and nothing is left in it: the caller closes it.
    pub(crate) fn evict(&mut self, class: Class) -> Option<Evicted<M, R, E, K>> {
        // What holds no room makes none.
        let mut lanes = self.by_hash.values_mut().flatten().filter(|lane| !lane.apart);
        let evicted = lanes.find_map(|lane| {
            let entry = lane.evict(class)?;
            let emptied = lane.state == LaneState::Ready && lane.queue.is_empty();
            Some((entry, emptied.then_some(lane.id)))
        })?;
        self.queued -= 1;
        Some(evicted)
    }

    /// As `evict`, a normal message of a lane with this hash that is not ready: one that is may be left without a message.
    pub(crate) fn evict_of(&mut self, hash: u32) -> Option<Entry<M, R, E, K>> {
        let chain = self.by_hash.get_mut(&hash)?;
        let mut owned =
            chain.iter_mut().filter(|lane| lane.state != LaneState::Ready && !lane.apart);
        let entry = owned.find_map(|lane| lane.evict(Class::Normal))?;
        self.queued -= 1;
        Some(entry)
    }

    /// When the message was queued that has waited longest in a lane.
    pub(crate) fn oldest(&self) -> Option<Stamp> {
        let lanes = self.by_hash.values().flatten();
        lanes.filter_map(|lane| first(lane.queue.iter())).min_by_key(|stamp| stamp.nanos())
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.by_hash.is_empty()
    }

    /// Counts what waits in lanes by its keys.
    pub(crate) fn count_into(&self, crowd: &mut Crowd) {
        for lane in self.by_hash.values().flatten() {
            lane.queue.iter().for_each(|entry| crowd.count_of(lane.id.hash, entry));
            if lane.state == LaneState::Parked {
                crowd.park(lane.id.hash);
            }
        }
    }

    /// Takes out what has failed for good: one message, or several of a batch, perhaps among others that have attempts left.
    pub(crate) fn take_failed(&mut self, id: LaneId) -> Vec<Entry<M, R, E, K>> {
        let Some(lane) = self.get(id) else { return Vec::new() };
        let (mut failed, retried) = (Vec::new(), lane.retried());
        for entry in lane.queue.drain(..retried).collect::<Vec<_>>().into_iter().rev() {
            match entry.has_failed_for_good() {
                true => failed.push(entry),
                false => lane.queue.push_front(entry),
            }
        }
        failed.reverse();
        self.queued -= failed.len();
        failed
    }

    /// Takes out everything that waits in a lane.
    pub(crate) fn empty(&mut self, id: LaneId) -> Vec<Entry<M, R, E, K>> {
        let Some(lane) = self.get(id) else { return Vec::new() };
        (lane.urgent, lane.urgent_run) = (0, 0);
        let all: Vec<_> = lane.queue.drain(..).collect();
        self.queued -= all.len();
        all
    }

    /// Messages that hold no permit.
    pub(crate) fn apart(&self) -> usize {
        self.iter().filter(|lane| lane.apart).map(|lane| lane.queue.len()).sum()
    }

    /// Every lane, in no order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Lane<M, R, E, K>> {
        self.by_hash.values().flatten()
    }

    /// True where another lane with the hash of this one is parked too.
    pub(crate) fn has_other_parked(&self, id: LaneId) -> bool {
        let chain = self.by_hash.get(&id.hash).into_iter().flatten();
        chain.into_iter().any(|lane| lane.id != id && lane.state == LaneState::Parked)
    }

    /// How many lanes the table has room for.
    #[cfg(test)]
    pub(crate) fn room(&self) -> usize {
        self.by_hash.capacity()
    }
}
