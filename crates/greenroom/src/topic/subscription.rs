//! A subscription that ends when it is dropped.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use tokio::{runtime::Handle, task::AbortHandle};

/// A subscription, which ends when this is dropped. Events that were not sent by then are not sent
/// any more, except one that another thread is just sending.
#[derive(Debug)]
#[must_use = "a subscription ends when it is dropped"]
pub struct Subscription {
    /// The task that feeds the subscriber. `None` once it is detached.
    feed: Option<AbortHandle>,
    missed: Arc<AtomicU64>,
}

impl Subscription {
    /// Runs the feed of the subscriber.
    pub(super) fn spawn(
        on: &Handle,
        missed: Arc<AtomicU64>,
        feed: impl Future<Output = ()> + Send + 'static,
    ) -> Self {
        Self { feed: Some(on.spawn(feed).abort_handle()), missed }
    }

    /// The number of events that the subscriber has missed. Each gap is counted when the subscriber
    /// reaches the next event.
    pub fn missed(&self) -> u64 {
        self.missed.load(Ordering::Relaxed)
    }

    /// False once the subscriber was found gone, or once everything was sent and neither the topic
    /// nor its producer exists any more.
    pub fn is_active(&self) -> bool {
        self.feed.as_ref().is_some_and(|feed| !feed.is_finished())
    }

    /// Keeps the subscription alive as long as the topic and the subscriber.
    pub fn detach(mut self) {
        self.feed = None;
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        if let Some(feed) = &self.feed {
            feed.abort();
        }
    }
}
