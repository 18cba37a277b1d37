//! A shard: a part of a pool's queue, with an inbox that senders fill and an outbox that
//! workers empty.
//!
//! ```text
//!  senders ──▶ inbox (lock 1) ══ swapped whole ══▶ outbox (lock 2) ──▶ workers, one message at a time
//!                                                  lanes, ready lanes, drain token
//! ```
//!
//! Two locks, so that senders and workers meet only when the outbox has run empty; a worker's lock
//! is its own cache line most of the time. Nothing is taken in batches: messages that have not been
//! started lie in the outbox, from where any worker can take them, so nothing has to be given back
//! and nothing waits behind a handler that takes long.
//!
//! # The drain token
//! In a keyed pool only the holder of the token takes from the outbox, one message at a time, so no
//! message of a key can overtake. The holder leaves the key that it has in hand in the token. When
//! its handler suspends, that key gets a lane and the token is passed on. When its handler computes
//! for longer than a tick, the watchdog does the same on its behalf
//! ([`revoke`](ShardOutbox::revoke)): the epoch tells the holder, when it comes back, that it now
//! runs a lane.
//!
//! # Urgent
//! Urgent messages stay in the inbox until they are started, or go to the front of the lane of
//! their key. A ready lane with an urgent message comes before the other lanes and before the
//! queue. A bit in the pool's map of urgent messages calls workers from other shards. So messages
//! of one class and key never overtake each other, and a sender pays for the class of a message
//! only if it is urgent.
//!
//! # Scheduled
//! `inbox.scheduled` is true while a worker or sender is bound to look at the shard: its bit is
//! set in the pool's ready map, or, in a keyed pool, a worker holds its token or is looking. Two
//! workers may clear it (and, without keys, the bit with it): one that has seen the outbox and the
//! inbox empty, under both locks, and one that has just filled the outbox with a single message
//! and takes that under the same lock. The sender that sets it must set the bit. Lock order:
//! outbox, then inbox.
//!
//! # Lifted
//! A withdrawal looks at messages under no lock, so all waiting messages of the shard are
//! taken out for it ([`lift`](Shard::lift)); those that stay come back before later ones
//! ([`set_down`](Shard::set_down)). Until then the inbox looks empty to workers (`inbox.lifted`):
//! later messages would overtake. The shard stays scheduled, because the withdrawal announces it
//! afterwards. Lifted messages count as queued (`outbox.lifted`).

use std::collections::VecDeque;

use super::{
    backlog::{Backlog, KeyBounds},
    block_queue::{BlockQueue, OfRun, Run},
    entry::Entry,
    lanes::{KEPT_WHEN_EMPTY, LaneId, LaneState, Lanes, LiftedLine},
    lock::Lock,
    offer::Offer,
    padded::Padded,
    payload::Payload,
    slot::Slot,
    stamp::Stamp,
    wake::NOBODY,
};
use crate::sync::{has_sent_elsewhere, sends_to, this_thread};

/// How often a sender lets others run: workers that share its thread would otherwise get their turn
/// only when the pool is full, and find every message gone from the caches. The more wait in its
/// shard, the shorter its turn, until stepping aside takes it longer than handling its messages
/// takes workers that only just keep up.
#[derive(Debug, Clone, Copy)]
pub struct Turns {
    /// So many messages wait in a shard that gets on well.
    well: u32,
}

/// Waiting messages of so many bytes are taken to be in the caches of a core still; others may need
/// half of these.
const BYTES_IN_CACHES: usize = 1024 * 1024;

/// Messages that wait well, however large they are: stepping aside is not for free.
const FEWEST: usize = 8;

impl Turns {
    /// One sender fills one shard.
    pub const OF_A_SENDER: Self = Self { well: 128 };
    /// Every sender fills all shards, by key.
    pub const OF_KEYS: Self = Self { well: 64 };

    /// Large messages are out of the caches sooner.
    pub const fn of_messages_of(self, bytes: usize) -> Self {
        let fit = match BYTES_IN_CACHES.checked_div(bytes) {
            Some(..FEWEST) => FEWEST,
            Some(fit) => fit,
            None => return self,
        };
        if fit < self.well as usize { Self { well: fit as u32 } } else { self }
    }

    /// True when the sender of this message, one of `accepted`, should let others run
    /// before the next.
    #[inline]
    fn is_over(self, accepted: u64, backlog: usize) -> bool {
        let well = self.well as usize;
        accepted.is_multiple_of(self.span(backlog))
            && backlog >= well
            && (backlog >= 2 * well || accepted.is_multiple_of(128))
    }

    /// While as many wait, one message in so many may end the turn.
    #[inline]
    fn span(self, backlog: usize) -> u64 {
        if backlog >= 8 * self.well as usize { 4 } else { 16 }
    }

    /// How many messages more cannot end the turn, whatever is taken in between.
    #[inline]
    fn rest(self, accepted: u64, backlog: usize) -> u64 {
        let until = |span: u64| span - 1 - accepted % span;
        let Some(shallow) = (2 * self.well as usize).checked_sub(backlog + 1) else {
            return until(self.span(backlog));
        };
        // So many more are queued before every 16th ends it, and not only every 128th.
        let shallow = shallow as u64;
        until(128).min(shallow + 15 - (accepted + shallow) % 16)
    }
}

/// Messages that are searched for one of another key, after a key has had its quota: more than its
/// quota, and few enough to be searched under a lock.
pub const LOOK_AHEAD: usize = 64;

/// Before the first message was taken: as if others had had their turn since.
pub const LONG_AGO: u64 = u64::MAX - 1;

/// A part of the queue of a pool.
pub struct Shard<T: Payload, K> {
    /// What senders fill.
    pub inbox: Padded<Lock<ShardInbox<T, K>>>,
    /// What workers empty.
    pub outbox: Padded<Lock<ShardOutbox<T, K>>>,
}

/// What senders fill, under the first lock.
pub struct ShardInbox<T: Payload, K> {
    /// Messages in the order of acceptance.
    pub queue: BlockQueue<Entry<T, K>>,
    /// Messages to be taken before those in the queue, here or in the outbox.
    pub urgent: VecDeque<Entry<T, K>>,
    /// Messages accepted here since the start; the ledger's left side.
    pub accepted: u64,
    /// Permits for messages to come. None in a closed inbox.
    pub credit: u64,
    /// How many messages may be queued without a look at anything else: permits for them, besides
    /// the credit. While there are any, the shard is scheduled, no worker is to be woken on the
    /// sender's thread, and neither the sender's turn nor the next measurement is due.
    fast: u32,
    /// When a sender here lets others run.
    pub turn: SenderTurn,
    uncounted: Uncounted,
    /// Of the queue, with keys.
    variety: Variety,
    near: Affinity,
    /// See the module's documentation.
    pub scheduled: bool,
    /// The messages of the shard are out of it, and come back before those here: workers find
    /// nothing. Written under both locks.
    lifted: bool,
    /// Set once, under this lock, so that nothing is accepted after it.
    pub closed: bool,
}

