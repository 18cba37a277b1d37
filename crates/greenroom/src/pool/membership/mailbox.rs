//! A worker's own mailbox: messages for this particular worker.
//!
//! A pool whose workers pull has none until a sender writes to one of its workers; a pool with a
//! policy that chooses workers has one for each. A message in a mailbox holds a permit of the pool,
//! so the pool's bound covers all mailboxes together, and one of the mailbox.
//!
//! ```text
//!            permit of the mailbox   permit of the pool
//! sender ─────────────────────────────────────────────▶ urgent │ normal ──▶ its worker
//!                                                         └── the worker leaves: to any other ──▶ the pool's queue
//! ```
//!
//! A sender sets the slot's order, and then wakes the worker if it is idle; a worker that parks
//! checks its orders afterwards. Sequentially consistent fences separate the two steps, so one of
//! the two sees the other.

use std::{collections::VecDeque, sync::Arc};

use greenroom_queue::{
    block_queue::BlockQueue,
    discard::wake_tasks,
    entry::{Entry, URGENT_RUN, first},
    lock::Lock,
    permits::{Closed, Permits, Queues, Refused},
    shard::LONG_AGO,
    stamp::Stamp,
    sync::{AtomicU64, AtomicUsize, Ordering, Semaphore, fence},
};

use super::slot_state::{MAIL, SIGNAL, SlotState};
use crate::pool::{
    outgoing::OutgoingOf,
    pool_payload::{Entries, Queued},
};
use crate::{
    Actor, AnyAddress,
    life::{Life, Signal},
};

#[path = "mailbox/tagged.rs"]
pub(crate) mod tagged;

#[path = "mailbox/tags.rs"]
pub(crate) mod tags;

pub(crate) use tags::LiftedMail;
use tags::Tagged;

/// The mailbox of one worker, from its start to its end. Restarts do not end it.
pub(crate) struct Mailbox<A: Actor, K> {
    pub(crate) slot: usize,
    pub(crate) slot_state: Arc<SlotState>,
    life: Arc<Life<AnyAddress>>,
    permits: Permits,
    letters: Lock<Letters<A, K>>,
    /// The number of waiting messages, readable without the lock.
    waiting: AtomicUsize,
    /// The number of messages taken out. Written under the lock.
    taken: AtomicU64,
}

struct Letters<A: Actor, K> {
    /// Signals, which come before every message. They are not bounded: each link or monitor gives
    /// one.
    signals: VecDeque<Signal<AnyAddress>>,
    urgent: Entries<A, K>,
    normal: BlockQueue<Queued<A, K>>,
    /// The number of urgent messages taken in a row.
    urgent_run: u32,
    /// The number that had been taken when a retry was last put before the others.
    put_first: u64,
    accepted: u64,
    /// No more messages are accepted. Set once.
    closed: bool,
    /// The worker has gone. Set once.
    left: bool,
    /// The number of messages that a withdrawal examines under no lock. Until they are back, the
    /// worker takes nothing: later messages would overtake them.
    lifted: usize,
    /// Only used in a sticky pool.
    tagged: Tagged<A, K>,
}

impl<A: Actor, K> Mailbox<A, K> {
    pub(crate) fn new(slot: usize, slot_state: Arc<SlotState>, capacity: usize) -> Self {
        let letters = Letters {
            signals: VecDeque::new(),
            urgent: Entries::<A, K>::new(),
            normal: BlockQueue::new(),
            urgent_run: 0,
            put_first: LONG_AGO,
            accepted: 0,
            closed: false,
            left: false,
            lifted: 0,
            tagged: Tagged::default(),
        };
        Self {
            slot,
            slot_state,
            life: Arc::default(),
            permits: Permits::new(capacity),
            letters: Lock::new(letters),
            waiting: AtomicUsize::new(0),
            taken: AtomicU64::new(0),
        }
    }

    /// The life of the worker, from its start to its end.
    pub(crate) fn life(&self) -> &Arc<Life<AnyAddress>> {
        &self.life
    }

    /// Takes a signal, unless the worker has gone.
    pub(crate) fn push_signal(&self, signal: Signal<AnyAddress>) {
        let mut letters = self.letters.lock();
        if !letters.left {
            letters.signals.push_back(signal);
            self.slot_state.order(SIGNAL);
        }
    }

    /// The next signal.
    pub(crate) fn pop_signal(&self) -> Option<Signal<AnyAddress>> {
        let mut letters = self.letters.lock();
        let signal = letters.signals.pop_front();
        if letters.signals.is_empty() {
            self.slot_state.done(SIGNAL);
        }
        signal
    }

