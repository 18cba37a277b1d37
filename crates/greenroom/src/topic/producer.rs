//! The right to publish.

use std::sync::{Arc, atomic::Ordering};

use tokio::sync::watch;

use super::hub::Hub;

/// The notices of a producer, alternating, `Start` first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Notice {
    /// The first subscriber has arrived.
    Start,
    /// The last subscriber has left.
    Stop,
}

/// The only right to publish to a topic. Move it to hand it over; dropping it returns it to the
/// topic, from which [`Topic::producer`](super::Topic::producer) takes it.
///
/// A topic exists as long as its producer does, even without a handle.
pub struct Producer<E> {
    hub: Arc<Hub<E>>,
    subscribers: watch::Receiver<usize>,
    /// The last notice of this producer.
    told: bool,
}

impl<E> Producer<E> {
    /// For the caller that has taken the right to publish from the hub, or made the hub.
    pub(super) fn new(hub: &Arc<Hub<E>>) -> Self {
        Self { hub: hub.clone(), subscribers: hub.counts.subscribers.subscribe(), told: false }
    }

    /// The name of the topic.
    pub fn topic(&self) -> &str {
        &self.hub.name
    }

    /// Publishes an event, without waiting for any subscriber. Returns the number of subscribers;
    /// those that have left count until this event finds them gone.
    pub fn publish(&mut self, event: E) -> usize {
        self.hub.publish(event)
    }

    /// True while there are subscribers. Those that have left count until the next event.
    pub fn is_wanted(&self) -> bool {
        *self.subscribers.borrow() > 0
    }

    /// Waits until the first subscriber has arrived ([`Notice::Start`]), then until the last one
    /// has left ([`Notice::Stop`]), and so on. A change that was undone before this call is not
    /// reported. A new producer gets `Start` first, if there are subscribers.
    ///
    /// # Cancel safety
    /// A dropped future has reported nothing: the next one reports it.
    pub async fn notice(&mut self) -> Notice {
        let told = self.told;
        match self.subscribers.wait_for(|subscribers| (*subscribers > 0) != told).await {
            Ok(subscribers) => self.told = *subscribers > 0,
            Err(_) => unreachable!("the producer holds the topic, which holds the other end"),
        }
        if self.told { Notice::Start } else { Notice::Stop }
    }
}

impl<E> Drop for Producer<E> {
    fn drop(&mut self) {
        self.hub.produced.store(false, Ordering::Release);
    }
}

impl_debug!([E] Producer<E>, |this| topic: this.topic());
