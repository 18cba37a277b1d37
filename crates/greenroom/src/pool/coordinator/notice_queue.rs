//! Notices on their way to a coordinator: a bounded line that never makes the pool wait.
//!
//! ```text
//! pool ──put──▶ [ up 0 · up 1 · saturated ] ──next──▶ coordinator
//!        │                                     │
//!        └─ signals if none is on its way      └─ the line is empty: signal again
//! ```
//!
//! What calls it is a signal, and the coordinator's signals are not bounded; so at most one is on
//! its way.

use std::collections::VecDeque;

use greenroom_queue::discard::discard;
use greenroom_queue::lock::Mutex;

use super::PoolNotice;

/// Notices that wait. The restarts of a hundred workers, twice.
const MOST: usize = 256;

/// The line between a pool and its coordinator.
#[derive(Debug, Default)]
pub(crate) struct NoticeQueue {
    line: Mutex<QueuedNotices>,
}

#[derive(Debug, Default)]
struct QueuedNotices {
    notices: VecDeque<PoolNotice>,
    /// Dropped because the line was full, and not told yet. They came before everything that waits.
    missed: u64,
    /// The coordinator was notified, and has not found the line empty since.
    notified: bool,
}

impl NoticeQueue {
    /// Puts a notice at the end; the oldest gives way. True when the caller is to notify it.
    #[must_use]
    pub(crate) fn put(&self, notice: PoolNotice) -> bool {
        let mut line = self.line.lock();
        let lost = match line.notices.len() < MOST {
            true => None,
            false => line.notices.pop_front(),
        };
        line.missed += u64::from(lost.is_some());
        line.notices.push_back(notice);
        let notify = !std::mem::replace(&mut line.notified, true);
        drop(line);
        // The error in it is the user's, and so is how it is dropped.
        discard(lost);
        notify
    }

    /// The next notice. `None` lets it be notified again.
    pub(crate) fn next(&self) -> Option<PoolNotice> {
        let mut line = self.line.lock();
        if line.missed > 0 {
            return Some(PoolNotice::Lagged(std::mem::take(&mut line.missed)));
        }
        let next = line.notices.pop_front();
        line.notified = next.is_some();
        next
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn up(slot: usize) -> PoolNotice {
        PoolNotice::WorkerUp { slot }
    }

    #[test]
    fn p14_the_coordinator_is_signalled_once_until_the_line_was_found_empty() {
        let notices = NoticeQueue::default();
        assert!(notices.put(up(0)));
        assert!(!notices.put(up(1)));
        assert!(notices.next().is_some() && notices.next().is_some());
        assert!(!notices.put(up(2)), "the coordinator looks once more");
        assert!(notices.next().is_some() && notices.next().is_none());
        assert!(notices.put(up(3)));
    }

    #[test]
    fn p14_a_slow_coordinator_misses_the_oldest_and_is_told_how_many() {
        let notices = NoticeQueue::default();
        for slot in 0..MOST + 3 {
            let _ = notices.put(up(slot));
        }
        assert!(matches!(notices.next(), Some(PoolNotice::Lagged(3))));
        for slot in 3..MOST + 3 {
            assert!(
                matches!(notices.next(), Some(PoolNotice::WorkerUp { slot: next }) if next == slot)
            );
        }
        assert!(notices.next().is_none());
    }
}
