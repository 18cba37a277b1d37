//! Items that wait to be exported.

use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::Notify;

use super::counts::{Signal, SignalCounts};

/// At most this many items are sent at once, as OpenTelemetry's own exporters do.
pub(super) const BATCH: usize = 512;

/// At most this many wait: enough for some seconds without an answer, in some megabytes.
pub(super) const ROOM: usize = 8_192;

/// Items of one signal, in their order.
pub(super) struct Queue<T> {
    signal: Signal,
    items: Mutex<Vec<T>>,
    /// Notified when there are enough for a request.
    enough: Notify,
    counts: Arc<SignalCounts>,
}

impl<T> Queue<T> {
    pub(super) fn new(signal: Signal, counts: Arc<SignalCounts>) -> Self {
        Self { signal, items: Mutex::default(), enough: Notify::new(), counts }
    }

    /// Takes an item, or drops and counts it if there is no room. The lock is held only while items
    /// are added or taken, never while the endpoint is awaited.
    pub(super) fn push(&self, item: T) {
        let mut items = self.items.lock();
        if items.len() >= ROOM {
            drop(items);
            return self.counts.dropped(self.signal, 1);
        }
        items.push(item);
        if items.len() == BATCH {
            drop(items);
            self.enough.notify_one();
        }
    }

    /// The oldest items, as many as are sent at once.
    pub(super) fn take(&self) -> Vec<T> {
        let mut items = self.items.lock();
        if items.len() <= BATCH {
            return std::mem::take(&mut *items);
        }
        items.drain(..BATCH).collect()
    }

    /// Waits until there are enough for a request. May return earlier.
    ///
    /// # Cancel safety
    /// Nothing is lost.
    pub(super) async fn enough(&self) {
        self.enough.notified().await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn o06_a_full_queue_drops_what_is_new_and_counts_it() {
        let counts = Arc::<SignalCounts>::default();
        let queue = Queue::new(Signal::Traces, counts.clone());
        (0..ROOM + 3).for_each(|item| queue.push(item));
        assert_eq!(counts.get(Signal::Traces), (0, 3));
        assert_eq!(queue.take(), (0..BATCH).collect::<Vec<_>>());
        queue.push(ROOM);
        let rest: Vec<_> = std::iter::repeat_with(|| queue.take())
            .take_while(|batch| !batch.is_empty())
            .flatten()
            .collect();
        assert_eq!(rest, (BATCH..=ROOM).collect::<Vec<_>>());
        assert_eq!(counts.get(Signal::Traces), (0, 3));
    }
}
