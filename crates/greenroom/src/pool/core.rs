//! What the senders, the workers and the clock of one pool share.

use std::{
    hash::{BuildHasher, Hash},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering},
    },
};

use parking_lot::Mutex;
use tokio::{sync::Notify, task::JoinHandle};

use super::{
    clock::Clock,
    entry::Entry,
    hold::Source,
    lanes::{LaneId, LaneState},
    permits::Permits,
    shard::Shard,
    tally::{PoolTally, WorkerTally},
    wake::Wake,
};
use crate::{Actor, DeadLetter, FailurePolicy, delivery::Extra};

/// Messages that one worker takes from a shard before it lets the runtime run other tasks.
const BUDGET: u32 = 64;

/// Messages of one key in a row while others are ready (K04).
const QUOTA: u32 = 16;

pub(crate) type Queued<A, K> =
    Entry<<A as Actor>::Message, <A as Actor>::Reply, <A as Actor>::Error, K>;

pub(crate) type ShardOf<A, K> =
    Shard<<A as Actor>::Message, <A as Actor>::Reply, <A as Actor>::Error, K>;

type KeyOf<A, K> = Box<dyn Fn(&<A as Actor>::Message) -> Option<K> + Send + Sync>;
type OnDeadLetter<A> =
    Box<dyn Fn(DeadLetter<<A as Actor>::Message, <A as Actor>::Error>) + Send + Sync>;

/// What the builder has settled.
pub(crate) struct Settings<A: Actor, K> {
    pub(crate) name: Arc<str>,
    pub(crate) workers: usize,
    pub(crate) capacity: usize,
    /// `None` for a pool without order.
    pub(crate) key_of: Option<KeyOf<A, K>>,
    pub(crate) policy: Box<dyn FailurePolicy<A::Error>>,
    /// How to copy a message before its first attempt, where another attempt may be asked for.
    pub(crate) copy: Option<fn(&A::Message) -> A::Message>,
    pub(crate) poison_limit: u32,
    pub(crate) restarts: super::restart::Restarts,
    pub(crate) on_dead_letter: Option<OnDeadLetter<A>>,
    pub(crate) seed: u64,
}

pub(crate) struct Core<A: Actor, K> {
    pub(crate) settings: Settings<A, K>,
    pub(crate) shards: Box<[ShardOf<A, K>]>,
    pub(crate) permits: Permits,
    pub(crate) wake: Wake,
    pub(crate) clock: Clock<A, K>,
    /// One per worker, written by it alone.
    pub(crate) tallies: Box<[WorkerTally]>,
    pub(crate) tally: PoolTally,
    /// Messages given back because the pool stopped while they were in hand.
    pub(crate) left_over: Mutex<Vec<A::Message>>,
    /// The pool accepts nothing any more.
    pub(crate) closing: AtomicBool,
    /// All is done: idle workers end.
    pub(crate) ended: AtomicBool,
    /// Told by a worker that found nothing to do while the pool was closing.
    pub(crate) progress: Notify,
    /// Workers whose slot is not disabled.
    pub(crate) live: AtomicUsize,
    /// Addresses in existence; the last one dropped drains and stops the pool.
    pub(crate) handles: AtomicUsize,
    /// Which shard the next address sends to, where messages have no key.
    pub(crate) next_sender: AtomicU32,
    pub(crate) tasks: tokio::sync::Mutex<Vec<JoinHandle<()>>>,
    /// Where the pool was spawned.
    pub(crate) runtime: tokio::runtime::Handle,
    hasher: foldhash::quality::SeedableRandomState,
    chance: AtomicU64,
}

/// Keyed pools: one bit of the ready map each.
const SHARDS: usize = 64;

