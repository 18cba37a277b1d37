//! The state that the handles of a topic share.

use std::{
    collections::VecDeque,
    sync::{
        Arc, Weak,
        atomic::{AtomicBool, AtomicU64},
    },
};

use greenroom_queue::discard::{discard, wake_tasks};
use greenroom_queue::lock::Mutex;
use tokio::sync::{broadcast, watch};

/// An event and its number. The first one of a topic is 0.
pub(super) type Numbered<E> = (u64, Arc<E>);

/// Held by topics and the producer, not by subscribers. Its end closes the ring.
pub(super) struct Hub<E> {
    pub(super) name: Arc<str>,
    /// How many events are kept for later subscribers.
    replay: usize,
    /// How many events the ring holds: a power of two.
    capacity: usize,
    pub(super) ring: broadcast::Sender<Numbered<E>>,
    /// Whether the right to publish is taken.
    pub(super) produced: AtomicBool,
    pub(super) counts: Arc<TopicCounts>,
    /// Runs no user code: neither that of events nor wakers.
    pub(super) kept: Mutex<KeptEvents<E>>,
}

/// The counts of subscribers, which outlive their topic.
#[derive(Default)]
pub(super) struct TopicCounts {
    /// Subscriptions that have not ended.
    pub(super) subscribers: watch::Sender<usize>,
    pub(super) missed: AtomicU64,
    pub(super) removed: AtomicU64,
}

pub(super) struct KeptEvents<E> {
    pub(super) published: u64,
    /// The last events, oldest first; never more than `Hub::replay`.
    pub(super) replay: VecDeque<Numbered<E>>,
    /// The last events, as many as the ring holds. The ring drops the one that it overwrites under
    /// its locks; the producer holds that one until then, so that no `Drop` of a user runs there.
    recent: VecDeque<Weak<E>>,
}

impl<E> Hub<E> {
    /// Takes the right to publish, for the first producer.
    pub(super) fn new(name: Arc<str>, replay: usize, capacity: usize) -> Self {
        let capacity = capacity.max(1).next_power_of_two();
        let (replayed, recent) = (VecDeque::new(), VecDeque::new());
        Self {
            name,
            replay,
            capacity,
            ring: broadcast::Sender::new(capacity),
            produced: AtomicBool::new(true),
            counts: Arc::default(),
            kept: Mutex::new(KeptEvents { published: 0, replay: replayed, recent }),
        }
    }

    /// Keeps an event for later subscribers, then puts it into the ring. Returns the number of
    /// subscribers. Only for the producer.
    pub(super) fn publish(&self, event: E) -> usize {
        let item = Arc::new(event);
        let (number, let_go) = self.keep(&item);
        wake_tasks(|| {
            // An error means that there is no subscriber.
            let _ = self.ring.send((number, item.clone()));
        });
        let_go.into_iter().for_each(discard);
        discard(item);
        *self.counts.subscribers.borrow()
    }

    /// Returns the number of the event, and the events that it displaces.
    fn keep(&self, item: &Arc<E>) -> (u64, [Option<Arc<E>>; 2]) {
        let mut kept = self.kept.lock();
        let number = kept.published;
        kept.published += 1;
        kept.replay.push_back((number, item.clone()));
        kept.recent.push_back(Arc::downgrade(item));
        let replayed = if kept.replay.len() > self.replay { kept.replay.pop_front() } else { None };
        let oldest = if kept.recent.len() > self.capacity { kept.recent.pop_front() } else { None };
        (number, [replayed.map(|(_, item)| item), oldest.and_then(|oldest| oldest.upgrade())])
    }
}
