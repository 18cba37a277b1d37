//! Notices on their way to a keeper: a bounded line that never makes the pool wait.

use std::{
    collections::VecDeque,
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

use greenroom_queue::{discard::discard, lock::Mutex};
use tokio::{sync::Notify, time::Instant};

use super::notice::PoolNotice;

/// The most notices that wait: enough for two restarts of a hundred workers.
const MOST: usize = 256;

/// Under a flood every message finds no room; a keeper needs to be notified only a few times a
/// second.
const SATURATED_EVERY: Duration = Duration::from_millis(100);

/// The line between a pool and its keeper.
#[derive(Debug)]
pub(crate) struct Notices {
    line: Mutex<NoticeLine>,
    /// Notified of each notice.
    come: Notify,
    /// The time that `quiet_until` is counted from.
    since: Instant,
    /// Until this time, in milliseconds, the pool does not report again that it is saturated.
    quiet_until: AtomicU64,
}

impl Default for Notices {
    fn default() -> Self {
        Self {
            line: Mutex::default(),
            come: Notify::new(),
            since: Instant::now(),
            quiet_until: AtomicU64::new(0),
        }
    }
}

#[derive(Debug, Default)]
struct NoticeLine {
    notices: VecDeque<PoolNotice>,
    /// The number of notices that were dropped because the line was full, and not reported yet.
    /// They are older than everything that waits.
    lost: u64,
}

impl Notices {
    /// Puts a notice at the end; at the bound, the oldest is dropped.
    pub(crate) fn put(&self, notice: PoolNotice) {
        let mut line = self.line.lock();
        let lost = match line.notices.len() < MOST {
            true => None,
            false => line.notices.pop_front(),
        };
        line.lost += u64::from(lost.is_some());
        line.notices.push_back(notice);
        drop(line);
        self.come.notify_one();
        // The error in it is the user's, and so is its `Drop`.
        discard(lost);
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
    pub(super) async fn next(&self) -> PoolNotice {
        loop {
            if let Some(notice) = self.first() {
                return notice;
            }
            self.come.notified().await;
        }
    }

    /// The first notice, if there is one.
    fn first(&self) -> Option<PoolNotice> {
        let mut line = self.line.lock();
        match std::mem::take(&mut line.lost) {
            0 => line.notices.pop_front(),
            lost => Some(PoolNotice::Lagged(lost)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn p14_a_slow_keeper_misses_the_oldest_and_is_told_how_many() {
        let notices = Notices::default();
        for slot in 0..MOST + 3 {
            notices.put(PoolNotice::WorkerUp { slot });
        }
        assert!(matches!(notices.first(), Some(PoolNotice::Lagged(3))));
        for slot in 3..MOST + 3 {
            assert!(
                matches!(notices.first(), Some(PoolNotice::WorkerUp { slot: next }) if next == slot)
            );
        }
        assert!(notices.first().is_none());
    }
}
