//! What came within the last minute, of counters that only say what came in all.

use std::{
    collections::VecDeque,
    time::{Duration, Instant},
};

use greenroom_bus::engine::Progress;
use parking_lot::Mutex;

/// How far it goes back.
pub(super) const WITHIN: Duration = Duration::from_secs(60);
/// How often it is kept.
const EVERY: Duration = Duration::from_secs(2);

/// Counts at moments within the last minute, the oldest first.
#[derive(Debug, Default)]
pub(in super::super) struct Recent(Mutex<VecDeque<RecentCounts>>);

#[derive(Debug, Clone, Copy)]
struct RecentCounts {
    at: Instant,
    dead_lettered: u64,
    settled: u64,
}

/// How many came.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(in super::super) struct Came {
    pub(super) dead_lettered: u64,
    pub(super) settled: u64,
}

impl Recent {
    /// Keeps the counts of this moment, where the last ones are old enough.
    pub(in super::super) fn look(&self, at: Instant, progress: &Progress) {
        self.keep(RecentCounts {
            at,
            dead_lettered: progress.dead_lettered,
            settled: progress.settled,
        });
    }

    fn keep(&self, now: RecentCounts) {
        let mut all = self.0.lock();
        if all.is_empty() {
            // Nothing has come before it was looked for the first time.
            all.push_back(RecentCounts { at: now.at, dead_lettered: 0, settled: 0 });
        }
        while all.front().is_some_and(|first| now.at.duration_since(first.at) > WITHIN) {
            all.pop_front();
        }
        if all.back().is_none_or(|last| now.at.duration_since(last.at) >= EVERY) {
            all.push_back(now);
        }
    }

    /// What came since the oldest that is kept.
    pub(in super::super) fn came(&self, progress: &Progress) -> Came {
        let first = self.0.lock().front().copied();
        first.map_or_else(Came::default, |first| Came {
            dead_lettered: progress.dead_lettered.saturating_sub(first.dead_lettered),
            settled: progress.settled.saturating_sub(first.settled),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn o14_counts_are_of_the_last_minute() {
        let (recent, start) = (Recent::default(), Instant::now());
        for second in 0..1_000 {
            let at = start + Duration::from_secs(second);
            recent.keep(RecentCounts { at, dead_lettered: second, settled: 2 * second });
        }
        let kept: Vec<_> = recent.0.lock().iter().map(|counts| counts.dead_lettered).collect();
        assert_eq!((kept.len(), kept[0], kept[kept.len() - 1]), (30, 940, 998));
    }
}