/// Whether messages of different keys lie in a queue. Goes by the hash.
#[derive(Debug, Clone, Copy, Default)]
struct Variety {
    /// Of the message that was queued last.
    hash: u32,
    /// Not all of them have that.
    is_mixed: bool,
}

impl Variety {
    #[inline(always)]
    fn note(&mut self, hash: u32) {
        self.is_mixed |= hash != self.hash;
        self.hash = hash;
    }

    /// For messages that are queued from here on. If the next is of another key than the last, the
    /// queue looks mixed although it is not.
    #[inline]
    fn begin(&mut self) -> Self {
        std::mem::replace(self, Self { is_mixed: false, ..*self })
    }

    #[inline]
    fn and(mut self, behind: Self) -> Self {
        self.note(behind.hash);
        self.is_mixed |= behind.is_mixed;
        self
    }

    #[inline]
    fn is_only(self, hash: u32) -> bool {
        !self.is_mixed && self.hash == hash
    }
}

/// When a sender lets others run.
pub struct SenderTurn {
    turns: Turns,
    /// The next sender that can wait lets others run first.
    pub is_over: bool,
}

/// Whether messages may be queued that are not counted by their keys.
struct Uncounted {
    /// As many may wait before each message is counted by its key.
    bound: usize,
    /// The length of the outbox and its lanes when it was last filled: never less than it is now.
    beyond: usize,
    /// Messages may be counted by their keys: the outbox knows.
    counted: bool,
}

/// On which threads a shard is filled and emptied.
struct Affinity {
    /// The thread of the last sender.
    sender: usize,
    /// The last worker with affinity to this shard (its bit in the map of affinities is set for it)
    /// that took the messages here, and its thread then. Others yield to it and leave it the bit,
    /// so it must be a worker that clears it.
    drainer: (usize, usize),
    /// The next sender is to wake a worker on its own thread.
    wake_near: bool,
}

/// What the sender has to do once messages are queued and the lock is free.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wanted {
    /// The shard is looked at anyway.
    Nothing,
    /// No worker is bound to look at the shard yet.
    Announcement,
    /// It is drained remotely: a worker is to be woken here.
    WakeNear,
}

/// What workers empty, under the second lock.
pub struct ShardOutbox<T: Payload, K> {
    /// Messages in the order of acceptance, all of them before those of the inbox.
    pub queue: BlockQueue<Entry<T, K>>,
    /// The lines behind keys that wait.
    pub lanes: Lanes<T, K>,
    /// Those of them that no worker owns.
    pub ready: ReadyLanes,
    /// Present while a worker drains the outbox of a keyed pool.
    pub token: Option<Token<K>>,
    /// The hash of a message that the holder has between two places while it compares keys
    /// outside the lock.
    pub carried: Option<u32>,
    epochs: Epochs,
    /// When it was last filled, from empty, the last sender ran on another thread than the worker
    /// that filled it.
    pub from_remote: bool,
    /// Messages taken so far, from the queue and from lanes: what the watchdog sees of progress.
    pub taken: u64,
    /// What `taken` was when a message that is attempted again was last put before the others.
    put_first: u64,
    hashes: Hashes,
    /// Present while messages are counted by their keys, here and in the inbox.
    pub backlog: Option<Box<Backlog>>,
    /// Present while the messages of the shard are out of it.
    lifted: Option<Box<LiftedCount>>,
}

/// Lanes that no worker owns, in the order in which they became ready.
#[derive(Default)]
pub struct ReadyLanes {
    all: VecDeque<LaneId>,
    /// Those of them with an urgent message, which come before the others and before the queue. A
    /// lane that was ready when its first urgent message came stands in both lists; a worker that
    /// takes it from one leaves a meaningless name in the other.
    urgent: VecDeque<LaneId>,
    /// Whether the next worker looks at the queue before the ready lanes: they take turns.
    pub queue_first: bool,
}

/// The drain tokens that there have been.
#[derive(Default)]
struct Epochs {
    /// Of the next one.
    next: u64,
    /// The epoch of the token that the watchdog saw at its last tick, and its progress then.
    seen: Option<(u64, u64)>,
}

/// What is known of the keys of the queue.
#[derive(Default)]
struct Hashes {
    variety: Variety,
    /// How many messages of one hash were taken from the queue in a row, and that hash.
    streak: (u32, u32),
}

/// How much is out of a shard.
struct LiftedCount {
    messages: usize,
    /// Of those that are counted by their keys.
    hashes: Vec<u32>,
}

/// The messages of a shard, while a withdrawal looks at them, or those that stay.
pub struct Lifted<T: Payload, K> {
    /// From the outbox, and behind that from the inbox.
    pub queues: [BlockQueue<Entry<T, K>>; 2],
    /// From the inbox.
    pub urgent: VecDeque<Entry<T, K>>,
}

/// What there was to fill an outbox with.
pub enum Refilled<T> {
    /// This message, and nothing behind it: it is taken, the outbox is as empty as before.
    Last(T),
    /// Several, or urgent ones elsewhere.
    More,
}

/// A key that is done with, and the hash of the next.
pub type KeyChange<K> = (Option<(u32, K)>, Option<u32>);

/// The right to take from the outbox.
pub struct Token<K> {
    /// Which of the tokens of this shard it is.
    pub epoch: u64,
    /// The holder.
    pub worker: usize,
    /// Rises with each message taken.
    pub taken: u64,
    /// The key in hand and its hash; `None` for a message without a key.
    pub in_hand: Option<(u32, K)>,
    /// True while the holder compares keys outside the lock: its message is not started, so the
    /// token stays.
    pub comparing: bool,
}

impl<T: Payload, K> Shard<T, K> {
    /// An empty shard.
    pub fn new(turns: Turns, bounds: KeyBounds) -> Self {
        let inbox = ShardInbox {
            queue: BlockQueue::new(),
            urgent: VecDeque::new(),
            accepted: 0,
            credit: 0,
            fast: 0,
            turn: SenderTurn { turns, is_over: false },
            uncounted: Uncounted { bound: bounds.waiting, beyond: 0, counted: false },
            variety: Variety::default(),
            near: Affinity { sender: NOBODY, drainer: (0, NOBODY), wake_near: false },
            scheduled: false,
            lifted: false,
            closed: false,
        };
        let outbox = ShardOutbox {
            queue: BlockQueue::new(),
            lanes: Lanes::new(),
            ready: ReadyLanes::default(),
            token: None,
            carried: None,
            epochs: Epochs::default(),
            from_remote: false,
            taken: 0,
            put_first: LONG_AGO,
            hashes: Hashes::default(),
            backlog: None,
            lifted: None,
        };
        Self { inbox: Padded(Lock::new(inbox)), outbox: Padded(Lock::new(outbox)) }
    }

