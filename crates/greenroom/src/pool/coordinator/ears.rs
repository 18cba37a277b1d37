//! Notices on their way to a coordinator: a bounded line that never makes the pool wait.
//!
//! ```text
//! pool ──put──▶ [ up 0 · up 1 · saturated ] ──next──▶ coordinator
//!        │                                     │
//!        └─ rings where nobody has been rung   └─ the line is empty: ring again
//! ```
//!
//! The bell is a signal, and the coordinator's signals are not bounded; so at
//! most one is on its way.

use std::collections::VecDeque;

use parking_lot::Mutex;

use super::PoolNotice;
use crate::pool::discard::discard;

/// Notices that wait. The restarts of a hundred workers, twice.
const MOST: usize = 256;

/// The line between a pool and its coordinator.
#[derive(Debug, Default)]
pub(crate) struct Ears {
    line: Mutex<Line>,
}

#[derive(Debug, Default)]
struct Line {
    notices: VecDeque<PoolNotice>,
    /// Dropped because the line was full, and not told yet. They came before everything that waits.
    missed: u64,
    /// The coordinator was rung, and has not found the line empty since.
    rung: bool,
}

impl Ears {
    /// Puts a notice at the end; the oldest gives way. True when the caller is to ring.
    #[must_use]
    pub(crate) fn put(&self, notice: PoolNotice) -> bool {
        let mut line = self.line.lock();
        let lost = match line.notices.len() < MOST {
            true => None,
            false => line.notices.pop_front(),
        };
        line.missed += u64::from(lost.is_some());
        line.notices.push_back(notice);
        let ring = !std::mem::replace(&mut line.rung, true);
        drop(line);
        // The error in it is the user's, and so is how it is dropped.
        discard(lost);
        ring
    }

    /// The next notice. `None` lets the bell ring again.
    pub(crate) fn next(&self) -> Option<PoolNotice> {
        let mut line = self.line.lock();
        if line.missed > 0 {
            return Some(PoolNotice::Lagged(std::mem::take(&mut line.missed)));
        }
        let next = line.notices.pop_front();
        line.rung = next.is_some();
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
    fn p14_the_bell_rings_once_until_the_line_was_found_empty() {
        let ears = Ears::default();
        assert!(ears.put(up(0)));
        assert!(!ears.put(up(1)));
        assert!(ears.next().is_some() && ears.next().is_some());
        assert!(!ears.put(up(2)), "the coordinator looks once more");
        assert!(ears.next().is_some() && ears.next().is_none());
        assert!(ears.put(up(3)));
    }

    #[test]
    fn p14_a_slow_coordinator_misses_the_oldest_and_is_told_how_many() {
        let ears = Ears::default();
        for slot in 0..MOST + 3 {
            let _ = ears.put(up(slot));
        }
        assert!(matches!(ears.next(), Some(PoolNotice::Lagged(3))));
        for slot in 3..MOST + 3 {
            assert!(
                matches!(ears.next(), Some(PoolNotice::WorkerUp { slot: next }) if next == slot)
            );
        }
        assert!(ears.next().is_none());
    }
}
