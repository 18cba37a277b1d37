//! The time of handling at rest, when nothing delays it.
//!
//! It is the lowest recent latency. A limit that works well keeps a small queue at the other side
//! all the time, so the lowest latency creeps up, and the limit with it; and a service that has
//! become slower for good would be treated as overloaded forever. So soon after the start, and
//! again when the baseline is stale, a *probe* holds back half of the load: for one window, to let
//! the queue run dry, and for another to measure (as BBR does with its ProbeRTT; Cardwell and
//! others, "BBR: congestion-based congestion control", ACM Queue 14(5), 2016).
//!
//! ```text
//! about as before ──────────────────▶ the known value is confirmed
//! higher, and falls with the load ──▶ there is still a queue in it: half of the load again
//! otherwise ────────────────────────▶ this is the latency at rest now
//! ```
//!
//! That is mostly two windows in fifty at half the limit: at most 2% of the throughput. A time with
//! little load serves as well as a probe. If the limit is only observed, nothing can be held back:
//! under an endless flood, the lowest latency rises slowly.

/// Windows after which a measurement is stale: ten seconds at the default window.
const STALE_AFTER: u32 = 50;
/// Windows before the first measurement: the first messages start together and so wait
/// less than later ones.
const FIRST_AFTER: u32 = 3;
/// The weight of a window in the mean over the last few, of which the lowest is kept. The lowest of
/// single windows would be the luckiest one.
const WEIGHT: f64 = 0.3;
/// The rise of a stale baseline in each window, if no probe is possible: it doubles
/// in about five minutes.
const DRIFT: f64 = 0.0005;

/// A measured latency at rest up to this many times the last one is about the same.
const ABOUT: f64 = 1.2;
/// With half of the load, latency that has a queue in it falls to less than this share.
const FALLEN: f64 = 0.8;

/// In seconds.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Baseline {
    lowest: Option<f64>,
    /// Whether it comes from a measurement at rest, and not only from the first window.
    is_measured: bool,
    /// The mean over the last few windows.
    mean: f64,
    /// Windows since the last measurement, or since the first window.
    age: u32,
}

impl Baseline {
    /// `None` before the first measurement.
    pub(super) fn lowest(&self) -> Option<f64> {
        self.lowest
    }

    pub(super) fn is_stale(&self) -> bool {
        self.age >= if self.is_measured { STALE_AFTER } else { FIRST_AFTER }
    }

    pub(super) fn see(&mut self, latency: f64) {
        let Some(lowest) = self.lowest else {
            *self = Self { lowest: Some(latency), mean: latency, ..*self };
            return;
        };
        self.mean += (latency - self.mean) * WEIGHT;
        self.age = self.age.saturating_add(1);
        self.lowest = Some(lowest.min(self.mean));
    }

    /// Learns from a measurement with half of the load; `before` is the latency with all of it.
    /// False if the latency has fallen with the load, and may fall further.
    pub(super) fn learn_rest(&mut self, before: f64, latency: f64) -> bool {
        let known = self.lowest.filter(|_| self.is_measured);
        match known {
            Some(known) if latency <= known * ABOUT => self.measured(latency.min(known)),
            _ if latency < before * FALLEN => return false,
            _ => self.measured(latency),
        }
        true
    }

    /// Replaces it, higher or lower.
    pub(super) fn measured(&mut self, latency: f64) {
        *self = Self { lowest: Some(latency), is_measured: true, mean: latency, age: 0 };
    }

    /// Rises slowly, up to the observed latency. A stale baseline that can never be measured must
    /// not be trusted forever.
    pub(super) fn drift(&mut self) {
        self.lowest = self.lowest.map(|lowest| self.mean.min(lowest * (1.0 + DRIFT)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn measured(latency: f64) -> Baseline {
        let mut baseline = Baseline::default();
        baseline.measured(latency);
        baseline
    }

    #[test]
    fn p24_the_lowest_is_kept_and_grows_stale() {
        let mut baseline = measured(2.0);
        (0..STALE_AFTER - 1).for_each(|_| baseline.see(3.0));
        assert_eq!((baseline.lowest(), baseline.is_stale()), (Some(2.0), false));
        baseline.see(3.0);
        assert!(baseline.is_stale());
        (0..30).for_each(|_| baseline.see(1.0));
        assert!(baseline.lowest().is_some_and(|lowest| lowest < 1.1));
        assert!(baseline.is_stale(), "a low window is no measurement");
    }

    #[test]
    fn p24_one_lucky_window_is_not_the_baseline() {
        let mut baseline = measured(1.0);
        baseline.see(0.1);
        assert!(baseline.lowest().is_some_and(|lowest| lowest > 0.7));
    }

    #[test]
    fn p24_the_first_window_is_not_taken_for_rest() {
        let mut baseline = Baseline::default();
        (0..FIRST_AFTER).for_each(|_| baseline.see(1.0));
        assert!(!baseline.is_stale());
        baseline.see(1.0);
        assert!(baseline.is_stale());
        assert!(!baseline.learn_rest(1.0, 0.5));
        assert!(baseline.learn_rest(0.5, 0.45));
        assert_eq!((baseline.lowest(), baseline.is_stale()), (Some(0.45), false));
    }

    #[test]
    fn p24_a_probe_confirms_doubts_or_replaces() {
        let mut baseline = measured(1.0);
        assert!(baseline.learn_rest(2.0, 1.1));
        assert_eq!(baseline.lowest(), Some(1.0), "it does not creep up");
        assert!(!baseline.learn_rest(4.0, 2.0));
        assert_eq!(baseline.lowest(), Some(1.0));
        assert!(baseline.learn_rest(2.0, 1.9), "a slower service");
        assert_eq!(baseline.lowest(), Some(1.9));
    }

    #[test]
    fn p24_a_baseline_that_cannot_be_measured_rises_up_to_what_is_seen() {
        let mut baseline = measured(1.0);
        (0..100).for_each(|_| baseline.see(1.5));
        (0..100).for_each(|_| baseline.drift());
        assert!(baseline.lowest().is_some_and(|lowest| (1.04..1.06).contains(&lowest)));
        (0..10_000).for_each(|_| baseline.drift());
        assert!(baseline.lowest().is_some_and(|lowest| (1.49..=1.5).contains(&lowest)));
    }
}
