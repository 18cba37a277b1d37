//! A buffer from which one receiver takes items, and which never makes anyone wait.

use std::{collections::VecDeque, task::Poll};

use greenroom_queue::discard::discard;
use greenroom_queue::lock::Mutex;
use tokio::sync::Notify;

use super::Event;

/// Not a ring of tokio, which topics use: an item is dropped under no lock, since the `Drop` of
/// the error in it may emit another; and misses are counted at once.
#[derive(Debug)]
pub(crate) struct EventBuffer<T> {
    capacity: usize,
    /// Runs no user code: items are dropped outside.
    state: Mutex<State<T>>,
    /// Notified of an item, or of the end.
    changed: Notify,
}

#[derive(Debug)]
struct State<T> {
    /// Oldest first; never more than the capacity.
    queue: VecDeque<T>,
    /// Items before the oldest one that the receiver has not learned of.
    untold: u64,
    /// Items that did not fit so far.
    missed: u64,
    /// No item will ever follow.
    ended: bool,
}

impl<T> EventBuffer<T> {
    pub(crate) fn new(capacity: usize) -> Self {
        let state = State { queue: VecDeque::new(), untold: 0, missed: 0, ended: false };
        Self { capacity, state: Mutex::new(state), changed: Notify::new() }
    }

    /// The next item for the receiver; `None` if nothing will ever follow.
    pub(crate) fn take(&self) -> Poll<Option<Event<T>>> {
        let mut state = self.state.lock();
        match std::mem::take(&mut state.untold) {
            0 => {}
            untold => return Poll::Ready(Some(Event::Lagged(untold))),
        }
        match state.queue.pop_front() {
            Some(item) => Poll::Ready(Some(Event::Item(item))),
            None if state.ended => Poll::Ready(None),
            None => Poll::Pending,
        }
    }

    /// The next item, once there is one.
    ///
    /// # Cancel safety
    /// A dropped future has consumed nothing.
    pub(crate) async fn next(&self) -> Option<Event<T>> {
        loop {
            if let Poll::Ready(next) = self.take() {
                return next;
            }
            self.changed.notified().await;
        }
    }

    /// Puts an item at the end; at the bound, the oldest is dropped.
    pub(crate) fn offer(&self, item: T) {
        let mut state = self.state.lock();
        state.queue.push_back(item);
        let excess = state.queue.len() > self.capacity;
        let oldest = if excess { state.queue.pop_front() } else { None };
        state.untold += u64::from(excess);
        state.missed += u64::from(excess);
        drop(state);
        discard(oldest);
        self.changed.notify_one();
    }

    pub(crate) fn end(&self) {
        self.state.lock().ended = true;
        self.changed.notify_one();
    }

    /// Items that did not fit so far.
    pub(crate) fn missed(&self) -> u64 {
        self.state.lock().missed
    }
}
