//! How long handling takes when nothing is in its way.
//!
//! It is the lowest latency that was seen lately. A limit that works well keeps a small queue at the other side all the
//! time, so what was low lately creeps up, and the limit with it; and a service that has become slower for good would be
//! taken for an overloaded one for ever. So once the lowest is stale, a *probe* holds back half of the load for two
//! windows: one to let the queue run dry, one to measure; and half of that again, while latency is higher than it was at
//! rest before and goes on falling (as BBR does with its ProbeRTT; Cardwell and others, "BBR:
//! congestion-based congestion control", ACM Queue 14(5), 2016). At a window of 200 ms that costs at most 4% of the
//! throughput, and next to nothing where half of the limit is enough to keep the service busy. A time of little load is as
//! good as a probe.
//!
//! Where the limit is only observed there is nothing to hold back: under a flood that never ends, the lowest rises slowly.

/// Windows after which the lowest is stale: ten seconds at the default window.
const STALE_AFTER: u32 = 50;
/// The weight of a window in the mean over the last few, of which the lowest is kept. The lowest of bare windows would
/// be the luckiest one.
const WEIGHT: f64 = 0.3;
/// What a stale one rises by in each window, where no probe is possible: it doubles in about five minutes.
const DRIFT: f64 = 0.0005;

/// In seconds.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Baseline {
    lowest: Option<f64>,
    /// Over the last few windows.
    mean: f64,
    /// Windows since it was the lowest.
    age: u32,
}

impl Baseline {
    /// `None` before anything was done.
    pub(super) fn lowest(&self) -> Option<f64> {
        self.lowest
    }

    pub(super) fn is_stale(&self) -> bool {
        self.age >= STALE_AFTER
    }

    pub(super) fn see(&mut self, latency: f64) {
        let Some(lowest) = self.lowest else { return self.measured(latency) };
        self.mean += (latency - self.mean) * WEIGHT;
        self.age = self.age.saturating_add(1);
        if self.mean <= lowest {
            (self.lowest, self.age) = (Some(self.mean), 0);
        }
    }

    /// Replaces it, higher or lower.
    pub(super) fn measured(&mut self, latency: f64) {
        *self = Self { lowest: Some(latency), mean: latency, age: 0 };
    }

    /// Rises slowly, up to what is seen. A stale one that can never be measured must not be believed for ever.
    pub(super) fn drift(&mut self) {
        self.lowest = self.lowest.map(|lowest| self.mean.min(lowest * (1.0 + DRIFT)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn p24_the_lowest_stays_until_a_lower_one_and_grows_stale() {
        let mut baseline = Baseline::default();
        baseline.see(2.0);
        (0..STALE_AFTER - 1).for_each(|_| baseline.see(3.0));
        assert_eq!((baseline.lowest(), baseline.is_stale()), (Some(2.0), false));
        baseline.see(3.0);
        assert!(baseline.is_stale());
        (0..30).for_each(|_| baseline.see(1.0));
        assert!(!baseline.is_stale());
        assert!(baseline.lowest().is_some_and(|lowest| lowest < 1.1));
    }

    #[test]
    fn p24_one_lucky_window_is_not_the_baseline() {
        let mut baseline = Baseline::default();
        baseline.see(1.0);
        baseline.see(0.1);
        assert!(baseline.lowest().is_some_and(|lowest| lowest > 0.7));
    }
}