    /// The number of messages that wait here.
    pub(crate) fn waiting(&self) -> usize {
        self.waiting.load(Ordering::Relaxed)
    }

    /// 1 while the worker has a message in hand.
    pub(crate) fn in_hand(&self) -> usize {
        usize::from(self.slot_state.is_busy())
    }

    pub(crate) fn capacity(&self) -> usize {
        self.permits.capacity()
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.letters.lock().closed
    }

    /// True if its worker has gone.
    pub(crate) fn has_left(&self) -> bool {
        self.letters.lock().left
    }

    pub(crate) fn accepted(&self) -> u64 {
        self.letters.lock().accepted
    }

    /// Takes a place, if there is one.
    pub(crate) fn try_reserve(&self) -> Result<(), Refused> {
        self.permits.try_take(1, self).map(|_| ())
    }

    /// Waits for a place. Cancel-safe.
    pub(crate) fn reserve(&self) -> impl Future<Output = Result<(), Closed>> {
        self.permits.take(self, false, &|| {})
    }

    /// Takes a place even if there is none: the pool has room, and the message belongs here.
    pub(crate) fn reserve_anyway(&self) {
        self.permits.take_back();
    }

    pub(crate) fn give_back(&self) {
        self.permits.give(1, self);
    }

    /// Queues a message that has a place, stamped by its number. The caller then wakes the worker.
    pub(crate) fn push(
        &self,
        payload: &mut OutgoingOf<A>,
        stamp: impl FnOnce(u64) -> Stamp,
    ) -> Result<(), Closed> {
        let mut letters = self.letters.lock();
        if letters.closed {
            return Err(Closed);
        }
        let Some(message) = payload.message.take() else { return Err(Closed) };
        let (extra, urgent) = (payload.extra.take(), payload.class.is_urgent());
        let stamp = stamp(letters.accepted);
        letters.accepted += 1;
        letters.push(Entry { message, extra, key: None, hash: 0, urgent, stamp });
        self.told(&letters);
        Ok(())
    }

    /// The time when the longest-waiting message here was queued.
    pub(crate) fn oldest(&self) -> Option<Stamp> {
        let letters = self.letters.lock();
        let (urgent, normal) = (first(letters.urgent.iter()), first(letters.normal.iter()));
        let Some(held) = &letters.tagged.held else { return Stamp::earliest(&[urgent, normal]) };
        let (held, later) = (first(held.urgent.iter()), first(held.normal.iter()));
        Stamp::earliest(&[urgent, normal, held, later])
    }

    /// Queues a message that was taken before. It goes to the front if at least one other message
    /// was taken since the last retry there; otherwise it goes behind all others.
    pub(crate) fn put_again(&self, entry: Queued<A, K>) -> Result<(), Queued<A, K>> {
        let mut letters = self.letters.lock();
        if letters.left {
            return Err(entry);
        }
        self.permits.take_back();
        let taken = self.taken.load(Ordering::Relaxed);
        if taken.wrapping_sub(letters.put_first) >= 2 {
            letters.put_first = taken;
            letters.normal.push_front(entry);
        } else {
            letters.normal.push_back(entry);
        }
        self.told(&letters);
        Ok(())
    }

    /// Call it under the lock.
    fn told(&self, letters: &Letters<A, K>) {
        self.waiting.store(letters.all(), Ordering::Relaxed);
        self.slot_state.order(MAIL);
    }

