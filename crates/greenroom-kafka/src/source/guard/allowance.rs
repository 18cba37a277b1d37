//! A number of events per period of time.

use std::time::{Duration, Instant};

/// Full at first, and filled again evenly.
pub(super) struct Allowance {
    most: u64,
    every: Duration,
    left: f64,
    filled: Instant,
}

impl Allowance {
    pub(super) fn new(most: u64, every: Duration, now: Instant) -> Self {
        Self { most, every, left: most as f64, filled: now }
    }

    /// Takes as much of this as is left.
    pub(super) fn take(&mut self, wanted: u64, now: Instant) -> u64 {
        let since = now.saturating_duration_since(self.filled);
        let more = self.most as f64 * since.as_secs_f64() / self.every.as_secs_f64();
        self.left = (self.left + more).min(self.most as f64);
        self.filled = now;
        let taken = wanted.min(self.left as u64);
        self.left -= taken as f64;
        taken
    }

    /// Returns the unspent part.
    pub(super) fn give_back(&mut self, count: u64) {
        self.left += count as f64;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn f08_what_is_spent_comes_back_evenly_and_no_more_than_that() {
        let begun = Instant::now();
        let at = |seconds| begun + Duration::from_secs(seconds);
        let mut allowance = Allowance::new(60, Duration::from_secs(3_600), begun);
        assert_eq!(allowance.take(50, at(0)), 50);
        assert_eq!(allowance.take(50, at(0)), 10);
        assert_eq!(allowance.take(50, at(59)), 0);
        assert_eq!(allowance.take(50, at(121)), 2);
        assert_eq!(allowance.take(100, at(100_000)), 60);
        allowance.give_back(5);
        assert_eq!(allowance.take(100, at(100_000)), 5);
    }
}
