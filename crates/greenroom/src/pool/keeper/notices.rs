//! Notices on their way to a keeper: a bounded line that never makes the pool wait.

use std::{
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

use tokio::time::Instant;

use super::notice::PoolNotice;
use crate::event::{Event, buffer::EventBuffer};

/// The most notices that wait: enough for two restarts of a hundred workers.
const MOST: usize = 256;

/// Under a flood every message finds no room; a keeper needs to be notified only a few times a
/// second.
const SATURATED_EVERY: Duration = Duration::from_millis(100);

/// The line between a pool and its keeper.
#[derive(Debug)]
pub(crate) struct Notices {
    line: EventBuffer<PoolNotice>,
    /// The time that `quiet_until` is counted from.
    since: Instant,
    /// Until this time, in milliseconds, the pool does not report again that it is saturated.
    quiet_until: AtomicU64,
}

impl Default for Notices {
    fn default() -> Self {
        Self { line: EventBuffer::new(MOST), since: Instant::now(), quiet_until: AtomicU64::new(0) }
    }
}

impl Notices {
    /// Puts a notice at the end; at the bound, the oldest is dropped.
    pub(crate) fn put(&self, notice: PoolNotice) {
        self.line.offer(notice);
    }

    /// A message has found no room. Many senders may call this at once: it takes no lock, and only
    /// one of them reports.
    pub(crate) fn put_saturated(&self, now: Instant) {
        let millis = |time: Duration| time.as_millis() as u64;
        let now = millis(now.saturating_duration_since(self.since));
        let until = self.quiet_until.load(Ordering::Relaxed);
        let next = now + millis(SATURATED_EVERY);
        let order = Ordering::Relaxed;
        if now >= until && self.quiet_until.compare_exchange(until, next, order, order).is_ok() {
            self.put(PoolNotice::Saturated);
        }
    }

    /// Waits for the next notice. For one task.
    pub(super) async fn next(&self) -> Option<PoolNotice> {
        self.line.next().await.map(|event| match event {
            Event::Item(notice) => notice,
            Event::Lagged(lost) => PoolNotice::Lagged(lost),
        })
    }
}

#[cfg(test)]
mod tests {
    use std::{
        pin::pin,
        task::{Context, Poll, Waker},
    };

    use super::*;

    #[test]
    fn p14_a_slow_keeper_misses_the_oldest_and_is_told_how_many() {
        let notices = Notices::default();
        for slot in 0..MOST + 3 {
            notices.put(PoolNotice::WorkerUp { slot });
        }
        let mut task = Context::from_waker(Waker::noop());
        let mut next = || match pin!(notices.next()).poll(&mut task) {
            Poll::Ready(notice) => notice,
            Poll::Pending => None,
        };
        assert!(matches!(next(), Some(PoolNotice::Lagged(3))));
        for slot in 3..MOST + 3 {
            assert!(matches!(next(), Some(PoolNotice::WorkerUp { slot: next }) if next == slot));
        }
        assert!(next().is_none());
    }
}