    /// Fills an empty outbox from the inbox. False, and no longer scheduled, if both are empty.
    /// Urgent messages stay in the inbox, and later ones stand behind them; so the outbox may be
    /// empty still.
    pub fn refill(&self, outbox: &mut ShardOutbox<T, K>) -> bool {
        self.refill_or(outbox, || {})
    }

    /// As `refill`; calls `empty` if there is nothing, before any sender can schedule the
    /// shard again.
    pub fn refill_or(&self, outbox: &mut ShardOutbox<T, K>, empty: impl FnOnce()) -> bool {
        if !outbox.queue.is_empty() {
            return true;
        }
        let mut inbox = self.inbox.lock();
        if inbox.is_empty() {
            inbox.unschedule();
            empty();
            return false;
        }
        inbox.hand_over(outbox);
        true
    }

    /// As `refill_or`, for a worker that takes the first message at once: if that is the last, the
    /// shard is no longer scheduled, so that no second look is needed. `affine` is the worker, if
    /// it has affinity to the shard, and clears its bit in that map when it leaves.
    ///
    /// A message from another thread's sender comes through the memory of another core. If senders
    /// run on this thread as well, one of them is asked to wake a worker beside itself, so that
    /// each thread has its own. If none does, one thread sends while the other works.
    pub fn refill_near(
        &self,
        outbox: &mut ShardOutbox<T, K>,
        affine: Option<usize>,
        empty: impl FnOnce(),
    ) -> Option<Refilled<Entry<T, K>>> {
        let thread = this_thread();
        let mut inbox = self.inbox.lock();
        if inbox.is_empty() {
            inbox.unschedule();
            empty();
            return None;
        }
        inbox.ask_wake_near(thread);
        if let Some(worker) = affine {
            inbox.near.drainer = (worker, thread);
        }
        if inbox.urgent.is_empty()
            && let Some(last) = inbox.queue.pop_only()
        {
            outbox.taken = outbox.taken.wrapping_add(1);
            inbox.uncounted.beyond = outbox.queued();
            inbox.unschedule();
            empty();
            return Some(Refilled::Last(last));
        }
        inbox.hand_over(outbox);
        if outbox.from_remote {
            inbox.queue.lies_elsewhere(outbox.queue.len());
        }
        Some(Refilled::More)
    }

    /// True if a key that has had its quota need not give way, because all messages here are its
    /// own. It may have another quota then.
    pub fn is_all_of(&self, outbox: &mut ShardOutbox<T, K>, hash: u32) -> bool {
        if !outbox.hashes.variety.is_only(hash) || outbox.has_ready() {
            return false;
        }
        let inbox = self.inbox.lock();
        let is_alone = inbox.is_empty() || (inbox.urgent.is_empty() && inbox.variety.is_only(hash));
        if is_alone {
            outbox.hashes.streak.0 = 1;
        }
        is_alone
    }

    /// Moves the messages of the inbox behind those of the outbox, to be looked at together.
    pub fn refill_behind(&self, outbox: &mut ShardOutbox<T, K>) {
        let mut inbox = self.inbox.lock();
        if inbox.lifted {
            return;
        }
        let variety = inbox.variety.begin();
        outbox.hashes.variety = match (outbox.queue.is_empty(), inbox.queue.is_empty()) {
            (true, _) => variety,
            (_, true) => outbox.hashes.variety,
            _ => outbox.hashes.variety.and(variety),
        };
        outbox.queue.append(&mut inbox.queue);
        inbox.uncounted.beyond = outbox.queued();
    }

    /// Queues a message without a key that has waited for its next attempt. It comes before the
    /// others if a message besides the last such one has been taken since that was put there;
    /// otherwise behind all that wait by now. So messages that are attempted at once again take
    /// every other turn at most, however many they are.
    pub fn put_again(&self, outbox: &mut ShardOutbox<T, K>, entry: Entry<T, K>) {
        if outbox.may_put_first() {
            outbox.put_first = outbox.taken;
            return outbox.queue.push_front(entry);
        }
        if !self.inbox.lock().queue.is_empty() {
            self.refill_behind(outbox);
        }
        outbox.hashes.variety.is_mixed = true;
        outbox.queue.push_back(entry);
    }

    /// Takes out the waiting messages of the shard, to be looked at under no lock. None if there
    /// are none, or they have been taken out already.
    #[expect(clippy::type_complexity, reason = "two parts, each of which has a name")]
    pub fn lift(
        &self,
        outbox: &mut ShardOutbox<T, K>,
    ) -> Option<(Lifted<T, K>, Vec<LiftedLine<T, K>>)> {
        let mut inbox = self.inbox.lock();
        let messages = outbox.queue.len() + outbox.lanes.queued() + inbox.queued();
        if messages == 0 || outbox.lifted.is_some() {
            return None;
        }
        let lifted = Lifted {
            queues: [&mut outbox.queue, &mut inbox.queue]
                .map(|queue| std::mem::replace(queue, BlockQueue::new())),
            urgent: std::mem::take(&mut inbox.urgent),
        };
        let lines = outbox.lanes.lift();
        outbox.lifted = Some(Box::new(LiftedCount { messages, hashes: hashes(&lifted, &lines) }));
        (inbox.lifted, inbox.scheduled) = (true, true);
        inbox.uncounted.beyond = outbox.queued();
        Some((lifted, lines))
    }

    /// Puts back what stays of the queues, before later messages, and behind messages that the
    /// holder of the token has given back. The messages of lanes come back after that. True if an
    /// urgent message lies in the inbox.
    pub fn set_down(&self, outbox: &mut ShardOutbox<T, K>, stay: Lifted<T, K>) -> bool {
        let mut inbox = self.inbox.lock();
        outbox.lifted = None;
        inbox.lifted = false;
        stay.queues.into_iter().for_each(|mut queue| outbox.queue.append(&mut queue));
        outbox.hashes.variety.is_mixed = true;
        let later = std::mem::replace(&mut inbox.urgent, stay.urgent);
        inbox.urgent.extend(later);
        inbox.has_urgent()
    }

    /// The outbox has changed in another way than by taking.
    pub fn note_outbox(&self, outbox: &ShardOutbox<T, K>) {
        self.inbox.lock().uncounted.beyond = outbox.queued();
    }