impl<A: Actor, K: Hash + Eq + Send + Sync + 'static> Core<A, K> {
    pub(crate) fn new(
        settings: Settings<A, K>,
        awake_limit: usize,
        runtime: tokio::runtime::Handle,
    ) -> Self {
        // One worker has one queue, so that the order of one sender, and of all, is the order of handling.
        let shards = match (settings.workers, settings.key_of.is_some()) {
            (1, _) => 1,
            (_, true) => SHARDS,
            (workers, false) => workers.next_power_of_two().min(SHARDS),
        };
        Self {
            shards: (0..shards).map(|_| Shard::new()).collect(),
            permits: Permits::new(settings.capacity),
            wake: Wake::new(settings.workers, awake_limit),
            clock: Clock::new(),
            tallies: (0..settings.workers).map(|_| WorkerTally::default()).collect(),
            tally: PoolTally::default(),
            left_over: Mutex::default(),
            closing: AtomicBool::new(false),
            ended: AtomicBool::new(false),
            progress: Notify::new(),
            live: AtomicUsize::new(settings.workers),
            handles: AtomicUsize::new(0),
            next_sender: AtomicU32::new(0),
            tasks: tokio::sync::Mutex::default(),
            hasher: foldhash::quality::SeedableRandomState::with_seed(
                settings.seed,
                foldhash::SharedSeed::global_random(),
            ),
            chance: AtomicU64::new(settings.seed),
            runtime,
            settings,
        }
    }

    /// True where only the holder of a shard's token may take from its queue.
    fn keyed(&self) -> bool {
        self.settings.key_of.is_some()
    }

    /// A random number between 0 and 1, for jitter (Steele, Lea, Flood: SplitMix64, OOPSLA 2014).
    pub(crate) fn chance(&self) -> f64 {
        let mut z = self.chance.fetch_add(0x9E37_79B9_7F4A_7C15, Ordering::Relaxed);
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        ((z ^ (z >> 31)) >> 11) as f64 / (1u64 << 53) as f64
    }

    /// The key of a message and the hash of that key. Runs user code: call it before admission, under no lock.
    pub(crate) fn key(&self, message: &A::Message) -> (Option<K>, u32) {
        let key = self.settings.key_of.as_ref().and_then(|key_of| key_of(message));
        let hash = key.as_ref().map_or(0, |key| (self.hasher.hash_one(key) >> 32) as u32);
        (key, hash)
    }

    /// Queues a message whose permit has been taken. Gives it back when the pool is closing.
    pub(crate) fn push(&self, entry: Queued<A, K>, sender: u32) -> Result<(), Queued<A, K>> {
        if let Some(index) = self.push_quietly(entry, sender)? {
            self.announce(index);
        }
        Ok(())
    }

    /// As `push`, but leaves it to the caller to announce the shard that is returned, whatever happens.
    pub(crate) fn push_quietly(
        &self,
        entry: Queued<A, K>,
        sender: u32,
    ) -> Result<Option<usize>, Queued<A, K>> {
        let place = if entry.key.is_some() { entry.hash } else { sender };
        let index = place as usize & (self.shards.len() - 1);
        let mut inbox = self.shards[index].inbox.lock();
        if inbox.closed {
            return Err(entry);
        }
        inbox.queue.push_back(entry);
        inbox.accepted += 1;
        let scheduled = std::mem::replace(&mut inbox.scheduled, true);
        Ok((!scheduled).then_some(index))
    }

    /// Marks a shard as ready and wakes a worker for it. Not for workers that go on to look for work themselves.
    pub(crate) fn announce(&self, index: usize) {
        self.wake.mark(index);
        self.wake.one(&self.clock.bell);
    }

    /// Looks for work in every ready shard, beginning behind the one that was served last.
    pub(crate) fn take(&self, worker: usize, cursor: &mut u32) -> Option<(Source, Queued<A, K>)> {
        while let Some(index) = self.wake.claim(*cursor) {
            *cursor = (index as u32 + 1) % 64;
            if let Some(work) = self.take_from(index, worker) {
                return Some(work);
            }
        }
        None
    }

    fn take_from(&self, index: usize, worker: usize) -> Option<(Source, Queued<A, K>)> {
        let shard = &self.shards[index];
        let mut outbox = shard.outbox.lock();
        let may_drain = outbox.token.is_none();
        let queue_first = outbox.queue_first && may_drain && shard.refill(&mut outbox);
        if !queue_first && let Some(id) = outbox.ready.pop_front() {
            outbox.queue_first = true;
            if let Some(lane) = outbox.lanes.get(id) {
                lane.state = LaneState::Running(worker);
            }
            let entry = outbox.lanes.pop_front(id);
            let more = !outbox.ready.is_empty() || (may_drain && shard.refill(&mut outbox));
            drop(outbox);
            if more {
                self.wake.mark(index);
            }
            return entry.map(|entry| (Source::Lane { index, id, run: 0 }, entry));
        }
        outbox.queue_first = false;
        if !may_drain {
            return None;
        }
        if !self.keyed() {
            shard.refill(&mut outbox);
            let entry = outbox.queue.pop_front()?;
            let more = !outbox.ready.is_empty() || shard.refill(&mut outbox);
            drop(outbox);
            if more {
                self.wake.mark(index);
            }
            return Some((Source::Shared { index, run: 0 }, entry));
        }
        let epoch = outbox.grant(worker);
        let others = !outbox.ready.is_empty();
        drop(outbox);
        if others {
            self.wake.mark(index);
        }
        self.advance(index, epoch, 0)
    }

    /// Takes the next message that may run, as the holder of the shard's token. Messages whose key is busy go to that
    /// key's lane. Gives the token back when there is nothing.
    fn advance(&self, index: usize, epoch: u64, run: u32) -> Option<(Source, Queued<A, K>)> {
        let shard = &self.shards[index];
        let mut finished = None;
        loop {
            let mut outbox = shard.outbox.lock();
            if !shard.refill(&mut outbox) {
                finished = outbox.token.take().or(finished);
                drop(outbox);
                drop(finished);
                return None;
            }
            let mut entry = outbox.queue.pop_front()?;
            let waits = entry.key.is_some() && outbox.lanes.has(entry.hash);
            if waits {
                let candidates = outbox.lanes.candidates(entry.hash);
                let before = outbox.held(epoch).and_then(|token| {
                    token.comparing = true;
                    token.in_hand.take()
                });
                drop(outbox);
                drop(before);
                let lane = find_lane(&candidates, entry.key.as_ref());
                drop(candidates);
                outbox = shard.outbox.lock();
                if let Some(token) = outbox.held(epoch) {
                    token.comparing = false;
                }
                // The lane may have closed meanwhile: then the key is free. None can have opened, because only the
                // holder of the token opens lanes for messages of this queue.
                if let Some(id) = lane {
                    match outbox.lanes.push_back(id, entry) {
                        Ok(()) => continue,
                        Err(unqueued) => entry = unqueued,
                    }
                }
            }
            if outbox.exceeds(&entry, QUOTA) {
                outbox.stand_aside(entry);
                self.wake.mark(index);
                continue;
            }
            let key = entry.key.take().map(|key| (entry.hash, key));
            let hash = key.as_ref().map(|(hash, _)| *hash);
            let before = outbox.held(epoch).and_then(|token| {
                token.taken += 1;
                std::mem::replace(&mut token.in_hand, key)
            });
            drop(outbox);
            drop(before);
            return Some((Source::Head { index, epoch, hash, run }, entry));
        }
    }

    /// The next message from where the last one came from, or `None` when its place has been given up.
    pub(crate) fn next(&self, worker: usize, source: Source) -> Option<(Source, Queued<A, K>)> {
        match source {
            Source::None => None,
            Source::Shared { index, run } if run < BUDGET => {
                let (mut source, entry) = self.take_from(index, worker)?;
                if let Source::Shared { run: next, .. } = &mut source {
                    *next = run + 1;
                }
                Some((source, entry))
            }
            Source::Shared { .. } => None,
            Source::Head { index, epoch, run, .. } if run < BUDGET => {
                let mut outbox = self.shards[index].outbox.lock();
                if outbox.held(epoch).is_some() {
                    drop(outbox);
                    return self.advance(index, epoch, run + 1);
                }
                drop(outbox);
                self.next(worker, self.demote(worker, source))
            }
            Source::Head { .. } => {
                self.release(worker, source);
                None
            }
            Source::Lane { index, id, run } => self.next_in_lane(index, id, run),
        }
    }

    fn next_in_lane(&self, index: usize, id: LaneId, run: u32) -> Option<(Source, Queued<A, K>)> {
        let mut outbox = self.shards[index].outbox.lock();
        let others = !outbox.ready.is_empty() || !outbox.queue.is_empty() || self.wake.any_ready();
        if run + 1 >= QUOTA && others {
            drop(outbox);
            self.release_lane(index, id);
            return None;
        }
        if let Some(entry) = outbox.lanes.pop_front(id) {
            return Some((Source::Lane { index, id, run: run + 1 }, entry));
        }
        let closed = outbox.lanes.close(id);
        drop(outbox);
        drop(closed);
        None
    }

    /// What a holder has become whose token was taken away: the runner of its key's lane, or of nothing.
    fn demote(&self, worker: usize, source: Source) -> Source {
        let Source::Head { index, hash, .. } = source else { return source };
        let outbox = self.shards[index].outbox.lock();
        match hash.and_then(|hash| outbox.lanes.run_by(hash, worker)) {
            Some(id) => Source::Lane { index, id, run: 0 },
            None => Source::None,
        }
    }

    /// The handler of a message suspends: its key gets a lane, and the shard is passed on to others.
    pub(crate) fn suspend(&self, worker: usize, source: Source) -> Source {
        let Source::Head { index, epoch, .. } = source else { return source };
        let shard = &self.shards[index];
        let mut outbox = shard.outbox.lock();
        if outbox.held(epoch).is_none() {
            drop(outbox);
            return self.demote(worker, source);
        }
        let lane = outbox.pass_on();
        let more = shard.refill(&mut outbox);
        drop(outbox);
        if more {
            self.wake.mark(index);
        }
        lane.map_or(Source::None, |id| Source::Lane { index, id, run: 0 })
    }

    /// Gives up the place that a worker works from: after a panic, a kill, or a full budget.
    pub(crate) fn release(&self, worker: usize, source: Source) {
        match source {
            Source::None | Source::Shared { .. } => {}
            Source::Lane { index, id, .. } => self.release_lane(index, id),
            Source::Head { index, epoch, .. } => {
                let shard = &self.shards[index];
                let mut outbox = shard.outbox.lock();
                if outbox.held(epoch).is_none() {
                    drop(outbox);
                    return self.release(worker, self.demote(worker, source));
                }
                let token = outbox.token.take();
                let more = shard.refill(&mut outbox);
                drop(outbox);
                drop(token);
                if more {
                    self.wake.mark(index);
                }
            }
        }
    }

    fn release_lane(&self, index: usize, id: LaneId) {
        let mut outbox = self.shards[index].outbox.lock();
        let Some(lane) = outbox.lanes.get(id) else { return };
        if lane.queue.is_empty() {
            let closed = outbox.lanes.close(id);
            drop(outbox);
            drop(closed);
            return;
        }
        lane.state = LaneState::Ready;
        outbox.ready.push_back(id);
        drop(outbox);
        self.wake.mark(index);
    }

    /// Puts a message that is to be attempted again at the head of its key's lane, owned by the clock until `after` has
    /// passed. A message without a key waits alone. The worker's place stays its own.
    pub(crate) fn park(
        &self,
        worker: usize,
        source: Source,
        entry: Queued<A, K>,
        after: std::time::Duration,
    ) -> Source {
        self.permits.take_back();
        self.tally.waiting.fetch_add(1, Ordering::Relaxed);
        let source = match source {
            Source::Head { index, epoch, .. } => {
                let mut outbox = self.shards[index].outbox.lock();
                let held = outbox.held(epoch).map(|token| token.in_hand.take());
                match held {
                    Some(Some((hash, key))) => {
                        let id = outbox.lanes.open(hash, Arc::new(key), LaneState::Parked);
                        let unplaced = outbox.lanes.push_front(id, entry);
                        drop(outbox);
                        debug_assert!(unplaced.is_ok(), "a lane just opened is there");
                        self.clock.park_lane(index, id, after);
                        return source;
                    }
                    Some(None) => {
                        drop(outbox);
                        self.clock.park_message(index, entry, after);
                        return source;
                    }
                    None => {
                        drop(outbox);
                        self.demote(worker, source)
                    }
                }
            }
            other => other,
        };
        match source {
            Source::Lane { index, id, .. } => {
                let mut outbox = self.shards[index].outbox.lock();
                let unplaced = outbox.lanes.push_front(id, entry);
                if let Some(lane) = outbox.lanes.get(id) {
                    lane.state = LaneState::Parked;
                }
                drop(outbox);
                debug_assert!(unplaced.is_ok(), "a lane that is run is there");
                self.clock.park_lane(index, id, after);
            }
            Source::Shared { index, .. } => {
                self.clock.park_message(index, entry, after);
                return source;
            }
            Source::None | Source::Head { .. } => self.clock.park_message(0, entry, after),
        }
        Source::None
    }

    /// A lane's wait is over.
    pub(crate) fn wake_lane(&self, index: usize, id: LaneId) {
        let mut outbox = self.shards[index].outbox.lock();
        match outbox.lanes.get(id) {
            Some(lane) if lane.state == LaneState::Parked => lane.state = LaneState::Ready,
            _ => return,
        }
        outbox.ready.push_back(id);
        drop(outbox);
        self.announce(index);
    }

    /// A message without a key has waited for its next attempt: it goes to the front.
    pub(crate) fn wake_message(&self, index: usize, entry: Queued<A, K>) {
        let shard = &self.shards[index];
        let mut outbox = shard.outbox.lock();
        outbox.queue.push_front(entry);
        shard.inbox.lock().scheduled = true;
        drop(outbox);
        self.announce(index);
    }

    /// Takes the token from holders that compute for longer than a tick (K03). True when one was taken.
    pub(crate) fn revoke_stuck_tokens(&self) -> bool {
        let mut any = false;
        for (index, shard) in self.shards.iter().enumerate() {
            let Some(mut outbox) = shard.outbox.try_lock() else { continue };
            let waiting = outbox.token.is_some() && shard.has_waiting(&outbox);
            if outbox.revoke(waiting) {
                drop(outbox);
                self.wake.mark(index);
                any = true;
            }
        }
        any
    }

    /// Refuses every later message, under the lock of each shard.
    pub(crate) fn close(&self) {
        self.closing.store(true, Ordering::SeqCst);
        self.permits.close();
        for shard in &self.shards {
            shard.inbox.lock().closed = true;
        }
    }

    /// Takes every message that waits anywhere. Only after `close`, for a pool whose workers are gone or going.
    pub(crate) fn drain_queues(&self) -> Vec<Queued<A, K>> {
        let mut drained = Vec::new();
        for shard in &self.shards {
            let mut outbox = shard.outbox.lock();
            outbox.ready.clear();
            drained.extend(outbox.lanes.drain());
            while let Some(entry) = outbox.queue.pop_front() {
                drained.push(entry);
            }
            let mut inbox = shard.inbox.lock();
            while let Some(entry) = inbox.queue.pop_front() {
                drained.push(entry);
            }
        }
        drained.extend(self.clock.drain());
        drained
    }

    /// Messages that lie in a queue or wait for another attempt.
    pub(crate) fn depth(&self) -> usize {
        let shards = self.shards.iter();
        let queued: usize = shards
            .map(|shard| {
                let outbox = shard.outbox.lock();
                outbox.queued() + shard.inbox.lock().queue.len()
            })
            .sum();
        queued + self.clock.messages()
    }

    pub(crate) fn accepted(&self) -> u64 {
        self.shards.iter().map(|shard| shard.inbox.lock().accepted).sum()
    }

    /// Reports a dead letter. The count comes first, then the port, then the hook.
    pub(crate) fn report_dead_letter(&self, letter: DeadLetter<A::Message, A::Error>) {
        let Some(hook) = &self.settings.on_dead_letter else { return };
        let hook = std::panic::AssertUnwindSafe(|| hook(letter));
        if std::panic::catch_unwind(hook).is_err() {
            tracing::error!(
                pool = &*self.settings.name,
                "the dead-letter hook panicked; the letter is lost to it"
            );
        }
    }
}

/// The lane whose key is this one. A comparison that panics keeps the message behind the first candidate: its order is
/// safe there, and nothing of ours is lost.
fn find_lane<K: Eq>(candidates: &[(LaneId, Arc<K>)], key: Option<&K>) -> Option<LaneId> {
    let compare = || candidates.iter().find(|(_, open)| Some(&**open) == key).map(|(id, _)| *id);
    match std::panic::catch_unwind(std::panic::AssertUnwindSafe(compare)) {
        Ok(found) => found,
        Err(_) => candidates.first().map(|(id, _)| *id),
    }
}

pub(crate) type ExtraOf<A> = Extra<<A as Actor>::Reply, <A as Actor>::Error>;
