//! The clock of a pool: messages and keys that wait for another attempt, and come due.
//!
//! One task per pool, which sleeps until the next alarm, on the runtime's time. Most pools never
//! need it, so it is started with the first alarm, or when no other task of the pool is left that
//! would notice the runtime's end.

use std::{
    cmp::Reverse,
    collections::BinaryHeap,
    sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering},
    time::Duration,
};

use greenroom_queue::lock::Mutex;
use greenroom_queue::{
    lanes::{KEPT_WHEN_EMPTY, LaneId},
    watchdog_handle::WatchdogHandle,
};
use tokio::{
    sync::{Notify, futures::Notified},
    time::Instant,
};

use super::pool_payload::Queued;
use crate::Actor;
use timed::later;

pub(super) mod task;
pub(crate) mod timed;

pub(crate) struct Clock<A: Actor, K> {
    pub(crate) watchdog: WatchdogHandle,
    /// The watchdog leaves this pool alone: what only it would find is never found.
    #[cfg(test)]
    pub(crate) unaided: AtomicBool,
    /// The task has been started. Set once.
    started: AtomicBool,
    /// An alarm has become the earliest, or the pool has ended.
    changed: Notify,
    due: Mutex<BinaryHeap<Reverse<ClockEntry<A, K>>>>,
    /// Orders alarms of the same instant.
    next: AtomicU64,
    /// Messages without a key among the alarms.
    messages: AtomicUsize,
}

pub(super) struct ClockEntry<A: Actor, K> {
    at: Instant,
    number: u64,
    pub(super) index: usize,
    pub(super) what: AlarmOf<A, K>,
}

pub(super) enum AlarmOf<A: Actor, K> {
    /// In the mailbox of the worker in this slot.
    Mail(usize, Box<Queued<A, K>>),
    Lane(LaneId),
    /// The first message of this table slot of a sticky pool, wherever it lies.
    Tag(u32),
    /// Whether the worker in this slot still holds up messages that are to go elsewhere.
    Held(u32),
    Message(Box<Queued<A, K>>),
}

/// A message without a key that waits for another attempt, out of the clock.
pub(crate) struct WaitingRetry<A: Actor, K>(ClockEntry<A, K>);

impl<A: Actor, K> WaitingRetry<A, K> {
    /// None for an alarm without a message, which is not lifted.
    pub(crate) fn message(&self) -> Option<&A::Message> {
        match &self.0.what {
            AlarmOf::Message(entry) | AlarmOf::Mail(_, entry) => Some(&entry.message),
            AlarmOf::Lane(_) | AlarmOf::Tag(_) | AlarmOf::Held(_) => None,
        }
    }

    pub(crate) fn into_entry(self) -> Option<Queued<A, K>> {
        match self.0.what {
            AlarmOf::Message(entry) | AlarmOf::Mail(_, entry) => Some(*entry),
            AlarmOf::Lane(_) | AlarmOf::Tag(_) | AlarmOf::Held(_) => None,
        }
    }
}

impl<A: Actor, K> PartialEq for ClockEntry<A, K> {
    fn eq(&self, other: &Self) -> bool {
        self.number == other.number
    }
}

impl<A: Actor, K> Eq for ClockEntry<A, K> {}

impl<A: Actor, K> PartialOrd for ClockEntry<A, K> {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl<A: Actor, K> Ord for ClockEntry<A, K> {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.at, self.number).cmp(&(other.at, other.number))
    }
}

