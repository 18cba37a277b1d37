//! A subscriber that is no actor: events wait in a buffer of its own.

use std::{
    collections::VecDeque,
    sync::{Arc, atomic::AtomicU64},
    task::{Context, Poll, Waker},
};

use greenroom_queue::discard::discard;
use greenroom_queue::lock::Mutex;

use super::{
    event::Event,
    subscriber::{Missed, Offered, Subscriber},
};

pub(crate) struct Buffer<E> {
    capacity: usize,
    missed: Missed,
    /// Runs no user code: events and wakers are cloned, dropped and woken outside.
    state: Mutex<State<E>>,
}

struct State<E> {
    /// Oldest first; never more than the capacity.
    queue: VecDeque<Arc<E>>,
    /// Events that were before the oldest one, and of which the receiver has not been told.
    untold: u64,
    /// No event will ever follow.
    ended: bool,
    /// Of the receiver, while it waits.
    waker: Option<Waker>,
}

/// What there is for the receiver.
pub(crate) enum NextEvent<E> {
    Event(Event<Arc<E>>),
    Nothing,
    Ended,
}

impl<E> Buffer<E> {
    pub(crate) fn new(capacity: usize, missed: Arc<AtomicU64>) -> Self {
        let state = State { queue: VecDeque::new(), untold: 0, ended: false, waker: None };
        Self { capacity, missed: Missed::new(missed), state: Mutex::new(state) }
    }

    pub(crate) fn take(&self) -> NextEvent<E> {
        self.state.lock().take()
    }

    /// Takes the next event, or has the caller woken when there is one.
    pub(crate) fn poll_take(&self, cx: &mut Context<'_>) -> Poll<Option<Event<Arc<E>>>> {
        let waker = cx.waker().clone();
        let mut state = self.state.lock();
        let found = match state.take() {
            NextEvent::Event(event) => Poll::Ready(Some(event)),
            NextEvent::Ended => Poll::Ready(None),
            NextEvent::Nothing => Poll::Pending,
        };
        let unused = if found.is_pending() { state.waker.replace(waker) } else { Some(waker) };
        drop(state);
        drop(unused);
        found
    }
}

impl<E> State<E> {
    fn take(&mut self) -> NextEvent<E> {
        match std::mem::take(&mut self.untold) {
            0 => {}
            untold => return NextEvent::Event(Event::Lagged(untold)),
        }
        match self.queue.pop_front() {
            Some(item) => NextEvent::Event(Event::Item(item)),
            None if self.ended => NextEvent::Ended,
            None => NextEvent::Nothing,
        }
    }
}

impl<E: Send + Sync> Subscriber<E> for Buffer<E> {
    /// Events beyond the buffer do not count as missed: they were published before.
    fn prepare(&self, replay: &VecDeque<Arc<E>>) {
        let skipped = replay.len().saturating_sub(self.capacity);
        self.state.lock().queue.extend(replay.iter().skip(skipped).cloned());
    }

    fn begin(&self) -> Offered {
        Offered::Taken
    }

    fn offer(&self, item: &Arc<E>) -> Offered {
        let mut state = self.state.lock();
        state.queue.push_back(item.clone());
        let excess = state.queue.len() > self.capacity;
        let oldest = if excess { state.queue.pop_front() } else { None };
        state.untold += u64::from(excess);
        let waker = state.waker.take();
        drop(state);
        if excess {
            self.missed.add(1);
            discard(oldest);
        }
        if let Some(waker) = waker {
            waker.wake();
        }
        if self.capacity == 0 { Offered::Missed } else { Offered::Taken }
    }

    fn topic_ended(&self) {
        let waker = {
            let mut state = self.state.lock();
            state.ended = true;
            state.waker.take()
        };
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    fn missed(&self) -> u64 {
        self.missed.so_far()
    }
}