    /// Takes the next message, urgent ones first. With `urgent_only`, takes only urgent ones.
    pub(crate) fn pop(&self, urgent_only: bool) -> Option<Queued<A, K>> {
        let mut letters = self.letters.lock();
        if letters.tagged.held.is_some() {
            // Ordered after the worker checked: it hands over first; otherwise two tags would have
            // to be held.
            return None;
        }
        if letters.lifted > 0 {
            // It is notified again when they are back.
            self.slot_state.done(MAIL);
            return None;
        }
        let entry = letters.pop(urgent_only);
        letters.tagged.in_hand = entry.as_ref().map_or(0, |entry| entry.hash);
        // A message that waits for its retry gives the order when it is due.
        if letters.len() == 0 || (entry.is_none() && !urgent_only) {
            self.slot_state.done(MAIL);
        }
        self.waiting.store(letters.all(), Ordering::Relaxed);
        let entry = entry?;
        self.taken.store(self.taken.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
        drop(letters);
        self.serve_waiters();
        Some(entry)
    }

    /// Takes out the normal message that has waited longest, for a sender that needs its room.
    pub(crate) fn evict(&self) -> Option<Queued<A, K>> {
        let mut letters = self.letters.lock();
        let oldest = letters.normal.pop_first(&|entry| !entry.is_retry());
        let entry = oldest.or_else(|| letters.tagged.held.as_mut()?.evict())?;
        self.waiting.store(letters.all(), Ordering::Relaxed);
        self.taken.store(self.taken.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
        drop(letters);
        self.serve_waiters();
        Some(entry)
    }

    /// Takes out the waiting messages, to be examined under no lock. `None` if there are none.
    pub(crate) fn lift(&self) -> Option<LiftedMail<A, K>> {
        let mut letters = self.letters.lock();
        letters.lifted = letters.all();
        (letters.lifted > 0).then(|| letters.lift())
    }

    /// True while waiting messages are lifted.
    pub(crate) fn is_lifted(&self) -> bool {
        self.letters.lock().lifted > 0
    }

    /// Puts back the lifted messages that stay, before later ones; the others are withdrawn.
    /// Returns an error if the worker has gone. The caller then wakes the worker and serves
    /// waiters.
    pub(crate) fn set_down(
        &self,
        stay: LiftedMail<A, K>,
        withdrawn: &Entries<A, K>,
    ) -> Result<(), Entries<A, K>> {
        let mut letters = self.letters.lock();
        letters.lifted = 0;
        self.has_given(withdrawn.len());
        if letters.left {
            drop(letters);
            return Err(stay.into_entries());
        }
        letters.set_down(stay);
        letters.forget_retries(withdrawn);
        self.told(&letters);
        Ok(())
    }

    /// Call it when there is room again.
    pub(crate) fn serve_waiters(&self) {
        // Pairs with the fence in `grant_to_all`: a waiter sees the message that was taken, or the
        // worker sees `starved`. Otherwise a sender would wait although there is room.
        fence(Ordering::SeqCst);
        if self.permits.is_starved() {
            self.permits.grant(self);
        }
    }

    /// Like `shut`, before any sender can wait here: it wakes no task, so the caller may hold a
    /// lock.
    pub(crate) fn shut_unused(&self) {
        self.permits.refuse_later().close();
        self.letters.lock().closed = true;
    }

    /// Refuses every later message. Waiting messages are still handled.
    pub(crate) fn shut(&self) {
        self.permits.close();
        self.letters.lock().closed = true;
    }

    /// Refuses every later message, and returns the waiting ones, in order. The caller may hold a
    /// lock; it closes the rest under none.
    pub(crate) fn clear(&self) -> (Entries<A, K>, Cleared) {
        self.close_up(&mut self.letters.lock())
    }

    /// Call it under the lock.
    fn close_up(&self, letters: &mut Letters<A, K>) -> (Entries<A, K>, Cleared) {
        let room = self.permits.refuse_later();
        letters.closed = true;
        letters.left = true;
        let rest = letters.lift().into_entries();
        letters.tagged.held = None;
        let signals = std::mem::take(&mut letters.signals);
        self.waiting.store(0, Ordering::Relaxed);
        self.slot_state.done(MAIL | SIGNAL);
        (rest, Cleared { room, signals })
    }
}

/// The rest of a mailbox that was cleared. Both parts run user code: wakers, and the last address
/// of an actor.
#[must_use = "those who wait for room wait on"]
pub(crate) struct Cleared {
    room: Arc<Semaphore>,
    signals: VecDeque<Signal<AnyAddress>>,
}

impl Cleared {
    /// Tells those that wait for room that there will be none, and drops the signals.
    pub(crate) fn close(self) {
        wake_tasks(|| self.room.close());
        drop(self.signals);
    }
}

impl<A: Actor, K> Letters<A, K> {
    /// The number of messages that the worker may take.
    fn len(&self) -> usize {
        self.urgent.len() + self.normal.len()
    }

    /// The number of messages, including those that the worker may not take.
    fn all(&self) -> usize {
        self.len() + self.tagged.held.as_ref().map_or(0, |held| held.len()) + self.lifted
    }

    fn push(&mut self, entry: Queued<A, K>) {
        match entry.urgent {
            true => self.urgent.push_back(entry),
            false => self.normal.push_back(entry),
        }
    }

    fn pop(&mut self, urgent_only: bool) -> Option<Queued<A, K>> {
        let enough = self.urgent_run >= URGENT_RUN && !self.normal.is_empty();
        if !enough && !self.urgent.is_empty() {
            let entry = self.next_urgent();
            self.urgent_run += u32::from(entry.is_some());
            return entry;
        }
        if urgent_only && !enough {
            return None;
        }
        self.urgent_run = 0;
        self.next_normal()
    }
}

impl<A: Actor, K> Queues for Mailbox<A, K> {
    fn started(&self) -> u64 {
        self.taken.load(Ordering::Relaxed)
    }

    fn reclaim(&self) -> u64 {
        0
    }
}
