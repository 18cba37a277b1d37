//! When a worker process may be started again: a budget over a sliding window, and a
//! backoff between restarts.
//!
//! The two answer different questions. The backoff asks whether the last process did any work at
//! all: an answer resets it, so a process that dies at every thousandth event is back at once each
//! time, and one that dies at its start is not spun. The budget asks how much dying is normal: used
//! up, the handler pauses until the window has passed, and events wait.

use std::{collections::VecDeque, time::Duration};

use greenroom_config::{count, duration, options, units::DAY_MS};
use rand::{Rng, RngExt};
use tokio::time::Instant;

/// The wait before the second restart in a row; it doubles from there.
const FIRST_DELAY: Duration = Duration::from_millis(100);
/// No wait between restarts is longer, jitter included.
const LONGEST_DELAY: Duration = Duration::from_secs(30);

options! {
    /// If a process dies more often than this within the window, its handler pauses until the
    /// window allows another restart.
    #[derive(Copy, Eq)]
    pub struct RestartLimit = "restart" {
        /// How many restarts within the window.
        max: u32 = count(0..=1_000_000).default("3");
        /// The window.
        window: Duration = duration(1..=DAY_MS).default("60s");
    }
}

impl Default for RestartLimit {
    fn default() -> Self {
        Self { max: 3, window: Duration::from_secs(60) }
    }
}

/// The restarts that one worker made, and what they allow next.
#[derive(Debug)]
pub(super) struct Restarts {
    limit: RestartLimit,
    /// When restarts happened, oldest first; never longer than `limit.max`.
    made: VecDeque<Instant>,
    /// Restarts since the last answer of any process of this worker.
    in_a_row: u32,
}

impl Restarts {
    pub(super) fn new(limit: RestartLimit) -> Self {
        Self { limit, made: VecDeque::new(), in_a_row: 0 }
    }

    /// Takes one restart from the budget and returns how long to wait before it.
    ///
    /// # Errors
    /// The time until the budget allows another restart; nothing was taken.
    pub(super) fn take(&mut self, now: Instant, rng: &mut impl Rng) -> Result<Duration, Duration> {
        while self.made.front().is_some_and(|at| now.duration_since(*at) >= self.limit.window) {
            self.made.pop_front();
        }
        if self.made.len() >= self.limit.max as usize {
            let waited = self.made.front().map_or(Duration::ZERO, |at| now.duration_since(*at));
            return Err(self.limit.window.saturating_sub(waited));
        }
        self.made.push_back(now);
        self.in_a_row = self.in_a_row.saturating_add(1);
        Ok(backoff(self.in_a_row, rng))
    }

    /// A process answered: the next restart is immediate again.
    pub(super) fn answered(&mut self) {
        self.in_a_row = 0;
    }
}

/// The wait before the `nth` restart in a row: none, then 100 ms doubling to 30 s, each cut by up
/// to a half at random so that workers which died together do not return together.
fn backoff(nth: u32, rng: &mut impl Rng) -> Duration {
    if nth <= 1 {
        return Duration::ZERO;
    }
    let full = FIRST_DELAY.saturating_mul(1 << (nth - 2).min(16)).min(LONGEST_DELAY);
    full.mul_f64(rng.random_range(0.5..=1.0)).max(FIRST_DELAY)
}

#[cfg(test)]
mod tests {
    use rand::{SeedableRng, rngs::StdRng};

    use super::*;

    fn rng() -> StdRng {
        StdRng::seed_from_u64(1)
    }

    fn limit(max: u32) -> RestartLimit {
        RestartLimit { max, window: Duration::from_secs(60) }
    }

    #[test]
    fn p17_first_restart_is_at_once_and_further_ones_back_off() {
        let mut restarts = Restarts::new(limit(100));
        let now = Instant::now();
        let delays: Vec<_> =
            (0..20).map(|_| restarts.take(now, &mut rng()).unwrap().as_millis()).collect();
        assert_eq!(delays[0], 0);
        assert!(delays[1] >= 100 && delays[3] > delays[1], "{delays:?}");
        assert!((15_000..=30_000).contains(&delays[19]), "{delays:?}");
    }

    #[test]
    fn p17_an_answer_resets_the_backoff_but_not_the_budget() {
        let mut restarts = Restarts::new(limit(2));
        let now = Instant::now();
        for _ in 0..2 {
            assert_eq!(restarts.take(now, &mut rng()), Ok(Duration::ZERO));
            restarts.answered();
        }
        assert!(restarts.take(now, &mut rng()).is_err());
    }

    #[test]
    fn p17_budget_refills_as_the_window_passes() {
        let mut restarts = Restarts::new(limit(1));
        let start = Instant::now();
        restarts.take(start, &mut rng()).unwrap();
        let later = start + Duration::from_secs(20);
        assert_eq!(restarts.take(later, &mut rng()), Err(Duration::from_secs(40)));
        assert!(restarts.take(start + Duration::from_secs(60), &mut rng()).is_ok());
    }

    #[test]
    fn p17_a_budget_of_none_never_restarts() {
        let mut restarts = Restarts::new(limit(0));
        let wait = restarts.take(Instant::now(), &mut rng());
        assert_eq!(wait, Err(Duration::from_secs(60)));
    }
}
