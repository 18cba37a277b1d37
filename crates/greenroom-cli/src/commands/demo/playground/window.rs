//! Figures of the last few seconds.

use std::time::Duration;

use crate::latencies::Latencies;

/// The length in seconds: enough events for a percentile, and a slider shows its effect soon.
const SECONDS: usize = 5;

/// The events of the last seconds. Each second has its own part; the oldest is cleared for the next
/// one.
pub(super) struct Window {
    /// Times of cold keys.
    cold: [Latencies; SECONDS],
    /// Events handled.
    handled: [u64; SECONDS],
    /// The second that is now.
    second: u64,
}

/// The figures.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct WindowFigures {
    pub(super) per_second: f64,
    pub(super) p50: Option<Duration>,
    pub(super) p99: Option<Duration>,
}

impl Window {
    pub(super) fn new() -> Self {
        Self { cold: std::array::from_fn(|_| Latencies::new()), handled: [0; SECONDS], second: 0 }
    }

    /// Counts an event that was handled at `now`, and for a cold key the time that it took.
    pub(super) fn record(&mut self, now: Duration, cold: Option<Duration>) {
        let place = self.advance(now);
        self.handled[place] += 1;
        if let Some(time) = cold {
            self.cold[place].record(time);
        }
    }

    /// The figures at `now`.
    pub(super) fn figures(&mut self, now: Duration) -> WindowFigures {
        self.advance(now);
        // The second that is now has begun, but is not over.
        let length = (SECONDS - 1) as f64 + f64::from(now.subsec_millis()) / 1e3;
        let handled: u64 = self.handled.iter().sum();
        WindowFigures {
            per_second: handled as f64 / length.min(now.as_secs_f64()).max(0.001),
            p50: Latencies::percentile_of(&self.cold, 0.5),
            p99: Latencies::percentile_of(&self.cold, 0.99),
        }
    }

    /// The part of this second.
    fn advance(&mut self, now: Duration) -> usize {
        let now = now.as_secs().max(self.second);
        let first = (self.second + 1).max((now + 1).saturating_sub(SECONDS as u64));
        for second in first..=now {
            let place = second as usize % SECONDS;
            self.cold[place] = Latencies::new();
            self.handled[place] = 0;
        }
        self.second = now;
        now as usize % SECONDS
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_of_the_last_seconds_alone() {
        let ms = Duration::from_millis;
        let mut window = Window::new();
        (0..4_000).for_each(|at| window.record(ms(at), (at % 2 == 0).then_some(ms(100))));
        let WindowFigures { per_second, p50, p99 } = window.figures(ms(4_000));
        assert!((999.0..1001.0).contains(&per_second), "{per_second}");
        assert!(p50 == p99 && p50.unwrap() >= ms(100));
        // The first second has left, and the times of the new one are shorter.
        (4_000..8_500).for_each(|at| window.record(ms(at), Some(ms(1))));
        let now = window.figures(ms(8_500));
        assert!((999.0..1001.0).contains(&now.per_second), "{now:?}");
        assert!(now.p99.unwrap() < ms(2), "{now:?}");
        // Nothing for a long time.
        let later = window.figures(ms(600_000));
        assert_eq!(later, WindowFigures { per_second: 0.0, p50: None, p99: None });
    }
}
