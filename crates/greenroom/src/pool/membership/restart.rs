//! How often a worker may be restarted, and the waits before.

use std::{collections::VecDeque, time::Duration};

use tokio::time::Instant;

use crate::Backoff;

/// The restart budget of each worker: at most `max` restarts within `window`. The first is
/// immediate, further ones wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Restarts {
    /// Restarts within the window; one more disables the slot.
    pub max: u32,
    /// How far back restarts count.
    pub window: Duration,
    /// The waits before the second and later restarts within the window.
    pub backoff: Backoff,
}

impl Default for Restarts {
    /// 3 within 60 s, 100 ms to 30 s.
    fn default() -> Self {
        Self {
            max: 3,
            window: Duration::from_secs(60),
            backoff: Backoff::new(Duration::from_millis(100), Duration::from_secs(30)),
        }
    }
}

/// The restarts of one slot.
#[derive(Debug, Default)]
pub(crate) struct RestartLog {
    /// The times of restarts, oldest first; none older than the window.
    at: VecDeque<Instant>,
}

impl RestartLog {
    /// The wait before the next restart, or `None` when the budget is used up.
    pub(crate) fn next(
        &mut self,
        budget: &Restarts,
        now: Instant,
        chance: f64,
    ) -> Option<Duration> {
        while self.at.front().is_some_and(|at| now.duration_since(*at) >= budget.window) {
            self.at.pop_front();
        }
        if self.at.len() >= budget.max as usize {
            return None;
        }
        let recent = self.at.len() as u32;
        self.at.push_back(now);
        Some(if recent == 0 { Duration::ZERO } else { budget.backoff.wait(recent, chance) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn p17_the_budget_refills_as_the_window_passes() {
        let budget = Restarts { max: 2, window: Duration::from_secs(60), ..Restarts::default() };
        let (mut log, start) = (RestartLog::default(), Instant::now());
        let at = |seconds| start + Duration::from_secs(seconds);
        assert_eq!(log.next(&budget, at(0), 1.0), Some(Duration::ZERO));
        assert_eq!(log.next(&budget, at(1), 1.0), Some(Duration::from_millis(100)));
        assert_eq!(log.next(&budget, at(2), 1.0), None);
        assert_eq!(log.next(&budget, at(60), 1.0), Some(Duration::from_millis(100)));
        assert_eq!(log.next(&budget, at(60), 1.0), None);
    }
}

/// The consequence when a worker has been restarted as often as its budget allows, and ends again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum WhenExhausted {
    /// Its slot is disabled until [`PoolAdmin::enable`](crate::PoolAdmin::enable). Other workers
    /// take over its work.
    #[default]
    Disable,
    /// The pool stops for the reason for which the worker has ended.
    StopPool,
    /// The pool's supervisor decides. Until then the slot is disabled, and queued messages are
    /// kept. Without a supervisor this is `Disable`.
    Escalate,
}

/// Notifies a supervisor that a worker has ended for good, and why.
pub(crate) type Escalation = Box<dyn FnOnce(crate::ExitReason) + Send>;