    /// Counts the waiting messages of each key, if that was not done. The caller has both locks.
    pub fn count<'a>(
        inbox: &mut ShardInbox<T, K>,
        outbox: &'a mut ShardOutbox<T, K>,
        bounds: KeyBounds,
    ) -> &'a mut Backlog {
        inbox.uncounted.counted = true;
        let (queue, lanes, carried) = (&outbox.queue, &outbox.lanes, outbox.carried);
        let lifted = outbox.lifted.iter().flat_map(|lifted| &lifted.hashes);
        outbox.backlog.get_or_insert_with(|| {
            let mut backlog = Backlog::new(bounds);
            let queued = queue.iter().chain(inbox.queue.iter()).chain(&inbox.urgent);
            queued.for_each(|entry| backlog.count(entry));
            lanes.count_into(&mut backlog);
            carried.iter().chain(lifted).for_each(|hash| backlog.count_one(*hash));
            Box::new(backlog)
        })
    }

    /// This worker does not serve the shard any more.
    pub fn forget_drainer(&self, worker: usize) {
        let mut inbox = self.inbox.lock();
        if inbox.near.drainer.0 == worker {
            inbox.near.drainer = (worker, NOBODY);
        }
    }

    /// True when the sender is on another thread, and another worker has taken messages there last.
    pub fn is_served_near(&self, worker: usize) -> bool {
        let inbox = self.inbox.lock();
        let (other, thread) = inbox.near.drainer;
        let somebody = thread != NOBODY && other != worker;
        somebody && thread == inbox.near.sender && thread != this_thread()
    }

    /// True if there are messages in the outbox or the inbox. Otherwise the shard is no longer
    /// scheduled, and `empty` is called before any sender can schedule it again.
    pub fn has_more_or(&self, outbox: &ShardOutbox<T, K>, empty: impl FnOnce()) -> bool {
        if !outbox.queue.is_empty() {
            return true;
        }
        let mut inbox = self.inbox.lock();
        if inbox.is_empty() {
            inbox.unschedule();
            empty();
            return false;
        }
        true
    }

    /// True when messages wait behind the holder of the token.
    pub fn has_waiting(&self, outbox: &ShardOutbox<T, K>) -> bool {
        !outbox.queue.is_empty() || !self.inbox.lock().is_empty()
    }

    /// As `has_waiting`, or one is just coming. Waits for no lock.
    pub fn seems_to_have_waiting(&self, outbox: &ShardOutbox<T, K>) -> bool {
        !outbox.queue.is_empty() || self.inbox.try_lock().is_none_or(|inbox| !inbox.is_empty())
    }
}

/// Of the messages that are counted by their keys.
fn hashes<T: Payload, K>(lifted: &Lifted<T, K>, lines: &[LiftedLine<T, K>]) -> Vec<u32> {
    let queued = lifted.queues.iter().flat_map(BlockQueue::iter).chain(&lifted.urgent);
    let queued = queued.filter(|entry| entry.key.is_some() && !entry.is_retry());
    let in_lanes = lines
        .iter()
        .flat_map(|(id, line)| line.iter().filter(|entry| !entry.is_retry()).map(|_| id.hash));
    queued.map(|entry| entry.hash).chain(in_lanes).collect()
}

impl<T: Payload, K> ShardInbox<T, K> {
    /// True if there is nothing for a worker.
    pub fn is_empty(&self) -> bool {
        self.lifted || (self.queue.is_empty() && self.urgent.is_empty())
    }

    /// True if there is an urgent message for a worker.
    pub fn has_urgent(&self) -> bool {
        !self.lifted && !self.urgent.is_empty()
    }

    /// Messages that lie here.
    pub fn queued(&self) -> usize {
        self.queue.len() + self.urgent.len()
    }

    /// Moves the normal messages that lie here into an empty outbox, whole.
    fn hand_over(&mut self, outbox: &mut ShardOutbox<T, K>) {
        std::mem::swap(&mut self.queue, &mut outbox.queue);
        self.queue.lies_here();
        outbox.from_remote = self.near.sender != this_thread();
        outbox.hashes.variety = self.variety.begin();
        self.uncounted.beyond = outbox.queued();
    }

    /// One key may have another number.
    pub fn bound_keys(&mut self, bounds: KeyBounds) {
        self.uncounted.bound = bounds.waiting;
    }

    /// How many messages more may be queued without being counted by their keys, besides those that
    /// the credit is for.
    #[inline]
    pub fn headroom(&self) -> u64 {
        if self.uncounted.counted {
            return 0;
        }
        let room =
            self.uncounted.bound.saturating_sub(self.queued() + self.uncounted.beyond) as u64;
        room.saturating_sub(self.credit + u64::from(self.fast))
    }

    /// The permits that lie here unused, taken out.
    pub fn take_credit(&mut self) -> u64 {
        self.end_fast_path();
        std::mem::take(&mut self.credit)
    }

    /// The next message is not queued without a look.
    pub fn end_fast_path(&mut self) {
        self.credit += u64::from(std::mem::take(&mut self.fast));
    }

    /// No worker is bound to look at the shard any more, unless its messages are lifted.
    fn unschedule(&mut self) {
        self.end_fast_path();
        self.scheduled = self.lifted;
    }

    /// Its address, to tell one shard from others.
    fn place(&self) -> usize {
        std::ptr::from_ref(self).addr()
    }

    /// Messages are taken on this thread. If the sender runs on another, and others send here, a
    /// worker is wanted there, until the sender has heard of it.
    fn ask_wake_near(&mut self, thread: usize) {
        self.near.wake_near =
            self.near.sender != thread && (self.near.wake_near || has_sent_elsewhere(self.place()));
        if self.near.wake_near {
            self.end_fast_path();
        }
    }

    /// True if the sender of a message is to wake a worker on its own thread. It then steps aside,
    /// so that this worker gets its turn: as long as the shard is drained remotely little waits
    /// there, and the sender would go on.
    pub fn take_wake_near(&mut self) -> bool {
        let wakes_near = std::mem::take(&mut self.near.wake_near);
        self.turn.is_over |= wakes_near;
        wakes_near
    }

    /// True if the next message can be queued by [`push_fast`](Self::push_fast).
    #[inline(always)]
    pub fn is_fast(&self) -> bool {
        self.fast > 0
    }

    /// Appends a normal message if that [is fast](Self::is_fast).
    #[inline(always)]
    pub fn push_fast(
        &mut self,
        offer: &mut impl Offer<T>,
        (key, hash): (Option<K>, u32),
        stamp: Stamp,
    ) {
        if offer.message().is_none() {
            return;
        }
        self.fast -= 1;
        self.accepted += 1;
        self.note_key(hash);
        self.queue.push_made(|| {
            #[expect(clippy::expect_used, reason = "it was there just now, and nobody else has it")]
            let (message, extra) = offer.unpack().expect("a message");
            Entry { message, extra, key, hash, urgent: false, stamp }
        });
    }

