//! What ends when it is dropped.

use std::{
    fmt,
    sync::{Arc, Weak},
};

use super::{hub::Hub, subscriber::Subscriber};

/// A subscription, which ends when this is dropped. An event that is being published at that
/// moment may still arrive.
#[must_use = "a subscription ends when it is dropped"]
pub struct Subscription<E> {
    hub: Weak<Hub<E>>,
    number: u64,
    subscriber: Arc<dyn Subscriber<E>>,
}

impl<E> Subscription<E> {
    pub(super) fn new(hub: &Arc<Hub<E>>, subscriber: Arc<dyn Subscriber<E>>) -> Self {
        let number = hub.add(&subscriber);
        Self { hub: Arc::downgrade(hub), number, subscriber }
    }

    /// The number of events that the subscriber has missed so far, whether it has been told or not.
    pub fn missed(&self) -> u64 {
        self.subscriber.missed()
    }

    /// False when the subscriber was found to be gone, and when neither the topic nor its
    /// producer exists any more.
    pub fn is_active(&self) -> bool {
        self.hub.upgrade().is_some_and(|hub| hub.contains(self.number))
    }

    /// Lets the subscription live as long as the topic and the subscriber do.
    pub fn detach(mut self) {
        self.hub = Weak::new();
    }
}

impl<E> Drop for Subscription<E> {
    fn drop(&mut self) {
        if let Some(hub) = self.hub.upgrade() {
            hub.remove(self.number);
        }
    }
}

impl<E> fmt::Debug for Subscription<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let subscription = &mut f.debug_struct("Subscription");
        subscription.field("number", &self.number).field("missed", &self.missed());
        subscription.finish_non_exhaustive()
    }
}
