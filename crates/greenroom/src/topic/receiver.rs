//! Events for code that is no actor.

use std::{fmt, future::poll_fn, sync::Arc};

use super::{
    buffer::{Buffer, NextEvent},
    event::Event,
    hub::Hub,
    subscription::Subscription,
};

/// Receives the events of a topic, for code that is no actor. Dropping it ends the subscription.
///
/// ```
/// # use greenroom::{Topic, topic::Event};
/// # #[tokio::main(flavor = "current_thread")] async fn main() {
/// let (topic, mut producer) = Topic::named("readings").open();
/// let mut receiver = topic.receiver(2);
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
    buffer: Arc<Buffer<E>>,
    subscription: Subscription<E>,
}

impl<E: Clone + Send + Sync + 'static> Receiver<E> {
    pub(super) fn new(hub: &Arc<Hub<E>>, capacity: usize) -> Self {
        let buffer = Arc::new(Buffer::new(capacity, hub.missed()));
        let subscription = Subscription::new(hub, buffer.clone());
        Self { buffer, subscription }
    }

    /// Waits for the next event. `None` when the buffer is empty and neither the topic nor its
    /// producer exists any more.
    ///
    /// # Cancel safety
    /// A dropped future has taken nothing.
    pub async fn recv(&mut self) -> Option<Event<E>> {
        poll_fn(|cx| self.buffer.poll_take(cx)).await.map(owned)
    }

    /// The next event if there is one, without waiting.
    pub fn try_recv(&mut self) -> Option<Event<E>> {
        match self.buffer.take() {
            NextEvent::Event(event) => Some(owned(event)),
            NextEvent::Nothing | NextEvent::Ended => None,
        }
    }

    /// Events that did not fit into the buffer so far.
    pub fn missed(&self) -> u64 {
        self.subscription.missed()
    }
}

impl<E> fmt::Debug for Receiver<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Receiver").field("subscription", &self.subscription).finish_non_exhaustive()
    }
}

/// A copy, unless this is the last hold on it.
pub(crate) fn owned<E: Clone>(event: Event<Arc<E>>) -> Event<E> {
    match event {
        Event::Item(item) => Event::Item(Arc::unwrap_or_clone(item)),
        Event::Lagged(missed) => Event::Lagged(missed),
    }
}