    /// Sets how many messages may come without a look at anything else here; `unmeasured` of them
    /// are not measured. A message has just been queued, and the shard is scheduled: if it was not
    /// before, its sender is about to announce it.
    pub fn open_fast_path(&mut self, unmeasured: u64) {
        if self.turn.is_over || self.near.wake_near || !self.scheduled || self.closed {
            return;
        }
        let turn = self.turn.turns.rest(self.accepted, self.queue.len());
        self.fast = self.credit.min(turn).min(unmeasured) as u32;
        self.credit -= u64::from(self.fast);
    }

    /// Ends counting messages by their keys if that is not needed any more. The caller has the lock
    /// of the outbox.
    pub fn take_stock(&mut self, outbox: &mut ShardOutbox<T, K>) {
        self.uncounted.beyond = outbox.queued();
        let queued = self.queued() + self.uncounted.beyond;
        if outbox.backlog.as_ref().is_some_and(|backlog| backlog.is_needless(queued)) {
            outbox.backlog = None;
        }
        self.uncounted.counted = outbox.backlog.is_some();
    }

    /// Appends a message, stamped by its number. True if no worker is bound to look at the shard
    /// yet: the caller must announce it.
    #[inline(always)]
    pub fn push(
        &mut self,
        offer: &mut impl Offer<T>,
        (key, hash): (Option<K>, u32),
        stamp: impl FnOnce(u64) -> Stamp,
    ) -> bool {
        let (stamp, urgent) = (stamp(self.accepted), offer.is_urgent());
        self.queue.make_room();
        // Moved from its sender straight into its place.
        let Some((message, extra)) = offer.unpack() else { return false };
        if urgent {
            self.push_urgent(Entry { message, extra, key, hash, urgent, stamp });
            return self.note_sender();
        }
        self.note_key(hash);
        self.queue.push_into_room(Entry { message, extra, key, hash, urgent, stamp });
        self.accepted += 1;
        self.note_sender()
    }

    /// A message with this hash is queued. Costs nothing if there are no keys.
    #[inline(always)]
    fn note_key(&mut self, hash: u32) {
        if size_of::<Option<K>>() != 0 {
            self.variety.note(hash);
        }
    }

    /// Takes the next urgent message, which may go to a lane.
    pub fn pop_urgent(&mut self) -> Option<Entry<T, K>> {
        if self.lifted {
            return None;
        }
        let entry = self.urgent.pop_front()?;
        self.uncounted.beyond += 1;
        Some(entry)
    }

    #[cold]
    fn push_urgent(&mut self, entry: Entry<T, K>) {
        self.urgent.push_back(entry);
        self.accepted += 1;
    }

    /// As `push`, for several plain messages. Returns what else is to be done.
    pub fn push_each(
        &mut self,
        messages: impl Iterator<Item = T::Message>,
        stamp: impl Fn(u64) -> Stamp,
    ) -> Wanted {
        for message in messages {
            self.queue.push_back(Entry::of_run(message, stamp(self.accepted)));
            self.accepted += 1;
        }
        self.filled()
    }

    /// As `push_each`, for messages that stay in their deque; at most one of them is measured.
    /// Leaves an empty deque with the sender.
    pub fn push_run(
        &mut self,
        messages: &mut VecDeque<T::Message>,
        stamp: Stamp,
        unmeasured: u64,
        sample: impl FnOnce(u64) -> Stamp,
    ) -> Wanted {
        let sent = messages.len();
        let sample = match sent.saturating_sub(unmeasured as usize) {
            0 => (0, Stamp::NONE),
            left => (left, sample(self.accepted + unmeasured)),
        };
        let run = Run { messages: std::mem::take(messages), stamp, sample };
        *messages = self.queue.push_run(run);
        self.accepted += sent as u64;
        self.filled()
    }

    fn filled(&mut self) -> Wanted {
        self.end_fast_path();
        self.turn.is_over = self.turn.turns.is_over(0, self.queue.len());
        self.near.sender = this_thread();
        sends_to(self.place());
        let wakes_near = std::mem::take(&mut self.near.wake_near);
        match std::mem::replace(&mut self.scheduled, true) {
            false => Wanted::Announcement,
            true if wakes_near => Wanted::WakeNear,
            true => Wanted::Nothing,
        }
    }

    fn note_sender(&mut self) -> bool {
        // Those on the fast path were so many from the number before this one on.
        self.end_fast_path();
        self.near.sender = this_thread();
        sends_to(self.place());
        self.turn.is_over |= self.turn.turns.is_over(self.accepted, self.queue.len());
        !std::mem::replace(&mut self.scheduled, true)
    }
}

impl<T: Payload, K> ShardOutbox<T, K> {
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

    /// True when this worker has a key with this hash in hand. Goes by the hash: of two keys that
    /// collide, one pair in four billion, each is taken for the other.
    pub fn is_owner(&self, hash: u32, worker: usize) -> bool {
        let token = self.token.as_ref().filter(|token| token.worker == worker);
        let in_hand = token.and_then(|token| token.in_hand.as_ref());
        in_hand.is_some_and(|(own, _)| *own == hash) || self.lanes.run_by(hash, worker).is_some()
    }

    /// The holder has this key in hand from here on.
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

    /// The holder compares keys outside the lock, or has done so, with a message in hand whose key
    /// has this hash.
    pub fn compare(&mut self, epoch: u64, carried: Option<u32>) {
        self.carried = carried;
        if let Some(token) = self.held(epoch) {
            token.comparing = carried.is_some();
        }
    }

    /// Takes the next message of the queue.
    #[inline(always)]
    pub fn pop_queue(&mut self) -> Option<Entry<T, K>> {
        let is_there = !self.queue.is_empty();
        self.taken = self.taken.wrapping_add(u64::from(is_there));
        self.queue.pop_front()
    }

    /// As `pop_queue`, if it is a message that was sent with others and lies as it was sent.
    #[inline(always)]
    pub fn pop_of_run(&mut self) -> Option<(T::Message, Stamp)> {
        if !self.queue.is_in_run() {
            return None;
        }
        self.taken = self.taken.wrapping_add(1);
        self.queue.pop_of_run()
    }

    /// True if the last message that was put before the others has been taken, and another
    /// one besides.
    fn may_put_first(&self) -> bool {
        self.taken.wrapping_sub(self.put_first) >= 2
    }

    /// A message that waited here is started, or taken out.
    #[inline]
    pub fn left(&mut self, entry: &Entry<T, K>) {
        if let Some(backlog) = &mut self.backlog {
            backlog.left(entry);
        }
    }

    /// Takes the next message of a lane.
    pub fn pop_lane(&mut self, id: LaneId) -> Option<Entry<T, K>> {
        let entry = self.lanes.pop_front(id)?;
        self.left(&entry);
        self.taken = self.taken.wrapping_add(1);
        Some(entry)
    }

