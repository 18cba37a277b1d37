//! The waiting messages of a lane.

use std::sync::Arc;

use crate::{
    deque::Deque,
    entry::{Entry, URGENT_RUN},
    payload::Payload,
    sync::Notify,
};

/// The waiting messages of a lane, and its state. The field order matters: what each message needs
/// comes first.
#[repr(C)]
pub(super) struct Line<T: Payload, K> {
    /// Later messages of the key, in order of acceptance; the first may wait for a retry.
    pub(super) queue: Deque<Entry<T, K>>,
    /// The number of them that are urgent and have not been attempted: they come before the others.
    pub(super) urgent: usize,
    /// Messages that a withdrawal examines under no lock. Those that stay come back here, so until
    /// then the lane is neither taken nor closed. Set and cleared by
    /// [`Lanes::lift`](super::Lanes::lift) and [`Lanes::set_down`](super::Lanes::set_down).
    pub(super) lifted: usize,
    /// The number of urgent messages taken in a row.
    pub(super) urgent_run: u32,
    /// The lane is parked, and its waiting messages hold no permit. Set and cleared under the same
    /// lock as the permits of the whole lane are given back or taken again: otherwise a permit
    /// would be counted twice, or never.
    pub(super) apart: bool,
    /// For a worker that collects a batch: notified when this many messages wait.
    pub(super) wanted: Option<(usize, Arc<Notify>)>,
    /// The reason why the lane is parked, if it is.
    pub(super) failed: Option<Arc<T::Failure>>,
    /// For a spare line: the number of spares from here down, and the next one below.
    pub(super) spares: u32,
    pub(super) below: Option<Box<Self>>,
}

/// A line is kept if it has room for at most this many messages.
const SMALL_LINE: usize = 16;

impl<T: Payload, K> Line<T, K> {
    pub(super) const fn new() -> Self {
        Self {
            queue: Deque::new(),
            urgent: 0,
            lifted: 0,
            urgent_run: 0,
            apart: false,
            wanted: None,
            failed: None,
            spares: 0,
            below: None,
        }
    }

    /// True if the line is empty, and holds little memory.
    pub(super) fn is_spare(&self) -> bool {
        let is_small = self.queue.is_empty() && self.queue.capacity() <= SMALL_LINE;
        is_small && self.wanted.is_none() && self.failed.is_none() && !self.apart
    }

    /// Puts a message into the line: an urgent one behind the other urgent ones, and never before a
    /// message that waits for a retry.
    pub(super) fn push(&mut self, entry: Entry<T, K>) {
        if !entry.urgent {
            return self.queue.push_back(entry);
        }
        self.queue.insert(self.retried() + self.urgent, entry);
        self.urgent += 1;
    }

    pub(super) fn is_urgent(&self) -> bool {
        self.urgent > 0 || self.queue.front().is_some_and(|first| first.urgent)
    }

    pub(super) fn is_as_long_as_wanted(&mut self) -> Option<Arc<Notify>> {
        let (wanted, _) = self.wanted.as_ref()?;
        (self.queue.len() >= *wanted).then(|| self.wanted.take())?.map(|(_, full)| full)
    }

    pub(super) fn retried(&self) -> usize {
        let mut retried = 0;
        while self.queue.get(retried).is_some_and(Entry::is_retry) {
            retried += 1;
        }
        retried
    }

    pub(super) fn evict(&mut self, urgent: bool) -> Option<Entry<T, K>> {
        let retried = self.retried();
        if !urgent {
            return self.queue.remove(retried + self.urgent);
        }
        self.urgent = self.urgent.checked_sub(1)?;
        self.queue.remove(retried)
    }

    /// Puts back the lifted messages that stay: behind those that wait for a retry by now, and
    /// before all others of their class.
    pub(super) fn set_down(&mut self, stay: Deque<Entry<T, K>>) {
        self.lifted = 0;
        let retried = self.retried();
        let mut later = std::mem::take(&mut self.queue);
        for _ in 0..retried {
            if let Some(retry) = later.pop_front() {
                self.queue.push_back(retry);
            }
        }
        let (mut urgent, mut normal) = (Deque::new(), Deque::new());
        let mut put_back = |mut entries: Deque<Entry<T, K>>| {
            while let Some(entry) = entries.pop_front() {
                match entry.urgent {
                    _ if entry.is_retry() => self.queue.push_back(entry),
                    true => urgent.push_back(entry),
                    false => normal.push_back(entry),
                }
            }
        };
        put_back(stay);
        put_back(later);
        self.urgent = urgent.len();
        self.queue.append(&mut urgent);
        self.queue.append(&mut normal);
    }

    /// Undoes a [`pop`](Self::pop).
    pub(super) fn unpop(&mut self, entry: Entry<T, K>) {
        if entry.is_retry() {
            return self.queue.push_front(entry);
        }
        let retried = self.retried();
        if entry.urgent {
            self.queue.insert(retried, entry);
            self.urgent += 1;
            self.urgent_run = self.urgent_run.saturating_sub(1);
        } else {
            self.urgent_run = if self.urgent > 0 { URGENT_RUN } else { 0 };
            self.queue.insert(retried + self.urgent, entry);
        }
    }

    /// Takes the first message, or a normal one after a run of urgent ones.
    pub(super) fn pop(&mut self) -> Option<Entry<T, K>> {
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
