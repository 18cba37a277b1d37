//! The place of a subscriber among the events of a topic.

use std::{
    collections::VecDeque,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use greenroom_queue::discard::discard;
use tokio::sync::broadcast::{self, error::RecvError};

use super::hub::{Hub, Numbered, TopicCounts};
use crate::event::Event;

/// Receives the events of a topic, for code that is no actor. Dropping it ends the subscription.
///
/// ```
/// # use greenroom::{Topic, topic::Event};
/// # #[tokio::main(flavor = "current_thread")] async fn main() {
/// let (topic, mut producer) = Topic::named("readings").capacity(2).open();
/// let mut receiver = topic.receiver();
/// for reading in [1, 2, 3] {
///     producer.publish(reading);
/// }
/// drop((topic, producer));
/// assert_eq!(receiver.recv().await, Some(Event::Lagged(1)));
/// assert_eq!(receiver.recv().await, Some(Event::Item(2)));
/// assert_eq!(receiver.recv().await, Some(Event::Item(3)));
/// assert_eq!(receiver.recv().await, None);
/// # }
/// ```
pub struct Receiver<E> {
    ring: broadcast::Receiver<Numbered<E>>,
    /// Events that come before those in the ring: at first, the replayed ones.
    ahead: VecDeque<Numbered<E>>,
    /// The number of the next event. One with a lower number was already replayed; one with a
    /// higher number shows how many were missed.
    next: u64,
    seat: Arc<Seat>,
}

/// A subscription, as its topic counts it.
struct Seat {
    missed: Arc<AtomicU64>,
    counts: Arc<TopicCounts>,
}

impl Drop for Seat {
    fn drop(&mut self) {
        self.counts.subscribers.send_modify(|subscribers| *subscribers -= 1);
    }
}

impl<E: Clone> Receiver<E> {
    /// Waits for the next event. `None` once all of them were received and neither the topic nor
    /// its producer exists any more.
    ///
    /// # Cancel safety
    /// A dropped future has consumed nothing.
    pub async fn recv(&mut self) -> Option<Event<E>> {
        self.next().await.map(Event::into_owned)
    }

    /// The next event if there is one, without waiting.
    pub fn try_recv(&mut self) -> Option<Event<E>> {
        while !(self.ahead.is_empty() && self.ring.is_empty()) {
            // An error means that events were missed, which the next number shows too.
            let first = self.ahead.pop_front().or_else(|| self.ring.try_recv().ok());
            if let Some(event) = first.and_then(|first| self.read(first)) {
                return Some(event.into_owned());
            }
        }
        None
    }
}

impl<E> Receiver<E> {
    /// A new subscription. It takes a place in the ring first and the replayed events second; the
    /// producer does the opposite. So an event may be in both, but never in neither.
    pub(super) fn new(hub: &Hub<E>) -> Self {
        let ring = hub.ring.subscribe();
        let (ahead, published) = {
            let kept = hub.kept.lock();
            (kept.replay.clone(), kept.published)
        };
        let next = ahead.front().map_or(published, |(first, _)| *first);
        hub.counts.subscribers.send_modify(|subscribers| *subscribers += 1);
        let seat = Seat { missed: Arc::default(), counts: hub.counts.clone() };
        Self { ring, ahead, next, seat: Arc::new(seat) }
    }

    /// Like `recv`, without a copy.
    pub(super) async fn next(&mut self) -> Option<Event<Arc<E>>> {
        while self.wait().await {
            let first = self.ahead.pop_front();
            if let Some(event) = first.and_then(|first| self.read(first)) {
                return Some(event);
            }
        }
        None
    }

    /// Waits until an event is available. False if none will follow.
    pub(super) async fn wait(&mut self) -> bool {
        while self.ahead.is_empty() {
            match self.ring.recv().await {
                Ok(event) => self.ahead.push_back(event),
                Err(RecvError::Lagged(_)) => {}
                Err(RecvError::Closed) => return false,
            }
        }
        true
    }

    fn read(&mut self, (number, item): Numbered<E>) -> Option<Event<Arc<E>>> {
        let missed = number.checked_sub(self.next)?;
        self.next = number;
        if missed > 0 {
            self.miss(missed);
            self.ahead.push_front((number, item));
            return Some(Event::Lagged(missed));
        }
        self.next += 1;
        Some(Event::Item(item))
    }

    pub(super) fn miss(&self, events: u64) {
        self.seat.missed.fetch_add(events, Ordering::Relaxed);
        self.seat.counts.missed.fetch_add(events, Ordering::Relaxed);
    }

    /// The subscriber was found to be gone.
    pub(super) fn remove(self) {
        self.seat.counts.removed.fetch_add(1, Ordering::Relaxed);
    }

    /// The counter of `missed`.
    pub(super) fn counter(&self) -> Arc<AtomicU64> {
        self.seat.missed.clone()
    }

    /// The number of missed events that `Lagged` has reported.
    pub fn missed(&self) -> u64 {
        self.seat.missed.load(Ordering::Relaxed)
    }
}

#[cfg(feature = "gather")]
impl<E> Receiver<E> {
    /// A second one at the same place, for the same subscription.
    pub(super) fn fork(&mut self) -> Self {
        let ring = self.ring.resubscribe();
        self.look_ahead();
        Self { ring, ahead: self.ahead.clone(), next: self.next, seat: self.seat.clone() }
    }

    /// Takes the events in the ring. Returns the number of the event after them.
    pub(super) fn look_ahead(&mut self) -> u64 {
        while !self.ring.is_empty() {
            self.ahead.extend(self.ring.try_recv());
        }
        self.ahead.back().map_or(self.next, |(last, _)| last + 1)
    }

    /// Forgets the events before this one.
    pub(super) fn skip_to(&mut self, next: u64) {
        self.next = next;
        let skipped = self.ahead.partition_point(|(number, _)| *number < next);
        self.ahead.drain(..skipped).for_each(discard);
    }
}

impl<E> Drop for Receiver<E> {
    /// Takes out the unread events: the ring would drop them under a lock, as it does with those
    /// published in the meantime.
    fn drop(&mut self) {
        while !self.ring.is_empty() {
            discard(self.ring.try_recv());
        }
    }
}

impl_debug!([E] Receiver<E>, |this| missed: this.missed());
