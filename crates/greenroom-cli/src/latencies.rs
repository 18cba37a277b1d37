//! Times that many tasks record at once, and percentiles at any moment.
//!
//! A fixed table of counters: 32 steps for each doubling, so that a percentile is at most 3% too
//! long, from a nanosecond to centuries, in 15 KiB. Recording is one atomic addition.

use std::{
    sync::atomic::{AtomicU64, Ordering::Relaxed},
    time::Duration,
};

/// Steps of a doubling, as a power of two.
const STEP_BITS: u32 = 5;
const STEPS: u64 = 1 << STEP_BITS;
/// Enough for every `u64`.
const BUCKETS: usize = ((64 - STEP_BITS as usize - 1) << STEP_BITS) + 2 * STEPS as usize;

/// Counters of times.
pub(crate) struct Latencies {
    /// The number of times in each bucket.
    counts: Box<[AtomicU64]>,
}

impl Latencies {
    /// An empty table.
    pub(crate) fn new() -> Self {
        Self { counts: (0..BUCKETS).map(|_| AtomicU64::new(0)).collect() }
    }

    /// Counts a time.
    pub(crate) fn record(&self, time: Duration) {
        let nanos = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        self.counts[bucket(nanos)].fetch_add(1, Relaxed);
    }

    /// The time that this fraction of them does not exceed; `None` if there are none.
    pub(crate) fn percentile(&self, part: f64) -> Option<Duration> {
        Self::percentile_of(std::slice::from_ref(self), part)
    }

    /// The same over several tables.
    pub(crate) fn percentile_of(all: &[Self], part: f64) -> Option<Duration> {
        let total = Self::sum(all, 0..BUCKETS);
        let rank = ((total as f64 * part).ceil() as u64).max(1);
        let mut seen = 0;
        let found = (0..BUCKETS).find(|place| {
            seen += Self::sum(all, *place..place + 1);
            seen >= rank
        });
        found.map(|place| Duration::from_nanos(longest_in(place)))
    }

    fn sum(all: &[Self], places: std::ops::Range<usize>) -> u64 {
        all.iter()
            .flat_map(|one| &one.counts[places.clone()])
            .map(|count| count.load(Relaxed))
            .sum()
    }
}

/// The bucket of a time: the position of its highest bit, and the five bits after it.
fn bucket(nanos: u64) -> usize {
    let shift = (64 - nanos.leading_zeros()).saturating_sub(STEP_BITS + 1);
    ((u64::from(shift) << STEP_BITS) + (nanos >> shift)) as usize
}

/// The longest time of a bucket.
fn longest_in(bucket: usize) -> u64 {
    let bucket = bucket as u64;
    match (bucket >> STEP_BITS).saturating_sub(1) {
        0 => bucket,
        shift => {
            let step = (bucket & (STEPS - 1)) + STEPS;
            (u128::from(step + 1) << shift).wrapping_sub(1).min(u64::MAX.into()) as u64
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bucket_is_at_most_a_32nd_too_long() {
        let powers = (0..64).map(|bit| 1_u64 << bit);
        for nanos in powers.flat_map(|p| [p, p + p / 3, p - 1]).chain([u64::MAX]) {
            let longest = longest_in(bucket(nanos));
            assert!(longest >= nanos && longest - nanos <= nanos / 32, "{nanos}: {longest}");
        }
        assert_eq!(bucket(u64::MAX), BUCKETS - 1);
    }

    #[test]
    fn percentiles_are_of_all_that_was_written_down() {
        let latencies = Latencies::new();
        assert_eq!(latencies.percentile(0.99), None);
        (1..=1_000).for_each(|ms| latencies.record(Duration::from_millis(ms)));
        for (part, ms) in [(0.0, 1.0), (0.5, 500.0), (0.99, 990.0), (1.0, 1_000.0)] {
            let found = latencies.percentile(part).unwrap().as_secs_f64() * 1e3;
            assert!((1.0..1.04).contains(&(found / ms)), "{part}: {found}");
        }
    }
}