impl<A: Actor, K> Clock<A, K> {
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
        self.set(index, after, AlarmOf::Lane(id));
    }

    pub(crate) fn park_message(&self, index: usize, entry: Queued<A, K>, after: Duration) {
        self.messages.fetch_add(1, Ordering::Relaxed);
        self.set(index, after, AlarmOf::Message(Box::new(entry)));
    }

    pub(crate) fn park_mail(&self, slot: usize, entry: Queued<A, K>, after: Duration) {
        self.messages.fetch_add(1, Ordering::Relaxed);
        self.set(0, after, AlarmOf::Mail(slot, Box::new(entry)));
    }

    pub(crate) fn park_tag(&self, tag: u32, after: Duration) {
        self.set(0, after, AlarmOf::Tag(tag));
    }

    pub(crate) fn look_at_held(&self, slot: u32, after: Duration) {
        self.set(0, after, AlarmOf::Held(slot));
    }

    fn set(&self, index: usize, after: Duration, what: AlarmOf<A, K>) {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let alarm = ClockEntry { at: later(after), number, index, what };
        let earliest = {
            let mut due = self.due.lock();
            due.push(Reverse(alarm));
            due.peek().is_some_and(|Reverse(first)| first.number == number)
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

    /// One message less waits.
    pub(super) fn message_rang(&self) {
        self.messages.fetch_sub(1, Ordering::Relaxed);
    }

    pub(super) fn next_at(&self) -> Option<Instant> {
        self.due.lock().peek().map(|Reverse(alarm)| alarm.at)
    }

    pub(super) fn pop_due(&self, now: Instant) -> Option<ClockEntry<A, K>> {
        let mut due = self.due.lock();
        if due.peek().is_none_or(|Reverse(alarm)| alarm.at > now) {
            return None;
        }
        let alarm = due.pop().map(|Reverse(alarm)| alarm);
        if due.is_empty() && due.capacity() > KEPT_WHEN_EMPTY {
            *due = BinaryHeap::new();
        }
        alarm
    }

    /// Lets the task look at the change.
    pub(crate) fn notify(&self) {
        self.changed.notify_one();
    }

    /// Messages without a key that wait for another attempt.
    pub(crate) fn messages(&self) -> usize {
        self.messages.load(Ordering::Relaxed)
    }

    /// Takes every message without a key that waits out, to be looked at under no lock. They are
    /// counted as if they were there.
    pub(crate) fn lift(&self) -> Vec<WaitingRetry<A, K>> {
        let mut due = self.due.lock();
        let mut lifted = Vec::new();
        for Reverse(alarm) in std::mem::take(&mut *due).into_vec() {
            match alarm.what {
                AlarmOf::Message(_) | AlarmOf::Mail(..) => lifted.push(WaitingRetry(alarm)),
                AlarmOf::Lane(_) | AlarmOf::Tag(_) | AlarmOf::Held(_) => due.push(Reverse(alarm)),
            }
        }
        lifted
    }

    /// Puts back the lifted alarms that stay; so many were withdrawn.
    pub(crate) fn set_down(&self, stay: Vec<WaitingRetry<A, K>>, withdrawn: usize) {
        self.messages.fetch_sub(withdrawn, Ordering::Relaxed);
        let mut due = self.due.lock();
        for waiting in stay {
            due.push(Reverse(waiting.0));
        }
        drop(due);
        // The earliest of them may be due by now.
        self.changed.notify_one();
    }

    /// The message is gone for which this lane was to be woken.
    pub(crate) fn forget_lane(&self, index: usize, id: LaneId) {
        self.forget(&|alarm| {
            alarm.index == index && matches!(alarm.what, AlarmOf::Lane(of) if of == id)
        });
    }

    /// The messages are gone for which these table slots were to be woken.
    pub(crate) fn forget_tags(&self, tags: &[u32]) {
        self.forget(&|alarm| matches!(alarm.what, AlarmOf::Tag(tag) if tags.contains(&tag)));
    }

    fn forget(&self, is_such: &dyn Fn(&ClockEntry<A, K>) -> bool) {
        self.due.lock().retain(|Reverse(alarm)| !is_such(alarm));
    }

    /// Takes every message without a key that waits. Lanes keep theirs.
    pub(crate) fn drain(&self) -> Vec<Queued<A, K>> {
        let alarms = std::mem::take(&mut *self.due.lock()).into_vec();
        let mut messages = Vec::new();
        for Reverse(alarm) in alarms {
            if let Some(message) = WaitingRetry(alarm).into_entry() {
                messages.push(message);
            }
        }
        self.messages.fetch_sub(messages.len(), Ordering::Relaxed);
        messages
    }
}
