//! The clock of a pool: messages and keys that wait for a retry, until they are due.
//!
//! One task per pool, which sleeps until the next alarm, on the runtime's time. Most pools never
//! need it, so it is started with the first alarm, or when no other task of the pool is left that
//! would notice the runtime's end.
//!
//! Messages are stored here as values of any type, so that the clock is one type for all pools.

use std::{
    any::Any,
    collections::BTreeMap,
    sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering},
    time::Duration,
};

use greenroom_queue::lock::Mutex;
use greenroom_queue::{lanes::LaneId, watchdog_handle::WatchdogHandle};
use tokio::{
    sync::{Notify, futures::Notified},
    time::Instant,
};

use super::pool_payload::{Entries, Queued};
use crate::Actor;
use timed::later;

pub(super) mod task;
pub(crate) mod timed;

pub(crate) struct Clock {
    pub(crate) watchdog: WatchdogHandle,
    /// The watchdog leaves this pool alone, so the watchdog cannot hide a lost wake-up.
    #[cfg(test)]
    pub(crate) unaided: AtomicBool,
    /// The task has been started. Set once.
    started: AtomicBool,
    /// An alarm has become the earliest, or the pool has ended.
    changed: Notify,
    /// By due time, then by number.
    due: Mutex<BTreeMap<AlarmTime, ClockEntry>>,
    /// Orders alarms of the same instant.
    next: AtomicU64,
    /// Messages without a key among the alarms.
    messages: AtomicUsize,
}

type AlarmTime = (Instant, u64);

pub(crate) struct ClockEntry {
    pub(super) index: usize,
    pub(super) what: PoolAlarm,
}

pub(super) enum PoolAlarm {
    /// In the mailbox of the worker in this slot.
    Mail(usize, WaitingMessage),
    Lane(LaneId),
    /// The first message of this table slot of a sticky pool, wherever it is.
    Tag(u32),
    /// Whether the worker in this slot still holds up messages that are to go elsewhere.
    Held(u32),
    Message(WaitingMessage),
    /// The shares of the pool: a hold, or a wait for a rate, is over.
    Shares,
}

/// An entry of the pool's queues.
pub(super) struct WaitingMessage(Box<dyn Any + Send>);

impl WaitingMessage {
    /// The entry as it was parked. Always present.
    pub(super) fn own<A: Actor, K: 'static>(self) -> Option<Queued<A, K>> {
        self.0.downcast().ok().map(|entry| *entry)
    }
}

impl PoolAlarm {
    fn message(self) -> Option<WaitingMessage> {
        match self {
            Self::Message(message) | Self::Mail(_, message) => Some(message),
            Self::Lane(_) | Self::Tag(_) | Self::Held(_) | Self::Shares => None,
        }
    }
}

/// A message without a key that waits for a retry, taken out of the clock.
pub(crate) struct WaitingRetry(AlarmTime, ClockEntry);

impl WaitingRetry {
    /// `None` for an alarm without a message, which is not lifted.
    pub(crate) fn message<A: Actor, K: 'static>(&self) -> Option<&A::Message> {
        let (PoolAlarm::Message(entry) | PoolAlarm::Mail(_, entry)) = &self.1.what else {
            return None;
        };
        entry.0.downcast_ref::<Queued<A, K>>().map(|entry| &entry.message)
    }

    pub(crate) fn into_entry<A: Actor, K: 'static>(self) -> Option<Queued<A, K>> {
        self.1.what.message()?.own::<A, K>()
    }
}

impl Clock {
    pub(crate) fn new() -> Self {
        Self {
            watchdog: WatchdogHandle::none(),
            #[cfg(test)]
            unaided: AtomicBool::new(false),
            started: AtomicBool::new(false),
            changed: Notify::new(),
            due: Mutex::default(),
            next: AtomicU64::new(0),
            messages: AtomicUsize::new(0),
        }
    }

    pub(crate) fn park_lane(&self, index: usize, id: LaneId, after: Duration) {
        self.set(index, after, PoolAlarm::Lane(id));
    }

    pub(crate) fn park_message<E: Any + Send>(&self, index: usize, entry: E, after: Duration) {
        self.messages.fetch_add(1, Ordering::Relaxed);
        self.set(index, after, PoolAlarm::Message(WaitingMessage(Box::new(entry))));
    }

