//! Times that many tasks record at once, and percentiles at any moment.

use std::time::Duration;

use hdrhistogram::Histogram;
use parking_lot::Mutex;

/// Recorded times, to two digits.
pub(crate) struct Latencies(Mutex<Histogram<u64>>);

fn empty() -> Histogram<u64> {
    Histogram::new(2).expect("two digits are allowed")
}

impl Latencies {
    /// Without any time.
    pub(crate) fn new() -> Self {
        Self(Mutex::new(empty()))
    }

    /// Counts a time.
    pub(crate) fn record(&self, time: Duration) {
        let nanos = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        // It grows as needed.
        let _ = self.0.lock().record(nanos);
    }

    /// `None` until there is a time.
    pub(crate) fn percentile(&self, part: f64) -> Option<Duration> {
        Self::percentile_of(std::slice::from_ref(self), part)
    }

    /// The percentile of the times in all of them.
    pub(crate) fn percentile_of(all: &[Self], part: f64) -> Option<Duration> {
        let mut sum = empty();
        // It grows as needed.
        all.iter().for_each(|one| _ = sum.add(&*one.0.lock()));
        (!sum.is_empty()).then(|| Duration::from_nanos(sum.value_at_quantile(part)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_time_can_be_recorded() {
        let latencies = Latencies::new();
        for time in [Duration::ZERO, Duration::from_nanos(1), Duration::MAX] {
            latencies.record(time);
            assert!(
                latencies
                    .percentile(1.0)
                    .is_some_and(|longest| longest >= time.min(Duration::from_secs(1)))
            );
        }
    }

    #[test]
    fn percentiles_are_of_all_that_was_written_down() {
        let latencies = Latencies::new();
        assert_eq!(latencies.percentile(0.99), None);
        (1..=1_000).for_each(|ms| latencies.record(Duration::from_millis(ms)));
        for (part, ms) in [(0.0, 1.0), (0.5, 500.0), (0.99, 990.0), (1.0, 1_000.0)] {
            let found = latencies.percentile(part).unwrap().as_secs_f64() * 1e3;
            assert!((0.99..1.01).contains(&(found / ms)), "{part}: {found}");
        }
    }
}