    /// False if no lane is ready; true if one is, or was at the last look.
    pub fn has_ready(&mut self) -> bool {
        !self.ready.all.is_empty() || self.has_urgent_ready()
    }

    /// Takes the lane that has been ready for longest off the list. The list does not keep the
    /// memory of a crowd.
    pub fn next_ready(&mut self) -> Option<LaneId> {
        let id =
            std::iter::from_fn(|| self.ready.all.pop_front()).find(|id| self.lanes.is_ready(*id));
        if self.ready.all.is_empty() && self.ready.all.capacity() > KEPT_WHEN_EMPTY {
            self.ready.all = VecDeque::new();
        }
        id
    }

    /// True when a lane with an urgent message is ready.
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

    /// No worker owns this lane from here on. True if it has an urgent message.
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

    /// An urgent message has come into this lane. Says what its state is.
    pub fn set_urgent(&mut self, id: LaneId) -> Option<LaneState> {
        let state = self.lanes.get(id)?.state;
        if state == LaneState::Ready {
            self.ready.urgent.push_back(id);
        }
        Some(state)
    }

    /// For how many ready lanes the list has room.
    pub fn room_for_ready(&self) -> usize {
        self.ready.all.capacity()
    }

    /// Nothing is ready any more: all lanes have been emptied.
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

    /// True when a key has had its quota in a row and others may be ready behind it (K04). Goes by
    /// the hash: keys that collide share a streak, which costs them a lane and no order.
    pub fn exceeds(&mut self, entry: &Entry<T, K>, quota: u32) -> bool {
        let (count, hash) = self.hashes.streak;
        let same = entry.key.is_some() && count > 0 && hash == entry.hash;
        self.hashes.streak = if same { (count + 1, hash) } else { (1, entry.hash) };
        self.hashes.streak.0 > quota && !self.queue.is_empty()
    }