    pub(crate) fn park_mail<E: Any + Send>(&self, slot: usize, entry: E, after: Duration) {
        self.messages.fetch_add(1, Ordering::Relaxed);
        self.set(0, after, PoolAlarm::Mail(slot, WaitingMessage(Box::new(entry))));
    }

    pub(crate) fn park_tag(&self, tag: u32, after: Duration) {
        self.set(0, after, PoolAlarm::Tag(tag));
    }

    pub(crate) fn look_at_held(&self, slot: u32, after: Duration) {
        self.set(0, after, PoolAlarm::Held(slot));
    }

    pub(crate) fn wake_shares(&self, after: Duration) {
        self.set(0, after, PoolAlarm::Shares);
    }

    fn set(&self, index: usize, after: Duration, what: PoolAlarm) {
        let time = (later(after), self.next.fetch_add(1, Ordering::Relaxed));
        let earliest = {
            let mut due = self.due.lock();
            due.insert(time, ClockEntry { index, what });
            due.first_key_value().is_some_and(|(first, _)| *first == time)
        };
        if earliest {
            self.changed.notify_one();
        }
    }

    /// True for the first caller.
    pub(super) fn begin(&self) -> bool {
        !self.started.load(Ordering::Relaxed) && !self.started.swap(true, Ordering::AcqRel)
    }

    /// Resolves when an alarm has become the earliest, or the pool has ended.
    pub(super) fn changed(&self) -> Notified<'_> {
        self.changed.notified()
    }

    /// One waiting message fewer.
    pub(super) fn message_rang(&self) {
        self.messages.fetch_sub(1, Ordering::Relaxed);
    }

    pub(super) fn next_at(&self) -> Option<Instant> {
        self.due.lock().first_key_value().map(|((at, _), _)| *at)
    }

    pub(super) fn pop_due(&self, now: Instant) -> Option<ClockEntry> {
        let mut due = self.due.lock();
        let first = due.first_entry().filter(|first| first.key().0 <= now)?;
        Some(first.remove())
    }

    /// Lets the task notice a change.
    pub(crate) fn notify(&self) {
        self.changed.notify_one();
    }

    /// The number of messages without a key that wait for a retry.
    pub(crate) fn messages(&self) -> usize {
        self.messages.load(Ordering::Relaxed)
    }

    /// Takes out every waiting message without a key, to examine them under no lock. They still
    /// count as waiting.
    pub(crate) fn lift(&self) -> Vec<WaitingRetry> {
        let mut due = self.due.lock();
        let is_message = |alarm: &mut ClockEntry| {
            matches!(alarm.what, PoolAlarm::Message(_) | PoolAlarm::Mail(..))
        };
        let lifted = due.extract_if(.., |_, alarm| is_message(alarm));
        lifted.map(|(time, alarm)| WaitingRetry(time, alarm)).collect()
    }

    /// Puts back the lifted alarms that stay; this many were withdrawn.
    pub(crate) fn set_down(&self, stay: Vec<WaitingRetry>, withdrawn: usize) {
        self.messages.fetch_sub(withdrawn, Ordering::Relaxed);
        self.due.lock().extend(stay.into_iter().map(|waiting| (waiting.0, waiting.1)));
        // The earliest of them may be due by now.
        self.changed.notify_one();
    }

    /// The message is gone that this lane was to be woken for.
    pub(crate) fn forget_lane(&self, index: usize, id: LaneId) {
        let is_such = |what: &PoolAlarm| matches!(what, PoolAlarm::Lane(of) if *of == id);
        self.due.lock().retain(|_, alarm| alarm.index != index || !is_such(&alarm.what));
    }

    /// The messages are gone that these table slots were to be woken for.
    pub(crate) fn forget_tags(&self, tags: &[u32]) {
        let is_such = |what: &PoolAlarm| matches!(what, PoolAlarm::Tag(tag) if tags.contains(tag));
        self.due.lock().retain(|_, alarm| !is_such(&alarm.what));
    }

    /// Takes every waiting message without a key. Lanes keep theirs.
    pub(crate) fn drain<A: Actor, K: 'static>(&self) -> Entries<A, K> {
        let mut messages = Entries::<A, K>::new();
        let alarms = std::mem::take(&mut *self.due.lock());
        for message in alarms.into_values().filter_map(|alarm| alarm.what.message()) {
            if let Some(entry) = message.own::<A, K>() {
                messages.push_back(entry);
            }
        }
        self.messages.fetch_sub(messages.len(), Ordering::Relaxed);
        messages
    }
}
