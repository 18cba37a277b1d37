//! How long attempts took.

use crate::wake::QUICK;

/// The number of attempts in the average of how long they usually take.
const SMOOTHING: u128 = 16;

/// Longer attempts count as this many nanoseconds when the pace is computed: an interrupted one
/// says little.
const SLOW: u64 = 16 * QUICK.as_nanos() as u64;

/// The number of attempts in the average that says whether they are quick.
const PACED: u64 = 64;

/// How long the attempts of a pool took, in nanoseconds.
pub(super) struct Took {
    /// The sum over all attempts.
    pub(super) sum: u64,
    /// The average duration of recent attempts, with outliers limited.
    pace: u64,
    /// The typical duration: the mean over the time in hand, not over the attempts, because workers
    /// still have the long ones in hand when others become free.
    pub(super) typical: u64,
}

impl Took {
    pub(super) fn new() -> Self {
        Self { sum: 0, pace: SLOW, typical: 1 }
    }

    /// Notes the duration of an attempt that has ended.
    pub(super) fn note(&mut self, took: u64) {
        self.sum = self.sum.saturating_add(took);
        self.typical = follow(self.typical, took);
        self.pace = (self.pace * (PACED - 1) + took.min(SLOW)) / PACED;
    }

    /// The average duration of attempts, if they are quick.
    pub(super) fn quick_pace(&self) -> Option<u64> {
        (self.pace < QUICK.as_nanos() as u64).then_some(self.pace)
    }
}

/// The mean after one more value, weighted by its size.
fn follow(mean: u64, value: u64) -> u64 {
    let (old, new) = (u128::from(mean), u128::from(value));
    let (weight, all) = (new, new + SMOOTHING * old);
    let next = (old * (all - weight) + new * weight) / all;
    u64::try_from(next.max(1)).unwrap_or(u64::MAX)
}
