//! Increases within the last minute, for counters that only have totals.

use std::{
    collections::{HashMap, VecDeque},
    time::{Duration, Instant},
};

use greenroom_bus::engine::{AttemptTimes, AttemptsSnapshot, Control, Progress};
use parking_lot::Mutex;

use super::busy_shares::RecentShares;

/// The time that it covers.
pub(super) const WITHIN: Duration = Duration::from_secs(60);
/// The time between two samples.
const EVERY: Duration = Duration::from_secs(2);

/// The time between two samples of attempts, and the time that these cover.
const TIMES_EVERY: Duration = Duration::from_secs(5);
const TIMES_WITHIN: Duration = Duration::from_secs(20);
/// Fewer attempts do not show how long they take.
const FEW: u64 = 5;
const FEW_BEFORE: u64 = 50;

/// Increases within the last minute.
#[derive(Debug, Default)]
pub(in super::super) struct Recent {
    /// Samples within the minute, oldest first.
    counts: Mutex<VecDeque<RecentCounts>>,
    /// By handler.
    attempts: Mutex<HashMap<&'static str, VecDeque<(Instant, AttemptsSnapshot)>>>,
    pub(super) shares: RecentShares,
}

/// The durations of a handler's attempts.
#[derive(Debug, Clone, Copy)]
pub(super) struct Took {
    /// Recent ones.
    pub(super) now: AttemptTimes,
    /// All earlier ones, if there were enough.
    pub(super) before: Option<AttemptTimes>,
    /// Attempts that ended recently.
    pub(super) ended: u64,
    /// Of those, attempts that took too long, and attempts with a wait that the target asked for.
    pub(super) late: u64,
    pub(super) deferred: u64,
}

#[derive(Debug, Clone, Copy)]
struct RecentCounts {
    at: Instant,
    dead_lettered: u64,
    settled: u64,
}

/// The increases.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(in super::super) struct Came {
    pub(super) dead_lettered: u64,
    pub(super) settled: u64,
}

impl Recent {
    /// Keeps the current counts, if the last ones are old enough.
    pub(in super::super) fn look(&self, at: Instant, control: &Control) {
        let progress = control.progress();
        self.look_at_attempts(at, control);
        self.shares.look(at, control);
        self.keep(RecentCounts {
            at,
            dead_lettered: progress.dead_lettered,
            settled: progress.settled,
        });
    }

    fn look_at_attempts(&self, at: Instant, control: &Control) {
        let mut attempts = self.attempts.lock();
        for handler in control.handlers() {
            let all = attempts.entry(handler.name()).or_default();
            if all.back().is_some_and(|(last, _)| at.duration_since(*last) < TIMES_EVERY) {
                continue;
            }
            while all.get(1).is_some_and(|(next, _)| at.duration_since(*next) >= TIMES_WITHIN) {
                all.pop_front();
            }
            all.push_back((at, handler.attempts()));
        }
    }

    /// The recent and earlier durations of this handler's attempts; `None` if there were too few.
    pub(super) fn took(&self, handler: &str) -> Option<Took> {
        let attempts = self.attempts.lock();
        let all = attempts.get(handler)?;
        let ((_, first), (_, last)) = (all.front()?, all.back()?);
        let ended = |of: &AttemptsSnapshot| of.succeeded + of.failed;
        let lately = |of: fn(&AttemptsSnapshot) -> u64| of(last) - of(first);
        let (late, deferred) = (lately(|of| of.late), lately(|of| of.deferred));
        let of_late = ended(last) - ended(first);
        if of_late < FEW {
            return None;
        }
        let before = first.took_since(&AttemptsSnapshot::default());
        let before = before.filter(|_| ended(first) >= FEW_BEFORE);
        Some(Took { now: last.took_since(first)?, before, ended: of_late, late, deferred })
    }

    fn keep(&self, now: RecentCounts) {
        let mut all = self.counts.lock();
        if all.is_empty() {
            // Before the first look, every count was zero.
            all.push_back(RecentCounts { at: now.at, dead_lettered: 0, settled: 0 });
        }
        while all.front().is_some_and(|first| now.at.duration_since(first.at) > WITHIN) {
            all.pop_front();
        }
        if all.back().is_none_or(|last| now.at.duration_since(last.at) >= EVERY) {
            all.push_back(now);
        }
    }

    /// The increase since the oldest kept value.
    pub(in super::super) fn came(&self, progress: &Progress) -> Came {
        let first = self.counts.lock().front().copied();
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
        let kept: Vec<_> = recent.counts.lock().iter().map(|counts| counts.dead_lettered).collect();
        assert_eq!((kept.len(), kept[0], kept[kept.len() - 1]), (30, 940, 998));
    }
}
