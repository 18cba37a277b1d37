//! The most workers needed at a time, over a stretch in which the pool was not late.

use std::{collections::VecDeque, time::Duration};

/// A stretch of calm, and the most workers that were busy at a time in its last part.
#[derive(Debug, Clone)]
pub(in crate::control) struct Calm {
    since: Duration,
    /// When, and how many were busy: falling from front to back, so that the front is the peak. A
    /// sample that is not higher than a later one can never be the peak again and is not kept.
    peaks: VecDeque<(Duration, f64)>,
}

impl Calm {
    pub(in crate::control) fn since(at: Duration) -> Self {
        Self { since: at, peaks: VecDeque::new() }
    }

    /// Adds a sample and forgets samples older than `window`.
    pub(in crate::control) fn add(&mut self, at: Duration, busy_workers: f64, window: Duration) {
        while self.peaks.back().is_some_and(|(_, busy)| *busy <= busy_workers) {
            self.peaks.pop_back();
        }
        self.peaks.push_back((at, busy_workers));
        while self.peaks.front().is_some_and(|(then, _)| at.saturating_sub(*then) > window) {
            self.peaks.pop_front();
        }
    }

    pub(super) fn has_lasted(&self, now: Duration, window: Duration) -> bool {
        now.saturating_sub(self.since) >= window
    }

    /// The most workers that were busy at a time within the window.
    pub(in crate::control) fn peak(&self) -> f64 {
        self.peaks.front().map_or(0.0, |(_, busy)| *busy)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WINDOW: Duration = Duration::from_secs(3);

    #[test]
    fn p23_a_peak_is_forgotten_when_it_is_older_than_the_window() {
        let mut calm = Calm::since(Duration::ZERO);
        let peaks = [5.0, 1.0, 2.0, 1.0, 1.0, 1.0, 1.0].into_iter().zip(0..);
        let seen: Vec<f64> = peaks
            .map(|(busy, second)| {
                calm.add(Duration::from_secs(second), busy, WINDOW);
                calm.peak()
            })
            .collect();
        assert_eq!(seen, [5.0, 5.0, 5.0, 5.0, 2.0, 2.0, 1.0]);
        assert!(calm.has_lasted(Duration::from_secs(3), WINDOW));
        assert!(!calm.has_lasted(Duration::from_secs(2), WINDOW));
    }
}