    /// The next message of the queue goes into the slot, and its key into the hands of the
    /// holder of the token, if nothing prevents it; otherwise nothing has changed. Returns the key
    /// that the holder has done with, to be dropped under no lock, and the hash of the new one.
    #[inline(always)]
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
        // Taken first, and put back if it has to wait, which is rare: looking at it in its place
        // costs as much again.
        let mut entry = self.queue.pop_front()?;
        let (count, hash) = self.hashes.streak;
        let same = entry.key.is_some() && hash == entry.hash;
        if same && count >= quota {
            self.put_back(entry);
            return None;
        }
        self.hashes.streak = (if same { count + 1 } else { 1 }, entry.hash);
        self.taken = self.taken.wrapping_add(1);
        token.taken += 1;
        let key = entry.key.take().map(|key| (entry.hash, key));
        let hash = key.as_ref().map(|(hash, _)| *hash);
        let step = (std::mem::replace(&mut token.in_hand, key), hash);
        entry.put_into(slot);
        Some(step)
    }

    /// True if nothing stands before the queue or needs a look at each message: no token, no lane
    /// that is ready, no key that is counted.
    #[inline(always)]
    pub fn is_plain(&self) -> bool {
        let is_nothing_ready = self.ready.all.is_empty() && self.ready.urgent.is_empty();
        self.token.is_none() && self.backlog.is_none() && is_nothing_ready
    }

    /// The next message of the queue whose key has no lane goes into the slot, and the hash of
    /// its key and that key to the caller; those before it wait behind their keys. None, with the
    /// next message left in place, if more has to be weighed: keys that are not compared here, a
    /// lane with a collector, a key that has had its quota.
    #[inline(always)]
    pub fn pop_free(&mut self, quota: u32, slot: &mut impl Slot<T>) -> Option<(u32, Option<K>)>
    where
        K: PartialEq + 'static,
    {
        // As in `step`.
        let mut entry = self.queue.pop_front()?;
        while self.lanes.has(entry.hash) {
            if let Err(entry) = self.lanes.wait_behind(entry) {
                self.put_back(entry);
                return None;
            }
            entry = self.queue.pop_front()?;
        }
        let (count, hash) = self.hashes.streak;
        let same = entry.key.is_some() && hash == entry.hash;
        if same && count >= quota {
            self.put_back(entry);
            return None;
        }
        self.hashes.streak = (if same { count + 1 } else { 1 }, entry.hash);
        self.taken = self.taken.wrapping_add(1);
        let of = (entry.hash, entry.key.take());
        entry.put_into(slot);
        Some(of)
    }

    #[cold]
    #[inline(never)]
    fn put_back(&mut self, entry: Entry<T, K>) {
        self.queue.push_front(entry);
    }

    /// The first of the next messages whose key is another and waits for no other: it goes before
    /// those of the key that has had its quota, and no lane is needed.
    pub fn pop_other(&mut self, hash: u32) -> Option<Entry<T, K>> {
        let lanes = &self.lanes;
        let other = self.queue.remove_near(LOOK_AHEAD, |entry| match entry.key {
            Some(_) => entry.hash != hash && !lanes.has(entry.hash),
            None => true,
        })?;
        self.hashes.streak = (1, other.hash);
        Some(other)
    }

    /// True if a key that has had its quota need not give way, because it alone is here; it may
    /// have another quota then.
    pub fn has_nobody_else(&mut self) -> bool {
        let alone = self.queue.len() < LOOK_AHEAD && !self.has_ready();
        if alone {
            self.hashes.streak.0 = 1;
        }
        alone
    }

    /// Gives a message's key a lane of its own that is ready, behind all others.
    pub fn stand_aside(&mut self, mut entry: Entry<T, K>) {
        let Some(key) = entry.key.take() else { return };
        let id = self.lanes.open(entry.hash, key, LaneState::Ready);
        let unplaced = self.lanes.push_back(id, entry);
        debug_assert!(unplaced.is_ok(), "a lane just opened is there");
        self.make_ready(id);
        self.hashes.streak = (0, 0);
    }

    /// Messages in the outbox and its lanes, on the way between them, and out of the shard to be
    /// looked at.
    pub fn queued(&self) -> usize {
        let lifted = self.lifted.as_ref().map_or(0, |lifted| lifted.messages);
        self.queue.len() + self.lanes.queued() + usize::from(self.carried.is_some()) + lifted
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    type Numbers = Shard<u64, ()>;

    /// So many permits never run out.
    const PLENTY: u64 = 1 << 30;

    fn shard(turns: Turns, credit: u64) -> Numbers {
        let shard = Numbers::new(turns, KeyBounds::NONE);
        shard.inbox.lock().credit = credit;
        shard
    }

    /// One in which the next message takes the fast path: of eight permits, two are used.
    fn fast() -> Numbers {
        let shard = shard(Turns::OF_A_SENDER, 8);
        assert!([0, 1].map(|number| send(&shard, number)).iter().all(|fast| !fast));
        assert!(shard.inbox.lock().is_fast());
        shard
    }

    /// The steps of the core's `take_and_push`, if there is a permit and nothing is measured. True
    /// if it took the fast path.
    fn send(shard: &Numbers, number: u64) -> bool {
        let mut inbox = shard.inbox.lock();
        if inbox.is_fast() {
            inbox.push_fast(&mut Some(number), (None, 0), Stamp::default());
            return true;
        }
        inbox.credit -= 1;
        let first = inbox.push(&mut Some(number), (None, 0), |_| Stamp::default());
        if !first {
            inbox.open_fast_path(u64::MAX);
        }
        false
    }

    #[test]
    fn as_many_messages_take_the_fast_path_as_permits_the_turn_and_measurements_allow() {
        let cases = [
            // accepted, waiting, credit, unmeasured; fast
            (1, 1, 64, u64::MAX, 64),
            (1, 1, 200, u64::MAX, 126),
            (1, 1, 3, u64::MAX, 3),
            (1, 1, 64, 5, 5),
            (1, 1, 0, u64::MAX, 0),
            (1, 1, 64, 0, 0),
            (127, 127, 64, u64::MAX, 0),
            (128, 128, 200, u64::MAX, 127),
            (130, 250, 64, u64::MAX, 13),
            (138, 255, 64, u64::MAX, 5),
            (143, 255, 64, u64::MAX, 0),
            (144, 255, 64, u64::MAX, 15),
            (144, 256, 64, u64::MAX, 15),
            (1_600, 1_023, 64, u64::MAX, 15),
            (1_600, 1_024, 64, u64::MAX, 3),
            (1_602, 1_024, 64, u64::MAX, 1),
            (1_603, 1_024, 64, u64::MAX, 0),
        ];
        for (accepted, waiting, credit, unmeasured, fast) in cases {
            let shard = shard(Turns::OF_A_SENDER, PLENTY);
            (0..waiting).for_each(|number| _ = send(&shard, number));
            let mut inbox = shard.inbox.lock();
            (inbox.accepted, inbox.credit, inbox.fast) = (accepted, credit, 0);
            inbox.turn.is_over = false;
            inbox.open_fast_path(unmeasured);
            let case = (accepted, waiting, credit, unmeasured);
            assert_eq!((inbox.fast, inbox.credit), (fast, credit - u64::from(fast)), "{case:?}");
            assert_eq!(inbox.take_credit(), credit, "who takes the credit gets both");
            assert!(!inbox.is_fast());
        }
    }

    #[test]
    fn nothing_takes_the_fast_path_where_something_else_is_to_be_seen_to() {
        type Hinders = fn(&mut ShardInbox<u64, ()>);
        let hindrances: [Hinders; 4] = [
            |inbox| inbox.closed = true,
            |inbox| inbox.scheduled = false,
            |inbox| inbox.turn.is_over = true,
            |inbox| inbox.near.wake_near = true,
        ];
        for (which, hinder) in hindrances.iter().enumerate() {
            let shard = fast();
            let mut inbox = shard.inbox.lock();
            inbox.end_fast_path();
            hinder(&mut inbox);
            inbox.open_fast_path(u64::MAX);
            assert!(!inbox.is_fast(), "hindrance {which}");
            assert_eq!(inbox.take_credit(), 6);
        }
    }

    #[test]
    fn a_sender_has_its_turns_as_if_there_were_no_fast_path() {
        let of_large = [65_536, 1 << 30].map(|bytes| Turns::OF_A_SENDER.of_messages_of(bytes));
        assert_eq!(of_large.map(|turns| turns.well), [16, 8]);
        for turns in [Turns::OF_A_SENDER, Turns::OF_KEYS, of_large[0], of_large[1]] {
            let shard = shard(turns, PLENTY);
            let (mut over, mut fast) = (0, 0);
            for number in 0..4_000 {
                fast += u64::from(send(&shard, number));
                let is_over = std::mem::take(&mut shard.inbox.lock().turn.is_over);
                assert_eq!(is_over, turns.is_over(number + 1, number as usize + 1), "{number}");
                over += u64::from(is_over);
            }
            assert!(over > 0 && fast > 2_000, "{over} turns, {fast} easy messages");
        }
    }

    #[test]
    fn only_large_messages_shorten_a_turn() {
        let wells = [0, 1, 64, 8_192].map(|bytes| Turns::OF_A_SENDER.of_messages_of(bytes).well);
        assert_eq!(wells, [128; 4]);
        assert_eq!(Turns::OF_KEYS.of_messages_of(16_384).well, 64);
    }

    #[test]
    fn a_shard_that_is_found_empty_has_no_fast_path_any_more() {
        type Finds = fn(&Numbers, &mut ShardOutbox<u64, ()>) -> bool;
        let ways: [Finds; 3] = [
            |shard, outbox| shard.refill(outbox),
            |shard, outbox| shard.has_more_or(outbox, || {}),
            |shard, outbox| shard.refill_near(outbox, None, || {}).is_some(),
        ];
        for (which, finds) in ways.iter().enumerate() {
            let shard = fast();
            let mut outbox = shard.outbox.lock();
            assert!(shard.refill(&mut outbox));
            assert!(shard.inbox.lock().is_fast(), "the worker has not seen it empty");
            while outbox.pop_queue().is_some() {}
            assert!(!finds(&shard, &mut outbox), "way {which}");
            let mut inbox = shard.inbox.lock();
            assert!(!inbox.scheduled && !inbox.is_fast(), "way {which}");
            assert_eq!(inbox.take_credit(), 6);
        }
    }

    #[test]
    fn who_takes_the_last_message_of_a_shard_leaves_no_fast_path_there() {
        let shard = fast();
        let mut outbox = shard.outbox.lock();
        assert!(shard.refill(&mut outbox));
        while outbox.pop_queue().is_some() {}
        assert!(send(&shard, 2));
        let refilled = shard.refill_near(&mut outbox, None, || {});
        assert!(matches!(refilled, Some(Refilled::Last(_))) && outbox.queue.is_empty());
        let mut inbox = shard.inbox.lock();
        assert!(!inbox.scheduled && !inbox.is_fast());
        assert_eq!(inbox.take_credit(), 5);
    }

    type Keyed = Shard<u64, u64>;

    fn send_of(shard: &Keyed, key: u64) {
        let mut inbox = shard.inbox.lock();
        inbox.push(&mut Some(0), (Some(key), key as u32), |_| Stamp::default());
    }

    fn keyed(keys: &[u64]) -> Keyed {
        let bounds = KeyBounds { waiting: 1_000, parked: 1_000, apart: false };
        let shard = Keyed::new(Turns::OF_KEYS, bounds);
        // A key before which there was none may look like several.
        send_of(&shard, keys[0]);
        let mut outbox = shard.outbox.lock();
        assert!(shard.refill(&mut outbox) && outbox.pop_queue().is_some());
        drop(outbox);
        keys.iter().for_each(|key| send_of(&shard, *key));
        shard
    }

    #[test]
    fn a_key_is_alone_where_only_its_messages_wait() {
        let cases: [(&[u64], &[u64], bool); 6] = [
            (&[7, 7, 7], &[], true),
            (&[7, 7, 7], &[7, 7], true),
            (&[7, 8, 7], &[], false),
            (&[7, 7, 7], &[8, 8], false),
            (&[7, 7, 7], &[7, 8], false),
            (&[8, 8], &[8], false),
        ];
        for (outside, inside, alone) in cases {
            let shard = keyed(outside);
            let mut outbox = shard.outbox.lock();
            assert!(shard.refill(&mut outbox));
            inside.iter().for_each(|key| send_of(&shard, *key));
            outbox.hashes.streak = (17, 7);
            assert_eq!(shard.is_all_of(&mut outbox, 7), alone, "{outside:?} {inside:?}");
            assert_eq!(
                outbox.hashes.streak.0,
                if alone { 1 } else { 17 },
                "another quota, or none"
            );
            shard.refill_behind(&mut outbox);
            assert_eq!(shard.is_all_of(&mut outbox, 7), alone, "{outside:?} {inside:?}, moved");
        }
    }

    #[test]
    fn a_key_beside_a_lane_that_is_ready_or_an_urgent_message_is_not_alone() {
        let shard = keyed(&[0, 0]);
        let mut outbox = shard.outbox.lock();
        assert!(shard.refill(&mut outbox) && shard.is_all_of(&mut outbox, 0));
        let id = outbox.lanes.open(8, 8, LaneState::Ready);
        outbox.make_ready(id);
        assert!(!shard.is_all_of(&mut outbox, 0));
        assert_eq!(outbox.next_ready(), Some(id));
        assert!(shard.is_all_of(&mut outbox, 0));
        let stamp = Stamp::default();
        let urgent = Entry { message: 0, extra: None, key: Some(8), hash: 8, urgent: true, stamp };
        shard.inbox.lock().push_urgent(urgent);
        assert!(!shard.is_all_of(&mut outbox, 0));
    }

    #[test]
    fn what_the_inbox_held_before_says_nothing_of_what_comes() {
        let shard = keyed(&[7, 8]);
        let mut outbox = shard.outbox.lock();
        assert!(shard.refill(&mut outbox) && !shard.is_all_of(&mut outbox, 8));
        while outbox.pop_queue().is_some() {}
        send_of(&shard, 8);
        shard.refill_behind(&mut outbox);
        assert!(shard.is_all_of(&mut outbox, 8));
    }

    #[test]
    fn a_worker_knows_whether_it_is_fed_from_another_thread() {
        let shard = fast();
        taken_elsewhere(&shard, || {});
        assert!(shard.outbox.lock().from_remote);
        shard.outbox.lock().queue = BlockQueue::new();
        shard.inbox.lock().push(&mut Some(2), (None, 0), |_| Stamp::default());
        let mut outbox = shard.outbox.lock();
        assert!(shard.refill(&mut outbox) && !outbox.from_remote);
    }

    /// Takes the shard's messages on another thread, on which a sender has sent there before.
    fn taken_elsewhere(shard: &Numbers, sent_there: impl FnOnce() + Send) {
        std::thread::scope(|scope| {
            let worker = move || {
                sent_there();
                shard.refill_near(&mut shard.outbox.lock(), None, || {})
            };
            let refilled = scope.spawn(worker).join();
            assert!(matches!(refilled, Ok(Some(Refilled::More))));
        });
    }

    #[test]
    fn a_sender_on_a_thread_by_itself_is_not_asked_to_wake_a_worker_there() {
        let shard = fast();
        taken_elsewhere(&shard, || {});
        assert!(!shard.inbox.lock().near.wake_near, "two threads have one sender");
        let shard = fast();
        taken_elsewhere(&shard, || sends_to(shard.inbox.lock().place()));
        assert!(!shard.inbox.lock().near.wake_near, "it was there itself");
    }

    #[test]
    fn a_sender_elsewhere_is_asked_with_its_next_message_to_wake_a_worker_there() {
        let shard = fast();
        taken_elsewhere(&shard, || _ = fast());
        shard.outbox.lock().queue = BlockQueue::new();
        shard.inbox.lock().push(&mut Some(2), (None, 0), |_| Stamp::default());
        shard.inbox.lock().push(&mut Some(3), (None, 0), |_| Stamp::default());
        taken_elsewhere(&shard, || {});
        let mut inbox = shard.inbox.lock();
        assert!(inbox.near.wake_near && inbox.scheduled, "still, as no sender has looked");
        assert!(!inbox.is_fast(), "the invitation would wait");
        let mut send = |message| inbox.push_each([message].into_iter(), |_| Stamp::default());
        assert_eq!((send(2), send(3)), (Wanted::WakeNear, Wanted::Nothing), "once");
        assert!(!inbox.turn.is_over, "whoever sends many steps aside soon enough");
        inbox.near.wake_near = true;
        assert_eq!((inbox.take_wake_near(), inbox.take_wake_near()), (true, false));
        assert!(inbox.turn.is_over, "for the worker that is woken");
    }

    #[test]
    fn what_is_queued_otherwise_is_seen_to_by_who_sends_next() {
        let shard = fast();
        let mut inbox = shard.inbox.lock();
        assert!(!inbox.push(&mut Some(2), (None, 0), |_| Stamp::default()));
        assert!(!inbox.is_fast(), "the turn and the next measurement were for fewer messages");
        assert_eq!(inbox.take_credit(), 6);
        drop(inbox);
        let shard = fast();
        let mut inbox = shard.inbox.lock();
        assert_eq!(inbox.push_each([2, 3].into_iter(), |_| Stamp::default()), Wanted::Nothing);
        assert!(!inbox.is_fast());
        assert_eq!(inbox.take_credit(), 6);
    }

    #[test]
    fn permits_for_the_fast_path_leave_no_more_headroom_than_credit() {
        let bounds = KeyBounds { waiting: 20, parked: 20, apart: false };
        let shard = Numbers::new(Turns::OF_A_SENDER, bounds);
        shard.inbox.lock().credit = 8;
        for number in 0..8 {
            send(&shard, number);
            let inbox = shard.inbox.lock();
            assert_eq!(inbox.headroom(), 12, "eight are queued, or may be");
        }
    }
}
