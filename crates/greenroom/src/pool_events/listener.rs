//! The buffer from which one receiver takes its notices.

use std::{collections::VecDeque, sync::Arc, task::Poll};

use greenroom_queue::discard::discard;
use greenroom_queue::lock::Mutex;
use tokio::sync::Notify;

use super::event::PoolEventRecord;
use crate::event::Event;

/// Not a ring of tokio, which topics use: a notice is dropped under no lock, since the `Drop` of
/// the error in it may emit another; and misses are counted at once.
pub(super) struct Listener {
    capacity: usize,
    /// Runs no user code: notices are dropped outside.
    state: Mutex<State>,
    /// Notified of a notice, or of the end.
    changed: Notify,
}

#[derive(Default)]
struct State {
    /// Oldest first; never more than the capacity.
    queue: VecDeque<Arc<PoolEventRecord>>,
    /// Notices before the oldest one that the receiver has not learned of.
    untold: u64,
    /// Notices that did not fit so far.
    missed: u64,
    /// No notice will ever follow.
    ended: bool,
}

/// The next item for the receiver; `None` if nothing will ever follow.
type NextNotice = Poll<Option<Event<Arc<PoolEventRecord>>>>;

impl Listener {
    pub(super) fn new(capacity: usize) -> Self {
        Self { capacity, state: Mutex::default(), changed: Notify::new() }
    }

    pub(super) fn take(&self) -> NextNotice {
        self.state.lock().take()
    }

    /// The next notice, once there is one.
    ///
    /// # Cancel safety
    /// A dropped future has consumed nothing.
    pub(super) async fn next(&self) -> Option<Event<Arc<PoolEventRecord>>> {
        loop {
            if let Poll::Ready(next) = self.take() {
                return next;
            }
            self.changed.notified().await;
        }
    }

    pub(super) fn offer(&self, notice: &Arc<PoolEventRecord>) {
        let mut state = self.state.lock();
        state.queue.push_back(notice.clone());
        let excess = state.queue.len() > self.capacity;
        let oldest = if excess { state.queue.pop_front() } else { None };
        state.untold += u64::from(excess);
        state.missed += u64::from(excess);
        drop(state);
        discard(oldest);
        self.changed.notify_one();
    }

    pub(super) fn end(&self) {
        self.state.lock().ended = true;
        self.changed.notify_one();
    }

    /// Notices that did not fit so far.
    pub(super) fn missed(&self) -> u64 {
        self.state.lock().missed
    }
}

impl State {
    fn take(&mut self) -> NextNotice {
        match std::mem::take(&mut self.untold) {
            0 => {}
            untold => return Poll::Ready(Some(Event::Lagged(untold))),
        }
        match self.queue.pop_front() {
            Some(notice) => Poll::Ready(Some(Event::Item(notice))),
            None if self.ended => Poll::Ready(None),
            None => Poll::Pending,
        }
    }
}
