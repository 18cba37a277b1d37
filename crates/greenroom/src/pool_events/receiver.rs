//! Receivers of events.

use std::{
    sync::{Arc, Weak},
    task::Poll,
};

use super::{
    event::PoolEventRecord,
    hub::{EventHub, Listener},
};
use crate::event::Event;

/// Receives notices until it is dropped.
///
/// ```
/// # use std::sync::Arc;
/// # use greenroom::{PoolEvent, PoolEvents, pool_events::Event};
/// # #[tokio::main(flavor = "current_thread")] async fn main() {
/// let notices = PoolEvents::new(1); // a receiver may be one behind
/// let mut receiver = notices.subscribe();
/// let pool: Arc<str> = "images".into();
/// notices.emit(&pool, PoolEvent::MailboxFull);
/// notices.emit(&pool, PoolEvent::WorkerDisabled { slot: 3 });
/// drop(notices);
///
/// assert!(matches!(receiver.recv().await, Some(Event::Lagged(1))));
/// let Some(Event::Item(notice)) = receiver.recv().await else { panic!("one fits in") };
/// assert!(matches!(notice.what, PoolEvent::WorkerDisabled { slot: 3 }));
/// assert!(receiver.recv().await.is_none()); // the hub is gone
/// # }
/// ```
#[must_use = "notices are received until this is dropped"]
pub struct PoolEventReceiver {
    /// If the last handle of the hub is dropped, the listener's stream ends.
    hub: Weak<EventHub>,
    listener: Arc<Listener>,
}

impl PoolEventReceiver {
    pub(super) fn new(hub: Option<&Arc<EventHub>>) -> Self {
        if let Some(hub) = hub {
            return Self { hub: Arc::downgrade(hub), listener: hub.add() };
        }
        let listener = Listener::new(0);
        listener.end();
        Self { hub: Weak::new(), listener: Arc::new(listener) }
    }

    /// Waits for the next notice, or for the number of missed ones before it. `None` when
    /// everything was received and no handle of the hub exists any more; this never happens
    /// with the global hub.
    ///
    /// # Cancel safety
    /// A dropped future has consumed nothing.
    pub async fn recv(&mut self) -> Option<Event<PoolEventRecord>> {
        self.listener.next().await.map(Event::into_owned)
    }

    /// The next notice if there is one, without waiting.
    pub fn try_recv(&mut self) -> Option<Event<PoolEventRecord>> {
        match self.listener.take() {
            Poll::Ready(next) => next.map(Event::into_owned),
            Poll::Pending => None,
        }
    }

    /// Notices that did not fit into the buffer so far.
    pub fn missed(&self) -> u64 {
        self.listener.missed()
    }
}

impl Drop for PoolEventReceiver {
    fn drop(&mut self) {
        if let Some(hub) = self.hub.upgrade() {
            hub.remove(&self.listener);
        }
    }
}

impl_debug!([] PoolEventReceiver, |this| missed: this.missed());
