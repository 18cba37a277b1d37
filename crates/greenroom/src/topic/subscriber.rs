//! What a topic knows of each of its subscribers.

use std::{
    collections::VecDeque,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

/// What became of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Offered {
    Taken,
    /// It did not fit in, and was counted.
    Missed,
    /// The subscriber is gone and wants no further event.
    Gone,
}

/// A recipient of events.
pub(crate) trait Subscriber<E>: Send + Sync {
    /// Sets aside the first events. Called once, under the lock of the topic: runs no user code.
    fn prepare(&self, replay: &VecDeque<Arc<E>>);
    /// Hands out the prepared events. Called once, under no lock.
    fn begin(&self) -> Offered;
    /// Takes an event without waiting. Called under no lock, by the producer alone.
    fn offer(&self, item: &Arc<E>) -> Offered;
    /// No event will ever follow.
    fn topic_ended(&self);
    /// Events that did not fit in so far.
    fn missed(&self) -> u64;
}

/// Counts the events that one subscriber misses, for itself and for its topic. A clone
/// counts for the same one.
#[derive(Debug, Clone)]
pub(super) struct Missed {
    own: Arc<AtomicU64>,
    all: Arc<AtomicU64>,
}

impl Missed {
    pub(super) fn new(all: Arc<AtomicU64>) -> Self {
        Self { own: Arc::default(), all }
    }

    pub(super) fn add(&self, events: u64) {
        self.own.fetch_add(events, Ordering::Relaxed);
        self.all.fetch_add(events, Ordering::Relaxed);
    }

    pub(super) fn so_far(&self) -> u64 {
        self.own.load(Ordering::Relaxed)
    }
}
