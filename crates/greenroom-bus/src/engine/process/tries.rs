//! The failed attempts of one event: how many count, and whether it may be given up.

use std::time::Duration;

use tokio::time::Instant;

use super::circuit::Streak;
use crate::router::Retry;

/// Of one event, since it was taken or an operator let it be attempted anew.
#[derive(Debug, Default)]
pub(crate) struct Tries {
    /// Attempts that failed and count.
    failures: u32,
    /// Since when they do.
    since: Option<Instant>,
    /// The failures of its handler among which its first one was.
    streak: Option<Streak>,
    /// Its last attempt is made then, or as soon as no others come that could say who is to blame.
    held_until: Option<Instant>,
}

impl Tries {
    /// An attempt has failed among these failures of its handler.
    pub(crate) fn failed(&mut self, streak: Streak, now: Instant) {
        self.failures = self.failures.saturating_add(1);
        self.since.get_or_insert(now);
        self.streak.get_or_insert(streak);
    }

    /// An outage was to blame: nothing that failed so far counts.
    pub(crate) fn begin_anew(&mut self) {
        *self = Self::default();
    }

    /// Nobody knows yet who is to blame: the next attempt, which is the last, waits for so long.
    pub(crate) fn hold(&mut self, until: Instant) {
        self.held_until = Some(until);
    }

    /// How long the next attempt is to wait still, where others may come meanwhile.
    pub(crate) fn held_for(&self, others_may_come: impl FnOnce() -> bool) -> Option<Duration> {
        let left = self.held_until?.saturating_duration_since(Instant::now());
        (!left.is_zero() && others_may_come()).then_some(left)
    }

    pub(crate) fn failures(&self) -> u32 {
        self.failures
    }

    /// True where its attempts have failed for as long as they may.
    pub(crate) fn is_over(&self, total: Option<Duration>, now: Instant) -> bool {
        let Some((total, since)) = total.zip(self.since) else { return false };
        now.duration_since(since) >= total
    }

    /// Attempts that are left after one that fails now.
    pub(crate) fn left(&self, retry: Retry, now: Instant) -> u32 {
        if self.is_over(retry.total, now) {
            return 0;
        }
        retry.attempts.saturating_sub(self.failures.saturating_add(1))
    }

    /// The failures of its handler among which its first one was.
    pub(crate) fn streak(&self) -> Option<Streak> {
        self.streak
    }
}
