//! How fast an engine settles, and how long waiting events will take (O12).

use std::{collections::VecDeque, time::Duration};

use tokio::time::Instant;

/// The rate is averaged over this time: with a shorter one, the number of replicas would follow
/// every burst.
const OVER: Duration = Duration::from_secs(10);

/// Kept counts are at least so far apart, however often they are read.
const APART: Duration = Duration::from_millis(500);

/// The rate at which events are settled now, or were last.
#[derive(Debug, Default)]
pub(super) struct Pace {
    /// How many were settled when, the oldest first; the first is of `OVER` ago.
    counts: VecDeque<(Instant, u64)>,
    /// The last rate above 0.
    known: Option<f64>,
}

impl Pace {
    /// The number settled so far.
    pub(super) fn look(&mut self, settled: u64, now: Instant) {
        if self.counts.back().is_some_and(|(last, _)| now < *last + APART) {
            return;
        }
        self.counts.push_back((now, settled));
        while self.counts.get(1).is_some_and(|(at, _)| now >= *at + OVER) {
            self.counts.pop_front();
        }
        if let Some((since, before)) = self.counts.front() {
            let time = now.saturating_duration_since(*since).as_secs_f64();
            let rate = settled.saturating_sub(*before) as f64 / time;
            if rate > 0.0 && rate.is_finite() {
                self.known = Some(rate);
            }
        }
    }

    /// How long this many events take at that rate. `None` if there are any and none was settled
    /// yet.
    pub(super) fn time_for(&self, events: u64) -> Option<Duration> {
        if events == 0 {
            return Some(Duration::ZERO);
        }
        self.known
            .map(|rate| Duration::try_from_secs_f64(events as f64 / rate).unwrap_or(Duration::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn o12_what_waits_takes_as_long_as_the_rate_of_the_last_ten_seconds_says() {
        let (mut pace, start) = (Pace::default(), Instant::now());
        pace.look(0, start);
        assert_eq!(pace.time_for(5), None, "nothing was settled yet");
        assert_eq!(pace.time_for(0), Some(Duration::ZERO));
        for second in 1..=30 {
            pace.look(100 * u64::from(second), start + second * SECOND);
        }
        assert_eq!(pace.time_for(1_000), Some(10 * SECOND));
        for second in 31..=60 {
            pace.look(3_000 + 200 * u64::from(second - 30), start + second * SECOND);
        }
        assert_eq!(pace.time_for(1_000), Some(5 * SECOND), "what was before does not count");
        assert!(pace.counts.len() <= 12);
    }

    #[test]
    fn o12_while_nothing_is_settled_the_last_known_rate_counts() {
        let (mut pace, start) = (Pace::default(), Instant::now());
        pace.look(0, start);
        pace.look(50, start + SECOND);
        for second in 2..=100 {
            pace.look(50, start + second * SECOND);
        }
        let known = pace.time_for(500).unwrap();
        assert!((10 * SECOND..=100 * SECOND).contains(&known), "{known:?}");
        assert_eq!(pace.time_for(500), Some(known));
    }

    #[test]
    fn o12_looks_that_follow_each_other_closely_change_nothing() {
        let (mut pace, start) = (Pace::default(), Instant::now());
        pace.look(0, start);
        pace.look(100, start + SECOND);
        for _ in 0..100 {
            pace.look(100, start + SECOND);
        }
        assert_eq!((pace.time_for(100), pace.counts.len()), (Some(SECOND), 2));
    }
}
