//! The distribution of times over buckets, for aggregation elsewhere: in a monitoring
//! system, for example.

use std::time::Duration;

use hdrhistogram::Histogram;

/// Counts of how long something took, since counting began. Neither a bucket nor the sum ever
/// falls.
///
/// ```
/// use std::time::Duration;
/// use greenroom::stats::LatencyHistogram;
///
/// let mut times = LatencyHistogram::default();
/// times.add(Duration::from_millis(3), 8);
/// assert_eq!((times.count(), times.sum()), (8, Duration::from_millis(24)));
/// assert!(times.buckets().any(|(upto, count)| upto == Duration::from_millis(5) && count == 8));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LatencyHistogram {
    /// The last one counts all that took longer than the longest bound.
    counts: [u64; LatencyHistogram::BOUNDS.len() + 1],
    sum: Duration,
}

impl LatencyHistogram {
    /// The upper bounds of the buckets. A further one has no bound.
    pub const BOUNDS: [Duration; 16] = [
        Duration::from_micros(10),
        Duration::from_micros(100),
        Duration::from_micros(500),
        Duration::from_millis(1),
        Duration::from_millis(5),
        Duration::from_millis(10),
        Duration::from_millis(50),
        Duration::from_millis(100),
        Duration::from_millis(500),
        Duration::from_secs(1),
        Duration::from_secs(5),
        Duration::from_secs(10),
        Duration::from_secs(30),
        Duration::from_secs(60),
        Duration::from_secs(120),
        Duration::from_secs(600),
    ];

    /// Adds a measured time, counted this often.
    pub fn add(&mut self, time: Duration, times: u64) {
        let bucket = Self::BOUNDS.partition_point(|bound| *bound < time);
        self.counts[bucket] += times;
        let nanos = time.as_nanos().saturating_mul(u128::from(times));
        let nanos = u64::try_from(nanos).unwrap_or(u64::MAX);
        self.sum = self.sum.saturating_add(Duration::from_nanos(nanos));
    }

    /// Each bucket with its upper bound and its own count. Times longer than the longest bound
    /// are in none of them.
    pub fn buckets(&self) -> impl Iterator<Item = (Duration, u64)> {
        Self::BOUNDS.into_iter().zip(self.counts)
    }

    /// The total number of times.
    pub fn count(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// The total time.
    pub fn sum(&self) -> Duration {
        self.sum
    }

    /// From nanoseconds. Each time counts as the middle of the times that the histogram does not
    /// distinguish, which differ by a hundredth.
    pub(super) fn of(times: &Histogram<u64>) -> Self {
        let mut all = Self::default();
        for seen in times.iter_recorded() {
            let nanos = times.median_equivalent(seen.value_iterated_to());
            all.add(Duration::from_nanos(nanos), seen.count_at_value());
        }
        all
    }
}

/// The times of a pool's messages, from the [sample](super::LatencySummary) that is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Latencies {
    /// How long messages waited before they were started.
    pub queueing: LatencyHistogram,
    /// How long they were in hand.
    pub handling: LatencyHistogram,
    /// Both together, message by message: how long they were in the pool.
    pub residence: LatencyHistogram,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn o03_a_time_is_counted_in_the_first_bucket_that_it_fits_into() {
        let mut times = LatencyHistogram::default();
        for millis in [0, 1, 2, 1_000, 1_001, 700_000] {
            times.add(Duration::from_millis(millis), 1);
        }
        let counts: Vec<u64> = times.buckets().map(|(_, count)| count).collect();
        assert_eq!(counts, [1, 0, 0, 1, 1, 0, 0, 0, 0, 1, 1, 0, 0, 0, 0, 0]);
        assert_eq!((times.count(), times.sum()), (6, Duration::from_millis(702_004)));
        times.add(Duration::MAX, u64::MAX - 6);
        assert!(times.sum() > Duration::from_secs(18_000_000_000), "it does not overflow");
    }

    #[test]
    fn o03_what_a_histogram_has_recorded_comes_to_the_same_buckets_and_nearly_the_same_sum() {
        let mut recorded = Histogram::<u64>::new(2).unwrap();
        recorded.record_n(3_000_000, 512).unwrap();
        recorded.record(70_000_000_000).unwrap();
        let times = LatencyHistogram::of(&recorded);
        let of = |bound| times.buckets().find(|(upto, _)| *upto == bound).unwrap().1;
        assert_eq!((of(Duration::from_millis(5)), of(Duration::from_secs(120))), (512, 1));
        let sum = times.sum().as_secs_f64();
        assert!((sum / 71.536 - 1.0).abs() < 0.01, "{sum}");
    }
}
