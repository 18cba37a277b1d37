//! The stretch before a pool shrinks, and the most workers that were needed in it.

use std::time::Duration;

use crate::control::peaks::Peaks;

/// A stretch in which the pool was not late, and the most workers that were busy at a time in its
/// last part.
#[derive(Debug, Clone)]
pub(super) struct Cooldown {
    since: Duration,
    busy: Peaks,
}

impl Cooldown {
    pub(super) fn since(at: Duration) -> Self {
        Self { since: at, busy: Peaks::default() }
    }

    /// Adds a sample and forgets samples older than `window`.
    pub(super) fn add(&mut self, at: Duration, busy_workers: f64, window: Duration) {
        self.busy.add(at, busy_workers, window);
    }

    pub(super) fn has_lasted(&self, now: Duration, window: Duration) -> bool {
        now.saturating_sub(self.since) >= window
    }

    /// The most workers that were busy at a time within the window.
    pub(super) fn peak(&self) -> f64 {
        self.busy.peak()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WINDOW: Duration = Duration::from_secs(3);

    #[test]
    fn p23_a_peak_is_forgotten_when_it_is_older_than_the_window() {
        let mut cooldown = Cooldown::since(Duration::ZERO);
        let peaks = [5.0, 1.0, 2.0, 1.0, 1.0, 1.0, 1.0].into_iter().zip(0..);
        let seen: Vec<f64> = peaks
            .map(|(busy, second)| {
                cooldown.add(Duration::from_secs(second), busy, WINDOW);
                cooldown.peak()
            })
            .collect();
        assert_eq!(seen, [5.0, 5.0, 5.0, 5.0, 2.0, 2.0, 1.0]);
        assert!(cooldown.has_lasted(Duration::from_secs(3), WINDOW));
        assert!(!cooldown.has_lasted(Duration::from_secs(2), WINDOW));
    }
}
